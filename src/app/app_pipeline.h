/* SPDX-License-Identifier: MIT */
/*
 * app_pipeline.h - all of `outage app` between its options and its output: runs the application
 * once, checks its directory, searches its crash states, and keeps the findings.
 */
#ifndef APP_APP_PIPELINE_H
#define APP_APP_PIPELINE_H

#include "app/app_keep.h"
#include "app/app_search.h"

struct app_asked {
	struct app_plan plan; /* replaced by that of the resumed run */
	const char *output;   /* the run's directory; NULL: a new one */
	const char *resume;   /* the run to be resumed; or NULL */
	uint64_t given;	      /* resume: the fields of the plan that must agree; see given.h */
	bool trust;	      /* resume: the run is trusted as this user's */
	uint64_t start_ns;    /* when the command began */
	uint64_t time_ns;     /* the time limit of the search; 0: none */
	uint64_t jobs;
	const volatile sig_atomic_t *stop;
	/* Called after the recording: from then on a signal need not end this process. */
	void (*recorded)(void *ctx);
	/* Called from time to time during the search. */
	void (*progress)(void *ctx, const struct search_totals *t, uint64_t findings);
	/* Called for each finding, which is kept as number `n`. */
	void (*found)(void *ctx, const struct app_case *c, uint64_t n);
	void *ctx;
};

struct app_outcome {
	char *dir; /* the run's directory; freed in any case */
	struct app_summary summary;
	double checked_s; /* the time until all states of the run were checked */
	bool by_signal;	  /* a signal ended the search */
	bool broken;	  /* the search could not go on */
	bool untried;	  /* no crash state was checked */
	bool stopped;	  /* a signal or the time limit ended it: the run can be resumed */
	/* Part of summary.errors: states of the run that could not be checked, and the reason. */
	uint64_t unchecked;
	char why_unchecked[768];
	struct err error;    /* the first other error */
	struct err unmarked; /* why the run does not get this user's mark */
};

/* `out` is zeroed by the caller. After an error, too, `out` may have findings. */
int app_pipeline(struct app_asked *asked, struct app_outcome *out, struct err *err) must_check;
void app_outcome_release(struct app_outcome *o);

#endif
