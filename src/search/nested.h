/* SPDX-License-Identifier: MIT */
/*
 * nested.h - recoveries that are recorded on crash states, so that the power can fail again in
 * them: each becomes a run of its own, RUN/recovery/N, if it changes the storage, and not in the
 * same way as another recovery.
 *
 * N1: RUN/recovery/N is there only if it is such a run, or could not be removed.
 * N2: first crashes get half of the budget at most; each recovery gets an equal share of the budget
 *     that is left when it is recorded.
 */
#ifndef SEARCH_NESTED_H
#define SEARCH_NESTED_H

#include "base/err.h"
#include "base/hash.h"
#include "core/hashset.h"

struct nested_ops {
	/*
	 * Recovers a state, and records that in `dir`, a path for base/below.h. `what` gets the
	 * hash of the changes to the storage. Returns 1 if there were none.
	 */
	int (*record)(void *ctx, const char *state, const char *dir, struct hash128 *what,
		      struct err *err);
	/* Makes the record a run with this budget, and adds it to the runs of recoveries. */
	int (*adopt)(void *ctx, const char *state, const char *dir, uint64_t budget,
		     struct err *err);
};

struct nested {
	const struct nested_ops *ops;
	void *ctx;
	const char *run;
	uint64_t budget; /* first crashes and second ones; 0: no limit */
	uint64_t spent;	 /* states that were tried; the caller adds the states of each run */
	uint64_t max;	 /* the number of recoveries still to be recorded */
	uint64_t next;	 /* the number of the next recovery */
	uint64_t left;	 /* useless records that could not be removed */
	struct err why;	 /* the error of the first of these */
	struct hashset seen;
};

void nested_release(struct nested *n);
/* Returns how many first crashes are tried before recoveries are recorded; 0: no limit. */
uint64_t nested_firsts(uint64_t budget);
/* True if the budget is spent. */
bool nested_is_over(const struct nested *n);
/* Returns 1 if the recovery is now a run, the last one that was adopted. */
int nested_record(struct nested *n, const char *state, struct err *err) must_check;

#endif
