/* SPDX-License-Identifier: MIT */
/*
 * pm_search.h - puts every crash state of a run in place, and runs the commands on it. For a check,
 * failures are reported, and those that lose the same stores are one finding. For a dump, all
 * output is reported: check/semantic.h judges the states of each operation when all are known.
 */
#ifndef PM_PM_SEARCH_H
#define PM_PM_SEARCH_H

#include <signal.h>

#include "sandbox/check_run.h"
#include "core/media.h"
#include "pm/cause.h"
#include "pm/pm_run.h"
#include "search/recovery_reads.h"
#include "search/second.h"

struct pm_failure;

struct pm_search_opts {
	const struct pm_run *run;
	/* If `run` is a recovery: the run that it is of, and 1 + the recovery's number. */
	const struct pm_run *whole;
	uint64_t recovery;
	uint64_t budget;     /* states; 0: no limit */
	bool changes;	     /* report what recovery changes, for recovery.h */
	struct reads *reads; /* NULL: all pieces vary */
	unsigned jobs;
	uint64_t until_ns; /* by util_now_ns(); 0: no limit */
	const volatile sig_atomic_t *stop;
	void (*progress)(void *ctx, uint64_t checked, uint64_t failing);
	/* Called, for a check, with the first failure for each reason; may be NULL. */
	void (*failed)(void *ctx, const struct pm_failure *f);
	void *ctx;
};

/* A failing state; with a dump, any state. */
struct pm_failure {
	char *state;
	uint64_t point;
	enum crash_layer layer;
	enum check_end end;
	int exit_code, signal;
	enum semantic_cause cause; /* if it fails */
	uint64_t prefix;	   /* for logic: "1.PREFIX" is the same state, without a loss */
	/* Numbers of lost parts and of surviving events; the first PM_LIST_MAX are listed. */
	uint64_t n_lost, n_survived;
	struct crash_part *lost;
	size_t n_decisive; /* so many of the first ones are decisive; 0: unknown */
	uint64_t *survived;
	char *said;
	uint64_t recovery; /* 1 + the number of the recovery that the state belongs to; 0: none */
	bool media;	   /* `fault` is a bad line */
	struct media_fault fault;
};

enum { PM_LIST_MAX = 1024 };

static inline size_t pm_listed(uint64_t n)
{
	return (size_t)min(n, (uint64_t)PM_LIST_MAX);
}

struct pm_failures vec_of(struct pm_failure);
/* The same failures in an order. */
struct pm_failures_sorted vec_of(const struct pm_failure *);
void pm_failures_sort(const struct pm_failures *f, int (*by)(const void *, const void *),
		      struct pm_failures_sorted *out);

/* Reasons of failures so far: a key for each that no earlier one explains. */
struct pm_reasons vec_of(struct pm_key);

/* Counts of what is done: of a share, by one worker or several, or of all. */
struct pm_tally {
	uint64_t checked, failing, errors;
	uint64_t known;	       /* left out: such losses have failed often enough */
	uint64_t media_states; /* of those checked: with a bad line */
	uint64_t resized;      /* good states whose size recovery changes */
	double media_left_out;
	bool stopped;
	struct crash_stats stats;
};

struct pm_found {
	struct pm_tally all;
	struct second_ways changes;  /* changes that recovery makes to good states */
	char error[512];	     /* the first error */
	struct pm_failures failures; /* for a check; the first for each reason, and more */
	struct pm_reasons reasons;   /* of the failures; empty for a dump */
	uint64_t dropped;	     /* failures that were too many to keep */
};

int pm_search(const struct pm_search_opts *o, struct pm_found *out, struct err *err) must_check;
void pm_found_release(struct pm_found *f);
/* Returns how long a worker may be silent: it runs at most two commands without a message. */
uint64_t pm_patience_ms(const struct pm_plan *p);
/* Takes a failure of a check. True if it is the first for its reason, and so the last one kept. */
bool pm_found_add(struct pm_found *found, const struct pm_run *r, struct pm_failure *f);

/*
 * Checks one state, given by its id; "rN:ID" is one of a recovery, "ID/FAULT" has a bad line. `f`
 * is written if the state was checked; f->end tells.
 */
int pm_search_one(const struct pm_run *r, const char *id, struct pm_failure *f, struct err *err)
	must_check;
/* Returns the run of a failure's state: this one, or one of its recoveries. */
const struct pm_run *pm_failure_run(const struct pm_run *r, const struct pm_failure *f);
void pm_failure_release(struct pm_failure *f);

/* Makes one case of the failures that lose the same stores; to be released one by one. */
void pm_cluster(const struct pm_run *r, const struct pm_failures *f, struct pm_cases *out);

/* Makes a case for each state of a dump that an operation must not leave. */
void pm_judge_dumps(const struct pm_run *r, const struct pm_failures *f, struct pm_cases *out,
		    uint64_t *failing);

/* Returns the key of a failure: the places of the stores that it loses. */
struct pm_key pm_failure_key(const struct pm_run *r, const struct pm_failure *f);
/* Returns the first reason that explains failures with a key; all->n if none does. */
size_t pm_reasons_find(const struct pm_reasons *all, const struct pm_key *k);
/* True if the reason of a failure is new. When some thousands are known, no more are. */
bool pm_reasons_add(struct pm_reasons *all, const struct pm_run *r, const struct pm_failure *f);
void pm_reasons_release(struct pm_reasons *all);
/* Makes a case of one failure, to be released. */
void pm_failure_case(const struct pm_run *r, const struct pm_failure *f, struct pm_case *out);
/* Adds "ordering: a fence is missing". */
void pm_cause_words(const struct trace *t, const struct pm_failure *f, struct strbuf *out);
/* Returns the state that shows the failure best, to be freed, and its crash point. */
char *pm_failure_example(const struct pm_failure *f, uint64_t *point);
/* Adds "exited with status 1", as check_describe() does. */
void pm_failure_end(const struct pm_failure *f, struct strbuf *out);
/* Adds lines about the losses or, for logic, about the last store. */
void pm_failure_detail(const struct pm_run *r, const struct pm_failure *f, struct strbuf *out);

#endif
