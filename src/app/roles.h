/* SPDX-License-Identifier: MIT */
/*
 * roles.h - names a change by kind of call and kind of file: "write wal/#.log". The path is the
 * last one of the file at that time, below the top, with each run of digits, and each long run of
 * hexadecimal digits, as one '#'.
 */
#ifndef APP_ROLES_H
#define APP_ROLES_H

#include "app/history.h"

struct roles {
	struct vec_of(char *) texts;
	uint32_t *of; /* by change: an index of `texts` */
};

void roles_init(struct roles *r, const struct history *h);
void roles_release(struct roles *r);
static inline const char *role_of(const struct roles *r, uint32_t change)
{
	return r->texts.v[r->of[change]];
}

#endif
