/* SPDX-License-Identifier: MIT */
/*
 * test_run.h - a run of `outage test` but for its workers: its directory is made, or an interrupted
 * one goes on.
 */
#ifndef RUN_TEST_RUN_H
#define RUN_TEST_RUN_H

#include "case/suppress.h"
#include "run/earlier.h"
#include "run/plan.h"
#include "run/supply.h"

struct test_run {
	/* As the options say: */
	struct plan plan;
	struct suppress suppress;
	const char *output; /* the directory to be made; NULL: a new one */
	const char *resume; /* the run that goes on, or NULL */
	bool trust;	    /* the user takes it for his own */

	char *dir;
	struct supply source;
	struct progress progress;
	struct earlier earlier;
	struct err unmarked; /* why nothing gets this user's mark */
};

void test_run_init(struct test_run *r);
void test_run_release(struct test_run *r);

/* The plan has a target, and bounds or files. From here on the run can go on if it is killed. */
int test_run_begin(struct test_run *r, struct err *err) must_check;
int test_run_resume(struct test_run *r, struct err *err) must_check;
/* The directory of a run that could not do anything is not left, unless there is more in it. */
void test_run_abandon(const struct test_run *r);
/*
 * How many findings that were kept before should have shown again, and did not, now that their
 * workload is done; `first` gets one of them.
 */
uint64_t test_run_missed(const struct test_run *r, const struct earlier_case **first);

#endif
