/* SPDX-License-Identifier: MIT */
#include "explore/coverage.h"

#include <errno.h>

/* ---- partitions ---- */

/* How many there are, up to which size; 0: this kind has none. */
static unsigned count_parts(const struct arg_def *arg, const struct inputs *in)
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
		return min(n, (unsigned)COVERAGE_PARTS - 1) + (arg->kind == ARG_FLAGS);
	case ARG_MODE:
		return 12;
	default:
		return 0;
	}
}

/* The last part of flags is none of them set. */
static void part_name(const struct arg_def *arg, unsigned part, const struct inputs *in,
		      char out[32])
{
	switch (arg->kind) {
	case ARG_FLAGS:
	case ARG_CHOICE:
		if (arg->kind == ARG_FLAGS && part + 1 == count_parts(arg, in))
			snprintf(out, 32, "none");
		else
			snprintf(out, 32, "%s", arg->words[part].name);
		break;
	case ARG_MODE:
		snprintf(out, 32, "%04o", 1u << part);
		break;
	default:
		snprintf(out, 32, "%llu", part ? 1ULL << (part - 1) : 0ULL);
	}
}

static void count_flags(uint64_t *parts, const struct arg_def *arg, uint64_t value)
{
	unsigned i = 0;
	bool any = false;

	for (; arg->words[i].name && i + 1 < COVERAGE_PARTS; i++) {
		uint64_t bits = arg->words[i].value;
		bool set = arg->kind == ARG_CHOICE ? value == bits : bits && (value & bits) == bits;

		parts[i] += set;
		any |= set;
	}
	if (arg->kind == ARG_FLAGS)
		parts[i] += !any;
}

static void count_arg(uint64_t *parts, const struct arg_def *def, const struct arg *arg)
{
	switch (def->kind) {
	case ARG_OFFSET:
	case ARG_LENGTH:
	case ARG_SIZE:
		parts[min(inputs_power(arg->num), (unsigned)COVERAGE_PARTS - 1)]++;
		break;
	case ARG_FLAGS:
	case ARG_CHOICE:
		count_flags(parts, def, arg->num);
		break;
	case ARG_MODE:
		for (unsigned bit = 0; bit < 12; bit++)
			parts[bit] += arg->num >> bit & 1;
		break;
	default:
		break;
	}
}

void coverage_count(struct coverage *c, const struct op *op, int64_t result)
{
	struct coverage_op *o = &c->ops[op->def - op_table];

	o->done++;
	if (result < 0) {
		o->failed++;
		o->errors[min(-result, (int64_t)COVERAGE_ERRORS - 1)]++;
	}
	for (unsigned i = 0; op->def->args[i].kind != ARG_END; i++)
		if (op->args[i].given || op->def->args[i].kind == ARG_FLAGS)
			count_arg(o->parts[i], &op->def->args[i], &op->args[i]);
}

void coverage_add(struct coverage *to, const struct coverage *from)
{
	static_assert(sizeof(*to) % sizeof(uint64_t) == 0, "counters only");
	uint64_t *a = (uint64_t *)to;
	const uint64_t *b = (const uint64_t *)from;

	for (size_t i = 0; i < sizeof(*to) / sizeof(*a); i++)
		a[i] += b[i];
}

void coverage_summary(const struct coverage *c, const struct inputs *in, uint64_t *seen,
		      uint64_t *all)
{
	*seen = *all = 0;
	for (size_t k = 0; op_table[k].name; k++) {
		if (in->op_weight[k] <= 0)
			continue;
		for (unsigned i = 0; op_table[k].args[i].kind != ARG_END; i++) {
			unsigned n = count_parts(&op_table[k].args[i], in);

			*all += n;
			for (unsigned p = 0; p < n; p++)
				*seen += c->ops[k].parts[i][p] > 0;
		}
	}
}

/* ---- for people ---- */

