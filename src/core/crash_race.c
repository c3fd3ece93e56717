/* SPDX-License-Identifier: MIT */
/*
 * crash_race.c - counts the requests that were in flight together and overlap: the device decides
 * which of them lands last, and the models do not vary that.
 */
#include "core/crash_race.h"

#include "core/ranges.h"

static bool count_one(void *ctx, uint64_t id)
{
	(void)id;
	++*(uint64_t *)ctx;
	return true;
}

static bool can_race(enum event_kind kind)
{
	return event_modifies(kind) && event_is_request(kind);
}

uint64_t crash_count_racing(const struct trace *t, uint64_t until)
{
	auto_call(ranges_release) struct ranges flying = RANGES_INIT;
	auto_free bool *in_flight = xcalloc(until, sizeof(*in_flight));
	uint64_t pairs = 0;

	for (uint64_t i = 0; i < until; i++) {
		const struct event *ev = &t->events.v[i];

		if (can_race(ev->kind) && ev->len) {
			ranges_overlapping(&flying, ev->addr, ev->addr + ev->len, count_one,
					   &pairs);
			ranges_add(&flying, ev->addr, ev->addr + ev->len, i);
			in_flight[i] = true;
		} else if (ev->kind == EV_COMPLETE && ev->ref < i && in_flight[ev->ref]) {
			ranges_remove(&flying, t->events.v[ev->ref].addr, ev->ref);
			in_flight[ev->ref] = false;
		}
	}
	return pairs;
}
