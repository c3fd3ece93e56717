/* SPDX-License-Identifier: MIT */
/*
 * leftover.h - finds and clears what killed runs left behind.
 *
 * Only things that name an owner that is gone are cleared (base/owner.h): loop devices, processes
 * that a run had started, mounts that got into our namespace, temporary files. Things of a living
 * run, or of another PID namespace, are not touched.
 */
#ifndef TARGET_LEFTOVER_H
#define TARGET_LEFTOVER_H

#include "base/err.h"
#include "base/vec.h"

enum leftover_kind {
	LEFTOVER_PROCESS, /* a process of a run that is gone */
	LEFTOVER_STOPPED, /* a process of a living run that was stopped; never cleared */
	LEFTOVER_MOUNT,
	LEFTOVER_LOOP,
	LEFTOVER_FILE,
};

struct leftover {
	enum leftover_kind kind;
	unsigned number; /* number of the process or the loop device */
	char *what;	 /* a description; for mounts and files, the path */
	bool cleared;
	char *problem; /* why it could not be cleared, or NULL */
};

struct leftovers vec_of(struct leftover);

const char *leftover_kind_name(enum leftover_kind kind);

/* Lists leftovers in the order for clearing: processes hold mounts, mounts hold devices. */
void leftovers_find(struct leftovers *out);
/* Clears leftovers where possible, and notes the outcome of each. */
void leftovers_clear(struct leftovers *l);
void leftovers_release(struct leftovers *l);

#endif
