/* SPDX-License-Identifier: MIT */
/* inject-match.c - paths as users write them: exact, patterns, regular expressions. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inject/internal.h"
#include "tap.h"

static const struct inject_places at = { "/data/root", "/mnt/lazy" };

typedef int (*maker)(struct path_match *out, const char *key, const char *text,
		     const struct inject_places *at, struct err *err);

static int ours(struct path_match *out, const char *key, const char *text,
		const struct inject_places *p, struct err *err)
{
	return match_regex(out, key, text, p, false, err);
}

static int lazyfs(struct path_match *out, const char *key, const char *text,
		  const struct inject_places *p, struct err *err)
{
	return match_regex(out, key, text, p, true, err);
}

/* `yes` and `no` are paths; either may be NULL. */
static void matches(maker make, const char *text, const char *yes, const char *no)
{
	struct path_match m = { .kind = PATH_ANY };
	struct err err = ERR_INIT;

	if (!ok(make(&m, "file", text, &at, &err) == 0, "a path: %s", text)) {
		printf("#   %s\n", err.msg);
		return;
	}
	if (yes)
		ok(inject_path_matches(&m, yes), "%s is %s", text, yes);
	if (no)
		ok(!inject_path_matches(&m, no), "%s is not %s", text, no);
	match_release(&m);
}

static void refuses(maker make, const char *text, const char *want)
{
	struct path_match m = { .kind = PATH_ANY };
	struct err err = ERR_INIT;

	is_i(make(&m, "file", text, &at, &err), -EINVAL, "refused: %s", text);
	is_s(err.msg, want, "and the sentence");
	match_release(&m);
}

static void test_exact(void)
{
	matches(match_path, "a/b.log", "a/b.log", "b.log");
	matches(match_path, "/a/b.log", "a/b.log", "x/a/b.log");
	matches(match_path, "/data/root/a/b.log", "a/b.log", "data/root/a/b.log");
	matches(match_path, "/mnt/lazy/a/b.log", "a/b.log", "mnt/lazy/a/b.log");
	matches(match_path, "/data/rootless/x", "data/rootless/x", "less/x");
	matches(match_path, "data/root/x", "data/root/x", "x");
	matches(match_path, "./a//b/./c/", "a/b/c", "a/b");
	matches(match_path, "/mnt/lazy", "", "mnt/lazy");
	matches(match_path, "a[1].log", "a[1].log", "a1.log");
	refuses(match_path, "", "file is empty; give a path in the mount");
	refuses(match_path, "a/../b",
		"file is 'a/../b', but a path cannot go up with '..'; give it as it is in the "
		"mount");
}

static void test_glob(void)
{
	matches(match_path, "*.log", "a/b.log", "a/b.txt");
	matches(match_path, "/data/root/wal/?.log", "wal/1.log", "wal/12.log");
	matches(match_path, "a[1]*", "a[1]x", "a1x");
	matches(match_glob, "a[12].log", "a2.log", "a3.log");
	matches(match_glob, "/mnt/lazy/[!a]*", "b", "a");
	matches(match_path, "a*b", "a*b", "ab/c");
}

static void test_long_regex(void)
{
	auto_free char *text = xmalloc(5001);
	struct path_match m = { .kind = PATH_ANY };
	struct err err = ERR_INIT;

	memset(text, 'a', 5000);
	text[5000] = '\0';
	is_i(match_regex(&m, "file_rgx", text, &at, false, &err), -EINVAL, "a long one is refused");
	ok(strstr(err.msg, "aaa...', which is no regular expression: it has more than 4096 "
			   "characters"),
	   "and the reason is not cut off");
	text[4096] = '\0';
	err_clear(&err);
	is_i(match_regex(&m, "file_rgx", text, &at, false, &err), 0, "the longest one is not");
	match_release(&m);
}

