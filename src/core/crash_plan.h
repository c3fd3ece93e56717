/* SPDX-License-Identifier: MIT */
/*
 * crash_plan.h - the layers of the enumeration, as steps in the order in which they are taken.
 * Private to crash*.c; other rooms include crash.h.
 */
#ifndef CORE_CRASH_PLAN_H
#define CORE_CRASH_PLAN_H

#include "core/crash_view.h"

struct crash_step {
	enum crash_layer layer;
	uint32_t k; /* for the subset layers, else 0 */
	bool few;   /* crash_opts.few_tears */
};

struct crash_plan {
	unsigned layers; /* CRASH_WITH_... */
	bool narrowed;	 /* not all loose pieces may vary */
	bool few;	 /* crash_opts.few_tears */
	struct vec_of(struct crash_step) steps;
	size_t first_subset;	       /* the first step of the subset layers */
	size_t far_subsets;	       /* the first of these after the torn layers */
	uint32_t near_max, subset_max; /* the largest k before far_subsets; of all */
	size_t at[CRASH_UNITS + 1];    /* the step of each other layer; SIZE_MAX: none */
};

/* `loose_max`: the largest number of loose pieces at any point. */
void crash_plan_init(struct crash_plan *p, const struct crash_opts *opts, size_t loose_max);
void crash_plan_release(struct crash_plan *p);

/* Returns the one step that tries the fates in the view; the number of steps if none does. */
size_t crash_plan_find(const struct crash_plan *p, const struct crash_view *v);

/*
 * True if a step has a set to try at a point with n varying pieces, the first `old` of which are
 * old.
 */
bool crash_step_has_members(struct crash_step step, uint64_t n, uint64_t old);
/* The number of sets of a step that are known without trying, because only old pieces survive. */
uint64_t crash_step_skips(const struct crash_plan *p, size_t step, struct crash_view *v);
/* True if the fates in the view are one of these sets. */
bool crash_step_skipped(struct crash_step step, const struct crash_view *v);
/* The number of sets of the torn layers if few tears stand for all. */
uint64_t crash_few_tears(unsigned layers, const struct crash_view *v);
/* Chooses fates that the step could try; some belong to another step, see crash_plan_find(). */
void crash_step_choose(struct crash_step step, struct crash_view *v, struct choice *c);

#endif
