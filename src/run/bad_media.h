/* SPDX-License-Identifier: MIT */
/*
 * bad_media.h - faults of the media of persistent memory (core/media.h) on top of crash states: one
 * line that the last operation wrote is bad. Only for who asks; few file systems promise to survive
 * that.
 */
#ifndef RUN_BAD_MEDIA_H
#define RUN_BAD_MEDIA_H

#include "core/hashset.h"
#include "core/media.h"
#include "run/state_judge.h"

/* How far the lines of one state are gone through, unless somebody says otherwise. */
enum { BAD_MEDIA_MAX = 16 };

struct bad_media {
	struct hashset tried; /* images with a fault */
	struct image old;     /* what was there before the operation that began at event `old_at` */
	uint64_t old_at, states;
};

void bad_media_release(struct bad_media *m);
#define auto_bad_media __attribute__((cleanup(bad_media_release))) struct bad_media

/* Tries faults on a state where nothing, or everything, survived, and that is good without. */
int bad_media_explore(struct run *r, const struct state_judge *j, const struct crash_state *state,
		      struct bad_media *m, struct err *err) must_check;

/* Puts faults, as media_format() writes them, on a state that was built again. */
int bad_media_put(const struct trace *t, const struct image *base, const char *faults,
		  struct crash_state *state, struct err *err) must_check;
/* The same, recovers it and tells what is wrong. */
int bad_media_replay(struct run *r, const struct state_judge *j, const char *faults,
		     struct crash_state *state, struct err *err) must_check;

#endif
