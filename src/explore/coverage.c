/* SPDX-License-Identifier: MIT */
/* coverage.c - counts; coverage_show.c shows them. */
#include <errno.h>
#include <fcntl.h>

#include "explore/coverage_impl.h"

/* "rdonly" or "plain": a word for no bits, beside which there is no need for "none". */
static bool has_zero_word(const struct arg_def *arg)
{
	for (const struct word *w = arg->words; w->name; w++)
		if (!w->value)
			return true;
	return false;
}

bool coverage_has_none(const struct arg_def *arg)
{
	return arg->kind == ARG_FLAGS && !has_zero_word(arg);
}

unsigned coverage_parts(const struct arg_def *arg, const struct inputs *in)
{
	unsigned n = 0;

	switch (arg->kind) {
	case ARG_OFFSET:
	case ARG_LENGTH:
	case ARG_SIZE:
		return min(inputs_power(in->max_size) + 1, (unsigned)INPUTS_POWERS);
	case ARG_FLAGS:
	case ARG_CHOICE:
		while (arg->words[n].name)
			n++;
		return min(n, (unsigned)COVERAGE_PARTS - 1) + coverage_has_none(arg);
	case ARG_MODE:
		return MODE_BITS;
	default:
		return 0;
	}
}

bool coverage_is_number(const struct arg_def *arg)
{
	return arg->kind == ARG_OFFSET || arg->kind == ARG_LENGTH || arg->kind == ARG_SIZE;
}

static bool word_is_set(const struct arg_def *arg, const struct word *w, uint64_t value)
{
	if (arg->kind == ARG_CHOICE)
		return value == w->value;
	if (!w->value && streq(w->name, "rdonly"))
		return !(value & O_ACCMODE);
	return w->value ? (value & w->value) == w->value : !value;
}

/* The last part of flags is none of them set. */
static void count_flags(uint64_t *parts, const struct arg_def *arg, uint64_t value)
{
	unsigned i = 0;
	bool any = false;

	for (; arg->words[i].name && i + 1 < COVERAGE_PARTS; i++) {
		bool set = word_is_set(arg, &arg->words[i], value);

		parts[i] += set;
		any |= set;
	}
	if (coverage_has_none(arg))
		parts[i] += !any;
}

/* ---- combinations ---- */

static struct coverage_combination *find(const struct coverage *c, unsigned op, unsigned arg,
					 uint32_t value)
{
	uint32_t at = (value * 0x9e3779b1u) ^ ((op * OP_ARGS_MAX + arg) * 0x85ebca6bu);

	at ^= at >> 15;
	for (unsigned i = 0; i < COVERAGE_COMBINATIONS; i++) {
		const struct coverage_combination *x =
			&c->combinations[(at + i) % COVERAGE_COMBINATIONS];

		if (!x->count || (x->op == op && x->arg == arg && x->value == value))
			return (struct coverage_combination *)(uintptr_t)x;
	}
	return NULL;
}

static void count_combination(struct coverage *c, unsigned op, unsigned arg, uint32_t value,
			      uint64_t times)
{
	struct coverage_combination *x = find(c, op, arg, value);

	if (!x || (!x->count && c->n_combinations >= COVERAGE_COMBINATIONS / 8 * 7)) {
		c->not_counted += times;
		return;
	}
	c->n_combinations += !x->count;
	x->value = value;
	x->op = (uint16_t)op;
	x->arg = (uint16_t)arg;
	x->count += times;
}

uint64_t coverage_of_combination(const struct coverage *c, const struct op_def *def, unsigned arg,
				 uint64_t value)
{
	const struct coverage_combination *x = find(c, (unsigned)op_id(def), arg, (uint32_t)value);

	return x ? x->count : 0;
}

/* ---- counting ---- */

static void count_number(struct coverage_op *o, unsigned arg, uint64_t value)
{
	unsigned power = min(inputs_power(value), (unsigned)INPUTS_POWERS);

	o->parts[arg][power]++;
	if (value)
		o->places[arg][power][inputs_place(value)]++;
}

