/* SPDX-License-Identifier: MIT */
/*
 * finding.h - a finding: a state or behaviour that is not allowed, with the reason.
 *
 * A finding is data, never an error: the tested system is wrong, not this program. Its kind and the
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

/* The kind's name, "missing" or "both-places", for machines and file names. */
const char *finding_kind_name(enum finding_kind kind);
/* Returns the kind of that name; FINDING_KIND_END if there is none. */
enum finding_kind finding_kind_find(const char *name);
bool finding_kind_known(const char *name);
/* The consequence, for a headline: "a persisted file is missing". */
const char *finding_kind_words(enum finding_kind kind);

/*
 * The reason why the finding is not allowed if no promise covers it: "no operation ever gave it
 * that value". "" if the kind speaks for itself.
 */
const char *finding_kind_why(enum finding_kind kind);

struct finding {
	enum finding_kind kind;
	char *path;    /* the path concerned, or "" */
	char *words;   /* "A/bar: size is 0, was 4096" */
	char *promise; /* the reason: "fsync A/bar (operation 3) had returned", or ""
			*/
};

struct findings vec_of(struct finding);

/* For a file with several names, the words have all of them: the first part, then names, joined. */
#define FINDING_LOST_AT	   "there is neither "
#define FINDING_LOST_JOINT " nor "
#define FINDING_BOTH_AT	   "one file is at "
#define FINDING_BOTH_JOINT " and "

/*
 * Takes the three texts; NULL counts as "". The words become one line of moderate length.
 */
void findings_add(struct findings *list, enum finding_kind kind, char *path, char *words,
		  char *promise);
void findings_clear(struct findings *list);
void findings_release(struct findings *list);
#define auto_findings __attribute__((cleanup(findings_release))) struct findings

#endif
