/* SPDX-License-Identifier: MIT */
/*
 * view.h - a case or a run for a report: loaded from its directory, with the facts that follow from
 * several of its files (the lost writes, the differences of trees, similar cases).
 *
 * No function here touches the system under test.
 */
#ifndef REPORT_VIEW_H
#define REPORT_VIEW_H

#include "core/crash.h"
#include "run/run_places.h"
#include "run/plan.h"
#include "run/progress.h"
#include "run/store.h"
#include "tree/tree.h"

/* The fate of a request when the power failed. */
enum request_fate {
	REQUEST_NONE,	 /* not a request: it cannot be lost */
	REQUEST_DURABLE, /* guaranteed to survive */
	REQUEST_SURVIVED,
	REQUEST_TORN,
	REQUEST_LOST,
	REQUEST_LATER, /* not made before the crash */
};

/* A power failure: the requests before it, and their fates. */
struct view_crash {
	struct trace trace;
	bool has_trace;
	struct crash_state state; /* without content: only its survivors count */
	bool has_state;
	struct pm_choice pm;	     /* its model */
	const struct places *places; /* owned by the view; NULL: none */
};

struct view {
	struct stored_case c;
	char *cluster;
	struct view_crash crash;
	struct view_crash second; /* a crash during recovery from the first, if any */
	char *no_trace;		  /* why an existing trace cannot be used; NULL: it can */
	struct strbuf expected_text, seen_text; /* trees, without long content */
	struct tree expected, seen;
	bool has_expected, has_seen;
	struct tree_diff diff; /* if both trees are known */
	struct strbuf kernel_log, said;
	struct places *places;
	struct strbuf diagnosis; /* "ordering: ..." or "logic: ...", then a line for each store */
};

/* Loads the case and, unless `brief`, all that belongs to it. Missing parts are left out. */
int view_load(const char *dir, bool brief, struct view *out, struct err *err) must_check;
void view_release(struct view *v);

enum request_fate view_fate(const struct view_crash *c, uint64_t event);
enum request_fate view_state_fate(const struct crash_state *s, uint64_t event);
/* " into units of 512 bytes", the smallest of what is torn; "" if nothing is. */
struct view_words {
	char text[48];
};
struct view_words view_torn_into(const struct crash_state *s);
/* Returns the event at which recovery has ended and use begins, in the trace of a recovery. */
size_t view_recovered(const struct view_crash *c);
const char *view_fate_name(enum request_fate f);
/* Returns the name of an event's place in the program; NULL if there is none. */
const char *view_place(const struct view_crash *c, const struct event *ev);
/* Does the same for the caller `depth` calls away, from 0 on. */
const char *view_caller(const struct view_crash *c, const struct event *ev, size_t depth);
/* Returns the first word of the diagnosis, "ordering" or "logic", to be freed; or NULL. */
char *view_cause(const struct view *v);
/* Gives the result of operation `i`, from the trace; false if it did not return. */
bool view_result(const struct view *v, size_t i, int32_t *result);
/* Returns the operation that had begun and not ended, or the number of operations. */
size_t view_under_way(const struct view *v);
/*
 * Makes the tree of the reference file system after `n` operations. The tree equals the expected
 * one only if the target returned the same results as the reference, and began with an empty file
 * system.
 */
void view_reference(const struct view *v, size_t n, bool no_reflink, struct tree *out);

/* The steps, in order: the operations, the texts of `outage mark text`, and the crash. */
struct view_step {
	enum { STEP_OPERATION, STEP_MARK, STEP_CRASH } kind;
	size_t op;
	int error;	      /* the errno of a failed operation; or 0 */
	bool under_way, late; /* at the power failure; after the power failure */
	const struct event *mark;
};
struct view_steps vec_of(struct view_step);
void view_steps(const struct view *v, struct view_steps *out);

/*
 * Returns the reason of a problem: "fsync foo (operation 3) had returned", with `joint` "although";
 * or, if no promise covers it, "no operation ever gave it that value", with "because". "" if there
 * is none.
 */
const char *view_problem_reason(const struct stored_problem *p, const char **joint);

/* The expected tree and the seen one, side by side: each path has a row. */
enum row_mark { ROW_SAME, ROW_CHANGED, ROW_MISSING, ROW_EXTRA };

struct view_row {
	enum row_mark mark;
	bool allowed;		     /* different, but allowed: no problem is about it */
	const char *expected, *seen; /* lines of the stored text, without NUL; or NULL */
	size_t expected_len, seen_len;
};

struct view_rows vec_of(struct view_row);

/* True if a problem of the case is about that path, or about a directory above it. */
bool view_about(const struct view *v, const char *path);
/* Makes the rows, which point into the view. */
void view_rows(const struct view *v, struct view_rows *out);

/* ---- a run ---- */

enum { RUN_NO_CASE = -1 };

struct run_cluster {
	char *name;
	char *words;	/* the words of the first finding */
	uint32_t kinds; /* the kinds of all problems: bits 1 << enum finding_kind */
	ssize_t first;	/* the index of its first case; RUN_NO_CASE: none was kept */
	uint64_t count, kept;
};

/* A line of RUN/run. */
struct run_option {
	char *key, *value;
};

struct run_view {
	char *dir;
	char *version; /* the version of the program that made the run */
	bool has_plan; /* a run of outage test, with plan and progress */
	struct plan plan;
	struct progress progress;
	struct vec_of(struct run_option) options;   /* except defaults */
	struct vec_of(struct view) cases;	    /* kept cases, loaded briefly */
	struct vec_of(struct run_cluster) clusters; /* in the order in which they were found */
	uint64_t findings;			    /* kept or not */
	bool under_way;				    /* a process is at work on the run */
};

int run_view_load(const char *dir, struct run_view *out, struct err *err) must_check;
void run_view_release(struct run_view *v);
/* Adds the options of a plan. */
void run_view_add_plan(struct run_view *v, const struct record_type *t, const void *plan);
/* Returns the value of an option; NULL if the run does not have it. */
const char *run_view_option(const struct run_view *v, const char *key);

/*
 * Gives facts about the run's target and progress, for a person, pair by pair; false after the
 * last. A fact with an empty value needs no line.
 */
bool run_view_fact(const struct run_view *v, size_t i, const char **key, struct strbuf *value);

#endif