static void count_arg(struct coverage *c, const struct op *op, unsigned i)
{
	const struct arg_def *def = &op->def->args[i];
	unsigned number = (unsigned)op_id(op->def);
	struct coverage_op *o = &c->ops[number];
	uint64_t value = op->args[i].num;

	if (coverage_is_number(def))
		count_number(o, i, value);
	else if (def->kind == ARG_FLAGS || def->kind == ARG_CHOICE)
		count_flags(o->parts[i], def, value);
	for (unsigned bit = 0; def->kind == ARG_MODE && bit < MODE_BITS; bit++)
		o->parts[i][bit] += value >> bit & 1;
	if (bitmap_is(def))
		count_combination(c, number, i, (uint32_t)value, 1);
}

void coverage_count(struct coverage *c, const struct op *op, int64_t result)
{
	struct coverage_op *o = &c->ops[op_id(op->def)];

	o->done++;
	if (result < 0) {
		o->failed++;
		o->errors[min(-result, (int64_t)COVERAGE_ERRORS - 1)]++;
	}
	for (unsigned i = 0; op->def->args[i].kind != ARG_END; i++)
		if (op->args[i].given || op->def->args[i].kind == ARG_FLAGS)
			count_arg(c, op, i);
}

void coverage_count_adopted(struct coverage *c, const struct op *op, int64_t result)
{
	c->ops[op_id(op->def)].adopted[min(-result, (int64_t)COVERAGE_ERRORS - 1)]++;
}

DEFINE_ORDER(most_first, struct coverage_adopted,
	     order(b->count, a->count) ?: strcmp(a->op, b->op) ?: a->error - b->error)

uint64_t coverage_adopted(const struct coverage *c, struct coverage_adopted_list *out)
{
	uint64_t sum = 0;

	for (size_t i = 0; op_table[i].name; i++)
		for (int e = 0; e < COVERAGE_ERRORS; e++) {
			uint64_t n = c->ops[i].adopted[e];

			if (n && out)
				vec_push(out, (struct coverage_adopted){ op_table[i].name, e, n });
			sum += n;
		}
	if (out)
		vec_sort(out, most_first);
	return sum;
}

void coverage_add(struct coverage *to, const struct coverage *from)
{
	static_assert(sizeof(to->ops) % sizeof(uint64_t) == 0, "counters only");
	uint64_t *a = (uint64_t *)to->ops;
	const uint64_t *b = (const uint64_t *)from->ops;

	for (size_t i = 0; i < sizeof(to->ops) / (sizeof(*a)); i++)
		a[i] += b[i];
	for (size_t i = 0; i < COVERAGE_COMBINATIONS; i++) {
		const struct coverage_combination *x = &from->combinations[i];

		if (x->count)
			count_combination(to, x->op, x->arg, x->value, x->count);
	}
	to->not_counted += from->not_counted;
}

/* ---- summing up ---- */

/* `all` gets the values there are; how many of them were seen. */
static uint64_t coverage_combinations(const struct coverage *c, const struct op_def *def,
				      unsigned arg, struct bitmap_values *all)
{
	uint64_t seen = 0;

	bitmap_all(&def->args[arg], all);
	for (size_t i = 0; i < all->n; i++)
		seen += coverage_of_combination(c, def, arg, all->v[i]) > 0;
	return seen;
}

static void add_arg(const struct coverage *c, const struct inputs *in, size_t op, unsigned arg,
		    struct coverage_summary *out)
{
	const struct op_def *def = &op_table[op];
	unsigned n = coverage_parts(&def->args[arg], in);
	auto_vec struct bitmap_values all = { 0 };

	out->all_parts += n;
	for (unsigned p = 0; p < n; p++)
		out->parts += c->ops[op].parts[arg][p] > 0;
	if (!bitmap_is(&def->args[arg]))
		return;
	out->combinations += coverage_combinations(c, def, arg, &all);
	out->all_combinations += all.n;
}

void coverage_summary(const struct coverage *c, const struct inputs *in,
		      struct coverage_summary *out)
{
	*out = (struct coverage_summary){ 0 };
	for (size_t k = 0; op_table[k].name; k++) {
		if (in->op_weight[k] <= 0)
			continue;
		for (unsigned i = 0; op_table[k].args[i].kind != ARG_END; i++)
			add_arg(c, in, k, i, out);
		for (int e = 0; e < COVERAGE_ERRORS; e++)
			out->errors += c->ops[k].errors[e] > 0;
	}
}
