/* SPDX-License-Identifier: MIT */
/* tune.c - changes the console level and the priority of kthreadd, and puts them back. */
#include "target/tune.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"

#define PRINTK "/proc/sys/kernel/printk"

enum { KTHREADD = 2, PRIORITY = 1 };

int tune_console_level(void)
{
	auto_strbuf text = STRBUF_INIT;

	if (io_slurp(PRINTK, 256, &text, NULL))
		return 0;
	return atoi(strbuf_str(&text));
}

/* The first field alone may be written; the others stay. */
bool tune_console_is_slow(void)
{
	auto_strbuf consoles = STRBUF_INIT;

	return tune_console_level() > TUNE_CONSOLE_LEVEL &&
	       io_slurp("/sys/class/tty/console/active", 4096, &consoles, NULL) == 0 &&
	       strstr(strbuf_str(&consoles), "ttyS");
}

static int set_console_level(int level)
{
	char text[16];
	auto_fd fd = open(PRINTK, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	snprintf(text, sizeof(text), "%d", level);
	return io_write_full(fd, text, strlen(text));
}

/* True if process 2 is kthreadd, which it is not in a PID namespace. */
static bool kthreadd_is_there(void)
{
	auto_strbuf name = STRBUF_INIT;

	return !io_slurp("/proc/2/comm", 64, &name, NULL) && streq(strbuf_str(&name), "kthreadd\n");
}

static int kthreadd_policy(void)
{
	return kthreadd_is_there() ? sched_getscheduler(KTHREADD) & ~SCHED_RESET_ON_FORK : -1;
}

bool tune_kthreadd_raised(void)
{
	int policy = kthreadd_policy();

	return policy == SCHED_FIFO || policy == SCHED_RR;
}

static void undo(const struct tune *t)
{
	struct sched_param normal = { 0 };

	if (t->console && tune_console_level() == TUNE_CONSOLE_LEVEL)
		set_console_level(t->console);
	if (t->kthreadd && kthreadd_policy() == SCHED_FIFO)
		sched_setscheduler(KTHREADD, SCHED_OTHER, &normal);
}

/* The guardian: waits for the end of the parent, and restores. */
static void guard(const struct tune *t, int parent)
{
	struct pollfd fd = { .fd = parent, .events = POLLIN };
	sigset_t all;

	/* A signal that ends the run must not end the guardian. */
	setsid();
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	prctl(PR_SET_NAME, "outage-guardian");
	/* Readers of the run's output wait until all its descriptors are closed. */
	if (parent > 0)
		close_range(0, (unsigned)parent - 1, 0);
	close_range((unsigned)parent + 1, ~0U, 0);
	while (poll(&fd, 1, -1) < 0 && errno == EINTR)
		;
	undo(t);
	_exit(0);
}

static int start_guardian(struct tune *t, struct err *err)
{
	auto_fd parent = (int)syscall(SYS_pidfd_open, getpid(), 0);

	if (parent < 0)
		return err_set(
			err, -errno,
			"--tune needs a kernel from 5.3 on (pidfd_open: %m); run without it");
	t->guardian = fork();
	if (t->guardian == 0)
		guard(t, parent);
	if (t->guardian < 0) {
		t->guardian = 0;
		return err_set(err, -errno, "cannot start a process that restores settings: %m");
	}
	return 0;
}

int tune_apply(struct tune *t, struct err *err)
{
	struct sched_param raised = { .sched_priority = PRIORITY };
	struct tune wish = { 0 };
	int rc = 0;

	*t = wish;
	if (geteuid())
		return err_set(err, -EPERM, "--tune changes this machine and needs root");
	if (tune_console_level() > TUNE_CONSOLE_LEVEL)
		wish.console = tune_console_level();
	wish.kthreadd = kthreadd_policy() == SCHED_OTHER;
	if (!wish.console && !wish.kthreadd)
		return 0;
	/* The guardian is started before anything is changed. */
	rc = start_guardian(&wish, err);
	if (rc)
		return rc;
	if (wish.console && set_console_level(TUNE_CONSOLE_LEVEL))
		rc = err_set(err, -errno, "cannot lower the console's log level: %m");
	if (!rc && wish.kthreadd && sched_setscheduler(KTHREADD, SCHED_FIFO, &raised) < 0)
		rc = err_set(err, -errno, "cannot raise the priority of kthreadd: %m");
	*t = wish;
	if (rc)
		tune_restore(t);
	return rc;
}

void tune_restore(struct tune *t)
{
	if (!t->guardian)
		return;
	undo(t);
	kill(t->guardian, SIGKILL);
	while (waitpid(t->guardian, NULL, 0) < 0 && errno == EINTR)
		;
	*t = (struct tune){ 0 };
}
