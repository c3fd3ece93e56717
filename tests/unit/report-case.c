/* SPDX-License-Identifier: MIT */
/*
 * report-case.c - a case with hostile names, as text, JSON, a page, scripts, a program and rules:
 * each form says all of them, and none of them becomes a part of the form.
 */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "hostile.h"
#include "report/report.h"
#include "report/shell.h"
#include "case/suppress.h"
#include "tap.h"

static char home[] = "/tmp/outage-case.XXXXXX";

/* ---- a run with one case, whose every text is hostile ---- */

static void write_to(const char *dir, const char *name, const struct strbuf *text)
{
	struct err err = ERR_INIT;

	if (io_write_file(dir, name, strbuf_str(text), text->len, 0, &err)) {
		printf("Bail out! %s\n", err.msg);
		exit(1);
	}
}

static void add_problem(struct findings *list, enum finding_kind kind, const char *path)
{
	findings_add(list, kind, xstrdup(path), xasprintf("%s: is missing", path),
		     xasprintf("fsync %s (operation 1) had returned", path));
}

static void make_trees(const char *dir)
{
	struct tree_opts opts = { 0 };
	struct tree expected = TREE_INIT, seen = TREE_INIT;
	auto_strbuf text = STRBUF_INIT;

	tree_add(&expected, &(struct tree_entry){ .path = "", .type = TREE_DIR, .mode = 0755 },
		 &opts);
	tree_add(&seen, &(struct tree_entry){ .path = "", .type = TREE_DIR, .mode = 0755 }, &opts);
	for (size_t i = 0; i < ARRAY_SIZE(hostile_names); i++) {
		struct tree_xattr xattr = { "user.a", hostile_names[i], strlen(hostile_names[i]) };
		struct tree_entry e = { .path = hostile_names[i],
					.type = i % 2 ? TREE_FILE : TREE_SYMLINK,
					.mode = 0644,
					.nlink = 1,
					.size = strlen(hostile_names[i]),
					.content = hostile_names[i],
					.target = i % 2 ? NULL : hostile_names[i],
					.xattrs = &xattr,
					.n_xattrs = i % 2 };

		if (!(i % 2))
			e.content = NULL;
		tree_add(&expected, &e, &opts);
		if (i % 3) /* of the others, some look different */
			continue;
		e.mode = i % 6 ? 0600 : 0644;
		tree_add(&seen, &e, &opts);
	}
	tree_finish(&expected);
	tree_finish(&seen);
	tree_print(&expected, &opts, 0, &text);
	write_to(dir, "expected", &text);
	strbuf_clear(&text);
	tree_print(&seen, &opts, 0, &text);
	write_to(dir, "seen", &text);
	tree_release(&expected);
	tree_release(&seen);
}

static void make_case(const char *dir)
{
	auto_strbuf text = STRBUF_INIT;
	auto_findings problems = { 0 };

	mkdir(dir, 0755);
	strbuf_adds(&text, "workload hostile\n");
	for (size_t i = 0; i < ARRAY_SIZE(hostile_names); i++) {
		strbuf_adds(&text, "creat ");
		for (const char *c = hostile_names[i]; *c; c++)
			strbuf_addf(&text, "\\x%02x", (unsigned char)*c);
		strbuf_addch(&text, '\n');
		add_problem(&problems, FINDING_MISSING, hostile_names[i]);
	}
	add_problem(&problems, FINDING_MISSING, "A*/" HOSTILE_LINE "/*");
	strbuf_adds(&text, "mkdir A*\nsync\n");
	write_to(dir, "workload", &text);
	strbuf_clear(&text);
	store_print_problems(&problems, &text);
	write_to(dir, "problems", &text);
	strbuf_clear(&text);
	for (size_t i = 0; i < ARRAY_SIZE(hostile_names); i++)
		strbuf_addf(&text, "the kernel says %s\n", hostile_names[i]);
	write_to(dir, "kernel-log", &text);
	write_to(dir, "said", &text);
	strbuf_clear(&text);
	strbuf_adds(&text,
		    "outage-test-case 2\nversion 0.1.0\ntarget ext4,opt=<b>'\"$(" HOSTILE_LINE
		    ")\nkernel <i>6.1\033[2J\n"
		    "guarantee linux\nstate 0.52\nbase ../../base-0.img\ndone 2\nlayer none\n"
		    "size 16777216\n");
	write_to(dir, "case", &text);
	make_trees(dir);
}

/* ---- what a form may not have in it ---- */

