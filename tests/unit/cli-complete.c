/* SPDX-License-Identifier: MIT */
/*
 * cli-complete.c - completion for bash, zsh and fish: every option and value of a table is offered
 * where it can be, and what a help says is text, whatever is in it. bash is asked; the others, if
 * they are there.
 */
#include "cli/options_complete.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/io.h"
#include "tap.h"

static char home[] = "/tmp/outage-complete.XXXXXX";

/* ---- a program ---- */

static void list_colours(struct strbuf *out)
{
	strbuf_adds(out, "red green");
}

#define EVIL "it's [a] \\ $(touch ran) `touch ran` \"b\": c"

static const struct opt disk_options[] = {
	{ OPT_SIZE, "size", 's', "BYTES", .help = "of the disk" }, OPT_END
};

static const struct opt paint_options[] = {
	{ OPT_SECTION, .help = "A title" },
	{ OPT_FLAG, "json", 'J', NULL, .help = EVIL },
	{ OPT_CHOICE, "colour", 'c', "WHICH", .help = "one", .list = list_colours },
	{ OPT_SET, "kind", 0, "KIND,...", .help = "some", .words = "oil wax" },
	{ OPT_TEXT, "file", 'f', "FILE", .help = "a file", .hint = HINT_FILE },
	{ OPT_TEXT, "dir", 0, "DIR", .help = "a directory", .hint = HINT_DIR },
	{ OPT_TEXT, "note", 0, "[TEXT]", .help = "it may have a value" },
	{ OPT_LIST, NULL, 'o', "OPTION", .help = "a letter only" },
	{ OPT_COUNT, "rare", 0, "N", .help = "rarely told", .rare = true },
	{ OPT_GROUP, .group = disk_options },
	{ OPT_GROUP, .group = disk_options, .prefix = "ref-", .help = "of another" },
	{ OPT_ARGUMENT, .arg = "WALL", .help = "north, or south", .words = "north south" },
	OPT_END
};
static const struct opt no_options[] = { OPT_END };

static const struct command paint = { .name = "paint", .summary = EVIL, .options = paint_options };
static const struct command hidden = { .name = "hidden", .options = no_options };
static const struct command mix_oil = { .name = "mix oil",
					.summary = "oil",
					.options = paint_options };
static const struct command *const mix_subs[] = { &mix_oil, NULL };
static const struct command mix = {
	.name = "mix", .summary = "mixes", .options = no_options, .sub = mix_subs
};
static const struct command *const subs[] = { &paint, &hidden, &mix, NULL };
static const struct command program = {
	.name = "outage", .alone = true, .options = no_options, .sub = subs
};
static const struct command *const programs[] = { &program, NULL };

/* ---- asking ---- */

static void keep(const char *name, const struct strbuf *text)
{
	struct err err = ERR_INIT;

	if (io_write_file(home, name, strbuf_str(text), text->len, 0, &err)) {
		printf("Bail out! %s\n", err.msg);
		exit(1);
	}
}

/* What bash offers for the last word of `line`, with a blank before and after each. To be freed. */
static char *offered(const char *line)
{
	static const char ask[] = "compopt() { :; }\n"
				  ". ./completion.bash\n"
				  "read -ra COMP_WORDS <<<\"$1\"\n"
				  "[[ $1 != *\" \" ]] || COMP_WORDS+=('')\n"
				  "COMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n"
				  "_outage\n"
				  "printf ' %s ' \"${COMPREPLY[@]}\" >out\n";
	auto_strbuf script = STRBUF_INIT, command = STRBUF_INIT, got = STRBUF_INIT;
	struct err err = ERR_INIT;

	strbuf_adds(&script, ask);
	keep("ask.bash", &script);
	strbuf_addf(&command, "cd %s && rm -f out && bash ask.bash '%s' </dev/null", home, line);
	if (system(command.buf) || io_slurp_file(home, "out", 1 << 16, &got, &err))
		return xstrdup("");
	return xstrdup(strbuf_str(&got));
}

static void offers(const char *line, const char *want)
{
	auto_free char *got = offered(line);

	is_s(got, want, "'%s'", line);
}

static bool was_run(void)
{
	auto_strbuf path = STRBUF_INIT;

	strbuf_addf(&path, "%s/ran", home);
	return access(path.buf, F_OK) == 0;
}

static void test_bash(void)
{
	auto_strbuf out = STRBUF_INIT;

	complete_bash(programs, &out);
	keep("completion.bash", &out);
	offers("outage ", " paint  mix ");
	offers("outage pa", " paint ");
	offers("outage -v pa", " paint ");
	offers("outage mix ", " oil ");
	offers("outage paint --",
	       " --json  --colour  --kind  --file  --dir  --note  --rare  --size  "
	       "--ref-size  --help ");
	offers("outage mix oil --co", " --colour ");
	offers("outage paint --colour ", " red  green ");
	offers("outage paint -c g", " green ");
	offers("outage paint --colour = r", " red ");
	offers("outage paint --kind oil,w", " oil,wax ");
	offers("outage paint --size ", "  ");
	offers("outage paint --note ", " north  south ");
	offers("outage paint --json no", " north ");
	offers("outage paint --file completion.b", " completion.bash ");
	offers("outage paint --dir completion.b", "  ");
	ok(!strstr(out.buf, "hidden"), "a command without a summary is not told");
	ok(!was_run(), "nothing of a help is run");
}

