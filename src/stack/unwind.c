/* SPDX-License-Identifier: MIT */
/*
 * unwind.c - finds one frame after the other, on x86-64.
 *
 * U1: a frame lies above the frame that it called, so the stack bounds their number.
 * U2: only the copy of the stack and the files are read.
 */
#include "stack/unwind.h"

#include <dwarf.h>

enum { RBX = 3, RBP = 6, RSP = 7, RA = 16, N_REGS, EVAL_MAX = 16, SEARCH_BYTES = 64 << 10 };

struct regs {
	uint64_t v[N_REGS];
	bool known[N_REGS];
};

struct unwinder {
	const struct modules *m;
	const struct process *p;
	const struct stack_copy *stack;
};

static bool read_word(const struct stack_copy *s, uint64_t addr, uint64_t *out)
{
	if (addr < s->at || addr - s->at > s->len || s->len - (addr - s->at) < sizeof(*out))
		return false;
	memcpy(out, s->data + (addr - s->at), sizeof(*out));
	return true;
}

/* ---- expressions ---- */

struct eval {
	const struct stack_copy *stack;
	const struct regs *regs;
	uint64_t cfa;
	bool has_cfa;
	uint64_t v[EVAL_MAX];
	size_t n;
	unsigned missing; /* a needed register that is not known, + 1 */
};

static bool push(struct eval *e, uint64_t value)
{
	if (e->n == EVAL_MAX)
		return false;
	e->v[e->n++] = value;
	return true;
}

static bool push_reg(struct eval *e, uint64_t reg, uint64_t offset)
{
	if (reg >= N_REGS || !e->regs->known[reg]) {
		e->missing = (unsigned)min(reg, (uint64_t)N_REGS) + 1;
		return false;
	}
	return push(e, e->regs->v[reg] + offset);
}

static bool binary(struct eval *e, unsigned atom)
{
	if (e->n < 2)
		return false;
	uint64_t b = e->v[--e->n], *a = &e->v[e->n - 1];

	switch (atom) {
	case DW_OP_plus:
		*a += b;
		return true;
	case DW_OP_minus:
		*a -= b;
		return true;
	case DW_OP_and:
		*a &= b;
		return true;
	case DW_OP_shl:
		*a = b < 64 ? *a << b : 0;
		return true;
	case DW_OP_ge:
		*a = (int64_t)*a >= (int64_t)b;
		return true;
	default:
		return false;
	}
}

static bool eval_op(struct eval *e, const Dwarf_Op *op)
{
	unsigned atom = op->atom;

	if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31)
		return push_reg(e, atom - DW_OP_breg0, op->number);
	if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31)
		return push(e, atom - DW_OP_lit0);
	switch (atom) {
	case DW_OP_bregx:
		return push_reg(e, op->number, op->number2);
	case DW_OP_const1u:
	case DW_OP_const1s:
	case DW_OP_const2u:
	case DW_OP_const2s:
	case DW_OP_const4u:
	case DW_OP_const4s:
	case DW_OP_const8u:
	case DW_OP_const8s:
	case DW_OP_constu:
	case DW_OP_consts:
		return push(e, op->number);
	case DW_OP_call_frame_cfa:
		return e->has_cfa && push(e, e->cfa);
	case DW_OP_plus_uconst:
		if (e->n)
			e->v[e->n - 1] += op->number;
		return e->n;
	case DW_OP_deref:
		return e->n && read_word(e->stack, e->v[e->n - 1], &e->v[e->n - 1]);
	case DW_OP_nop:
		return true;
	default:
		return binary(e, atom);
	}
}

/* Evaluates an expression for the place or the value of a caller's register. */
static bool eval_register(struct eval *e, const Dwarf_Op *ops, size_t n, uint64_t *out)
{
	bool value = n && ops[n - 1].atom == DW_OP_stack_value;

	e->n = 0;
	if (n == 1 &&
	    ((ops->atom >= DW_OP_reg0 && ops->atom <= DW_OP_reg31) || ops->atom == DW_OP_regx)) {
		uint64_t reg = ops->atom == DW_OP_regx ? ops->number
						       : (uint64_t)ops->atom - DW_OP_reg0;

		if (!push_reg(e, reg, 0))
			return false;
		*out = e->v[0];
		return true;
	}
	for (size_t i = 0; i < n - value; i++)
		if (!eval_op(e, &ops[i]))
			return false;
	if (!e->n)
		return false;
	*out = e->v[e->n - 1];
	return value || read_word(e->stack, *out, out);
}

/* ---- a frame pointer that was not saved ---- */

enum call_kind { CALL_NONE, CALL_MAYBE, CALL_SURE };

