/* SPDX-License-Identifier: MIT */
/* bugs.c - the table of defects. See bugs.h. */
#include "bugs.h"

const struct bug_def bug_table[BUG_COUNT] = {
#define X(id, ...) [BUG_##id] = { __VA_ARGS__ },
	SEEDFS_BUGS(X)
#undef X
};

uint64_t bugs_on;

int bug_find(const char *name, size_t len)
{
	for (int i = 0; i < BUG_COUNT; i++)
		if (strlen(bug_table[i].name) == len && memcmp(bug_table[i].name, name, len) == 0)
			return i;
	return -1;
}
