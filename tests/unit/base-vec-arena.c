/* SPDX-License-Identifier: MIT */
/* base-vec-arena.c - typed arrays, memory that goes at once, and the helpers of util.h. */
#include "base/arena.h"
#include "base/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "tap.h"

struct point {
	int x, y;
};

static void test_vec(void)
{
	struct vec_of(int) v = { 0 };
	struct vec_of(struct point) points = { 0 };
	int wrong = 0;

	for (int i = 0; i < 10000; i++)
		vec_push(&v, i);
	for (int i = 0; i < 10000; i++)
		wrong += v.v[i] != i;
	ok(v.n == 10000 && !wrong, "pushed ten thousand");
	is_i(vec_last(&v), 9999, "the last");
	vec_last(&v) = 7;
	is_i(v.v[9999], 7, "can be assigned");
	size_t cap = v.cap;
	vec_clear(&v);
	ok(v.n == 0 && v.cap == cap, "cleared, memory kept");
	vec_reserve(&v, cap);
	is_u(v.cap, cap, "room that is there is enough");
	vec_reserve(&v, cap + 1);
	ok(v.cap > cap, "more is made");
	vec_push(&points, (struct point){ .x = 1, .y = 2 });
	ok(points.v[0].x == 1 && points.v[0].y == 2, "a literal with commas");
	vec_release(&v);
	vec_release(&points);
	ok(!v.v && !v.n && !v.cap, "released");
}

DEFINE_ORDER(by_value, int, order(*a, *b))
DEFINE_ORDER(by_x_down, struct point, order(b->x, a->x) ?: order(a->y, b->y))

static void test_order(void)
{
	auto_vec struct vec_of(int) v = { 0 };
	auto_vec struct vec_of(struct point) points = { 0 };

	vec_sort(&v, by_value);
	vec_sort_unique(&v, by_value);
	is_u(first_where(i, v.n, true), 0, "none is sorted, and has no first");
	for (int i = 0; i < 9; i++)
		vec_push(&v, i * 7 % 5);
	vec_sort_unique(&v, by_value);
	ok(v.n == 5 && v.v[0] == 0 && vec_last(&v) == 4, "sorted, each once");
	is_u(first_where(i, v.n, v.v[i] >= 3), 3, "the first of those that are large");
	is_u(first_where(i, v.n, v.v[i] >= 9), 5, "of which there may be none");
	ok(any_of(i, v.n, v.v[i] == 3) && !any_of(i, v.n, v.v[i] == 9) && !any_of(i, 0, true),
	   "any of them");
	ok(vec_find(i, &v, v.v[i] > 2) == &v.v[3] && !vec_find(i, &v, v.v[i] > 9), "which it is");
	vec_remove(&v, 1, 2);
	ok(v.n == 3 && v.v[0] == 0 && v.v[1] == 3 && v.v[2] == 4, "two are taken out");
	for (int i = 0; i < 4; i++)
		vec_push(&points, (struct point){ i / 2, -i });
	vec_sort(&points, by_x_down);
	ok(points.v[0].y == -3 && points.v[1].y == -2 && points.v[3].y == 0, "by two members");
}

static void test_arena(void)
{
	auto_arena a = ARENA_INIT;
	unsigned char *p[2000];
	int misaligned = 0, wrong = 0;

	for (size_t i = 0; i < ARRAY_SIZE(p); i++) {
		p[i] = arena_alloc(&a, i % 300 + 1);
		misaligned += (uintptr_t)p[i] % 16 != 0;
		memset(p[i], (int)(i & 0xff), i % 300 + 1);
	}
	for (size_t i = 0; i < ARRAY_SIZE(p); i++)
		for (size_t k = 0; k <= i % 300; k++)
			wrong += p[i][k] != (i & 0xff);
	ok(!wrong && !misaligned, "pieces are aligned and do not overlap");
	ok(arena_alloc(&a, 0) != NULL, "nothing is a piece too");
	unsigned char *big = arena_alloc(&a, 10 << 20);
	memset(big, 1, 10 << 20);
	is_s(arena_strdup(&a, "text"), "text", "a copy of a string");
	is_s(arena_memdupz(&a, "text", 2), "te", "a copy of bytes is a string");
	is_s(arena_memdupz(&a, NULL, 0), "", "also of none");
	unsigned char *z = arena_zalloc(&a, 5000);
	for (wrong = 0; wrong < 5000 && !z[wrong]; wrong++)
		;
	is_i(wrong, 5000, "zeroed");
}

static size_t count_spare(const struct arena *a)
{
	/* The first member of a block is the next block; nothing else is known of it here. */
	size_t n = 0;

	for (void *b = a->spare; b; b = *(void **)b)
		n++;
	return n;
}

static void test_arena_reuse(void)
{
	auto_arena a = ARENA_INIT;

	arena_alloc(&a, 20000);
	void *second = arena_alloc(&a, 20000);
	arena_alloc(&a, 1 << 20);
	arena_clear(&a);
	ok(!a.blocks && count_spare(&a) == 2, "blocks are kept, a very large one is not");
	void *first = arena_alloc(&a, 20000), *again = arena_alloc(&a, 20000);
	ok((first == second || again == second) && !a.spare, "and used again");
	unsigned char *z = arena_zalloc(&a, 10);
	is_u(z[0] + z[9], 0, "zeroed also in an old block");
	arena_release(&a);
	arena_release(&a);
	ok(!a.blocks && !a.spare, "released twice");
	arena_alloc(&a, 1);
	ok(a.blocks, "and used after");
}

static void test_util(void)
{
	auto_free char *p = xstrdup("own");
	auto_free char *q = steal(p);
	int fds[2];

	ok(!p && streq(q, "own"), "steal moves a pointer");
	if (pipe(fds) < 0)
		abort();
	int taken = fds[0];
	is_i(steal_fd(&fds[0]), taken, "steal_fd moves a descriptor");
	is_i(fds[0], -1, "and leaves none");
	{
		auto_fd closed = taken;
		(void)closed;
	}
	ok(fcntl(taken, F_GETFD) < 0 && errno == EBADF, "auto_fd closes");
	errno = 7;
	util_close(-1);
	util_close(fds[1]);
	util_close(fds[1]);
	is_i(errno, 7, "closing does not disturb errno");
	auto_free char *text = xasprintf("%d-%s", 5, "x");
	is_s(text, "5-x", "xasprintf");
	auto_free char *part = xmemdupz("abc", 2);
	is_s(part, "ab", "xmemdupz");
	ok(min(1, 2) == 1 && max(1, 2) == 2 && min(2, 1) == 1 && max(2, 1) == 2, "min and max");
}

int main(void)
{
	test_vec();
	test_order();
	test_arena();
	test_arena_reuse();
	test_util();
	return done_testing();
}
