/* SPDX-License-Identifier: MIT */
/*
 * base-below.c - what lies below a run's directory is opened without a link, and a directory
 * appears whole, whenever its writer is killed.
 */
#include "base/below.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/io.h"
#include "tap.h"

static char home[] = "/tmp/outage-below.XXXXXX";

static void shell(const char *script)
{
	if (system(script) != 0)
		abort();
}

/* ---- opening ---- */

/* Both ways open the same file, or fail alike. */
static void compare(int root, const char *path, int flags)
{
	int kernel = below_openat(root, path, flags, 0600);
	int hand = below_openat_by_hand(root, path, flags, 0600);
	struct stat a = { 0 }, b = { 0 };

	if (kernel >= 0 && hand >= 0 && (fstat(kernel, &a) || fstat(hand, &b)))
		abort();
	ok(kernel < 0 ? kernel == hand : hand >= 0 && a.st_ino == b.st_ino, "'%s', %#x: %d, %d",
	   path, (unsigned)flags, kernel < 0 ? kernel : 0, hand < 0 ? hand : 0);
	util_close(kernel);
	util_close(hand);
}

static void test_openat(void)
{
	static const char *const paths[] = { "",	  ".",	  "/etc",  "..",   "f",
					     "d",	  "d/",	  "d/g",   "d//g", "./d/./g",
					     "d/../f",	  "gone", "f/x",   "lf",   "ld",
					     "ld/g",	  "ld/",  "d/out", "abs",  "dangling",
					     "dangling/x" };
	static const int flags[] = { O_RDONLY, O_PATH, O_RDONLY | O_DIRECTORY };

	shell("mkdir -p d out; : >f; : >d/g; : >out/secret; ln -s f lf; ln -s d ld;"
	      "ln -s ../out/secret d/out; ln -s /etc/passwd abs; ln -s gone dangling");
	auto_fd root = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		for (size_t k = 0; k < ARRAY_SIZE(flags); k++)
			compare(root, paths[i], flags[k]);
	is_i(below_openat(root, "ld/g", O_RDONLY, 0), -ELOOP, "no link on the way");
	is_i(below_openat(root, "lf", O_PATH, 0), -ELOOP, "and none at its end");
	is_i(below_openat(root, "d/../f", O_RDONLY, 0), -EXDEV, "nor '..', even inside");
	shell("rm -r d f out lf ld abs dangling");
}

static void split(const char *path, bool in_run, const char *dir, const char *name)
{
	auto_free char *got_dir = NULL, *got_name = NULL;

	ok(below_split(path, &got_dir, &got_name) == in_run, "%s", path);
	is_s(got_dir, dir, "where it is");
	is_s(got_name, name, "and its name");
}

static void is_path(char *got, const char *want, const char *name)
{
	is_s(got, want, "%s", name);
	free(got);
}

/* What a user named, as it is taken: "-" if it lies in no run. */
static void named(const char *path, const char *dir, const char *name)
{
	auto_free char *got_dir = NULL, *got_name = NULL;
	bool in_run = below_named(path, &got_dir, &got_name);

	is_s(in_run ? got_dir : "-", dir, "%s: where it is", path);
	is_s(in_run ? got_name : "-", name, "and its name");
}

