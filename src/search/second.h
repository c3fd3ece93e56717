/* SPDX-License-Identifier: MIT */
/*
 * second.h - a second crash, during recovery from the first one: which first crashes get second
 * ones, and how many states each. A first crash is given as the id of its state, and a way as a
 * hash of the changes by recovery: the kind of subject does not matter here.
 *
 * The choice follows from the ways alone. Each way has one state, that of the greatest worth. The
 * way of the greatest worth of each kind comes before all other ways; among these, ways that lead
 * come first. Other ways fill the rest, evenly from the first to the last.
 */
#ifndef SEARCH_SECOND_H
#define SEARCH_SECOND_H

#include "base/hash.h"
#include "base/vec.h"

/* A good state, and the changes that recovery makes to it. */
struct second_way {
	struct hash128 what;
	char *state;
	struct hash128 kind; /* one way of each comes before all others; all zeros: no kinds */
	bool leads;	     /* comes before ways that do not lead */
	uint64_t worth, turn;
	bool first; /* of its kind; set by second_ways_choose() */
};

struct second_ways vec_of(struct second_way);

void second_ways_release(struct second_ways *w);
/* Keeps at most `max` ways, in the order in which they are tried. Returns how many there were. */
size_t second_ways_choose(struct second_ways *w, uint64_t max);
/* Returns how many states one of `firsts` first crashes gets, if `left` are left for all. */
uint64_t second_share(uint64_t left, uint64_t firsts);

#endif
