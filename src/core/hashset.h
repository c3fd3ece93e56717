/* SPDX-License-Identifier: MIT */
/*
 * hashset.h - a set of 128-bit hashes. The table uses open addressing with linear probing; a place
 * holds the hash and nothing else. The hashes are uniform, so their low bits are the index.
 */
#ifndef CORE_HASHSET_H
#define CORE_HASHSET_H

#include "base/hash.h"

struct hashset {
	struct hash128 *slots; /* all-zero: free */
	size_t cap;	       /* 0 or a power of two */
	size_t n;	       /* members, the zero hash included */
	bool has_zero;	       /* the one hash that a slot cannot hold */
};

#define HASHSET_INIT                                                                               \
	{                                                                                          \
		0                                                                                  \
	}

void hashset_release(struct hashset *s);
#define auto_hashset __attribute__((cleanup(hashset_release))) struct hashset

/* Removes all members; keeps the memory. */
void hashset_clear(struct hashset *s);
/* True if `h` was new. */
bool hashset_insert(struct hashset *s, struct hash128 h);
bool hashset_has(const struct hashset *s, struct hash128 h);

#endif
