/* SPDX-License-Identifier: MIT */
/*
 * finding.h - something that is not allowed, with what a person needs to see why.
 *
 * A finding is data, never an error: the tested system did wrong, not we. Its kind and the
 * operations of its workload say which cluster it belongs to.
 */
#ifndef CHECK_FINDING_H
#define CHECK_FINDING_H

#include "base/util.h"
#include "base/vec.h"

enum finding_kind {
#define FINDING(kind_, ...) FINDING_##kind_,
#include "check/finding.def"
#undef FINDING
	FINDING_KIND_END
};

/* "missing", "both-places": for machines and file names. */
const char *finding_kind_name(enum finding_kind kind);
/* The kind of that name; FINDING_KIND_END if there is none. */
enum finding_kind finding_kind_find(const char *name);
bool finding_kind_known(const char *name);
/* "a persisted file is missing": the consequence, for a headline. */
const char *finding_kind_words(enum finding_kind kind);

/*
 * Why it is not allowed where no promise covers it: "no operation ever gave it that value". "" if
 * the kind speaks for itself.
 */
const char *finding_kind_why(enum finding_kind kind);

struct finding {
	enum finding_kind kind;
	char *path;    /* the path concerned, or "" */
	char *words;   /* "A/bar: size is 0, was 4096" */
	char *promise; /* why that is not allowed: "fsync A/bar (operation 3) had returned", or ""
			*/
};

struct findings vec_of(struct finding);

/* The words of one file with several names have them all: the first part, then names, joined. */
#define FINDING_LOST_AT	   "there is neither "
#define FINDING_LOST_JOINT " nor "
#define FINDING_BOTH_AT	   "one file is at "
#define FINDING_BOTH_JOINT " and "

/* Takes over the three texts; NULL counts as "". The words become one line of moderate length. */
void findings_add(struct findings *list, enum finding_kind kind, char *path, char *words,
		  char *promise);
void findings_clear(struct findings *list);
void findings_release(struct findings *list);
#define auto_findings __attribute__((cleanup(findings_release))) struct findings

#endif
