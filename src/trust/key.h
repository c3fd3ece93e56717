/* SPDX-License-Identifier: MIT */
/*
 * key.h - the secret of this user on this machine, with which he marks what he makes.
 *
 * The key is 32 random bytes in $XDG_STATE_HOME/outage/key or ~/.local/state/outage/key. The file
 * and its directory must belong to this user alone: a key that others can read, or put there, marks
 * nothing.
 *
 * K1: the file is there whole or not at all, and is never replaced: of several processes that make
 *     it at once, one wins, and all use what it made.
 */
#ifndef TRUST_KEY_H
#define TRUST_KEY_H

#include "base/err.h"

enum { KEY_SIZE = 32 };

/* Reads it. -ENOENT: there is none. */
int key_load(unsigned char key[KEY_SIZE], struct err *err) must_check;
/* The same; makes it if there is none. */
int key_make(unsigned char key[KEY_SIZE], struct err *err) must_check;

#endif
