/* SPDX-License-Identifier: MIT */
/*
 * pm-writer.c - programs on persistent memory with known mistakes, for t0800-pm.sh.
 *
 *	pm-writer FILE WHAT
 *
 * "right" and its sick twins keep records in FILE: 64 bytes of data, and in the next line a flag
 *that says that the data is there. Each record is an operation, marked. The others are about how a
 * program uses its memory, and what becomes of the program.
 */
#include <fcntl.h>
#include <immintrin.h>
#include <outage/mark.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 65536, RECORDS = 4, WORDS = 8, THREADS = 4, ROUNDS = 64, COUNTER = 8191 };

struct record {
	uint64_t data[WORDS], valid, rest[WORDS - 1];
};

static int fd;
static uint64_t *map;

static void persist(const void *p)
{
	_mm_clflush(p);
	_mm_sfence();
}

static void fill(struct record *r, uint64_t n)
{
	for (uint64_t i = 0; i < WORDS; i++)
		r->data[i] = n * 100 + i + 1;
}

static void write_record(const char *what, struct record *r, uint64_t n)
{
	fill(r, n);
	if (strcmp(what, "unflushed") != 0 && strcmp(what, "late") != 0)
		persist(r);
	r->valid = 1;
	if (strcmp(what, "lost") != 0)
		persist(&r->valid);
	if (strcmp(what, "late") == 0)
		persist(r);
}

/* The flag alone, before there is anything: no flush mends that. */
static void write_wrong(struct record *r, uint64_t n)
{
	r->valid = 1;
	persist(&r->valid);
	fill(r, n);
	persist(r);
}

static int records(const char *what)
{
	struct record *r = (struct record *)(void *)map;

	for (uint64_t n = 0; n < RECORDS; n++) {
		outage_mark_begin(n);
		if (strcmp(what, "logic") == 0)
			write_wrong(&r[n], n);
		else
			write_record(what, &r[n], n);
		outage_mark_end(n);
	}
	outage_mark_text("done", 4);
	return 0;
}

static void *work(void *arg)
{
	uint64_t me = (uint64_t)(uintptr_t)arg;

	for (uint64_t i = 0; i < ROUNDS; i++) {
		map[512 * me + i] = i * me;
		_mm_clflush(&map[512 * me + i]);
		__atomic_fetch_add(&map[COUNTER], 1, __ATOMIC_SEQ_CST);
		map[COUNTER - 1] = me; /* they race for it */
		_mm_clflush(&map[COUNTER]);
		_mm_sfence();
	}
	return NULL;
}

static int threads(void)
{
	pthread_t t[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, work, (void *)(i + 1)))
			return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	return map[COUNTER] != THREADS * ROUNDS;
}

/* More than a short trace can hold. */
static int many(void)
{
	for (uint64_t i = 0; i < 20000; i++)
		map[i * 9 % 512] = i;
	return 0;
}

/* By one instruction each, which an emulator carries out byte by byte. */
static int strings(void)
{
	static const char text[48] = "a name that is longer than a few words, and ends";
	const char *from = text;
	void *to = (char *)map + 2;
	size_t n = 100;

	__asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(0x55) : "memory");
	to = (char *)map + 256;
	n = sizeof(text);
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
	_mm_sfence();
	return 0;
}

static int forks(void)
{
	map[0] = 1;
	for (uintptr_t i = 0; i < THREADS; i++)
		if (!fork()) {
			work((void *)(i + 1));
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
	map[1] = 2;
	return map[COUNTER] != THREADS * ROUNDS;
}

/* Mapped twice, moved, cut, and mapped over. */
static int remap(void)
{
	uint64_t *second = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	uint64_t *part = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 8192);
	void *room = mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	second[2] = 7;
	munmap(map, SIZE);
	second[3] = 8;
	part[1] = 9;
	second = mremap(second, SIZE, SIZE / 2, MREMAP_MAYMOVE | MREMAP_FIXED, room);
	second[5] = 3;
	uint64_t *other = mmap(second, 4096, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	other[0] = 99; /* no longer of the file */
	second[600] = 4;
	return 0;
}

static int start(const char *program)
{
	map[0] = 1;
	if (!fork()) {
		execl("/nonexistent", "nothing", (char *)NULL);
		execl("/bin/sh", "sh", "-c", program, (char *)NULL);
		_exit(9);
	}
	wait(NULL);
	map[1] = 1;
	return 0;
}

static int killed_child(void)
{
	map[0] = 1;
	if (!fork())
		kill(getpid(), SIGKILL);
	wait(NULL);
	return 0;
}

static int synced(void)
{
	map[0] = 1;
	map[1000] = 2;
	if (msync(map, 4096, MS_SYNC))
		return 1;
	map[2000] = 3;
	return fsync(fd) ? 1 : 0;
}

static int vectors(void)
{
	__m128i x = _mm_set1_epi64x(0x77);

	_mm_stream_si128((__m128i *)(void *)(map + 16), x);
	_mm_storeu_si128((__m128i *)(void *)(map + 33), x);
	_mm_sfence();
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[2] : "";

	if (argc < 3)
		return 2;
	if (strcmp(what, "make") == 0) {
		fd = open(argv[1], O_RDWR | O_CREAT | O_EXCL, 0600);
		if (fd < 0 || ftruncate(fd, SIZE))
			return 3;
	} else {
		fd = open(argv[1], O_RDWR);
	}
	if (strcmp(what, "unmapped") == 0)
		return 0;
	map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
		   strcmp(what, "private") == 0 ? MAP_PRIVATE : MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return 4;
	if (strcmp(what, "threads") == 0)
		return threads();
	if (strcmp(what, "many") == 0)
		return many();
	if (strcmp(what, "fork") == 0)
		return forks();
	if (strcmp(what, "remap") == 0)
		return remap();
	if (strcmp(what, "start") == 0)
		return start(argc > 3 ? argv[3] : "true");
	if (strcmp(what, "killed-child") == 0)
		return killed_child();
	if (strcmp(what, "synced") == 0)
		return synced();
	if (strcmp(what, "strings") == 0)
		return strings();
	if (strcmp(what, "vectors") == 0)
		return vectors();
	if (strcmp(what, "nothing") == 0)
		return 0;
	if (strcmp(what, "write") == 0) {
		map[0] = 1;
		return pwrite(fd, "hello", 5, 100) != 5;
	}
	if (strcmp(what, "die") == 0)
		abort();
	if (strcmp(what, "fail") == 0) {
		fprintf(stderr, "no luck today\n");
		return 5;
	}
	while (strcmp(what, "hang") == 0)
		pause();
	return records(what);
}
