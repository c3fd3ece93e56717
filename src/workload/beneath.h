/* SPDX-License-Identifier: MIT */
/* beneath.h - opens a path that never leaves a directory. */
#ifndef WORKLOAD_BENEATH_H
#define WORKLOAD_BENEATH_H

#include <sys/types.h>

/*
 * Opens as openat2(2) with RESOLVE_BENEATH, RESOLVE_NO_XDEV and O_CLOEXEC, which is called if the
 * kernel has it. Returns a descriptor, or -errno.
 */
int beneath_open(int root, const char *path, int flags, mode_t mode);
/* A function that is called right before the system call that opens the file itself. */
struct beneath_ready {
	void (*call)(void *ctx);
	void *ctx;
};
/* beneath_open() that calls `ready`, which may be NULL. */
int beneath_open_ready(int root, const char *path, int flags, mode_t mode,
		       const struct beneath_ready *ready);
/*
 * beneath_open_ready() for kernels before 5.6: follows links itself. No other process may change
 * the tree meanwhile.
 */
int beneath_open_by_hand(int root, const char *path, int flags, mode_t mode,
			 const struct beneath_ready *ready);

#endif
