/* SPDX-License-Identifier: MIT */
/*
 * answers.h - the answers of checks so far. A run that goes on does its search again from the
 * beginning, and takes from here the answers that it has: so it finds the same as without the
 * interruption.
 *
 *	RUN/answers	"outage-answers VERSION" and a line end; then one record after the other
 *	a record	a struct answers_head, and the answer, which its reader understands
 *
 * A1: a record is appended by one write(2), in any process. So after a kill, all records are whole,
 *     or the last one is not.
 * A2: the first record that is not whole, as its hash tells, ends the file when it is opened again.
 *     Lost answers are asked for again.
 */
#ifndef CASE_ANSWERS_H
#define CASE_ANSWERS_H

#include "base/err.h"
#include "base/hash.h"
#include "base/strbuf.h"

#define CASE_ANSWERS "answers"

struct answers_head {
	struct hash128 question;
	uint64_t len;
	uint64_t hash; /* of all before it, and of the answer */
};

/* The answers of a run, at first none. Workers are forked from the process that opened it. */
struct answers;
int answers_open(const char *run, struct answers **out, struct err *err) must_check;
void answers_close(struct answers *a); /* NULL is fine */

/* The answer that a run before this one had; false: none. Nothing is known with `a` NULL. */
bool answers_find(struct answers *a, struct hash128 question, struct strbuf *out) must_check;
/* One that cannot be kept is asked for again when the run goes on. */
void answers_add(struct answers *a, struct hash128 question, const void *answer, size_t len);
/* Whether all that was known when it was opened has been asked for: the run is where it was. */
bool answers_caught_up(const struct answers *a);

#endif
