/* SPDX-License-Identifier: MIT */
/*
 * subject.h - a place where crash states are tried: the disk of a file system (run/attempt.c), the
 * file of a program in persistent memory (pm/trial.c), or the directory of an application
 * (app/checkers.c).
 *
 *	put -> recover -> look -> check -> clear
 *
 * T1: no state is tried on the remains of another. A place is cleared after each state, however the
 *     try ended; a place without clear() is made all new by the next put().
 * T2: if several steps fail, the first error is returned.
 */
#ifndef SEARCH_SUBJECT_H
#define SEARCH_SUBJECT_H

#include "base/err.h"

/*
 * All functions return 0 or -errno. The subject notes the faults of a state, which are no errors.
 * All but put() may be NULL.
 */
struct subject_ops {
	/* Puts the state into its place. After a failure another state can be put there (T1). */
	int (*put)(void *subject, struct err *err);
	/* Recovers the state. Returns 1 if that is impossible, and there is nothing to look at. */
	int (*recover)(void *subject, struct err *err);
	/* Notes the content after recovery. Returns 1 if it is not fit to be checked. */
	int (*look)(void *subject, struct err *err);
	/* Judges the content, and uses it. Returns 1 if it is not fit to be used. */
	int (*check)(void *subject, struct err *err);
	/* NULL: put() leaves nothing of the state before. */
	int (*clear)(void *subject, struct err *err);
};

/* Tries one state. */
int subject_try(const struct subject_ops *ops, void *subject, struct err *err) must_check;

#endif
