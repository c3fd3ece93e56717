/* SPDX-License-Identifier: MIT */
/*
 * owner.h - names that contain the process that made a thing, so that the leftovers of a killed run
 * are distinguished from the things that a running one needs.
 *
 * A name is "outage-KIND-PID-START-NAMESPACE": the process, when it began (numbers of processes are
 * used again), and the namespace in which its number means something. A process that makes
 * something that could outlive it (a file, a device, a mount) names it so.
 */
#ifndef BASE_OWNER_H
#define BASE_OWNER_H

#include "base/util.h"

enum { OWNER_NAME_SIZE = 96 };

/* Writes the name for a thing of this process. `kind` is a short word without '-'. */
const char *owner_name(const char *kind, char name[OWNER_NAME_SIZE]);

enum owner_state {
	OWNER_NONE,  /* the text holds no such name */
	OWNER_ALIVE, /* or unknown: the process is of another namespace */
	OWNER_GONE,
};

/* Looks for a name anywhere in `text`; `pid` may be NULL. */
enum owner_state owner_state(const char *text, pid_t *pid);

#endif
