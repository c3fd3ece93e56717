/* SPDX-License-Identifier: MIT */
/*
 * space.h - a mount namespace of our own: mounts in it are gone with the last process inside,
 * whatever ends it, and no process outside sees them.
 */
#ifndef BASE_SPACE_H
#define BASE_SPACE_H

#include "base/err.h"

/*
 * Where to mount in such a namespace. A mount needs a path, and hides what the directory below it
 * holds; this one is on every machine, and holds no file of a person and nothing that a program
 * under test looks for.
 */
#define SPACE_DIR "/proc/driver"

/* Moves this process into a new one. Later mounts on SPACE_DIR stay inside. */
int space_enter(struct err *err) must_check;
/* The same for any user: without rights in a user namespace, where the user stays who it is. */
int space_enter_as_user(struct err *err) must_check;

#endif
