/* SPDX-License-Identifier: MIT */
/* search_impl.h - shared by the files that search. */
#ifndef EXPLORE_SEARCH_IMPL_H
#define EXPLORE_SEARCH_IMPL_H

#include "explore/explore_pickle.h"
#include "explore/explore_search.h"

void search_tell_path(struct search *s);
bool search_stopped(struct search *s);
int search_report(struct search *s, struct err *err) must_check;
/*
 * Counts where all sides are as visited. True if the steps from there have to be taken; `again`:
 * all but those to where the way is shorter now were, or are still to be.
 */
bool search_claim(struct search *s, bool *again);
/* To the empty file system. */
int search_go_home(struct search *s, struct err *err) must_check;
int search_take(struct search *s, uint32_t step, struct err *err) must_check;
/* Whether it is time to keep what is needed to go on, for the case that it is killed. */
bool search_is_time_to_keep(const struct search *s);
/* Keeps what is needed to go on; releases `p`. */
int search_keep(struct search *s, struct pickle *p, struct err *err) must_check;

/* Depth first or breadth first, with the alphabet at hand. `done`: all was visited. */
int search_frames(struct search *s, bool *done, struct err *err) must_check;

#endif
