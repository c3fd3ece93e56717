/* SPDX-License-Identifier: MIT */
/*
 * store.h - a run's directory: what was found, kept so that it can be seen again.
 *
 *	RUN/base-WORKER.img         the disk before each workload (sparse)
 *	RUN/findings/NUMBER/case    key and value a line: target, guarantee, state, base, ...
 *	                 .../workload, trace, problems, expected, seen, kernel-log, said
 *
 * "problems" has a line for each: kind, path, words and promise, separated by tabs.
 */
#ifndef RUN_STORE_H
#define RUN_STORE_H

#include "run/run.h"

/* Makes RUN, and RUN/findings. With path == NULL a new name below ./outage-runs is chosen. */
int store_create(const char *path, const char *target, char **out, struct err *err) must_check;
/* Keeps the base image of a worker, once. */
int store_base(const char *run, unsigned worker, const struct image *base, struct err *err)
	must_check;
/* Keeps a case under `number`; `dir` gets its path, to be freed. */
int store_case(const char *run, unsigned worker, uint64_t number, const struct run_case *c,
	       char **dir, struct err *err) must_check;
/* Keeps a case in a directory of its own, with its base image: it can be moved as a whole. */
int store_case_alone(const char *dir, const struct run_case *c, struct err *err) must_check;

/* A case read back. */
struct stored_problem {
	enum finding_kind kind;
	char *path, *words, *promise;
};

struct stored_case {
	char *dir;
	char *target, *guarantee, *state, *base, *kernel, *recorder, *mkfs, *recover, *fsck;
	char *layer; /* of the enumeration that found it; NULL if before any crash */
	uint64_t size;
	uint64_t done;
	struct workload workload;
	struct vec_of(struct stored_problem) problems;
};

int store_load(const char *dir, struct stored_case *out, struct err *err) must_check;
void stored_case_release(struct stored_case *c);
/* Whether it was found before any crash: there is no state to rebuild. */
bool stored_case_live(const struct stored_case *c);
/* Its first problem, which says what kind of case it is. */
const struct stored_problem *stored_case_first(const struct stored_case *c);
/* Another file of the case ("seen", "kernel-log"); nothing is added if it is not there. */
int store_text(const struct stored_case *c, const char *name, struct strbuf *out, struct err *err)
	must_check;

/* The directories of a run's cases, in the order of their numbers. */
struct store_list vec_of(char *);

int store_list(const char *run, struct store_list *out, struct err *err) must_check;
void store_list_release(struct store_list *l);

/* Which cluster a case belongs to: its first problem and the operations under test. */
char *store_cluster(enum finding_kind kind, const struct workload *w);

#endif
