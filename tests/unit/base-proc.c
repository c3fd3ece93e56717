/* SPDX-License-Identifier: MIT */
/* base-proc.c - child processes: what goes in and out, how they end, and that none is left. */
#include "base/fault.h"
#include "base/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tap.h"

/*
 * What must not be waited for sleeps much longer than this, and a test that waited for it fails; a
 * machine that is only slow does not.
 */
enum { SOON_MS = 300000 };

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* Runs a line of shell. The result lives until the next call. */
static struct proc_result res;

static int sh(const char *script, struct proc_opts opts, struct err *err)
{
	const char *argv[] = { "sh", "-c", script, NULL };

	proc_result_release(&res);
	res = (struct proc_result){ 0 };
	opts.argv = argv;
	return proc_run(&opts, &res, err);
}

/*
 * Runs one that takes too long, and says something first: how soon it does depends on the machine.
 * So it is given more time, until it came so far.
 */
static int sh_too_long(const char *script, struct proc_opts *opts, struct err *err)
{
	int rc;

	opts->timeout_ms = 100;
	while (!(rc = sh(script, *opts, err)) && !res.out.len && opts->timeout_ms < SOON_MS)
		opts->timeout_ms *= 4;
	return rc;
}

/* True if we have no child, running or dead. We adopt orphans, so this covers grandchildren. */
static bool no_child_left(void)
{
	for (int i = 0; i < SOON_MS / 5; i++) {
		pid_t pid = waitpid(-1, NULL, WNOHANG);

		if (pid < 0)
			return errno == ECHILD;
		if (pid == 0)
			usleep(5000); /* SIGKILL takes a moment */
	}
	return false;
}

static int open_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void test_output(void)
{
	struct err err = ERR_INIT;

	is_i(sh("echo out; echo err >&2; exit 3", (struct proc_opts){ 0 }, &err), 0, "runs");
	is_s(strbuf_str(&res.out), "out\n", "standard output");
	is_s(strbuf_str(&res.err), "err\n", "standard error");
	ok(res.exit_code == 3 && !res.signal && !res.timed_out && !res.output_cut, "exit status");
	is_i(sh("echo out; echo err >&2", (struct proc_opts){ .merge_stderr = true }, &err), 0,
	     "runs with both in one");
	is_s(strbuf_str(&res.out), "out\nerr\n", "standard error is in the output");
	ok(res.err.len == 0 && res.exit_code == 0, "and not apart");
	is_i(sh("pwd", (struct proc_opts){ .cwd = "/usr" }, &err), 0, "runs elsewhere");
	is_s(strbuf_str(&res.out), "/usr\n", "in that directory");
	is_i(sh("kill -9 $$", (struct proc_opts){ 0 }, &err), 0,
	     "a signal is not a failure to run");
	ok(res.signal == SIGKILL && res.exit_code == -1 && !res.timed_out, "it is told");
	is_i(sh("read x; echo \"<$x>\"", (struct proc_opts){ 0 }, &err), 0, "reads nothing");
	is_s(strbuf_str(&res.out), "<>\n", "because there is no input");
}

static void test_input(void)
{
	static char big[1 << 20];
	struct err err = ERR_INIT;
	struct proc_opts opts = { .input = "hello", .input_len = 5 };

	is_i(sh("cat", opts, &err), 0, "reads its input");
	is_s(strbuf_str(&res.out), "hello", "all of it");
	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = (char)(i * 13);
	opts = (struct proc_opts){ .input = big,
				   .input_len = sizeof(big),
				   .output_limit = sizeof(big) };
	is_i(sh("cat", opts, &err), 0, "more than a pipe holds");
	ok(res.out.len == sizeof(big) && !memcmp(res.out.buf, big, sizeof(big)) && !res.output_cut,
	   "goes through whole");
	is_i(sh("exec <&-; exit 4", opts, &err), 0, "input that nobody reads");
	is_i(res.exit_code, 4, "does not matter");
	struct sigaction act;
	ok(sigaction(SIGPIPE, NULL, &act) == 0 && act.sa_handler == SIG_DFL,
	   "and SIGPIPE is as it was");
}

static void test_limit(void)
{
	struct err err = ERR_INIT;

	is_i(sh("head -c 200000 /dev/zero | tr '\\0' x; exit 5",
		(struct proc_opts){ .output_limit = 1000 }, &err),
	     0, "much output");
	ok(res.out.len == 1000 && res.output_cut, "is cut at the limit");
	is_i(res.exit_code, 5, "and the program still ends by itself");
	is_i(sh("printf 12345", (struct proc_opts){ .output_limit = 5 }, &err), 0, "just enough");
	ok(res.out.len == 5 && !res.output_cut, "is not cut");
}

