/* SPDX-License-Identifier: MIT */
/*
 * bad_lines.h - faults of the media of persistent memory (core/media.h) on top of crash states: a
 * line that was being written is bad. Only on request; few systems promise to survive that.
 */
#ifndef SEARCH_BAD_LINES_H
#define SEARCH_BAD_LINES_H

#include "core/crash.h"
#include "core/hashset.h"
#include "core/media.h"

struct bad_lines {
	const struct trace *trace;
	const struct image *base;
	unsigned kinds;	 /* 1 << MEDIA_... */
	uint64_t max;	 /* lines of one state, for each kind */
	uint64_t budget; /* states with a fault; 0: no limit */
	/* Tries `s` with a fault: the image `bad`. Returns 1 if no more states may be tried. */
	int (*check)(void *ctx, const struct crash_state *s, const struct image *bad,
		     const struct media_faults *one, struct err *err);
	void *ctx;

	struct hashset tried; /* images with a fault */
	uint64_t states;      /* the number of states tried */
	struct image old;     /* the memory after `from` events, if `known` */
	uint64_t from;
	bool known;
};

void bad_lines_release(struct bad_lines *b);

/*
 * Makes the lines bad, one at a time, that were written from event `from` on to the crash. Only for
 * a state where nothing, or everything, survived. Each image is tried once. If there are more lines
 * than may be tried, evenly chosen ones are taken. `left_out` gets the number of the others.
 */
int bad_lines_explore(struct bad_lines *b, const struct crash_state *s, uint64_t from,
		      uint64_t *left_out, struct err *err) must_check;

/* Puts faults, as media_format() writes them, on a state that was rebuilt from its id. */
int bad_lines_put(const struct trace *t, const struct image *base, uint64_t from,
		  const char *faults, struct crash_state *state, struct err *err) must_check;

#endif
