/* SPDX-License-Identifier: MIT */
/*
 * keep.h - what was found, kept as outage test keeps it, so that report, replay and export can read
 * it, and with a script and a log of its own.
 *
 *	RUN/findings/NUMBER-WORKER/case, workload, problems, expected, seen, kernel-log, said
 *	                       .../script    with saving and putting back (script.h)
 *	                       .../log       operations with the result of each side
 *	                       .../last.img  the target's disk when it differed (sparse)
 *	                       .../start.img, start-N.img   disks of the target and of reference N
 *	                                     to begin with, if it does not show from empty ones
 */
#ifndef EXPLORE_KEEP_H
#define EXPLORE_KEEP_H

#include "explore/script.h"

struct kept {
	const char *run; /* the directory of the run */
	unsigned worker;
	uint64_t number;
	const struct script *script;
	struct stepper *stepper;
	struct step_result *result;
	const struct strbuf *log;
	uint64_t shown, tries;	   /* k of n */
	uint64_t ops_before;	   /* before it was shrunk */
	uint64_t runs, steps;	   /* that this took, and operations in them */
	const struct point *start; /* where the script begins; NULL: at new file systems */
};

/* `dir` gets its path, to be freed. */
int keep_case(const struct kept *k, char **dir, struct err *err) must_check;
/* A hang, from outside: nobody can be asked any more. */
int keep_hang(const char *run, unsigned worker, const struct target_opts *target,
	      const char *reference, const struct script *script, const char *words, char **dir,
	      struct err *err) must_check;

struct kept_reference {
	char *spec, *mkfs, *recover, *guest_kernel, *guest_modules;
	uint64_t size, guest_memory;
};

/* What --replay needs. */
struct kept_case {
	struct script script;
	char *target;
	struct vec_of(struct kept_reference) references;
	char *signature;
	char *mkfs, *recover, *guest_kernel, *guest_modules;
	uint64_t size, guest_memory;
	char *start[SIDES_MAX]; /* paths of images to begin with, or NULL */
	bool ours;		/* nobody else could have written it */
};

int kept_load(const char *dir, struct kept_case *out, struct err *err) must_check;
/* Refuses a case that makes programs run, unless it is this user's own or `trust` is set. */
int kept_trust(const struct kept_case *c, const char *dir, bool trust, struct err *err) must_check;
void kept_release(struct kept_case *c);

#endif
