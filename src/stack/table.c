/* SPDX-License-Identifier: MIT */
/*
 * table.c - prints, parses and searches the table of call stacks.
 *
 * A1: a frame, a stack and a call refer to entries that are in the table and printed before them.
 */
#include "stack/table.h"

#include <errno.h>
#include <inttypes.h>

#include "base/number.h"

void stack_table_release(struct stack_table *t)
{
	vec_release_each(p, &t->modules, free(p->path), free(p->build_id));
	vec_release_each(p, &t->frames, free(p->function), free(p->file));
	vec_release_each(p, &t->stacks, free(p->frames));
	vec_release(&t->calls);
	vec_release_each(p, &t->missing, free(p->reason));
}

/* ---- writing ---- */

static void add_field(struct strbuf *out, const char *text)
{
	strbuf_addch(out, '\t');
	strbuf_add_flat(out, text ? text : "");
}

void stack_table_print(const struct stack_table *t, struct strbuf *out)
{
	strbuf_adds(out, "stacks\t1\n");
	for (size_t i = 0; i < t->modules.n; i++) {
		strbuf_adds(out, "module");
		add_field(out, t->modules.v[i].path);
		add_field(out, t->modules.v[i].build_id);
		strbuf_addch(out, '\n');
	}
	vec_each(f, &t->frames) {
		assert(f->module < t->modules.n); /* A1 */
		strbuf_addf(out, "frame\t%" PRIu32 "\t%" PRIx64, f->module, f->offset);
		add_field(out, f->function);
		add_field(out, f->file);
		strbuf_addf(out, "\t%" PRIu32 "\n", f->line);
	}
	for (size_t i = 0; i < t->stacks.n; i++) {
		strbuf_adds(out, "stack");
		for (uint32_t k = 0; k < t->stacks.v[i].n; k++) {
			assert(t->stacks.v[i].frames[k] < t->frames.n); /* A1 */
			strbuf_addf(out, "\t%" PRIu32, t->stacks.v[i].frames[k]);
		}
		strbuf_addch(out, '\n');
	}
	for (size_t i = 0; i < t->calls.n; i++) {
		assert(t->calls.v[i].stack < t->stacks.n); /* A1 */
		strbuf_addf(out, "call\t%" PRIu64 "\t%" PRIu32 "\n", t->calls.v[i].number,
			    t->calls.v[i].stack);
	}
	for (size_t i = 0; i < t->missing.n; i++) {
		strbuf_addf(out, "missing\t%" PRIu64, t->missing.v[i].count);
		add_field(out, t->missing.v[i].reason);
		strbuf_addch(out, '\n');
	}
}

/* ---- reading ---- */

static const char *next_field(char **rest)
{
	return strsep(rest, "\t");
}

/* A number below `end`. */
static bool take_index(const char *field, size_t end, uint32_t *out)
{
	uint64_t n;

	if (!field || number_parse(field, &n) || n >= end || n > UINT32_MAX)
		return false;
	*out = (uint32_t)n;
	return true;
}

static char *text_or_null(const char *field)
{
	return field && *field ? xstrdup(field) : NULL;
}

static bool take_frame(struct stack_table *t, char *rest)
{
	struct stack_frame f = { 0 };
	const char *module = next_field(&rest), *offset = next_field(&rest);
	const char *function = next_field(&rest), *file = next_field(&rest),
		   *line = next_field(&rest);
	char *end;

	if (!take_index(module, t->modules.n, &f.module) || !offset || !*offset || !line)
		return false;
	f.offset = strtoull(offset, &end, 16);
	if (*end || !take_index(line, UINT32_MAX, &f.line))
		return false;
	f.function = text_or_null(function);
	f.file = text_or_null(file);
	vec_push(&t->frames, f);
	return true;
}

static bool take_stack(struct stack_table *t, char *rest)
{
	auto_vec struct vec_of(uint32_t) frames = { 0 };
	const char *field;
	uint32_t n;

	while ((field = next_field(&rest))) {
		if (frames.n == STACK_DEPTH_MAX || !take_index(field, t->frames.n, &n))
			return false;
		vec_push(&frames, n);
	}
	vec_push(&t->stacks,
		 (struct stack_list){ .n = (uint32_t)frames.n, .frames = steal(frames.v) });
	return true;
}

