/* SPDX-License-Identifier: MIT */
/*
 * pm_keep.h - the directory of a run of `outage pm`: what was recorded, and what was found. Besides
 * what every run has (case/dir.h) there is
 *
 *	RUN/base.img             the file before the run (sparse)
 *	RUN/trace                all that the program did to it
 *	RUN/places               where in the program that was (where.h)
 *	RUN/answers              what checks said so far (case/answers.h)
 *	RUN/recovery/N/...       the same of what recovery did to a crash state (recovery.h)
 *
 * With a check, the first failure for each reason is a finding at once; when the run ends, findings
 * that each stand for all states that they explain take their place.
 */
#ifndef PM_PM_KEEP_H
#define PM_PM_KEEP_H

#include "case/dir.h"
#include "case/plan_def.h"

enum { PM_CRASH_REORDER = 1 << 0, PM_CRASH_RECOVERY = 1 << 1 };

struct pm_plan {
#define PLAN_AS MEMBER
#include "pm/pm_options.def"
	bool ours; /* this user made it, or takes it for his own; see case_trust() */
};

void pm_plan_release(struct pm_plan *p);
int pm_plan_load(const char *run, struct pm_plan *out, struct err *err) must_check;

struct pm_case {
	CASE_FINDING;
	char *title;  /* says what is lost, or wrong */
	char *cause;  /* "ordering: a fence is missing"; NULL: bad lines */
	char *seen;   /* how the command ended */
	char *detail; /* lines for people: the stores, and where they were made */
	uint64_t point, states;
};

/* "CAUSE: TITLE", as rules that suppress it name it; to be freed. */
char *pm_case_cluster(const struct pm_case *c);
bool pm_cause_known(const char *name);
extern const struct case_kind pm_kind;

/* The findings of a run, by their numbers; to be released one by one. */
struct pm_cases vec_of(struct pm_case);
int pm_cases_load(const char *run, struct pm_cases *out, struct err *err) must_check;
struct pm_summary {
	uint64_t operations, stores, flushes, fences, marks, cpus;
	uint64_t crash_states, unique_states, checked, failing, findings, errors;
	uint64_t left_out, elapsed_ms, budget_hit;
	uint64_t media_states, recoveries, recoveries_tried, recovery_states;
	uint64_t pruned, reads_traced, reads_whole;
	uint64_t known;	     /* states that were left out, as they fail for a known reason */
	uint64_t suppressed; /* findings that a rule names */
	uint64_t not_kept;   /* findings that were told, and are too many to be kept */
	uint64_t copies;     /* not cut at every line */
	uint64_t dropped;    /* failing states that no finding was made of, as they were too many */
};

#endif
