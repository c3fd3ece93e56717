/* SPDX-License-Identifier: MIT */
/*
 * app-check.c - crash states as directories, and checks that run on them.
 *
 * What is found at the path must be the state, whatever was done to the states before it; the
 * directory before the run must stay as it is. Checks that pass, fail, hang, fill the disk, or
 * leave processes behind must be told apart, and leave nothing.
 */
#include "calls.h"
#include "tap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "app/checkers.h"
#include "app/judge.h"
#include "base/io.h"
#include "base/proc.h"

/* What hangs is given little time; what must end is given so much that no machine is too slow. */
enum { NOBODY = 65534, HANGS_MS = 1500, ENDS_MS = 300000 };

struct fixture {
	char dir[40];
	struct trace trace;
	struct history h;
};

static void put(const char *dir, const char *name, const char *text, size_t len)
{
	struct err err = ERR_INIT;

	if (io_write_file(dir, name, text, len, 0644, &err))
		printf("# %s\n", err.msg);
}

static uint64_t ino_of(const char *dir, const char *name)
{
	auto_free char *path = xasprintf("%s/%s", dir, name);
	struct stat st = { 0 };

	if (lstat(path, &st))
		printf("# %s: %m\n", path);
	return st.st_ino;
}

/* A directory with all that can differ, and calls that make it differ in every way. */
static void fixture_make(struct fixture *f)
{
	struct err err = ERR_INIT;
	auto_free char *big = xmalloc(200000);
	char path[2][80];

	memset(f, 0, sizeof(*f));
	snprintf(f->dir, sizeof(f->dir), "/tmp/outage-app-check-XXXXXX");
	if (!mkdtemp(f->dir))
		abort();
	chmod(f->dir, 0755);
	memset(big, 'b', 200000);
	put(f->dir, "keep", "kept", 4);
	put(f->dir, "gone", "x", 1);
	put(f->dir, "old", "12345", 5);
	put(f->dir, "big", big, 200000);
	put(f->dir, "one", "links", 5);
	snprintf(path[0], sizeof(path[0]), "%s/one", f->dir);
	snprintf(path[1], sizeof(path[1]), "%s/two", f->dir);
	(void)!link(path[0], path[1]);
	for (const char *const *d = (const char *const[]){ "sub", "empty", "full", NULL }; *d;
	     d++) {
		snprintf(path[0], sizeof(path[0]), "%s/%s", f->dir, *d);
		mkdir(path[0], 0755);
		if (!streq(*d, "empty"))
			put(path[0], "inner", *d, strlen(*d));
	}
	trace_init(&f->trace);
	uint64_t root = ino_of(f->dir, ".");
	calls_write(&f->trace, ino_of(f->dir, "old"), 3, "ABCDE", 5);
	calls_write(&f->trace, ino_of(f->dir, "big"), 100000, "!", 1);
	calls_add(&f->trace, (struct posix_event){ .op = POSIX_UNLINK,
						   .ino = ino_of(f->dir, "gone"),
						   .dir = root,
						   .name = "gone" });
	calls_add(&f->trace, (struct posix_event){ .op = POSIX_CREATE,
						   .ino = 1 << 30,
						   .dir = root,
						   .name = "new",
						   .arg = 0640 });
	calls_write(&f->trace, 1 << 30, 10000, "end", 3);
	calls_write(&f->trace, ino_of(f->dir, "one"), 0, "L", 1);
	calls_add(&f->trace, (struct posix_event){ .op = POSIX_UNLINK,
						   .ino = ino_of(f->dir, "full/inner"),
						   .dir = ino_of(f->dir, "full"),
						   .name = "inner" });
	calls_add(&f->trace, (struct posix_event){ .op = POSIX_RMDIR,
						   .ino = ino_of(f->dir, "full"),
						   .dir = root,
						   .name = "full" });
	calls_add(&f->trace, (struct posix_event){ .op = POSIX_MKDIR,
						   .ino = 1 << 29,
						   .dir = root,
						   .name = "full",
						   .arg = 0700 });
	calls_add(&f->trace, (struct posix_event){ .op = POSIX_SYMLINK,
						   .ino = 1 << 28,
						   .dir = 1 << 29,
						   .name = "link",
						   .payload = "../keep",
						   .payload_len = 7 });
	calls_add(&f->trace, (struct posix_event){ .op = POSIX_RENAME,
						   .ino = ino_of(f->dir, "sub"),
						   .dir = root,
						   .name = "sub",
						   .dir2 = ino_of(f->dir, "empty"),
						   .name2 = "moved" });
	calls_add(&f->trace, (struct posix_event){ .op = POSIX_CHMOD,
						   .ino = ino_of(f->dir, "keep"),
						   .arg = 0600 });
	trace_persist(&f->trace, 0);
	calls_add(&f->trace, (struct posix_event){ .op = POSIX_LINK,
						   .ino = ino_of(f->dir, "keep"),
						   .dir = ino_of(f->dir, "empty"),
						   .name = "again" });
	auto_fd base = open(f->dir, O_RDONLY | O_DIRECTORY);
	struct history_opts opts = { .profile = profile_find("minimal"),
				     .base = base,
				     .root_ino = root,
				     .base_numbers = true };
	if (history_new(&f->trace, &opts, &f->h, &err)) {
		printf("Bail out! %s\n", err.msg);
		abort();
	}
}

