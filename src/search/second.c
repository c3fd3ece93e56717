/* SPDX-License-Identifier: MIT */
/* second.c - chooses the crashes whose recovery crashes, too, and divides the budget among them. */
#include "search/second.h"

#include <stdlib.h>

#include "base/util.h"

void second_ways_release(struct second_ways *w)
{
	for (size_t i = 0; i < w->n; i++)
		free(w->v[i].state);
	vec_release(w);
}

static int compare(const void *a, const void *b)
{
	const struct second_way *x = a, *y = b;

	if (x->what.hi != y->what.hi)
		return x->what.hi < y->what.hi ? -1 : 1;
	if (x->what.lo != y->what.lo)
		return x->what.lo < y->what.lo ? -1 : 1;
	return strcmp(x->state, y->state);
}

/* Takes the i-th to the n-th place, if that is not taken already. */
static void keep(struct second_ways *w, size_t n, size_t i)
{
	struct second_way old = w->v[n];

	w->v[n] = w->v[i];
	w->v[i] = old;
}

size_t second_ways_choose(struct second_ways *w, uint64_t max)
{
	struct second_ways all = *w;
	size_t ways = 0, chosen = 0;

	if (all.n)
		qsort(all.v, all.n, sizeof(*all.v), compare);
	for (size_t i = 0; i < all.n; i++)
		if (!i || !hash_eq(all.v[ways - 1].what, all.v[i].what))
			keep(&all, ways++, i);
	for (; chosen < min((uint64_t)ways, max); chosen++)
		keep(&all, chosen, chosen * ways / (size_t)min((uint64_t)ways, max));
	for (size_t i = chosen; i < all.n; i++)
		free(all.v[i].state);
	w->n = chosen;
	return ways;
}

uint64_t second_share(uint64_t left, uint64_t firsts)
{
	return max(left / max(firsts, (uint64_t)1), (uint64_t)1);
}
