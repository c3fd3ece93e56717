/* SPDX-License-Identifier: MIT */
/*
 * explore_pickle.h - saves where a search was, and what it had visited, so that it can go on
 * another time. Its plan is in RUN/run (explore_plan.h).
 *
 * The file, all numbers 8 bytes, little-endian:
 *
 *	"outage-explore 4"	16 bytes
 *	hash of all that follows	16 bytes
 *	number of the walk, or of the round
 *	steps that could not be taken
 *	frames; for each: steps of its path, these steps, steps to do, these steps
 *	visited: states in the table; for each: its hash, 16 bytes, and a number: the byte that
 *		tells who came there, times 65536; and the depth at which this task took it
 *		upon itself to search it in this round and one more, or 0
 *	states known by bits only; those of rounds; bytes of the field of bits, these
 *
 * States that were saved are not kept: each frame has its path, which is walked again. The claims
 * of other tasks are in their files, which are of another moment, and do not count here.
 */
#ifndef EXPLORE_EXPLORE_PICKLE_H
#define EXPLORE_EXPLORE_PICKLE_H

#include "explore/script.h"
#include "explore/visited.h"
#include "base/vec.h"

struct pickle_frame {
	struct script_path path, todo;
};

struct pickle {
	uint64_t walk;
	uint64_t left_out;
	struct vec_of(struct pickle_frame) frames;
};

void pickle_release(struct pickle *p);

/* The states that a task has visited, with others or not, and those that it searches. */
struct pickle_states {
	struct visited *visited;
	struct visited *claims; /* may be the same */
	unsigned task;
};

/* The directory of `path` is followed, the file itself is no link; see base/below.h. */
int pickle_save(const struct pickle *p, const struct pickle_states *states, const char *path,
		struct err *err) must_check;
/*
 * Reads the file back, into `states` as well. Fails with a sentence if the file is of another
 * version, or was changed.
 */
int pickle_load(const char *path, struct pickle *out, const struct pickle_states *states,
		struct err *err) must_check;

/* Gives each state that was visited; `by_bits` gets how many are known by bits only. */
int pickle_each_state(const char *path, void (*take)(void *ctx, struct hash128 state), void *ctx,
		      uint64_t *by_bits, struct err *err) must_check;

#endif
