/* SPDX-License-Identifier: MIT */
/*
 * pm-stacks.c - stores to persistent memory from functions that are called in many ways:
 *
 *	pm-stacks POOL
 *
 * Each word that is stored is the number of a way; what called it is in the comment there.
 */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

enum { SIZE = 65536, STACK = 256 << 10 };

static volatile uint64_t *map;
static jmp_buf back;
static ucontext_t main_context, other_context;

static NOINLINE void put(uint64_t way)
{
	map[way] = way;
	__asm__ volatile("" ::: "memory"); /* no tail of this is left out */
}

static NOINLINE void through(uint64_t way)
{
	put(way);
	__asm__ volatile("");
}

static NOINLINE void deep(uint64_t way, int n)
{
	if (n)
		deep(way, n - 1);
	else
		put(way);
	__asm__ volatile("");
}

static NOINLINE void jumps(int n)
{
	if (n > 0)
		jumps(n - 1);
	else if (map) /* always */
		longjmp(back, 1);
	__asm__ volatile("");
}

static NOINLINE void caught(void)
{
	if (!setjmp(back))
		jumps(5);
	put(4); /* caught main */
	__asm__ volatile("");
}

static void handler(int sig)
{
	(void)sig;
	put(5); /* handler, and what was interrupted or nothing */
	__asm__ volatile("");
}

static void other(void)
{
	through(6); /* through other */
	swapcontext(&other_context, &main_context);
	through(8); /* through other */
}

static NOINLINE void switches(void)
{
	static char stack[STACK];

	getcontext(&other_context);
	other_context.uc_stack.ss_sp = stack;
	other_context.uc_stack.ss_size = sizeof(stack);
	other_context.uc_link = &main_context;
	makecontext(&other_context, other, 0);
	swapcontext(&main_context, &other_context);
	through(7); /* through switches main */
	swapcontext(&main_context, &other_context);
	through(9); /* through switches main */
	__asm__ volatile("");
}

static void *thread(void *arg)
{
	through((uintptr_t)arg); /* through thread */
	return NULL;
}

int main(int argc, char **argv)
{
	void (*volatile pointer)(uint64_t) = through;
	int fd = argc > 1 ? open(argv[1], O_RDWR) : -1;
	pthread_t t;

	map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd < 0 || map == MAP_FAILED)
		return 2;
	through(1);  /* through main */
	pointer(2);  /* through main */
	deep(3, 20); /* deep 21 times, main */
	caught();
	signal(SIGUSR1, handler);
	raise(SIGUSR1);
	switches();
	for (uintptr_t i = 10; i < 14; i++) { /* the last but one has the number of an ended one */
		if (pthread_create(&t, NULL, thread, (void *)i) || pthread_join(t, NULL))
			return 3;
	}
	put(14); /* main */
	if (!fork()) {
		through(15); /* through main */
		_exit(0);
	}
	return 0;
}
