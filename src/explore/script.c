/* SPDX-License-Identifier: MIT */
/* script.c - scripts as data: made, copied, printed, and made from what happened lately. */
#include "explore/script.h"

#include <errno.h>

#include "base/number.h"
#include "run/shrink.h"

void script_init(struct script *s)
{
	*s = (struct script){ 0 };
	workload_init(&s->w);
}

void script_release(struct script *s)
{
	workload_release(&s->w);
	vec_release(&s->items);
}

void script_clear(struct script *s)
{
	workload_clear(&s->w);
	vec_clear(&s->items);
}

void script_add(struct script *s, enum script_kind kind, uint32_t n)
{
	vec_push(&s->items, (struct script_item){ kind, n });
}

void script_add_op(struct script *s, const struct op *op)
{
	if (s->w.ops.n == WORKLOAD_OPS_MAX)
		return;
	struct op copy = *op;
	/* Flags of which none is set are not written. */
	for (unsigned i = 0; op->def->args[i].kind != ARG_END; i++)
		if (op->def->args[i].kind == ARG_FLAGS && op->def->args[i].optional)
			copy.args[i].given = copy.args[i].num != 0;
	script_add(s, SCRIPT_OP, (uint32_t)s->w.ops.n);
	workload_add(&s->w, &copy);
}

void script_add_step(struct script *s, const struct alphabet *a, size_t step)
{
	const struct step *st = &a->steps.v[step];

	for (uint32_t k = 0; k < st->n; k++)
		script_add_op(s, &a->w.ops.v[st->first + k]);
}

void script_select(const struct script *s, const bool *keep, struct script *out)
{
	script_clear(out);
	for (size_t i = 0; i < s->items.n; i++) {
		const struct script_item *item = &s->items.v[i];

		if (!keep[i])
			continue;
		if (item->kind != SCRIPT_OP)
			script_add(out, item->kind, item->n);
		else if (!shrink_lacks_handle(&out->w, &s->w.ops.v[item->n]))
			script_add_op(out, &s->w.ops.v[item->n]);
	}
}

void script_copy(struct script *to, const struct script *from)
{
	auto_free bool *all = xmalloc(from->items.n + 1);

	memset(all, true, from->items.n + 1);
	script_select(from, all, to);
}

/* ---- as text ---- */

static const char *const marks[] = {
	[SCRIPT_SAVE] = "save",
	[SCRIPT_RESTORE] = "restore",
	[SCRIPT_BASE] = "base",
};

void script_print(const struct script *s, struct strbuf *out)
{
	vec_each(item, &s->items) {
		if (item->kind == SCRIPT_OP)
			op_print(&s->w.ops.v[item->n], out);
		else
			strbuf_addf(out, "#@ %s %u", marks[item->kind], item->n);
		strbuf_addch(out, '\n');
	}
}

/* A mark: true, and the item. */
static bool read_mark(const char *line, struct script_item *out)
{
	char word[16];
	unsigned n;

	if (sscanf(line, "#@ %15s %u", word, &n) != 2)
		return false;
	for (enum script_kind k = SCRIPT_SAVE; k <= SCRIPT_BASE; k++)
		if (streq(word, marks[k])) {
			*out = (struct script_item){ k, n };
			return true;
		}
	return false;
}

int script_parse(const char *text, size_t len, const char *source, struct script *out,
		 struct err *err)
{
	auto_free char *copy = xmemdupz(text, len);
	char *rest = copy;
	unsigned number = 0;

	script_clear(out);
	for (char *line; (line = strsep(&rest, "\n"));) {
		struct script_item item;
		size_t before = out->w.ops.n;
		bool mark = strncmp(line, "#@", 2) == 0;

		number++;
		if (mark && !read_mark(line, &item))
			return err_set(err, -EINVAL,
				       "%s:%u: a mark is save, restore or base and a "
				       "number",
				       source, number);
		if (mark)
			vec_push(&out->items, item);
		if (*line == '#' || !*line || strncmp(line, "workload ", 9) == 0)
			continue;
		int rc = workload_add_line(&out->w, line, err);
		if (rc)
			return err_context(err, "%s:%u", source, number);
		for (size_t i = before; i < out->w.ops.n; i++)
			script_add(out, SCRIPT_OP, (uint32_t)i);
	}
	return 0;
}

