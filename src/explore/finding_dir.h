/* SPDX-License-Identifier: MIT */
/*
 * finding_dir.h - where findings are that are kept at once, and replaced by smaller ones.
 *
 *	RUN/findings/NAME	a complete finding
 *	RUN/whole/NAME		as it was found, once a smaller one has taken its place
 *
 * From the first on there is a complete finding below RUN/findings at every moment, whatever dies:
 * each is written by io_newdir (base/io.h), so that it appears whole and on disk. The first that is
 * smaller is written to RUN/whole, and the two change places; others replace the one before.
 */
#ifndef EXPLORE_FINDING_DIR_H
#define EXPLORE_FINDING_DIR_H

#include "base/err.h"
#include "base/util.h"

enum { FINDING_HANGS = 999000 }; /* numbers of hangs, which the parent keeps, begin here */

/* "3-0", to be freed: the third finding of task 0. */
char *finding_dir_name(uint64_t number, unsigned worker);
/* The first number from `number` on that no finding of the task has. */
uint64_t finding_dir_free(const char *run, uint64_t number, unsigned worker);
/* Where the next one is to be written, below RUN; to be freed. */
int finding_dir_next(const char *run, const char *name, char **next, struct err *err) must_check;
/* The files at `next` are the finding from now on. */
int finding_dir_take(const char *run, const char *name, const char *next, struct err *err)
	must_check;
/* Removes a finding, also as it was found. */
int finding_dir_remove(const char *run, const char *name, struct err *err) must_check;

#endif
