/* SPDX-License-Identifier: MIT */
/*
 * crash_plan.h - the layers of the enumeration, as steps in the order they are taken. Private to
 * crash*.c; other rooms include crash.h.
 */
#ifndef CORE_CRASH_PLAN_H
#define CORE_CRASH_PLAN_H

#include "core/crash_view.h"

struct crash_step {
	enum crash_layer layer;
	uint32_t k; /* of the subset layers, else 0 */
	bool few;   /* crash_opts.few_tears */
};

struct crash_plan {
	unsigned layers; /* CRASH_WITH_... */
	bool narrowed;	 /* fewer pieces may vary than are loose */
	bool few;	 /* crash_opts.few_tears */
	struct vec_of(struct crash_step) steps;
	size_t first_subset;	       /* the first step of the subset layers */
	size_t far_subsets;	       /* the first of those that come after the torn layers, */
	uint32_t near_max, subset_max; /* which begin with the size after this; the largest */
	size_t at[CRASH_UNITS + 1];    /* the step of each other layer; SIZE_MAX: none */
};

/* `loose_max`: the most pieces that are loose at any point. */
void crash_plan_init(struct crash_plan *p, const struct crash_opts *opts, size_t loose_max);
void crash_plan_release(struct crash_plan *p);

/* The one step that tries the fates in the view; the number of steps if none does. */
size_t crash_plan_find(const struct crash_plan *p, const struct crash_view *v);

/*
 * Whether a step has anything to try at a point with n pieces that vary, of which the first `old`
 * are the old ones.
 */
bool crash_step_has_members(struct crash_step step, uint64_t n, uint64_t old);
/* How many sets of a step are known without trying, because no piece that is not old survives. */
uint64_t crash_step_skips(const struct crash_plan *p, size_t step, struct crash_view *v);
/* Whether the fates in the view are one of those. */
bool crash_step_skipped(struct crash_step step, const struct crash_view *v);
/* How many sets the torn layers have, if few tears stand for all. */
uint64_t crash_few_tears(unsigned layers, const struct crash_view *v);
/* Chooses fates that the step could try; not all are its own, see crash_plan_find(). */
void crash_step_choose(struct crash_step step, struct crash_view *v, struct choice *c);

#endif
