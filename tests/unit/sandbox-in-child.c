/* SPDX-License-Identifier: MIT */
/*
 * sandbox-in-child.c - a function in a child: its result comes back, or how the child ended, and no
 * process is left; a process becomes a command; descriptors are passed.
 *
 * All that is started holds the end of a pipe: when that is closed, all of it is gone.
 */
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "sandbox/become.h"
#include "sandbox/in_child.h"
#include "sandbox/no_shell.h"
#include "sandbox/pass.h"

struct number {
	int n;
};

static volatile sig_atomic_t *stop; /* shared with the child */

static int answer(void *ctx, struct pool_worker *w, void *out, struct err *err)
{
	(void)w;
	(void)err;
	*(struct number *)out = (struct number){ *(int *)ctx + 1 };
	return 0;
}

static int fail(void *ctx, struct pool_worker *w, void *out, struct err *err)
{
	(void)ctx;
	(void)w;
	(void)out;
	return err_set(err, -ENOSPC, "no room for %d", 5);
}

static int exits(void *ctx, struct pool_worker *w, void *out, struct err *err)
{
	(void)ctx;
	(void)out;
	(void)err;
	pool_at(w, 1, "the %s step", "first");
	_exit(3);
}

static int dies(void *ctx, struct pool_worker *w, void *out, struct err *err)
{
	(void)ctx;
	(void)w;
	(void)out;
	(void)err;
	raise(SIGKILL);
	return 0;
}

/* A child that leaves its session, and one that is an orphan at once. */
static void start_others(void)
{
	for (int i = 0; i < 2; i++)
		if (!fork()) {
			setsid();
			if (i && fork())
				_exit(0);
			for (;;)
				pause();
		}
}

static int leaves(void *ctx, struct pool_worker *w, void *out, struct err *err)
{
	(void)ctx;
	(void)w;
	(void)out;
	(void)err;
	start_others();
	return 0;
}

static int hangs(void *ctx, struct pool_worker *w, void *out, struct err *err)
{
	(void)ctx;
	(void)out;
	(void)err;
	start_others();
	pool_at(w, 1, "its end");
	*stop = 1;
	for (;;)
		pause();
	return 0;
}

/* Calls it with a pipe that all its processes hold. True: none is left. */
static bool call(struct in_child c, int want, struct err *err, const char *what)
{
	int ends[2];
	char byte;

	*stop = 0;
	if (pipe(ends))
		return false;
	is_i(in_child(&c, err), want, "%s", what);
	close(ends[1]);
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	bool gone = read(ends[0], &byte, 1) == 0;
	close(ends[0]);
	return gone;
}

static bool call_one(int (*fn)(void *, struct pool_worker *, void *, struct err *), int want,
		     const char *words, const char *what)
{
	struct err err = ERR_INIT;
	bool gone = call((struct in_child){ .fn = fn }, want, &err, what);

	is_s(err.msg, words, "... which it says");
	return gone;
}

static void children(void)
{
	struct number got = { 0 };
	struct err err = ERR_INIT;
	int ctx = 41;

	*stop = 0;
	call((struct in_child){ .fn = answer, .ctx = &ctx, .out = &got, .out_size = sizeof(got) },
	     0, &err, "a function in a child");
	is_i(got.n, 42, "what it leaves comes back");
	call_one(fail, -ENOSPC, "no room for 5", "so does its error");
	call_one(exits, -ECHILD, "a process of ours ended with status 3 at the first step",
		 "a child that ends");
	call_one(dies, -ECHILD, "a process of ours was ended by signal 9 (Killed)",
		 "a child that is killed");
	ok(call_one(leaves, 0, "", "a child that leaves processes"), "they end, too");
	ok(call((struct in_child){ .fn = hangs, .patience_ms = 200 }, -ETIMEDOUT, &err,
		"a child that hangs"),
	   "it ends, with all it started");
	ok(strstr(err.msg, "did not answer"), "which is said: %s", err.msg);
	err = (struct err)ERR_INIT;
	ok(call((struct in_child){ .fn = hangs, .stop = stop }, -EINTR, &err,
		"a child that is stopped"),
	   "ends, too, with all it started");
	is_s(err.msg, "stopped by a signal", "... which it says");
}

/* What the command printed, in `said`; its status. */
static int become(struct become b, char said[100])
{
	int ends[2], status;
	ssize_t n;

	if (pipe2(ends, O_CLOEXEC))
		return -1;
	b.output = ends[1];
	b.errors = b.errors ? -1 : ends[1];
	fflush(stdout);
	pid_t pid = fork();
	if (!pid)
		become_command(&b);
	close(ends[1]);
	n = io_read_full(ends[0], said, 99);
	said[n < 0 ? 0 : n] = 0;
	close(ends[0]);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void becoming(void)
{
	auto_free char **words = no_shell_words("/bin/echo a b");
	auto_free char **none = no_shell_words("/nowhere/at/all");
	char said[100];

	is_i(become((struct become){ .command = "echo $1; cat; exit 4", .argument = "x" }, said), 4,
	     "a command for a shell");
	is_s(said, "x\n", "has its argument, and nothing to read");
	is_i(become((struct become){ .command = "false", .words = words }, said), 0,
	     "words need no shell");
	is_s(said, "a b\n", "and are those of the program");
	is_i(become((struct become){ .command = "echo shell", .words = none }, said), 0,
	     "what cannot be run");
	is_s(said, "shell\n", "is left to the shell");
	is_i(become((struct become){ .command = "echo $PWD", .dir = "/" }, said), 0,
	     "in a directory");
	is_s(said, "/\n", "which it knows");
	is_i(become((struct become){ .command = "true", .dir = "/nowhere" }, said), 126,
	     "in none that is there");
	is_s(said, "cannot change to /nowhere: No such file or directory\n", "which it says");
	is_i(become((struct become){ .command = "echo x >&2; echo y", .errors = 1 }, said), 0,
	     "errors may go nowhere");
	is_s(said, "y\n", "without the rest");
	signal(SIGPIPE, SIG_IGN);
	is_i(become((struct become){ .command = "kill -PIPE $$; echo alive" }, said), -1,
	     "signals that we ignore end it");
}

static void passing(void)
{
	int pair[2], data[2], fds[PASS_MAX] = { -1, -1, -1 };
	char buf[4] = "";

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) || pipe(data))
		return;
	is_i(pass_send(pair[0], "abc", 3, data, 2), 0, "bytes with two descriptors");
	is_i(pass_receive(pair[1], buf, 3, fds), 2, "come with both");
	is_s(buf, "abc", "and as they were");
	ok(write(fds[1], "x", 1) == 1 && read(data[0], buf, 1) == 1 && *buf == 'x',
	   "the descriptors are the same files");
	close(fds[0]);
	close(fds[1]);
	ok(write(pair[0], "ab", 2) == 2, "bytes alone");
	is_i(pass_receive(pair[1], buf, 2, fds), 0, "come without");
	close(pair[0]);
	is_i(pass_receive(pair[1], buf, 1, fds), -EPIPE, "the other end has gone");
	is_i(pass_send(pair[1], "a", 1, data, 1), -EPIPE, "and nothing can be sent there");
	close(pair[1]);
}

int main(void)
{
	struct err err = ERR_INIT;

	stop = pool_share(sizeof(*stop), &err);
	if (!stop)
		return 1;
	becoming();
	passing();
	children();
	return done_testing();
}
