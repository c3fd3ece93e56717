/* SPDX-License-Identifier: MIT */
/* Call stacks that are followed by calls and returns. */
#include "tap.h"

#include "shadow.h"

#define TOP    0x7ffe00000000u
#define KERNEL 0xffffc90000100000u

static size_t frames(const struct shadow *s, uint64_t *inner)
{
	uint64_t out[SHADOW_FRAMES] = { 0 };
	size_t n = shadow_frames(s, out);

	*inner = out[0];
	return n;
}

static void test_calls(void)
{
	struct shadow s = { 0 };
	uint64_t inner, one, two;

	is_u(shadow_hash(&s), 0, "an empty stack");
	shadow_call(&s, TOP - 8, 0x100);
	one = shadow_hash(&s);
	shadow_call(&s, TOP - 32, 0x200);
	two = shadow_hash(&s);
	ok(frames(&s, &inner) == 2 && inner == 0x200, "two calls, the inner one first");
	ok(one && two && one != two, "they differ");
	s.number = 7;
	shadow_return(&s, TOP - 32);
	ok(shadow_hash(&s) == one && s.number == 0, "a return gives what was before");
	shadow_call(&s, TOP - 32, 0x200);
	is_u(shadow_hash(&s), two, "the same again is the same");
	s.number = 7;
	shadow_return(&s, TOP - 64);
	ok(shadow_hash(&s) == two && s.number == 7,
	   "a return that was never called changes nothing");
	shadow_call(&s, TOP - 64, 0x300);
	shadow_call(&s, TOP - 96, 0x400);
	shadow_call(&s, TOP - 40, 0x500);
	ok(frames(&s, &inner) == 3 && inner == 0x500, "a jump out of two functions leaves them");
	shadow_call(&s, TOP - 8, 0x600);
	ok(frames(&s, &inner) == 1 && inner == 0x600, "all of them, if it goes that far");
	shadow_return(&s, TOP - 8);
	is_u(shadow_hash(&s), 0, "and the last one returns");
}

static void test_deep(void)
{
	struct shadow s = { 0 };
	uint64_t inner;
	bool right = true;

	for (uint64_t i = 1; i <= 5000; i++) {
		shadow_call(&s, TOP - 16 * i, i);
		right &= frames(&s, &inner) <= SHADOW_FRAMES && inner == i;
	}
	ok(right, "a deep stack has its inner end");
	for (uint64_t i = 5000; i > 0; i--)
		shadow_return(&s, TOP - 16 * i);
	is_u(s.n, 0, "and can be left");
}

static void test_user(void)
{
	struct shadows own = { 0 };
	struct shadow *main_one = shadow_user(&own, TOP - 8), *other;
	uint64_t inner;

	shadow_call(main_one, TOP - 8, 0x100);
	ok(shadow_user(&own, TOP - 4096) == main_one, "close by is the same stack");
	other = shadow_user(&own, TOP - (8 << 20));
	ok(other && other != main_one, "far away is another one");
	shadow_call(other, TOP - (8 << 20), 0x200);
	ok(shadow_user(&own, TOP - 64) == main_one && frames(main_one, &inner) == 1 &&
		   inner == 0x100,
	   "and the first is still what it was");
	shadow_return(other, TOP - (8 << 20));
	ok(shadow_user(&own, TOP - (8 << 20) - 64) == other, "an empty one is known by its place");
	for (uint64_t i = 2; i < 100; i++)
		shadow_call(shadow_user(&own, TOP - (i * 16 << 20)), TOP - (i * 16 << 20), i);
	ok(frames(shadow_user(&own, TOP - 64), &inner) == 0, "one of too many is forgotten");
	shadow_forget(&own);
}

static void test_kernel(void)
{
	struct shadow *a = shadow_kernel(KERNEL + 100), *b = shadow_kernel(KERNEL + 0x4000);
	size_t got = 0;

	ok(!shadow_kernel(TOP), "a program's stack is not the kernel's");
	ok(a && b && a != b, "two tasks have two stacks");
	ok(shadow_kernel(KERNEL + 0x3ff8) == a, "and each its own");
	for (uint64_t i = 0; i < 3 * SHADOW_KERNEL; i++)
		got += shadow_kernel(KERNEL + (i << 15)) != NULL;
	ok(got > SHADOW_KERNEL / 2 && got <= SHADOW_KERNEL, "there is room for %zu", got);
	ok(shadow_kernel(KERNEL + 200) == a, "the first are still there");
}

int main(void)
{
	test_calls();
	test_deep();
	test_user();
	test_kernel();
	return done_testing();
}
