/* SPDX-License-Identifier: MIT */
/*
 * suppress.h - findings that are known and not wanted again.
 *
 *	# KIND: OPERATIONS [@ TARGET] [# WHY]
 *	missing: * fsync rename fsync @ btrfs* # the replaced file is lost with the new one
 *
 * KIND is the kind of a problem, or "*"; OPERATIONS and TARGET are patterns as of a shell, where *
 * matches blanks, too. A finding is suppressed if every kind of problem in it is named. Each kind
 * of run has its own kinds of problems, and may have other words in place of operations.
 */
#ifndef CASE_SUPPRESS_H
#define CASE_SUPPRESS_H

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"

struct suppress_rule {
	char *kind, *operations;
	char *target; /* NULL: any */
	char *why;    /* NULL: not said */
};

struct suppress {
	bool (*is_kind)(const char *name); /* NULL: any word is one */
	struct vec_of(struct suppress_rule) rules;
};

void suppress_release(struct suppress *s);
/* Adds the rules of a file, or of a text. `source` names it in messages. */
int suppress_load(struct suppress *s, const char *path, struct err *err) must_check;
/* Loads the rules that a run was given, RUN/suppressions, if any. */
int suppress_load_saved(struct suppress *s, const char *run, struct err *err) must_check;
int suppress_parse(struct suppress *s, const char *text, size_t len, const char *source,
		   struct err *err) must_check;
void suppress_print(const struct suppress *s, struct strbuf *out);

/* Adds what a file has to the text of rules that a plan keeps, which may be NULL. */
int suppress_add_file(char **text, const char *path, bool (*is_kind)(const char *name),
		      struct err *err) must_check;
/* The rules of a plan. */
int suppress_of_plan(const char *text, struct suppress *out, struct err *err) must_check;
/* Adds a rule that names one cluster alone. */
void suppress_add_rule(const char *cluster, const char *target, const char *why,
		       struct strbuf *out);

/* Whether a problem of one kind is named; `cluster` is "KIND: OPERATIONS", of a finding "KIND:
 * WORDS". */
bool suppress_names(const struct suppress *s, const char *target, const char *cluster);

#endif