static void fixture_remove(struct fixture *f)
{
	struct proc_result res = { 0 };
	const char *const argv[] = { "rm", "-rf", f->dir, NULL };

	history_release(&f->h);
	trace_release(&f->trace);
	if (proc_run(&(struct proc_opts){ .argv = argv }, &res, NULL))
		printf("# cannot remove %s\n", f->dir);
	proc_result_release(&res);
}

static bool walk(const char *path, struct tree *out)
{
	auto_fd fd = open(path, O_RDONLY | O_DIRECTORY);
	struct tree_opts opts = { 0 };
	struct err err = ERR_INIT;

	return fd >= 0 && !tree_walk(fd, &opts, out, &err);
}

static bool is_state(const char *path, const struct reffs_state *s, const char *what, bool owners)
{
	auto_tree seen = TREE_INIT, want = TREE_INIT;
	auto_tree_diff d = { 0 };
	struct tree_opts opts = { 0 };
	bool same = walk(path, &seen);

	reffs_tree(s, &opts, &want);
	tree_diff(&want, &seen, &opts, &d);
	for (size_t i = 0; i < d.list.n; i++) {
		const struct tree_difference *x = &d.list.v[i];

		if (x->kind == TREE_DIFF_OWNER && !owners)
			continue;
		printf("# %s: %s\n", what, x->words);
		same = false;
	}
	return same;
}

static void spoil(const char *dir)
{
	static const char *const scripts =
		"echo spoilt >>keep; rm -rf old empty new; echo x >big; mkdir gone; chmod 0 one; "
		"mv full elsewhere; echo more >elsewhere/more";
	const char *const argv[] = { "sh", "-c", scripts, NULL };
	struct proc_result res = { 0 };

	if (proc_run(&(struct proc_opts){ .argv = argv, .cwd = dir, .merge_stderr = true }, &res,
		     NULL))
		printf("# cannot spoil\n");
	proc_result_release(&res);
}

/* Dumpable again, as a process is that an ordinary user started. */
static int become_nobody(void)
{
	if (geteuid())
		return 0;
	return setgid(NOBODY) || setuid(NOBODY) || prctl(PR_SET_DUMPABLE, 1);
}

/* In a process of its own. Two rounds: what the first did to its states must not be seen. */
static int place_all(struct fixture *f, bool copy, bool user)
{
	struct place_opts opts = {
		.base = f->dir, .before = f->h.before, .at = f->dir, .copy = copy, .room = 64 << 20
	};
	struct app_state a = { 0 };
	struct place *p = NULL;
	struct err err = ERR_INIT;
	int n = 0, wrong = 0;

	if (user && become_nobody())
		return 3;
	if (place_new(&opts, &p, &err)) {
		printf("# %s\n", err.msg);
		return user ? 77 : 3;
	}
	if (!user && !copy && !place_is_overlay(p))
		return 77;
	for (int round = 0; round < 2; round++) {
		struct states *s = NULL;

		if (states_new(&f->h, &(struct states_opts){ .budget = 60 }, &s, &err))
			return 3;
		while (states_next(s, &a)) {
			if (place_put(p, a.tree, &err)) {
				printf("# %s\n", err.msg);
				return 3;
			}
			wrong += !is_state(f->dir, a.tree, a.id, !user);
			spoil(f->dir);
			if (place_clear(p, &err)) {
				printf("# %s\n", err.msg);
				return 3;
			}
			n++;
		}
		states_free(s);
	}
	app_state_release(&a);
	printf("# %d states, %s\n", n, place_is_overlay(p) ? "overlaid" : "copied");
	place_free(p);
	return wrong || n < 60;
}

