/* SPDX-License-Identifier: MIT */
/*
 * check.h - the checkers, which judge whether the state after a crash is allowed.
 *
 * A checker reports what is forbidden and why; without a reason it stays silent.
 */
#ifndef CHECK_CHECK_H
#define CHECK_CHECK_H

#include "base/err.h"
#include "check/finding.h"
#include "check/promise.h"
#include "check/times.h"
#include "tree/tree.h"

/* Larger files are not compared byte by byte, but by the hash of the whole. */
enum { CHECK_CONTENT_LIMIT = 64 << 20 };

/* The options that checkers need a tree to be walked with. */
void check_tree_opts(struct tree_opts *opts, const char *const *ignore);

/* The allocated blocks of a file on the live target when it was persisted. */
struct check_blocks {
	size_t state;
	uint64_t ino;
	uint64_t blocks;
};

struct check_blocks_list vec_of(struct check_blocks);

/*
 * Checks that all that was persisted is there, nothing that was removed is back, renames are
 * atomic, and data that was not persisted has a value of its history.
 */
void check_persisted(const struct promises *p, const struct tree *seen,
		     const struct check_blocks_list *blocks, struct findings *out);

/* A state after crash and recovery, for the checkers. */
struct recovered {
	const struct promises *p;
	const struct tree *seen;
	const struct check_blocks_list *blocks;
	/* NULL unless the clock of the target is set: see times.h. */
	const struct check_stamp *stamps;
	const struct check_times_list *times;
	int64_t clock;
	bool dumped; /* the user's command dumps the content; the tree has no names or attributes */
};

#define CHECKER(name_) void judge_##name_(const struct recovered *r, struct findings *out);
#include "check/checkers.def"
#undef CHECKER
/* Calls all checkers. */
void check_recovered(const struct recovered *r, struct findings *out);

/* Checks that the target, before any crash, equals the reference. */
void check_live(const struct reffs_state *expected, const struct tree *seen,
		const struct tree_opts *opts, struct findings *out);

/*
 * Uses the file system at `root`, and empties it: makes a file in every directory, writes and reads
 * it back, and removes everything. `seen` is its tree. Fails only if it cannot run. A file system
 * that was nearly full and still is when everything was removed gets some time to free space in the
 * background.
 */
struct check_patience {
	unsigned ms;
	void (*nap)(unsigned ms);
};
int check_usable(int root, const struct tree *seen, const struct check_patience *patience,
		 struct findings *out, struct err *err) must_check;

#endif
