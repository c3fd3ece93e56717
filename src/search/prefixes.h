/* SPDX-License-Identifier: MIT */
/*
 * prefixes.h - the states of a trace of persistent memory where nothing is lost. Only one of
 * several equal images is tried, which may have lost stores that made no difference; this file
 * tells whether the same image exists without a loss.
 */
#ifndef SEARCH_PREFIXES_H
#define SEARCH_PREFIXES_H

#include "core/crash.h"
#include "core/u64map.h"

struct prefixes {
	struct u64map at;	       /* by image and marks: the first point */
	struct vec_of(uint64_t) marks; /* events, ascending */
};

/* Finds the states at some points. */
void prefixes_find(const struct trace *t, const struct image *base,
		   const struct crash_points *points, struct prefixes *out);
void prefixes_release(struct prefixes *p);
/*
 * Returns the first point with the marks and the memory of a state; else, or if torn, U64MAP_NONE.
 */
uint32_t prefixes_like(const struct prefixes *p, const struct crash_state *s);

#endif
