/* SPDX-License-Identifier: MIT */
/*
 * promise.h - the promises that had been made when the power failed.
 *
 * Each persistence operation that returned makes a promise: from state `state` on, some items are
 * durable. An item that no promise covers may have any value of its history.
 */
#ifndef CHECK_PROMISE_H
#define CHECK_PROMISE_H

#include "check/guarantee.h"
#include "check/op_history.h"

enum promise_kind {
	PROMISE_ALL,   /* sync, syncfs, remount; every operation where the profile says so */
	PROMISE_FILE,  /* fsync of a file that is no directory */
	PROMISE_DIR,   /* fsync of a directory */
	PROMISE_DATA,  /* fdatasync, a write with dsync: data and what is needed to read it */
	PROMISE_RANGE, /* msync: these bytes, and what is needed to read them */
};

struct promise {
	enum promise_kind kind;
	size_t state; /* the state that was promised */
	size_t op;    /* the operation that promised it */
	uint64_t ino;
	uint64_t from, to; /* PROMISE_RANGE: bytes */
};

/* The promises when the power failed: `done` operations had returned, one more may have begun. */
struct promises {
	struct op_history *h;
	const struct guarantee *g;
	size_t last; /* the latest state that may be seen */
	size_t done; /* operations that had returned */
	bool under_way;
	size_t unit; /* bytes of data that are written atomically; 0: a sector */
	struct vec_of(struct promise) list;
};

void promises_make(struct promises *p, struct op_history *h, const struct guarantee *g, size_t done,
		   bool under_way);
void promises_release(struct promises *p);

/* Each function returns the latest promise that covers the item, or NULL. */
const struct promise *promise_for_path(const struct promises *p, const char *path);
const struct promise *promise_for_attributes(const struct promises *p, uint64_t ino);
const struct promise *promise_for_size(const struct promises *p, uint64_t ino);
/* The least length with which the bytes promised by msync or a synced write can be read. */
const struct promise *promise_for_length(const struct promises *p, uint64_t ino, uint64_t *length);
const struct promise *promise_for_byte(const struct promises *p, uint64_t ino, uint64_t offset);
/*
 * True if the inode is promised, but none of its names: after fdatasync, if it has had several
 * names, or if a directory above it was moved.
 */
bool promise_of_any_name(const struct promises *p, const struct promise *x, uint64_t ino);
/* The first promise by which some name of the inode had to be there. */
const struct promise *promise_for_existence(const struct promises *p, uint64_t ino);

/* "fsync A/foo (operation 3) had returned" */
char *promise_words(const struct promises *p, const struct promise *promise);

#endif
