/* SPDX-License-Identifier: MIT */
/*
 * history_calls.c - which recorded writes are parts of one call.
 *
 * The kernel gives a FUSE server one write(2) in several requests: it ends one at the end of the
 * first page if the call does not begin there with a page's start, and after 1 MiB. Nobody can put
 * another call between them. Two calls of an application can look the same, if the first ends
 * exactly there; they are then taken for one.
 */
#include <inttypes.h>

#include "app/history.h"

enum { PAGE_BYTES = 4096, REQUEST_MAX = 1 << 20 };

static bool decode_write(const struct trace *t, uint64_t event, struct posix_event *out)
{
	return event < t->events.n && t->events.v[event].kind == EV_POSIX &&
	       !posix_decode(&t->events.v[event], out, NULL) && out->op == POSIX_WRITE &&
	       out->result > 0 && !(out->flags & POSIX_PAGE);
}

static bool may_go_on(const struct posix_event *e)
{
	uint64_t len = (uint64_t)e->result, end = e->offset + len;

	return end % PAGE_BYTES == 0 && (e->offset % PAGE_BYTES || len == REQUEST_MAX);
}

bool history_same_call(const struct history *h, uint64_t first, uint64_t second)
{
	const struct trace *t = h->trace;
	struct posix_event part, next;

	if (first >= second || !decode_write(t, first, &part))
		return first == second;
	for (uint64_t i = first + 1; i <= second && i < t->events.n; i++) {
		if (t->events.v[i].kind != EV_POSIX || posix_decode(&t->events.v[i], &next, NULL) ||
		    next.tid != part.tid)
			continue;
		if (!decode_write(t, i, &next) || next.ino != part.ino || !may_go_on(&part) ||
		    next.offset != part.offset + (uint64_t)part.result)
			return false;
		part = next;
		if (i == second)
			return true;
	}
	return false;
}
