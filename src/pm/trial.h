/* SPDX-License-Identifier: MIT */
/*
 * trial.h - puts one crash state in the place of the program's file, and runs the command that
 * recovers, if there is one, and the command that checks or dumps.
 */
#ifndef PM_TRIAL_H
#define PM_TRIAL_H

#include "pm/pm_search.h"

/* For a process that ends after it: nothing is released. */
struct pm_trial {
	const struct pm_plan *plan;
	const struct trace *trace; /* the commands get its marks */
	struct pm_file *file;
	struct sandbox_opts check;
	struct answers *answers; /* may be NULL */
	bool watch;		 /* find changes to good states */
	/* The current state: */
	const struct image *img;
	uint64_t point;
	struct check_result r;
	bool changed; /* the commands changed the file; the hash of the changes: */
	struct hash128 change;
	bool resized;	     /* the commands changed the file's size */
	struct strbuf marks; /* the marks before marks_point */
	uint64_t marks_point;
};

/*
 * Prepares trials. The commands are those of run `r`; the states, and the size of the file, are
 * those of `of`: the run itself, or one of its recoveries, which may have enlarged the file.
 */
int pm_trial_init(struct pm_trial *t, const struct pm_run *r, const struct pm_run *of,
		  struct err *err) must_check;
/*
 * Tries an image of a crash at a point. The commands get the bad lines in it, in the words of
 * media_format(); NULL: there are none.
 */
int pm_trial_check(struct pm_trial *t, const struct image *img, uint64_t point, const char *bad,
		   struct err *err) must_check;

#endif
