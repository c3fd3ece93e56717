/* SPDX-License-Identifier: MIT */
/*
 * cli-man.c - the options part of a manual page: all options of the table, with what the page says
 * of them, or else what all pages say, or else their help. A page that tells of what is gone is
 * wrong.
 */
#include "cli/options_man.h"

#include <stdlib.h>

#include "tap.h"

static const struct opt disk_options[] = {
	{ OPT_SIZE, "size", 's', "BYTES", .help = "of the disk" }, OPT_END
};

static const struct opt paint_options[] = {
	{ OPT_SECTION, .help = "Which" },
	{ OPT_TEXT, "colour", 'c', "NAME|FILE", .help = "as a_name or *", .otherwise = "red" },
	{ OPT_FLAG, "json", 0, NULL, .help = "as JSON" },
	{ OPT_SECTION, .help = "How" },
	{ OPT_COUNT, "skip", 0, "N", .help = "not the first N" },
	{ OPT_COUNT, "limit", 'n', "N", .help = "at most N" },
	{ OPT_TEXT, "note", 0, "[TEXT]", .help = "a note" },
	{ OPT_LIST, NULL, 'o', "OPTION", .help = "several" },
	{ OPT_GROUP, .group = disk_options, .prefix = "ref-", .help = "of another" },
	{ OPT_ARGUMENT, .arg = "WALL...", .help = "what is painted" },
	OPT_END
};
static const struct opt mix_options[] = { { OPT_FLAG, "json", 0, NULL, .help = "as JSON" },
					  OPT_END };
static const struct opt no_options[] = { OPT_END };

static const struct command paint = { .name = "paint",
				      .summary = "paints",
				      .options = paint_options };
static const struct command oil = { .name = "mix oil", .summary = "oil", .options = mix_options };
static const struct command wax = { .name = "mix wax", .summary = "wax", .options = mix_options };
static const struct command *const mix_subs[] = { &oil, &wax, NULL };
static const struct command mix = {
	.name = "mix", .summary = "mixes", .options = no_options, .sub = mix_subs
};
static const struct command *const subs[] = { &paint, &mix, NULL };
static const struct command program = {
	.name = "outage", .alone = true, .options = no_options, .sub = subs
};
static const struct command *const programs[] = { &program, NULL };

static struct strbuf out = STRBUF_INIT;
static struct err err;

static int make(const char *page, const char *shared)
{
	auto_free char *a = xstrdup(page), *b = xstrdup(shared);

	strbuf_clear(&out);
	err = (struct err)ERR_INIT;
	return man_page(programs, a, b, &out, &err);
}

static bool has(const char *text)
{
	bool found = strstr(strbuf_str(&out), text) != NULL;

	if (!found)
		printf("#   not in: %s\n", strbuf_str(&out));
	return found;
}

static void test_page(void)
{
	ok(!make("before\n\n@options paint\n@end\nafter\n", ""), "a page");
	ok(strncmp(out.buf, "before\n\n## Which\n\n*-c*, *--colour* _NAME_|_FILE_\n", 49) == 0,
	   "what is before it stays, and a section begins");
	ok(has("\tAs a\\_name or \\*. Default: _red_.\n\n"),
	   "a help is a sentence, without markup");
	ok(has("\n## How\n\n*--skip* _N_\n\tNot the first N.\n\n*-n*, *--limit* _N_\n"),
	   "in its order");
	ok(has("\n*--note*[=_TEXT_]\n"), "a value that may be there");
	ok(has("\n*-o* _OPTION_\n"), "a letter only");
	ok(has("\n*--ref-*_OPTION_ _VALUE_\n\tOf another.\n"),
	   "a table with a prefix is told once");
	ok(!strstr(out.buf, "ref-size"), "and not one by one");
	ok(has("\n_WALL_...\n\tWhat is painted.\n"), "an argument");
	ok(has("*-h*, *--help* [*all*]\n"), "help is told, too");
	ok(out.len > 6 && streq(out.buf + out.len - 6, "after\n"), "what is after it stays");
}

static void test_notes(void)
{
	ok(!make("@options paint\n@--skip --limit\n\tSo many.\n\n@end\n",
		 "@--limit\n\tNot used.\n\n@--json\n\tOf all pages.\n\n@--gone\n\tOf others.\n"),
	   "a page that says something");
	ok(has("\n*--skip* _N_, *-n*, *--limit* _N_\n\tSo many.\n"), "tells of options together");
	const char *once = strstr(out.buf, "So many.");
	ok(once && !strstr(once + 1, "So many."), "in one place");
	ok(!strstr(out.buf, "Not the first N") && !strstr(out.buf, "Not used"), "and of each once");
	ok(has("*--json*\n\tOf all pages.\n"), "what all pages say comes before the help");
	ok(!strstr(out.buf, "Of others"), "what is not there is not told");
	ok(!make("@options paint\n@--colour\n\tMine.\n\n@end\n", "@--colour\n\tOurs.\n\n") &&
		   has("\tMine.\n") && !strstr(out.buf, "Ours"),
	   "the page goes first");
	ok(!make("@options paint\n@--ref-OPTION\n\tOf the one "
		 "before.\n\n@-o\n\tEach.\n\n@WALL...\n\tWalls.\n\n@end\n",
		 "") &&
		   has("*--ref-*_OPTION_ _VALUE_\n\tOf the one before.\n") &&
		   has("*-o* _OPTION_\n\tEach.\n") && has("_WALL_...\n\tWalls.\n"),
	   "of prefixes, letters and arguments, too");
}

static void test_commands(void)
{
	ok(!make("@options mix\n@end\n", ""), "a command with subcommands");
	const char *first = strstr(strbuf_str(&out), "*--json*");
	ok(first && !strstr(first + 1, "*--json*"), "has the options of all of them, once");
	ok(has("*-h*, *--help*\n"), "and no rare ones");
	ok(!make("@options mix oil\n@end\n", "") && has("*--json*\n"), "a subcommand");
	ok(!make("@options outage\n@end\n", "") && !strstr(out.buf, "json"),
	   "those of commands are not the program's");
}

static void wrong(const char *page, const char *words)
{
	ok(make(page, "") < 0, "wrong: %.40s", words);
	is_s(err.msg, words, "and says so");
}

static void test_mistakes(void)
{
	wrong("@options gone\n@end\n", "there is no command 'gone'");
	wrong("@options paint\n", "@options paint has no @end");
	wrong("@options paint\n@--frob\n\tGone.\n@end\n",
	      "the page tells of --frob, which outage paint does not have");
	wrong("@options mix\n@--colour\n\tNot here.\n@end\n",
	      "the page tells of --colour, which outage mix does not have");
}

int main(void)
{
	test_page();
	test_notes();
	test_commands();
	test_mistakes();
	strbuf_release(&out);
	return done_testing();
}
