/* SPDX-License-Identifier: MIT */
/*
 * visited.h - the states that were visited, as 128-bit hashes in a table of a fixed size.
 *
 * Up to its bound it is exact: a place holds the hash itself, 16 bytes. When the table is full, a
 * field of bits takes over, which is a part of the same memory: a state is taken for visited if
 * its bits are set, and may then be left out although it is new. The odds of that are known, and
 * reported. The table may lie in memory that processes share: a place is claimed by one of them,
 * and one more byte of it tells which, and whether another one came there.
 *
 * Visited is not searched: whose steps are taken is another question, as it was met with one
 * alphabet (in one round), and so many steps from the start. Four more bytes of a place tell the
 * newest round in which a task took it upon itself to take the steps from there, which task, and
 * the smallest depth. For states known by bits only the depth is not known: they are searched from
 * where they were met first.
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
	uint64_t bytes; /* of all of it */
	uint64_t places;
	uint64_t bits;		 /* of the field; a multiple of 64 */
	_Atomic uint64_t exact;	 /* states in the table */
	_Atomic uint64_t hashed; /* states known by bits only */
	_Atomic uint64_t marked; /* states that have bits for a round, too */
	_Atomic uint64_t round;	 /* the one at hand; for those who use the table */
	struct visited_slot slots[];
	/* the field of bits comes behind them, then 4 bytes for each place, and one more */
};

enum {
	VISITED_BYTES = sizeof(struct visited_slot) + 4 + 1,
	VISITED_TASKS_MAX = 127,
	VISITED_DEPTH_MAX = 4095, /* greater depths count as this one */
};

/* In shared memory, at most `bytes`; at least 64 KiB. */
int visited_open(uint64_t bytes, struct visited **out, struct err *err) must_check;
void visited_close(struct visited *v); /* NULL is fine */

/* The second: one other task had been there, and no third. */
enum visit { VISIT_NEW, VISIT_OLD, VISIT_SECOND };

/* Adds a state that `task` came to. States known by bits only are never VISIT_SECOND. */
enum visit visited_add(struct visited *v, struct hash128 state, unsigned task);

/* Where a state was met, and by whom. */
struct visited_claim {
	unsigned task;
	uint64_t round;
	uint32_t depth;
};

/*
 * Adds a state as above (`visit`, or NULL), and is true if the task has to take its steps: none
 * did in this round, as near to the start. `again`: the task did already, farther from it, and not
 * at the depth `bound`, where no steps are taken.
 */
bool visited_claim(struct visited *v, struct hash128 state, struct visited_claim c, uint32_t bound,
		   enum visit *visit, bool *again);
/* The depth at which a task claimed it in this round; UINT32_MAX: none, or unknown. */
uint32_t visited_claimed(struct visited *v, struct hash128 state, unsigned task, uint64_t round);

bool visited_has(struct visited *v, struct hash128 state);
uint64_t visited_count(const struct visited *v);
/* The probability that the next new state is taken for an old one; 0 while it is exact. */
double visited_omission(const struct visited *v);

/* The field of bits, to be kept. */
void *visited_field(const struct visited *v, uint64_t *bytes);
/* The owner of the state at a place; visited_put() puts back one of another run. */
uint8_t visited_owner(const struct visited *v, uint64_t place);
void visited_put(struct visited *v, struct hash128 state, uint8_t owner);

#endif
