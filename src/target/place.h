/* SPDX-License-Identifier: MIT */
/*
 * place.h - where a worker mounts and keeps its files: a tmpfs in a mount namespace of its own. It
 * is gone with the last process inside, whatever ends it.
 */
#ifndef TARGET_PLACE_H
#define TARGET_PLACE_H

#include "base/err.h"

/* The environment of every program that is run from here says whose it is: OUTAGE_OWNER. */
#define PLACE_OWNER "OUTAGE_OWNER"

/* Moves this process into a place of its own, once; later calls do nothing. */
int place_enter(struct err *err) must_check;
/* The path of the place; NULL before place_enter(). */
const char *place_path(void);
/* Makes a file of `size` zeros in the place; its descriptor, and its path in `path`. */
int place_file(uint64_t size, char **path, struct err *err) must_check;

#endif
