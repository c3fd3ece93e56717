/* SPDX-License-Identifier: MIT */
/*
 * pm-reader.c - looks at what pm-writer left.
 *
 *	pm-reader check FILE	every record whose flag is set must be whole, and each operation
 *that had ended must be there: status 0, or 1 and a line for each that is not pm-reader dump FILE
 *prints the records that are there
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RECORDS = 4, WORDS = 8 };

struct record {
	uint64_t data[WORDS], valid, rest[WORDS - 1];
};

static int check_marks(const struct record *r)
{
	const char *path = getenv("OUTAGE_MARKS");
	FILE *f = path ? fopen(path, "r") : NULL;
	char word[16];
	int bad = 0;
	unsigned n;

	while (f && fscanf(f, "%15s %u", word, &n) == 2)
		if (strcmp(word, "end") == 0 && n < RECORDS && !r[n].valid) {
			printf("record %u is lost\n", n);
			bad = 1;
		}
	if (f)
		fclose(f);
	return bad;
}

static int check(const struct record *r)
{
	int bad = 0;

	for (uint64_t n = 0; n < RECORDS; n++)
		for (uint64_t i = 0; r[n].valid && i < WORDS; i++)
			if (r[n].data[i] != n * 100 + i + 1) {
				printf("record %d is not whole\n", (int)n);
				bad = 1;
				break;
			}
	return bad | check_marks(r);
}

static int dump(const struct record *r)
{
	for (int n = 0; n < RECORDS; n++) {
		if (!r[n].valid)
			continue;
		printf("record %d:", n);
		for (int i = 0; i < WORDS; i++)
			printf(" %llu", (unsigned long long)r[n].data[i]);
		printf("\n");
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct record r[RECORDS];
	FILE *f = argc > 2 ? fopen(argv[2], "r") : NULL;

	if (!f || fread(r, sizeof(r[0]), RECORDS, f) != RECORDS)
		return 2;
	fclose(f);
	return strcmp(argv[1], "dump") == 0 ? dump(r) : check(r);
}
