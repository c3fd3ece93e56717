/* SPDX-License-Identifier: MIT */
/*
 * app_recovery.h - second crashes: the power fails again while the application restarts.
 *
 * The restart is recorded on good crash states that it writes to, one for each way of changing
 * them; each recording is a run of its own, kept as RUN/recovery/N, whose crash states are checked
 * like those of the run. Its trace begins with the acknowledgements before the first crash, where
 * no crash is tried.
 */
#ifndef APP_APP_RECOVERY_H
#define APP_APP_RECOVERY_H

#include "app/app_run.h"
#include "search/second.h"

struct app_recovery_opts {
	struct app_run *run; /* the new runs are added to run->nested */
	uint64_t count;	     /* the number of restarts that are recorded */
	uint64_t budget;     /* states, with those of the run; 0: no limit */
	uint64_t spent;	     /* states of the run */
	bool (*stop)(void *ctx);
	/* Searches the crashes of a restart, whose plan has its share of the budget. */
	int (*search)(void *ctx, struct app_run *nested, uint64_t *states, struct err *err);
	void *ctx;
};

struct app_recovered {
	uint64_t ways;	     /* ways in which the restart changes a good state */
	uint64_t recorded;   /* restarts */
	uint64_t different;  /* restarts that change something, each in another way */
	uint64_t failed;     /* restarts that could not be recorded; counted in `recorded`, too */
	struct err why;	     /* the first error of these */
	uint64_t left;	     /* useless recordings that could not be removed */
	struct err why_left; /* the first error of these */
	bool by_signal;
};

/* `all` comes from a search of the run. */
int app_recoveries(const struct app_recovery_opts *o, struct second_ways *all,
		   struct app_recovered *out, struct err *err) must_check;

#endif
