/* SPDX-License-Identifier: MIT */
/*
 * bad_media.h - crash states of a run with bad lines (search/bad_lines.h) that the last operation
 * wrote, and what each recovers to.
 */
#ifndef RUN_BAD_MEDIA_H
#define RUN_BAD_MEDIA_H

#include "run/state_judge.h"
#include "search/bad_lines.h"

/* How many lines of one state are tried by default. */
enum { BAD_MEDIA_MAX = 16 };

/* Where the operation began in which, or right after which, the power failed. */
uint64_t bad_media_since(const struct trace *t, uint64_t point);
/* Recovers a state with such faults, and tells what is wrong. */
int bad_media_judge(struct run *r, const struct state_judge *j, const struct crash_state *bad,
		    const struct media_faults *faults, struct err *err) must_check;

/* Puts faults, as media_format() writes them, on a state that was built again. */
int bad_media_put(const struct trace *t, const struct image *base, const char *faults,
		  struct crash_state *state, struct err *err) must_check;
/* Both. */
int bad_media_replay(struct run *r, const struct state_judge *j, const char *faults,
		     struct crash_state *state, struct err *err) must_check;

#endif
