/* SPDX-License-Identifier: MIT */
/*
 * decode.c - decodes prefixes, opcode and operands as far as persistent memory and call stacks need
 * it. The encodings are those of the Intel manual, volume 2.
 *
 * An instruction is: legacy prefixes in any order, then REX, VEX or EVEX, then an opcode of one of
 * three maps (none, 0F, 0F 38; VEX and EVEX name the map by a number), then ModRM, SIB,
 * displacement. A prefix 66, F3 or F2 may be part of the opcode; VEX and EVEX hold it as a number.
 */
#include "decode.h"

#include "outage/mark.h"

enum map { MAP_NONE, MAP_0F, MAP_0F38, MAP_0F3A };
enum must { MUST_NONE, MUST_66, MUST_F3, MUST_F2 }; /* as VEX numbers them */

struct cursor {
	const unsigned char *p, *end;
	bool lock, op16, addr32, segment, rep, repne;
	unsigned rex; /* W 8, R 4, X 2, B 1 */
	bool vex;
	enum must must;
	enum map map;
	unsigned char opcode, modrm;
};

static int next(struct cursor *c)
{
	return c->p < c->end ? *c->p++ : -1;
}

static void legacy_prefixes(struct cursor *c)
{
	for (; c->p < c->end; c->p++)
		switch (*c->p) {
		case 0xf0:
			c->lock = true;
			break;
		case 0xf2:
			c->repne = true;
			break;
		case 0xf3:
			c->rep = true;
			break;
		case 0x66:
			c->op16 = true;
			break;
		case 0x67:
			c->addr32 = true;
			break;
		case 0x64:
		case 0x65:
			c->segment = true;
			break;
		case 0x2e:
		case 0x36:
		case 0x3e:
		case 0x26: /* no effect in 64-bit code */
			break;
		default:
			return;
		}
}

/* VEX and EVEX hold the bits of REX inverted. */
static unsigned rex_of(int byte, bool w)
{
	return (~(unsigned)byte >> 5 & 7) | (w ? 8 : 0);
}

static bool vector_prefix(struct cursor *c, int first)
{
	int a = next(c), b;

	c->vex = true;
	switch (first) {
	case 0xc5: /* R vvvv L pp */
		c->map = MAP_0F;
		c->rex = a & 0x80 ? 0 : 4;
		c->must = (enum must)(a & 3);
		return a >= 0;
	case 0xc4: /* RXB map; W vvvv L pp */
		b = next(c);
		c->map = (enum map)(a & 0x1f);
		c->rex = rex_of(a, b & 0x80);
		c->must = (enum must)(b & 3);
		return b >= 0;
	default: /* 62: RXBR' 0 map; W vvvv 1 pp; z L'L b V' aaa */
		b = next(c);
		c->map = (enum map)(a & 7);
		c->rex = rex_of(a, b & 0x80);
		c->must = (enum must)(b & 3);
		return next(c) >= 0;
	}
}

static bool opcode(struct cursor *c)
{
	int b = next(c);

	c->must = c->repne ? MUST_F2 : c->rep ? MUST_F3 : c->op16 ? MUST_66 : MUST_NONE;
	if (b >= 0x40 && b <= 0x4f) {
		c->rex = (unsigned)b & 15;
		b = next(c);
	}
	if (b == 0xc4 || b == 0xc5 || b == 0x62) {
		if (!vector_prefix(c, b))
			return false;
		b = next(c);
	} else if (b == 0x0f) {
		c->map = MAP_0F;
		b = next(c);
		if (b == 0x38 || b == 0x3a) {
			c->map = b == 0x38 ? MAP_0F38 : MAP_0F3A;
			b = next(c);
		}
	}
	if (b < 0)
		return false;
	c->opcode = (unsigned char)b;
	c->modrm = c->p < c->end ? *c->p : 0xc0;
	return true;
}

static bool memory(const struct cursor *c)
{
	return c->modrm >> 6 != 3;
}

static unsigned digit(const struct cursor *c)
{
	return c->modrm >> 3 & 7;
}

