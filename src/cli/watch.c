/* SPDX-License-Identifier: MIT */
/* watch.c - work that may hang, in a process of its own. */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/patience.h"
#include "base/proc.h"
#include "base/signals.h"
#include "cli/cli.h"
#include "base/reap.h"

static volatile sig_atomic_t told_to_stop;

static void on_signal(int sig)
{
	told_to_stop = sig;
}

static int child_main(int (*fn)(void *ctx), void *ctx, pid_t parent)
{
	proc_tie(parent);
	setpgid(0, 0); /* Ctrl-C goes to the parent */
	signals_in_child(false);
	int status = fn(ctx);
	int flushed = cli_flush();
	return status == EXIT_OK ? flushed : status;
}

/*
 * Whether the time is up. For a hang, the time in which the process waited for a processor does not
 * count; for all else, the time is that which was agreed.
 */
static bool is_over(struct patience *p, pid_t pid, uint64_t time_ns, bool hangs)
{
	return hangs ? patience_ends(p, pid, time_ns) : util_now_ns() - p->since_ns >= time_ns;
}

static int wait_for(pid_t pid, uint64_t time_ns, bool *hung)
{
	struct patience patience;
	int status;

	patience_renew(&patience);
	for (unsigned turn = 1;; turn++) {
		pid_t got = waitpid(pid, &status, WNOHANG);

		if (got == pid)
			break;
		/* To look at all its processes is dear. */
		if (told_to_stop ||
		    (turn % 16 == 0 && is_over(&patience, pid, time_ns, hung != NULL))) {
			/* Stuck in the kernel it may never end: it is not waited for long. */
			reap_tree(pid, &status);
			if (!told_to_stop && hung) {
				*hung = true;
				return EXIT_FINDINGS;
			}
			return told_to_stop ? cli_failf("stopped by a signal")
					    : cli_failf("did not end within %g s; it was killed",
							(double)time_ns / 1e9);
		}
		util_sleep_ms(10);
	}
	if (WIFSIGNALED(status))
		return cli_failf("the work was ended by signal %d (%s)", WTERMSIG(status),
				 strsignal(WTERMSIG(status)));
	return WEXITSTATUS(status);
}

int cli_watch(int (*fn)(void *ctx), void *ctx, uint64_t time_ns, bool *hung)
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
			     : wait_for(pid, time_ns, hung);
	signals_restore(&signals);
	return status;
}
