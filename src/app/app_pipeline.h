/* SPDX-License-Identifier: MIT */
/*
 * app_pipeline.h - all of `outage app` between its options and what it prints: the application is
 * run once, what it left is checked, its crash states are searched, and what fails is kept.
 */
#ifndef APP_APP_PIPELINE_H
#define APP_APP_PIPELINE_H

#include "app/app_keep.h"
#include "app/app_search.h"

struct app_asked {
	struct app_plan plan; /* becomes that of the run, if one goes on */
	const char *output;   /* the run's directory; NULL: a new one */
	const char *resume;   /* goes on with that run; or NULL */
	uint64_t given;	      /* then the fields of the plan that must be the same; see given.h */
	bool trust;	      /* and it is taken for this user's */
	uint64_t start_ns;    /* when all began */
	uint64_t time_ns;     /* for the search; 0: no limit */
	uint64_t jobs;
	const volatile sig_atomic_t *stop;
	/* The application has run: from now on a signal need not end this process. */
	void (*recorded)(void *ctx);
	/* Called meanwhile. */
	void (*progress)(void *ctx, const struct search_totals *t, uint64_t findings);
	/* A finding, which is kept as number `n`. */
	void (*found)(void *ctx, const struct app_case *c, uint64_t n);
	void *ctx;
};

struct app_outcome {
	char *dir; /* of the run; to be freed, whatever happened */
	struct app_summary summary;
	double checked_s; /* until all states of the run were checked */
	bool by_signal;	  /* a signal ended the search */
	bool broken;	  /* or the search could not go on */
	bool untried;	  /* no crash state was checked */
	bool stopped;	  /* by a signal or the time: there is more to do */
	/* A part of summary.errors: states of the run that could not be checked, and why. */
	uint64_t unchecked;
	char why_unchecked[768];
	struct err error;    /* the first of the others */
	struct err unmarked; /* why nothing gets this user's mark */
};

/* `out` is zeroed before. After an error there may be findings in it all the same. */
int app_pipeline(struct app_asked *asked, struct app_outcome *out, struct err *err) must_check;
void app_outcome_release(struct app_outcome *o);

#endif
