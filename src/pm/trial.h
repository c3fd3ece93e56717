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
	const struct pm_run *run;
	struct pm_file *file;
	struct check_opts check;
	struct check_result r; /* of the last state */
	struct strbuf marks;   /* before that point */
	uint64_t marks_point;
};

int pm_trial_init(struct pm_trial *t, const struct pm_run *r, struct err *err) must_check;
/* An image of a crash at a point. */
int pm_trial_check(struct pm_trial *t, const struct image *img, uint64_t point, struct err *err)
	must_check;
/* The same with bad lines; `old` is what stale ones go back to. */
int pm_trial_check_bad(struct pm_trial *t, const struct image *img, uint64_t point,
		       const struct media_faults *faults, const struct image *old, struct err *err)
	must_check;

#endif
