/* SPDX-License-Identifier: MIT */
/* reap.c - finds the processes below one in /proc, kills them, and waits for a bounded time. */
#include "base/reap.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/proc.h"

enum { PATIENCE_MS = 5000, NAP_MS = 10 };

static bool same_program(pid_t pid)
{
	char path[64];
	struct stat ours, theirs;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	return stat("/proc/self/exe", &ours) == 0 && stat(path, &theirs) == 0 &&
	       ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

void reap_kill(pid_t pid)
{
	auto_vec struct proc_list list = { 0 };

	proc_tree(pid, &list);
	kill(pid, SIGKILL);
	for (size_t i = 1; i < list.n; i++)
		if (!same_program(list.v[i]))
			kill(list.v[i], SIGKILL);
}

bool reap_wait(pid_t pid, int *status)
{
	auto_fd fd = (int)syscall(SYS_pidfd_open, pid, 0); /* -1 on old kernels */
	struct pollfd ended = { fd, POLLIN, 0 };

	for (int ms = 0; ms < PATIENCE_MS; ms += NAP_MS) {
		pid_t got = waitpid(pid, status, WNOHANG);

		if (got == pid || (got < 0 && errno == ECHILD))
			return true;
		poll(&ended, 1, NAP_MS);
	}
	return false;
}

bool reap_tree(pid_t pid, int *status)
{
	reap_kill(pid);
	return reap_wait(pid, status);
}

static bool any_child(void)
{
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
		;
	return !pid;
}

bool reap_below(void)
{
	/* All are killed first: a child may end only after another, such as its FUSE server. */
	for (int ms = 0, nap = 1; any_child(); ms += nap, nap = min(2 * nap, (int)NAP_MS)) {
		auto_vec struct proc_list list = { 0 };

		if (ms >= PATIENCE_MS)
			return false;
		proc_tree(getpid(), &list);
		for (size_t i = 1; i < list.n; i++)
			kill(list.v[i], SIGKILL);
		util_sleep_ms((unsigned)nap);
	}
	return true;
}

bool reap_stopped(pid_t pid, struct strbuf *who)
{
	auto_vec struct proc_list list = { 0 };
	struct proc_stat p;
	bool any = false;

	proc_tree(pid, &list);
	for (size_t i = 0; i < list.n && !any; i++) {
		auto_strbuf name = STRBUF_INIT;
		char path[64];

		/* A traced process, as under user-mode Linux, is in state 't'. */
		if (!proc_stat(list.v[i], &p) || p.state != 'T')
			continue;
		any = true;
		snprintf(path, sizeof(path), "/proc/%d/comm", (int)list.v[i]);
		if (io_slurp(path, 64, &name, NULL))
			strbuf_clear(&name);
		strbuf_addf(who, "process %d (%.*s)", (int)list.v[i],
			    (int)strcspn(strbuf_str(&name), "\n"), strbuf_str(&name));
	}
	return any;
}

void reap_describe(pid_t pid, struct strbuf *out)
{
	auto_strbuf stack = STRBUF_INIT;
	struct proc_stat p;
	char path[64];

	if (!proc_stat(pid, &p))
		return;
	snprintf(path, sizeof(path), "/proc/%d/stack", (int)pid);
	strbuf_addf(out, "process %d is in state %c\n", (int)pid, p.state);
	if (io_slurp(path, 65536, &stack, NULL) == 0 && stack.len)
		strbuf_addf(out, "its stack in the kernel:\n%s", stack.buf);
}
