/* SPDX-License-Identifier: MIT */
/* A rule that is made of a finding names it, and no other; those of several files are one text. */
#include "tap.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/io.h"
#include "case/suppress.h"

static char dir[] = "/tmp/outage-suppress-XXXXXX";

static bool is_kind(const char *name)
{
	return streq(name, "failed") || streq(name, "logic");
}

static bool names(const char *rules, const char *target, const char *cluster)
{
	struct suppress s = { .is_kind = is_kind };
	struct err err = ERR_INIT;
	bool is = !suppress_of_plan(rules, &s, &err) && suppress_names(&s, target, cluster);

	suppress_release(&s);
	return is;
}

static void test_rules(void)
{
	static const char *const hostile[][2] = {
		{ "failed: create 2 of f1: all is well", "minimal" },
		{ "failed: [a-z]*?", "\\*" },
		{ "logic: x # y @ z", "./pro#gram @home" },
		{ "failed: two\nlines\tof it", "a\nb" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(hostile); i++) {
		auto_strbuf rule = STRBUF_INIT;

		suppress_add_rule(hostile[i][0], hostile[i][1], "3\nstates", &rule);
		ok(strchr(rule.buf, '\n') == rule.buf + rule.len - 1, "one line: %s", rule.buf);
		ok(names(rule.buf, hostile[i][1], hostile[i][0]), "which names it");
		ok(!names(rule.buf, hostile[i][1], "failed: another"), "and nothing else");
		ok(!names(rule.buf, "another", hostile[i][0]), "nor elsewhere");
	}
}

static void test_files(void)
{
	auto_free char *one = xasprintf("%s/one", dir), *two = xasprintf("%s/two", dir);
	auto_free char *bad = xasprintf("%s/bad", dir), *text = NULL;
	struct err err = ERR_INIT;

	ok(!io_write_file(NULL, one, "# first\nfailed: a*\n", 19, 0, &err) &&
		   !io_write_file(NULL, two, "logic: b @ c # why\n", 19, 0, &err) &&
		   !io_write_file(NULL, bad, "filed: a\n", 9, 0, &err),
	   "files");
	ok(!suppress_add_file(&text, one, is_kind, &err) &&
		   !suppress_add_file(&text, two, is_kind, &err),
	   "are read: %s", err.msg);
	is_s(text, "failed: a*\nlogic: b @ c # why\n", "as one text");
	ok(names(text, "c", "failed: ab") && names(text, "c", "logic: b") &&
		   !names(text, "d", "logic: b"),
	   "with the rules of both");
	ok(suppress_add_file(&text, bad, is_kind, &err) == -EINVAL && strstr(err.msg, "bad:1: "),
	   "a kind that there is not: %s", err.msg);
	is_s(text, "failed: a*\nlogic: b @ c # why\n", "adds nothing");
	ok(!names(NULL, "c", "failed: ab"), "no rules");
	unlink(one);
	unlink(two);
	unlink(bad);
}

int main(void)
{
	if (!mkdtemp(dir))
		return 1;
	test_rules();
	test_files();
	rmdir(dir);
	return done_testing();
}
