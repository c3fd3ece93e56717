/* SPDX-License-Identifier: MIT */
/*
 * semantics.h - the states of one recorded run of persistent memory, judged together.
 *
 * A crash may fall into an operation, and what is then there must be the state before it or the one
 * after it, where the guarantee says so; when it has returned there must be one state only. The
 * comparison takes all states of the operation (check/semantic.h). Each problem of a single state
 * (a promise that is broken, a mount that fails) goes into the same table, so that each finding
 * says whether a flush or fence would mend it, and which store makes the difference.
 *
 * Of all crashes that lead to one wrong state of one operation, one is told.
 */
#ifndef RUN_SEMANTICS_H
#define RUN_SEMANTICS_H

#include "run/state_judge.h"

/* `points` are those of the states that will be added. Borrows `r` and `j`. */
struct semantics *semantics_new(struct run *r, const struct state_judge *j,
				const struct crash_points *points);
void semantics_free(struct semantics *s); /* NULL is fine */
/* Adds what a state recovered to. Each state once. */
void semantics_add(struct semantics *s, const struct crash_state *state, const struct attempt *a);
/* Tells what is wrong. `only` is the id of a state of which alone it is told; NULL: of all. */
int semantics_tell(struct semantics *s, const char *only, struct err *err) must_check;

/* Judges one state of a recorded run, by itself and by the operation it is in or after. */
int semantics_check_one(struct run *r, const struct state_judge *j, const struct crash_state *state,
			struct err *err) must_check;

#endif