/* ModRM, SIB and displacement into an address. */
static void address(struct cursor *c, struct insn *out)
{
	int modrm = next(c), mod = modrm >> 6, rm = modrm & 7, bytes;
	uint32_t disp = 0;

	out->base = (uint8_t)((unsigned)rm | (c->rex & 1 ? 8 : 0));
	out->index = INSN_NO_REG;
	out->scale = 1;
	bytes = mod == 1 ? 1 : mod == 2 ? 4 : 0;
	if (rm == 4) {
		int sib = next(c);
		unsigned index = ((unsigned)sib >> 3 & 7) | (c->rex & 2 ? 8 : 0);

		out->base = (uint8_t)(((unsigned)sib & 7) | (c->rex & 1 ? 8 : 0));
		if (index != 4) {
			out->index = (uint8_t)index;
			out->scale = (uint8_t)(1 << (sib >> 6 & 3));
		}
		if (mod == 0 && (sib & 7) == 5) {
			out->base = INSN_NO_REG;
			bytes = 4;
		}
	} else if (mod == 0 && rm == 5) {
		out->base = INSN_RIP;
		bytes = 4;
	}
	for (int i = 0; i < bytes; i++)
		disp |= (uint32_t)(next(c) & 0xff) << 8 * i;
	out->disp = bytes == 1 ? (int8_t)disp : (int32_t)disp;
	out->segment = c->segment;
	out->addr32 = c->addr32;
}

/* 0F AE: flushes, fences, and the saving of state. */
static void group15(struct cursor *c, struct insn *out)
{
	if (!memory(c)) {
		/* The last three bits do not matter; F3 and F2 make other instructions of it. */
		if (c->must == MUST_NONE && (digit(c) == 6 || digit(c) == 7))
			out->kind = INSN_FENCE;
		return;
	}
	if (digit(c) == 7 && c->must == MUST_NONE)
		out->kind = INSN_CLFLUSH;
	else if ((digit(c) == 7 || digit(c) == 6) && c->must == MUST_66)
		out->kind = INSN_FLUSH;
	else
		out->by_helper = true; /* fxsave, xsave, xsaveopt */
	if (out->kind != INSN_OTHER)
		address(c, out);
}

static void mark(const struct cursor *c, struct insn *out)
{
	static const unsigned char form[] = { 0x84, 0xc0 }; /* disp32(%rax,%rax,8) */
	uint32_t disp = 0;

	if (c->end - c->p != 6 || c->p[0] != form[0] || c->p[1] != form[1] || c->rex)
		return;
	for (int i = 0; i < 4; i++)
		disp |= (uint32_t)c->p[2 + i] << 8 * i;
	if (disp - OUTAGE_MARK_MAGIC - 1u >= OUTAGE_MARK_LAST)
		return;
	out->kind = INSN_MARK;
	out->mark = disp - OUTAGE_MARK_MAGIC;
}

static void map_0f(struct cursor *c, struct insn *out)
{
	switch (c->opcode) {
	case 0x1f:
		if (!c->vex)
			mark(c, out);
		break;
	case 0x2b: /* movntps, movntpd; F3 and F2: the scalar ones of AMD */
	case 0xe7: /* movntq, movntdq */
		if (memory(c))
			out->kind = INSN_NTSTORE;
		break;
	case 0xc3: /* movnti */
		if (memory(c) && !c->vex && c->must == MUST_NONE)
			out->kind = INSN_NTSTORE;
		break;
	case 0xf7: /* maskmovq, maskmovdqu: two registers, and rdi */
		if (!memory(c)) {
			out->kind = INSN_NTSTORE;
			out->by_helper = true;
		}
		break;
	case 0xae:
		if (!c->vex)
			group15(c, out);
		else
			out->by_helper = true;
		break;
	case 0xc7: /* cmpxchg8b, cmpxchg16b, xsavec, xsaves */
		out->by_helper = true;
		break;
	default:
		break;
	}
}

static void map_none(struct cursor *c, struct insn *out)
{
	switch (c->opcode) {
	case 0x86:
	case 0x87: /* xchg: locked whenever it touches memory */
		if (memory(c)) {
			out->kind = INSN_LOCKED;
			out->by_helper = true;
		}
		break;
	case 0xc8: /* enter */
		out->by_helper = true;
		break;
	default:
		if (c->opcode >= 0xd8 && c->opcode <= 0xdf) /* x87 */
			out->by_helper = true;
		break;
	}
}