/* An ordinary user may have none by a sysctl, or in a chroot. */
static bool has_namespaces(void)
{
	int status = 1;
	pid_t pid = fork();

	if (!pid)
		_exit(geteuid() && unshare(CLONE_NEWUSER | CLONE_NEWNS));
	return waitpid(pid, &status, 0) == pid && !status;
}

static void in_child(int (*fn)(struct fixture *, bool, bool), struct fixture *f, bool copy,
		     bool user, const char *name)
{
	int status;

	if (!has_namespaces()) {
		skip("no user namespaces here");
		return;
	}
	fflush(stdout);
	pid_t pid = fork();
	if (!pid) {
		int rc = fn(f, copy, user);

		fflush(stdout);
		_exit(rc);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		ok(false, "%s", name);
	else if (WEXITSTATUS(status) == 77)
		skip("no overlay, or no user namespaces here");
	else
		ok(!WEXITSTATUS(status), "%s", name);
}

static void test_place(void)
{
	auto_tree before = TREE_INIT, after = TREE_INIT;
	struct tree_opts opts = { 0 };
	struct fixture f;

	fixture_make(&f);
	ok(walk(f.dir, &before) && is_state(f.dir, f.h.before, "before", true),
	   "the directory is the first state");
	if (geteuid()) {
		skip("needs root");
		skip("needs root");
	} else {
		in_child(place_all, &f, false, false,
			 "each state is what it should be, by overlay");
		in_child(place_all, &f, true, false, "and as a copy");
	}
	in_child(place_all, &f, false, true, "and for an ordinary user");
	ok(walk(f.dir, &after) && tree_equal(&before, &after, &opts), "nothing of it is left");
	fixture_remove(&f);
}

/* ---- one check ---- */

struct expected {
	const char *command;
	enum check_end end;
	int code;
	bool left, filled;
	const char *output;
	const char *name;
};

static const struct expected cases[] = {
	{ "/bin/echo a  b=c", CHECK_PASSED, 0, false, false, "a b=c\n", "words without a shell" },
	{ "./keep", CHECK_FAILED, 126, false, false, NULL, "what cannot be run" },
	{ "/nowhere/at/all", CHECK_FAILED, 127, false, false, NULL, "what is not there" },
	{ "true", CHECK_PASSED, 0, false, false, "", "a check that passes" },
	{ "echo out; echo err >&2; exit 3", CHECK_FAILED, 3, false, false, "out\nerr\n",
	  "one that fails, and what it says" },
	{ "kill -9 $$", CHECK_KILLED, SIGKILL, false, false, "", "one that is killed" },
	{ "sleep 1000", CHECK_HUNG, 0, false, false, "", "one that hangs" },
	{ "trap '' TERM HUP INT; sleep 1000 & wait; sleep 1000", CHECK_HUNG, 0, false, false, "",
	  "one that does not want to end" },
	{ "while :; do (:); done", CHECK_HUNG, 0, false, false, "", "one that forks for ever" },
	{ "echo 'sh ./again &' >again; sh ./again; sleep 1000", CHECK_HUNG, 0, false, false, "",
	  "and one whose processes are orphans" },
	{ "sleep 1000 & exit 0", CHECK_PASSED, 0, true, false, "", "one that leaves a process" },
	{ "setsid sh -c 'setsid sleep 1000 & sleep 1000' >/dev/null 2>&1 & exit 1", CHECK_FAILED, 1,
	  true, false, "", "and one of another session" },
	{ "[ \"$1\" = \"$OUTAGE_DIR\" ] && [ \"$PWD\" = \"$1\" ] && [ \"$(pwd -P)\" = \"$1\" ] && "
	  "cat \"$OUTAGE_ACKED\" && echo $OUTAGE_CRASH_POINT && cat; cat keep",
	  CHECK_PASSED, 0, false, false, "first\nsecond\n17\nkept", "what a check is given" },
	{ "exec head -c 3000000 /dev/zero >large", CHECK_KILLED, SIGXFSZ, false, false, NULL,
	  "a file that is too large" },
	{ "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do head -c 900000 /dev/zero >f$i || exit 5; done",
	  CHECK_FAILED, 5, false, true, NULL, "a check that fills the disk" },
	{ "echo x >f", CHECK_PASSED, 0, false, false, "", "the next one has room" },
	{ "yes | head -c 100000", CHECK_PASSED, 0, false, false, NULL, "much output" },
	{ "ls /proc/self/status >/dev/null && [ -e /proc/$$/status ]", CHECK_PASSED, 0, false,
	  false, "", "its own /proc" },
};

/* Of processors, by all that we waited for. */
static uint64_t used_ms(void)
{
	struct rusage u;

	getrusage(RUSAGE_CHILDREN, &u);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000 +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000;
}

static bool check_case(const struct expected *x, const struct sandbox_opts *base, struct place *p,
		       const struct reffs_state *s)
{
	struct sandbox_opts o = *base;
	struct check_result r = { 0 };
	struct err err = ERR_INIT;
	auto_strbuf words = STRBUF_INIT;
	uint64_t used = used_ms();
	bool good;

	o.command = x->command;
	o.timeout_ms = x->end == CHECK_HUNG ? HANGS_MS : ENDS_MS;
	if (place_put(p, s, &err) || check_run(&o, 17, "first\nsecond\n", 13, &r, &err)) {
		printf("# %s: %s\n", x->name, err.msg);
		return false;
	}
	r.filled = place_is_full(p);
	used = used_ms() - used;
	if (x->end == CHECK_HUNG && used > 3 * HANGS_MS) {
		printf("# %s: was given %llu ms of processors\n", x->name, llu(used));
		return false;
	}
	good = r.end == x->end && r.left_processes == x->left && r.filled == x->filled &&
	       (r.end == CHECK_KILLED ? r.signal : r.exit_code) == x->code &&
	       (!x->output || streq(strbuf_str(&r.output), x->output)) &&
	       r.output.len <= o.output_limit && r.output_cut == (r.output.len == o.output_limit);
	check_describe(&r, &words);
	if (!good)
		printf("# %s: %s, output: %s\n", x->name, strbuf_str(&words),
		       strbuf_str(&r.output));
	check_result_release(&r);
	if (place_clear(p, &err)) {
		printf("# %s: %s\n", x->name, err.msg);
		return false;
	}
	return good;
}

/* What a judge asks, and what is taken for the answer. */
static const struct asked {
	const char *restart, *check, *query;
	bool fails;
	const char *said;
} asked[] = {
	{ "yes | head -c 20000000", NULL, "echo q", false, "q\n" }, /* there is no room for that */
	{ "echo r; exit 4", NULL, "echo q", true, "outage: the restart ended with status 4\nr\n" },
	{ "echo r", NULL, "echo q; echo e >&2; exit 3", true, "q\ne\n" },
	{ "echo r; echo e >&2", "echo c; echo d >&2; exit 3", NULL, true, "c\nd\n" },
	{ "echo r", "echo c; echo d >&2", NULL, false, "c\nd\n" },
	{ NULL, NULL, "echo q; echo e >&2; exit 3", true, "q\ne\n" },
	{ NULL, NULL, "echo q; yes | head -c 20000000 >&2", false, "q\n" },
};

static bool asked_case(const struct asked *x, const struct sandbox_opts *base, struct place *p,
		       const struct reffs_state *s)
{
	const struct app_plan plan = { .restart = (char *)(uintptr_t)x->restart,
				       .check = (char *)(uintptr_t)x->check,
				       .query = (char *)(uintptr_t)x->query };
	const struct words none = { 0 };
	struct sandbox_opts o = *base;
	struct check_result r = { 0 };
	struct verdict v = { 0 };
	struct err err = ERR_INIT;
	struct judge j;

	judge_init(&j, &plan, &none, NULL);
	o.command = j.command;
	o.errors_apart = j.errors_apart;
	o.timeout_ms = ENDS_MS;
	bool good = !place_put(p, s, &err) && !check_run(&o, 17, "", 0, &r, &err);
	r.filled = place_is_full(p);
	if (good)
		judge_verdict(&j, 0, &r, &v);
	good = good && !v.error && v.fails == x->fails && streq(strbuf_str(&v.said), x->said);
	if (!good)
		printf("# %s; %s: %s%s, %s\n", x->restart, x->check ? x->check : x->query, err.msg,
		       v.seen ? v.seen : "passed", strbuf_str(&v.said));
	verdict_release(&v);
	check_result_release(&r);
	judge_release(&j);
	return !place_clear(p, &err) && good;
}

static int check_all(struct fixture *f, bool no_namespace, bool user)
{
	struct place_opts place = {
		.base = f->dir, .before = f->h.before, .at = f->dir, .room = 8 << 20
	};
	struct place *p = NULL;
	struct err err = ERR_INIT;
	int wrong = 0;

	if (user && become_nobody())
		return 3;
	if (place_new(&place, &p, &err)) {
		printf("# %s\n", err.msg);
		return user ? 77 : 3;
	}
	struct sandbox_opts o = { .dir = f->dir,
				  .notes = place_notes(p),
				  .output_limit = 4096,
				  .file_max = 2 << 20,
				  .no_namespace = no_namespace };
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		wrong += !check_case(&cases[i], &o, p, f->h.before);
	for (size_t i = 0; i < ARRAY_SIZE(asked); i++)
		wrong += !asked_case(&asked[i], &o, p, f->h.before);
	place_free(p);
	return wrong != 0;
}

/* One check after the other by one keeper: each finds what the first would. */
static const char kept_command[] =
	"[ $$ = 2 ] || exit 6\n"
	"! cat /proc/[0-9]*/comm 2>/dev/null | grep -q sleep || exit 9\n"
	"[ ! -e f ] && [ \"$(cat keep)\" = kept ] && [ ! -e /mnt/outage-mark ] || exit 8\n"
	"[ \"$(cat \"$OUTAGE_ACKED\")\" = \"$OUTAGE_CRASH_POINT\" ] || exit 7\n"
	"case $OUTAGE_CRASH_POINT in\n"
	"1) echo 1 >f; echo changed >keep; sleep 1000 & ;;\n"
	"2) mount -t tmpfs none /mnt 2>/dev/null && touch /mnt/outage-mark; exit 2 ;;\n"
	"3) kill -9 1 -1; sleep 1000 ;;\n"
	"4) kill -9 $$ ;;\n"
	"esac\n";

static bool kept_case(struct sandbox_opts *o, struct place *p, const struct reffs_state *s,
		      uint64_t point, enum check_end end, bool stays)
{
	struct check_result r = { 0 };
	struct err err = ERR_INIT;
	char acked[24];
	bool good = false;

	o->timeout_ms = end == CHECK_HUNG ? HANGS_MS : ENDS_MS;
	snprintf(acked, sizeof(acked), "%" PRIu64 "\n", point);
	if (!place_put(p, s, &err) && !check_run(o, point, acked, strlen(acked), &r, &err))
		good = r.end == end && (o->keeper->pid != 0) == stays &&
		       r.left_processes == (point == 1);
	if (!good)
		printf("# %" PRIu64 ": end %d, status %d, %s %s\n", point, r.end, r.exit_code,
		       o->keeper->pid ? "stays" : "gone", err.msg);
	check_result_release(&r);
	return place_clear(p, &err) == 0 && good;
}

static int check_kept(struct fixture *f, bool copy, bool user)
{
	struct place_opts place = {
		.base = f->dir, .before = f->h.before, .at = f->dir, .copy = copy
	};
	struct sandbox_keeper k = { 0 };
	struct check_result r = { 0 };
	struct place *p = NULL;
	struct err err = ERR_INIT;
	int wrong = 0;

	if ((user && become_nobody()) || place_new(&place, &p, &err))
		return 77;
	struct sandbox_opts o = { .command = kept_command,
				  .dir = f->dir,
				  .notes = place_notes(p),
				  .keeper = &k,
				  .shared = place_is_shared(p) };
	struct reffs_state *s = f->h.before;
	wrong += !o.shared || !kept_case(&o, p, s, 0, CHECK_PASSED, true);
	pid_t first = k.pid;
	wrong += !kept_case(&o, p, s, 1, CHECK_PASSED, true) || k.pid != first;
	wrong += !kept_case(&o, p, s, 5, CHECK_PASSED, true) || k.pid != first;
	/* Whoever could mount something gets a new one. */
	wrong += !kept_case(&o, p, s, 2, CHECK_FAILED, user);
	wrong += !kept_case(&o, p, s, 3, CHECK_HUNG, true);
	wrong += !kept_case(&o, p, s, 4, CHECK_KILLED, true);
	first = k.pid;
	siginfo_t dead;
	kill(first, SIGKILL);
	waitid(P_PID, (id_t)first, &dead, WEXITED | WNOWAIT);
	wrong += place_put(p, s, &err) || check_run(&o, 6, "6\n", 2, &r, &err) != -ECHILD ||
		 place_clear(p, &err);
	wrong += !kept_case(&o, p, s, 7, CHECK_PASSED, true) || k.pid == first;
	sandbox_keeper_end(&k);
	wrong += k.pid != 0;
	check_result_release(&r);
	place_free(p);
	return wrong != 0;
}

static bool any_sleeps(void)
{
	DIR *d = opendir("/proc");
	const struct dirent *e;
	auto_free char *mark = xasprintf("OUTAGE_APP_TEST=%d.", (int)getpid());
	bool found = false;

	while (d && (e = readdir(d))) {
		auto_free char *path = xasprintf("/proc/%s/environ", e->d_name);
		char text[8192];
		auto_fd fd = atoi(e->d_name) > 0 ? open(path, O_RDONLY) : -1;
		ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));

		if (n > 0 && atoi(e->d_name) != getpid() &&
		    memmem(text, (size_t)n, mark, strlen(mark))) {
			printf("# still there: process %s\n", e->d_name);
			found = true;
		}
	}
	if (d)
		closedir(d);
	return found;
}

