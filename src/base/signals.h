/* SPDX-License-Identifier: MIT */
/* signals.h - the signals by which a person, or the end of a session, tells a program to stop. */
#ifndef BASE_SIGNALS_H
#define BASE_SIGNALS_H

#include <signal.h>

#include "base/util.h"

enum { SIGNALS_TO_STOP = 3 }; /* SIGINT, SIGTERM, SIGHUP */

struct signals {
	struct sigaction old[SIGNALS_TO_STOP];
};

/*
 * Calls `handler` for each of these signals until signals_restore(). A SIGHUP that nohup(1) has set
 * to be ignored stays ignored.
 */
void signals_catch(struct signals *s, void (*handler)(int sig));
void signals_restore(const struct signals *s);

/*
 * Called in a child. With `theirs`, the child ignores the signals that a terminal sends to all
 * (SIGINT, SIGHUP): its parent handles them.
 */
void signals_in_child(bool theirs);

#endif
