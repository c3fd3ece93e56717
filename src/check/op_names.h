/* SPDX-License-Identifier: MIT */
/*
 * op_names.h - the names of a history: the inode that each path led to, after which operation.
 *
 * A state adds what differs from the state before, so that the cost of a history grows with its
 * changes, and not with its operations times its names.
 *
 * N1: the spans of a name are in order of their states, and no two neighbours have the same inode.
 * N2: names are in the order in which they came, by state and then by path; so are inodes, and the
 *     names of an inode.
 */
#ifndef CHECK_OP_NAMES_H
#define CHECK_OP_NAMES_H

#include "base/arena.h"
#include "base/vec.h"
#include "fs/reffs.h"

/* The inode that a name leads to, from a state on; 0: none. */
struct name_span {
	size_t state;
	uint64_t ino;
};

struct op_name {
	const char *path;
	struct vec_of(struct name_span) spans;
};

/* An inode, and every name that it has had. */
struct op_named {
	uint64_t ino;
	struct vec_of(size_t) names; /* their places in op_names.name */
};

/* A hash table of places. */
struct op_places {
	size_t *v; /* a place and one; 0: free */
	size_t n, size;
};

struct op_names {
	struct vec_of(struct op_name) name; /* without the root */
	struct vec_of(struct op_named) inode;
	struct op_places by_path, by_ino;
	struct arena arena;
	size_t states; /* how many were added */
};

/* Counts the names and states that this thread looked at; for tests of what a history costs. */
extern _Thread_local uint64_t op_names_work;

void op_names_release(struct op_names *n);
/* Adds the next state; `before` is the one before it, or NULL. */
void op_names_add(struct op_names *n, const struct reffs_state *before,
		  const struct reffs_state *state);

/* Returns the name, or NULL if nothing was ever there. */
const struct op_name *op_names_find(const struct op_names *n, const char *path);
/* Returns the inode's names, or NULL if it never had one. */
const struct op_named *op_names_of(const struct op_names *n, uint64_t ino);

/* Returns the number of the last span that begins at a state or before; SIZE_MAX: there is none. */
size_t op_name_span(const struct op_name *name, size_t state);
/* Returns the inode there in a state, or 0. */
uint64_t op_name_at(const struct op_name *name, size_t state);

#endif
