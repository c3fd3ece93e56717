/* SPDX-License-Identifier: MIT */
/* state_judge.h - what the states of a run are judged by, and who is told; between crash_states.c
 * and those who judge many states together. */
#ifndef RUN_STATE_JUDGE_H
#define RUN_STATE_JUDGE_H

#include "run/attempt.h"

struct bad_media;
struct semantics;

struct state_judge {
	const struct workload *w;
	const struct image *base;
	const struct run_reporter *report;
	struct run_totals *totals;
	struct bad_media *bad_media; /* what was tried of them; NULL: nothing is */
	const char *media;	     /* the faults of the media that it has, or NULL */
	struct semantics *semantics; /* of persistent memory; NULL: each state by itself */
};

/* How far the run had come at a crash point, and how many marks there were until then. */
size_t operations_done(const struct run *r, uint64_t point, bool *under_way);
uint64_t marks_before(const struct run *r, uint64_t point);
/* Recovers one state, at which so much was done, and looks at it. Adds to `a`. */
int judge_attempt(struct run *r, const struct crash_state *state, struct trace *record,
		  struct attempt *a, struct err *err) must_check;
/* Tells what was found, if anything was. `diagnosis` may be NULL, `operation` RUN_NO_OPERATION. */
int judge_tell(struct run *r, const struct state_judge *j, const struct crash_state *state,
	       const struct crash_state *second, const struct attempt *a, size_t operation,
	       const char *diagnosis, struct err *err) must_check;

#endif
