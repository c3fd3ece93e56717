/* SPDX-License-Identifier: MIT */
/*
 * check.h - the checkers: is what a crash left behind allowed?
 *
 * Each says what it forbids and why; one that cannot say why stays silent.
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

/* Allocated blocks that the live target had for a file when it was persisted. */
struct check_blocks {
	size_t state;
	uint64_t ino;
	uint64_t blocks;
};

struct check_blocks_list vec_of(struct check_blocks);

/*
 * Everything that was persisted is there, nothing that was removed is back, renames are atomic, and
 * data that was not persisted has a value it once had.
 */
void check_persisted(const struct promises *p, const struct tree *seen,
		     const struct check_blocks_list *blocks, struct findings *out);

/* A state that a crash left and recovery made mountable, for those that judge it. */
struct recovered {
	const struct promises *p;
	const struct tree *seen;
	const struct check_blocks_list *blocks;
	/* Only where the clock of the target is set: see times.h. Else NULL. */
	const struct check_stamp *stamps;
	const struct check_times_list *times;
	int64_t clock;
	bool dumped; /* the user's command says what is there: names and attributes say nothing */
};

#define CHECKER(name_) void judge_##name_(const struct recovered *r, struct findings *out);
#include "check/checkers.def"
#undef CHECKER
/* All of them. */
void check_recovered(const struct recovered *r, struct findings *out);

/* The target, before any crash, shows what the reference shows. */
void check_live(const struct reffs_state *expected, const struct tree *seen,
		const struct tree_opts *opts, struct findings *out);

/*
 * Uses what is mounted at `root`, which then is empty: makes a file in every directory, writes and
 * reads it back, and removes everything. `seen` is what is there. Fails only if it cannot run. One
 * that is full although all was removed has some time to free it in the background.
 */
struct check_patience {
	unsigned ms;
	void (*nap)(unsigned ms);
};
int check_usable(int root, const struct tree *seen, const struct check_patience *patience,
		 struct findings *out, struct err *err) must_check;

#endif
