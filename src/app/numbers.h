/* SPDX-License-Identifier: MIT */
/* numbers.h - maps an inode number to its present object: a table with open addressing. */
#ifndef APP_NUMBERS_H
#define APP_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

struct numbers {
	struct number_slot {
		uint64_t key, value; /* key 0: empty */
	} * v;
	size_t n, size; /* a power of two, or 0 */
};

/* Returns 0 if there is none. */
uint64_t numbers_get(const struct numbers *t, uint64_t key);
void numbers_set(struct numbers *t, uint64_t key, uint64_t value);
void numbers_release(struct numbers *t);

#endif
