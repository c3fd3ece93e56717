/* SPDX-License-Identifier: MIT */
/* A word that nobody knows is most like the one with the fewest other letters, or like none. */
#include "tap.h"

#include "base/similar.h"

static void test_words(void)
{
	static const char *const words[] = { "test",   "trace",	       "report",
					     "replay", "suppressions", NULL };
	static const struct {
		const char *given, *like;
	} cases[] = {
		{ "tset", "test" },
		{ "test", "test" },
		{ "tracee", "trace" },
		{ "repaly", "replay" },
		{ "reprot", "report" },
		{ "rport", "report" },
		{ "supressoins", "suppressions" },
		{ "suppresions", "suppressions" },
		{ "best", "test" },
		{ "t", NULL },
		{ "", NULL },
		{ "list", NULL },
		{ "frobnicate", NULL },
		{ "te", NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *got = similar_of(cases[i].given, words);

		is_s(got ? got : "nothing", cases[i].like ? cases[i].like : "nothing",
		     "'%s' is most like", cases[i].given);
	}
	static const char *const none[] = { NULL }, *const other[] = { "b", NULL };
	static const char *const alike[] = { "b", "list", "lisp", NULL };
	ok(!similar_of("test", none), "of no words, none is");
	ok(!similar_of("a", other), "a word of which no letter is right is none");
	is_s(similar_of("lisx", alike), "list", "the first of two that are as near");
	is_s(similar_of("lisp", alike), "lisp", "but not before one that is nearer");
}

static void hints(const char *word, const char *words, const char *want)
{
	auto_strbuf out = STRBUF_INIT;

	similar_hint(word, words, &out);
	is_s(strbuf_str(&out), want, "'%s' among '%s'", word, words);
}

int main(void)
{
	test_words();
	hints("etx4", "ext4, xfs, uml:ext4", " (did you mean ext4?)");
	hints("reordr", "persist last prefix reorder", " (did you mean reorder?)");
	hints("nothing", "persist last prefix reorder", "");
	hints("x", "", "");
	return done_testing();
}
