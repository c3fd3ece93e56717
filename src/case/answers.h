/* SPDX-License-Identifier: MIT */
/*
 * answers.h - the answers of checks so far. A run that goes on does its search again from the
 * beginning, and takes from here the answers that it has: so it finds the same as without the
 * interruption.
 *
 *	RUN/answers	"outage-answers 2 VERSION" and a line end; then one record after the other
 *	a record	a struct answers_head, and the answer, which its reader understands
 *
 * A1: a record is appended by one write(2), in any process. So after a kill, all records are whole,
 *     or the last one is not; after a write that failed, none follows.
 * A2: the first record that is not whole, or not of this user, as its seal tells, ends the file
 *     when it is opened again. Lost answers are asked for again.
 * A3: only one run has the file open at a time.
 * A4: the file has no other name, and is of this user: what was unpacked as a link to another of
 *     his files is replaced before anything is written.
 */
#ifndef CASE_ANSWERS_H
#define CASE_ANSWERS_H

#include "base/err.h"
#include "base/hash.h"
#include "base/strbuf.h"
#include "trust/seal.h"

#define CASE_ANSWERS "answers"

struct answers_head {
	struct hash128 question;
	uint64_t len;
	struct seal seal; /* covers both, and the answer */
};

/*
 * The answers of a run, at first none. Workers are forked from the process that opened it. -EBUSY:
 * another run has it open. Without a key of this user (trust.h) nothing is known, nor kept.
 */
struct answers;
int answers_open(const char *run, struct answers **out, struct err *err) must_check;
void answers_close(struct answers *a); /* NULL is fine */

/* The answer that a run before this one had; false: none. Nothing is known with `a` NULL. */
bool answers_find(const struct answers *a, struct hash128 question, struct strbuf *out) must_check;
/* One that is not kept, as for want of room, is asked for again when the run goes on. */
void answers_add(struct answers *a, struct hash128 question, const void *answer, size_t len);

#endif
