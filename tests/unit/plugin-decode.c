/* SPDX-License-Identifier: MIT */
/* The plugin's decoder, against instructions as the Intel manual encodes them. */
#include "tap.h"

#include "decode.h"
#include "outage/mark.h"

struct one {
	const char *text;
	unsigned char code[16];
	unsigned char len;
	enum insn_kind kind;
};

/* clang-format off */
static const struct one plain[] = {
	{ "sfence", { 0x0f, 0xae, 0xf8 }, 3, INSN_FENCE },
	{ "mfence", { 0x0f, 0xae, 0xf0 }, 3, INSN_FENCE },
	{ "lfence is none", { 0x0f, 0xae, 0xe8 }, 3, INSN_OTHER },
	{ "tpause is none", { 0x66, 0x0f, 0xae, 0xf0 }, 4, INSN_OTHER },
	{ "umonitor is none", { 0xf3, 0x0f, 0xae, 0xf0 }, 4, INSN_OTHER },
	{ "movnti %rcx,(%rbx)", { 0x48, 0x0f, 0xc3, 0x0b }, 4, INSN_NTSTORE },
	{ "movnti %ecx,(%r8)", { 0x41, 0x0f, 0xc3, 0x08 }, 4, INSN_NTSTORE },
	{ "movntq %mm0,(%rbx)", { 0x0f, 0xe7, 0x03 }, 3, INSN_NTSTORE },
	{ "movntdq %xmm0,(%rbx)", { 0x66, 0x0f, 0xe7, 0x03 }, 4, INSN_NTSTORE },
	{ "movntps %xmm0,(%rbx)", { 0x0f, 0x2b, 0x03 }, 3, INSN_NTSTORE },
	{ "movntpd %xmm8,(%rbx)", { 0x66, 0x44, 0x0f, 0x2b, 0x03 }, 5, INSN_NTSTORE },
	{ "vmovntdq %ymm0,(%rbx)", { 0xc5, 0xfd, 0xe7, 0x03 }, 4, INSN_NTSTORE },
	{ "vmovntdq %ymm0,(%r8)", { 0xc4, 0xc1, 0x7d, 0xe7, 0x00 }, 5, INSN_NTSTORE },
	{ "vmovntps %ymm0,(%rbx)", { 0xc5, 0xfc, 0x2b, 0x03 }, 4, INSN_NTSTORE },
	{ "vmovntdq %zmm0,(%rbx)", { 0x62, 0xf1, 0x7d, 0x48, 0xe7, 0x03 }, 6, INSN_NTSTORE },
	{ "maskmovq %mm1,%mm0", { 0x0f, 0xf7, 0xc1 }, 3, INSN_NTSTORE },
	{ "maskmovdqu %xmm1,%xmm0", { 0x66, 0x0f, 0xf7, 0xc1 }, 4, INSN_NTSTORE },
	{ "movntdqa, a load, is none", { 0x66, 0x0f, 0x38, 0x2a, 0x03 }, 5, INSN_OTHER },
	{ "cvtps2pi (0f 2d) is none", { 0x0f, 0x2d, 0x03 }, 3, INSN_OTHER },
	{ "lock incq (%rbx)", { 0xf0, 0x48, 0xff, 0x03 }, 4, INSN_LOCKED },
	{ "lock cmpxchg %ecx,(%rbx)", { 0xf0, 0x0f, 0xb1, 0x0b }, 4, INSN_LOCKED },
	{ "xchg %rcx,(%rbx)", { 0x48, 0x87, 0x0b }, 3, INSN_LOCKED },
	{ "xchg %al,(%rbx)", { 0x86, 0x03 }, 2, INSN_LOCKED },
	{ "xchg of registers is none", { 0x48, 0x87, 0xcb }, 3, INSN_OTHER },
	{ "incq (%rbx) is none", { 0x48, 0xff, 0x03 }, 3, INSN_OTHER },
	{ "mov %rcx,(%rbx) is none", { 0x48, 0x89, 0x0b }, 3, INSN_OTHER },
	{ "a long nop is none", { 0x0f, 0x1f, 0x84, 0x00, 0, 0, 0, 0 }, 8, INSN_OTHER },
	{ "prefetchw is none", { 0x0f, 0x0d, 0x0b }, 3, INSN_OTHER },
	{ "a byte that is cut off", { 0x0f }, 1, INSN_OTHER },
	{ "prefixes and no more", { 0x66, 0xf3, 0x48 }, 3, INSN_OTHER },
	{ "VEX that is cut off", { 0xc4, 0xe1 }, 2, INSN_OTHER },
};

