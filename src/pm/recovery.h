/* SPDX-License-Identifier: MIT */
/*
 * recovery.h - the power fails again, while what it left the first time is being recovered.
 *
 * Recovery is traced on some of the crash states, spread evenly over all; each trace is a run of
 * its own, kept as RUN/recovery/N, whose crash states are recovered again and checked. Marks that
 * had been passed before the first crash come first in its trace, and no crash is tried there.
 */
#ifndef PM_RECOVERY_H
#define PM_RECOVERY_H

#include "pm/search.h"
#include "record/pm_tracer.h"

struct pm_recovery_opts {
	struct pm_run *run; /* gets the new ones: run->nested */
	const struct tracer *tracer;
	uint64_t count;			     /* of recoveries */
	const struct pm_search_opts *search; /* for each; but for the run */
};

struct pm_recovered {
	uint64_t traced;    /* recoveries */
	uint64_t different; /* those that store something, and not what another one did */
	uint64_t states;    /* checked */
	double left_out;
};

/* Adds to `found` what fails. */
int pm_recoveries(const struct pm_recovery_opts *o, struct pm_found *found,
		  struct pm_recovered *out, struct err *err) must_check;

#endif
