/* SPDX-License-Identifier: MIT */
/*
 * pm-threads.c - threads and processes that take turns on persistent memory:
 *
 *	pm-threads POOL turns|forked	each in its turn stores the next number to the first word
 *	pm-threads POOL other|own	a thread stores to the first line and flushes it; another
 *one fences, and makes the second line durable. With `own`, the first fences as well.
 *
 * Turns are given by ordinary stores to ordinary memory: nothing of them acts as a fence.
 */
#include <fcntl.h>
#include <immintrin.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 65536, WHO = 3, TURNS = 300 };

static volatile uint64_t *map;
static uint64_t *turn; /* shared */
static bool own;

/* Not by the C library: finding the function, the first time, takes locks, and these are fences. */
static void let_others_run(void)
{
	long rc = SYS_sched_yield;

	__asm__ volatile("syscall" : "+a"(rc) : : "rcx", "r11", "memory");
}

static void wait_for(uint64_t n)
{
	while (__atomic_load_n(turn, __ATOMIC_ACQUIRE) != n)
		let_others_run();
}

static void give(uint64_t n)
{
	__atomic_store_n(turn, n, __ATOMIC_RELEASE);
}

static void *take_turns(void *arg)
{
	for (uint64_t n = (uintptr_t)arg; n < WHO * TURNS; n += WHO) {
		wait_for(n);
		map[0] = n + 1;
		give(n + 1);
	}
	return NULL;
}

static int in_threads(void)
{
	pthread_t t[WHO];

	for (uintptr_t i = 0; i < WHO; i++)
		if (pthread_create(&t[i], NULL, take_turns, (void *)i))
			return 1;
	for (int i = 0; i < WHO; i++)
		pthread_join(t[i], NULL);
	return map[0] != WHO * TURNS;
}

static int in_processes(void)
{
	for (uintptr_t i = 0; i < WHO; i++)
		if (!fork()) {
			take_turns((void *)i);
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
	return map[0] != WHO * TURNS;
}

static void flush(volatile uint64_t *p)
{
	__asm__ volatile("clwb %0" : "+m"(*p));
}

static void *first(void *arg)
{
	wait_for(1);
	map[0] = 1;
	flush(&map[0]);
	if (own)
		_mm_sfence();
	give(2);
	wait_for(3);
	return arg;
}

static int drain(void)
{
	pthread_t t;

	if (pthread_create(&t, NULL, first, NULL))
		return 1;
	give(1);
	wait_for(2);
	_mm_sfence();
	map[8] = 1;
	flush(&map[8]);
	_mm_sfence();
	give(3);
	pthread_join(t, NULL);
	return 0;
}

int main(int argc, char **argv)
{
	int fd = argc == 3 ? open(argv[1], O_RDWR) : -1;

	map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	turn = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (fd < 0 || map == MAP_FAILED || turn == MAP_FAILED)
		return 2;
	own = strcmp(argv[2], "own") == 0;
	if (own || strcmp(argv[2], "other") == 0)
		return drain();
	return strcmp(argv[2], "forked") == 0 ? in_processes() : in_threads();
}
