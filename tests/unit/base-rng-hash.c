/* SPDX-License-Identifier: MIT */
/*
 * base-rng-hash.c - random numbers and hashes. Findings record seeds and hashes: the values here
 * are a promise and must never change.
 */
#include "base/hash.h"
#include "base/rng.h"

#include "tap.h"

static void test_pinned(void)
{
	static const struct {
		uint64_t seed, want[4];
	} pins[] = {
		{ 0,
		  { 0x99ec5f36cb75f2b4, 0xbf6e1f784956452a, 0x1a5f849d4933e6e0,
		    0x6aa594f1262d2d2c } },
		{ 1,
		  { 0xb3f2af6d0fc710c5, 0x853b559647364cea, 0x92f89756082a4514,
		    0x642e1c7bc266a3a7 } },
	};
	struct rng r, s;

	for (size_t i = 0; i < ARRAY_SIZE(pins); i++) {
		rng_init(&r, pins[i].seed);
		for (size_t k = 0; k < 4; k++)
			is_u(rng_next(&r), pins[i].want[k], "seed %d, output %zu",
			     (int)pins[i].seed, k);
	}
	rng_init(&r, 1);
	rng_split(&r, 5, &s);
	is_u(rng_next(&s), 0xf94ad5d3f418def4, "split");
	is_u(rng_next(&r), pins[1].want[0], "does not disturb what it was split from");
	rng_init(&r, 1);
	is_u(rng_below(&r, 1000), pins[1].want[0] % 1000, "below");
}

static void test_below(void)
{
	unsigned counts[7] = { 0 };
	struct rng r;
	bool in_range = true, even = true;

	rng_init(&r, 3);
	for (int i = 0; i < 70000; i++)
		counts[rng_below(&r, 7)]++;
	for (size_t i = 0; i < 7; i++)
		even &= counts[i] > 9500 && counts[i] < 10500;
	ok(even, "all values come equally often");
	for (int i = 0; i < 1000; i++)
		in_range &= rng_below(&r, 1) == 0 && rng_below(&r, (1ULL << 63) + 1) <= 1ULL << 63;
	ok(in_range, "in range at both ends");
}

static void test_split(void)
{
	struct rng r, a, b, c;

	rng_init(&r, 9);
	rng_split(&r, 1, &a);
	rng_split(&r, 2, &b);
	rng_split(&r, 1, &c);
	uint64_t from_a = rng_next(&a);
	ok(from_a != rng_next(&b), "other labels, other numbers");
	is_u(rng_next(&c), from_a, "the same label, the same numbers");
	rng_next(&r);
	rng_split(&r, 1, &c);
	ok(rng_next(&c) != from_a, "later, other numbers");
}

static void test_hash(void)
{
	char hex[HASH_HEX_SIZE];
	static unsigned char data[5000];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)(i * 7);
	is_u(hash64("", 0), 0x2d06800538d394c2, "XXH3-64 of nothing");
	is_s(hash_hex(hash_bytes("", 0), hex), "99aa06d3014798d86001c324468d497f",
	     "XXH3-128 of nothing");
	is_s(hash_hex(hash_bytes(NULL, 0), hex), "99aa06d3014798d86001c324468d497f",
	     "also at NULL");
	is_s(hash_hex(hash_bytes("abc", 3), hex), "06b05ab6733a618578af5f94892f3950",
	     "of three bytes");
	is_s(hash_hex(hash_bytes(data, sizeof(data)), hex), "a4ba2a60fb07e0166abe8be5abcb2760",
	     "of many bytes");
	is_s(hash_hex(hash_bytes_seeded(data, sizeof(data), 1), hex),
	     "b0546cf8e87a9bf44c98bd77d13d07b7", "with a seed");
	is_u(hash64("abc", 3), 0x78af5f94892f3950, "64 bits of three bytes");
	ok(hash_eq(hash_bytes(data, 9), hash_bytes_seeded(data, 9, 0)), "seed 0 is no seed");
	is_s(hash_hex((struct hash128){ 0xab, 1 }, hex), "000000000000000100000000000000ab",
	     "always 32 digits");
}

static void test_sum(void)
{
	struct hash128 a = hash_bytes("a", 1), b = hash_bytes("b", 1), c = hash_bytes("c", 1);
	struct hash128 carry = { UINT64_MAX, 0 }, one = { 1, 0 }, zero = { 0, 0 };

	ok(hash_eq(hash_add(hash_add(a, b), c), hash_add(c, hash_add(b, a))), "in any order");
	ok(hash_eq(hash_sub(hash_add(a, b), b), a), "can be taken back");
	ok(hash_eq(hash_add(carry, one), (struct hash128){ 0, 1 }), "carries");
	ok(hash_eq(hash_sub((struct hash128){ 0, 1 }, one), carry), "borrows");
	ok(hash_eq(hash_add(hash_sub(zero, one), one), zero), "wraps");
	ok(!hash_eq(a, b) && !hash_eq((struct hash128){ 1, 2 }, (struct hash128){ 1, 3 }) &&
		   !hash_eq((struct hash128){ 1, 2 }, (struct hash128){ 0, 2 }),
	   "both halves are compared");
}

int main(void)
{
	test_pinned();
	test_below();
	test_split();
	test_hash();
	test_sum();
	return done_testing();
}
