/* SPDX-License-Identifier: MIT */
/*
 * dir.h - the directories of runs and of findings, as all kinds of them have it.
 *
 *	RUN/run                what was run, and how: a record "KIND-run"
 *	RUN/mark               who made that and all else that findings need; see trust.h
 *	RUN/summary            how far it came: a record "KIND-summary"; it is written last
 *	RUN/findings/NAME/case what was found: a record "KIND-case"
 *	              .../said what was said then
 *	              .../mark of all files of the finding, and of the marks of what it needs
 *	                       elsewhere
 *
 * D1: the directory of a finding appears, is replaced, and disappears as a whole.
 * D2: its file "case" is written last, and its mark before that: where "case" is, all of it is.
 * D3: the mark of a finding covers that of its run: neither fits another.
 */
#ifndef CASE_DIR_H
#define CASE_DIR_H

#include "case/record.h"

#define CASE_RUN     "run"
#define CASE_SUMMARY "summary"
#define CASE_FILE    "case"
#define CASE_SAID    "said"
#define CASE_NESTED  "recovery" /* runs of what was done after a crash of the run, by number */
#define CASE_BEFORE  "before"	/* findings and nested runs, while they are searched anew */

/* ---- runs ---- */

/*
 * Makes RUN, and RUN/findings. With path == NULL a new name below ./outage-runs is chosen, which
 * begins as `stem` does. A path that holds a run already is refused, and so is one that holds
 * something with one of `names` (patterns of fnmatch(3), up to NULL), which would be overwritten.
 */
int case_create(const char *path, const char *stem, const char *const *names, char **out,
		struct err *err) must_check;
/* The first name in RUN that a pattern of fnmatch(3) fits, to be freed; NULL: there is none. */
char *case_find(const char *run, const char *pattern);
/*
 * Removes a run in which nothing was found, with what it made besides RUN/run: such names, up to
 * NULL. True if nothing else was there, and the directory is gone.
 */
bool case_discard(const char *run, const char *const *names);
/* Removes what a process that was killed had not completed. */
int case_sweep(const char *run, struct err *err) must_check;
/* The directories of a run's findings, in the order of their numbers. */
int case_list(const char *run, struct words *out, struct err *err) must_check;
/* Whether it is the directory of one finding, not of a run. */
bool case_is_one(const char *dir);
/* Holds what the user named, a run or a finding with its run; see below_hold(). */
int case_hold(const char *dir, struct err *err) must_check;
/* The kind of a run or a finding, by what its record says: "pm"; to be freed. */
int case_kind_of(const char *dir, char **out, struct err *err) must_check;
bool case_is(const char *dir, const char *kind);
/* The version of the program that wrote that record, to be freed. */
int case_version_of(const char *dir, char **out, struct err *err) must_check;
/* Whether the run came to its end. */
bool case_has_ended(const char *run);

/* ---- marks ---- */

/* Which files the mark of a finding covers. */
struct case_files {
	const char *kind;	  /* of the mark */
	const char *const *names; /* besides "case", up to NULL */
};

/* The text of a mark, to be covered by another; nothing if there is none. */
int case_read_mark(const char *dir, const char *name, struct strbuf *out, struct err *err)
	must_check;
int case_verify(const char *dir, const struct case_files *files, const struct strbuf *above,
		size_t n, struct err *why) must_check;

/*
 * The end of a finding (D2): its mark, if it gets one, and "case", which holds `text`. `above` are
 * `n` marks of what the finding needs elsewhere, at most 2.
 */
int case_finish(const char *dir, const struct case_files *files, const struct strbuf *above,
		size_t n, const struct strbuf *text, bool marked, struct err *err) must_check;

/* Makes sure that marks can be made; else `why` says why nothing gets this user's mark. */
void case_ready_to_mark(struct err *why);

/* ---- plans: RUN/run of runs that can go on ---- */

struct case_plan {
	const struct record_type *type;
	/* Besides RUN/run, of its mark, if it has one of its own. */
	struct case_files files;
	/* Whether values that are right by themselves fit together. */
	int (*check)(const void *plan, struct err *err);
	size_t given; /* where the plan has a bit for each key that was given; 0: nowhere */
};

/* With the mark of this user. */
int case_plan_save(const struct case_plan *p, const char *run, const void *plan, struct err *err)
	must_check;
/* Writes to disk what case_plan_save() wrote, and the run's name. */
int case_plan_sync(const struct case_plan *p, const char *run, struct err *err) must_check;
/* -ENOENT if the run has none. */
int case_plan_load(const struct case_plan *p, const char *run, void *out, struct err *err)
	must_check;
/* Parses a plan from a text; `source` names it in messages. */
int case_plan_parse(const struct case_plan *p, const char *text, size_t len, const char *source,
		    void *out, struct err *err) must_check;
/*
 * For a run that goes on: holds it, loads its plan, and compares what was `given` again with that;
 * the plan needs to have a place for what is given. `output` was given, too: that is refused.
 */
