/* SPDX-License-Identifier: MIT */
/*
 * u64map.h - a map from numbers to indices. The table uses open addressing with linear probing;
 * keys cannot be removed one by one. Keys that an adversary chooses cost time, never memory.
 */
#ifndef CORE_U64MAP_H
#define CORE_U64MAP_H

#include "base/util.h"

struct u64map {
	struct u64map_slot {
		uint64_t key;
		uint32_t value; /* U64MAP_NONE: free */
	} * slots;
	size_t cap; /* 0 or a power of two */
	size_t n;
};

#define U64MAP_NONE UINT32_MAX
#define U64MAP_INIT                                                                                \
	{                                                                                          \
		0                                                                                  \
	}

void u64map_release(struct u64map *m);
void u64map_clear(struct u64map *m); /* keeps the memory, unless that was much more than needed */
/* Returns U64MAP_NONE if the key is not there. */
uint32_t u64map_get(const struct u64map *m, uint64_t key);
/* The key must not be there yet; the value is not U64MAP_NONE. */
void u64map_add(struct u64map *m, uint64_t key, uint32_t value);

#endif
