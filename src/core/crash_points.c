/* SPDX-License-Identifier: MIT */
/*
 * crash_points.c - lists the crash points of a trace: the places where the power can fail.
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

static void add_points(const struct trace *t, bool (*after)(enum event_kind),
		       struct crash_points *out)
{
	for (size_t i = 0; i < t->events.n; i++)
		if (after(t->events.v[i].kind))
			vec_push(out, i + 1);
	vec_sort_unique(out, by_u64);
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

/* True if a store before the event can no longer be lost after it. */
static bool makes_durable(const struct event *ev)
{
	return ev->kind == EV_FENCE || event_marks(ev->kind) ||
	       (ev->kind == EV_LINEFLUSH && (ev->flags & EV_CLFLUSH));
}

void crash_points_pm(const struct trace *t, struct crash_points *out)
{
	bool stores = false;

	for (size_t i = 0; i < t->events.n; i++) {
		const struct event *ev = &t->events.v[i];

		if (stores && makes_durable(ev)) {
			vec_push(out, i);
			stores = false;
		}
		if (event_marks(ev->kind))
			vec_push(out, i + 1);
		stores |= ev->kind == EV_STORE;
	}
	if (stores)
		vec_push(out, t->events.n);
	vec_sort_unique(out, by_u64);
}

void crash_points_all(const struct trace *t, struct crash_points *out)
{
	vec_push(out, 0);
	add_points(t, after_any, out);
}

void crash_points_keep(struct crash_points *p, uint64_t from, uint64_t to)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++)
		if (p->v[i] >= from && p->v[i] <= to)
			p->v[n++] = p->v[i];
	p->n = n;
}

void crash_points_release(struct crash_points *p)
{
	vec_release(p);
}
