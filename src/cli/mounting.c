/* SPDX-License-Identifier: MIT */
/*
 * mounting.c - serves a mount, in this process or in one in the background that tells when it is
 * ready.
 */
#include "cli/mounting.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"

/* The process in the background tells the one that waits: READY, or FAILED and why. */
enum { READY = '+', FAILED = '-' };

struct mounting {
	int tell; /* a pipe to the process that waits; -1: none */
	FILE *log;
};

static void say(void *ctx, const char *line)
{
	struct mounting *m = ctx;

	if (!m->log)
		return;
	fprintf(m->log, "%s\n", line);
	fflush(m->log);
}

/* From here on no process waits, and no directory or terminal is held. */
static void detach(struct mounting *m)
{
	char ready = READY;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)!write(m->tell, &ready, 1);
	util_close(steal_fd(&m->tell));
	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		util_close(null);
	}
	(void)!chdir("/");
}

static void ready(void *ctx)
{
	struct mounting *m = ctx;

	if (m->tell >= 0)
		detach(m);
}

static void tell_failure(struct mounting *m, const char *why)
{
	auto_free char *text = xasprintf("%c%s", FAILED, why);

	if (io_write_full(m->tell, text, strlen(text)) == 0)
		util_close(steal_fd(&m->tell));
}

static int serve(struct forget_run_opts *o, struct mounting *m)
{
	enum forget_run_end end = FORGET_RUN_LOST;
	struct err err = ERR_INIT;

	o->say = say;
	o->ready = ready;
	o->ctx = m;
	if (forget_run(o, &end, &err)) {
		if (m->tell < 0)
			return cli_fail(&err);
		tell_failure(m, err.msg);
		return EXIT_FAILED;
	}
	switch (end) {
	case FORGET_RUN_UNMOUNTED:
		return EXIT_OK;
	case FORGET_RUN_CRASHED:
		return EXIT_CRASHED;
	case FORGET_RUN_LOST:
		break;
	}
	return cli_failf("the mount on %s ended by itself: ROOT %s was taken away, or the kernel "
			 "ended the connection",
			 o->mnt, o->root);
}

/* Reads until the other end says how it went, or ends without a word. */
static int wait_for(int fd, const char *mnt)
{
	char text[1024];
	ssize_t n = io_read_full(fd, text, 1);
	struct stat st;

	if (n == 1 && text[0] == READY) {
		/* The first answer comes when it serves. */
		if (stat(mnt, &st) < 0)
			return cli_failf("%s is mounted, but does not answer: %m", mnt);
		return EXIT_OK;
	}
	if (n != 1)
		return cli_failf("the server ended before it had mounted %s", mnt);
	n = io_read_full(fd, text, sizeof(text) - 1);
	text[max(n, (ssize_t)0)] = '\0';
	return cli_failf("%s", text);
}

int mounting_run(struct forget_run_opts *o, bool background, FILE *log)
{
	struct mounting m = { .tell = -1, .log = log };
	auto_fd mine = -1;
	int pipe[2];

	if (!background)
		return serve(o, &m);
	if (pipe2(pipe, O_CLOEXEC) < 0)
		return cli_failf("cannot make a pipe: %m");
	mine = pipe[0];
	fflush(NULL);
	pid_t child = fork();
	if (child < 0) {
		util_close(pipe[1]);
		return cli_failf("cannot start a process: %m");
	}
	if (child == 0) {
		setsid();
		util_close(steal_fd(&mine));
		m.tell = pipe[1];
		exit(serve(o, &m));
	}
	util_close(pipe[1]);
	int status = wait_for(mine, o->mnt);
	/* One that failed leaves no process behind, either. */
	if (status != EXIT_OK)
		waitpid(child, NULL, 0);
	return status;
}
