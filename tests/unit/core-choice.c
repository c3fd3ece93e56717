/* SPDX-License-Identifier: MIT */
/* Choices in order: all of them, those of a number, and at random. */
#include "tap.h"

#include <errno.h>

#include "core/choice.h"

static void test_product(void)
{
	auto_choice c;
	auto_strbuf all = STRBUF_INIT;

	choice_init_all(&c);
	while (choice_next(&c)) {
		choice_below(&c, 2);
		choice_below(&c, 1);
		choice_below(&c, 3);
		choice_string(&c, &all);
		strbuf_addch(&all, ' ');
	}
	is_s(strbuf_str(&all), "0.0.0 0.0.1 0.0.2 1.0.0 1.0.1 1.0.2 ", "the last varies fastest");
}

static void test_nothing_to_choose(void)
{
	auto_choice c;
	int rounds = 0;

	choice_init_all(&c);
	while (choice_next(&c))
		rounds++;
	is_i(rounds, 1, "without choices there is one round");
}

/* Permutations, by choosing among what is left. */
static void test_permutations(void)
{
	enum { N = 6, PERMUTATIONS = 720 };
	auto_choice c;
	uint64_t last = 0, n = 0;
	bool ascending = true, each_once = true;

	choice_init_all(&c);
	while (choice_next(&c)) {
		int left[N] = { 1, 2, 3, 4, 5, 6 };
		uint64_t number = 0, seen = 0;

		for (int i = 0; i < N; i++) {
			uint64_t k = choice_below(&c, (uint64_t)(N - i));

			number = number * 10 + (uint64_t)left[k];
			seen |= (uint64_t)1 << left[k];
			memmove(left + k, left + k + 1, sizeof(*left) * (N - k - 1));
		}
		ascending &= number > last;
		each_once &= seen == 0x7e;
		last = number;
		n++;
	}
	is_u(n, PERMUTATIONS, "all permutations of six");
	ok(ascending && each_once, "each once, in order");
}

/* Two digits that must differ, by dead ends; three ways below each first one that is not 2. */
static void test_dead_ends(void)
{
	auto_choice c;
	auto_strbuf alive = STRBUF_INIT;
	int dead = 0;

	choice_init_all(&c);
	while (choice_next(&c)) {
		uint64_t a = choice_below(&c, 3);
		uint64_t b = choice_below(&c, a == 2 ? 0 : 3);
		if (a == b)
			choice_below(&c, 0);
		uint64_t after = choice_below(&c, 1);

		if (choice_dead(&c)) {
			dead += after == 0;
			continue;
		}
		choice_string(&c, &alive);
		strbuf_addch(&alive, ' ');
	}
	is_s(strbuf_str(&alive), "0.1.0 0.2.0 1.0.0 1.2.0 ", "dead ends are left out");
	is_i(dead, 3, "and known as such");
}

/* The body used by the random and the replayed rounds. */
static uint64_t body(struct choice *c)
{
	uint64_t sum = 0;
	uint64_t n = choice_below(c, 20);

	for (uint64_t i = 0; i < n; i++)
		sum = sum * 31 + choice_below(c, (uint64_t)1 << (i % 33));
	return sum;
}

static void test_random_and_replay(void)
{
	auto_choice a, b;
	int rounds = 0, different = 0;
	bool same = true, replayed = true;
	uint64_t last = 0;

	choice_init_random(&a, 7, 500);
	choice_init_random(&b, 7, 500);
	while (choice_next(&a) && choice_next(&b)) {
		auto_strbuf text = STRBUF_INIT, again = STRBUF_INIT;
		uint64_t x = body(&a);
		struct choice r;

		rounds++;
		different += x != last;
		last = x;
		same &= body(&b) == x;
		choice_string(&a, &text);
		if (choice_init_replay(&r, strbuf_str(&text), NULL)) {
			replayed = false;
			continue;
		}
		replayed &= choice_next(&r) && body(&r) == x && !choice_failed(&r);
		choice_string(&r, &again);
		replayed &= streq(strbuf_str(&text), strbuf_str(&again));
		replayed &= !choice_next(&r) && !choice_failed(&r);
		choice_release(&r);
	}
	is_i(rounds, 500, "as many random rounds as asked for");
	ok(same && different > 400, "the same seed gives the same rounds, which differ");
	ok(replayed, "each is replayed from its string");
}

static bool fits(const char *text)
{
	auto_choice c = { 0 };

	if (choice_init_replay(&c, text, NULL) || !choice_next(&c))
		return false;
	choice_below(&c, 3);
	choice_below(&c, 1);
	choice_below(&c, 20);
	return !choice_failed(&c);
}

static void test_bad_strings(void)
{
	static const char *const malformed[] = {
		".",
		"1.",
		".1",
		"1..2",
		"a",
		"1.b",
		" 1",
		"1 ",
		"-1",
		"+1",
		"01",
		"1.00",
		"18446744073709551616",
		"99999999999999999999999",
	};
	struct err err = ERR_INIT;
	struct choice c = { .depth = 77 };
	int refused = 0;

	for (size_t i = 0; i < ARRAY_SIZE(malformed); i++) {
		err_clear(&err);
		int rc = choice_init_replay(&c, malformed[i], &err);
		refused += (rc == -EINVAL || rc == -ERANGE) && err.code == rc && c.depth == 77;
	}
	is_u(refused, ARRAY_SIZE(malformed), "malformed strings are refused: %s", err.msg);
	ok(fits("2.0.17") && fits("0.0.0"), "strings that fit");
	ok(!fits("3.0.17"), "a number too large");
	ok(!fits("2.1.17"), "a number too large for a choice of one");
	ok(!fits("2.0"), "a number missing");
	ok(!fits(""), "all numbers missing");
	ok(!fits("2.0.17.0"), "a number left over");
	is_i(choice_init_replay(&c, "18446744073709551615", NULL), 0, "the largest number");
	choice_release(&c);
}

int main(void)
{
	test_product();
	test_nothing_to_choose();
	test_permutations();
	test_dead_ends();
	test_random_and_replay();
	test_bad_strings();
	return done_testing();
}