static void test_missing(void)
{
	const char *argv[] = { "outage-no-such-program", NULL };
	struct proc_opts opts = { .argv = argv };
	struct proc_result r = { 0 };
	struct err err = ERR_INIT;

	is_i(proc_run(&opts, &r, &err), -ENOENT, "a program that is not there");
	is_s(err.msg, "cannot run outage-no-such-program: No such file or directory", "in words");
	err_clear(&err);
	argv[0] = "/etc/passwd";
	is_i(proc_run(&opts, &r, &err), -EACCES, "one that is none");
	err_clear(&err);
	is_i(sh("true", (struct proc_opts){ .cwd = "/no/where" }, &err), -ENOENT, "no directory");
	ok(no_child_left(), "none of them leaves a process");
}

static void describes(const char *want, const struct proc_opts *opts)
{
	auto_strbuf sb = STRBUF_INIT;

	proc_describe(&res, opts, &sb);
	is_s(strbuf_str(&sb), want, "described");
}

static void describes_limit(const struct proc_opts *opts)
{
	auto_free char *want = xasprintf("took longer than %d ms", (int)opts->timeout_ms);

	describes(want, opts);
}

static void test_timeout(void)
{
	struct err err = ERR_INIT;
	struct proc_opts opts = { 0 };
	uint64_t start = now_ms();

	is_i(sh_too_long("echo before; exec sleep 1000", &opts, &err), 0,
	     "one that takes too long");
	ok(res.timed_out && res.signal == SIGTERM && now_ms() - start < SOON_MS, "is ended");
	is_s(strbuf_str(&res.out), "before\n", "what it said is kept");
	describes_limit(&opts);
	start = now_ms();
	is_i(sh_too_long("trap '' TERM; echo deaf; while :; do sleep 1000; done", &opts, &err), 0,
	     "one that ignores SIGTERM");
	ok(res.timed_out && res.signal == SIGKILL && now_ms() - start < SOON_MS, "is killed");
	is_s(strbuf_str(&res.out), "deaf\n", "what it said is kept");
	ok(no_child_left(), "with its children");
	is_i(sh_too_long("trap 'echo bye; exit 7' TERM; sleep 1000 & wait", &opts, &err), 0,
	     "one that listens");
	ok(res.timed_out && res.exit_code == 7, "may say good-bye");
	is_s(strbuf_str(&res.out), "bye\n", "and is heard");
	is_i(sh("exit 0", (struct proc_opts){ .timeout_ms = SOON_MS }, &err), 0, "one in time");
	ok(!res.timed_out && res.exit_code == 0, "is not disturbed");
	describes("exited with status 0", &opts);
	is_i(sh("kill -SEGV $$", (struct proc_opts){ 0 }, &err), 0, "one that crashes");
	describes("was killed by signal 11 (Segmentation fault)", &opts);
	ok(no_child_left(), "none is left");
}

static void stop_before_exec(void)
{
	raise(SIGSTOP);
}

static void hang_before_exec(void)
{
	for (;;)
		pause();
}

/* As if the working directory were on a file system that hangs. */
static void test_timeout_before_exec(void)
{
	struct err err = ERR_INIT;
	struct proc_opts opts = { .cwd = "/", .timeout_ms = 100 };
	int before = open_fds(), rc;
	uint64_t start = now_ms();

	proc_in_child = hang_before_exec;
	is_i(sh("echo never", opts, &err), 0, "one that hangs before its program runs");
	ok(res.timed_out && res.signal == SIGTERM && now_ms() - start < SOON_MS,
	   "is ended in time");
	describes("took longer than 100 ms", &opts);
	start = now_ms();
	proc_in_child = stop_before_exec;
	/* It may not have come so far. */
	do {
		rc = sh("echo never", opts, &err);
	} while (!rc && res.signal == SIGTERM && (opts.timeout_ms *= 4) < SOON_MS);
	is_i(rc, 0, "one that is stopped there");
	ok(res.timed_out && res.signal == SIGKILL && now_ms() - start < SOON_MS,
	   "is killed in time");
	is_u(res.out.len, 0, "its program never ran");
	proc_in_child = NULL;
	is_i(open_fds(), before, "no descriptor is left open");
	ok(no_child_left(), "none is left");
}

