/* SPDX-License-Identifier: MIT */
/*
 * pm_resume.c - gives stores that continue an interrupted copy the stack of that copy, and moves
 * fences before the copy.
 */
#include "record/pm_resume.h"

#include "core/model_pm.h"

static bool is_mark(const struct event *ev)
{
	return ev->kind == EV_OP_BEGIN || ev->kind == EV_OP_END || ev->kind == EV_PERSIST ||
	       ev->kind == EV_TEXT;
}

static bool goes_on(const struct event *a, const struct event *b)
{
	uint64_t apart = a->pc > b->pc ? a->pc - b->pc : b->pc - a->pc;

	return a->cpu == b->cpu && (b->addr == a->addr + a->len || a->addr == b->addr + b->len) &&
	       (a->flags & EV_NONTEMPORAL) == (b->flags & EV_NONTEMPORAL) && a->pc && b->pc &&
	       apart <= PM_COPY_SPAN;
}

/* True if there was no mark since a store, and no store or line flush of its CPU. */
static bool only_waited(const struct trace *t, uint64_t from, uint32_t cpu)
{
	for (uint64_t i = from; i < t->events.n; i++) {
		const struct event *ev = &t->events.v[i];

		if (is_mark(ev) ||
		    (ev->cpu == cpu && (ev->kind == EV_STORE || ev->kind == EV_LINEFLUSH)))
			return false;
	}
	return true;
}

/* Returns the first store of the copy that ends with `last` so far. */
static uint64_t copy_begins(const struct trace *t, uint64_t last)
{
	uint64_t first = last;

	for (uint64_t i = last; !(t->events.v[first].flags & EV_NEW_CALL) && i-- > 0;) {
		const struct event *ev = &t->events.v[i], *next = &t->events.v[first];

		if (is_mark(ev))
			break;
		if (ev->cpu != next->cpu || (ev->kind != EV_STORE && ev->kind != EV_FENCE))
			continue;
		if (ev->kind == EV_FENCE || ev->stack != next->stack || !goes_on(ev, next))
			break;
		first = i;
	}
	return first;
}

/* Moves a fence to an earlier place. The stack is dropped, as it may be known only later. */
static void move_fence(struct pm_resume *r, uint64_t from, uint64_t to)
{
	struct trace *t = r->t;
	struct event fence = t->events.v[from];

	fence.stack = 0;
	memmove(&t->events.v[to + 1], &t->events.v[to], (from - to) * sizeof(fence));
	t->events.v[to] = fence;
	for (size_t i = t->stacks.n; i-- > 0 && t->stacks.v[i] >= to;)
		t->stacks.v[i] += t->stacks.v[i] < from;
	for (unsigned i = 0; i < PM_RESUME_CPUS; i++)
		r->last[i].at += r->last[i].at > to && r->last[i].at <= from;
}

static void move_fences(struct pm_resume *r, uint64_t last)
{
	struct trace *t = r->t;
	uint64_t to = copy_begins(t, last);
	uint32_t cpu = t->events.v[last].cpu;

	for (uint64_t i = last + 1; i < t->events.n; i++)
		if (t->events.v[i].kind == EV_FENCE && t->events.v[i].cpu == cpu)
			move_fence(r, i, to++);
}

static void put_store(struct pm_resume *r, struct event ev)
{
	struct trace *t = r->t;
	uint64_t at = r->last[ev.cpu].at;
	uint32_t stack = r->last[ev.cpu].stack;
	bool resumed = false;

	if (!ev.stack && stack && at && goes_on(&t->events.v[at - 1], &ev) &&
	    only_waited(t, at, ev.cpu)) {
		resumed = true;
		move_fences(r, at - 1);
	} else if (!ev.stack && r->last[ev.cpu].resumed && !(ev.flags & EV_NEW_CALL)) {
		resumed = true;
	}
	if (resumed) {
		ev.stack = stack;
		ev.flags &= ~(uint32_t)EV_NEW_CALL;
	}
	trace_append(t, &ev);
	r->last[ev.cpu].at = t->events.n;
	r->last[ev.cpu].stack = ev.stack;
	r->last[ev.cpu].resumed = resumed;
}

void pm_resume_put(struct pm_resume *r, const struct event *ev)
{
	if (ev->kind == EV_STORE && ev->cpu < PM_RESUME_CPUS)
		put_store(r, *ev);
	else
		trace_append(r->t, ev);
}