static void test_regex(void)
{
	matches(ours, "wal", "x/wal/1", "log");
	matches(ours, "^a[0-9]+$", "a12", "xa12");
	matches(ours, "member/wal/[0-9]+-[0-9]+.wal", "member/wal/00-01.wal", "member/wal/x.wal");
	matches(ours, "log\\.\\d{2}$", "log.12", "log.1x");
	matches(ours, "[\\w.]+\\.db", "x_1.db", ".x");
	matches(ours, "[^\\d/]$", "ax", "a1");
	matches(ours, "a[\\]\\-^[]b", "a]b", "axb");
	matches(ours, "a[\\]\\-^[]b", "a^b", "a\\b");
	matches(ours, "a[\\]\\-^[]b", "a[b", "ab");
	matches(ours, "a[\\]\\-^[]b", "a-b", NULL);
	matches(ours, "a[\\^]b", "a^b", "axb");
	matches(ours, "[[:alpha:]]1", "x1", "11");
	matches(ours, "(?:ab)+?c", "ababc", "c");
	matches(ours, "^a+?$", "aa", "");
	matches(ours, "a\\/b", "a/b", "ab");
	matches(ours, "^(a|b){2,3}$", "aba", "a");
	matches(ours, "\\bx\\b", "a x b", "axb");
	matches(ours, "\\.\\$\\(", ".$(", "x");
	matches(ours, "\\S\\s\\D\\W", "a b/", "ab");
	refuses(ours, "", "file is '', which is no regular expression: it is empty");
	refuses(ours, "a(b", "file is 'a(b', which is no regular expression: a ) is missing");
	refuses(ours, "[ab", "file is '[ab', which is no regular expression: a ] is missing");
	refuses(ours, "[]", "file is '[]', which is no regular expression: it has an empty [ ]");
	refuses(ours, "[b-a]",
		"file is '[b-a]', which is no regular expression: it has a range that ends before "
		"it begins");
	refuses(ours, "[[:no:]]",
		"file is '[[:no:]]', which is no regular expression: it has a class that is not "
		"known");
	refuses(ours, "a\\",
		"file is 'a\\', which is no regular expression: it ends with a "
		"backslash");
	refuses(ours, "(a)\\1",
		"file is '(a)\\1', which is no regular expression: it has an escape that is not "
		"known");
	refuses(ours, "(?=a)",
		"file is '(?=a)', which is no regular expression: of groups that begin with (? "
		"only "
		"(?: is known");
	refuses(ours, "a{x}",
		"file is 'a{x}', which is no regular expression: after { there must be a number "
		"and }");
	refuses(ours, "a)b", "file is 'a)b', which is no regular expression: a ( is missing");
	refuses(ours, "a++",
		"file is 'a++', which is no regular expression: there is nothing to repeat before "
		"a "
		"repetition");
	refuses(ours, "^*",
		"file is '^*', which is no regular expression: there is nothing to repeat before a "
		"repetition");
	refuses(ours, "((((((((((((((a+)+)+)+)+)+)+)+)+)+)+)+)+)+)+",
		"file is '((((((((((((((a+)+)+)+)+)+)+)+)+)+)+)+)+)+)+', which is no regular "
		"expression: it repeats too much");
	refuses(ours, "(a{200}){200}",
		"file is '(a{200}){200}', which is no regular expression: it repeats too much");
	matches(ours, "a+b+c+d+e+f+g+h+i+j+k+l+m+n+o+p+", "abcdefghijklmnop", "a");
	refuses(ours, "(((a{100}){100}){100}",
		"file is '(((a{100}){100}){100}', which is no regular expression: it repeats too "
		"much");
	refuses(ours, "((((((((((((((((((((((((((((((((((",
		"file is '((((((((((((((((((((((((((((((((((', which is no regular expression: its "
		"groups are nested too deep");
}

/* LazyFS sees paths with ROOT in front. */
static void test_places(void)
{
	matches(lazyfs, "^/data/root/a$", "a", "b");
	matches(lazyfs, "root", "anything", NULL);
	matches(ours, "root", NULL, "anything");
	matches(ours, "root", "x/root", NULL);
	matches(ours, "root/a", "a", "b");
	matches(ours, "/data/root/a", "a/x", "b");
	matches(lazyfs, "/mnt/lazy/a", "a", "b");
	matches(lazyfs, "lazy", NULL, "a");
	matches(lazyfs, "^a$", "a", "b/a");
}

/* ROOT may be named by way of a symbolic link, in what is given or where it is mounted. */
static void test_links(void)
{
	char dir[] = "/tmp/inject-match.XXXXXX";
	auto_free char *root = NULL, *link = NULL, *file = NULL;

	if (!mkdtemp(dir))
		abort();
	root = xasprintf("%s/root", dir);
	link = xasprintf("%s/link", dir);
	if (mkdir(root, 0700) || symlink("root", link))
		abort();
	for (int i = 0; i < 2; i++) {
		struct inject_places here = { .root = i ? link : root };
		struct path_match m = { .kind = PATH_ANY };
		struct err err = ERR_INIT;

		free(file);
		file = xasprintf("%s/new/a.log", i ? root : link);
		is_i(match_path(&m, "file", file, &here, &err), 0, "a path through a link");
		is_s(m.text, "new/a.log", "is below the root");
		match_release(&m);
	}
	free(file);
	file = xasprintf("%s/other/a.log", dir);
	struct inject_places here = { .root = link };
	struct path_match m = { .kind = PATH_ANY };
	struct err err = ERR_INIT;

	is_i(match_path(&m, "file", file, &here, &err), 0, "a path elsewhere");
	is_s(m.text, file + 1, "is not");
	match_release(&m);
	unlink(link);
	rmdir(root);
	rmdir(dir);
}

static void test_any(void)
{
	struct path_match m = { .kind = PATH_ANY }, x = { .kind = PATH_ANY };
	struct err err = ERR_INIT;

	ok(inject_path_matches(&m, "x") && inject_path_matches(&m, NULL), "any matches everything");
	ok(match_path(&x, "file", "a", &at, &err) == 0 && !inject_path_matches(&x, NULL),
	   "a path does not match none");
	ok(!match_same(&m, &x) && match_same(&m, &m) && match_same(&x, &x), "which are the same");
	match_release(&x);
}

int main(void)
{
	test_exact();
	test_glob();
	test_regex();
	test_long_regex();
	test_places();
	test_links();
	test_any();
	return done_testing();
}