/* No byte that a terminal would obey; line ends and tabs are fine. */
static bool is_visible(const struct strbuf *text)
{
	for (size_t i = 0; i < text->len; i++) {
		unsigned char c = (unsigned char)text->buf[i];

		if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f) {
			printf("#   byte %zu is %02x\n", i, c);
			return false;
		}
	}
	return true;
}

/* Whether a line is nothing but what somebody wants to be run. */
static bool has_hostile_line(const struct strbuf *text)
{
	for (const char *at = strbuf_str(text); *at;) {
		size_t len = strcspn(at, "\n");

		if (len == strlen(HOSTILE_LINE) && memcmp(at, HOSTILE_LINE, len) == 0)
			return true;
		at += len + (at[len] == '\n');
	}
	return false;
}

/* How often `what` is in it. */
static size_t count(const struct strbuf *text, const char *what)
{
	size_t n = 0;

	for (const char *at = strbuf_str(text); (at = strstr(at, what)); at += strlen(what))
		n++;
	return n;
}

/* ---- JSON, read by the rules of RFC 8259 ---- */

static const char *json_value(const char *p, unsigned depth);

static const char *json_blank(const char *p)
{
	return p + strspn(p, " \t\n\r");
}

/* One character of UTF-8 that may stand in text; NULL: none. */
static const char *utf8(const char *p)
{
	const unsigned char *s = (const unsigned char *)p;
	size_t n = *s < 0x80		 ? 1
		   : (*s & 0xe0) == 0xc0 ? 2
		   : (*s & 0xf0) == 0xe0 ? 3
		   : (*s & 0xf8) == 0xf0 ? 4
					 : 0;
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	uint32_t c = n == 1 ? *s : n ? *s & (0x7fU >> n) : 0;

	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return NULL;
		c = c << 6 | (s[i] & 0x3f);
	}
	return !n || c < least[n] || c < 0x20 || c == 0x7f || (c >= 0xd800 && c < 0xe000) ||
			       c > 0x10ffff
		       ? NULL
		       : p + n;
}

static const char *json_text(const char *p)
{
	if (*p++ != '"')
		return NULL;
	while (p && *p != '"') {
		if (*p != '\\')
			p = utf8(p);
		else if (p[1] == 'u')
			p = strspn(p + 2, "0123456789abcdefABCDEF") >= 4 ? p + 6 : NULL;
		else
			p = p[1] && strchr("\"\\/bfnrt", p[1]) ? p + 2 : NULL;
	}
	return p ? p + 1 : NULL;
}

static const char *json_members(const char *p, char close, unsigned depth)
{
	p = json_blank(p + 1);
	if (*p == close)
		return p + 1;
	for (;;) {
		if (close == '}') {
			p = json_text(p);
			p = p ? json_blank(p) : NULL;
			if (!p || *p++ != ':')
				return NULL;
		}
		p = json_value(p, depth + 1);
		p = p ? json_blank(p) : NULL;
		if (!p || *p == close)
			return p ? p + 1 : NULL;
		if (*p++ != ',')
			return NULL;
		p = json_blank(p);
	}
}

static const char *json_value(const char *p, unsigned depth)
{
	static const char *const words[] = { "true", "false", "null" };
	size_t n;

	p = json_blank(p);
	if (depth > 64)
		return NULL;
	if (*p == '{')
		return json_members(p, '}', depth);
	if (*p == '[')
		return json_members(p, ']', depth);
	if (*p == '"')
		return json_text(p);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strncmp(p, words[i], strlen(words[i])) == 0)
			return p + strlen(words[i]);
	n = strspn(p, "-+.0123456789eE");
	return n ? p + n : NULL;
}

static bool is_json(const char *text)
{
	const char *end = json_value(text, 0);

	return end && !*json_blank(end);
}

static void test_json_reader(void)
{
	static const char *const good[] = { "{}", "[1, -2.5e3, true, null]",
					    "{\"a\": {\"b\": [\"\\u00e9\\n\"]}}" };
	static const char *const bad[] = { "{",	       "{\"a\" 1}", "[1 2]", "\"a\nb\"",
					   "\"\xff\"", "\"\\x\"",   "{} x",  "\"\xed\xa0\x80\"" };

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		ok(is_json(good[i]), "this is JSON: %s", good[i]);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		ok(!is_json(bad[i]), "and example %zu is none", i);
}

/* ---- the forms ---- */

