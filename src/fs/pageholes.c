/* SPDX-License-Identifier: MIT */
/* pageholes.c - ranges of zeros that wait for a sync; see pagecache_impl.h. */
#include "fs/pagecache_impl.h"

/* Returns the index of the first hole that ends at or behind `offset`. */
static size_t first_reaching(const struct holes *h, uint64_t offset)
{
	return first_where(i, h->n, h->v[i].end >= offset);
}

const struct hole *holes_next(const struct holes *h, uint64_t offset)
{
	size_t i = first_reaching(h, offset + 1);

	return i < h->n ? &h->v[i] : NULL;
}

/* Replaces the holes [from, to) by `n` others. */
static void replace(struct holes *h, size_t from, size_t to, const struct hole *with, size_t n)
{
	vec_reserve(h, n);
	memmove(h->v + from + n, h->v + to, (h->n - to) * sizeof(*h->v));
	if (n)
		memcpy(h->v + from, with, n * sizeof(*with));
	h->n = h->n - (to - from) + n;
}

void holes_add(struct holes *h, const struct hole *hole)
{
	size_t from = first_reaching(h, hole->start), to;
	struct hole all = *hole;

	for (to = from; to < h->n && h->v[to].start <= hole->end; to++) {
		const struct hole *old = &h->v[to];

		all.start = min(all.start, old->start);
		all.end = max(all.end, old->end);
		all.first = min(all.first, old->first);
		all.last = max(all.last, old->last);
		all.since_ns = min(all.since_ns, old->since_ns);
	}
	replace(h, from, to, &all, 1);
}

void holes_subtract(struct holes *h, uint64_t start, uint64_t end)
{
	size_t from, to, n = 0;
	struct hole left[2];

	if (!h->n || start >= end)
		return;
	from = first_reaching(h, start + 1);
	for (to = from; to < h->n && h->v[to].start < end; to++)
		;
	if (to == from)
		return;
	if (h->v[from].start < start) {
		left[n] = h->v[from];
		left[n++].end = start;
	}
	if (h->v[to - 1].end > end) {
		left[n] = h->v[to - 1];
		left[n++].start = end;
	}
	replace(h, from, to, left, n);
}