/* ---- what happened lately ---- */

struct script_path script_path_of(const uint32_t *steps, size_t n)
{
	struct script_path p = { 0 };

	vec_reserve(&p, n + 1);
	p.n = n;
	if (n)
		memcpy(p.v, steps, n * sizeof(*steps));
	return p;
}

void script_log_reset(struct script_log *l)
{
	for (unsigned i = 0; i < SCRIPT_RECENT; i++)
		vec_release(&l->recent[i].path);
	vec_release(&l->before);
	vec_clear(&l->path);
	l->n = 0;
}

void script_log_release(struct script_log *l)
{
	script_log_reset(l);
	vec_release(&l->path);
}

/* The oldest event makes room; what it did goes into the path before the ring. */
static struct script_event *next_event(struct script_log *l)
{
	struct script_event *e = &l->recent[l->n % SCRIPT_RECENT];

	if (l->n >= SCRIPT_RECENT) {
		if (e->kind == SCRIPT_OP) {
			vec_push(&l->before, e->n);
		} else if (e->kind == SCRIPT_RESTORE) {
			vec_release(&l->before);
			l->before = e->path;
			e->path = (struct script_path){ 0 };
		}
	}
	vec_release(&e->path);
	l->n++;
	return e;
}

void script_log_step(struct script_log *l, uint32_t step)
{
	struct script_event *e = next_event(l);

	e->kind = SCRIPT_OP;
	e->n = step;
	vec_push(&l->path, step);
}

void script_log_save(struct script_log *l, uint32_t id)
{
	struct script_event *e = next_event(l);

	e->kind = SCRIPT_SAVE;
	e->n = id;
	e->path = script_path_of(l->path.v, l->path.n);
}

void script_log_restore(struct script_log *l, uint32_t id, const uint32_t *path, size_t n)
{
	struct script_event *e = next_event(l);

	e->kind = SCRIPT_RESTORE;
	e->n = id;
	e->path = script_path_of(path, n);
	vec_release(&l->path);
	l->path = script_path_of(path, n);
}

void script_from_path(const struct script_log *l, const struct alphabet *a, struct script *out)
{
	script_clear(out);
	for (size_t i = 0; i < l->path.n; i++)
		script_add_step(out, a, l->path.v[i]);
}

static void add_path(struct script *out, const struct alphabet *a, const struct script_path *p)
{
	script_add(out, SCRIPT_BASE, 0);
	for (size_t i = 0; i < p->n; i++)
		script_add_step(out, a, p->v[i]);
}

static bool saved_in_ring(const struct script_log *l, uint64_t from, uint64_t to, uint32_t id)
{
	for (uint64_t i = from; i < to; i++) {
		const struct script_event *e = &l->recent[i % SCRIPT_RECENT];

		if (e->kind == SCRIPT_SAVE && e->n == id)
			return true;
	}
	return false;
}

void script_from_log(const struct script_log *l, const struct alphabet *a, struct script *out)
{
	uint64_t from = l->n > SCRIPT_RECENT ? l->n - SCRIPT_RECENT : 0;
	auto_vec struct vec_of(uint32_t) made = { 0 };

	script_clear(out);
	/* States that were saved before the ring begins are made first. */
	for (uint64_t i = from; i < l->n; i++) {
		const struct script_event *e = &l->recent[i % SCRIPT_RECENT];
		bool known = false;

		if (e->kind != SCRIPT_RESTORE || saved_in_ring(l, from, i, e->n))
			continue;
		for (size_t k = 0; k < made.n; k++)
			known |= made.v[k] == e->n;
		if (known)
			continue;
		vec_push(&made, e->n);
		add_path(out, a, &e->path);
		script_add(out, SCRIPT_SAVE, e->n);
	}
	add_path(out, a, &l->before);
	for (uint64_t i = from; i < l->n; i++) {
		const struct script_event *e = &l->recent[i % SCRIPT_RECENT];

		if (e->kind == SCRIPT_OP)
			script_add_step(out, a, e->n);
		else
			script_add(out, e->kind, e->n);
	}
}