static void print_op(const struct coverage_op *o, const struct op_def *def, const struct inputs *in,
		     struct strbuf *out)
{
	strbuf_addf(out, "%-16s %10llu done %10llu failed", def->name, (unsigned long long)o->done,
		    (unsigned long long)o->failed);
	for (int e = 0; e < COVERAGE_ERRORS; e++)
		if (o->errors[e])
			strbuf_addf(out, "  %s %llu", strerrorname_np(e) ? strerrorname_np(e) : "?",
				    (unsigned long long)o->errors[e]);
	strbuf_addch(out, '\n');
	for (unsigned i = 0; def->args[i].kind != ARG_END; i++) {
		unsigned n = count_parts(&def->args[i], in);
		char name[32];

		if (!n)
			continue;
		strbuf_addf(out, "    %-12s", def->args[i].name);
		for (unsigned p = 0; p < n; p++) {
			part_name(&def->args[i], p, in, name);
			strbuf_addf(out, " %s:%llu", name, (unsigned long long)o->parts[i][p]);
		}
		strbuf_addch(out, '\n');
	}
}

void coverage_print(const struct coverage *c, const struct inputs *in, struct strbuf *out)
{
	uint64_t seen, all;

	for (size_t k = 0; op_table[k].name; k++)
		if (in->op_weight[k] > 0 || c->ops[k].done)
			print_op(&c->ops[k], &op_table[k], in, out);
	coverage_summary(c, in, &seen, &all);
	strbuf_addf(out, "%llu of %llu partitions of arguments exercised\n",
		    (unsigned long long)seen, (unsigned long long)all);
}

/* ---- a picture ---- */

enum { LEFT = 190, CELL = 30, ROW = 15 };

/* Darker for each power of ten. */
static const char *shade(uint64_t n)
{
	static const char *const shades[] = { "#fff",	 "#d9ead3", "#b6d7a8", "#93c47d",
					      "#6aa84f", "#38761d", "#274e13" };
	unsigned i = 0;

	for (; n; n /= 10)
		i++;
	return shades[min((size_t)i, ARRAY_SIZE(shades) - 1)];
}

static void draw_row(struct strbuf *out, unsigned *row, const char *op, const struct arg_def *arg,
		     const uint64_t *parts, const struct inputs *in)
{
	unsigned n = count_parts(arg, in), y = (*row)++ * ROW + 20;
	char name[32];

	strbuf_addf(out, "<text x=\"4\" y=\"%u\">%s %s</text>\n", y + 11, op, arg->name);
	for (unsigned p = 0; p < n; p++) {
		part_name(arg, p, in, name);
		strbuf_addf(out,
			    "<rect x=\"%u\" y=\"%u\" width=\"%d\" height=\"%d\" fill=\"%s\" "
			    "stroke=\"#999\"><title>%s %s %s: %llu</title></rect>\n",
			    LEFT + p * CELL, y, CELL - 2, ROW - 2, shade(parts[p]), op, arg->name,
			    name, (unsigned long long)parts[p]);
	}
}

void coverage_picture(const struct coverage *c, const struct inputs *in, struct strbuf *out)
{
	auto_strbuf rows = STRBUF_INIT;
	unsigned row = 0, wide = 1;

	for (size_t k = 0; op_table[k].name; k++)
		for (unsigned i = 0; in->op_weight[k] > 0 && op_table[k].args[i].kind != ARG_END;
		     i++) {
			unsigned n = count_parts(&op_table[k].args[i], in);

			wide = max(wide, n);
			if (n)
				draw_row(&rows, &row, op_table[k].name, &op_table[k].args[i],
					 c->ops[k].parts[i], in);
		}
	strbuf_addf(out,
		    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
		    "font-family=\"monospace\" font-size=\"11\">\n"
		    "<text x=\"4\" y=\"13\">Inputs by partition; white: never; darker for each "
		    "power of ten</text>\n",
		    LEFT + wide * CELL + 10, row * ROW + 30);
	strbuf_add(out, rows.buf ? rows.buf : "", rows.len);
	strbuf_adds(out, "</svg>\n");
}
