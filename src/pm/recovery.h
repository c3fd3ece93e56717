/* SPDX-License-Identifier: MIT */
/*
 * recovery.h - the power fails again, while what it left the first time is being recovered.
 *
 * Recovery is traced on crash states that are good and that it changes, one for each way in which
 * it does; each trace is a run of its own, kept as RUN/recovery/N, whose crash states are recovered
 * again and checked. Marks that had been passed before the first crash come first in its trace, and
 * no crash is tried there.
 */
#ifndef PM_RECOVERY_H
#define PM_RECOVERY_H

#include "pm/pm_search.h"
#include "record/pm_tracer.h"

struct pm_recovery_opts {
	struct pm_run *run; /* gets the new ones: run->nested */
	const struct tracer *tracer;
	uint64_t count;			     /* recoveries */
	const struct pm_search_opts *search; /* for each; but for the run */
};

struct pm_recovered {
	uint64_t ways;	    /* in which recovery changes a state that is good */
	uint64_t traced;    /* recoveries */
	uint64_t different; /* recoveries that store something, each something else */
	uint64_t states;    /* checked */
	double left_out;
	bool budget_hit; /* of one of them */
};

/* `found` is of a search with `changes`. Adds to it what fails. */
int pm_recoveries(const struct pm_recovery_opts *o, struct pm_found *found,
		  struct pm_recovered *out, struct err *err) must_check;

#endif
