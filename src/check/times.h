/* SPDX-License-Identifier: MIT */
/*
 * times.h - are the times of files those that they had? Only where the clock of the system under
 * test is set before each mount and operation: else they tell when it was tried, and no more.
 *
 * T1: mtime and ctime of what a promise of attributes covers have the value of some state since
 *     then, or are of an operation since then, which may have set them more than once.
 * T2: recovery finishes what an operation since then began, and may leave its own time at that.
 * T3: nothing is said of a path that has had several files, and nothing of access times, which
 *     are written out when the file system likes.
 */
#ifndef CHECK_TIMES_H
#define CHECK_TIMES_H

#include "check/finding.h"
#include "check/promise.h"
#include "tree/tree.h"

/* Of one file, where it is known. */
struct check_stamp {
	bool known;
	struct tree_time mtime, ctime;
};

/* The times on the live target: after an operation, of each inode of the reference. */
struct check_times {
	size_t state;
	uint64_t ino;
	struct tree_time mtime, ctime;
};

struct check_times_list vec_of(struct check_times);

/*
 * `stamps` are those of the entries of `seen`, in their order; `clock` is the second of each mount,
 * after which operation i begins i + 1 seconds later.
 */
void check_times(const struct promises *p, const struct tree *seen,
		 const struct check_stamp *stamps, const struct check_times_list *had,
		 int64_t clock, struct findings *out);

/*
 * The hash of what is there with its times. Recovery takes as long as it takes: what it sets counts
 * as the same time, whenever that was.
 */
struct hash128 check_times_hash(struct hash128 state, const struct tree *seen,
				const struct check_stamp *stamps, int64_t clock);

/* "; unlike before: foo: mtime is ...": the first that differs from what the target had. */
void check_times_difference(struct op_history *h, size_t state, const struct tree *seen,
			    const struct check_stamp *stamps, const struct check_times_list *had,
			    const char *word, struct strbuf *out);

#endif
