/* SPDX-License-Identifier: MIT */
/* leaks.h - what a loop over fault points looks for after each round: what was left behind. */
#ifndef TESTS_LEAKS_H
#define TESTS_LEAKS_H

#include <dirent.h>
#include <stdio.h>

/* How many entries a directory has whose names begin so; "" counts all of them. */
static inline size_t entries_of(const char *where, const char *begin)
{
	DIR *d = opendir(where);
	size_t n = 0;

	for (struct dirent *e; d && (e = readdir(d));)
		n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
		     strncmp(e->d_name, begin, strlen(begin)) == 0;
	if (d)
		closedir(d);
	return n;
}

static inline size_t open_files(void)
{
	return entries_of("/proc/self/fd", "");
}

/* What is not complete, and should be gone. */
static inline size_t hidden_in(const char *where)
{
	return entries_of(where, ".");
}

#endif
