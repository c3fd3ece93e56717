/* SPDX-License-Identifier: MIT */
/* bugs.c - see bugs.h. */
#include "bugs.h"

#define X(id, name, wrong, consequence, stems, kind, layer, workload, shows)                       \
	[BUG_##id] = { name, wrong, consequence, stems, kind, layer, workload, shows },
const struct bug_info bug_table[N_BUGS] = { PMFS_BUGS(X) };
#undef X

static int find(const char *name, size_t len)
{
	for (int i = 0; i < N_BUGS; i++)
		if (strlen(bug_table[i].name) == len && !memcmp(bug_table[i].name, name, len))
			return i;
	return -1;
}

int bugs_parse(const char *names, uint64_t *bits)
{
	for (const char *at = names; *at;) {
		size_t len = strcspn(at, ",");
		int bug = find(at, len);

		if (bug < 0)
			return -1;
		*bits |= (uint64_t)1 << bug;
		at += len + (at[len] == ',');
	}
	return 0;
}
