/* SPDX-License-Identifier: MIT */
/*
 * store.h - keeps what outage test and outage explore find, so that it can be seen again. Besides
 * what every run has (case/dir.h) there is
 *
 *	RUN/progress                which workloads are done, and what they found; see progress.h
 *	RUN/suppressions            the rules it was given, if any; see suppress.h
 *	RUN/kernel-log              what the kernel complained of, and no case has
 *	RUN/base-N.img              the disk before each workload of one worker (sparse)
 *	RUN/base-N.mark             of that
 *	RUN/findings/NAME/workload, trace, recovery, problems, diagnosis, expected, seen, kernel-log
 *
 * The record of a case is "test-case", or "explore-case" with the references and a script of its
 * own (explore/explore_keep.h).
 *
 * NAME is WORKLOAD-CASE: the number of the workload in this run, and of the case in the workload.
 * "problems" has a line for each: kind, path, words and promise, separated by tabs. The state is
 * "live" (before any crash), the id of a crash state, or "ID/SECOND" for a second crash while
 * recovering from the first; "recovery" is then the trace of that recovery. "media" has faults of
 * persistent memory on top of the state, as "poison:4096".
 *
 * "mounted" says how the state was mounted, if not writable at once: STORE_READ_ONLY or
 * STORE_REFUSED.
 *
 * The keys "crash", "max-subset", "budget", "seed", "prune", "lose-flush", "sector", "model",
 * "eadr", "split", "granularity", "media-max", "dump" and "check" of a case are the options of the
 * run that found it, as in RUN/run; "with-fsck" is what "fsck" is there.
 */
#ifndef RUN_STORE_H
#define RUN_STORE_H

#include "case/dir.h"
#include "case/suppress.h"
#include "run/run.h"

/* Read-only first, and then made writable. */
#define STORE_READ_ONLY "read-only"
/* Writable, from the beginning, after it refused to be mounted read-only. */
#define STORE_REFUSED "refused"

/* The files that a run makes besides RUN/run and its findings, up to NULL. */
extern const char *const store_made[];
/* The number of a name "base-N.img", or -1; and before it, where it is from a case's directory. */
long store_base_number(const char *name);
#define STORE_ABOVE "../../"
/* One more than the number of any base image of the run. */
unsigned store_next_base(const char *run);

/* Where a case is kept. */
struct store_place {
	const char *run;
	unsigned base;	 /* the number of the base image, which is written once */
	bool *base_kept; /* whether it was written; kept by the owner of that number */
	uint64_t workload, number;
};

/* "17-2": its name below RUN/findings. */
char *store_name(const struct store_place *at);
/* Which disk a case is about, its state and its media, NULL if they are fine; to be freed. */
char *store_id(const char *state, const char *media);
char *store_id_of(const struct run_case *c);
/* A line for each, as in the file "problems". */
void store_print_problems(const struct findings *findings, struct strbuf *out);
/* Writes that file, and "workload". */
void store_write_found(struct case_writer *w, const struct findings *problems,
		       const struct workload *workload);
/* Keeps a case, on disk when it returns; `opts` are those of the run that found it. */
int store_case(const struct store_place *at, const struct run_case *c, const struct run_opts *opts,
	       struct err *err) must_check;
/* Keeps a case in a directory of its own, with its base image: it can be moved as a whole. */
int store_case_alone(const char *dir, const struct run_case *c, const struct run_opts *opts,
		     struct err *err) must_check;

/* A workload that did not come to its end: nothing is left of it but what is known from outside. */
struct store_hang {
	const struct workload *workload;
	const char *words; /* one sentence */
	const char *phase; /* of the run, when it hung */
	const char *said;  /* where the process is, in the kernel */
	uint64_t after_ms; /* the limit; the words tell how long it was waited for */
};

int store_hang(const struct store_place *at, const struct store_hang *h,
	       const struct run_opts *opts, struct err *err) must_check;

/* A case read back. */
struct stored_problem {
	enum finding_kind kind;
	char *path, *words, *promise;
};

struct stored_reference {
	char *spec;
#define TARGET_OPTION(member, kind, ...) TARGET_OWNED_##kind member;
#define GUEST_OPTION			 TARGET_OPTION
#include "target/options.def"
};

