/* SPDX-License-Identifier: MIT */
/* Which first crashes get second ones, and how the budget is divided among them. */
#include "base/strbuf.h"
#include "search/second.h"
#include "tap.h"

/* States "a" to "f": recovery does the same to a and d, and to b and e. */
static void fill(struct second_ways *w)
{
	static const struct {
		uint64_t what;
		const char *state;
	} all[] = { { 2, "e" }, { 1, "d" }, { 4, "f" }, { 1, "a" }, { 3, "c" }, { 2, "b" } };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		vec_push(w, (struct second_way){ .what = { all[i].what, 0 },
						 .state = xstrdup(all[i].state) });
}

static void choose(struct second_ways *w, size_t ways, uint64_t max, const char *expected,
		   const char *words)
{
	auto_strbuf chosen = STRBUF_INIT;

	is_u(second_ways_choose(w, max), ways, "so many ways, of which %llu are chosen at most",
	     (unsigned long long)max);
	for (size_t i = 0; i < w->n; i++)
		strbuf_adds(&chosen, w->v[i].state);
	is_s(strbuf_str(&chosen), expected, "%s", words);
	second_ways_release(w);
}

static void test_choose(uint64_t max, const char *expected)
{
	struct second_ways w = { 0 };

	fill(&w);
	choose(&w, 4, max, expected, "one state of each");
}

/* ---- with kinds ---- */

static void add(struct second_ways *w, uint64_t kind, uint64_t what, bool leads, uint64_t worth)
{
	size_t n = w->n;

	vec_push(w, (struct second_way){ .what = { what, 0 },
					 .state = xasprintf("%zu", n),
					 .kind = { kind, 0 },
					 .leads = leads,
					 .worth = worth,
					 .turn = n });
}

static void test_kinds(uint64_t max, const char *expected, const char *words)
{
	struct second_ways w = { 0 };

	add(&w, 1, 1, false, 9);
	add(&w, 2, 2, true, 0);
	add(&w, 2, 3, true, 1);
	add(&w, 2, 4, true, 2);
	add(&w, 2, 4, true, 1); /* the same, and worth less */
	add(&w, 2, 5, true, 2);
	add(&w, 3, 6, true, 0);
	choose(&w, 6, max, expected, words);
}

int main(void)
{
	struct second_ways none = { 0 };

	test_choose(9, "abcf");
	test_choose(4, "abcf");
	test_choose(3, "abc");
	test_choose(2, "ac");
	test_choose(0, "");
	test_kinds(1, "3", "one: it leads, and is worth most");
	test_kinds(3, "360", "three: one of each kind, those that lead first");
	test_kinds(4, "3601", "four: then another");
	test_kinds(5, "36012", "five: evenly among the rest");
	test_kinds(16, "360125", "many: each once");
	is_u(second_ways_choose(&none, 4), 0, "there may be none");
	is_u(second_share(100, 8), 12, "alike");
	is_u(second_share(3, 8), 1, "one at least");
	is_u(second_share(7, 0), 7, "the last gets the rest");
	return done_testing();
}
