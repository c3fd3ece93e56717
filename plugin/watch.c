/* SPDX-License-Identifier: MIT */
/*
 * watch.c - decides at translation what each instruction is watched for, and handles those that are
 * not accesses. The head of outage-pm.c has F1, F2 and P2.
 */
#include "watch.h"

#include <inttypes.h>
#include <stdlib.h>

#include "access.h"
#include "decode.h"
#include "guest.h"
#include "outage/mark.h"
#include "region.h"
#include "tracer.h"

struct known {
	struct insn insn;
	uint64_t pc, next;
};

/* ---- what is done when an instruction is carried out ---- */

static uint64_t effective(const struct known *k, const void *state)
{
	const struct insn *i = &k->insn;
	uint64_t a = (uint64_t)(int64_t)i->disp;

	if (i->base == INSN_RIP)
		a += k->next;
	else if (i->base != INSN_NO_REG)
		a += reg(state, i->base);
	if (i->index != INSN_NO_REG)
		a += reg(state, i->index) * i->scale;
	return i->addr32 ? (uint32_t)a : a;
}

/* Where an address of the guest is in the region; UINT64_MAX: elsewhere. */
static INLINE uint64_t offset_of(unsigned vcpu, uint64_t addr)
{
	if (pm.system)
		return region_phys_offset(guest_phys(vcpu, addr));
	const struct map *m = map_find(region_maps(), addr, 1);

	return m ? map_offset(m, addr) : UINT64_MAX;
}

/* P2. With the lock held. */
static void check_stack(unsigned vcpu, const void *state)
{
	uint64_t sp = reg(state, RSP);
	bool in = pm.system ? offset_of(vcpu, sp) != UINT64_MAX
			    : map_find(region_maps(), sp - 8, 16) != NULL;

	if (in)
		writer_trouble(pm.w,
			       "the program's stack is in the persistent memory, where stores "
			       "by the stack pointer are not traced");
}

/* Before the instruction that follows one which set the stack pointer. */
__attribute__((used)) static void stack_cb(unsigned vcpu, void *udata, const void *state)
{
	(void)udata;
	if (pm.off || !region.view)
		return;
	lock();
	check_stack(vcpu, state);
	unlock();
}

/* Called from translated code, by way of what captures its register: see F1. */
__attribute__((used)) static void flush_cb(unsigned vcpu, void *udata, const void *state)
{
	const struct known *k = udata;

	if (pm.off)
		return;
	uint64_t off = offset_of(vcpu, effective(k, state));

	lock();
	if (!pm.system)
		check_stack(vcpu, state);
	if (k->insn.segment && region.view)
		writer_trouble(pm.w,
			       "a flush at %#" PRIx64 " uses a segment register, which this "
			       "tracer does not know",
			       k->pc);
	else if (off < region.view_size)
		region_flush_line(
			vcpu, k->insn.kind == INSN_CLFLUSH ? PM_STREAM_CLFLUSH : PM_STREAM_FLUSH,
			off, k->pc);
	unlock();
}

/* Between traces nothing is recorded. The lock is held. */
static void begin_or_end(bool begin)
{
	if (!pm.marked || begin != pm.off)
		return;
	if (begin) {
		writer_restart(pm.w);
		for (size_t i = 0; i < CPUS_HERE; i++)
			pm.cpu[i].since_fence = false;
	} else {
		writer_count(pm.w, -1);
	}
	pm.off = !begin;
}

__attribute__((used)) static void mark_cb(unsigned vcpu, void *udata, const void *state)
{
	static __thread char text[OUTAGE_MARK_TEXT_MAX];
	const struct known *k = udata;
	uint64_t a = reg(state, RDI), b = reg(state, RSI);
	bool control = k->insn.mark == OUTAGE_MARK_START || k->insn.mark == OUTAGE_MARK_STOP;

	if (pm.off && !control)
		return;
	lock();
	check_stack(vcpu, state);
	switch (k->insn.mark) {
	case OUTAGE_MARK_START:
	case OUTAGE_MARK_STOP:
		begin_or_end(k->insn.mark == OUTAGE_MARK_START);
		break;
	case OUTAGE_MARK_BEGIN:
	case OUTAGE_MARK_END:
		record(vcpu,
		       k->insn.mark == OUTAGE_MARK_END ? PM_STREAM_MARK_END : PM_STREAM_MARK_BEGIN,
		       a, 0, k->pc, NULL);
		break;
	case OUTAGE_MARK_TEXT: {
		size_t n = guest_read(vcpu, a, text, b < sizeof(text) ? b : sizeof(text));

		record(vcpu, PM_STREAM_TEXT, 0, (uint32_t)n, k->pc, text);
		break;
	}
	default:
		record(vcpu, PM_STREAM_SELF, a, 0, b, NULL);
		break;
	}
	unlock();
}

static void fence_cb(unsigned vcpu, void *udata)
{
	const struct known *k = udata;

	/* Locks are everywhere: such a one that has nothing to wait for need not be told. */
	if (pm.off)
		return;
	if (k->insn.kind == INSN_LOCKED && !cpu_slot(vcpu)->since_fence)
		return;
	lock();
	if (region.view)
		record_small(vcpu, PM_STREAM_FENCE, 0, 0, k->pc, NULL);
	unlock();
}

/* Before the instruction is carried out. */
static struct shadow *shadow_at(struct cpu_here *c, uint64_t slot)
{
	c->shadow = pm.system ? shadow_kernel(slot) : shadow_user(&c->own, slot);
	return c->shadow;
}

