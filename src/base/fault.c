/* SPDX-License-Identifier: MIT */
/* fault.c - counts fault points down, and lets the armed one fail. */
#include "base/fault.h"

#include <signal.h>
#include <unistd.h>

int fault_countdown;

static int armed_error;
static const char *hit_name;

int fault_reached(const char *name)
{
	if (--fault_countdown)
		return 0;
	if (armed_error == FAULT_KILL)
		kill(getpid(), SIGKILL);
	hit_name = name;
	return -armed_error;
}

void fault_arm(int n, int error)
{
	assert(n >= 1 && error > 0);
	fault_countdown = n;
	armed_error = error;
	hit_name = NULL;
}

void fault_pause(void)
{
	fault_countdown = 0;
}

bool fault_disarm(const char **name)
{
	fault_countdown = 0;
	if (name)
		*name = hit_name;
	bool hit = hit_name != NULL;
	hit_name = NULL;
	return hit;
}

bool fault_loop_next(struct fault_loop *loop)
{
	if (loop->round) {
		if (loop->done)
			return false;
		if (!fault_disarm(NULL)) {
			/* The armed point was never reached: that run was the clean one. */
			loop->done = true;
			return false;
		}
	}
	fault_arm(++loop->round, loop->error);
	return true;
}
