/* SPDX-License-Identifier: MIT */
/*
 * second.h - a second crash, while the first one is recovered from: which first crashes get second
 * ones, and how many states each. A first crash is the id of its state, and a way is what recovery
 * does to it, as a hash: what was crashed does not matter here.
 *
 * Which states are chosen follows from the ways alone. Each way has one state, that of the most
 * worth. The way of the most worth of each kind comes before all other ways, those that lead
 * first. Of the rest there are as many as there is room for, evenly from the first to the last.
 */
#ifndef SEARCH_SECOND_H
#define SEARCH_SECOND_H

#include "base/hash.h"
#include "base/vec.h"

/* A state that is good, and what recovery does to it. */
struct second_way {
	struct hash128 what;
	char *state;
	struct hash128 kind; /* of each, one comes before all others; zeros in all: none */
	bool leads;	     /* comes before those of which this is not true */
	uint64_t worth, turn;
	bool first; /* of its kind; second_ways_choose() finds out */
};

struct second_ways vec_of(struct second_way);

void second_ways_release(struct second_ways *w);
/* Leaves at most `max`, in the order in which they are tried. How many ways there are. */
size_t second_ways_choose(struct second_ways *w, uint64_t max);
/* How many states are for one of so many first crashes, if so many are left for all. */
uint64_t second_share(uint64_t left, uint64_t firsts);

#endif