static void test_named(void)
{
	struct err err = ERR_INIT;
	struct io_output out;
	auto_free char *at = NULL, *whole = NULL;

	shell("mkdir -p run/a/b out plain; echo outage-run 1 >run/run; echo '#!/bin/sh' >plain/run;"
	      "echo secret >out/f; ln -s ../out run/link; ln -s ../../out/f run/a/f;"
	      "mkfifo run/a/pipe; ln -s out mine");
	named("run/page", "run", "page");
	named("run/a/b/page", "run/.//a/b", "page");
	named("./run//a/./b/page", "./run/.//a/./b", "page");
	named("run/a/../../out/f", "-", "-");
	named("plain/x/page", "-", "-");
	named("out/page", "-", "-");
	shell("mkdir -p out/run plain/recovery/x run/recovery/0 -m 755; mkdir -m 1777 shared;"
	      "cp run/run shared");
	named("out/page", "-", "-");
	named("plain/recovery/x/page", "-", "-");
	named("run/recovery/0/page", "run/.//recovery/0", "page");
	named("shared/page", "-", "-");
	shell("rmdir out/run; rm -r shared");
	if (chdir("run/a"))
		abort();
	whole = xasprintf("%s/run/.//a", home);
	named("page", whole, "page");
	if (chdir(home))
		abort();
	is_i(below_open_named("run/a/f", &err), -ELOOP, "a link in a run is not followed");
	err_clear(&err);
	is_i(below_open_named("run/link/f", &err), -ELOOP, "nor one on the way");
	err_clear(&err);
	is_i(below_open_named("run/a/pipe", &err), -EINVAL, "a pipe is not waited for");
	err_clear(&err);
	auto_fd fd = below_open_named("mine/f", &err);
	ok(fd >= 0, "the user's own link is followed");
	auto_free char *kept = xasprintf("%s/run/a/f", home);
	is_path(below_absolute("./run/a/f"), kept, "nor made another name");
	auto_free char *real = xasprintf("%s/out/f", home);
	is_path(below_absolute("mine/f"), real, "unlike the user's own");
	is_i(below_make_named("run/link", &at, &err), -ELOOP, "no directory behind a link");
	err_clear(&err);
	is_i(below_make_named("run/a/new", &at, &err), 0, "a new one");
	is_s(at, "run/.//a/new", "as what it is called");
	is_i(io_output_open("run/link/x", &out, &err), -ELOOP, "nothing is written behind a link");
	err_clear(&err);
	is_i(io_write_file(NULL, "run/a/f", "new", 3, 0, &err), 0, "a link is replaced");
	is_i(io_write_file(NULL, "run/a/pipe", "new", 3, 0, &err), 0, "and so is a pipe");
	is_i(io_write_file(NULL, "mine/f2", "new", 3, 0, &err), 0, "the user's link is followed");
	shell("grep -q secret out/f && grep -q new out/f2 && test -f run/a/f -a ! -h run/a/f &&"
	      "test -f run/a/pipe && ! test -e out/x");
	shell("rm -r run out plain mine");
}

static void test_names(void)
{
	is_path(below_case("a/findings/3-1"), "a/.//findings/3-1", "a case of a run");
	is_path(below_case("a//findings/.//3-1/"), "a/.//findings/3-1", "written differently");
	is_path(below_case("findings/x"), "././/findings/x", "from within the run");
	is_path(below_case("/shrunk/x"), "/.//shrunk/x", "below the root");
	is_path(below_case("a/b/c"), "a/b/c", "a directory on its own");
	is_path(below_case("a/findings/../c"), "a/findings/../c", "'..' was named");
	is_path(below_run_of("a/findings/3-1"), "a", "its run");
	is_path(below_run_of("a/b/c"), "a/b/c/../..", "or what could be one");
	is_path(below_shown("a/.//recovery/3/.//recovery/1", "trace"),
		"a/recovery/3/recovery/1/trace", "for people");
	split("a/shrunk/3-1/", true, "a", "shrunk/3-1");
	split("/shrunk/3-1", true, "/", "shrunk/3-1");
	split("a/b", false, "a/", "b");
	split("b", false, ".", "b");
	split("/b/", false, "/", "b");
	shell("mkdir -p run/findings/3-1");
	if (chdir("run/findings"))
		abort();
	auto_free char *want = xasprintf("%s/run/.//findings/3-1", home);
	is_path(below_case("3-1"), want, "from where cases are");
	if (chdir("3-1"))
		abort();
	is_path(below_case("."), want, "from the case itself");
	if (chdir(home))
		abort();
	auto_fd fd = open("run", O_PATH | O_CLOEXEC);
	auto_free char *by_fd = xasprintf("/proc/self/fd/%d", fd);
	auto_free char *shown = xasprintf("%s/run/case", home);
	is_path(below_shown(by_fd, "case"), shown, "by a descriptor");
	shell("rm -r run");
}

static void refused(const char *dir, const char *name, int code, const char *words)
{
	auto_strbuf text = STRBUF_INIT;
	struct err err = ERR_INIT;

	is_i(io_slurp_file(dir, name, 100, &text, &err), code, "%s/%s", dir, name);
	is_s(err.msg, words, "in words");
	is_u(text.len, 0, "and nothing is read");
}

