/* SPDX-License-Identifier: MIT */
/* search_impl.h - shared by the files that search. */
#ifndef EXPLORE_SEARCH_IMPL_H
#define EXPLORE_SEARCH_IMPL_H

#include "explore/pickle.h"
#include "explore/search.h"

void search_tell_path(struct search *s);
bool search_stopped(struct search *s);
int search_report(struct search *s, struct err *err) must_check;
/* Where all sides are now; counts it as visited. */
int search_arrive(struct search *s, bool *fresh, struct err *err) must_check;
/* To the empty file system. */
int search_go_home(struct search *s, struct err *err) must_check;
int search_take(struct search *s, uint32_t step, struct err *err) must_check;
/* Keeps what is needed to go on; releases `p`. */
int search_keep(struct search *s, struct pickle *p, struct err *err) must_check;

/* Depth first or breadth first, with the alphabet at hand. */
int search_frames(struct search *s, struct err *err) must_check;

#endif
