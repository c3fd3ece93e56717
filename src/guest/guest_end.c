/* SPDX-License-Identifier: MIT */
/*
 * guest_end.c - decides what caused the end of a guest.
 *
 * A limit: a fault signal (SIGSEGV, SIGBUS, SIGILL, SIGFPE) that another program sends to the
 * process of user-mode Linux itself cannot be told from a fault of that kernel. The kernel handles
 * both in the same way, and panics with the same message.
 */
#include "guest/guest_end.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "guest/guest_words.h"

enum { EVENTS_MAX = 64 << 10 };

static int tell_outside(struct err *err, const char *how)
{
	return err_set(err, -EINTR, "the guest was killed from outside: %s", how);
}

/*
 * tell_outside() with the first line of the panic, or else of the output, which is dropped: so a
 * person can judge whether the kernel was the cause after all.
 */
static int tell_words(const struct guest *g, const char *how, struct err *err)
{
	const char *said = strbuf_str(&g->said), *line = strstr(said, "Kernel panic");

	if (!line)
		line = said;
	while (line > said && line[-1] != '\n')
		line--;
	return err_set(err, -EINTR, "the guest was killed from outside: %s%s%.*s", how,
		       *line ? ": " : "", (int)strcspn(line, "\n"), line);
}

int guest_check_words(const struct guest *g, struct err *err)
{
	if (g->heard & GUEST_NO_ROOM)
		return err_set(err, -ENOSPC,
			       "there is no room for the guest's memory; make /dev/shm larger "
			       "(mount -o remount,size=...), or run fewer workers (-j)");
	if (g->heard & GUEST_NO_MEMORY)
		return err_set(err, -ENOMEM,
			       "the guest ran out of memory: it has %lluM; give it more with "
			       "--guest-memory SIZE",
			       (unsigned long long)(g->memory >> 20));
	/* In a machine, the guest's programs are no processes of this one. */
	if (g->heard & GUEST_LOST_PROC && !g->emulated)
		return tell_outside(err, "a process in which its kernel runs programs was killed, "
					 "got a signal, or lacked memory of this machine");
	return 0;
}

/* True for signals that a program's own fault raises. */
static bool own_signal(const struct guest *g, int sig)
{
	return sig == SIGABRT ? g->heard & GUEST_PANIC
			      : sig == SIGSEGV || sig == SIGBUS || sig == SIGILL || sig == SIGFPE;
}

static enum guest_shutdown ask_monitor(const struct guest *g)
{
	auto_strbuf events = STRBUF_INIT;
	char text[4096];
	ssize_t n;

	while (g->monitor >= 0 && events.len < EVENTS_MAX &&
	       (n = recv(g->monitor, text, sizeof(text), MSG_DONTWAIT)) > 0)
		strbuf_add(&events, text, (size_t)n);
	return guest_shutdown(strbuf_str(&events));
}

static int killed_by(const struct guest *g, int sig, struct err *err)
{
	if (sig == SIGKILL)
		return err_set(err, -EINTR,
			       "the guest was killed from outside, by a person or for lack of "
			       "memory (see dmesg; fewer workers, -j, need less)");
	return tell_outside(err, g->end);
}

static int lacks_disk(const struct guest *g, struct err *err)
{
	if (!g->device_of_disk)
		return err_set(
			err, -ENODEV,
			"the guest's kernel does not see its persistent memory: it needs "
			"CONFIG_X86_PMEM_LEGACY (for an NVDIMM: CONFIG_ACPI_NFIT and "
			"CONFIG_NVDIMM_PFN) and CONFIG_BLK_DEV_PMEM, built in or as the "
			"modules nd_e820 (nfit) and nd_pmem in the folder that --modules names");
	return err_set(err, -ENODEV,
		       "the guest's kernel does not see its disk: virtio_blk%s is missing, "
		       "built in or in the folder that --modules names",
		       g->emulated ? " or virtio_pci" : "");
}

/* Judges a guest that exited, and whose kernel did not panic. */
static int ended_quietly(struct guest *g, enum guest_shutdown shutdown, struct err *err)
{
	if (strstr(strbuf_str(&g->last), NO_DISK))
		return lacks_disk(g, err);
	if (g->heard & GUEST_AGENT_ENDED)
		return err_set(err, -EIO, "the agent in the guest gave up; it said: %s",
			       guest_last_words(g));
	/* A reset from within is caused by the guest's kernel. */
	if (shutdown == GUEST_BY_ITSELF)
		return 0;
	return err_set(err, -EIO,
		       "the guest was ended from outside, or lacked something of this machine: %s, "
		       "and its kernel did not panic; it said: %s",
		       g->end, guest_last_words(g));
}

/* Judges a machine: if its kernel ends, the emulator exits normally, and reports the reason. */
static int judge_machine(struct guest *g, int status, struct err *err)
{
	enum guest_shutdown shutdown = ask_monitor(g);

	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return killed_by(g, SIGKILL, err);
	if (shutdown == GUEST_FROM_OUTSIDE)
		return tell_outside(err, "the emulator was told to end");
	if (status)
		return err_set(err, -EIO, "the emulator failed: %s; it said: %s", g->end,
			       guest_last_words(g));
	return g->heard & GUEST_PANIC ? 0 : ended_quietly(g, shutdown, err);
}

/* Judges user-mode Linux: a kernel that panics prints that, or dies of its own fault signal. */
static int judge_kernel(struct guest *g, const struct guest_end *how, struct err *err)
{
	int sig = WIFSIGNALED(how->status) ? WTERMSIG(how->status) : 0;

	if (sig && !own_signal(g, sig))
		return killed_by(g, sig, err);
	if (how->aborted || guest_panics(strbuf_str(&g->said)) > 1)
		return tell_words(g,
				  "a helper of its kernel got a signal, or its kernel "
				  "panicked twice",
				  err);
	if (guest_agent_killed(strbuf_str(&g->said)))
		return tell_words(g,
				  "a process in which its kernel runs the agent got a signal, "
				  "or the agent failed",
				  err);
	return sig || g->heard & GUEST_PANIC ? 0 : ended_quietly(g, GUEST_NOT_TOLD, err);
}

/* Judges a guest that lost its disks or panicked, but whose process was still there. */
static int judge_stuck(struct guest *g, const struct guest_end *how, struct err *err)
{
	if (!(g->heard & GUEST_PANIC))
		return err_set(err, -EIO, "the guest cannot go on%s: %s",
			       how->refused ? "" : ", and was perhaps told to end from outside",
			       g->end);
	/* The process of user-mode Linux ends when its kernel panics, unless a helper's signal
	 * caused the panic.
	 */
	return g->emulated ? 0 : tell_words(g, "a helper of its kernel got a signal", err);
}

int guest_judge_end(struct guest *g, const struct guest_end *how, struct err *err)
{
	int rc = guest_check_words(g, err);

	if (rc)
		return rc;
	if (!how->ended)
		return judge_stuck(g, how, err);
	return g->emulated ? judge_machine(g, how->status, err) : judge_kernel(g, how, err);
}
