/* SPDX-License-Identifier: MIT */
/*
 * app_recovery.h - the power fails again, while the application comes up after the first time.
 *
 * The restart is recorded on crash states that are good and that it writes to, for each way in
 * which it does; each record is a run of its own, kept as RUN/recovery/N, whose crash states are
 * checked as those of the run are. Acknowledgements before the first crash come first in its trace,
 * and no crash is tried there.
 */
#ifndef APP_APP_RECOVERY_H
#define APP_APP_RECOVERY_H

#include "app/app_change.h"
#include "app/app_run.h"

struct app_recovery_opts {
	struct app_run *run; /* gets the new ones: run->nested */
	uint64_t count;	     /* restarts that are recorded */
	uint64_t budget;     /* states, for all restarts; 0: no limit */
	bool (*stop)(void *ctx);
	/* Searches the crashes of one, whose plan has its share of the budget. */
	int (*search)(void *ctx, struct app_run *nested, struct err *err);
	void *ctx;
};

struct app_recovered {
	uint64_t ways;	     /* in which the restart changes a state that is good */
	uint64_t recorded;   /* restarts */
	uint64_t different;  /* restarts that do something, and not what another one did */
	uint64_t failed;     /* could not be recorded; count among `recorded` too */
	struct err why;	     /* of the first of them */
	uint64_t left;	     /* records of useless restarts that could not be removed */
	struct err why_left; /* of the first of them */
	bool by_signal;
};

/* `all` is of a search of the run. */
int app_recoveries(const struct app_recovery_opts *o, struct app_changed *all,
		   struct app_recovered *out, struct err *err) must_check;

#endif
