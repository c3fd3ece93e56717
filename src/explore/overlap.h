/* SPDX-License-Identifier: MIT */
/*
 * overlap.h - how much runs that never talked did twice, from what each kept of where it was.
 */
#ifndef EXPLORE_OVERLAP_H
#define EXPLORE_OVERLAP_H

#include "base/err.h"
#include "base/util.h"

struct overlap {
	uint64_t distinct;   /* states, counted once however many runs were there */
	uint64_t overlapped; /* states that more than one run visited */
	uint64_t by_bits;    /* states that are known by bits only, and not counted */
};

/* `states` gets how many each run visited. */
int overlap_of_runs(char *const *runs, size_t n, uint64_t *states, struct overlap *out,
		    struct err *err) must_check;

#endif
