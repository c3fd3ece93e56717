/* SPDX-License-Identifier: MIT */
/*
 * keep.h - the directory of a run of `outage pm`: what was recorded, and what was found.
 *
 *	RUN/pm                   key and value a line: what was run, and how; struct pm_plan
 *	RUN/base.img             the file before the run (sparse)
 *	RUN/trace                all that the program did to it
 *	RUN/places               where in the program that was (where.h)
 *	RUN/mark                 of all of these: who made it; see trust.h
 *	RUN/recovery/N/...       the same of what recovery did to a crash state (recovery.h)
 *	RUN/summary              key and value: how far it came; it is written last
 *	RUN/findings/N/case      key and value: the state, and what is wrong; struct pm_case
 *	           .../said      what the command said
 *	           .../mark      of the finding, and of the marks of its runs
 *
 * Of a check, the first failure for each reason is a finding as soon as it is heard; when the run
 * ends, findings of which each stands for all states that it explains take their place.
 *
 * A key is separated from its value by a tab; in a value, tabs, ends of lines and backslashes are
 * \t, \n and \\.
 */
#ifndef PM_KEEP_H
#define PM_KEEP_H

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "trust/trust.h"

struct pm_plan {
	char *file;    /* absolute */
	char *dir;     /* where commands are run */
	char *program; /* with its arguments, quoted for a shell: for people */
	char *check;
	char *dump;
	char *model;   /* of persistence; NULL: "pm" */
	char *recover; /* is run before either of them; NULL: they recover themselves */
	uint64_t granularity, max_subset, budget, seed, timeout_ms;
	uint64_t split;	      /* 0 or 1 */
	uint64_t first_point; /* no crash is tried before */
	uint64_t media;	      /* 1 << MEDIA_...: faults on top of crash states */
	uint64_t media_max;   /* lines of one state that get them */
	uint64_t prune;	      /* 0 or 1: only what recovery and check read is varied */
	uint64_t preload;     /* 0 or 1: traced by the library, without an emulator */
	uint64_t promises;    /* SEMANTIC_..., of each operation; for a dump */
	uint64_t enough;      /* failures for one reason at one point that will do; 0: all */
	bool ours;	      /* this user made it, or takes it for his own; see pm_trust() */
};

void pm_plan_release(struct pm_plan *p);
int pm_plan_save(const char *run, const struct pm_plan *p, struct err *err) must_check;
int pm_plan_load(const char *run, struct pm_plan *out, struct err *err) must_check;
/* Whether this directory holds a run of `outage pm`; a finding of one. */
bool pm_is_run(const char *dir);
bool pm_is_case(const char *dir);
/* The run that a finding belongs to, to be freed. */
char *pm_run_of(const char *case_dir);

struct pm_case {
	char *dir;    /* of the finding; not kept */
	char *state;  /* the id of the crash state */
	char *title;  /* what is lost, or wrong */
	char *cause;  /* "ordering: a fence is missing"; NULL: bad lines, and what is older */
	char *seen;   /* how the command ended */
	char *detail; /* lines for people: the stores, and where they were made */
	uint64_t point, states;
	struct strbuf said;
};

void pm_case_release(struct pm_case *c);
/* What findings need besides themselves is on disk when this returns. */
int pm_run_sync(const char *run, struct err *err) must_check;
/* So is a finding. */
int pm_case_save(const char *run, uint64_t n, const struct pm_case *c, struct err *err) must_check;
/* The same as NAME below the run. */
int pm_case_put(const char *run, const char *name, const struct pm_case *c, struct err *err)
	must_check;
/* It is removed at once. */
int pm_case_remove(const char *run, uint64_t n, struct err *err) must_check;
/* It gets the number of another, which is removed if it is there; one of them always has it. */
int pm_case_move(const char *run, uint64_t n, uint64_t to, struct err *err) must_check;
/* The findings of a run, by their numbers; to be released one by one. */
struct pm_cases vec_of(struct pm_case);
int pm_cases_load(const char *run, struct pm_cases *out, struct err *err) must_check;
int pm_case_load(const char *dir, struct pm_case *out, struct err *err) must_check;

/* Marks a run whose recording is complete; its findings come later. */
int pm_run_mark(const char *run, struct err *err) must_check;
/*
 * Sets `ours`: the marks of the run and of the finding are this user's, or `trust` says that he
 * takes it for his own. Refuses it if it is not: its commands would be run.
 */
int pm_trust(const char *run, const struct pm_case *c, struct pm_plan *p, bool trust,
	     struct err *err) must_check;
/* The keys of plan and case, what the value of each leads to: false after the last. */
bool pm_key(size_t i, struct trust_key *out);

struct pm_summary {
	uint64_t operations, stores, flushes, fences, marks, cpus;
	uint64_t crash_states, unique_states, checked, failing, findings, errors;
	uint64_t left_out, elapsed_ms, budget_hit;
	uint64_t media_states, recoveries, recoveries_tried, recovery_states;
	uint64_t pruned, reads_traced, reads_whole;
	uint64_t known;	  /* states that were left out, as they fail for a known reason */
	uint64_t copies;  /* that were not cut at every line */
	uint64_t dropped; /* failing states that no finding was made of, as they were too many */
};

int pm_summary_save(const char *run, const struct pm_summary *s, struct err *err) must_check;
/* False: it did not come to its end. Then there is no summary. */
bool pm_has_ended(const char *run);
int pm_summary_load(const char *run, struct pm_summary *out, struct err *err) must_check;

#endif
