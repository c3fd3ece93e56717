/* SPDX-License-Identifier: MIT */
/*
 * rng.c - xoshiro256** (Blackman and Vigna, "Scrambled linear pseudorandom number generators",
 * 2018), its state filled by splitmix64 as the authors advise.
 */
#include "base/rng.h"

static uint64_t rotl(uint64_t x, int k)
{
	return (x << k) | (x >> (64 - k));
}

static uint64_t splitmix64(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

void rng_init(struct rng *r, uint64_t seed)
{
	for (int i = 0; i < 4; i++)
		r->s[i] = splitmix64(&seed);
}

uint64_t rng_next(struct rng *r)
{
	uint64_t *s = r->s;
	uint64_t result = rotl(s[1] * 5, 7) * 9;
	uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotl(s[3], 45);
	return result;
}

uint64_t rng_below(struct rng *r, uint64_t n)
{
	assert(n > 0);
	/* Values under `threshold` would favour the low results: draw again. */
	uint64_t threshold = -n % n;

	for (;;) {
		uint64_t x = rng_next(r);

		if (x >= threshold)
			return x % n;
	}
}

void rng_split(struct rng *r, uint64_t label, struct rng *out)
{
	uint64_t seed = r->s[0] ^ rotl(r->s[2], 17) ^ (label * 0xd6e8feb86659fd93);

	rng_init(out, seed);
}
