/* SPDX-License-Identifier: MIT */
/* state_judge.h - judges the states of a run, and tells of them; between crash_states.c and the
 * files that judge many states together. */
#ifndef RUN_STATE_JUDGE_H
#define RUN_STATE_JUDGE_H

#include "run/attempt.h"

struct state_judge {
	const struct workload *w;
	const struct image *base;
	const struct run_reporter *report;
	struct run_totals *totals;
	const char *media; /* the faults of the media that a state has, or NULL */
};

/* How far the run had come at a crash point. */
size_t operations_done(const struct run *r, uint64_t point, bool *under_way);
/* Recovers one state, at which so much was done, and looks at it. Adds to `a`. */
int judge_attempt(struct run *r, const struct crash_state *state, struct trace *record,
		  struct attempt *a, struct err *err) must_check;
/* Tells what was found, if anything was. `diagnosis` may be NULL, `operation` RUN_NO_OPERATION. */
int judge_tell(struct run *r, const struct state_judge *j, const struct crash_state *state,
	       const struct crash_state *second, const struct attempt *a, size_t operation,
	       const char *diagnosis, struct err *err) must_check;

#endif
