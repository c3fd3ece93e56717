/* SPDX-License-Identifier: MIT */
/*
 * outline.h - the hash of a crash state, without the state.
 *
 * Most sets of survivors are looked at to find out whether what a user would find is new. The hash
 * of a tree is a sum with a term for each inode, and of what is durable it is known. So it is
 * enough to follow names in a table, and to know for each thing that a survivor touches which of
 * its changes made it what it is: what comes of these was mostly seen before, with other survivors
 * around it.
 *
 * U1: the hash is that of the state that history_build() makes of the same survivors.
 */
#ifndef APP_OUTLINE_H
#define APP_OUTLINE_H

#include "app/history.h"

struct outline;

struct outline *outline_new(struct history *h);
void outline_free(struct outline *o); /* NULL is fine */

/*
 * The arguments are those of history_build(). False if it cannot be told: a directory that has
 * moved takes all paths below it with it. Then the state must be built.
 */
bool outline_hash(struct outline *o, uint64_t point, const struct survivor *v, size_t n,
		  struct hash128 *out);

#endif
