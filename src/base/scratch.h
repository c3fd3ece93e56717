/* SPDX-License-Identifier: MIT */
/*
 * scratch.h - where a worker mounts and keeps its files: a tmpfs in a mount namespace of its own.
 * The kernel removes the tmpfs with the last process inside, whatever ends that.
 */
#ifndef BASE_SCRATCH_H
#define BASE_SCRATCH_H

#include "base/err.h"

/* The variable that names the owner, in the environment of every program that we run. */
#define SCRATCH_OWNER "OUTAGE_OWNER"

/* Moves this process into a place of its own, once; later calls do nothing. */
int scratch_enter(struct err *err) must_check;
/* The path of that place; NULL before scratch_enter(). */
const char *scratch_path(void);
/* Makes a file of `size` zeros in it; returns its descriptor, and its path in `path`. */
int scratch_file(uint64_t size, char **path, struct err *err) must_check;

#endif