/* The kernel takes a moment to end a namespace. */
static bool gone_soon(void)
{
	for (int i = 0; i < ENDS_MS / 100 && any_sleeps(); i++)
		usleep(100000);
	return !any_sleeps();
}

static void test_check(void)
{
	struct fixture f;

	/* A mark for what is started from here on; another such test may run beside this one. */
	auto_free char *mark = xasprintf("%d.", (int)getpid());
	setenv("OUTAGE_APP_TEST", mark, 1);
	fixture_make(&f);
	in_child(check_all, &f, false, false, "checks in a PID namespace");
	in_child(check_all, &f, true, false, "checks without");
	if (!geteuid())
		in_child(check_all, &f, false, true, "checks of an ordinary user");
	if (!geteuid()) {
		in_child(check_kept, &f, false, false, "one keeper for many checks");
		in_child(check_kept, &f, true, false, "on copies");
	}
	in_child(check_kept, &f, false, true, "and of an ordinary user");
	ok(!any_sleeps(), "no process is left");
	ok(is_state(f.dir, f.h.before, "before", true), "and the directory is as it was");
	fixture_remove(&f);
}

/* ---- many ---- */

struct tally {
	uint64_t seen, passed, wrong;
	struct fixture *f;
	bool kill_first;
	uint64_t errors, asked, late;
	char *failed;
};

