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
		vec_push(w, (struct second_way){ { all[i].what, 0 }, xstrdup(all[i].state) });
}

static void test_choose(uint64_t max, const char *expected)
{
	struct second_ways w = { 0 };
	auto_strbuf chosen = STRBUF_INIT;

	fill(&w);
	is_u(second_ways_choose(&w, max), 4, "four ways, of which %llu are chosen at most",
	     (unsigned long long)max);
	for (size_t i = 0; i < w.n; i++)
		strbuf_adds(&chosen, w.v[i].state);
	is_s(strbuf_str(&chosen), expected, "one state of each");
	second_ways_release(&w);
}

int main(void)
{
	struct second_ways none = { 0 };

	test_choose(9, "abcf");
	test_choose(4, "abcf");
	test_choose(3, "abc");
	test_choose(2, "ac");
	test_choose(0, "");
	is_u(second_ways_choose(&none, 4), 0, "there may be none");
	is_u(second_share(100, 8), 12, "alike");
	is_u(second_share(3, 8), 1, "one at least");
	is_u(second_share(7, 0), 7, "the last gets the rest");
	return done_testing();
}
