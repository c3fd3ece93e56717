/* SPDX-License-Identifier: MIT */
/*
 * dist.h - how often each of several things is drawn.
 *
 * A distribution gives a weight to each place of an ordered list, the first place being what
 * programs use most. A wheel draws places by weight. Weights are turned into whole numbers once, so
 * that the same seed draws the same everywhere.
 */
#ifndef EXPLORE_DIST_H
#define EXPLORE_DIST_H

#include "base/rng.h"
#include "base/vec.h"

enum dist {
	DIST_UNIFORM,	    /* all the same */
	DIST_RANK,	    /* rank-size: the n-th place gets 1/n */
	DIST_INVERSE,	    /* the same, from the other end */
	DIST_DECAY,	    /* each place gets 0.9 of the one before it */
	DIST_INVERSE_DECAY, /* the same, from the other end */
	DIST_END
};

/* DIST_END if there is none of that name. */
enum dist dist_find(const char *name);
/* The weight of place `i` of `n`; more than 0. */
double dist_weight(enum dist d, size_t i, size_t n);

struct wheel {
	struct vec_of(uint64_t) ends; /* running sums */
};

void wheel_release(struct wheel *w);
void wheel_clear(struct wheel *w);
/* Adds a place. Weights are 0 or more, and at most WHEEL_WEIGHT_MAX. */
void wheel_add(struct wheel *w, double weight);
#define WHEEL_WEIGHT_MAX 1e6
/* Whether something can be drawn: not all weights are zero. */
bool wheel_turns(const struct wheel *w);
size_t wheel_draw(const struct wheel *w, struct rng *r);

#endif