/* The check: "new" may be there only whole. */
static bool should_pass(const struct app_state *s)
{
	uint64_t ino = reffs_lookup(reffs_inode(s->tree, REFFS_ROOT_INO), "new");
	struct reffs_attr a;

	if (!ino)
		return true;
	reffs_attr(reffs_inode(s->tree, ino), &a);
	return a.size == 10003 && s->acked <= 1;
}

static int on_done(void *ctx, const struct app_state *s, const struct check_result *r)
{
	struct tally *t = ctx;

	t->late += s->number != t->seen++;
	if (r->end == CHECK_ERROR) {
		t->errors++;
		return 0;
	}
	t->wrong += (r->end == CHECK_PASSED) != should_pass(s);
	t->passed += r->end == CHECK_PASSED;
	if (r->end == CHECK_FAILED && !t->failed)
		t->failed = xstrdup(s->id);
	return 0;
}

static int count_passed(void *ctx, const struct app_state *s, const struct check_result *r)
{
	struct tally *t = ctx;

	(void)s;
	t->passed += r->end == CHECK_PASSED;
	return 0;
}

/* Every second check takes longer than the one after it. */
static void test_order(struct history *h, const struct checkers_opts *opts)
{
	struct checkers_opts o = *opts;
	struct checkers_stats stats;
	struct states *s = NULL;
	struct err err = ERR_INIT;
	struct tally t = { 0 };

	o.check.command = "[ $((OUTAGE_CRASH_POINT % 2)) = 0 ] || sleep 0.2";
	o.ctx = &t;
	is_i(states_new(h, &(struct states_opts){ .budget = 20 }, &s, &err), 0, "states again");
	is_i(checkers_run(h, s, &o, &stats, &err), 0, "checks that take unequally long");
	is_u(t.seen, 20, "each came back");
	is_u(t.late, 0, "in the order of the states");
	states_free(s);
	free(t.failed);
}

