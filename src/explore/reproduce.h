/* SPDX-License-Identifier: MIT */
/*
 * reproduce.h - makes what was found show again, with as little as possible.
 *
 * From the nearest state that was saved there are few steps to do again, and these are made fewer
 * first. Then those before it, from the saved state before that, and so on down to the empty file
 * system: however long the path was, each try is short. A finding that shows from a saved state and
 * not from an empty file system keeps that state as its beginning.
 */
#ifndef EXPLORE_REPRODUCE_H
#define EXPLORE_REPRODUCE_H

#include "explore/explore_search.h"

struct reproduced {
	struct shrunk shrunk;
	const struct point *start; /* the script's first state; NULL: new file systems */
	size_t start_steps;	   /* of the path that lead there */
	uint64_t runs;		   /* runs of scripts, all together */
	uint64_t steps;		   /* operations of the target in them */
	bool cut; /* told to end: the smallest script is the one how->shown() was called with */
};

/*
 * `script` is the path that was found, and becomes what is left of it. The sides are anywhere
 * afterwards. If it does not show again, the script stays and out->shrunk.shown is 0. `how` has the
 * signature, and who wants to know of all that show; the rest of it is decided here.
 */
int reproduce(const struct search *s, struct script *script, const struct shrink_how *how,
	      struct reproduced *out, struct err *err) must_check;

#endif
