/* SPDX-License-Identifier: MIT */
/*
 * outline.h - computes the hash of a crash state without building the state.
 *
 * Most sets of survivors are looked at only to find out if their state is new. The hash of a tree
 * is a sum with a term for each inode, and the sum of the durable state is known. So it is enough
 * to follow names in a table, and to know for each object that a survivor touches which of its
 * changes are in the state: the term of these was usually computed before, with other survivors
 * around it.
 *
 * U1: the hash is that of the state that history_build() builds from the same survivors.
 */
#ifndef APP_OUTLINE_H
#define APP_OUTLINE_H

#include "app/history.h"

struct outline;

struct outline *outline_new(struct history *h);
void outline_free(struct outline *o); /* NULL is fine */

/*
 * The arguments are those of history_build(). Returns false if the state must be built to know the
 * hash: a directory that has moved changes all paths below it.
 */
bool outline_hash(struct outline *o, uint64_t point, const struct survivor *v, size_t n,
		  struct hash128 *out);

#endif
