/* SPDX-License-Identifier: MIT */
/*
 * pm-libpmem.c - the records of pm-writer, by libpmem: pm-libpmem FILE right|unpersisted
 * The sick one copies the data with a flag that says that it persists it itself, and does not.
 */
#include <libpmem.h>
#include <outage/mark.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { RECORDS = 4, WORDS = 8 };

struct record {
	uint64_t data[WORDS], valid, rest[WORDS - 1];
};

int main(int argc, char **argv)
{
	uint64_t data[WORDS];
	size_t size;
	int is_pmem;
	struct record *r = argc > 2 ? pmem_map_file(argv[1], 0, 0, 0, &size, &is_pmem) : NULL;

	if (!r || !is_pmem)
		return 1;
	for (uint64_t n = 0; n < RECORDS; n++) {
		outage_mark_begin(n);
		for (uint64_t i = 0; i < WORDS; i++)
			data[i] = n * 100 + i + 1;
		if (strcmp(argv[2], "right") == 0)
			pmem_memcpy_persist(r[n].data, data, sizeof(data));
		else
			pmem_memcpy(r[n].data, data, sizeof(data), PMEM_F_MEM_NOFLUSH);
		r[n].valid = 1;
		pmem_persist(&r[n].valid, sizeof(r[n].valid));
		outage_mark_end(n);
	}
	return pmem_unmap(r, size);
}
