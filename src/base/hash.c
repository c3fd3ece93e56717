/* SPDX-License-Identifier: MIT */
/* hash.c - the calls to xxHash, and hashes in hexadecimal. */
#include "base/hash.h"

/* gcc unrolls the loops of xxHash only at O3; without that, a page takes half as long again. */
#ifndef __clang__
#pragma GCC optimize("O3")
#endif
#define XXH_INLINE_ALL
#include <xxhash.h>

struct hash128 hash_bytes(const void *data, size_t len)
{
	return hash_bytes_seeded(data, len, 0);
}

struct hash128 hash_bytes_seeded(const void *data, size_t len, uint64_t seed)
{
	XXH128_hash_t h = XXH3_128bits_withSeed(data, len, seed);

	return (struct hash128){ h.low64, h.high64 };
}

uint64_t hash64(const void *data, size_t len)
{
	return XXH3_64bits(data, len);
}

const char *hash_hex(struct hash128 h, char out[HASH_HEX_SIZE])
{
	snprintf(out, HASH_HEX_SIZE, "%016llx%016llx", llu(h.hi), llu(h.lo));
	return out;
}