__attribute__((used)) static void call_cb(unsigned vcpu, void *udata, const void *state)
{
	uint64_t slot = reg(state, RSP) - 8;
	struct cpu_here *c = cpu_slot(vcpu);
	struct shadow *s = shadow_at(c, slot);

	c->flow++;
	if (s)
		shadow_call(s, slot, (uint64_t)(uintptr_t)udata);
}

__attribute__((used)) static void return_cb(unsigned vcpu, void *udata, const void *state)
{
	uint64_t slot = reg(state, RSP);
	struct cpu_here *c = cpu_slot(vcpu);
	struct shadow *s = shadow_at(c, slot);

	(void)udata;
	c->flow++;
	if (s)
		shadow_return(s, slot);
}

static void leave_cb(unsigned vcpu, void *udata)
{
	(void)udata;
	cpu_slot(vcpu)->shadow = NULL;
}

/* F1: the third argument is the register that translated code keeps the CPU's state in. */
/* clang-format off */
#if defined(__x86_64__)
#define ENTRY(name, to)                                                                            \
	void name(unsigned vcpu, void *udata) __attribute__((visibility("hidden")));               \
	__asm__(".text\n.type " #name ", @function\n"                                      \
		#name ":\n\tmov %rbp, %rdx\n\tjmp " #to "\n.size " #name ", . - " #name "\n")
#elif defined(__aarch64__)
#define ENTRY(name, to)                                                                            \
	void name(unsigned vcpu, void *udata) __attribute__((visibility("hidden")));               \
	__asm__(".text\n.type " #name ", %function\n"                                      \
		#name ":\n\tmov x2, x19\n\tb " #to "\n.size " #name ", . - " #name "\n")
#else
#error "which register holds the CPU's state in translated code?"
#endif
/* clang-format on */
ENTRY(flush_entry, flush_cb);
ENTRY(mark_entry, mark_cb);
ENTRY(call_entry, call_cb);
ENTRY(return_entry, return_cb);
ENTRY(stack_entry, stack_cb);

/* ---- translation ---- */

static size_t insn_bytes(const struct qemu_plugin_insn *insn, unsigned char *to, size_t room)
{
	size_t n = qemu_plugin_insn_size(insn);

	if (n > room)
		n = room;
#if PLUGIN_API < 3
	memcpy(to, qemu_plugin_insn_data(insn), n);
	return n;
#else
	return qemu_plugin_insn_data(insn, to, n);
#endif
}

static struct known *known(const struct insn *insn, const struct qemu_plugin_insn *q)
{
	struct known *k = malloc(sizeof(*k)); /* as long as the translation: for ever */

	if (!k)
		abort();
	k->insn = *insn;
	k->pc = qemu_plugin_insn_vaddr(q);
	k->next = k->pc + qemu_plugin_insn_size(q);
	return k;
}

static enum qemu_mem_rw which_accesses(const struct insn *i)
{
	if (pm.loads)
		return QEMU_MEM_RW;
	if (PLUGIN_API >= 3)
		return QEMU_MEM_W;
	if (!pm.filter || i->by_helper)
		return QEMU_MEM_RW;
	return QEMU_MEM_R; /* F2 */
}

static void watch_flow(struct qemu_plugin_insn *q, const struct insn *insn)
{
	uint64_t next = qemu_plugin_insn_vaddr(q) + qemu_plugin_insn_size(q);

	switch (insn->flow) {
	case FLOW_CALL:
		qemu_plugin_register_vcpu_insn_exec_cb(q, call_entry, QEMU_CB_R_REGS,
						       (void *)(uintptr_t)next);
		break;
	case FLOW_RETURN:
		qemu_plugin_register_vcpu_insn_exec_cb(q, return_entry, QEMU_CB_R_REGS, NULL);
		break;
	case FLOW_LEAVE:
		qemu_plugin_register_vcpu_insn_exec_cb(q, leave_cb, QEMU_CB_NO_REGS, NULL);
		break;
	default:
		break;
	}
}

static void watch(struct qemu_plugin_insn *q, bool *stack_moved)
{
	unsigned char code[16];
	struct insn insn;

	insn_decode(code, insn_bytes(q, code, sizeof(code)), &insn);
	if (*stack_moved && !pm.system)
		qemu_plugin_register_vcpu_insn_exec_cb(q, stack_entry, QEMU_CB_R_REGS, NULL);
	*stack_moved = insn.moves_stack;
	if (pm.stacks)
		watch_flow(q, &insn);
	switch (insn.kind) {
	case INSN_FLUSH:
	case INSN_CLFLUSH:
		qemu_plugin_register_vcpu_insn_exec_cb(q, flush_entry, QEMU_CB_R_REGS,
						       known(&insn, q));
		return;
	case INSN_MARK:
		qemu_plugin_register_vcpu_insn_exec_cb(q, mark_entry, QEMU_CB_R_REGS,
						       known(&insn, q));
		return;
	case INSN_FENCE:
	case INSN_LOCKED:
		qemu_plugin_register_vcpu_insn_exec_cb(q, fence_cb, QEMU_CB_NO_REGS,
						       known(&insn, q));
		break;
	default:
		break;
	}
	if (insn.kind != INSN_FENCE && !insn.on_stack) /* P2 */
		qemu_plugin_register_vcpu_mem_cb(q, access_cb(insn.kind == INSN_NTSTORE),
						 QEMU_CB_NO_REGS, which_accesses(&insn),
						 (void *)(uintptr_t)qemu_plugin_insn_vaddr(q));
}

void watch_block(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb);
	bool stack_moved = false;

	(void)id;
	for (size_t i = 0; i < n; i++)
		watch(qemu_plugin_tb_get_insn(tb, i), &stack_moved);
}
