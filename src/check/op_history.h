/* SPDX-License-Identifier: MIT */
/*
 * op_history.h - the history of a run: the expected state after every operation.
 *
 * State 0 is the empty file system; state i + 1 is the one after operation i. States come from
 * the reference file system, which performs the same operations as the target; where the target's
 * result legitimately differs (no space, not supported), the reference adopts it.
 */
#ifndef CHECK_OP_HISTORY_H
#define CHECK_OP_HISTORY_H

#include "check/finding.h"
#include "check/op_names.h"
#include "fs/reffs.h"

/* A path of a state, and the inode it leads to. */
struct history_path {
	const char *path;
	uint64_t ino;
};

struct history_paths vec_of(struct history_path);

struct op_history {
	const struct workload *w;
	struct reffs *ref;
	struct vec_of(struct reffs_state *) states; /* one more than the operations done */
	struct vec_of(int64_t) results;		    /* results on the target */
	struct op_names names; /* of the first states; the rest is added when needed */
};

void op_history_init(struct op_history *h);
void op_history_release(struct op_history *h);

/* Starts a history, with an empty file system. */
void op_history_start(struct op_history *h, const struct workload *w);
/*
 * Adds operation `i`, which the target has performed with this result. The reference performs it as
 * well; a difference that POSIX does not allow is added to `out` as FINDING_LIVE, with words that
 * begin with HISTORY_RESULT.
 */
#define HISTORY_RESULT "operation "
void op_history_op(struct op_history *h, size_t i, int64_t result, struct findings *out);

/*
 * Sets the state after the last operation, a command, to the tree that it left. Fails if the
 * reference cannot take over the tree.
 */
int op_history_adopt(struct op_history *h, const struct tree *seen, struct err *err) must_check;

/* Returns the names of all states. Valid until the next operation. */
const struct op_names *op_history_names(struct op_history *h);
/* Goes through the names of an inode in a state, from the `*i`-th that it ever had; then NULL. */
const char *op_history_next_name(struct op_history *h, size_t state, uint64_t ino, size_t *i);
/* Gives the paths of a state, sorted, without "."; their texts are valid until the history ends. */
void op_history_paths_at(struct op_history *h, size_t state, struct history_paths *out);
/* Returns the inode at `path` in a state; 0 if there is none. */
uint64_t op_history_ino(struct op_history *h, size_t state, const char *path);

#endif