struct address {
	const char *text;
	unsigned char code[16];
	unsigned char len;
	enum insn_kind kind;
	uint8_t base, index, scale;
	int32_t disp;
};

static const struct address addresses[] = {
	{ "clwb (%rax)", { 0x66, 0x0f, 0xae, 0x30 }, 4, INSN_FLUSH, 0, INSN_NO_REG, 1, 0 },
	{ "clflushopt (%rax)", { 0x66, 0x0f, 0xae, 0x38 }, 4, INSN_FLUSH, 0, INSN_NO_REG, 1, 0 },
	{ "clflush (%rax)", { 0x0f, 0xae, 0x38 }, 3, INSN_CLFLUSH, 0, INSN_NO_REG, 1, 0 },
	{ "clwb (%r13)", { 0x66, 0x41, 0x0f, 0xae, 0x75, 0x00 }, 6, INSN_FLUSH, 13, INSN_NO_REG, 1,
	  0 },
	{ "clflush -64(%rbp)", { 0x0f, 0xae, 0x7d, 0xc0 }, 4, INSN_CLFLUSH, 5, INSN_NO_REG, 1, -64 },
	{ "clflushopt 0x12345678(%rdi)", { 0x66, 0x0f, 0xae, 0xbf, 0x78, 0x56, 0x34, 0x12 }, 8,
	  INSN_FLUSH, 7, INSN_NO_REG, 1, 0x12345678 },
	{ "clwb 8(%rsp)", { 0x66, 0x0f, 0xae, 0x74, 0x24, 0x08 }, 6, INSN_FLUSH, 4, INSN_NO_REG, 1,
	  8 },
	{ "clwb (%r12,%r9,8)", { 0x66, 0x43, 0x0f, 0xae, 0x34, 0xcc }, 6, INSN_FLUSH, 12, 9, 8, 0 },
	{ "clwb (%rax,%r12,2)", { 0x66, 0x42, 0x0f, 0xae, 0x34, 0x60 }, 6, INSN_FLUSH, 0, 12, 2, 0 },
	{ "clflush 16(,%rcx,4)", { 0x0f, 0xae, 0x3c, 0x8d, 0x10, 0, 0, 0 }, 8, INSN_CLFLUSH,
	  INSN_NO_REG, 1, 4, 16 },
	{ "clflush 5(%rip)", { 0x0f, 0xae, 0x3d, 0x05, 0, 0, 0 }, 7, INSN_CLFLUSH, INSN_RIP,
	  INSN_NO_REG, 1, 5 },
};
/* clang-format on */

static void test_plain(void)
{
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
		struct insn insn;

		insn_decode(plain[i].code, plain[i].len, &insn);
		is_u(insn.kind, plain[i].kind, "%s", plain[i].text);
	}
}

static void test_addresses(void)
{
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		const struct address *a = &addresses[i];
		struct insn insn;

		insn_decode(a->code, a->len, &insn);
		ok(insn.kind == a->kind && insn.base == a->base && insn.index == a->index &&
			   insn.scale == a->scale && insn.disp == a->disp,
		   "%s: base %u, index %u * %u, displacement %d", a->text, insn.base, insn.index,
		   insn.scale, insn.disp);
	}
}

static void test_flags(void)
{
	static const unsigned char fs[] = { 0x64, 0x0f, 0xae, 0x38 };
	static const unsigned char a32[] = { 0x67, 0x66, 0x0f, 0xae, 0x30 };
	struct insn insn;

	insn_decode(fs, sizeof(fs), &insn);
	ok(insn.kind == INSN_CLFLUSH && insn.segment, "a segment register is noticed");
	insn_decode(a32, sizeof(a32), &insn);
	ok(insn.kind == INSN_FLUSH && insn.addr32 && !insn.segment, "so is a short address");
}