int case_plan_resume(const struct case_plan *p, const char *run, const char *output,
		     const void *given, void *out, struct err *err) must_check;
/* Whether its mark is this user's. */
int case_plan_verify(const struct case_plan *p, const char *run, struct err *why) must_check;

/* ---- files ---- */

/* Files of a finding, one after the other: after a failure, nothing more is written. */
struct case_writer {
	const char *dir;
	struct err *err;
	int rc; /* of the first that failed */
};

/* The text, which is empty then. */
void case_write(struct case_writer *w, const char *name, struct strbuf *text);
/* Writes a text that may be NULL or "": then there is no file. */
void case_write_any(struct case_writer *w, const char *name, const char *text);

/* ---- runs whose findings need all that was recorded ---- */

struct case_kind {
	const struct record_type *plan, *finding, *summary;
	struct trust_set run;	   /* covered by the mark of a run */
	const char *const *synced; /* files of a run that findings need, up to NULL */
	const char *finding_mark;  /* the kind of their marks */
	const char *const *made;   /* made by a run besides RUN/run and findings, up to NULL */
	bool links_trace;	   /* a finding has the trace, by a hard link where that can be */
};

/* The members that the struct of such a finding begins with. */
#define CASE_FINDING                                                                               \
	char *dir;   /* of the finding; NULL if it is not kept yet */                              \
	char *state; /* the id of the crash state */                                               \
	struct strbuf said
struct case_finding {
	CASE_FINDING;
};

/*
 * The nested run that a state belongs to, by its id: RUN/recovery/3 for "r3:ID", as the functions
 * of below.h take it, to be freed; NULL: to the run itself.
 */
char *case_nested(const char *run, const char *state);
/* The state without the name of the nested run: "ID". */
const char *case_state_within(const char *state);
/* Marks a run whose recording is complete; its findings come later. */
int case_run_mark(const struct case_kind *k, const char *run, struct err *err) must_check;
int case_summary_save(const struct case_kind *k, const char *run, const void *summary,
		      struct err *err) must_check;

/*
 * Keeps a finding as RUN/findings/N, in place of what has that number, on disk when it returns. A
 * state of a nested run needs that, too.
 */
int case_put_number(const struct case_kind *k, const char *run, uint64_t n, const void *finding,
		    struct err *err) must_check;

/* Keeps findings while they are found, each with all that it needs. */
struct case_keeper {
	const struct case_kind *kind;
	const char *run;
	size_t synced; /* 1 + the nested runs that are on disk; 0: nothing is */
};
/* There are `nested` runs by now. */
int case_keep(struct case_keeper *k, size_t nested, uint64_t n, const void *finding,
	      struct err *err) must_check;
/*
 * For a finding that is made of another one: its place is free, or `force` says that what is there
 * is replaced, and the directory above it is made. A finding made `of` one that needs its run lies
 * in the same run; NULL: it stands by itself.
 */
int case_place(const char *path, const char *of, bool force, struct err *err) must_check;
/* Keeps such a finding there. */
int case_put_at(const struct case_kind *k, const char *path, const void *finding, struct err *err)
	must_check;
/* How much smaller it is, in what the crash lost. */
struct case_shrunk {
	uint64_t lost_before, lost_after, tried;
};
int case_remove_number(const char *run, uint64_t n, struct err *err) must_check;
/* One more than the last number of the findings that case_list() gave. */
uint64_t case_next_number(const struct words *list);
/* Removes those from number `n` on. */
int case_remove_from(const char *run, uint64_t n, struct err *err) must_check;
/* Moves all findings and nested runs to RUN/before: a run that goes on searches them anew. */
int case_set_aside(const char *run, struct err *err) must_check;
/* How many findings are set aside. */
uint64_t case_aside(const char *run);
/*
 * Removes what was set aside, if the new search came to its `end` or found as much; else that takes
 * its place again, and nothing is lost, as a search finds the same in the same order. Also after a
 * process that was killed at any moment of this.
 */
int case_settle(const char *run, bool end, struct err *err) must_check;
/* Gives `n` the number `to`, and removes the finding that had it; one of them always has it. */
int case_move_number(const char *run, uint64_t n, uint64_t to, struct err *err) must_check;
int case_get(const struct case_kind *k, const char *dir, void *finding, struct err *err) must_check;
void case_finding_release(const struct case_kind *k, void *finding);
/*
 * Sets `ours`: the marks of the run and of the finding are this user's, or `trust` says that he
 * takes it for his own. Refuses it if it is not: the commands of the plan would be run.
 */
int case_trust(const struct case_kind *k, const char *run, const void *finding, const void *plan,
	       bool trust, bool *ours, struct err *err) must_check;
/* case_trust() for a run that goes on. */
int case_trust_run(const struct case_kind *k, const char *run, const void *plan, bool trust,
		   bool *ours, struct err *err) must_check;

#endif