static void test_open(void)
{
	auto_strbuf text = STRBUF_INIT;
	struct err err = ERR_INIT;

	shell("mkdir -p real/findings/1-0 secret; echo it >secret/case; echo no >real/case;"
	      "ln -s real run; echo yes >real/findings/1-0/case; mkfifo real/pipe;"
	      "ln -s ../../secret real/findings/2-0; ln -s ../case real/findings/link");
	is_i(io_slurp_file("run/.//findings/1-0", "case", 100, &text, &err), 0,
	     "the run itself may be reached by a link");
	is_s(text.buf, "yes\n", "and is read");
	refused("run/.//findings/2-0", "case", -ELOOP,
		"run/findings/2-0 is a symbolic link, or lies behind one: below a run none is "
		"followed");
	refused("run", "findings/link", -ELOOP,
		"run/findings/link is a symbolic link, or lies behind one: below a run none is "
		"followed");
	alarm(600);
	refused("run", "pipe", -EINVAL, "run/pipe is not a regular file");
	refused("run", "findings", -EINVAL, "run/findings is not a regular file");
	refused("run", "none", -ENOENT, "cannot open run/none: No such file or directory");
	alarm(0);
	ok(below_exists("run", "pipe") && below_exists("run", "findings/link"), "they exist");
	ok(!below_has_file("run", "pipe") && !below_has_file("run", "findings/link"), "as no file");
	ok(below_has_file("run", "case") && !below_exists("run", "case/x"), "unlike others");
	shell("rm -r real run secret");
}

/* ---- writing ---- */

/* Removes run/d by its owner, who is not root. */
static int remove_as_other(void)
{
	struct err err = ERR_INIT;
	int status = -1;

	if (geteuid() == 0)
		shell("chmod 755 . && chown -R 65534 run");
	pid_t pid = fork();
	if (!pid)
		_exit((geteuid() == 0 && setuid(65534)) || below_remove("run", "d", &err));
	return waitpid(pid, &status, 0) == pid ? status : -1;
}

/* Deeper than any path; a link at its end leads out, and some directories may not be written to. */
static void make_deep(void)
{
	enum { DEPTH = 3000 };
	int fd = open("run/d", O_RDONLY | O_DIRECTORY);

	for (unsigned i = 0; i < DEPTH && fd >= 0; i++) {
		int in = mkdirat(fd, "deep", 0755) ? -1 : openat(fd, "deep", O_RDONLY);

		if (i % 100 == 0)
			(void)!fchmod(fd, 0555);
		close(fd);
		fd = in;
	}
	ok(fd >= 0 && symlinkat("../other", fd, "link") == 0, "a tree of %d directories", DEPTH);
	close(fd);
}

static void test_write(void)
{
	auto_strbuf text = STRBUF_INIT;
	struct err err = ERR_INIT;

	shell("mkdir run; echo mine >mine; ln mine run/hard; ln -s ../mine run/soft; mkfifo run/p");
	is_i(io_write_file("run", "hard", "new", 3, 0, &err), 0, "a file with two names");
	is_i(io_keep_file("run", "soft", "new", 3, &err), 0, "a link");
	is_i(io_write_file("run", "p", "new", 3, 0, &err), 0, "a pipe");
	is_i(io_slurp("mine", 100, &text, &err), 0, "what they led to");
	is_s(text.buf, "mine\n", "is as it was");
	shell("grep -q new run/hard && grep -q new run/soft && test -f run/soft -a ! -h run/soft");
	shell("mkdir other; rmdir run/findings 2>/dev/null; ln -s ../other run/findings");
	is_i(io_write_file("run", "findings/x", "new", 3, 0, &err), -ELOOP, "behind a link");
	err_clear(&err);
	is_i(below_make_dir("run", "findings", &err), -ELOOP, "which is no directory");
	err_clear(&err);
	shell("echo mine >other/file; mkdir -p run/d/e; ln -s ../../other run/d/e/link; : "
	      ">run/d/f");
	is_i(below_remove("run", "d", &err), 0, "a tree is removed");
	shell("test -f other/file -a ! -e run/d");
	shell("mkdir -p run/d/e/f; : >run/d/e/f/g; chmod 555 run/d/e; chmod 0 run/d/e/f");
	is_i(remove_as_other(), 0, "and one whose owner may not write to it");
	shell("mkdir run/d");
	make_deep();
	is_i(remove_as_other(), 0, "and one that is deeper than any path");
	shell("test ! -e run/d -a -f other/file");
	is_i(below_remove("run", "findings", &err), 0, "a link is");
	shell("test -f other/file -a ! -h run/findings");
	shell("rm -r run other mine");
}

