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
 * Calls `handler` for each of them, until they are restored. SIGHUP stays ignored if it was: then
 * nohup(1) started us.
 */
void signals_catch(struct signals *s, void (*handler)(int sig));
void signals_restore(const struct signals *s);

/* In a child: what is sent to all (SIGINT, SIGHUP) is its parent's business, if `theirs`. */
void signals_in_child(bool theirs);

#endif
