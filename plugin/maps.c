/* SPDX-License-Identifier: MIT */
/* maps.c - writes the mappings of this process that are of a file, one a line. */
#include "maps.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The program's code is only to be read in an emulator: what is mapped of a file counts. */
static void write_line(FILE *to, const char *line, uint64_t base)
{
	uint64_t start, end, offset;
	const char *path = strchr(line, '/');

	if (path &&
	    sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &start, &end, &offset) == 3)
		fprintf(to, "%" PRIx64 "-%" PRIx64 " %" PRIx64 " %s", start - base, end - base,
			offset, path);
}

void maps_write(const char *path, uint64_t base)
{
	FILE *from = fopen("/proc/self/maps", "re");
	FILE *to = from ? fopen(path, "we") : NULL;
	char line[8192];

	while (to && fgets(line, sizeof(line), from))
		write_line(to, line, base);
	if (to)
		fclose(to);
	if (from)
		fclose(from);
}
