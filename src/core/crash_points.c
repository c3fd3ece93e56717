/* SPDX-License-Identifier: MIT */
/*
 * crash_points.c - where in a trace the power can fail: lists of crash points.
 *
 * A crash point is the number of events that have happened. A list is ascending and holds no point
 * twice, however many calls added to it.
 */
#include "core/crash.h"

static bool after_persist(enum event_kind kind)
{
	return kind == EV_PERSIST;
}

static bool after_op(enum event_kind kind)
{
	return kind == EV_OP_END;
}

static bool after_any(enum event_kind kind)
{
	(void)kind;
	return true;
}

static int compare_points(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void add_points(const struct trace *t, bool (*after)(enum event_kind),
		       struct crash_points *out)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->events.n; i++)
		if (after(t->events.v[i].kind))
			vec_push(out, i + 1);
	if (out->n)
		qsort(out->v, out->n, sizeof(*out->v), compare_points);
	for (size_t i = 0; i < out->n; i++)
		if (!kept || out->v[kept - 1] != out->v[i])
			out->v[kept++] = out->v[i];
	out->n = kept;
}

void crash_points_persist(const struct trace *t, struct crash_points *out)
{
	add_points(t, after_persist, out);
}

void crash_points_ops(const struct trace *t, struct crash_points *out)
{
	add_points(t, after_op, out);
}

void crash_points_writes(const struct trace *t, struct crash_points *out)
{
	add_points(t, event_modifies, out);
}

void crash_points_all(const struct trace *t, struct crash_points *out)
{
	vec_push(out, 0);
	add_points(t, after_any, out);
}

void crash_points_release(struct crash_points *p)
{
	vec_release(p);
}
