/* SPDX-License-Identifier: MIT */
/*
 * visited.h - the states that were visited, as 128-bit hashes in a table of a fixed size.
 *
 * Up to its bound it is exact: a place holds the hash itself, 16 bytes. When the table is full, a
 * field of bits takes over, which is a part of the same memory: a state is taken for visited if
 * its bits are set, and may then be left out although it is new. The odds of that are known, and
 * reported. The table may lie in memory that processes share: a place is claimed by one of them,
 * and one more byte of it tells which, and whether another one came there.
 */
#ifndef EXPLORE_VISITED_H
#define EXPLORE_VISITED_H

#include <stdatomic.h>

#include "base/err.h"
#include "base/hash.h"

struct visited_slot {
	_Atomic uint64_t lo, hi;
};

struct visited {
	uint64_t bytes;		 /* of all of it */
	uint64_t places;	 /* a power of two */
	uint64_t bits;		 /* of the field; a power of two */
	_Atomic uint64_t exact;	 /* states in the table */
	_Atomic uint64_t hashed; /* states known by bits only */
	struct visited_slot slots[];
	/* the field of bits comes behind them, then a byte for each place */
};

enum { VISITED_BYTES = sizeof(struct visited_slot) + 1, VISITED_TASKS_MAX = 127 };

/* In shared memory, at most `bytes`; at least 64 KiB. */
int visited_open(uint64_t bytes, struct visited **out, struct err *err) must_check;
void visited_close(struct visited *v); /* NULL is fine */

/* The second: another task had been there, and nobody else since. */
enum visit { VISIT_NEW, VISIT_OLD, VISIT_SECOND };

/* Adds a state that `task` came to. States known by bits only are never VISIT_SECOND. */
enum visit visited_add(struct visited *v, struct hash128 state, unsigned task);
bool visited_has(struct visited *v, struct hash128 state);
uint64_t visited_count(const struct visited *v);
/* The probability that the next new state is taken for an old one; 0 while it is exact. */
double visited_omission(const struct visited *v);

/* The field of bits, for whoever keeps it. */
void *visited_field(const struct visited *v, uint64_t *bytes);

#endif