/* What is addressed by the stack pointer alone, and what only looks like it. */
static void test_stack(void)
{
	static const struct {
		const char *text;
		unsigned char code[12];
		unsigned char len;
		bool on_stack;
	} t[] = {
		{ "push %rbx", { 0x53 }, 1, true },
		{ "push %r12", { 0x41, 0x54 }, 2, true },
		{ "pop %rbx", { 0x5b }, 1, true },
		{ "ret", { 0xc3 }, 1, true },
		{ "call", { 0xe8, 0, 0, 0, 0 }, 5, true },
		{ "mov %rcx,(%rsp)", { 0x48, 0x89, 0x0c, 0x24 }, 4, true },
		{ "mov 8(%rsp),%rcx", { 0x48, 0x8b, 0x4c, 0x24, 0x08 }, 5, true },
		{ "movl $1,256(%rsp)", { 0xc7, 0x84, 0x24, 0, 1, 0, 0, 1, 0, 0, 0 }, 11, true },
		{ "movups %xmm0,(%rsp)", { 0x0f, 0x11, 0x04, 0x24 }, 4, true },
		{ "vmovdqu %ymm0,(%rsp)", { 0xc5, 0xfe, 0x7f, 0x04, 0x24 }, 5, true },
		{ "add %rcx,(%rsp)", { 0x48, 0x01, 0x0c, 0x24 }, 4, true },
		{ "mov %rcx,(%rbx)", { 0x48, 0x89, 0x0b }, 3, false },
		{ "mov %rcx,(%r12)", { 0x49, 0x89, 0x0c, 0x24 }, 4, false },
		{ "vmovdqu %ymm0,(%r12)", { 0xc4, 0xc1, 0x7e, 0x7f, 0x04, 0x24 }, 6, false },
		{ "mov %rcx,(%rsp,%rax)", { 0x48, 0x89, 0x0c, 0x04 }, 4, false },
		{ "mov %rcx,(%rsp,%r12)", { 0x4a, 0x89, 0x0c, 0x24 }, 4, false },
		{ "mov %rcx,%fs:(%rsp)", { 0x64, 0x48, 0x89, 0x0c, 0x24 }, 5, false },
		{ "call *(%rbx)", { 0xff, 0x13 }, 2, false },
		{ "push (%rbx)", { 0xff, 0x33 }, 2, false },
		{ "leave", { 0xc9 }, 1, false },
		{ "rep movsq", { 0xf3, 0x48, 0xa5 }, 3, false },
		{ "lock add %rcx,(%rsp)", { 0xf0, 0x48, 0x01, 0x0c, 0x24 }, 5, false },
		{ "xchg %rcx,(%rsp)", { 0x48, 0x87, 0x0c, 0x24 }, 4, false },
		{ "movnti %rcx,(%rsp)", { 0x48, 0x0f, 0xc3, 0x0c, 0x24 }, 5, false },
		{ "mov of registers", { 0x48, 0x89, 0xe4 }, 3, false },
		{ "cut off", { 0x48, 0x89, 0x0c }, 3, false },
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct insn insn;

		insn_decode(t[i].code, t[i].len, &insn);
		ok(insn.on_stack == t[i].on_stack, "%s %s the stack alone", t[i].text,
		   t[i].on_stack ? "is for" : "is not for");
	}
}

static void test_moves_stack(void)
{
	static const struct {
		const char *text;
		unsigned char code[8];
		unsigned char len;
		bool moves;
	} t[] = {
		{ "mov %rbx,%rsp", { 0x48, 0x89, 0xdc }, 3, true },
		{ "mov %rbx,%rsp, the other way", { 0x48, 0x8b, 0xe3 }, 3, true },
		{ "mov (%rdi),%rsp", { 0x48, 0x8b, 0x27 }, 3, true },
		{ "lea 4096(%rax),%rsp", { 0x48, 0x8d, 0xa0, 0, 0x10, 0, 0 }, 7, true },
		{ "xchg %rax,%rsp", { 0x48, 0x87, 0xe0 }, 3, true },
		{ "pop %rsp", { 0x5c }, 1, true },
		{ "mov %rbp,%rsp", { 0x48, 0x89, 0xec }, 3, false },
		{ "lea -16(%rbp),%rsp", { 0x48, 0x8d, 0x65, 0xf0 }, 4, false },
		{ "lea 8(%rsp),%rsp", { 0x48, 0x8d, 0x64, 0x24, 0x08 }, 5, false },
		{ "mov %rsp,%rbx", { 0x48, 0x89, 0xe3 }, 3, false },
		{ "mov %rbx,%r12", { 0x49, 0x89, 0xdc }, 3, false },
		{ "mov (%rdi),%r12", { 0x4c, 0x8b, 0x27 }, 3, false },
		{ "pop %r12", { 0x41, 0x5c }, 2, false },
		{ "mov %rsp,(%rdi)", { 0x48, 0x89, 0x27 }, 3, false },
		{ "sub $16,%rsp", { 0x48, 0x83, 0xec, 0x10 }, 4, false },
		{ "cut off", { 0x48, 0x8b }, 2, false },
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct insn insn;

		insn_decode(t[i].code, t[i].len, &insn);
		ok(insn.moves_stack == t[i].moves, "%s %s another stack", t[i].text,
		   t[i].moves ? "may be for" : "is not for");
	}
}

