/* SPDX-License-Identifier: MIT */
/*
 * space.h - a mount namespace of our own: what is mounted in it is gone with the last process
 * inside, whatever ends it, and nobody outside sees it.
 */
#ifndef BASE_SPACE_H
#define BASE_SPACE_H

#include "base/err.h"

/*
 * Where to mount in such a namespace. What is mounted needs a path, and hides what the directory
 * below it holds; this one is on every machine, and holds no file of a person and nothing that a
 * program under test looks for.
 */
#define SPACE_DIR "/proc/driver"

/* Moves this process into a new one. What is then mounted on SPACE_DIR stays inside. */
int space_enter(struct err *err) must_check;

#endif
