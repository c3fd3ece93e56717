/* SPDX-License-Identifier: MIT */
/*
 * pm-edges.c - what is easily taken for something else in persistent memory, for t0823-pm-edges.sh.
 *
 *	pm-edges FILE WHAT [OTHER]	does it
 *	pm-edges check FILE WHAT	0 if what is there is right
 *
 * "flag", "flushed" and "fenced" write a record of 320 bytes and, right behind it, the word that
 * says that it is there. "read", "readv", "recvmsg" and "getrandom" let the kernel store the data.
 * "other" maps OTHER as well. "stack" has its stack in FILE.
 */
#include <fcntl.h>
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { SIZE = 65536, WORDS = 40, DATA = 8, OLD = 7, NEW = 8 };

static volatile uint64_t *map;

static void flush(volatile void *p, size_t len)
{
	for (size_t i = 0; i < len; i += 64)
		__asm__ volatile("clwb (%0)" : : "r"((char *)(uintptr_t)p + i) : "memory");
}

static int record(const char *what)
{
	for (uint64_t i = 0; i < WORDS; i++)
		map[i] = i + 1;
	if (strcmp(what, "flag") != 0)
		flush(map, WORDS * 8);
	if (strcmp(what, "fenced") == 0)
		_mm_sfence();
	map[WORDS] = 1;
	flush(map, (WORDS + 1) * 8);
	_mm_sfence();
	return 0;
}

static int check_record(void)
{
	for (uint64_t i = 0; i < WORDS && map[WORDS] == 1; i++)
		if (map[i] != i + 1)
			return 1;
	return 0;
}

/* Data that the kernel stores, a flag that it is there, and then other data in its place. */
static int by_kernel(const char *what)
{
	struct iovec v = { (void *)(uintptr_t)&map[DATA], 8 };
	struct msghdr msg = { .msg_iov = &v, .msg_iovlen = 1 };
	uint64_t old = OLD;
	ssize_t n = 0;
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) || write(fds[1], &old, 8) != 8)
		return 3;
	if (strcmp(what, "read") == 0)
		n = read(fds[0], (void *)(uintptr_t)&map[DATA], 8);
	else if (strcmp(what, "readv") == 0)
		n = readv(fds[0], &v, 1);
	else if (strcmp(what, "recvmsg") == 0)
		n = recvmsg(fds[0], &msg, 0);
	else
		n = getrandom((void *)(uintptr_t)&map[DATA], 8, 0);
	flush(&map[DATA], 8);
	_mm_sfence();
	map[0] = 1;
	flush(map, 8);
	_mm_sfence();
	map[DATA] = NEW;
	flush(&map[DATA], 8);
	_mm_sfence();
	return n != 8;
}

static int check_data(void)
{
	return map[0] == 1 && !map[DATA];
}

/* A second file; it is no part of the first, whatever its number. */
static int other(const char *path)
{
	int fd = open(path, O_RDWR);
	volatile uint64_t *q = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (q == MAP_FAILED)
		return 3;
	map[0] = 1;
	flush(map, 8);
	_mm_sfence();
	q[8] = OLD;
	map[16] = 2;
	flush(&map[16], 8);
	_mm_sfence();
	return 0;
}

static int stack(void)
{
	__asm__ volatile("mov %%rsp, %%rbx\n\tlea 4096(%0), %%rsp\n\tpushq $77\n\tmov %%rbx, %%rsp"
			 :
			 : "r"(map)
			 : "rbx", "memory");
	return 0;
}

int main(int argc, char **argv)
{
	int checks = argc > 3 && strcmp(argv[1], "check") == 0;

	if (argc < 3)
		return 2;
	const char *what = argv[checks ? 3 : 2];
	int fd = open(argv[checks ? 2 : 1], checks ? O_RDONLY : O_RDWR);

	map = mmap(NULL, SIZE, checks ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return 4;
	int is_record = strcmp(what, "flag") == 0 || strcmp(what, "flushed") == 0 ||
			strcmp(what, "fenced") == 0;
	if (checks)
		return is_record ? check_record() : check_data();
	if (strcmp(what, "other") == 0)
		return argc > 3 ? other(argv[3]) : 2;
	if (strcmp(what, "stack") == 0)
		return stack();
	return is_record ? record(what) : by_kernel(what);
}
