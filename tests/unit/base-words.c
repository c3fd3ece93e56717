/* SPDX-License-Identifier: MIT */
/* Commands are split into words as a shell does it. */
#include "base/words.h"

#include <errno.h>

#include "base/rng.h"
#include "tap.h"

/* The words of `line`, each in brackets; or "error". */
static const char *split(const char *line)
{
	static char text[512];
	auto_words w = { 0 };
	auto_strbuf all = STRBUF_INIT;
	struct err err = ERR_INIT;

	if (words_split(line, strlen(line), &w, &err))
		return "error";
	for (size_t i = 0; i < w.n; i++)
		strbuf_addf(&all, "[%s]", w.v[i]);
	snprintf(text, sizeof(text), "%s", strbuf_str(&all));
	return text;
}

static void test_split(void)
{
	is_s(split(""), "", "nothing");
	is_s(split(" \t "), "", "blanks");
	is_s(split("a"), "[a]", "one word");
	is_s(split(" a  bc\td "), "[a][bc][d]", "several");
	is_s(split("'a b' \"c d\""), "[a b][c d]", "quotes");
	is_s(split("''"), "[]", "a word of nothing");
	is_s(split("file='a b'.log"), "[file=a b.log]", "quotes inside of a word");
	is_s(split("'a\\b\"'"), "[a\\b\"]", "single quotes keep everything");
	is_s(split("\"a\\\\b\\\"c\""), "[a\\b\"c]", "a backslash in double quotes");
	is_s(split("a\\ b \\' \\n"), "[a b]['][n]", "a backslash outside");
	is_s(split("\"a\\nb\""), "[a\nb]", "a line end");
	is_s(split("'a"), "error", "a single quote that stays open");
	is_s(split("a \"b"), "error", "a double quote that stays open");
	is_s(split("a\\"), "error", "a backslash at the end");
}

static void test_nul(void)
{
	auto_words w = { 0 };
	struct err err = ERR_INIT;

	is_i(words_split("a\0b", 3, &w, &err), -EINVAL, "a NUL is refused");
}

/* Whatever a word holds, it comes back, from one line. */
static void test_round(void)
{
	static const char alphabet[] = "ab '\"\\\n\t\r=$`\xff";
	struct rng rng;
	bool same = true, one_line = true;

	rng_init(&rng, 7);
	for (int round = 0; round < 2000; round++) {
		auto_strbuf line = STRBUF_INIT;
		auto_words w = { 0 };
		struct err err = ERR_INIT;
		char words[3][8];

		for (int i = 0; i < 3; i++) {
			size_t n = rng_below(&rng, 8);

			for (size_t k = 0; k < n; k++)
				words[i][k] = alphabet[rng_below(&rng, sizeof(alphabet) - 1)];
			words[i][n] = '\0';
			strbuf_addch(&line, ' ');
			words_quote(words[i], &line);
		}
		one_line = one_line && !strchr(strbuf_str(&line), '\n');
		same = same && words_split(line.buf, line.len, &w, &err) == 0 && w.n == 3;
		for (size_t i = 0; same && i < 3; i++)
			same = streq(w.v[i], words[i]);
	}
	ok(one_line, "a quoted word has no line end");
	ok(same, "what is quoted comes back");
}

int main(void)
{
	test_split();
	test_nul();
	test_round();
	return done_testing();
}
