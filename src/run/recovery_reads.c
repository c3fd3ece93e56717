/* SPDX-License-Identifier: MIT */
/* recovery_reads.c - remembers what each recovery read, and tells whether a write was among it. */
#include "run/recovery_reads.h"

static void forget(struct reads *r)
{
	for (size_t i = 0; i < r->list.n; i++)
		ranges_release(&r->list.v[i].where);
}

void reads_release(struct reads *r)
{
	forget(r);
	vec_release(&r->list);
}

static bool any(void *ctx, uint64_t id)
{
	(void)id;
	*(bool *)ctx = true;
	return false;
}

static bool overlaps(struct ranges *where, uint64_t from, uint64_t to)
{
	bool found = false;

	ranges_overlapping(where, from, to, any, &found);
	return found;
}

void reads_learn(struct reads *r, const struct crash_state *state, const struct trace *record)
{
	struct reads_of of = { .point = state->point, .image = state->hash };

	for (size_t i = 0; i < record->events.n; i++) {
		const struct event *ev = &record->events.v[i];

		if ((ev->kind == EV_READ || ev->kind == EV_LOAD) && ev->len)
			ranges_add(&of.where, ev->addr, ev->addr + ev->len, i);
	}
	vec_push(&r->list, of);
}

bool reads_vary(void *ctx, uint64_t point, struct hash128 all, const struct model_piece *piece)
{
	struct reads *r = ctx;
	bool known = false;

	for (size_t i = 0; i < r->list.n; i++) {
		struct reads_of *of = &r->list.v[i];
		bool same = hash_eq(of->image, all);

		if (!same && of->point != point)
			continue;
		known |= same;
		if (overlaps(&of->where, piece->addr, piece->addr + piece->len))
			return true;
	}
	return !known;
}