/* In a process of its own. What is mounted has the device of what it is mounted in. */
static int remove_mounted(void)
{
	struct err err = ERR_INIT;

	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("other", "run/d/e", NULL, MS_BIND, NULL))
		return 77;
	int rc = below_remove("run", "d", &err);
	printf("# %s\n", err.msg);
	fflush(stdout);
	return rc != -EBUSY;
}

static void test_mounted(void)
{
	struct err err = ERR_INIT;
	struct stat st = { 0 };
	int status = -1;

	shell("mkdir -p run/d/e other; echo mine >other/file; chmod 500 other");
	fflush(stdout);
	pid_t pid = fork();
	if (!pid)
		_exit(remove_mounted());
	if (waitpid(pid, &status, 0) != pid || status == 77 << 8) {
		skip("needs a mount namespace");
	} else {
		ok(!status, "what is mounted in a tree is not removed");
		ok(!stat("other", &st) && (st.st_mode & 0777) == 0500,
		   "nor are its rights changed");
		shell("test -f other/file");
	}
	is_i(below_remove("run", "d", &err), 0, "without it, the tree is");
	shell("chmod 700 other; rm -r run other");
}

/* Two remove the same tree: one finds that the other was faster. */
static void test_removed_twice(void)
{
	struct err err = ERR_INIT;
	int wrong = 0, status = -1;

	for (int round = 0; round < 20; round++) {
		shell("for i in 1 2 3 4 5 6 7 8; do mkdir -p run/d/$i/a run/d/$i/b/c; done");
		fflush(stdout);
		pid_t pid = fork();
		if (!pid)
			_exit(below_remove("run", "d", &err) != 0);
		wrong += below_remove("run", "d", &err) != 0;
		wrong += waitpid(pid, &status, 0) != pid || status;
		if (*err.msg)
			printf("# %s\n", err.msg);
		err_clear(&err);
	}
	shell("rm -r run");
	is_i(wrong, 0, "who comes too late to remove something has no reason to complain");
}

static int reads_left = -1;

/* Stands before that of the C library: reads_left says after how many names the disk fails. */
struct dirent *readdir(DIR *d)
{
	static struct dirent *(*real)(DIR *);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "readdir64");
	if (reads_left >= 0 && !reads_left--) {
		errno = EIO;
		return NULL;
	}
	return real(d);
}

static void test_unreadable(void)
{
	auto_words names = { 0 };
	struct err err = ERR_INIT;

	shell("mkdir -p run/d; : >run/d/f");
	reads_left = 1;
	is_i(below_list("run", "d", &names, &err), -EIO, "a directory cannot be read to its end");
	is_s(err.msg, "cannot read run/d: Input/output error", "which is said");
	reads_left = -1;
	err_clear(&err);
	shell("rm -r run");
}

static int make_case(const char *content, struct err *err)
{
	auto_newdir d = IO_NEWDIR_INIT;
	int rc = io_newdir_open("run", "findings/1-0", &d, err);

	if (!rc)
		rc = io_write_file(d.path, "a", content, strlen(content), 0, err);
	if (!rc)
		rc = io_write_file(d.path, "b", content, strlen(content), 0, err);
	return rc ? rc : io_newdir_commit(&d, err);
}

/* 0: it is not there; or the first letter of what both files hold; '?': anything else. */
static char read_case(void)
{
	auto_strbuf a = STRBUF_INIT, b = STRBUF_INIT;
	struct words names = { 0 };
	struct err err = ERR_INIT;
	char c = '?';

	if (below_list("run", "findings", &names, &err))
		abort();
	if (!names.n)
		c = 0;
	else if (names.n == 1 && !io_slurp_file("run/findings/1-0", "a", 99, &a, &err) &&
		 !io_slurp_file("run/findings/1-0", "b", 99, &b, &err) &&
		 streq(strbuf_str(&a), strbuf_str(&b)) && a.len)
		c = a.buf[0];
	words_release(&names);
	return c;
}

