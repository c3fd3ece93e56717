/* SPDX-License-Identifier: MIT */
/*
 * keep.h - the directory of a run of `outage app`: what was recorded, and what was found.
 *
 *	RUN/app                  key and value a line: what was run, how it was checked; struct plan
 *	RUN/base/                the directory before the run
 *	RUN/trace                all that the application did to it
 *	RUN/stacks               who called, if that was asked for: stack/table.h
 *	RUN/shown                what --query showed at the end
 *	RUN/mark                 of all of these: who made it; see trust.h
 *	RUN/summary              key and value: how far it came
 *	RUN/findings/N/case      key and value: the state, and why it is one; struct app_case
 *	           .../mark      of the finding, and of the run's mark
 *	           .../trace     RUN/trace, by a hard link where that can be
 *	           .../said      what the check said
 *
 * The directory of a finding appears, is replaced, and disappears as a whole.
 *
 * A key is separated from its value by a tab; in a value, tabs, ends of lines and backslashes are
 * \t, \n and \\. A key may come several times.
 */
#ifndef APP_KEEP_H
#define APP_KEEP_H

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "trust/trust.h"

struct app_plan {
	char *dir; /* where the application found its directory */
	char *run, *check, *restart, *query, *stop;
	char *profile, *ack_file;
	uint64_t unit, max_subset, budget, seed, timeout_ms;
	uint64_t root_ino; /* of the directory in the trace */
	bool kill;
	bool stacks; /* who called is in RUN/stacks */
	bool ours;   /* this user made it, or takes it for his own; see app_trust() */
};

void app_plan_release(struct app_plan *p);
const char *app_plan_asks(const struct app_plan *p); /* "check", "restart" or "query" */
int app_plan_save(const char *run, const struct app_plan *p, struct err *err) must_check;
int app_plan_load(const char *run, struct app_plan *out, struct err *err) must_check;
/* Marks a run whose recording is complete; its findings come later. */
int app_run_mark(const char *run, struct err *err) must_check;
/*
 * Sets `ours`: the marks of the run and of the finding are this user's, or `trust` says that he
 * takes it for his own. Refuses it if it is not: its commands would be run.
 */
int app_trust(const char *run, const char *case_dir, struct app_plan *p, bool trust,
	      struct err *err) must_check;
/* The keys of plan and case, what the value of each leads to: false after the last. */
bool app_key(size_t i, struct trust_key *out);
/* Whether this directory holds a run of `outage app`. */
bool app_is_run(const char *dir);
/* Whether that run came to its end. */
bool app_is_finished(const char *dir);
/* Whether it is a finding of one. */
bool app_is_case(const char *dir);
/* The run that a finding belongs to, to be freed. */
char *app_run_of(const char *case_dir);

/* What an application's user would meet. */
enum app_harm {
	APP_UNAVAILABLE, /* it does not start, or cannot open its data */
	APP_ROLLED_BACK, /* what was acknowledged is gone */
	APP_SILENT_LOSS, /* data is gone, and nothing says so */
	APP_CORRUPT,	 /* what is there was never written like that */
	APP_HANG,	 /* it does not come to an end */
	APP_FAILED,	 /* the check says no, and no more */
	APP_HARM_END
};

const char *app_harm_name(enum app_harm h);  /* "silent-loss" */
const char *app_harm_words(enum app_harm h); /* a sentence without its end */
enum app_harm app_harm_find(const char *name, size_t len);

struct app_strings vec_of(char *);

struct app_case {
	char *dir;   /* of the finding; NULL if it is not kept yet */
	char *state; /* the id of the crash state */
	uint64_t point, acks;
	uint64_t states;       /* with the same cause */
	uint64_t shown, asked; /* so often it showed, of so many checks; 0, 0: not known */
	enum app_harm harm;
	char *title;		  /* the cause, in a sentence */
	char *fix;		  /* what would mend it; or NULL */
	bool verified;		  /* that is a call, and was tried */
	bool unexplained;	  /* the search for the cause did not come to its end */
	char *cause;		  /* the same for two findings of one cause; NULL: not known */
	struct app_strings lost;  /* events: "17", of a torn one "17 2/4" */
	struct app_strings after; /* the events that survived, or were acknowledged, all the same */
	char *seen;		  /* what the check said, in short */
	struct strbuf said;
};

void app_case_release(struct app_case *c);
/* What findings need besides themselves is on disk when this returns. */
int app_run_sync(const char *run, struct err *err) must_check;
/* So is a finding. */
int app_case_save(const char *run, uint64_t n, const struct app_case *c, struct err *err)
	must_check;
/*
 * The same for one that is saved again or removed soon: it is there if the process is killed, but
 * not waited for until it is on disk, which takes longer than a check.
 */
int app_case_save_first(const char *run, uint64_t n, const struct app_case *c, struct err *err)
	must_check;
int app_case_remove(const char *run, uint64_t n, struct err *err) must_check;
int app_case_load(const char *dir, struct app_case *out, struct err *err) must_check;
/* The directories of a run's findings, in the order of their numbers. */
int app_case_list(const char *run, struct app_strings *out, struct err *err) must_check;
void app_strings_release(struct app_strings *s);

/* How far a run came. */
struct app_summary {
	uint64_t operations, acks, crash_states, unique_states, checked, findings, failing, errors;
	uint64_t unexplained;	    /* findings whose cause is not known */
	uint64_t patterns, covered; /* of operations; cover.h */
	double elapsed_s, left_out;
	bool budget_hit;
	struct app_strings notes; /* what else a person should know */
};

void app_summary_release(struct app_summary *s);
int app_summary_save(const char *run, const struct app_summary *s, struct err *err) must_check;
int app_summary_load(const char *run, struct app_summary *out, struct err *err) must_check;

#endif
