/* SPDX-License-Identifier: MIT */
/*
 * nested.h - recoveries that are recorded on crash states, so that the power can fail again in
 * them: each becomes a run of its own, RUN/recovery/N, if it does something, and not what another
 * did.
 *
 * N1: RUN/recovery/N is there only if it is such a run, or could not be removed.
 */
#ifndef SEARCH_NESTED_H
#define SEARCH_NESTED_H

#include "base/err.h"
#include "base/hash.h"
#include "core/hashset.h"

struct nested_ops {
	/*
	 * Has a state recovered, and records that in `dir`, a path for base/below.h. `what` is the
	 * hash of what it did to the storage. 1: it did nothing.
	 */
	int (*record)(void *ctx, const char *state, const char *dir, struct hash128 *what,
		      struct err *err);
	/* Makes the record a run, with a budget for its states, and adds it to those of the run. */
	int (*adopt)(void *ctx, const char *state, const char *dir, uint64_t budget,
		     struct err *err);
};

struct nested {
	const struct nested_ops *ops;
	void *ctx;
	const char *run;
	uint64_t budget; /* states of all of them; 0: no limit */
	uint64_t max;	 /* so many share it */
	uint64_t next;	 /* the number of the next one */
	uint64_t left;	 /* useless records that could not be removed */
	struct err why;	 /* of the first of them */
	struct hashset seen;
};

void nested_release(struct nested *n);
/* 1: the restart is a run now, the last that was adopted. */
int nested_record(struct nested *n, const char *state, struct err *err) must_check;

#endif
