/* SPDX-License-Identifier: MIT */
/*
 * exploration.h - a run of `outage explore` but for its search: its directory is made, or an
 * interrupted one goes on.
 */
#ifndef EXPLORE_EXPLORATION_H
#define EXPLORE_EXPLORATION_H

#include "explore/explore_plan.h"

struct exploration {
	/* As the options say: */
	struct explore_plan plan;
	const char *inputs_file; /* where its inputs are from, for messages; or NULL */
	const char *output;	 /* the directory to be made; NULL: a new one */
	const char *resume;	 /* the run that goes on, or NULL */
	bool trust;		 /* the user takes it for his own */

	char *dir;
	bool was_there; /* the directory, before the run */
	struct inputs inputs;
	uint64_t found_before; /* findings that the run had when it was resumed */
	struct err unmarked;   /* why nothing gets this user's mark */
};

void exploration_init(struct exploration *e);
void exploration_release(struct exploration *e);

/* `ends`: a limit ends it. From here on the run can go on if it is killed. */
int exploration_begin(struct exploration *e, bool ends, struct err *err) must_check;
int exploration_resume(struct exploration *e, struct err *err) must_check;
/* The directory of a run that did nothing is not left, unless there is something in it. */
void exploration_abandon(const struct exploration *e);

#endif
