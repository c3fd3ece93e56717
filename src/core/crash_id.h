/* SPDX-License-Identifier: MIT */
/*
 * crash_id.h - the ids of crash states, whose form crash.h describes. Private to crash*.c; other
 * rooms include crash.h.
 */
#ifndef CORE_CRASH_ID_H
#define CORE_CRASH_ID_H

#include "core/crash_view.h"

/* The id of the fates in the view, which must be closed. */
void crash_id_make(const struct crash_view *v, uint64_t point, struct strbuf *id);

/* The beginning of an id: the digits before the survivors. */
struct crash_id_head {
	uint64_t kind; /* its first digit */
	uint64_t point;
	uint32_t tear_unit; /* 0: nothing is torn */
};

/*
 * An id is read in two parts, as the second needs a model at the crash point. Both functions lead
 * to a dead end of `c` if the id fits no state.
 */
struct crash_id_head crash_id_begin(struct choice *c, uint64_t n_events);
/* Chooses the fates, which are not closed then. The view must be loaded without options. */
void crash_id_choose(const struct crash_id_head *head, struct crash_view *v, struct choice *c);
/* Asserts that the id made of the fates in the view leads back to these fates: I4 of crash_id.c.
 */
void crash_id_check(struct crash_view *v, uint64_t n_events, const struct strbuf *id);

#endif
