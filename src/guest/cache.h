/* SPDX-License-Identifier: MIT */
/*
 * cache.h - new file systems, kept for the next run.
 *
 * Saves the time of mkfs, and makes runs alike: what mkfs draws at random (ids, the seed of
 * directory hashes) is then the same for all workers and runs. Kept in $OUTAGE_CACHE, else below
 * $XDG_CACHE_HOME or ~/.cache, in files that are there whole or not at all; an empty $OUTAGE_CACHE
 * turns it off. A run that cannot keep an image goes on without.
 */
#ifndef GUEST_CACHE_H
#define GUEST_CACHE_H

#include "core/image.h"

/* Which image: the command that makes it, its program as it is now, and the size. */
struct cache_key {
	char name[48]; /* empty: nothing can be kept */
};

/* The folder itself, made if need be, to be freed; NULL: nothing can be kept. */
char *cache_dir(void);

void cache_key(struct cache_key *key, const char *const *argv, const char *extra, uint64_t size);
/* Whether it is there; `out` is written only then. */
bool cache_find(const struct cache_key *key, uint64_t size, struct image *out);
void cache_keep(const struct cache_key *key, const struct image *img);

#endif
