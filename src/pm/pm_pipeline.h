/* SPDX-License-Identifier: MIT */
/*
 * pm_pipeline.h - all of `outage pm` between its options and its output: runs the program once,
 * checks its file, searches its crash states, and keeps the findings.
 */
#ifndef PM_PM_PIPELINE_H
#define PM_PM_PIPELINE_H

#include "pm/pm_search.h"
#include "record/pm_tracer.h"

struct pm_asked {
	struct pm_plan plan;	 /* replaced by that of the resumed run */
	struct tracer tracer;	 /* opened by pm_pipeline(), closed by the caller */
	const char *output;	 /* the run's directory; NULL: a new one */
	const char *resume;	 /* the run to be resumed; or NULL */
	uint64_t given;		 /* resume: the fields of the plan that must agree; see given.h */
	bool trust;		 /* resume: the run is trusted as this user's */
	const char *const *argv; /* the program */
	uint64_t size;		 /* the size of the file, if it is made; 0: it is not */
	uint64_t start_ns;	 /* when the command began */
	uint64_t time_ns;	 /* the time limit of the search; 0: none */
	uint64_t jobs;
	const volatile sig_atomic_t *stop;
	/* Called from time to time during the search. */
	void (*progress)(void *ctx, uint64_t checked, uint64_t failing);
	/* Called for the first failure for each reason, the n-th reason. */
	void (*failed)(void *ctx, const struct pm_failure *f, size_t reasons);
	/* Called for each final finding; `kept` if it is on disk under its number. */
	void (*found)(void *ctx, const struct pm_case *c, size_t number, bool kept);
	void *ctx;
};

struct pm_outcome {
	char *dir;    /* the run's directory; freed in any case */
	bool kept;    /* findings may have been kept, even after an error */
	bool untried; /* no crash state was checked */
	bool stopped; /* a signal or the time limit ended it: the run can be resumed */
	bool cut;     /* a signal, the time or the budget ended the first crashes */
	struct pm_summary summary;
	uint64_t recovery_ways, recovery_resized;
	double media_left_out, recovery_left_out;
	char error[512]; /* the first error of summary.errors */
};

/* A file that did not exist is removed in the end. `out` is zeroed by the caller. */
int pm_pipeline(struct pm_asked *asked, struct pm_outcome *out, struct err *err) must_check;

#endif
