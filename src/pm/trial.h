/* SPDX-License-Identifier: MIT */
/*
 * trial.h - one crash state is put in the place of the program's file, and looked at: by the
 * command that recovers, if there is one, and by the one that checks or dumps.
 */
#ifndef PM_TRIAL_H
#define PM_TRIAL_H

#include "pm/pm_search.h"

/* In a process that ends with it: nothing is released. */
struct pm_trial {
	const struct pm_plan *plan;
	const struct trace *trace; /* its marks are told */
	struct pm_file *file;
	struct sandbox_opts check;
	struct answers *answers; /* or NULL */
	bool watch;		 /* look at what is changed in a state that is good */
	/* The state that is tried: */
	const struct image *img;
	uint64_t point;
	struct check_result r;
	bool changed; /* the commands did that, to what has this hash: */
	struct hash128 change;
	bool resized;	     /* or gave the file another size */
	struct strbuf marks; /* before marks_point */
	uint64_t marks_point;
};

/*
 * The commands are those of the run `r`; the states, and the size of the file, are those of `of`:
 * the run itself, or one of its recoveries, which may have made the file larger.
 */
int pm_trial_init(struct pm_trial *t, const struct pm_run *r, const struct pm_run *of,
		  struct err *err) must_check;
/* An image of a crash at a point. The bad lines in it, in the words of media_format(), are told the
 * commands; NULL: there are none. */
int pm_trial_check(struct pm_trial *t, const struct image *img, uint64_t point, const char *bad,
		   struct err *err) must_check;

#endif
