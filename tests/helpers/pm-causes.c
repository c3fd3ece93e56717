/* SPDX-License-Identifier: MIT */
/*
 * pm-causes.c - programs on persistent memory whose mistakes are of known classes, for
 * t0823-pm-causes.sh.
 *
 *	pm-causes FILE run WHAT		stores to FILE
 *	pm-causes FILE check WHAT	status 1 and a line if what is there cannot be
 *	pm-causes FILE dump WHAT	prints what is there
 *
 * WHAT is pair, word, cross (16 bytes that must change together), log, unflushed, unfenced, both
 * (entries that are counted), record, guarded (a copy with its own flag, and one whose flag comes
 * after it), large, or own (a flush that no library makes).
 */
#include <fcntl.h>
#include <immintrin.h>
#include <outage/mark.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { SIZE = 2 << 20, ROUNDS = 3, ENTRIES = 4, TEXT = 15, RECORD = 512, LARGE = 1 << 20 };

struct log {
	uint64_t count, pad[7];
	struct entry {
		uint64_t seq, text[TEXT];
	} e[ENTRIES];
};

static unsigned char *map;

__attribute__((target("clwb"))) static void flush(const void *p, size_t n)
{
	for (uintptr_t a = (uintptr_t)p / 64 * 64; a < (uintptr_t)p + n; a += 64)
		_mm_clwb((void *)a);
}

/* ---- 16 bytes ---- */

static size_t pair_at(const char *what)
{
	return strcmp(what, "cross") == 0 ? 56 : 0;
}

static void pairs(const char *what)
{
	unsigned char *p = map + pair_at(what);

	for (uint64_t n = 1; n <= ROUNDS; n++) {
		outage_mark_begin(n);
		if (strcmp(what, "cross") == 0) {
			_mm_storeu_si128((__m128i *)(void *)p, _mm_set1_epi64x((long long)n));
		} else if (strcmp(what, "word") == 0) {
			*(volatile uint64_t *)(void *)p = n;
		} else {
			((volatile uint64_t *)(void *)p)[0] = n;
			((volatile uint64_t *)(void *)p)[1] = n;
		}
		flush(p, 16);
		_mm_sfence();
		outage_mark_end(n);
	}
}

static int look_pair(const char *what, int print)
{
	uint64_t x[2];

	memcpy(x, map + pair_at(what), sizeof(x));
	if (strcmp(what, "word") == 0)
		x[1] = x[0];
	if (print || x[0] != x[1])
		printf("x=%d y=%d\n", (int)x[0], (int)x[1]);
	return x[0] != x[1];
}

/* ---- entries ---- */

static void entries(const char *what)
{
	volatile struct log *l = (volatile struct log *)(void *)map;
	int flushed = strcmp(what, "unflushed") != 0 && strcmp(what, "both") != 0;
	int fenced = strcmp(what, "unfenced") != 0 && strcmp(what, "both") != 0;

	for (uint64_t n = 0; n < ENTRIES; n++) {
		outage_mark_begin(n);
		l->e[n].seq = n + 1;
		for (int i = 0; i < TEXT; i++)
			l->e[n].text[i] = 'a' + n;
		if (flushed)
			flush((const void *)&l->e[n], sizeof(l->e[n]));
		if (fenced)
			_mm_sfence();
		l->count = n + 1;
		flush((const void *)&l->count, 8);
		_mm_sfence();
		outage_mark_end(n);
	}
}

static int look_log(int print)
{
	const struct log *l = (const struct log *)(const void *)map;
	int bad = 0;

	for (uint64_t n = 0; n < l->count && n < ENTRIES; n++) {
		bad |= l->e[n].seq != n + 1;
		for (int i = 0; i < TEXT; i++)
			bad |= l->e[n].text[i] != 'a' + n;
		if (print) {
			printf("%d:", (int)l->e[n].seq);
			for (int i = 0; i < TEXT; i++)
				printf(" %d", (int)l->e[n].text[i]);
			printf("\n");
		}
	}
	if (bad && !print)
		printf("an entry is not whole\n");
	return bad;
}

/* ---- copies ---- */

static void copy(unsigned char *to, size_t len, int with)
{
	__m128i value = _mm_set1_epi8((char)with);

	for (size_t i = 0; i < len; i += 16)
		_mm_stream_si128((__m128i *)(void *)(to + i), value);
}

static void copies(const char *what)
{
	size_t len = strcmp(what, "large") == 0 ? LARGE : RECORD;

	outage_mark_begin(1);
	copy(map, len, 7);
	_mm_sfence();
	if (strcmp(what, "guarded") == 0) {
		*(volatile uint64_t *)(void *)(map + len) = 7;
		flush(map + len, 8);
		_mm_sfence();
	}
	outage_mark_end(1);
}

/* Of a record, the first byte says that all of it is there; or the one behind it. */
static int look_copy(const char *what)
{
	size_t len = strcmp(what, "large") == 0 ? LARGE : RECORD;

	if (!map[strcmp(what, "guarded") == 0 ? len : 0])
		return 0;
	for (size_t i = 0; i < len; i++)
		if (map[i] != 7) {
			printf("it is there, and byte %d is not\n", (int)i);
			return 1;
		}
	return 0;
}

/* Not by any library, and by what every processor has. */
static void own(void)
{
	for (uint64_t n = 0; n < 3; n++) {
		*(volatile uint64_t *)(void *)(map + 64 * n) = 1;
		_mm_clflush(map + 64 * n);
		_mm_sfence();
	}
}

static int is_pair(const char *what)
{
	return strcmp(what, "pair") == 0 || strcmp(what, "word") == 0 || strcmp(what, "cross") == 0;
}

static int is_copy(const char *what)
{
	return strcmp(what, "record") == 0 || strcmp(what, "guarded") == 0 ||
	       strcmp(what, "large") == 0;
}

static void run(const char *what)
{
	if (is_pair(what))
		pairs(what);
	else if (is_copy(what))
		copies(what);
	else if (strcmp(what, "own") == 0)
		own();
	else
		entries(what);
}

static int look(const char *what, int print)
{
	if (is_pair(what))
		return look_pair(what, print);
	return is_copy(what) ? look_copy(what) : look_log(print);
}

int main(int argc, char **argv)
{
	int fd = argc == 4 ? open(argv[1], O_RDWR) : -1;

	if (fd < 0) {
		fprintf(stderr, "usage: pm-causes FILE run|check|dump WHAT\n");
		return 2;
	}
	map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		perror("mmap");
		return 2;
	}
	if (strcmp(argv[2], "run") == 0) {
		run(argv[3]);
		return 0;
	}
	int bad = look(argv[3], strcmp(argv[2], "dump") == 0);
	return bad && strcmp(argv[2], "check") == 0;
}
