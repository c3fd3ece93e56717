/* SPDX-License-Identifier: MIT */
/*
 * bad_media.h - the crash states of a run with bad lines (search/bad_lines.h) that the last
 * operation wrote: which of them are tried, and what each recovers to.
 */
#ifndef RUN_BAD_MEDIA_H
#define RUN_BAD_MEDIA_H

#include "run/state_judge.h"
#include "search/bad_lines.h"

/* How many lines of one state are tried by default. */
enum { BAD_MEDIA_MAX = 16 };

struct bad_media {
	struct bad_lines lines;
	struct run *r;
	const struct state_judge *j;
	uint64_t states; /* tried */
};

/* `m` stays where it is. */
void bad_media_init(struct bad_media *m, struct run *r, const struct state_judge *j);
/* Tries faults on a state that is good without. */
int bad_media_explore(struct bad_media *m, const struct crash_state *state, struct err *err)
	must_check;

/* Puts faults, as media_format() writes them, on a state that was built again. */
int bad_media_put(const struct trace *t, const struct image *base, const char *faults,
		  struct crash_state *state, struct err *err) must_check;
/* The same, recovers it and tells what is wrong. */
int bad_media_replay(struct run *r, const struct state_judge *j, const char *faults,
		     struct crash_state *state, struct err *err) must_check;

#endif
