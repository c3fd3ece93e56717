/* SPDX-License-Identifier: MIT */
/*
 * arena.h - memory that is given back all at once, for data that lives as long as one workload or
 * one crash state. arena_clear() keeps the blocks for the next round.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/util.h"

struct arena_block;

struct arena {
	struct arena_block *blocks; /* every block, the one in use first */
	struct arena_block *spare;  /* cleared blocks waiting to be used again */
};

#define ARENA_INIT                                                                                 \
	{                                                                                          \
		0                                                                                  \
	}

void arena_release(struct arena *a);
#define auto_arena __attribute__((cleanup(arena_release))) struct arena

void arena_clear(struct arena *a);
/* Returns memory aligned for any type; arena_zalloc() clears it. */
void *arena_alloc(struct arena *a, size_t size) __attribute__((returns_nonnull));
void *arena_zalloc(struct arena *a, size_t size) __attribute__((returns_nonnull));
char *arena_memdupz(struct arena *a, const void *data, size_t len) __attribute__((returns_nonnull));
char *arena_strdup(struct arena *a, const char *s) __attribute__((returns_nonnull));

#endif
