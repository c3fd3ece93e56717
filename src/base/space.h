/* SPDX-License-Identifier: MIT */
/*
 * space.h - a mount namespace of our own: the kernel removes its mounts with the last process
 * inside, whatever ends that, and no process outside sees them.
 */
#ifndef BASE_SPACE_H
#define BASE_SPACE_H

#include "base/err.h"

/*
 * Where to mount in such a namespace. A mount needs a path, and hides the files below it; this
 * directory exists on every machine, and holds neither a user's files nor anything that a program
 * under test looks for.
 */
#define SPACE_DIR "/proc/driver"

/* Moves this process into a new namespace. Later mounts on SPACE_DIR stay inside. */
int space_enter(struct err *err) must_check;
/* space_enter() for any user: without privileges by a user namespace that keeps the id. */
int space_enter_as_user(struct err *err) must_check;

#endif
