/* SPDX-License-Identifier: MIT */
/* cli-options.c - a command line is read by its table, and every mistake has one sentence. */
#include "cli/options.h"

#include <errno.h>

#include "tap.h"

struct side {
	uint64_t size;
	const char *kernel;
};

struct given {
	bool json, sync, remount;
	const char *text, *lines;
	char *copy;
	struct vec_of(const char *) list;
	uint64_t number, count, jobs, timeout_ms, large;
	uint32_t depth, order, kinds;
	struct side side, refs[2];
	unsigned n_refs;
	char taken[64];
};

static int upper(const char *arg, char **out, struct err *err)
{
	if (!*arg)
		return err_set(err, -EINVAL, "nothing to make larger");
	*out = xstrdup(arg);
	for (char *c = *out; *c; c++)
		*c = (char)(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
	return 0;
}

static int call_large(void *at, const char *arg, struct err *err)
{
	(void)err;
	*(uint64_t *)at = arg ? strlen(arg) : 4096;
	return 0;
}

static int take_plan(void *at, const struct opt *o, const char *arg, struct err *err)
{
	if (streq(o->name, "media") && streq(arg, "bad"))
		return err_set(err, -EINVAL, "it is bad");
	snprintf(at, sizeof(((struct given *)0)->taken), "%s=%s", o->name, arg ? arg : "yes");
	return 0;
}

static void *last_ref(void *into, struct err *err)
{
	struct given *g = into;

	if (g->n_refs)
		return &g->refs[g->n_refs - 1];
	err_set(err, -EINVAL, "there is no --ref before it");
	return NULL;
}

static int add_ref(void *into, const char *arg, struct err *err)
{
	struct given *g = into;

	(void)arg, (void)err;
	g->n_refs++;
	return 0;
}

static void list_orders(struct strbuf *out)
{
	strbuf_adds(out, "walk depth breadth");
}

static const struct opt side_options[] = {
	{ OPT_SECTION, .help = "The side" },
	{ OPT_SIZE, "size", 's', "BYTES", OPT_AT(struct side, size), .help = "of the disk" },
	{ OPT_TEXT, "kernel", 0, "FILE", OPT_AT(struct side, kernel), .help = "of the guest",
	  .normal = upper },
	OPT_END
};

static const struct opt plan_options[] = { { OPT_TEXT, "media", 0, "WHAT", .help = "what is bad" },
					   { OPT_FLAG, "eadr", 0, NULL,
					     .help = "caches are persistent", .rare = true },
					   OPT_END };

#define AT(member) OPT_AT(struct given, member)
static const struct opt table[] = {
	{ OPT_SECTION, .help = "All kinds" },
	{ OPT_FLAG, "json", 'J', NULL, AT(json), .help = "as JSON" },
	{ OPT_OFF, "no-sync", 0, NULL, AT(sync), .help = "without" },
	{ OPT_TEXT, "text", 't', "TEXT", AT(text), .help = "a text", .otherwise = "none" },
	{ OPT_COPY, "copy", 0, "TEXT", AT(copy), .help = "a copy", .words = "x yy",
	  .strict = true },
	{ OPT_LINES, "line", 0, "TEXT", AT(lines), .help = "lines" },
	{ OPT_LIST, NULL, 'o', "OPTION", AT(list), .help = "several" },
	{ OPT_NUMBER, "number", 'n', "N", AT(number), .help = "a number", .otherwise = "7" },
	{ OPT_COUNT, "count", 0, "N", AT(count), .help = "a count", .rare = true },
	{ OPT_COUNT, "jobs", 'j', "N", AT(jobs), .help = "workers", .least = 1, .most = 256 },
	{ OPT_COUNT, "depth", 0, "N", AT(depth), .help = "steps", .least = 1 },
	{ OPT_DURATION, "timeout", 0, "TIME", AT(timeout_ms), .help = "how long", .unit = 1000000,
	  .least = 1, .otherwise = "60s" },
	{ OPT_DURATION, "time", 0, "TIME", AT(large), .help = "when", .least = 1 },
	{ OPT_CHOICE, "order", 0, "HOW", AT(order), .help = "of the search", .list = list_orders },
	{ OPT_CHOICE, "strategy", 0, "HOW", AT(remount), .help = "how", .words = "sync remount" },
	{ OPT_SET, "kind", 0, "KIND,...", AT(kinds), .help = "which", .words = "a b c" },
	{ OPT_CALL, "large", 0, "[SIZE]", AT(large), .help = "large ones", .call = call_large },
	{ OPT_GROUP, .group = side_options, AT(side) },
	{ OPT_GROUP, .group = plan_options, AT(taken), .take = take_plan },
	{ OPT_CALL, "ref", 0, "TARGET", .help = "another side", .call = add_ref },
	{ OPT_GROUP, .group = side_options, .prefix = "ref-", .where = last_ref, .rare = true,
	  .help = "of the --ref before it" },
	{ OPT_ARGUMENT, .arg = "FILE", .help = "a file" },
	OPT_END
};

static struct given g;
static struct args args;
static struct err err;

/* Parses the words of `line`, which blanks separate. Words that are given out stay. */
static int parse_as(enum opt_order order, const char *line)
{
	static char copy[256];
	static char *argv[32];
	int argc = 1;
	char *rest = copy;

	args_release(&args);
	args = (struct args){ 0 };
	free(g.copy);
	vec_release(&g.list);
	g = (struct given){ .sync = true };
	err = (struct err)ERR_INIT;
	snprintf(copy, sizeof(copy), "%s", line);
	argv[0] = copy;
	for (char *word; *line && (word = strsep(&rest, " "));)
		argv[argc++] = word;
	argv[argc] = NULL;
	int rc = opt_parse(table, order, &g, argc, argv, &args, &err);
	if (rc)
		args = (struct args){ 0 };
	return rc;
}

static int parse(const char *line)
{
	return parse_as(OPT_ANYWHERE, line);
}

static void wrong(const char *line, const char *words)
{
	ok(parse(line) < 0, "'%s' is wrong", line);
	is_s(err.msg, words, "and says so");
}

static void test_kinds(void)
{
	ok(!parse(""), "nothing at all");
	is_s(g.text, "none", "a default");
	ok(g.number == 7 && g.timeout_ms == 60000, "of a number, and in its unit");
	ok(!args_given(&args, "text"), "was not given");
	ok(!parse("--json --no-sync --text a --number 0x10 --count 20k --timeout 1.5s"), "values");
	ok(g.json && !g.sync && g.number == 16 && g.count == 20000 && g.timeout_ms == 1500,
	   "are stored");
	ok(args_given(&args, "text") && !args_given(&args, "jobs"), "what was given is known");
	ok(!parse("--text=a=b --copy x --copy yy"), "with =, and twice");
	is_s(g.text, "a=b", "the first = counts");
	is_s(g.copy, "yy", "the last one counts");
	ok(!parse("--line a --line=b -o x -oy"), "several times");
	is_s(g.lines, "a\nb", "lines");
	ok(g.list.n == 2 && streq(g.list.v[1], "y"), "and a list");
	ok(!parse("--order breadth --strategy remount --depth 3"), "choices");
	ok(g.order == 2 && g.remount && g.depth == 3, "also in small members");
	ok(!parse("--kind c,a") && g.kinds == 5, "a set");
	ok(!parse("--kind a --kind none") && g.kinds == 0, "or an empty one");
	ok(!parse("--large=abc") && g.large == 3, "a value that may be there");
	ok(!parse("--large abc") && g.large == 4096 && args.n == 1, "or not");
	ok(!parse("-Jn5 -t a") && g.json && g.number == 5, "letters in one word");
	ok(!parse("-n 5 -j2") && g.number == 5 && g.jobs == 2, "and their values");
}

static void test_groups(void)
{
	ok(!parse("--size 4k --kernel vmlinux") && g.side.size == 4096, "a shared table");
	is_s(g.side.kernel, "VMLINUX", "a value becomes another text first");
	ok(!parse("--media poison"), "a table whose values are taken");
	is_s(g.taken, "media=poison", "by a function");
	ok(!parse("--eadr"), "a flag of it");
	is_s(g.taken, "eadr=yes", "too");
	ok(!parse("--size 1 --ref a --ref-size 2 --ref b --ref-size 3"), "the same with a prefix");
	ok(g.side.size == 1 && g.refs[0].size == 2 && g.refs[1].size == 3, "each at its place");
	ok(!parse("-s 5") && g.side.size == 5, "a letter is of the table without a prefix");
	wrong("--ref-size 2", "there is no --ref before it");
	wrong("--media bad", "it is bad");
	wrong("--kernel=", "nothing to make larger");
}

static void test_arguments(void)
{
	ok(!parse("a --json b - --") && g.json && args.n == 3, "options and arguments may mix");
	ok(streq(args.v[0], "a") && streq(args.v[2], "-") && !args.v[3], "in their order");
	ok(!parse("a -- --json -x") && !g.json && args.n == 3, "after -- nothing is an option");
	ok(!parse_as(OPT_BEFORE, "--json a --text b") && g.json && args.n == 3,
	   "nor after the first argument, if so wanted");
	is_s(g.text, "none", "which stays");
	ok(!parse_as(OPT_NOWHERE, "--json -x") && !g.json && args.n == 2, "nor anywhere");
	ok(!parse_as(OPT_NOWHERE, "-- --help") && !args.help && args.n == 1, "with -- before it");
	ok(!parse_as(OPT_NOWHERE, "a --help") && !args.help && args.n == 2,
	   "nor is a later --help");
	ok(!parse_as(OPT_NOWHERE, "--help") && args.help, "but the first one is");
	ok(!parse("--json --help --nonsense") && args.help && !args.help_all, "help, at once");
	ok(!parse("--help all") && args.help_all, "all of it");
	ok(!parse("--help=all") && args.help_all, "in one word");
	ok(!parse("-- -h") && !args.help, "not after --");
}

static void test_mistakes(void)
{
	wrong("--frobnicate", "unknown option --frobnicate");
	wrong("--jsno", "unknown option --jsno (did you mean --json?)");
	wrong("--timout=3", "unknown option --timout (did you mean --timeout?)");
	wrong("--ref-kernle x", "unknown option --ref-kernle (did you mean --ref-kernel?)");
	wrong("--tex x", "unknown option --tex (did you mean --text?)");
	wrong("-Jx", "unknown option -x");
	wrong("--json=yes", "--json takes no value");
	wrong("--eadr=yes", "--eadr takes no value");
	wrong("--text", "--text needs a value, TEXT");
	wrong("-o", "-o needs a value, OPTION");
	wrong("--number many", "--number is a number, not 'many'");
	wrong("--count many", "--count: 'many' is not a count such as 500, 20k or 3M");
	wrong("--ref a --ref-size many",
	      "--ref-size: 'many' is not a size such as 4096, 64K or 1.5M");
	wrong("--order up", "--order is walk, depth or breadth, not 'up'");
	wrong("--kind a,x", "--kind is a list of a, b or c, not 'x'");
	wrong("--kind=", "--kind is a list of a, b or c, not ''");
	wrong("--copy up", "--copy is x or yy, not 'up'");
	wrong("--strategy up", "--strategy is sync or remount, not 'up'");
	wrong("--jobs 0", "--jobs is from 1 to 256, not 0");
	wrong("--jobs 1k", "--jobs is from 1 to 256, not 1k");
	wrong("--depth 0", "--depth is at least 1, not 0");
	wrong("--depth 5G", "--depth is at most 4294967295, not 5G");
	wrong("--time 0", "--time is more than 0, not 0");
	wrong("--timeout 0", "--timeout is at least 1ms, not 0");
}

static void test_help(void)
{
	auto_strbuf some = STRBUF_INIT, all = STRBUF_INIT;

	ok(opt_help(table, false, &some) == 4, "rare options are left out, and counted");
	ok(opt_help(table, true, &all) == 0, "or not");
	ok(strstr(some.buf, "\n  -t, --text TEXT        a text; default: none\n"), "an entry");
	ok(strstr(some.buf, "\n  -o OPTION              several\n"), "with a letter only");
	ok(strstr(some.buf, "\n      --large[=SIZE]     large ones\n"), "with a value or not");
	ok(strstr(some.buf, "\n\nThe side:\n  -s, --size BYTES"), "a section of a shared table");
	ok(strstr(some.buf, "\n  FILE                   a file\n"), "an argument");
	ok(!strstr(some.buf, "--count") && strstr(all.buf, "      --count N"), "a rare one");
	ok(strstr(all.buf, "      --ref-OPTION VALUE of the --ref before it\n"),
	   "a table with a prefix is one line");
}

static void test_rare_group(void)
{
	static const struct opt options[] = {
		{ OPT_SECTION, .help = "All kinds" },
		{ OPT_FLAG, "json", 0, NULL, AT(json), .help = "as JSON" },
		{ OPT_GROUP, .group = side_options, AT(side), .rare = true },
		{ OPT_NUMBER, "number", 'n', "N", AT(number), .help = "a number" },
		OPT_END
	};
	auto_strbuf some = STRBUF_INIT, all = STRBUF_INIT;

	is_u(opt_help(options, false, &some), 2, "all options of a rare table are left out");
	is_s(strbuf_str(&some),
	     "All kinds:\n      --json             as JSON\n  -n, --number N         a number\n",
	     "with its title");
	ok(!opt_help(options, true, &all) && strstr(all.buf, "The side:\n"), "or none");
}

static void test_wrap(void)
{
	auto_strbuf text = STRBUF_INIT;

	strbuf_adds(&text, "Status: ");
	opt_wrap(&text, text.len,
		 "0 if there is so much to say that it does not go into one line of a screen\n"
		 "\n"
		 "  stays   as it is, however long it may be, and wherever the line would end\n"
		 "next",
		 2);
	is_s(strbuf_str(&text),
	     "Status: 0 if there is so much to say that it does not go into one line of a\n"
	     "  screen\n"
	     "\n"
	     "  stays   as it is, however long it may be, and wherever the line would end\n"
	     "next\n",
	     "prose is wrapped");
}

int main(void)
{
	test_kinds();
	test_groups();
	test_arguments();
	test_mistakes();
	test_help();
	test_rare_group();
	test_wrap();
	args_release(&args);
	free(g.copy);
	vec_release(&g.list);
	return done_testing();
}
