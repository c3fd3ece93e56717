/* SPDX-License-Identifier: MIT */
/*
 * cache.h - the cache of images of new file systems.
 *
 * The cache saves the time of mkfs, and makes runs alike: random numbers of mkfs (ids, the seed of
 * directory hashes) are then the same for all workers and runs. Images are kept in $OUTAGE_CACHE,
 * else below $XDG_CACHE_HOME or ~/.cache, in files that appear whole or not at all; an empty
 * $OUTAGE_CACHE turns the cache off. A run that cannot keep an image goes on without.
 */
#ifndef GUEST_CACHE_H
#define GUEST_CACHE_H

#include "core/image.h"

/* The key of an image: a hash of the command that makes it, its program's version, and the size. */
struct cache_key {
	char name[48]; /* empty: no image can be kept */
};

/* Returns the folder, made if needed, to be freed; NULL if there can be none. */
char *cache_dir(void);

void cache_key(struct cache_key *key, const char *const *argv, const char *extra, uint64_t size);
/* Loads an image. True if it is there; `out` is written only then. */
bool cache_find(const struct cache_key *key, uint64_t size, struct image *out);
void cache_keep(const struct cache_key *key, const struct image *img);

#endif
