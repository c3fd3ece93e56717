/* SPDX-License-Identifier: MIT */
/* A mark fits what it was made for, byte for byte, and nothing else. */
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/io.h"
#include "leaks.h"
#include "trust/trust.h"

static char dir[] = "/tmp/outage-mark-XXXXXX";
static char *here; /* what is marked */

static const struct trust_file files[] = { { .name = "a" }, { .name = "b" }, { .name = "image" } };
static const struct trust_set set = { .kind = "test", .files = files, .n = ARRAY_SIZE(files) };
static const struct trust_set with_tree = {
	.kind = "test", .files = files, .n = ARRAY_SIZE(files), .tree = "tree"
};

static void sh(const char *command)
{
	auto_free char *line = xasprintf("cd %s && { %s; }", here, command);

	if (system(line) != 0)
		ok(false, "cannot: %s", line);
}

/* Anew, and marked. */
static void make(const struct trust_set *s)
{
	struct err err = ERR_INIT;
	auto_free char *clear = xasprintf("rm -rf %s && mkdir %s", here, here);

	if (system(clear) != 0)
		ok(false, "cannot: %s", clear);
	sh("printf one >a; printf two >b; truncate -s 1M image; printf x | dd of=image bs=1 "
	   "seek=300000 conv=notrunc status=none");
	sh("mkdir -p tree/sub/empty; printf three >tree/sub/c; chmod 755 tree/sub/c; ln -s sub/c "
	   "tree/link; mkfifo tree/pipe; printf '' >tree/nothing");
	if (trust_mark(here, s, &err))
		ok(false, "%s", err.msg);
}

static bool fits(const struct trust_set *s)
{
	struct err why = ERR_INIT;
	int rc = trust_verify(here, s, &why);

	return rc == 0;
}

static void changed(const struct trust_set *s, const char *what, const char *command)
{
	struct err why = ERR_INIT;

	make(s);
	ok(fits(s), "a mark fits");
	sh(command);
	ok(trust_verify(here, s, &why) == -EPERM &&
		   strstr(why.msg, "not made by you on this machine"),
	   "not any more: %s (%s)", what, why.msg);
}

static void same(const struct trust_set *s, const char *what, const char *command)
{
	struct err why = ERR_INIT;

	make(s);
	sh(command);
	ok(trust_verify(here, s, &why) == 0, "it still fits: %s (%s)", what, why.msg);
}

static void test_files(void)
{
	changed(&set, "a byte", "printf onf >a");
	changed(&set, "a byte more", "printf 1 >>a");
	changed(&set, "a zero more", "printf '\\0' >>a");
	changed(&set, "one is gone", "rm b");
	changed(&set, "one is empty", ": >b");
	changed(&set, "two have changed places", "mv a x; mv b a; mv x b");
	changed(&set, "a byte of a hole",
		"printf y | dd of=image bs=1 seek=900000 conv=notrunc "
		"status=none");
	changed(&set, "a block elsewhere",
		"dd if=/dev/zero of=image bs=1 seek=300000 count=1 "
		"conv=notrunc status=none; printf x | dd of=image "
		"bs=1 seek=365536 conv=notrunc status=none");
	changed(&set, "a longer hole", "truncate -s 2M image");
	changed(&set, "no mark", "rm mark");
	changed(&set, "an empty mark", ": >mark");
	changed(&set, "another mark", "tr 0-9 1-90 <mark >x; mv x mark");
	same(&set, "zeros in place of holes", "cp --sparse=never image x; mv x image");
	same(&set, "a file that nobody asked for", "echo >c");
	same(&set, "other times and modes", "touch -d 2001-01-01 a b; chmod 600 a; chmod 755 b");
	same(&set, "a copy", "cp -r . ../copy; rm -rf ./*; mv ../copy/* .; rmdir ../copy");
}

static void test_tree(void)
{
	changed(&with_tree, "a byte", "printf thref >tree/sub/c");
	changed(&with_tree, "one more", "printf x >tree/sub/empty/d");
	changed(&with_tree, "a directory more", "mkdir tree/sub/empty/d");
	changed(&with_tree, "one is gone", "rm tree/nothing");
	changed(&with_tree, "another name", "mv tree/nothing tree/something");
	changed(&with_tree, "one level up", "mv tree/sub/c tree/c");
	changed(&with_tree, "it can be executed", "chmod 755 tree/nothing");
	changed(&with_tree, "a link leads elsewhere", "ln -sfn sub/d tree/link");
	changed(&with_tree, "a file in place of a link", "rm tree/link; cp tree/sub/c tree/link");
	changed(&with_tree, "a file in place of a pipe", "rm tree/pipe; : >tree/pipe");
	same(&with_tree, "a copy",
	     "umask 077; cp -r . ../copy; rm -rf ./*; mv ../copy/* .; "
	     "rmdir ../copy");
	same(&with_tree, "other times", "touch -d 2001-01-01 tree/sub tree/sub/c");
}