/* Checks whether the instruction before a return address calls the function at `start`. */
static enum call_kind call_before(const struct unwinder *u, uint64_t ra, const struct module *in,
				  uint64_t start)
{
	struct module *m;
	unsigned char b[7];
	uint64_t at;
	int32_t rel;

	if (!module_address(u->m, u->p, ra, &m, &at) || at < sizeof(b) ||
	    !module_bytes(m, at - sizeof(b), b, sizeof(b)))
		return CALL_NONE;
	memcpy(&rel, b + 3, sizeof(rel));
	if (b[2] == 0xe8) { /* call START; or a stub that leads to another file */
		uint64_t to = at + (uint64_t)(int64_t)rel;

		if (m == in)
			return to == start ? CALL_SURE : CALL_NONE;
		return CALL_MAYBE;
	}
	/* call *REGISTER; call *PLACE, with a displacement of no, 1 or 4 bytes */
	if ((b[5] == 0xff && (b[6] & 0xf8) == 0xd0) || (b[5] == 0xff && (b[6] & 0xf8) == 0x10) ||
	    (b[4] == 0xff && (b[5] & 0xf8) == 0x50) || (b[1] == 0xff && (b[2] & 0xf8) == 0x90) ||
	    (b[1] == 0xff && b[2] == 0x15))
		return CALL_MAYBE;
	return CALL_NONE;
}

/*
 * Searches the frame of the function at `pc`, which its frame pointer, not known here, would give.
 * The frame lies above `sp`; `offset` is added to the pointer. A certain call is preferred to a
 * possible one.
 */
static bool find_pointer(const struct unwinder *u, uint64_t pc, uint64_t sp, uint64_t offset,
			 uint64_t *out)
{
	struct module *m;
	uint64_t at, ra, maybe = 0;

	if (!module_address(u->m, u->p, pc, &m, &at))
		return false;
	uint64_t start = module_function(m, at);
	/* The stack is aligned at a call, so a frame begins at a multiple of 16. */
	for (uint64_t cfa = (sp + 16 + 15) & ~(uint64_t)15; start && cfa < sp + SEARCH_BYTES;
	     cfa += 16) {
		if (!read_word(u->stack, cfa - 8, &ra))
			break;
		enum call_kind kind = call_before(u, ra, m, start);

		if (kind == CALL_SURE) {
			*out = cfa - offset;
			return true;
		}
		if (kind == CALL_MAYBE && !maybe)
			maybe = cfa;
	}
	*out = maybe - offset;
	return maybe;
}

/* ---- frames ---- */

static bool find_cfa(const struct unwinder *u, Dwarf_Frame *f, uint64_t pc, struct regs *r,
		     uint64_t *out)
{
	struct eval e = { .stack = u->stack, .regs = r };
	Dwarf_Op *ops;
	size_t n;

	if (dwarf_frame_cfa(f, &ops, &n) || !n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!eval_op(&e, &ops[i])) {
			uint64_t offset = ops[0].atom == DW_OP_bregx ? ops[0].number2
								     : ops[0].number;

			if (n != 1 || e.missing != RBP + 1 ||
			    !find_pointer(u, pc, r->v[RSP], offset, &r->v[RBP]))
				return false;
			r->known[RBP] = true;
			*out = r->v[RBP] + offset;
			return true;
		}
	*out = e.n ? e.v[e.n - 1] : 0;
	return e.n;
}

static void find_register(const struct unwinder *u, Dwarf_Frame *f, const struct regs *r, int reg,
			  uint64_t cfa, struct regs *out)
{
	struct eval e = { .stack = u->stack, .regs = r, .cfa = cfa, .has_cfa = true };
	Dwarf_Op mem[3], *ops;
	size_t n;

	if (dwarf_frame_register(f, reg, mem, &ops, &n))
		return;
	if (n) {
		out->known[reg] = eval_register(&e, ops, n, &out->v[reg]);
	} else if (!ops && reg != RA) { /* unchanged */
		out->known[reg] = r->known[reg];
		out->v[reg] = r->v[reg];
	}
}

/* Steps to the caller. False if there is none, or it cannot be found. */
static bool step(const struct unwinder *u, struct regs *r, uint64_t *pc, bool first)
{
	static const int kept[] = { RBX, RBP, 12, 13, 14, 15, RA };
	struct module *m;
	struct regs up = { 0 };
	Dwarf_Frame *f = NULL;
	uint64_t at, cfa;

	/* A function may end with a call: the return address is then in the next one. */
	if (!module_address(u->m, u->p, *pc - !first, &m, &at) || !m->cfi ||
	    dwarf_cfi_addrframe(m->cfi, at, &f))
		return false;
	bool found = find_cfa(u, f, *pc - !first, r, &cfa) && cfa > r->v[RSP];
	for (size_t i = 0; found && i < ARRAY_SIZE(kept); i++)
		find_register(u, f, r, kept[i], cfa, &up);
	free(f);
	if (!found || !up.known[RA] || !up.v[RA])
		return false;
	up.v[RSP] = cfa;
	up.known[RSP] = true;
	*pc = up.v[RA];
	*r = up;
	return true;
}

size_t unwind(const struct modules *m, const struct process *p, uint64_t pc,
	      const struct stack_copy *stack, uint64_t out[UNWIND_MAX])
{
	struct unwinder u = { m, p, stack };
	struct regs r = { 0 };
	size_t n = 0;

	r.v[RSP] = stack->at;
	r.known[RSP] = true;
	do
		out[n++] = pc;
	while (n < UNWIND_MAX && step(&u, &r, &pc, n == 1));
	return n;
}