static void test_grandchildren(void)
{
	struct err err = ERR_INIT;
	uint64_t start = now_ms();

	is_i(sh("echo mine; sleep 1000 & exit 0", (struct proc_opts){ 0 }, &err), 0,
	     "a grandchild that holds the pipe");
	ok(now_ms() - start < SOON_MS && res.exit_code == 0 && !res.timed_out, "is not waited for");
	is_s(strbuf_str(&res.out), "mine\n", "what was said is there");
	ok(no_child_left(), "and it is gone");
	/* On a busy machine it may be later than that. */
	int rc = 0;
	strbuf_clear(&res.out);
	for (int i = 0; i < 100 && !rc && !res.out.len; i++)
		rc = sh("(sleep 0.2; echo late) & exit 0", (struct proc_opts){ 0 }, &err);
	is_i(rc, 0, "one that is only a little late");
	is_s(strbuf_str(&res.out), "late\n", "is heard");
	is_i(sh("sleep 1000 >/dev/null 2>&1 & exit 0", (struct proc_opts){ 0 }, &err), 0,
	     "one that holds nothing");
	ok(no_child_left(), "is gone as well");
}

/* What a daemon's environment may look like: no standard descriptors, signals blocked or ignored.
 */
static bool in_bare_process(bool (*body)(void))
{
	int status = -1;

	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		alarm(600); /* a hang is a failure */
		_exit(body() ? 0 : 1);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static bool without_descriptors(void)
{
	struct proc_opts opts = { .input = "in", .input_len = 2 };

	close(0);
	close(1);
	close(2);
	return sh("cat; echo err >&2", opts, NULL) == 0 && res.exit_code == 0 &&
	       streq(strbuf_str(&res.out), "in") && streq(strbuf_str(&res.err), "err\n");
}

static bool without_sigchld(void)
{
	signal(SIGCHLD, SIG_IGN);
	return sh("exit 6", (struct proc_opts){ .timeout_ms = SOON_MS }, NULL) == 0 &&
	       res.exit_code == 6 && !res.timed_out;
}

static bool with_blocked_signals(void)
{
	sigset_t every;

	sigfillset(&every);
	sigprocmask(SIG_SETMASK, &every, NULL);
	return sh("exec sleep 1000", (struct proc_opts){ .timeout_ms = 100 }, NULL) == 0 &&
	       res.timed_out && res.signal == SIGTERM;
}

static void do_nothing(int sig)
{
	(void)sig;
}

static bool with_interruptions(void)
{
	struct sigaction act = { .sa_handler = do_nothing }; /* no SA_RESTART */
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	timer_t timer;
	struct itimerspec often = { { 0, 10000000 }, { 0, 10000000 } };

	sigaction(SIGUSR1, &act, NULL);
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &often, NULL))
		return false;
	for (int i = 0; i < 50; i++) {
		const char *argv[] = { "outage-no-such-program", NULL };
		struct proc_opts opts = { .argv = argv };
		struct proc_result none;

		if (sh("echo x; exit 2", (struct proc_opts){ 0 }, NULL) || res.exit_code != 2 ||
		    !streq(strbuf_str(&res.out), "x\n") || proc_run(&opts, &none, NULL) != -ENOENT)
			return false;
	}
	return waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD;
}

static void test_surroundings(void)
{
	ok(in_bare_process(without_descriptors), "without standard descriptors");
	ok(in_bare_process(without_sigchld), "with SIGCHLD ignored");
	ok(in_bare_process(with_blocked_signals), "with all signals blocked");
	ok(in_bare_process(with_interruptions), "with system calls interrupted");
}

static void test_faults(void)
{
	struct fault_loop loop = { .error = EAGAIN };
	int before = open_fds(), rounds = 0, failed = 0, wrong = 0;

	while (fault_loop_next(&loop)) {
		struct err err = ERR_INIT;
		int rc = sh("exit 1", (struct proc_opts){ 0 }, &err);

		rounds++;
		failed += rc < 0;
		wrong += rc ? rc != -EAGAIN || !err.msg[0] : res.exit_code != 1;
	}
	ok(rounds >= 3 && failed == rounds - 1, "each fault is a failure to run");
	is_i(wrong, 0, "told properly");
	is_i(open_fds(), before, "no descriptor is left open");
	ok(no_child_left(), "no process is left");
}

static void test_speed(void)
{
	const char *argv[] = { "true", NULL };
	struct proc_opts opts = { .argv = argv };
	uint64_t start = now_ms();

	for (int i = 0; i < 50; i++) {
		struct proc_result r;

		if (proc_run(&opts, &r, NULL))
			break;
		proc_result_release(&r);
	}
	printf("# %.1f ms a run\n", (double)(now_ms() - start) / 50);
}

int main(void)
{
	/* Directories of the caller's that cannot be searched would change what is not found. */
	setenv("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", 1);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	test_output();
	test_input();
	test_limit();
	test_missing();
	test_timeout();
	test_timeout_before_exec();
	test_grandchildren();
	test_surroundings();
	test_faults();
	test_speed();
	proc_result_release(&res);
	return done_testing();
}
