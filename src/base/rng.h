/* SPDX-License-Identifier: MIT */
/*
 * rng.h - seeded random numbers, the only ones in the program. The sequence for a seed is part of
 * what a finding records, so it must never change (a test pins it).
 */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include "base/util.h"

struct rng {
	uint64_t s[4];
};

void rng_init(struct rng *r, uint64_t seed);
uint64_t rng_next(struct rng *r);
/* Uniform in [0, n); n > 0. */
uint64_t rng_below(struct rng *r, uint64_t n);
/* Makes an independent generator, so that one part's draws do not change those of others. */
void rng_split(struct rng *r, uint64_t label, struct rng *out);

#endif
