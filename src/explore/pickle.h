/* SPDX-License-Identifier: MIT */
/*
 * pickle.h - what a search needs to go on another time: where it was, and what it had visited.
 *
 * The file, all numbers 8 bytes, little-endian:
 *
 *	"outage-explore 1"	16 bytes
 *	hash of all that follows	16 bytes
 *	hash of the inputs	16 bytes: seed, order, depth, alphabet
 *	number of the walk
 *	frames; for each: steps of its path, these steps, steps to do, these steps
 *	visited: states in the table, their hashes; bytes of the field of bits, these
 *
 * States that were saved are not kept: each frame has its path, which is walked again.
 */
#ifndef EXPLORE_PICKLE_H
#define EXPLORE_PICKLE_H

#include "explore/visited.h"
#include "base/vec.h"

struct pickle_steps {
	uint32_t *v;
	size_t n;
};

struct pickle_frame {
	struct pickle_steps path, todo;
};

struct pickle {
	struct hash128 inputs;
	uint64_t walk;
	struct vec_of(struct pickle_frame) frames;
};

void pickle_release(struct pickle *p);
/* Adds a frame; copies. */
void pickle_add(struct pickle *p, const uint32_t *path, size_t n_path, const uint32_t *todo,
		size_t n_todo);
int pickle_save(const struct pickle *p, const struct visited *v, const char *path, struct err *err)
	must_check;
/*
 * Reads it back; what was visited is put into `v`, as visited by `task`. Fails with a sentence if
 * the file is of another version, was changed, or belongs to other inputs.
 */
int pickle_load(const char *path, struct hash128 inputs, struct pickle *out, struct visited *v,
		unsigned task, struct err *err) must_check;

/* Gives each state that was visited; `by_bits` gets how many are known by bits only. */
int pickle_each_state(const char *path, void (*take)(void *ctx, struct hash128 state), void *ctx,
		      uint64_t *by_bits, struct err *err) must_check;

#endif
