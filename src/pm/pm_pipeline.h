/* SPDX-License-Identifier: MIT */
/*
 * pm_pipeline.h - all of `outage pm` between its options and what it prints: the program is run
 * once, what it left is checked, its crash states are searched, and what fails is kept.
 */
#ifndef PM_PM_PIPELINE_H
#define PM_PM_PIPELINE_H

#include "pm/pm_search.h"
#include "record/pm_tracer.h"

struct pm_asked {
	struct pm_plan plan;  /* becomes that of the run, if one goes on */
	struct tracer tracer; /* opened by pm_pipeline(), closed by the caller */
	const char *output;   /* the run's directory; NULL: a new one */
	const char *resume;   /* goes on with that run; or NULL */
	uint64_t given;	      /* then the fields of the plan that must be the same; see given.h */
	bool trust;	      /* and it is taken for this user's */
	const char *const *argv; /* of the program */
	uint64_t size;		 /* bytes of a file that is made; 0: none */
	uint64_t start_ns;	 /* when all began */
	uint64_t time_ns;	 /* for the search; 0: no limit */
	uint64_t jobs;
	const volatile sig_atomic_t *stop;
	/* Called meanwhile. */
	void (*progress)(void *ctx, uint64_t checked, uint64_t failing);
	/* The first failure for a reason; it is the n-th. */
	void (*failed)(void *ctx, const struct pm_failure *f, size_t reasons);
	/* A finding, in the end; `kept` if it is on disk under its number. */
	void (*found)(void *ctx, const struct pm_case *c, size_t number, bool kept);
	void *ctx;
};

struct pm_outcome {
	char *dir;    /* of the run; to be freed, whatever happened */
	bool kept;    /* there may be findings, also after an error */
	bool untried; /* no crash state was checked */
	bool stopped; /* by a signal or the time: there is more to do */
	bool cut;     /* the first crashes, by that or the budget */
	struct pm_summary summary;
	uint64_t recovery_ways, recovery_resized;
	double media_left_out, recovery_left_out;
	char error[512]; /* the first of summary.errors */
};

/* A file that was not there before is not there afterwards. `out` is zeroed before. */
int pm_pipeline(struct pm_asked *asked, struct pm_outcome *out, struct err *err) must_check;

#endif
