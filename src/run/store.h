/* SPDX-License-Identifier: MIT */
/*
 * store.h - a run's directory: what was found, kept so that it can be seen again.
 *
 *	RUN/run                     what it tests; see plan.h
 *	RUN/progress                which workloads are done, and what they found; see progress.h
 *	RUN/suppressions            the rules it was given, if any; see suppress.h
 *	RUN/kernel-log              what the kernel complained of, and no case has
 *	RUN/base-N.img              the disk before each workload of one worker (sparse)
 *	RUN/findings/NAME/case      key and value a line: target, guarantee, state, base, ...
 *	               .../workload, trace, recovery, problems, diagnosis, expected, seen,
 *	               kernel-log, said
 *
 * NAME is WORKLOAD-CASE: the number of the workload in this run, and of the case in the workload.
 * "problems" has a line for each: kind, path, words and promise, separated by tabs. The state is
 * "live" (before any crash), the id of a crash state, or "ID/SECOND" for a second crash while
 * recovering from the first; "recovery" is then the trace of that recovery. "media" has faults of
 * persistent memory on top of the state, as "poison:4096".
 *
 * The keys "crash", "max-subset", "budget", "seed", "prune", "lose-flush", "eadr", "split",
 * "granularity", "dump" and "check" of a case are the options of the run that found it, as in
 * RUN/run.
 */
#ifndef RUN_STORE_H
#define RUN_STORE_H

#include "run/run.h"

/*
 * Makes RUN, and RUN/findings. With path == NULL a new name below ./outage-runs is chosen; a path
 * that holds a run already is refused.
 */
int store_create(const char *path, const char *target, char **out, struct err *err) must_check;
/* One more than the number of any base image of the run. */
unsigned store_next_base(const char *run);

/* Where a case is kept. */
struct store_place {
	const char *run;
	unsigned base;	 /* the number of the base image, which is written once */
	bool *base_kept; /* whether it was written; whoever has that number keeps this */
	uint64_t workload, number;
};

/* "17-2": its name below RUN/findings. */
char *store_name(const struct store_place *at);
/* Keeps a case; `opts` are those of the run that found it. */
int store_case(const struct store_place *at, const struct run_case *c, const struct run_opts *opts,
	       struct err *err) must_check;
/* Keeps a case in a directory of its own, with its base image: it can be moved as a whole. */
int store_case_alone(const char *dir, const struct run_case *c, const struct run_opts *opts,
		     struct err *err) must_check;

/* A workload that did not come to its end: nothing is left of it but what is known from outside. */
struct store_hang {
	const struct workload *workload;
	const char *words; /* one sentence */
	const char *phase; /* what was done at that time */
	const char *said;  /* where the process is, in the kernel */
	uint64_t after_ms; /* the limit; the words tell how long it was waited for */
};

int store_hang(const struct store_place *at, const struct store_hang *h,
	       const struct run_opts *opts, struct err *err) must_check;

/* A line for each, as in the file "problems". */
void store_print_problems(const struct findings *findings, struct strbuf *out);
/* Removes the cases of workloads that are not done: they will be run again. */
int store_forget(const char *run, bool (*is_done)(const void *ctx, uint64_t workload),
		 const void *ctx, struct err *err) must_check;

/* A case read back. */
struct stored_problem {
	enum finding_kind kind;
	char *path, *words, *promise;
};

struct stored_case {
	char *dir;
	char *target, *guarantee, *state, *base, *kernel, *recorder, *mkfs, *recover, *fsck;
	char *dump, *check;
	char *guest_kernel, *guest_modules, *guest_kernel_hash, *guest_cpu, *guest_pm;
	char *guest_files, *guest_files_hash; /* the first: one a line */
	char *media; /* the faults of the media on top of the state, or NULL */
	uint64_t deterministic, guest_memory;
	char *layer; /* of the enumeration that found it; NULL if before any crash */
	char *crash, *prune, *phase; /* NULL if it is not said */
	uint64_t size, done, max_subset, budget, seed, lose_flush, hang_after_ms;
	uint64_t eadr, split, granularity;
	uint64_t operation; /* that is blamed; RUN_NO_OPERATION: none alone is */
	bool ours;	    /* nobody but this user can have written it */
	struct workload workload;
	struct vec_of(struct stored_problem) problems;
};

/* The case may come from anywhere: its base image is one of its run, or its own. */
int store_load(const char *dir, struct stored_case *out, struct err *err) must_check;
/*
 * A case names programs that are run. Refuses one that does, unless it is this user's own or
 * `trust` says that it may.
 */
int store_trust(const struct stored_case *c, bool trust, struct err *err) must_check;
void stored_case_release(struct stored_case *c);
/* Whether it was found before any crash: there is no state to rebuild. */
bool stored_case_live(const struct stored_case *c);
/* The disk it begins with, to be freed; NULL: a new file system, as nearly always. */
char *stored_case_start(const struct stored_case *c);
/* What it says of persistent memory. */
struct pm_choice stored_case_pm(const struct stored_case *c);
/* The id of its first crash, to be freed; `second` points at that of the second, or is NULL. */
char *stored_case_state(const struct stored_case *c, const char **second);
/* The name of its cluster, to be freed. */
char *stored_case_cluster(const struct stored_case *c);
/* Its first problem, which says what kind of case it is. */
const struct stored_problem *stored_case_first(const struct stored_case *c);
/* Another file of the case ("seen", "kernel-log"); nothing is added if it is not there. */
int store_text(const struct stored_case *c, const char *name, struct strbuf *out, struct err *err)
	must_check;

/* The directories of a run's cases, in the order of their numbers. */
struct store_list vec_of(char *);

int store_list(const char *run, struct store_list *out, struct err *err) must_check;
void store_list_release(struct store_list *l);

/*
 * Which cluster a case belongs to: its first problem, and the operation that is blamed for it or,
 * if that is RUN_NO_OPERATION, those under test, "KIND: OP OP". What only prepares is not named.
 * What is too long is cut, and a hash of it added.
 */
char *store_cluster(enum finding_kind kind, const struct workload *w, size_t operation);

#endif
