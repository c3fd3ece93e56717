/* SPDX-License-Identifier: MIT */
/*
 * guardian.h - the guardian of a mount: a process that waits for the server's end, and unmounts if
 * the server was killed.
 *
 * The option auto_unmount of libfuse is no guardian: its fusermount3 leaves the mount where the
 * kernel aborts the one question that fusermount3 asks it, which depends on chance.
 */
#ifndef FUSE_GUARDIAN_H
#define FUSE_GUARDIAN_H

#include <sys/types.h>

#include "base/err.h"

struct guardian {
	int pipe; /* the server's end; -1: there is no guardian */
	pid_t pid;
};

#define GUARDIAN_NONE ((struct guardian){ .pipe = -1 })

/* The work of a guardian after the server was killed. */
struct guardian_task {
	const char *mnt; /* without links, as it may be asked for from elsewhere */
	int fd;		 /* a descriptor that stays open for `clear`, or -1 */
	/* Clears up, and returns 0 or -errno; NULL stands for guardian_unmount() alone. `fd` is
	 * the descriptor in the guardian. */
	int (*clear)(const struct guardian_task *t, int fd);
	const void *ctx;
};

/* Starts one, before the mount is made. */
int guardian_start(struct guardian *g, const struct guardian_task *t, struct err *err) must_check;
/* Ends the guardian of a server that has unmounted by itself. */
void guardian_dismiss(struct guardian *g);
/* Unmounts `mnt` if its server is gone. */
void guardian_unmount(const char *mnt);

#endif
