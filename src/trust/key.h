/* SPDX-License-Identifier: MIT */
/*
 * key.h - the secret of this user on this machine, which marks the user's own runs and findings.
 *
 * The key is 32 random bytes in $XDG_STATE_HOME/outage/key or ~/.local/state/outage/key. The file
 * and its directory must belong to this user alone: a key that others can read or replace is not
 * used.
 *
 * K1: the file exists whole or not at all, and is never replaced: if several processes make it at
 *     once, one wins, and all use its key.
 */
#ifndef TRUST_KEY_H
#define TRUST_KEY_H

#include "base/err.h"

enum { KEY_SIZE = 32 };

/* Reads the key. Returns -ENOENT if there is none. */
int key_load(unsigned char key[KEY_SIZE], struct err *err) must_check;
/* Reads the key; makes one if there is none. */
int key_make(unsigned char key[KEY_SIZE], struct err *err) must_check;

#endif