static void test_newdir(void)
{
	struct err err = ERR_INIT;
	char link[] = "run/findings/1-0";

	shell("mkdir -p run/findings other; echo mine >other/a");
	is_i(make_case("first", &err), 0, "a directory appears");
	is_i(read_case(), 'f', "whole");
	is_i(make_case("second", &err), 0, "it is replaced");
	is_i(read_case(), 's', "by another");
	shell("rm -r run/findings/1-0; ln -s ../../other run/findings/1-0");
	is_i(make_case("third", &err), 0, "a link is");
	struct stat st;
	ok(lstat(link, &st) == 0 && S_ISDIR(st.st_mode) && read_case() == 't', "by a directory");
	shell("grep -q mine other/a && test $(ls -A run/findings | wc -l) = 1");
	shell("rm -r run other");
}

/* Whatever fails: the old one is there or the new one, and nothing else. */
static void test_newdir_faults(void)
{
	struct fault_loop loop = { .error = ENOSPC };
	struct err err = ERR_INIT;
	int wrong = 0;

	shell("mkdir -p run/findings");
	while (fault_loop_next(&loop)) {
		shell("rm -rf run/findings/1-0");
		int rc = make_case("x", &err);
		int armed = fault_countdown;

		fault_countdown = 0; /* not for reading */
		/* When only the last sync fails, it is there, but nobody counts it. */
		char seen = read_case();
		wrong += rc ? rc != -ENOSPC || (seen && seen != 'x') : seen != 'x';
		shell("test $(ls -A run/findings | wc -l) -le 1");
		err_clear(&err);
		fault_countdown = armed;
	}
	ok(loop.round > 6, "%d faults", loop.round - 1);
	is_i(wrong, 0, "leave nothing behind");
	shell("rm -r run");
}

/* What cannot be removed is named, and stays; all else goes, and nothing half of it is seen. */
static void test_removal_faults(void)
{
	struct fault_loop loop = { .error = EIO };
	struct err err = ERR_INIT;
	int wrong = 0, failed = 0, left = 0;

	while (fault_loop_next(&loop)) {
		int armed = fault_countdown;

		fault_countdown = 0;
		shell("mkdir -p run/findings/1-0/d && touch run/findings/1-0/a "
		      "run/findings/1-0/d/b");
		fault_countdown = armed;
		int rc = below_make_dir("run", "more", &err);
		if (!rc)
			rc = below_remove_whole("run", "findings/1-0", &err);
		fault_pause();
		failed += rc != 0;
		left += system("test $(ls -A run/findings | wc -l) = 0") != 0;
		wrong += rc && (rc != -EIO || !err.msg[0]);
		wrong += !rc &&
			 (below_exists("run", "findings/1-0") || !below_exists("run", "more"));
		wrong += below_exists("run", "findings/1-0") &&
			 !below_exists("run", "findings/1-0/d/b");
		err_clear(&err);
		shell("rm -r run");
	}
	ok(failed >= 6 && left >= 5 && !wrong, "removing a directory fails at %d places", failed);
}

static void test_newdir_kills(void)
{
	struct err err = ERR_INIT;
	int wrong = 0, killed = 0, left = 0, status = 0;

	shell("mkdir -p run/findings");
	if (make_case("old", &err))
		abort();
	fflush(stdout);
	for (int n = 1; n == 1 || status; n++) {
		pid_t pid = fork();

		if (pid == 0) {
			fault_arm(n, FAULT_KILL);
			_exit(make_case("new", &err) ? 1 : 0);
		}
		waitpid(pid, &status, 0);
		killed += WIFSIGNALED(status);
		char seen = read_case();
		wrong += seen != 'n' && (seen != 'o' || !status);
		left += system("test $(ls -A run/findings | wc -l) = 1") != 0;
		wrong += below_sweep("run", "findings", &err) != 0;
		wrong += system("test $(ls -A run/findings | wc -l) = 1") != 0;
		/* What a later point of the same kind leaves is compared with the old one. */
		if (seen == 'n' && status && make_case("old", &err))
			abort();
	}
	ok(killed > 6 && left > 3, "killed at %d points, it left something at %d", killed, left);
	is_i(wrong, 0, "which nobody sees, and the next one removes");
	shell("rm -r run");
}

int main(void)
{
	if (!mkdtemp(home) || chdir(home))
		abort();
	test_openat();
	test_names();
	test_named();
	test_open();
	test_write();
	test_mounted();
	test_removed_twice();
	test_unreadable();
	test_newdir();
	test_newdir_faults();
	test_removal_faults();
	test_newdir_kills();
	if (chdir("/") || rmdir(home))
		ok(false, "nothing is left in %s", home);
	return done_testing();
}
