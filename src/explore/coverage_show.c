/* SPDX-License-Identifier: MIT */
/* coverage_show.c - shows the coverage, as a table and as a picture. */
#include <errno.h>

#include "explore/coverage_impl.h"

enum {
	LISTED = 64, /* combinations of one argument in the table; of the others, how many */
	DRAWN = 64,  /* with more than these, the picture has only those that were seen */
};

/* The last part of flags is none of them set. */
static void part_name(const struct arg_def *arg, unsigned part, const struct inputs *in,
		      char out[32])
{
	switch (arg->kind) {
	case ARG_FLAGS:
	case ARG_CHOICE:
		if (coverage_has_none(arg) && part + 1 == coverage_parts(arg, in))
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

/* The combinations that were seen, most often first. */
struct value_count {
	uint64_t value, count;
};

struct seen_list vec_of(struct value_count);

DEFINE_ORDER(by_count, struct value_count, order(b->count, a->count) ?: order(a->value, b->value))

static void list_seen(const struct coverage *c, const struct op_def *def, unsigned arg,
		      const struct bitmap_values *all, struct seen_list *out)
{
	vec_clear(out);
	for (size_t i = 0; i < all->n; i++) {
		uint64_t n = coverage_of_combination(c, def, arg, all->v[i]);

		if (n)
			vec_push(out, (struct value_count){ all->v[i], n });
	}
	vec_sort(out, by_count);
}

/* ---- a table ---- */

static void print_parts(const struct coverage_op *o, const struct op_def *def, unsigned arg,
			const struct inputs *in, struct strbuf *out)
{
	unsigned n = coverage_parts(&def->args[arg], in);
	char name[32];

	strbuf_addf(out, "    %-12s", def->args[arg].name);
	for (unsigned p = 0; p < n; p++) {
		part_name(&def->args[arg], p, in, name);
		strbuf_addf(out, " %s:%llu", name, llu(o->parts[arg][p]));
	}
	strbuf_addch(out, '\n');
}

/* Where in its partition: 4096, 4097 and 8191 of those from 4096 on. */
static void print_places(const struct coverage_op *o, const struct op_def *def, unsigned arg,
			 const struct inputs *in, struct strbuf *out)
{
	unsigned n = coverage_parts(&def->args[arg], in);
	char name[32];

	for (enum inputs_place place = 0; place < PLACE_END; place++) {
		strbuf_addf(out, "      %-10s", inputs_place_name(place));
		for (unsigned p = 1; p < n; p++) {
			part_name(&def->args[arg], p, in, name);
			strbuf_addf(out, " %s:%llu", name, llu(o->places[arg][p][place]));
		}
		strbuf_addch(out, '\n');
	}
}

static void print_combinations(const struct coverage *c, const struct op_def *def, unsigned arg,
			       struct strbuf *out)
{
	auto_vec struct bitmap_values all = { 0 };
	auto_vec struct seen_list seen = { 0 };

	bitmap_all(&def->args[arg], &all);
	list_seen(c, def, arg, &all, &seen);
	strbuf_addf(out, "      combinations %zu of %zu:", seen.n, all.n);
	for (size_t i = 0; i < seen.n && i < LISTED; i++) {
		strbuf_addch(out, ' ');
		bitmap_print(&def->args[arg], seen.v[i].value, out);
		strbuf_addf(out, ":%llu", llu(seen.v[i].count));
	}
	if (seen.n > LISTED)
		strbuf_addf(out, " and %zu more", seen.n - LISTED);
	strbuf_addch(out, '\n');
}

static void print_op(const struct coverage *c, size_t k, const struct inputs *in,
		     struct strbuf *out)
{
	const struct coverage_op *o = &c->ops[k];
	const struct op_def *def = &op_table[k];

	strbuf_addf(out, "%-16s %10llu done %10llu failed", def->name, llu(o->done),
		    llu(o->failed));
	for (int e = 0; e < COVERAGE_ERRORS; e++)
		if (o->errors[e])
			strbuf_addf(out, "  %s %llu", strerrorname_np(e) ? strerrorname_np(e) : "?",
				    llu(o->errors[e]));
	strbuf_addch(out, '\n');
	for (unsigned i = 0; def->args[i].kind != ARG_END; i++) {
		if (!coverage_parts(&def->args[i], in))
			continue;
		print_parts(o, def, i, in, out);
		if (coverage_is_number(&def->args[i]))
			print_places(o, def, i, in, out);
		if (bitmap_is(&def->args[i]))
			print_combinations(c, def, i, out);
	}
}

void coverage_print(const struct coverage *c, const struct inputs *in, struct strbuf *out)
{
	struct coverage_summary sum;

	for (size_t k = 0; op_table[k].name; k++)
		if (in->op_weight[k] > 0 || c->ops[k].done)
			print_op(c, k, in, out);
	coverage_summary(c, in, &sum);
	strbuf_addf(out,
		    "%llu of %llu partitions of arguments exercised, %llu of %llu combinations of "
		    "bits, %llu errors of operations\n",
		    llu(sum.parts), llu(sum.all_parts), llu(sum.combinations),
		    llu(sum.all_combinations), llu(sum.errors));
	if (c->not_counted)
		strbuf_addf(out, "%llu combinations were not counted: there were too many\n",
			    llu(c->not_counted));
}

/* ---- a picture ---- */

enum { LEFT = 220, CELL = 30, ROW = 15, SMALL = 15 };

struct coverage_picture {
	const struct coverage *c;
	const struct inputs *in;
	struct strbuf *out;
	unsigned row, right;
};

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

static unsigned top(const struct coverage_picture *p)
{
	return p->row * ROW + 20;
}

static void label(struct coverage_picture *p, const char *op, const char *what)
{
	strbuf_addf(p->out, "<text x=\"4\" y=\"%u\">%s %s</text>\n", top(p) + 11, op, what);
}

/* `title` is all that a person sees who points at it. */
static void cell(struct coverage_picture *p, unsigned x, unsigned wide, uint64_t n,
		 const char *title)
{
	strbuf_addf(p->out,
		    "<rect x=\"%u\" y=\"%u\" width=\"%u\" height=\"%d\" fill=\"%s\" "
		    "stroke=\"#999\"><title>%s: %llu</title></rect>\n",
		    LEFT + x * wide, top(p), wide - 2, ROW - 2, shade(n), title, llu(n));
	p->right = max(p->right, LEFT + (x + 1) * wide);
}

static void draw_parts(struct coverage_picture *p, size_t k, unsigned arg)
{
	const struct op_def *def = &op_table[k];
	unsigned n = coverage_parts(&def->args[arg], p->in);
	char name[32];

	label(p, def->name, def->args[arg].name);
	for (unsigned i = 0; i < n; i++) {
		part_name(&def->args[arg], i, p->in, name);
		auto_free char *title = xasprintf("%s %s %s", def->name, def->args[arg].name, name);

		cell(p, i, CELL, p->c->ops[k].parts[arg][i], title);
	}
	p->row++;
}

static void draw_places(struct coverage_picture *p, size_t k, unsigned arg)
{
	const struct op_def *def = &op_table[k];
	unsigned n = coverage_parts(&def->args[arg], p->in);
	char name[32];

	for (enum inputs_place place = 0; place < PLACE_INSIDE; place++) {
		label(p, "", inputs_place_name(place));
		for (unsigned i = 1; i < n; i++) {
			part_name(&def->args[arg], i, p->in, name);
			auto_free char *title = xasprintf("%s %s %s %s", def->name,
							  def->args[arg].name,
							  inputs_place_name(place), name);

			cell(p, i, CELL, p->c->ops[k].places[arg][i][place], title);
		}
		p->row++;
	}
}

static void draw_combination(struct coverage_picture *p, size_t k, unsigned arg, unsigned at,
			     uint64_t value)
{
	const struct op_def *def = &op_table[k];
	auto_strbuf title = STRBUF_INIT;

	strbuf_addf(&title, "%s %s ", def->name, def->args[arg].name);
	bitmap_print(&def->args[arg], value, &title);
	cell(p, at, SMALL, coverage_of_combination(p->c, def, arg, value), strbuf_str(&title));
}

/* All there are, if they are few; else those that were seen, in rows. */
static void draw_combinations(struct coverage_picture *p, size_t k, unsigned arg)
{
	const struct op_def *def = &op_table[k];
	auto_vec struct bitmap_values all = { 0 };
	auto_vec struct seen_list seen = { 0 };

	bitmap_all(&def->args[arg], &all);
	list_seen(p->c, def, arg, &all, &seen);
	bool few = all.n <= DRAWN;
	size_t n = few ? all.n : seen.n;
	auto_free char *words = xasprintf("combinations, %zu of %zu", seen.n, all.n);
	label(p, "", words);
	for (size_t i = 0; i < n; i++) {
		if (i && i % DRAWN == 0)
			p->row++;
		draw_combination(p, k, arg, (unsigned)(i % DRAWN),
				 few ? all.v[i] : seen.v[i].value);
	}
	p->row++;
}

static void draw_errors(struct coverage_picture *p, size_t k)
{
	const struct op_def *def = &op_table[k];
	unsigned at = 0;

	label(p, def->name, "errors");
	for (int e = 1; e < COVERAGE_ERRORS; e++) {
		const char *name = strerrorname_np(e);

		if (!p->c->ops[k].errors[e])
			continue;
		auto_free char *title = xasprintf("%s %s", def->name, name ? name : "?");
		cell(p, at++, CELL, p->c->ops[k].errors[e], title);
	}
	p->row++;
}

static void draw_op(struct coverage_picture *p, size_t k)
{
	for (unsigned i = 0; op_table[k].args[i].kind != ARG_END; i++) {
		const struct arg_def *arg = &op_table[k].args[i];

		if (!coverage_parts(arg, p->in))
			continue;
		draw_parts(p, k, i);
		if (coverage_is_number(arg))
			draw_places(p, k, i);
		if (bitmap_is(arg))
			draw_combinations(p, k, i);
	}
	if (p->c->ops[k].failed)
		draw_errors(p, k);
}

void coverage_picture(const struct coverage *c, const struct inputs *in, struct strbuf *out)
{
	auto_strbuf rows = STRBUF_INIT;
	struct coverage_picture p = { .c = c, .in = in, .out = &rows, .right = LEFT + CELL };

	for (size_t k = 0; op_table[k].name; k++)
		if (in->op_weight[k] > 0)
			draw_op(&p, k);
	strbuf_addf(out,
		    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
		    "font-family=\"monospace\" font-size=\"11\">\n"
		    "<text x=\"4\" y=\"13\">Inputs by partition, by combination of bits, and "
		    "errors; white: never; darker for each power of ten</text>\n",
		    max(p.right, 640u) + 10, p.row * ROW + 30);
	strbuf_add(out, rows.buf ? rows.buf : "", rows.len);
	strbuf_adds(out, "</svg>\n");
}