static bool take_call(struct stack_table *t, char *rest)
{
	struct stack_call c = { 0 };
	const char *number = next_field(&rest), *stack = next_field(&rest);

	if (!number || number_parse(number, &c.number) || !take_index(stack, t->stacks.n, &c.stack))
		return false;
	vec_push(&t->calls, c);
	return true;
}

static bool take_missing(struct stack_table *t, char *rest)
{
	struct stack_missing m = { 0 };
	const char *count = next_field(&rest), *reason = next_field(&rest);

	if (!count || !reason || number_parse(count, &m.count))
		return false;
	m.reason = xstrdup(reason);
	vec_push(&t->missing, m);
	return true;
}

static bool take_line(struct stack_table *t, char *line)
{
	const char *what = next_field(&line);

	if (streq(what, "module")) {
		const char *path = next_field(&line), *id = next_field(&line);

		if (path)
			vec_push(&t->modules,
				 (struct stack_module){ xstrdup(path), text_or_null(id) });
		return path;
	}
	if (streq(what, "frame"))
		return take_frame(t, line);
	if (streq(what, "stack"))
		return take_stack(t, line);
	if (streq(what, "call"))
		return take_call(t, line);
	return !streq(what, "missing") || take_missing(t, line);
}

DEFINE_ORDER(by_number, struct stack_call, order(a->number, b->number))

int stack_table_parse(const char *text, size_t len, struct stack_table *out, struct err *err)
{
	auto_free char *copy = xmemdupz(text, len);
	char *rest = copy, *line = strsep(&rest, "\n");
	struct stack_table t = { 0 };
	unsigned n = 1;
	int rc = 0;

	if (!streq(line, "stacks\t1"))
		return err_set(err, -EINVAL, "this is no table of stacks, or of another version");
	while (!rc && (line = strsep(&rest, "\n"))) {
		n++;
		if (*line && !take_line(&t, line))
			rc = err_set(err, -EINVAL, "line %u of the table of stacks makes no sense",
				     n);
	}
	if (rc) {
		stack_table_release(&t);
		return rc;
	}
	vec_sort(&t.calls, by_number);
	*out = t;
	return 0;
}

/* ---- searching ---- */

const struct stack_list *stack_table_find(const struct stack_table *t, uint64_t number)
{
	struct stack_call key = { .number = number };
	const struct stack_call *c =
		t->calls.n ? bsearch(&key, t->calls.v, t->calls.n, sizeof(key), by_number) : NULL;

	return c ? &t->stacks.v[c->stack] : NULL;
}

/* True if the file is a system library, whose frames do not tell the program's place. */
static bool is_system(const char *path)
{
	static const char *const names[] = { "libc.so", "libc-", "ld-linux", "libpthread",
					     "libstdc++.so" };
	const char *name = basename(path);

	return any_of(i, ARRAY_SIZE(names), !strncmp(name, names[i], strlen(names[i])));
}

const struct stack_frame *stack_place(const struct stack_table *t, const struct stack_list *s)
{
	const struct stack_frame *first = NULL;

	for (uint32_t i = 0; i < s->n; i++) {
		const struct stack_frame *f = &t->frames.v[s->frames[i]];

		if (is_system(t->modules.v[f->module].path))
			continue;
		if (f->file && f->line)
			return f;
		if (!first)
			first = f;
	}
	return first;
}

void stack_words(const struct stack_frame *f, const char *module, uint64_t offset,
		 struct strbuf *out)
{
	if (f->file && f->line) {
		strbuf_addf(out, "%s:%" PRIu32, basename(f->file), f->line);
		if (f->function)
			strbuf_addf(out, " in %s", f->function);
	} else if (f->function) {
		strbuf_addf(out, "%s (%s+0x%" PRIx64 ")", f->function, basename(module), offset);
	} else {
		strbuf_addf(out, "%s+0x%" PRIx64, basename(module), offset);
	}
}

void stack_frame_words(const struct stack_table *t, const struct stack_frame *f, struct strbuf *out)
{
	stack_words(f, t->modules.v[f->module].path, f->offset, out);
}
