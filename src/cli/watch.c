/* SPDX-License-Identifier: MIT */
/* watch.c - work that may hang, in a process of its own. */
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/signals.h"
#include "cli/cli.h"
#include "run/reap.h"

static volatile sig_atomic_t told_to_stop;

static void on_signal(int sig)
{
	told_to_stop = sig;
}

static int child_main(int (*fn)(void *ctx), void *ctx, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		return EXIT_FAILED;
	setpgid(0, 0); /* Ctrl-C goes to the parent */
	signals_in_child(false);
	int status = fn(ctx);
	int flushed = cli_flush();
	return status == EXIT_OK ? flushed : status;
}

static int wait_for(pid_t pid, unsigned timeout_s, bool *hung)
{
	time_t end = time(NULL) + (time_t)timeout_s;
	int status;

	for (;;) {
		pid_t got = waitpid(pid, &status, WNOHANG);

		if (got == pid)
			break;
		if (told_to_stop || time(NULL) > end) {
			/* Stuck in the kernel it may never end: it is not waited for long. */
			reap_tree(pid, &status);
			if (!told_to_stop && hung) {
				*hung = true;
				return EXIT_FINDINGS;
			}
			return told_to_stop ? cli_failf("stopped by a signal")
					    : cli_failf("did not end within %u s; it was killed",
							timeout_s);
		}
		util_sleep_ms(10);
	}
	if (WIFSIGNALED(status))
		return cli_failf("the work was ended by signal %d (%s)", WTERMSIG(status),
				 strsignal(WTERMSIG(status)));
	return WEXITSTATUS(status);
}

int cli_watch(int (*fn)(void *ctx), void *ctx, unsigned timeout_s, bool *hung)
{
	struct signals signals;
	pid_t parent = getpid();

	fflush(stdout);
	told_to_stop = 0;
	signals_catch(&signals, on_signal);
	pid_t pid = fork();
	if (pid == 0)
		_exit(child_main(fn, ctx, parent));
	int status = pid < 0 ? cli_failf("cannot start a process: %m")
			     : wait_for(pid, timeout_s, hung);
	signals_restore(&signals);
	return status;
}
