/* SPDX-License-Identifier: MIT */
/*
 * app_keep.h - the directory of a run of `outage app`: what was recorded, and what was found.
 * Besides what every run has (case/dir.h) there is
 *
 *	RUN/base/                the directory before the run
 *	RUN/trace                all that the application did to it
 *	RUN/stacks               who called, if that was asked for: stack/table.h
 *	RUN/shown                what --query showed at the end
 *	RUN/recovery/N/          a restart after a crash, as a run of its own (app_recovery.h)
 *	RUN/before/              the same, and findings: they are searched anew (case/dir.h)
 *	RUN/answers              what checks said so far (case/answers.h)
 *	RUN/findings/N/trace     RUN/trace, or that of the restart, by a hard link where that can be
 */
#ifndef APP_APP_KEEP_H
#define APP_APP_KEEP_H

#include "case/dir.h"
#include "case/plan_def.h"

enum { APP_CRASH_REORDER = 1 << 0, APP_CRASH_RECOVERY = 1 << 1 };

struct app_plan {
#define PLAN_AS MEMBER
#include "app/app_options.def"
	bool ours; /* this user made it, or takes it for his own; see case_trust() */
};

void app_plan_release(struct app_plan *p);
/* How a state is judged: "check", "query" or "restart", and by which command. */
const char *app_plan_asks(const struct app_plan *p);
const char *app_plan_command(const struct app_plan *p);
/* The command that brings the application up again; that may be the same command. */
const char *app_plan_restarts(const struct app_plan *p);
int app_plan_load(const char *run, struct app_plan *out, struct err *err) must_check;
/* The harm that an application's user would meet. */
enum app_harm {
	APP_UNAVAILABLE, /* the application does not start, or cannot open its data */
	APP_ROLLED_BACK, /* acknowledged data is gone */
	APP_SILENT_LOSS, /* data is gone, and nothing says so */
	APP_CORRUPT,	 /* the data was never written like that */
	APP_HANG,	 /* the application does not end */
	APP_FAILED,	 /* the check says no, and no more */
	APP_HARM_END
};

const char *app_harm_name(enum app_harm h);  /* "silent-loss" */
const char *app_harm_words(enum app_harm h); /* a sentence without its end */
bool app_harm_known(const char *name);
enum app_harm app_harm_find(const char *name, size_t len);

struct app_case {
	CASE_FINDING;
	uint64_t point, acks;
	uint64_t states;       /* with the same cause */
	uint64_t shown, asked; /* so often it showed, of so many checks; 0, 0: not known */
	enum app_harm harm;
	char *title;	    /* the cause, in a sentence */
	char *fix;	    /* a change that would mend it; or NULL */
	bool verified;	    /* `fix` is a call, and was tried */
	bool unexplained;   /* the search for the cause did not come to its end */
	char *cause;	    /* the same for two findings of one cause; NULL: not known */
	struct words lost;  /* events: "17", of a torn one "17 2/4" */
	struct words after; /* the events that survived, or were acknowledged, all the same */
	char *seen;	    /* the check's answer, in short */
};

/*
 * "HARM: TITLE", as rules that suppress it name it, to be freed. For a number that stands alone
 * there is "N", as the numbers of operations differ from run to run.
 */
char *app_case_cluster(const struct app_case *c);
extern const struct case_kind app_kind;

/* How far a run came. */
struct app_summary {
	uint64_t operations, acks, crash_states, unique_states, checked, findings, failing, errors;
	uint64_t suppressed;	    /* findings that a rule names */
	uint64_t unexplained;	    /* findings whose cause is not known */
	uint64_t patterns, covered; /* patterns of operations; cover.h */
	double elapsed_s, left_out;
	bool budget_hit;
	/* Of the second crash: ways in which good states are changed, restarts that were recorded,
	 * those of them that are unlike each other, and states of these that were checked. */
	uint64_t recovery_ways, recoveries, recoveries_tried, recovery_states;
	double recovery_left_out;
	struct words notes; /* more that a person should know */
};

#endif
