/* SPDX-License-Identifier: MIT */
/* become.c - sets up descriptors, signals and the directory, and runs the shell. */
#include "sandbox/become.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/signals.h"

_Noreturn void become_command(const struct become *b)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signals_in_child(false);
	signal(SIGPIPE, SIG_DFL);
	if (null >= 0 && null <= STDERR_FILENO)
		fcntl(null, F_SETFD, 0); /* null stays open if it is 0, 1 or 2 */
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 ||
	    dup2(b->output < 0 ? null : b->output, STDOUT_FILENO) < 0 ||
	    dup2(b->errors < 0 ? null : b->errors, STDERR_FILENO) < 0)
		_exit(126);
	if (b->dir && chdir(b->dir)) {
		dprintf(STDERR_FILENO, "cannot change to %s: %s\n", b->dir, strerror(errno));
		_exit(126);
	}
	if (b->dir)
		setenv("PWD", b->dir, 1);
	if (b->words)
		execv(b->words[0], b->words);
	/* The shell runs scripts without a "#!" line, or reports what is wrong. */
	execl("/bin/sh", "sh", "-c", b->command, "sh", b->argument, (char *)NULL);
	dprintf(STDERR_FILENO, "cannot run /bin/sh: %s\n", strerror(errno));
	_exit(126);
}