static bool stop_at_once(void *ctx)
{
	struct tally *t = ctx;

	return t->seen >= 5;
}

static bool stop_soon(void *ctx)
{
	struct tally *t = ctx;

	return ++t->asked > 4;
}

/*
 * Two workers. Checks of one kill it, six times; those of the other pass, five of them, and then
 * one that takes long. Of these five some were given out after the state at which the first worker
 * dies for the fifth time.
 */
static const char deadly[] =
	"me=$(sed -n 's/^PPid:.//p' /proc/$PPID/status)\n"
	"until_there() { until [ -e $1 ]; do sleep 0.02; done; }\n"
	"lives=$(readlink $T/lives)\n"
	"if [ \"$lives\" != $me ] && { [ \"$lives\" ] || mkdir $T/first; }; then\n"
	"	until [ -L $T/lives ]; do sleep 0.02; done\n"
	"	n=$(ls $T/kills | wc -l)\n"
	"	mkdir $T/kills/$n\n"
	"	[ $n != 4 ] || until_there $T/passes/5\n"
	"	kill -9 $me\n"
	"	exit 1\n"
	"fi\n"
	"[ \"$lives\" ] || ln -s $me $T/lives\n"
	"n=$(ls $T/passes | wc -l)\n"
	"mkdir $T/passes/$n\n"
	"[ $n = 0 ] || until_there $T/kills/1\n"
	"[ $n -lt 5 ] || while [ -e $T ]; do sleep 0.05; done\n";

