/* SPDX-License-Identifier: MIT */
/*
 * leftover.h - finds and clears what killed runs left behind.
 *
 * Only what names an owner that is gone is touched (base/owner.h): loop devices, processes that a
 * run had started, mounts that got into our namespace, temporary files. The things of a living run,
 * or of another process namespace, are left alone.
 */
#ifndef TARGET_LEFTOVER_H
#define TARGET_LEFTOVER_H

#include "base/err.h"
#include "base/vec.h"

enum leftover_kind {
	LEFTOVER_PROCESS, /* of a run that is gone */
	LEFTOVER_STOPPED, /* of a run that lives, but was stopped; never cleared */
	LEFTOVER_MOUNT,
	LEFTOVER_LOOP,
	LEFTOVER_FILE,
};

struct leftover {
	enum leftover_kind kind;
	unsigned number; /* of the process or the loop device */
	char *what;	 /* for a person; of mounts and files, the path */
	bool cleared;
	char *problem; /* why it could not be cleared, or NULL */
};

struct leftovers vec_of(struct leftover);

const char *leftover_kind_name(enum leftover_kind kind);

/* In the order in which they are to be cleared: processes hold mounts, mounts hold devices. */
void leftovers_find(struct leftovers *out);
/* Clears what can be cleared, and notes the outcome at each. */
void leftovers_clear(struct leftovers *l);
void leftovers_release(struct leftovers *l);

#endif
