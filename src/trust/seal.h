/* SPDX-License-Identifier: MIT */
/*
 * seal.h - tells whether bytes in a file were written by this user, by a keyed hash (key.h). A seal
 * is for small records, each of which would be too small for a mark (trust.h).
 *
 * L1: the seal of one kind fits no other kind, nor a mark: a kind ends with a line end, and does
 *     not begin with the letter of a mark's text.
 */
#ifndef TRUST_SEAL_H
#define TRUST_SEAL_H

#include <stddef.h>

#include "trust/key.h"

enum { SEAL_SIZE = 16 };

struct seal {
	unsigned char bytes[SEAL_SIZE];
};

struct seal trust_seal(const unsigned char key[KEY_SIZE], const char *kind, const void *head,
		       size_t head_len, const void *data, size_t len);

#endif
