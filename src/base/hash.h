/* SPDX-License-Identifier: MIT */
/* hash.h - 128-bit content hashes (XXH3-128), and a sum of them that does not depend on order. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include "base/util.h"

struct hash128 {
	uint64_t lo, hi;
};

struct hash128 hash_bytes(const void *data, size_t len);
struct hash128 hash_bytes_seeded(const void *data, size_t len, uint64_t seed);
uint64_t hash64(const void *data, size_t len);

static inline bool hash_eq(struct hash128 a, struct hash128 b)
{
	return a.lo == b.lo && a.hi == b.hi;
}

/* Addition modulo 2^128: order-independent and invertible, so a sum can be kept up to date. */
static inline struct hash128 hash_add(struct hash128 a, struct hash128 b)
{
	uint64_t lo = a.lo + b.lo;

	return (struct hash128){ lo, a.hi + b.hi + (lo < a.lo) };
}

static inline struct hash128 hash_sub(struct hash128 a, struct hash128 b)
{
	return (struct hash128){ a.lo - b.lo, a.hi - b.hi - (a.lo < b.lo) };
}

/* 32 hex digits and a NUL. */
#define HASH_HEX_SIZE 33
const char *hash_hex(struct hash128 h, char out[HASH_HEX_SIZE]);

#endif