/* What a worker has finished counts, though another one cannot be made to work. */
static void test_deaths(struct history *h, const struct checkers_opts *opts)
{
	char dir[] = "/tmp/outage-deadly-XXXXXX";
	struct checkers_opts o = *opts;
	struct checkers_stats stats;
	struct states *s = NULL;
	struct err err = ERR_INIT;
	struct tally t = { 0 };

	if (!mkdtemp(dir))
		ok(false, "a directory: %m");
	auto_free char *make = xasprintf("cd %s && mkdir kills passes", dir);
	auto_free char *clear = xasprintf("rm -rf %s", dir);
	auto_free char *command = xasprintf("T=%s\n%s", dir, deadly);
	o.jobs = 2;
	o.stop = NULL;
	o.check = (struct sandbox_opts){ .command = command,
					 .no_namespace = true,
					 .timeout_ms = ENDS_MS };
	o.done = count_passed;
	o.ctx = &t;
	ok(!system(make) && !states_new(h, &(struct states_opts){ .budget = 40 }, &s, &err),
	   "states again");
	ok(checkers_run(h, s, &o, &stats, &err) < 0 &&
		   strstr(err.msg, "(Killed), 6 times in a row"),
	   "a worker that dies again and again ends the run: %s", err.msg);
	is_u(stats.checked, 5, "another has checked five states");
	is_u(t.passed, 5, "and all of them are told");
	states_free(s);
	ok(!system(clear), "no directory is left");
}

/* A worker is killed by its tenth check, and later one is stopped. */
static void test_replaced(struct history *h, const struct checkers_opts *opts)
{
	static const char deed[] = "me=$(sed -n 's/^PPid:.//p' /proc/$PPID/status)\n"
				   "echo >>%s/count\n"
				   "n=$(wc -l <%s/count)\n"
				   "[ $n != 10 ] || { kill -9 $me; exit 1; }\n"
				   "[ $n != 15 ] || kill -STOP $me\n";
	char dir[] = "/tmp/outage-replaced-XXXXXX";
	struct checkers_opts o = *opts;
	struct checkers_stats stats;
	struct states *s = NULL;
	struct err err = ERR_INIT;
	struct tally t = { 0 };

	if (!mkdtemp(dir))
		ok(false, "a directory: %m");
	auto_free char *clear = xasprintf("rm -rf %s", dir);
	auto_free char *command = xasprintf(deed, dir, dir);
	o.jobs = 1;
	o.stop = NULL;
	/* The one that hangs is given both times together, and so are those that do not. */
	o.check = (struct sandbox_opts){ .command = command,
					 .no_namespace = true,
					 .timeout_ms = 15000 };
	o.slack_ms = 1000;
	o.done = on_done;
	o.ctx = &t;
	is_i(states_new(h, &(struct states_opts){ .budget = 20 }, &s, &err), 0, "states again");
	is_i(checkers_run(h, s, &o, &stats, &err), 0, "a worker is killed, and one hangs: %s",
	     err.msg);
	is_u(t.seen, 20, "each state came back");
	is_u(t.late, 0, "in order");
	is_u(stats.replaced, 2, "both are replaced");
	is_u(stats.checked, 19, "the state at which one was killed is checked again");
	is_u(t.errors, 1, "that at which one hung is an error");
	states_free(s);
	free(t.failed);
	ok(!system(clear), "no directory is left");
}

