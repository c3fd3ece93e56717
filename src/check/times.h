/* SPDX-License-Identifier: MIT */
/*
 * times.h - checks the times of files, if the clock of the system under test is set before each
 * mount and operation: otherwise times only tell when a state was tried.
 *
 * T1: mtime and ctime of a file whose attributes are promised have the value of some state since
 *     then, or lie in an operation since then, which may have set them more than once.
 * T2: recovery finishes what an operation since then began, and may set its own time there.
 * T3: paths that have had several files are not judged, and neither are access times, which a file
 *     system may write at any time.
 */
#ifndef CHECK_TIMES_H
#define CHECK_TIMES_H

#include "check/finding.h"
#include "check/promise.h"
#include "tree/tree.h"

/* The times of a file, if known. */
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
 * Returns the hash of a state with its times. All times that recovery sets count as the same, as
 * its duration varies.
 */
struct hash128 check_times_hash(struct hash128 state, const struct tree *seen,
				const struct check_stamp *stamps, int64_t clock);

/* Adds the first time unlike those on the live target: "; unlike before: foo: mtime is ...". */
void check_times_difference(struct op_history *h, size_t state, const struct tree *seen,
			    const struct check_stamp *stamps, const struct check_times_list *had,
			    const char *word, struct strbuf *out);

#endif
