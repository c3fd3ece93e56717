/* SPDX-License-Identifier: MIT */
/*
 * differences.h - in what file systems legitimately differ, each with its reason, in one place.
 *
 * A difference declared here is not compared; everything else is. The order of a directory's
 * entries never counts: a tree is sorted.
 */
#ifndef EXPLORE_DIFFERENCES_H
#define EXPLORE_DIFFERENCES_H

#include "fs/reffs.h"
#include "workload/op.h"

enum difference_kind {
	DIFFER_DIR_NLINK, /* link counts of directories */
	DIFFER_NO_REFLINK,
	DIFFER_ROOM,	 /* how much is still missing after everything was removed */
	DIFFER_RESULT,	 /* an operation may fail so where another does not */
	DIFFER_WHITEOUT, /* its group, where a directory with the set-group bit gives it */
	DIFFER_CAN,	 /* an operation may succeed where another says that it cannot */
	DIFFER_SAVE,	 /* how it can be saved */
	DIFFER_END
};

struct difference {
	enum difference_kind kind;
	const char *reason;
	uint64_t bytes;		 /* DIFFER_ROOM */
	const struct op_def *op; /* DIFFER_RESULT: of this one, or NULL for any; DIFFER_CAN */
	int error;		 /* DIFFER_RESULT, DIFFER_CAN: with this errno */
	uint64_t flags;		 /* DIFFER_RESULT: with one of these in its last argument; 0: any */
};

struct differences {
	const char *fs;		    /* name of the target; NULL: what is not listed */
	struct difference list[16]; /* ends with a NULL reason */
};

/* Never NULL. */
const struct differences *differences_of(const char *target);
/* NULL if it does not differ in that. */
const struct difference *differences_find(const struct differences *d, enum difference_kind kind);

/*
 * Why a file system may fail with this result where another has `other`: no room, no support, or
 * one of its own differences. NULL if it may not, as when a path leads nowhere for the other.
 */
const char *differences_excuse(const struct differences *d, const struct op *op, int64_t result,
			       int64_t other);

/*
 * Whether two file systems would be left in different states by this operation, each being in the
 * right: it is better left alone.
 */
bool differences_part(const struct differences *a, const struct differences *b,
		      const struct op *op);
/* Whether it may succeed where a reference fails so. */
bool differences_can_more(const struct differences *d, const struct op *op, int64_t reference);
/* Whether two failures mean the same, as POSIX says. */
bool differences_same_failure(const struct op *op, int64_t a, int64_t b);

/* The options that make the reference behave like this file system. */
void differences_reffs(const struct differences *d, struct reffs_opts *out);

#endif
