/* SPDX-License-Identifier: MIT */
/* vhost_guard.c - turns a SIGBUS at a guest's memory into a failed call. */
#include "record/vhost_guard.h"

#include <setjmp.h>
#include <signal.h>

/* The innermost guard. */
struct guard {
	const struct vhost_memory *memory;
	sigjmp_buf back;
};

static struct guard *current;

static bool is_guests(const struct vhost_memory *m, const void *at)
{
	for (unsigned i = 0; i < m->n; i++) {
		const unsigned char *from = m->v[i].mapping;

		if ((const unsigned char *)at >= from &&
		    (const unsigned char *)at < from + m->v[i].mapping_len)
			return true;
	}
	return false;
}

static void on_bus_error(int sig, siginfo_t *info, void *context)
{
	(void)context;
	if (current && is_guests(current->memory, info->si_addr))
		siglongjmp(current->back, 1);
	/*
	 * The signal came from our own code: restore the default action and return, so that it is
	 * raised again and kills the process.
	 */
	signal(sig, SIG_DFL);
}

/* SIGBUS is not blocked in its handler, which is left by a jump. */
static void catch_bus_errors(void)
{
	static bool done;
	struct sigaction how = { .sa_sigaction = on_bus_error,
				 .sa_flags = SA_SIGINFO | SA_NODEFER };

	if (done)
		return;
	sigaction(SIGBUS, &how, NULL);
	done = true;
}

bool vhost_guard(const struct vhost_memory *m, void (*fn)(void *ctx), void *ctx)
{
	struct guard here = { .memory = m };
	struct guard *volatile outer = current;

	catch_bus_errors();
	if (sigsetjmp(here.back, 0)) {
		current = outer;
		return false;
	}
	current = &here;
	fn(ctx);
	current = outer;
	return true;
}
