/* SPDX-License-Identifier: MIT */
/*
 * second.h - a second crash, while the first one is recovered from: which first crashes get second
 * ones, and how many states each. A first crash is the id of its state, what recovery does to it a
 * hash: what was crashed does not matter here.
 */
#ifndef SEARCH_SECOND_H
#define SEARCH_SECOND_H

#include "base/hash.h"
#include "base/vec.h"

/* A state that is good, and what recovery does to it. */
struct second_way {
	struct hash128 what;
	char *state;
};

struct second_ways vec_of(struct second_way);

void second_ways_release(struct second_ways *w);
/*
 * Leaves one state for each way in which recovery changes one; if those are more than `max`, some
 * that lie evenly among them. How many ways there are is returned.
 */
size_t second_ways_choose(struct second_ways *w, uint64_t max);
/* How many states are for one of so many first crashes, if so many are left for all. */
uint64_t second_share(uint64_t left, uint64_t firsts);

#endif