struct stored_case {
	char *dir;     /* as it was named, for people */
	char *at;      /* the same for base/below.h */
	bool explored; /* an "explore-case" */
	char *target, *guarantee, *state, *base, *kernel, *recorder, *fsck;
	char *dump, *check;
	char *guest_kernel_hash, *guest_files_hash, *model;
#define TARGET_OPTION(member, kind, ...) TARGET_OWNED_##kind member;
#define GUEST_OPTION			 TARGET_OPTION
#include "target/options.def"
	char *media; /* the faults of the media on top of the state, or NULL */
	char *layer; /* of the enumeration that found it; NULL if before any crash */
	char *crash, *prune, *phase, *mounted; /* NULL if it is not said */
	char *survived, *lost;		       /* numbers of events, for people */
	uint64_t done, max_subset, budget, seed, lose_flush, hang_after_ms, granularity, point,
		media_max, sector;
	bool eadr, split, with_fsck;
	uint64_t operation; /* the blamed one; RUN_NO_OPERATION: none alone is */
	/* For an exploration: */
	struct vec_of(struct stored_reference) references;
	char *signature;
	char *start;		 /* "start.img": it begins with disks of its own */
	char *shown, *shrunk_by; /* for people */
	uint64_t ops_before;	 /* before it was shrunk */

	bool ours; /* this user made it, or takes it for his own; see store_trust() */
	struct workload workload;
	struct vec_of(struct stored_problem) problems;
};

extern const struct record_type store_record, store_explored;

/* A copy of a text for a member; NULL stays NULL. */
char *stored_own(const char *text);
void stored_case_init(struct stored_case *c);
/* Copies what is known of a target, and of a reference; `t` may be NULL for the latter. */
void stored_case_set_target(struct stored_case *c, const struct target_opts *t);
void stored_case_add_reference(struct stored_case *c, const char *spec,
			       const struct target_opts *t);
/* The case may come from anywhere: its base image is one of its run, or its own. */
int store_load(const char *dir, struct stored_case *out, struct err *err) must_check;
/*
 * Sets `ours`: its mark is this user's, or `trust` says that he takes it for his own. Refuses one
 * that is not, and that leads to more than a guest (trust.h). Reads all of the case, and its disk.
 * `script` is what is going to be done, if not its workload; or NULL.
 */
int store_trust(struct stored_case *c, const struct workload *script, bool trust, struct err *err)
	must_check;
/*
 * case_finish() of a case that needs no image elsewhere; and whether its mark fits: `base` as the
 * file "case" says. For who keeps cases of his own.
 */
int store_finish(const char *dir, const struct strbuf *text, bool marked, struct err *err)
	must_check;
int store_verify(const char *dir, const char *base, struct err *why) must_check;
void stored_case_release(struct stored_case *c);
/* Whether a checker of this machine reads its disk when it is shown again. */
bool stored_case_uses_fsck(const struct stored_case *c);
/* Whether it was found before any crash: there is no state to rebuild. */
bool stored_case_live(const struct stored_case *c);
/* Whether it begins with a disk of its own; mostly it is a new file system. */
bool stored_case_has_start(const struct stored_case *c);
/* That disk; the disk before the workload. */
int stored_case_start(const struct stored_case *c, struct image *out, struct err *err) must_check;
int stored_case_base(const struct stored_case *c, struct image *out, struct err *err) must_check;
/* Its target, borrowed from the case; and the part of it about persistent memory. */
struct target_opts stored_case_target(const struct stored_case *c);
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

/*
 * Which cluster a case belongs to: its first problem, and the operation that is blamed for it or,
 * if that is RUN_NO_OPERATION, those under test, "KIND: OP OP". An operation that only prepares is
 * not named. A text that is too long is cut, and a hash of it added.
 */
char *store_cluster(enum finding_kind kind, const struct workload *w, size_t operation);
/* Whether rules name each of the problems in that way: a rule hides nothing else. */
bool store_suppressed(const struct suppress *rules, const char *target,
		      const struct findings *problems, const struct workload *w, size_t operation);

#endif
