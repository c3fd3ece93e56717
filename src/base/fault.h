/* SPDX-License-Identifier: MIT */
/*
 * fault.h - fault points: places where a test makes the outside world fail.
 *
 * A fallible module calls fault_point("what") before each system call that matters and treats a
 * non-zero answer as that call's -errno; or fault_fails("what") || the call, which is the same. A
 * test runs its body again and again, letting the n-th point fail, until a run ends without
 * reaching it (fault_loop_next). In production no point is armed and the call costs one comparison.
 */
#ifndef BASE_FAULT_H
#define BASE_FAULT_H

#include <errno.h>

#include "base/util.h"

extern int fault_countdown; /* 0: nothing armed */

int fault_reached(const char *name);

/* 0, or the -errno that this point should fail with. */
static inline int fault_point(const char *name)
{
	return fault_countdown ? fault_reached(name) : 0;
}

/* True if this point should fail, with errno as the call would leave it. */
static inline bool fault_fails(const char *name)
{
	int fault = fault_point(name);

	errno = fault ? -fault : errno;
	return fault;
}

/* An `error` that is no errno: the process is killed at the point, as by a power cut. */
enum { FAULT_KILL = 1 << 20 };

/* Lets the n-th point from now (n >= 1) fail with `error` (an errno), and no other. */
void fault_arm(int n, int error);
/* No point fails for the rest of this round; the loop still knows that one was reached. */
void fault_pause(void);
/* Disarms; true if the armed point was reached. `name`, if not NULL, gets its name. */
bool fault_disarm(const char **name);

/*
 *	struct fault_loop loop = { .error = EIO };
 *	while (fault_loop_next(&loop)) {
 *		... body; must either succeed, or fail cleanly if a fault hit ...
 *	}
 *
 * The body runs once for each point it passes, and a last time without a fault.
 */
struct fault_loop {
	int error;
	int round;
	bool done;
};

bool fault_loop_next(struct fault_loop *loop);

#endif
