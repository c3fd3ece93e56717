/* SPDX-License-Identifier: MIT */
/*
 * explore_keep.h - keeps findings as outage test does, so that report, replay and export can read
 * them, each with a script and a log of its own.
 *
 *	RUN/findings/NUMBER-WORKER/case, workload, problems, expected, seen, kernel-log, said
 *	                       .../script    with saving and putting back (script.h)
 *	                       .../mark      who made it (trust.h)
 *	                       .../log       operations with the result of each side, if it was
 *	                                     done again
 *	                       .../last.img  the target's disk when it differed (sparse)
 *	                       .../start.img, start-N.img   disks of the target and of reference N
 *	                                     to begin with, if it does not show from empty ones
 */
#ifndef EXPLORE_EXPLORE_KEEP_H
#define EXPLORE_EXPLORE_KEEP_H

#include "explore/script.h"
#include "run/store.h"

struct kept {
	const char *run;  /* the directory of the run */
	const char *name; /* of the finding; see finding_dir.h */
	const struct script *script;
	const struct script *lately; /* the latest steps, to be done again; NULL: the script */
	struct stepper *stepper;
	struct step_result *result;
	const struct strbuf *log;  /* NULL: it was not done again */
	uint64_t shown, tries;	   /* k of n */
	uint64_t ops_before;	   /* before it was shrunk */
	uint64_t runs, steps;	   /* that this took, and operations in them */
	const struct point *start; /* where the script begins; NULL: at new file systems */
	bool strange;		   /* without a mark: see struct explore_opts */
	bool disk;		   /* with last.img: a sick file system may hang over that */
};

/*
 * Keeps a finding, or a smaller one in its place. The finding is on disk when these return, and
 * the one before if they fail. The trees are those that the stepper shows.
 */
int keep_case(const struct kept *k, struct err *err) must_check;
/* Keeps a finding at a path that is free, or has a finding, which is replaced. */
int keep_case_at(const struct kept *k, const char *path, struct err *err) must_check;
/* Adds last.img to a finding that was kept. */
int keep_disk(const struct kept *k, struct err *err) must_check;
/* Updates a finding that was kept, with its log; its script stays as it is. */
int keep_update(const struct kept *k, struct err *err) must_check;
/* A hang, from outside: the task does not answer. `dir` gets its path, to be freed. */
int keep_hang(const char *run, unsigned worker, const struct target_opts *target,
	      const char *reference, const struct script *script, const char *words, bool strange,
	      char **dir, struct err *err) must_check;

/* A case for --replay. Its script is what store_trust() is asked about. */
struct kept_case {
	struct stored_case c;
	struct script script;
	struct image start[SIDES_MAX]; /* to begin with */
	bool starts[SIDES_MAX];	       /* whether there is one */
};

int kept_load(const char *dir, struct kept_case *out, struct err *err) must_check;
void kept_release(struct kept_case *c);

#endif
