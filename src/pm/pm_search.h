/* SPDX-License-Identifier: MIT */
/*
 * pm_search.h - every crash state of a run is put in place and looked at. With a check, failures
 * are told, and those that lose the same stores are one finding. With a dump, everything is told:
 * the states that each operation may leave are judged (check/semantic.h) when all are known.
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
	/* If `run` is one of its recoveries: whose failures are told; and 1 + the number of it. */
	const struct pm_run *whole;
	uint64_t recovery;
	uint64_t budget;     /* states; 0: no limit */
	bool changes;	     /* tell what recovery changes, for recovery.h */
	struct reads *reads; /* NULL: everything is varied */
	unsigned jobs;
	uint64_t until_ns; /* by util_now_ns(); 0: no limit */
	const volatile sig_atomic_t *stop;
	void (*progress)(void *ctx, uint64_t checked, uint64_t failing);
	/* Takes the first failure of a check for each reason, as it comes; may be NULL. */
	void (*failed)(void *ctx, const struct pm_failure *f);
	void *ctx;
};

/* One state that fails; with a dump, any state. */
struct pm_failure {
	char *state;
	uint64_t point;
	enum crash_layer layer;
	enum check_end end;
	int exit_code, signal;
	enum semantic_cause cause; /* if it fails */
	uint64_t prefix;	   /* for logic: "1.PREFIX" is the same state, without a loss */
	/* Lost parts, and events that survived; the first PM_LIST_MAX of them are listed. */
	uint64_t n_lost, n_survived;
	struct crash_part *lost;
	size_t n_decisive; /* the first of them make the difference; 0: it is not known which do */
	uint64_t *survived;
	char *said;
	uint64_t recovery; /* 1 + the number of the nested run that it is a state of; 0: none */
	bool media;	   /* a line is bad: `fault` */
	struct media_fault fault;
};

enum { PM_LIST_MAX = 1024 };

struct pm_failures vec_of(struct pm_failure);

/* Why states failed until now: a key for each reason that none before it explains. */
struct pm_reasons vec_of(struct pm_key);

struct pm_found {
	struct second_ways changes; /* by recovery, to states that are good */
	struct crash_stats stats;
	uint64_t checked, failing, errors;
	uint64_t known;	  /* were left out: they lose what fails often enough without them */
	uint64_t media;	  /* of those checked, with a bad line */
	uint64_t resized; /* good states of which recovery changes the size */
	double media_left_out;
	bool stopped;
	char error[512];	     /* the first one */
	struct pm_failures failures; /* a check's, some thousands, and the first for each reason */
	struct pm_reasons reasons;   /* of the failures; empty for a dump */
	uint64_t dropped;	     /* failures that were too many */
};

int pm_search(const struct pm_search_opts *o, struct pm_found *out, struct err *err) must_check;
void pm_found_release(struct pm_found *f);
/* How long a worker may be silent: it runs two commands at most without a word. */
uint64_t pm_patience_ms(const struct pm_plan *p);
/* Takes over a failure of a check. True: it is the first for its reason, and the last one kept. */
bool pm_found_add(struct pm_found *found, const struct pm_run *r, struct pm_failure *f);

/* One state, by its id; "rN:ID" is one of a recovery, "ID/FAULT" has a bad line. `f` is written if
 * it was checked; f->end tells. */
int pm_search_one(const struct pm_run *r, const char *id, struct pm_failure *f, struct err *err)
	must_check;
/* The run that a failure is a state of: this one, or one of its recoveries. */
const struct pm_run *pm_failure_run(const struct pm_run *r, const struct pm_failure *f);
void pm_failure_release(struct pm_failure *f);

/* Failures that lose the same become one case each; to be released one by one. */
void pm_cluster(const struct pm_run *r, const struct pm_failures *f, struct pm_cases *out);

/* Makes the cases of a dump: one for each state that an operation must not leave. */
void pm_judge_dumps(const struct pm_run *r, const struct pm_failures *f, struct pm_cases *out,
		    uint64_t *failing);

/* Which stores a failure loses, for the same run. */
struct pm_key pm_failure_key(const struct pm_run *r, const struct pm_failure *f);
/* The first reason that explains what fails with a key; all->n: none does. */
size_t pm_reasons_find(const struct pm_reasons *all, const struct pm_key *k);
/* Whether no failure before had this reason. After some thousands, none is new. */
bool pm_reasons_add(struct pm_reasons *all, const struct pm_run *r, const struct pm_failure *f);
void pm_reasons_release(struct pm_reasons *all);
/* One failure as a case of its own, to be released. */
void pm_failure_case(const struct pm_run *r, const struct pm_failure *f, struct pm_case *out);
/* "ordering: a fence is missing". */
void pm_cause_words(const struct trace *t, const struct pm_failure *f, struct strbuf *out);
/* The state that shows it best, to be freed, and its crash point. */
char *pm_failure_example(const struct pm_failure *f, uint64_t *point);
/* "exited with status 1", as check_describe() says. */
void pm_failure_end(const struct pm_failure *f, struct strbuf *out);
/* Lines about what is lost, or of logic, what was stored last. */
void pm_failure_detail(const struct pm_run *r, const struct pm_failure *f, struct strbuf *out);

#endif
