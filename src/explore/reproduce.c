/* SPDX-License-Identifier: MIT */
/* reproduce.c - does again what was found: to make it smaller. */
#include "explore/reproduce.h"

/* Room may come back late, so that to ask for it can take seconds. */
enum { SHRINK_RUNS = 2000, ROOM_RUNS = 60 };

struct again {
	const struct search *s;
	struct shrink_how how;
	struct reproduced *out;
	struct script tail; /* the steps that are left after the anchor at hand */
};

typedef int (*shrink_fn)(struct script *s, struct stepper *st, const struct shrink_how *how,
			 struct shrunk *out, struct err *err);

/* How many steps of the path lead to a state that was saved. */
static size_t steps_to(const struct search *s, const struct point *start)
{
	for (size_t i = 0; i < s->anchors.n; i++)
		if (s->anchors.v[i].point == start)
			return s->anchors.v[i].n;
	return 0;
}

/* 1 if it does not show. */
static int run(struct again *g, shrink_fn how, struct script *script, const struct point *start,
	       struct shrunk *out, struct err *err)
{
	struct stepper *st = g->s->stepper;

	st->start = start;
	st->start_steps = steps_to(g->s, start);
	st->room_after = streq(g->how.signature, SIGNATURE_ROOM);
	g->how.max_runs = st->room_after ? ROOM_RUNS : SHRINK_RUNS;
	int rc = how(script, st, &g->how, out, err);
	st->room_after = false;
	st->start = NULL;
	g->out->runs += out->runs;
	return rc;
}

/* Steps [from, to) of the path, then those that are left. */
static void with_steps(const struct again *g, size_t from, size_t to, struct script *out)
{
	script_clear(out);
	for (size_t i = from; i < to; i++)
		script_add_step(out, &g->s->alphabet, g->s->log.path.v[i]);
	for (size_t i = 0; i < g->tail.w.ops.n; i++)
		script_add_op(out, &g->tail.w.ops.v[i]);
}

/* Tries the steps of [from, to) and what is left, from `start`; takes what is left of both. */
static int try_from(struct again *g, size_t from, size_t to, const struct point *start,
		    struct err *err)
{
	struct shrunk ignored;
	auto_call(script_release) struct script longer;

	script_init(&longer);
	with_steps(g, from, to, &longer);
	int rc = longer.items.n ? run(g, script_cut, &longer, start, &ignored, err) : 1;
	if (!rc)
		script_copy(&g->tail, &longer);
	return rc;
}

/*
 * From the last anchor down to the empty file system. `at` is the last from which it showed; 1 if
 * it did not get to the empty one.
 */
static int climb_down(struct again *g, const struct point **at, struct err *err)
{
	const struct search *s = g->s;
	size_t to = s->log.path.n;
	int rc;

	if (!s->anchors.n)
		return 1;
	for (size_t i = s->anchors.n;; i--) {
		const struct anchor *a = i ? &s->anchors.v[i - 1] : NULL;
		const struct point *start = a ? a->point : NULL;

		/* Often nothing of the steps in between is needed. */
		rc = *at ? try_from(g, 0, 0, start, err) : 1;
		if (rc > 0)
			rc = try_from(g, a ? a->n : 0, to, start, err);
		if (rc || !a)
			return rc;
		*at = start;
		to = a->n;
	}
}

/* A finding that shows only after states were put back needs more of the log. */
static int from_log(struct again *g, struct script *script, struct err *err)
{
	auto_call(script_release) struct script lately;

	script_init(&lately);
	script_from_log(&g->s->log, &g->s->alphabet, &lately);
	int rc = run(g, script_shrink, &lately, NULL, &g->out->shrunk, err);
	if (!rc)
		script_copy(script, &lately);
	return rc;
}

/* The tail, made as plain as it can be. */
static int finish(struct again *g, const struct point *start, struct script *script,
		  struct err *err)
{
	int rc = run(g, script_shrink, &g->tail, start, &g->out->shrunk, err);

	if (rc)
		return rc;
	script_copy(script, &g->tail);
	g->out->start = start;
	g->out->start_steps = steps_to(g->s, start);
	return 0;
}

/* Makes the difference show again, by the first way that does. 1 if none does, or if it was cut. */
static int try_all(struct again *g, struct script *script, struct err *err)
{
	const struct stepper *st = g->s->stepper;
	const struct point *at = NULL;
	int rc = climb_down(g, &at, err);

	if (!rc)
		rc = finish(g, NULL, script, err);
	if (rc > 0 && !stepper_cut(st))
		rc = run(g, script_shrink, script, NULL, &g->out->shrunk, err);
	if (rc > 0 && !stepper_cut(st))
		rc = from_log(g, script, err);
	if (rc > 0 && at && !stepper_cut(st))
		rc = finish(g, at, script, err);
	return rc;
}

int reproduce(const struct search *s, struct script *script, const struct shrink_how *how,
	      struct reproduced *out, struct err *err)
{
	struct again g = { .s = s, .how = *how, .out = out };
	uint64_t before = s->stepper->counts.operations;

	*out = (struct reproduced){ 0 };
	script_init(&g.tail);
	int rc = try_all(&g, script, err);
	out->steps = s->stepper->counts.operations - before;
	out->cut = stepper_cut(s->stepper);
	script_release(&g.tail);
	return min(rc, 0);
}
