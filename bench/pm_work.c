/* SPDX-License-Identifier: MIT */
/*
 * pm_work.c - what bench_pm has traced: work on a pool of persistent memory, one kind of it in a
 * run.
 *
 *	pm_work KIND POOL [ROUNDS]
 *
 * The pool is a file of AREA bytes, and is filled with zeros.
 *
 * Prints the CPU time of one round, in nanoseconds, without what came before: the start, and a
 * round in which the emulator translates everything.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "pmfs/pmfs.h"

enum { AREA = 1 << 20, COPY = 4096, KEYS = 4096, FILES = 12, NODES = 1 << 15 };

static unsigned char *pool;
static struct pmfs fs;
static volatile uint64_t keep; /* so that nothing is left out */

static void flush(const void *p, size_t len)
{
	uintptr_t at = (uintptr_t)p & ~(uintptr_t)63;

	for (; at < (uintptr_t)p + len; at += 64)
		__asm__ volatile("clwb %0" : "+m"(*(volatile char *)at));
}

static void fence(void)
{
	__asm__ volatile("sfence" ::: "memory");
}

/* The worst that there can be: nothing but words stored, lines flushed, and fences. */
static void stores(void)
{
	for (size_t line = 0; line < AREA / 64; line++) {
		volatile uint64_t *p = (volatile uint64_t *)(pool + line * 64);

		for (int i = 0; i < 8; i++)
			p[i] = line + (size_t)i;
		flush(pool + line * 64, 64);
		if (line % 4 == 3)
			fence();
	}
}

/* Pages, as a file system copies what is written. */
static void copies(void)
{
	static unsigned char page[COPY];

	for (size_t i = 0; i < AREA / COPY; i++) {
		memset(page, (int)i, 64);
		memcpy(pool + i * COPY, page, COPY);
		flush(pool + i * COPY, COPY);
		fence();
	}
}

/* The same past the cache. */
static void past_cache(void)
{
	static uint64_t page[COPY / 8];

	for (size_t i = 0; i < AREA / COPY; i++) {
		unsigned char *to = pool + i * COPY;

		page[i % (COPY / 8)] = i;
		for (size_t j = 0; j < COPY / 8; j++)
			__asm__ volatile("movnti %1, %0"
					 : "=m"(*(uint64_t *)(void *)(to + j * 8))
					 : "r"(page[j]));
		fence();
	}
}

/* No persistent memory at all: a tree of keys, sums, names. */
static struct tree_node {
	struct tree_node *down[2];
	uint64_t key;
	char name[24];
} nodes[NODES];

static void ordinary(void)
{
	uint64_t x = 88172645463325252u, sum = 0;
	struct tree_node *root = NULL;

	memset(nodes, 0, sizeof(nodes));
	for (size_t n = 0; n < NODES; n++) {
		struct tree_node **at = &root;

		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		for (; *at; at = &(*at)->down[x > (*at)->key])
			sum += strlen((*at)->name);
		nodes[n].key = x;
		for (size_t i = 0; i < 12; i++)
			nodes[n].name[i] = (char)('a' + (x >> 4 * i) % 16);
		*at = &nodes[n];
	}
	keep = sum;
}

/* Operations of a file system, durable one by one. */
static void must(int rc)
{
	if (!rc)
		return;
	fprintf(stderr, "pm_work: an operation failed: %s\n", strerror(-rc));
	exit(1);
}

static void one_file(int i)
{
	char name[64], other[64];

	snprintf(name, sizeof(name), "a-file-with-a-name-%d", i);
	snprintf(other, sizeof(other), "another-%d", i);
	must(pmfs_creat(&fs, name));
	must(pmfs_write(&fs, name, 0, 700));
	must(pmfs_append(&fs, name, 100));
	must(pmfs_chmod(&fs, name, 0600));
	must(pmfs_rename(&fs, name, other));
	must(pmfs_truncate(&fs, other, 10));
}

static void files(void)
{
	struct err err = ERR_INIT;

	for (int round = 0; round < 40; round++) {
		pmfs_init(&fs, pool, 0);
		pmfs_mkfs(&fs);
		must(pmfs_recover(&fs, &err));
		for (int i = 0; i < FILES; i++)
			one_file(i);
		pmfs_release(&fs);
	}
}

static const struct {
	const char *name;
	void (*round)(void);
} kinds[] = { { "stores", stores },
	      { "copies", copies },
	      { "past-cache", past_cache },
	      { "ordinary", ordinary },
	      { "files", files } };

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int map(const char *path)
{
	int fd = open(path, O_RDWR);

	pool = fd < 0 ? MAP_FAILED : mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (pool != MAP_FAILED) {
		memset(pool, 0, AREA);
		return 0;
	}
	perror(path);
	return 1;
}

int main(int argc, char **argv)
{
	int rounds = argc > 3 ? atoi(argv[3]) : 4;

	if (argc < 3 || rounds < 1 || map(argv[2]))
		return 2;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (streq(kinds[i].name, argv[1])) {
			kinds[i].round();
			uint64_t start = cpu_ns();
			for (int n = 0; n < rounds; n++)
				kinds[i].round();
			printf("%llu\n", (unsigned long long)(cpu_ns() - start) / (unsigned)rounds);
			return 0;
		}
	fprintf(stderr, "pm_work: no kind of work is called %s\n", argv[1]);
	return 2;
}