static void test_many(bool launched)
{
	static const char command[] = "[ ! -e new ] || [ $(stat -c %s new) = 10003 ] && "
				      "[ $(wc -l <$OUTAGE_ACKED) -le 1 ]";
	static const char *const acks[] = { "yes" };
	struct checkers_stats stats;
	struct states_stats all;
	struct tally t = { 0 };
	struct states *s = NULL;
	struct err err = ERR_INIT;
	struct launcher *launcher = NULL;
	struct fixture f;

	printf("# %s\n", launched ? "with a launcher" : "without a launcher");
	is_i(launched ? launcher_start(&launcher, &err) : 0, 0, "who starts the checks");
	fixture_make(&f);
	struct checkers_opts o = {
		.jobs = 2,
		.launcher = launcher,
		.place = { .base = f.dir, .before = f.h.before, .at = f.dir, .room = 64 << 20 },
		.check = { .command = command, .timeout_ms = ENDS_MS },
		.acks = acks,
		.n_acks = 1,
		.done = on_done,
		.ctx = &t,
	};
	is_i(states_new(&f.h, &(struct states_opts){ .budget = 80 }, &s, &err), 0, "states");
	is_i(checkers_run(&f.h, s, &o, &stats, &err), 0, "checked: %s", err.msg);
	states_stats(s, &all);
	is_u(t.seen, all.given, "each state came back");
	is_u(stats.checked, t.seen, "and was checked");
	is_u(t.wrong, 0, "with the right result");
	ok(t.passed > 0 && t.passed < t.seen && t.failed, "some pass, some fail");
	ok(all.budget_hit && all.given == 80, "the budget held, and says so");
	states_free(s);

	struct app_state one = { 0 };
	struct check_result r = { 0 };
	struct checker *k = checker_new(&f.h, &o);
	is_i(states_replay(&f.h, t.failed ? t.failed : "0.1", &one, &err), 0, "a state by its id");
	ok(!checker_ask(k, one.id, &r, &err) && r.end == CHECK_FAILED, "it fails again");
	checker_free(k);
	app_state_release(&one);
	check_result_release(&r);
	free(t.failed);
	is_u(t.late, 0, "in the order of the states");
	test_order(&f.h, &o);

	t = (struct tally){ 0 };
	o.stop = stop_at_once;
	s = NULL;
	is_i(states_new(&f.h, &(struct states_opts){ .budget = 80 }, &s, &err), 0, "states again");
	is_i(checkers_run(&f.h, s, &o, &stats, &err), 0, "a run that is stopped");
	ok(t.seen >= 5 && t.seen < 80, "ends early");
	states_free(s);
	free(t.failed);

	/* Whoever is killed while a check runs takes that along. */
	t = (struct tally){ 0 };
	o.stop = stop_soon;
	o.check.command = "sleep 1000 & sleep 1000";
	o.check.timeout_ms = ENDS_MS;
	s = NULL;
	is_i(states_new(&f.h, &(struct states_opts){ .budget = 80 }, &s, &err), 0, "states again");
	is_i(checkers_run(&f.h, s, &o, &stats, &err), 0, "a run that is stopped in a check");
	is_u(t.seen, 0, "that did not end");
	states_free(s);

	if (!launched) {
		test_deaths(&f.h, &o);
		test_replaced(&f.h, &o);
	}

	/* Without a PID namespace a check can reach the process that runs it. */
	t = (struct tally){ 0 };
	o.stop = NULL;
	o.jobs = 1;
	o.check.timeout_ms = ENDS_MS;
	o.check.no_namespace = true;
	o.check.command = "[ ! -e new ] || [ -e gone ] || "
			  "kill -9 $(sed -n 's/^PPid:.//p' /proc/$PPID/status); sleep 0.1";
	s = NULL;
	is_i(states_new(&f.h, &(struct states_opts){ .budget = 20 }, &s, &err), 0, "states again");
	int rc = checkers_run(&f.h, s, &o, &stats, &err);
	ok(rc < 0     ? strstr(err.msg, "in a row") != NULL
	   : launched ? t.errors > 0
		      : t.errors > 0 && stats.replaced == 2 * t.errors,
	   "who dies is replaced, twice, and then what it was at is an error");
	states_free(s);
	free(t.failed);
	fixture_remove(&f);
	launcher_stop(launcher);
	ok(gone_soon(), "no process is left");
}

int main(void)
{
	test_place();
	test_check();
	if (geteuid())
		skip("needs root");
	for (int launched = 0; launched < 2 && !geteuid(); launched++)
		test_many(launched);
	return done_testing();
}
