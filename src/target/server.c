/* SPDX-License-Identifier: MIT */
/* server.c - starts a FUSE server through a shell, waits for its mount, and reaps it. */
#include "target/server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/strbuf.h"
#include "sandbox/become.h"

char *server_command(const char *command, const char *disk, const char *mnt)
{
	struct strbuf out = { 0 };

	for (const char *p = command; *p;) {
		if (disk && strncmp(p, "{disk}", 6) == 0) {
			strbuf_adds(&out, disk);
			p += 6;
		} else if (strncmp(p, "{mnt}", 5) == 0) {
			strbuf_adds(&out, mnt);
			p += 5;
		} else {
			strbuf_addch(&out, *p++);
		}
	}
	return strbuf_detach(&out);
}

/*
 * Adds `exec` to a simple command, so that the server replaces the shell: a shell in between would
 * die with this process and leave the server behind.
 */
static char *in_place(const char *line)
{
	size_t word = strcspn(line, " ");

	if (strpbrk(line, ";&|<>()`$\n") || memchr(line, '=', word))
		return xstrdup(line);
	return xasprintf("exec %s", line);
}

int server_start(const char *line, pid_t *out, struct err *err)
{
	auto_free char *simple = in_place(line);
	pid_t parent = getpid();
	pid_t pid = fork();

	if (pid < 0)
		return err_set(err, -errno, "cannot start the FUSE server: %m");
	if (pid == 0) {
		setpgid(0, 0);
		proc_tie(parent);
		become_command(&(struct become){ .command = simple, .output = -1, .errors = -1 });
	}
	setpgid(pid, pid);
	*out = pid;
	return 0;
}

/* This sends no request to the server: with a damaged disk it may not answer one about its root. */
bool server_has_mounted(const char *mnt, const struct stat *before)
{
	struct statx now;

	return statx(AT_FDCWD, mnt, AT_STATX_DONT_SYNC, STATX_TYPE, &now) == 0 &&
	       makedev(now.stx_dev_major, now.stx_dev_minor) != before->st_dev;
}

void server_reap(pid_t *server, unsigned grace_ms)
{
	for (unsigned waited = 0; *server; waited++) {
		if (waitpid(*server, NULL, WNOHANG) != 0) {
			*server = 0;
			return;
		}
		if (waited >= grace_ms)
			kill(-*server, SIGKILL);
		usleep(1000);
	}
}