static void test_text(const struct view *v)
{
	auto_strbuf out = STRBUF_INIT;

	report_text_case(v, &out);
	ok(is_visible(&out), "text: nothing in it moves the cursor");
	ok(!has_hostile_line(&out), "text: no name makes a line of its own");
	for (size_t i = 0; i < ARRAY_SIZE(hostile_names); i++)
		if (!shell_has_control(hostile_names[i]))
			ok(strstr(out.buf, hostile_names[i]), "text: name %zu is told", i);
	ok(strstr(out.buf, "\\x1b[2J"), "text: what cannot be shown is, by its number");
}

static void test_json(const struct view *v, const struct run_view *r)
{
	auto_strbuf out = STRBUF_INIT, run = STRBUF_INIT;
	struct json j;
	struct err err = ERR_INIT;

	json_init(&j, &out, true);
	report_json_case(v, &j);
	ok(is_json(strbuf_str(&out)), "JSON: a case");
	ok(strstr(out.buf, "\"it's: is missing\""), "JSON: an apostrophe is one");
	ok(strstr(out.buf, "\\\"quoted\\\": is missing"), "JSON: a quote is escaped");
	ok(strstr(out.buf, "$(" HOSTILE_LINE "): is missing"),
	   "JSON: what a shell would run is text");
	json_init(&j, &run, false);
	ok(!report_json_run(r, &j, &err), "JSON: a run");
	ok(is_json(strbuf_str(&run)), "JSON: is one object");
}

/* Tags, quotes and entities are all ours, so those of names are counted as text. */
static void test_html(const struct run_view *r)
{
	auto_strbuf out = STRBUF_INIT;
	struct err err = ERR_INIT;

	ok(!report_html_run(r, &out, &err), "page: it can be made");
	ok(is_visible(&out), "page: no control characters");
	ok(!count(&out, "<script") && !count(&out, "--><b>") && !count(&out, "=<b>") &&
		   !count(&out, "<i>6"),
	   "page: no tag of a name");
	ok(count(&out, "&lt;script&gt;alert(1)") > 1, "page: but its text");
	ok(count(&out, "&amp;lt;") > 1, "page: what looks like an entity is none");
	ok(strstr(out.buf, "ext4,opt=&lt;b&gt;&#39;&quot;$("), "page: of a target, too");
	size_t stray = 0;
	for (const char *p = out.buf; (p = strchr(p, '&')); p++)
		stray += !strchr("agl#qmnt", p[1]) || strcspn(p, ";") > 8;
	is_u(stray, 0, "page: each ampersand begins an entity");
	bool ascii = true;
	for (size_t i = 0; i < out.len; i++)
		ascii &= (unsigned char)out.buf[i] < 0x80;
	ok(ascii, "page: and no byte is in another encoding");
}

/* Whether a program accepts what was exported, without running it. */
static bool accepts(const char *command, const char *file, const struct strbuf *text)
{
	auto_strbuf line = STRBUF_INIT;

	write_to(home, file, text);
	strbuf_addf(&line, "cd %s && %s %s </dev/null", home, command, file);
	return system(line.buf) == 0;
}

static void test_exports(const struct view *v)
{
	static const struct {
		const char *file, *command;
		void (*export)(const struct view *v, struct strbuf *out);
	} exports[] = {
		{ "reproduce.sh", "sh -n", export_reproduce },
		{ "workload.sh", "sh -n", export_workload_sh },
		{ "workload.c", "cc -fsyntax-only -Wall -Werror -Wno-trigraphs", export_program },
	};
	bool cc = system("cc --version >/dev/null 2>&1") == 0;

	for (size_t i = 0; i < ARRAY_SIZE(exports); i++) {
		auto_strbuf out = STRBUF_INIT;

		exports[i].export(v, &out);
		if (exports[i].command[0] == 'c' && !cc)
			skip("there is no cc");
		else
			ok(accepts(exports[i].command, exports[i].file, &out), "%s: %s accepts it",
			   exports[i].file, exports[i].command);
		ok(count(&out, "plain") > 1, "%s: it has the names", exports[i].file);
	}

	auto_strbuf test = STRBUF_INIT, golden = STRBUF_INIT;
	export_xfstest(v, &test, &golden);
	ok(accepts("bash -n", "generic-NNN", &test), "xfstests: bash accepts it");
	ok(count(&test, "plain") > 1 && golden.len, "xfstests: it has the names");
	ok(is_visible(&golden) && !has_hostile_line(&golden),
	   "xfstests: what it prints has no hostile line");
}

