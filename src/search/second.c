/* SPDX-License-Identifier: MIT */
/* second.c - chooses the first crashes that get second ones, and divides the budget among them. */
#include "search/second.h"

#include <stdlib.h>

#include "base/util.h"

void second_ways_release(struct second_ways *w)
{
	for (size_t i = 0; i < w->n; i++)
		free(w->v[i].state);
	vec_release(w);
}

/* ---- orders ---- */

#define order_hash(a, b) (order((a).hi, (b).hi) ?: order((a).lo, (b).lo))

static int by_worth(const struct second_way *a, const struct second_way *b)
{
	return order(b->worth, a->worth) ?: order(a->turn, b->turn) ?: strcmp(a->state, b->state);
}

DEFINE_ORDER(by_what, struct second_way, order_hash(a->what, b->what) ?: by_worth(a, b))
DEFINE_ORDER(by_kind, struct second_way,
	     order(b->leads, a->leads) ?: order_hash(a->kind, b->kind) ?: by_worth(a, b))
DEFINE_ORDER(by_turn, struct second_way,
	     order(b->first, a->first) ?: order(b->leads, a->leads)
	     ?: order(a->turn, b->turn) ?: order_hash(a->what, b->what))

/* ---- which are chosen ---- */

/* Removes the ways from `n` on. */
static void cut(struct second_ways *w, size_t n)
{
	while (w->n > n)
		free(w->v[--w->n].state);
}

/* Swaps the i-th way and the n-th. */
static void keep(struct second_ways *w, size_t n, size_t i)
{
	struct second_way old = w->v[n];

	w->v[n] = w->v[i];
	w->v[i] = old;
}

/* Keeps one state of each way. */
static void keep_unlike(struct second_ways *w)
{
	size_t ways = 0;

	vec_sort(w, by_what);
	for (size_t i = 0; i < w->n; i++)
		if (!i || !hash_eq(w->v[ways - 1].what, w->v[i].what))
			keep(w, ways++, i);
	cut(w, ways);
}

size_t second_ways_choose(struct second_ways *w, uint64_t max)
{
	size_t firsts = 0;

	keep_unlike(w);
	vec_sort(w, by_kind);
	for (size_t i = 0; i < w->n; i++) {
		struct second_way *x = &w->v[i];

		x->first = !hash_eq(x->kind, i ? x[-1].kind : (struct hash128){ 0, 0 });
		firsts += x->first;
	}
	vec_sort(w, by_turn);
	size_t ways = w->n, rest = ways - firsts, chosen = min(ways, max);
	firsts = min(firsts, chosen);
	for (size_t i = 0; firsts + i < chosen; i++)
		keep(w, firsts + i, firsts + i * rest / (chosen - firsts));
	cut(w, chosen);
	return ways;
}

uint64_t second_share(uint64_t left, uint64_t firsts)
{
	return max(left / max(firsts, (uint64_t)1), (uint64_t)1);
}
