/* SPDX-License-Identifier: MIT */
/*
 * recovery.h - second crashes: the power fails again during recovery from the first crash.
 *
 * Recovery is traced on good crash states that it changes, one for each way of changing them; each
 * trace is a run of its own, kept as RUN/recovery/N, whose crash states are recovered again and
 * checked. Its trace begins with the marks before the first crash, where no crash is tried.
 */
#ifndef PM_RECOVERY_H
#define PM_RECOVERY_H

#include "pm/pm_search.h"
#include "record/pm_tracer.h"

struct pm_recovery_opts {
	struct pm_run *run; /* the new runs are added to run->nested */
	const struct tracer *tracer;
	uint64_t count;			     /* the number of recoveries */
	const struct pm_search_opts *search; /* options for each, as for the run */
};

struct pm_recovered {
	uint64_t ways;	    /* ways in which recovery changes a good state */
	uint64_t traced;    /* recoveries traced */
	uint64_t different; /* recoveries that change the memory, each in another way */
	uint64_t states;    /* states checked */
	double left_out;
	bool budget_hit; /* a recovery used up its budget */
};

/* `found` is the result of a search with `changes`. Adds failures to it. */
int pm_recoveries(const struct pm_recovery_opts *o, struct pm_found *found,
		  struct pm_recovered *out, struct err *err) must_check;

#endif