/*
 * A file that a group may write to: in a group that others are in, as all are in gid 100 or so,
 * even if this process has it; of a tree not if nobody else can reach it.
 */
static void refused_if_shared(const char *what, const char *command, const char *words)
{
	const gid_t own = getegid(), shared = 54321; /* no group of this user's own */
	struct err why = ERR_INIT;

	if (geteuid())
		return;
	make(&with_tree);
	sh(command);
	ok(fits(&with_tree), "%s, that is root's alone", what);
	sh("chgrp -R 54321 .");
	if (setegid(shared))
		ok(false, "cannot have group %u", shared);
	ok(trust_verify(here, &with_tree, &why) == -EPERM && strstr(why.msg, "others can change") &&
		   strstr(why.msg, words),
	   "%s, that is shared: %s", what, why.msg);
	if (setegid(own))
		ok(false, "cannot have group %u", own);
	sh("chmod go-rwx .");
	ok(fits(&with_tree) == !strstr(words, "(b:"), "%s, that nobody else reaches", what);
}

static void test_refused(void)
{
	struct err why = ERR_INIT;
	struct trust_set other = set;

	make(&set);
	other.kind = "tesu";
	ok(!fits(&other), "a mark of another kind");
	other = set;
	other.n--;
	ok(!fits(&other), "a mark of more files");
	make(&with_tree);
	ok(!fits(&set), "a mark of a tree, too");
	make(&set);
	sh("mv a x; ln -s x a");
	ok(trust_verify(here, &set, &why) == -EPERM && strstr(why.msg, "a is not a regular file"),
	   "a link is not followed: %s", why.msg);
	err_clear(&why);
	make(&set);
	sh("rm a; mkfifo a");
	ok(trust_verify(here, &set, &why) == -EPERM && strstr(why.msg, "not a regular file"),
	   "a pipe is not waited for: %s", why.msg);
	err_clear(&why);
	make(&set);
	sh("chmod 777 .");
	ok(trust_verify(here, &set, &why) == -EPERM && strstr(why.msg, "others can change"),
	   "a directory of everybody: %s", why.msg);
	err_clear(&why);
	make(&set);
	sh("chmod 666 b");
	ok(trust_verify(here, &set, &why) == -EPERM && strstr(why.msg, "others can change"),
	   "a file of everybody: %s", why.msg);
	err_clear(&why);
	refused_if_shared("a file of the group", "chmod 664 b", "(b: chmod go-w)");
	refused_if_shared("a directory of the group", "chmod 775 .", "(.: chmod go-w)");
	refused_if_shared("a file of a tree", "chmod 664 tree/nothing",
			  "(nothing in its tree: chmod go-rwx");
	refused_if_shared("a directory of a tree", "chmod 775 tree/sub",
			  "(sub in its tree: chmod go-rwx");
	ok(trust_verify("/nowhere", &set, &why) == -EPERM, "nothing: %s", why.msg);
}

/* What is going to be written counts as if it were there. */
static void test_text(void)
{
	const struct trust_file to_be[] = { { .name = "a", .text = "later", .len = 5 },
					    { .name = "b" },
					    { .name = "image" } };
	struct trust_set before = set;
	struct err err = ERR_INIT;

	make(&set);
	before.files = to_be;
	ok(!trust_mark(here, &before, &err), "a mark for what comes later");
	ok(!fits(&set), "does not fit yet");
	sh("printf later >a");
	ok(fits(&set), "and fits then");
	auto_free char *large = xcalloc(1, 200000);
	large[100000] = 'x';
	struct trust_file big[] = { { .name = "a", .text = large, .len = 200000 },
				    { .name = "b" },
				    { .name = "image" } };
	before.files = big;
	ok(!trust_mark(here, &before, &err) && !io_write_file(here, "a", large, 200000, 0, &err),
	   "a large one");
	ok(fits(&set), "too");
}

static void test_keys(void)
{
	auto_free char *state = xasprintf("%s/state", dir), *other = xasprintf("%s/other", dir);
	struct err err = ERR_INIT;

	make(&set);
	setenv("XDG_STATE_HOME", other, 1);
	ok(trust_verify(here, &set, &err) == -EPERM && strstr(err.msg, "not made by you"),
	   "without a key: %s", err.msg);
	err_clear(&err);
	ok(!trust_ready(&err), "another user's key");
	ok(!fits(&set), "does not fit");
	ok(!trust_mark(here, &set, &err) && fits(&set), "unless he marks it");
	setenv("XDG_STATE_HOME", state, 1);
	ok(!fits(&set), "then it is not ours");
	make(&set);
	setenv("XDG_STATE_HOME", "/proc/1/fdinfo", 1);
	ok(trust_ready(&err) < 0, "where there can be no key: %s", err.msg);
	err_clear(&err);
	ok(!trust_mark(here, &set, &err), "marking is no failure");
	setenv("XDG_STATE_HOME", state, 1);
	ok(!fits(&set), "but the old mark is gone");
	auto_free char *chmod = xasprintf("chmod 644 %s/outage/key", state);
	make(&set);
	ok(system(chmod) == 0 && trust_verify(here, &set, &err) == -EPERM &&
		   strstr(err.msg, "mode 0644"),
	   "with a key that others can read nothing fits: %s", err.msg);
	auto_free char *back = xasprintf("chmod 600 %s/outage/key", state);
	ok(system(back) == 0 && fits(&set), "it is as it was");
}