static void test_flow(void)
{
	static const struct {
		const char *text;
		unsigned char code[8];
		unsigned char len;
		enum insn_flow flow;
	} t[] = {
		{ "call", { 0xe8, 0, 0, 0, 0 }, 5, FLOW_CALL },
		{ "call *%rax", { 0xff, 0xd0 }, 2, FLOW_CALL },
		{ "call *8(%rbx)", { 0xff, 0x53, 0x08 }, 3, FLOW_CALL },
		{ "notrack call *%rax", { 0x3e, 0xff, 0xd0 }, 3, FLOW_CALL },
		{ "ret", { 0xc3 }, 1, FLOW_RETURN },
		{ "repz ret", { 0xf3, 0xc3 }, 2, FLOW_RETURN },
		{ "ret $8", { 0xc2, 0x08, 0 }, 3, FLOW_RETURN },
		{ "iretq", { 0x48, 0xcf }, 2, FLOW_LEAVE },
		{ "sysretq", { 0x48, 0x0f, 0x07 }, 3, FLOW_LEAVE },
		{ "jmp *%rax", { 0xff, 0xe0 }, 2, FLOW_ON },
		{ "jmp", { 0xe9, 0, 0, 0, 0 }, 5, FLOW_ON },
		{ "push (%rbx)", { 0xff, 0x33 }, 2, FLOW_ON },
		{ "syscall", { 0x0f, 0x05 }, 2, FLOW_ON },
		{ "movnti", { 0x48, 0x0f, 0xc3, 0x0b }, 4, FLOW_ON },
		{ "cut off", { 0xff }, 1, FLOW_ON },
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct insn insn;

		insn_decode(t[i].code, t[i].len, &insn);
		is_u(insn.flow, t[i].flow, "%s goes where it should", t[i].text);
	}
}

static void test_marks(void)
{
	struct insn insn;

	for (uint32_t kind = 0; kind <= OUTAGE_MARK_LAST + 1; kind++) {
		unsigned char code[] = { 0x0f, 0x1f, 0x84, 0xc0, 0, 0, 0, 0 };
		uint32_t disp = OUTAGE_MARK_MAGIC + kind;

		memcpy(code + 4, &disp, 4);
		insn_decode(code, sizeof(code), &insn);
		if (kind >= OUTAGE_MARK_BEGIN && kind <= OUTAGE_MARK_LAST)
			ok(insn.kind == INSN_MARK && insn.mark == kind, "mark %u", kind);
		else
			is_u(insn.kind, INSN_OTHER, "no mark %u", kind);
	}
	/* What the header makes of it, as it stands in this program, is tried by running it. */
	outage_mark_begin(7);
	outage_mark_end(7);
	outage_mark_text("text", 4);
	ok(true, "marks do nothing where nobody traces");
}

/* Whatever the bytes are, nothing is read past their end. */
static void test_any(void)
{
	uint64_t seed = 1;
	unsigned kinds = 0;

	for (int i = 0; i < 2000000; i++) {
		unsigned char code[15];
		struct insn insn;

		for (size_t j = 0; j < sizeof(code); j++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			code[j] = (unsigned char)(seed >> 56);
		}
		if (i % 2)
			code[0] = 0x0f;
		insn_decode(code, 1 + (size_t)(seed >> 20) % sizeof(code), &insn);
		kinds |= 1u << insn.kind;
	}
	ok(kinds & 1u << INSN_OTHER && kinds & 1u << INSN_FENCE && kinds & 1u << INSN_NTSTORE,
	   "any bytes decode to something");
}

int main(void)
{
	test_plain();
	test_addresses();
	test_flags();
	test_stack();
	test_moves_stack();
	test_flow();
	test_marks();
	test_any();
	return done_testing();
}
