/* SPDX-License-Identifier: MIT */
/* guardian.c - waits in a process of its own for the end of a server, and unmounts. */
#include "fuse/guardian.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"

/* ---- in the guardian ---- */

/*
 * Whether the mount's server is gone: there is no answer. Attributes of its root may be cached, so
 * another question is asked. A question that was on its way when the server died is aborted.
 */
static bool is_dead(const char *mnt)
{
	struct statvfs st;

	return statvfs(mnt, &st) && (errno == ENOTCONN || errno == ECONNABORTED);
}

void guardian_unmount(const char *mnt)
{
	if (!is_dead(mnt) || !umount2(mnt, MNT_DETACH))
		return;
	pid_t pid = fork();
	if (!pid) {
		execlp("fusermount3", "fusermount3", "-u", "-z", "-q", "--", mnt, (char *)NULL);
		_exit(127);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

static int unmount_alone(const struct guardian_task *t, int fd)
{
	(void)fd;
	guardian_unmount(t->mnt);
	return 0;
}

/* The descriptors of the guardian: nothing else of the server may stay open there. */
enum { GUARD_PIPE = 3, GUARD_KEPT = 4, GUARD_FDS = 5 };

static bool keep_two(int pipe_end, int kept)
{
	int high_pipe = fcntl(pipe_end, F_DUPFD, GUARD_FDS);
	int high_kept = kept < 0 ? -1 : fcntl(kept, F_DUPFD, GUARD_FDS);

	if (high_pipe < 0 || dup2(high_pipe, GUARD_PIPE) < 0)
		return false;
	if (kept < 0)
		close(GUARD_KEPT);
	else if (high_kept < 0 || dup2(high_kept, GUARD_KEPT) < 0)
		return false;
	return !close_range(GUARD_FDS, ~0U, 0);
}

/* Never returns. A byte from the server says that it ended as it should. */
static void guard(int pipe_end, const struct guardian_task *t)
{
	char byte;
	ssize_t n;

	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	prctl(PR_SET_NAME, "outage-guardian");
	int null = open("/dev/null", O_RDWR);
	for (int fd = 0; fd < 3 && null >= 0; fd++)
		dup2(null, fd);
	if (!keep_two(pipe_end, t->fd) || chdir("/"))
		_exit(1);
	do
		n = read(GUARD_PIPE, &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n <= 0 && (t->clear ? t->clear : unmount_alone)(t, t->fd < 0 ? -1 : GUARD_KEPT))
		_exit(1);
	_exit(0);
}

/* ---- in the server ---- */

int guardian_start(struct guardian *g, const struct guardian_task *t, struct err *err)
{
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return err_set(err, -errno, "cannot make a pipe: %m");
	fflush(NULL);
	pid = fork();
	if (!pid) {
		close(ends[1]);
		setsid();
		guard(ends[0], t);
	}
	close(ends[0]);
	if (pid < 0) {
		close(ends[1]);
		return err_set(err, -errno, "cannot start a process: %m");
	}
	*g = (struct guardian){ .pipe = ends[1], .pid = pid };
	return 0;
}

void guardian_dismiss(struct guardian *g)
{
	if (g->pipe >= 0 && write(g->pipe, "x", 1) != 1)
		log_debug("the guardian has gone");
	util_close(steal_fd(&g->pipe));
	/* The server forked since if it went into the background; then the wait fails at once. */
	if (g->pid > 0)
		waitpid(g->pid, NULL, 0);
}