static void test_faults(void)
{
	unsigned failed = 0;
	bool hit = true;

	for (int n = 1; hit; n++) {
		struct err err = ERR_INIT;

		make(&with_tree);
		fault_arm(n, EIO);
		int rc = trust_verify(here, &with_tree, &err);
		hit = fault_disarm(NULL);
		failed += rc != 0;
		if (hit != (rc != 0))
			ok(false, "point %d: %d %s", n, rc, err.msg);
	}
	ok(failed > 3, "what cannot be read is not verified: %u times", failed);
}

/* If a new mark cannot be written, the old one stays; only without a key there is none (M2). */
static void test_mark_faults(void)
{
	struct fault_loop loop = { .error = ENOSPC };
	struct trust_set kept = with_tree;
	struct err err = ERR_INIT;
	auto_free char *mark = xasprintf("%s/" TRUST_MARK, here);
	unsigned failed = 0, wrong = 0;
	size_t open_before = open_files();

	kept.keep = true;
	while (fault_loop_next(&loop)) {
		fault_pause();
		make(&kept);
		fault_arm(loop.round, loop.error);
		int rc = trust_mark(here, &kept, &err);
		fault_pause();
		failed += rc != 0;
		wrong += rc && (rc != -ENOSPC || !err.msg[0]);
		wrong += !fits(&kept) && (rc || access(mark, F_OK) == 0);
		wrong += hidden_in(here) || open_files() != open_before;
		err_clear(&err);
	}
	ok(failed > 5 && !wrong, "what cannot be written leaves the mark as it was: %u times",
	   failed);
}

static void test_words(void)
{
	auto_strbuf would = STRBUF_INIT;
	struct err err = ERR_INIT, why = ERR_INIT;

	trust_would((struct trust_key){ "size", TRUST_HARMLESS }, "1", &would);
	is_s(strbuf_str(&would), "", "what is harmless is not told");
	trust_would((struct trust_key){ "mkfs", TRUST_COMMAND }, "rm\n-rf\033[2J", &would);
	trust_would((struct trust_key){ "guest-modules", TRUST_CODE }, "/x", &would);
	trust_would((struct trust_key){ "guest-file", TRUST_FILE }, "/y", &would);
	trust_would((struct trust_key){ "new", TRUST_UNKNOWN }, "z", &would);
	trust_would_also(&would, "mount %s", "it");
	is_s(strbuf_str(&would),
	     "run 'rm -rf [2J' (mkfs), load code of '/x' (guest-modules), use the path '/y' "
	     "(guest-file), use 'z' (new), mount it",
	     "the rest is, in one line");
	err_set(&why, -EPERM, "was not made by you on this machine");
	is_i(trust_refuse("run/findings/0-0", "case", &why, &would, "", &err), -EPERM, "refused");
	is_s(err.msg,
	     "run/findings/0-0 was not made by you on this machine, and would run 'rm -rf [2J' "
	     "(mkfs), load code of '/x' (guest-modules), use the path '/y' (guest-file), use 'z' "
	     "(new), mount it; look at it with 'outage report', and at its file case, then give "
	     "--trust",
	     "in a sentence");
	err_clear(&err);
	auto_free char *large = xcalloc(1, 1001);
	memset(large, 'x', 1000);
	for (int i = 0; i < 9; i++)
		trust_would((struct trust_key){ "mkfs", TRUST_COMMAND }, large, &would);
	trust_refuse(large, "case", &why, &would, ", or do not", &err);
	ok(strstr(err.msg, "and more; look") && strstr(err.msg, "--trust, or do not"),
	   "that ends with how to go on, however much it would do");
}

int main(void)
{
	umask(022);
	if (!mkdtemp(dir))
		return 1;
	auto_free char *state = xasprintf("%s/state", dir), *place = xasprintf("%s/here", dir);
	auto_free char *clear = xasprintf("rm -rf %s", dir);
	struct err err = ERR_INIT;

	here = place;
	setenv("XDG_STATE_HOME", state, 1);
	ok(!trust_ready(&err), "a key: %s", err.msg);
	test_files();
	test_tree();
	test_refused();
	test_text();
	test_keys();
	test_faults();
	test_mark_faults();
	test_words();
	return system(clear) ? 1 : done_testing();
}