/* A register and ModRM, or ModRM and an immediate: the commonest of those that load and store. */
static bool loads_or_stores(const struct cursor *c)
{
	unsigned char o = c->opcode;

	if (c->map == MAP_0F)
		switch (o) {
		case 0x10:
		case 0x11: /* movups and its like */
		case 0x28:
		case 0x29:
		case 0x6f:
		case 0x7f: /* movdqa, movdqu */
		case 0xb6:
		case 0xb7:
		case 0xbe:
		case 0xbf: /* movzx, movsx */
		case 0xd6: /* movq */
			return true;
		default:
			return false;
		}
	if (c->map != MAP_NONE)
		return false;
	if (o < 0x40) /* add, or, adc, sbb, and, sub, xor, cmp */
		return (o & 7) < 4;
	return o == 0x63 || (o >= 0x80 && o <= 0x85) || (o >= 0x88 && o <= 0x8b) || o == 0xc6 ||
	       o == 0xc7;
}

static bool pushes_or_pops(const struct cursor *c)
{
	unsigned char o = c->opcode;

	if (c->vex || c->map != MAP_NONE)
		return false;
	return (o >= 0x50 && o <= 0x5f) || o == 0x68 || o == 0x6a || o == 0xc3 || o == 0xe8;
}

/* disp(%rsp), and no more. */
static bool by_stack_pointer(const struct cursor *c)
{
	return !c->segment && !c->addr32 && memory(c) && (c->modrm & 7) == 4 && !(c->rex & 3) &&
	       c->end - c->p >= 2 && c->p[1] == 0x24;
}

/* mov, lea, xchg or pop to %rsp; the end of a frame (%rbp) is no news. */
static bool moves_stack(const struct cursor *c)
{
	enum { SP = 4, BP = 5 };

	if (c->vex || c->map != MAP_NONE || c->p >= c->end)
		return !c->vex && c->map == MAP_NONE && c->opcode == 0x5c && !(c->rex & 1);
	unsigned to_reg = digit(c) | (c->rex & 4 ? 8 : 0), rm = (c->modrm & 7) | (c->rex & 1) << 3;
	bool reg_form = !memory(c);

	switch (c->opcode) {
	case 0x87:
		return to_reg == SP || (reg_form && rm == SP);
	case 0x89:
		return reg_form && rm == SP && to_reg != BP;
	case 0x8b:
		return to_reg == SP && !(reg_form && rm == BP);
	case 0x8d:
		return to_reg == SP && rm != BP && !by_stack_pointer(c);
	default:
		return false;
	}
}

static enum insn_flow flow(const struct cursor *c)
{
	if (c->vex)
		return FLOW_ON;
	if (c->map == MAP_0F)
		return c->opcode == 0x07 || c->opcode == 0x35 ? FLOW_LEAVE : FLOW_ON;
	if (c->map != MAP_NONE)
		return FLOW_ON;
	switch (c->opcode) {
	case 0xe8:
		return FLOW_CALL;
	case 0xff:
		return digit(c) == 2 && c->p < c->end ? FLOW_CALL : FLOW_ON;
	case 0xc2:
	case 0xc3:
		return FLOW_RETURN;
	case 0xca:
	case 0xcb:
	case 0xcf:
		return FLOW_LEAVE;
	default:
		return FLOW_ON;
	}
}

void insn_decode(const unsigned char *code, size_t len, struct insn *out)
{
	struct cursor c = { .p = code, .end = code + len };

	*out = (struct insn){ .base = INSN_NO_REG, .index = INSN_NO_REG, .scale = 1 };
	legacy_prefixes(&c);
	if (!opcode(&c))
		return;
	out->flow = flow(&c);
	out->moves_stack = moves_stack(&c);
	if (c.map == MAP_0F)
		map_0f(&c, out);
	else if (c.map == MAP_NONE && !c.vex)
		map_none(&c, out);
	else
		out->by_helper = c.vex || c.map == MAP_0F38; /* vpmaskmov, vmaskmov, scatters */
	out->on_stack = out->kind == INSN_OTHER && !c.lock &&
			(pushes_or_pops(&c) || (loads_or_stores(&c) && by_stack_pointer(&c)));
	if (c.lock) {
		out->kind = INSN_LOCKED;
		out->by_helper = true; /* with several threads it is */
	}
}