/* What was exported is run where nothing can be hurt: it makes the names, and no more. */
static void test_run(const char *what, const char *command)
{
	auto_strbuf line = STRBUF_INIT, path = STRBUF_INIT;
	size_t made = 0;
	struct stat st;

	strbuf_addf(&line, "cd %s && rm -rf target && mkdir target && %s >said.out 2>&1 </dev/null",
		    home, command);
	ok(system(line.buf) == 0, "%s: it runs", what);
	for (size_t i = 0; i < ARRAY_SIZE(hostile_names); i++) {
		strbuf_clear(&path);
		strbuf_addf(&path, "%s/target/%s", home, hostile_names[i]);
		made += stat(path.buf, &st) == 0 && S_ISREG(st.st_mode);
	}
	is_u(made, ARRAY_SIZE(hostile_names), "%s: makes every name", what);
	strbuf_clear(&path);
	strbuf_addf(&path, "%s/target/ran", home);
	ok(access(path.buf, F_OK) != 0, "%s: and runs none of them", what);
}

static void test_suppressions(const struct run_view *r)
{
	auto_strbuf out = STRBUF_INIT;
	struct suppress rules = { 0 };
	struct err err = ERR_INIT;

	report_suppressions(r, &out);
	ok(is_visible(&out) && !has_hostile_line(&out), "rules: no hostile line");
	ok(!suppress_parse(&rules, strbuf_str(&out), out.len, "rules", &err),
	   "rules: they can be read again");
	is_u(rules.rules.n, 1, "rules: one for the only kind");
	ok(r->clusters.n == 1 &&
		   suppress_names(&rules, r->cases.v[0].c.target, r->clusters.v[0].name),
	   "rules: that hides the cluster it was made of");
	ok(!suppress_names(&rules, "xfs", r->clusters.v[0].name),
	   "rules: and none of another target");
	suppress_release(&rules);
}

/* ---- names that cannot be a rule ---- */

static void test_rule_target(void)
{
	static const struct {
		const char *target, *rule;
	} cases[] = {
		{ "ext4", "missing: creat @ ext4 # 2 cases, foo *: *\n" },
		{ "fuse:a*b {disk}", "missing: creat @ fuse* # 2 cases, foo *: *\n" },
		{ "ext4,x=#1", "missing: creat @ ext4* # 2 cases, foo *: *\n" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		auto_strbuf out = STRBUF_INIT;
		struct run_cluster cluster = { .name = (char *)(uintptr_t) "missing: creat",
					       .words = (char *)(uintptr_t) "foo\n*: *",
					       .kinds = 1U << FINDING_MISSING,
					       .count = 2 };
		struct run_view r = { .has_plan = true,
				      .plan.target = (char *)(uintptr_t)cases[i].target,
				      .clusters = { .v = &cluster, .n = 1 } };

		report_suppressions(&r, &out);
		is_s(strbuf_str(&out), cases[i].rule, "rules: for the target %s", cases[i].target);
	}
}

int main(void)
{
	auto_strbuf run = STRBUF_INIT, dir = STRBUF_INIT, record = STRBUF_INIT;
	struct view v;
	struct run_view r;
	struct err err = ERR_INIT;

	if (!mkdtemp(home))
		return 1;
	strbuf_addf(&run, "%s/run", home);
	strbuf_addf(&dir, "%s/findings", run.buf);
	mkdir(run.buf, 0755);
	mkdir(dir.buf, 0755);
	strbuf_adds(&dir, "/0-0");
	make_case(dir.buf);
	strbuf_adds(&record, "outage-explore-run 2\nversion 0.0.9\n");
	write_to(run.buf, "run", &record);
	test_json_reader();
	if (!ok(!view_load(dir.buf, false, &v, &err), "the case can be read") ||
	    !ok(!run_view_load(run.buf, &r, &err), "and its run")) {
		printf("#   %s\n", err.msg);
		return done_testing();
	}
	is_u(v.c.problems.n, ARRAY_SIZE(hostile_names) + 1, "all problems are there");
	ok(v.has_expected && v.has_seen, "and both trees");
	test_text(&v);
	test_json(&v, &r);
	test_html(&r);
	test_exports(&v);
	test_run("workload.sh", "sh ./workload.sh target");
	if (system("cc --version >/dev/null 2>&1") == 0)
		test_run("workload.c", "cc -o program workload.c && ./program target");
	else
		skip("there is no cc");
	test_suppressions(&r);
	test_rule_target();
	view_release(&v);
	run_view_release(&r);
	strbuf_clear(&dir);
	strbuf_addf(&dir, "rm -rf %s", home);
	if (system(dir.buf))
		printf("# %s stays\n", home);
	return done_testing();
}