/* The syntax, if the shell is there; false: it is not. */
static void check_syntax(const char *shell, const struct strbuf *text)
{
	auto_strbuf command = STRBUF_INIT, missing = STRBUF_INIT;

	keep("completion", text);
	strbuf_addf(&command, "command -v %s >/dev/null", shell);
	strbuf_addf(&missing, "%s is not there", shell);
	if (system(command.buf)) {
		skip(missing.buf);
		return;
	}
	strbuf_clear(&command);
	strbuf_addf(&command, "cd %s && %s -n completion", home, shell);
	ok(system(command.buf) == 0, "%s can read it", shell);
}

static void test_zsh(void)
{
	auto_strbuf out = STRBUF_INIT;

	complete_zsh(programs, &out);
	ok(strncmp(out.buf, "#compdef outage lazyfs\n", 23) == 0,
	   "zsh: the first line says what for");
	ok(strstr(out.buf, "\t\t'*'{-J,--json}'[it'\\''s \\[a\\] \\\\ $(touch ran) `touch ran` "
			   "\"b\"\\: c]' \\\n"),
	   "zsh: a help is quoted, and what has a meaning there escaped");
	ok(strstr(out.buf, "'*'{-c+,--colour=}'[one]:WHICH:(red green)'"), "zsh: a choice");
	ok(strstr(out.buf, "'*'--kind='[some]:KIND,...:_sequence compadd - oil wax'"),
	   "zsh: a set");
	ok(strstr(out.buf, "'*'{-f+,--file=}'[a file]:FILE:_files'"), "zsh: a file");
	ok(strstr(out.buf, "'*'--dir='[a directory]:DIR:_files -/'"), "zsh: a directory");
	ok(strstr(out.buf, "'*'--note=-'[it may have a value]::\\[TEXT\\]: '"),
	   "zsh: a value or none");
	ok(strstr(out.buf, "'*'-o+'[a letter only]:OPTION: '"), "zsh: a letter only");
	ok(strstr(out.buf, "'*'{-s+,--size=}'[of the disk]") &&
		   strstr(out.buf, "'*'--ref-size='[of the disk]"),
	   "zsh: a table, and again with a prefix and without letters");
	ok(strstr(out.buf, "'*:WALL:(north south)'"), "zsh: arguments");
	ok(strstr(out.buf, "\n_outage_mix_oil() {\n") &&
		   strstr(out.buf, "\t\toil) _outage_mix_oil ;;\n"),
	   "zsh: subcommands of subcommands");
	ok(!strstr(out.buf, "hidden"), "zsh: nothing is hidden that should be");
	check_syntax("zsh", &out);
}

static void test_fish(void)
{
	auto_strbuf out = STRBUF_INIT;

	complete_fish(programs, &out);
	ok(strstr(out.buf,
		  "complete -c outage -n '__outage_at paint' -l json -s J -d 'it'\\''s [a] \\"),
	   "fish: a help is quoted");
	ok(strstr(out.buf, " -l colour -s c -x -a 'red green' -d 'one'\n"), "fish: a choice");
	ok(strstr(out.buf, " -l file -s f -r -F -d 'a file'\n"), "fish: a file");
	ok(strstr(out.buf, " -l note -d 'it may have a value'\n"), "fish: a value or none");
	ok(strstr(out.buf, "'__outage_at paint' -s o -x -d 'a letter only'\n"),
	   "fish: a letter only");
	ok(strstr(out.buf, " -l ref-size -x -d 'of the disk'\n"),
	   "fish: a prefix, without a letter");
	ok(strstr(out.buf, "complete -c outage -n '__outage_at -x' -a paint -d "),
	   "fish: commands");
	ok(strstr(out.buf, " -n '__outage_at -x mix' -a oil -d 'oil'\n"), "fish: subcommands");
	ok(strstr(out.buf, "'__outage_at paint' -a 'north south' -d 'north, or south'\n"),
	   "fish: arguments");
	ok(!strstr(out.buf, "hidden"), "fish: nothing is hidden that should be");
	check_syntax("fish", &out);
}

int main(void)
{
	auto_strbuf rm = STRBUF_INIT;

	if (!mkdtemp(home))
		return 1;
	test_bash();
	test_zsh();
	test_fish();
	strbuf_addf(&rm, "rm -rf %s", home);
	if (system(rm.buf))
		printf("# %s stays\n", home);
	return done_testing();
}
