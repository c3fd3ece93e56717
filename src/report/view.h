/* SPDX-License-Identifier: MIT */
/*
 * view.h - a case or a run as a report needs it: read from its directory, with what the pieces say
 * together (which write was lost, where the trees differ, which cases are alike).
 *
 * Nothing here touches the system under test.
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
	REQUEST_NONE,	 /* no request: there is nothing to lose */
	REQUEST_DURABLE, /* guaranteed to survive */
	REQUEST_SURVIVED,
	REQUEST_TORN,
	REQUEST_LOST,
	REQUEST_LATER, /* not made yet */
};

/* A power failure: what had been sent to the disk, and what was left of it. */
struct view_crash {
	struct trace trace;
	bool has_trace;
	struct crash_state state; /* without content: only what survived counts */
	bool has_state;
	struct pm_choice pm;	     /* by which model */
	const struct places *places; /* of the view's own; NULL: there are none */
};

struct view {
	struct stored_case c;
	char *cluster;
	struct view_crash crash;
	struct view_crash second; /* while recovering from the first; mostly there is none */
	char *no_trace; /* why a trace that should be there tells nothing; NULL: it does */
	struct strbuf expected_text, seen_text; /* trees, without long content */
	struct tree expected, seen;
	bool has_expected, has_seen;
	struct tree_diff diff; /* if both are there */
	struct strbuf kernel_log, said;
	struct places *places;
	struct strbuf diagnosis; /* "ordering: ..." or "logic: ...", then a line for each store */
};

/* Reads the case and, unless `brief`, all that belongs to it. A missing part is left out. */
int view_load(const char *dir, bool brief, struct view *out, struct err *err) must_check;
void view_release(struct view *v);

enum request_fate view_fate(const struct view_crash *c, uint64_t event);
enum request_fate view_state_fate(const struct crash_state *s, uint64_t event);
/* Where recovery is over and the use of what was recovered begins, in the trace of a recovery. */
size_t view_recovered(const struct view_crash *c);
const char *view_fate_name(enum request_fate f);
/* The name of where an event was made; NULL: it has none. */
const char *view_place(const struct view_crash *c, const struct event *ev);
/* The place of the caller that is `depth` calls away: from 0 on. */
const char *view_caller(const struct view_crash *c, const struct event *ev, size_t depth);
/* "ordering", "logic": its first word; NULL if there is no diagnosis. To be freed. */
char *view_cause(const struct view *v);
/* Sets what operation `i` returned, from the trace; false if it did not return. */
bool view_result(const struct view *v, size_t i, int32_t *result);
/* The operation that had begun and not ended, or the number of operations. */
size_t view_under_way(const struct view *v);
/*
 * Makes the tree of the reference file system after `n` operations. The expected tree is equal only
 * if the target returned what the reference returns, and began with an empty file system.
 */
void view_reference(const struct view *v, size_t n, bool no_reflink, struct tree *out);

/* The steps, in order: the operations, what `outage mark text` marked, and the crash. */
struct view_step {
	enum { STEP_OPERATION, STEP_MARK, STEP_CRASH } kind;
	size_t op;
	int error;	      /* the errno of an operation that failed */
	bool under_way, late; /* when the power failed; it had failed by then */
	const struct event *mark;
};
struct view_steps vec_of(struct view_step);
void view_steps(const struct view *v, struct view_steps *out);

/*
 * Why a problem is one: "fsync foo (operation 3) had returned", with `joint` "although"; or, if no
 * promise covers it, "no operation ever gave it that value", with "because". "" if there is
 * nothing to say.
 */
const char *view_problem_reason(const struct stored_problem *p, const char **joint);

/* Expected and seen, side by side: a path is in a row of its own. */
enum row_mark { ROW_SAME, ROW_CHANGED, ROW_MISSING, ROW_EXTRA };

struct view_row {
	enum row_mark mark;
	bool allowed; /* different, but no problem is about it: nothing promised it */
	const char *expected, *seen; /* of the stored text, not ended by NUL; or NULL */
	size_t expected_len, seen_len;
};

struct view_rows vec_of(struct view_row);

/* Whether a problem of the case is about that path, or about something above it. */
bool view_about(const struct view *v, const char *path);
/* Points into the view. */
void view_rows(const struct view *v, struct view_rows *out);

/* ---- a run ---- */

enum { RUN_NO_CASE = -1 };

struct run_cluster {
	char *name;
	char *words;	/* of the first finding */
	uint32_t kinds; /* of all problems: bits 1 << enum finding_kind */
	ssize_t first;	/* of the cases, or RUN_NO_CASE: none was kept */
	uint64_t count, kept;
};

/* A line of RUN/run. */
struct run_option {
	char *key, *value;
};

struct run_view {
	char *dir;
	char *version; /* of the program that made it */
	bool has_plan; /* a run of outage test: plan and progress count */
	struct plan plan;
	struct progress progress;
	struct vec_of(struct run_option) options;   /* but for those at their defaults */
	struct vec_of(struct view) cases;	    /* brief; those that were kept */
	struct vec_of(struct run_cluster) clusters; /* in the order in which they were found */
	uint64_t findings;			    /* kept or not */
	bool under_way;				    /* a process is at work on it now */
};

int run_view_load(const char *dir, struct run_view *out, struct err *err) must_check;
void run_view_release(struct run_view *v);
/* Adds what a plan says. */
void run_view_add_plan(struct run_view *v, const struct record_type *t, const void *plan);
/* The value of an option; NULL: the run does not say it. */
const char *run_view_option(const struct run_view *v, const char *key);

/*
 * Says what was tested and how far it came, for a person, pair by pair; false after the last. A
 * value may be empty: then it is not worth a line.
 */
bool run_view_fact(const struct run_view *v, size_t i, const char **key, struct strbuf *value);

#endif
