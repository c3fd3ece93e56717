/* SPDX-License-Identifier: MIT */
/*
 * earlier.h - the findings that an interrupted run kept of workloads it had not done.
 *
 * The workloads are done again when the run is resumed. Whether they show the same depends on more
 * than the seed, so what was kept stays:
 *
 * E1: a finding of the same workload, cluster, state and media takes the name of the earlier one,
 *     and its place on disk once it is complete.
 * E2: no other finding gets that name. Where nothing was interrupted there is no such name, and the
 *     cases of a workload are numbered in the order in which they are found.
 * E3: an earlier finding that did not show again counts like any other: in the record of its
 *     workload once that is done, until then at the end of each run.
 */
#ifndef RUN_EARLIER_H
#define RUN_EARLIER_H

#include "run/progress.h"

struct earlier_case {
	uint64_t workload, number;
	char *id; /* its state and media; NULL: it cannot be read, or is no case */
	struct progress_cluster what; /* for progress_count() */
	bool again;		      /* found again */
};

struct earlier vec_of(struct earlier_case);

/* All of those whose workload is not done. Only names of cases are looked at. */
int earlier_load(const char *run, const struct progress *p, struct earlier *out, struct err *err)
	must_check;
void earlier_release(struct earlier *e);

/*
 * The number for the next case of a workload that has its cases up to `next`, which is changed:
 * that of the same earlier case, or one that no earlier case has. `same` gets whether there is such
 * an earlier case, which is not given again.
 */
uint64_t earlier_number(struct earlier *e, uint64_t workload, const char *cluster, const char *id,
			uint64_t *next, bool *same);
/* The case was found again, if it is an earlier one. */
void earlier_again(struct earlier *e, uint64_t workload, uint64_t number);

#endif
