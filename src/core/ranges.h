/* SPDX-License-Identifier: MIT */
/*
 * ranges.h - ranges of bytes, each with a number, and which of them overlap another one.
 *
 * Adding and removing take time logarithmic in the number of ranges; so does a search, for each
 * range that it finds. Any number of ranges may overlap or be equal; the numbers must differ. A
 * search finds ranges in ascending order of their begin.
 */
#ifndef CORE_RANGES_H
#define CORE_RANGES_H

#include "base/vec.h"

struct ranges_node {
	uint64_t from, to; /* [from, to) */
	uint64_t id;
	uint64_t to_max;      /* the highest `to` of this node and all below */
	uint32_t left, right; /* indices; 0: none */
};

struct ranges {
	struct vec_of(struct ranges_node) nodes; /* nodes.v[0] is never used */
	uint32_t root;				 /* 0: empty */
	uint32_t free;				 /* the first of a list through `left` */
	uint64_t n;
	uint64_t steps; /* nodes visited so far, for tests of the cost */
};

#define RANGES_INIT                                                                                \
	{                                                                                          \
		0                                                                                  \
	}

void ranges_release(struct ranges *r);
void ranges_clear(struct ranges *r); /* keeps the memory */
/* `to` is not in use yet, or was released. */
void ranges_copy(const struct ranges *from, struct ranges *to);

/* `from` < `to`. */
void ranges_add(struct ranges *r, uint64_t from, uint64_t to, uint64_t id);
/* The range must be there. */
void ranges_remove(struct ranges *r, uint64_t from, uint64_t id);

/* Calls `fn` for each range that overlaps [from, to), until it answers false. */
typedef bool (*ranges_fn)(void *ctx, uint64_t id);
void ranges_overlapping(struct ranges *r, uint64_t from, uint64_t to, ranges_fn fn, void *ctx);

#endif
