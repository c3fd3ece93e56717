/* SPDX-License-Identifier: MIT */
/*
 * pm-undo.c - two numbers that are always equal, kept so by an undo log, for t0822-pm-more.sh.
 *
 *	pm-undo FILE run		sets them three times
 *	pm-undo FILE noise		the same, and stores to lines that nobody ever reads
 *	pm-undo FILE recover|sick	what a crash left is mended; the sick one forgets the log
 *					before what it mended is durable
 *	pm-undo FILE check		read-only: they must be equal
 *	pm-undo FILE read		the same, by read(2)
 *	pm-undo FILE dump		prints them
 *
 * With PM_UNDO_MSYNC in the environment, msync(2) makes durable, else clflush.
 */
#include <fcntl.h>
#include <immintrin.h>
#include <outage/mark.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SIZE = 65536, LINE = 8, TIMES = 3, NOISE = 8 };
enum { VALID = 0, OLD_A = LINE, OLD_B = LINE + 1, A = 2 * LINE, B = 3 * LINE, REST = 64 * LINE };

static volatile uint64_t *m;
static int fd;

static void persist(int at)
{
	if (getenv("PM_UNDO_MSYNC")) {
		(void)!msync((void *)(uintptr_t)m, SIZE, MS_SYNC);
		return;
	}
	_mm_clflush((const void *)(uintptr_t)&m[at]);
	_mm_sfence();
}

static void set(int at, uint64_t value)
{
	m[at] = value;
	persist(at);
}

static void make_noise(uint64_t n)
{
	for (int i = 0; i < NOISE; i++)
		m[REST + (int)(n * NOISE + (uint64_t)i) * LINE] = n;
}

static int run(int noise)
{
	for (uint64_t n = 1; n <= TIMES; n++) {
		outage_mark_begin(n);
		if (noise)
			make_noise(n);
		m[OLD_A] = m[A];
		set(OLD_B, m[B]);
		set(VALID, 1);
		set(A, n);
		set(B, n);
		set(VALID, 0);
		outage_mark_end(n);
	}
	return 0;
}

static int recover(int sick)
{
	if (!m[VALID])
		return 0;
	m[A] = m[OLD_A];
	m[B] = m[OLD_B];
	if (sick)
		m[VALID] = 0;
	persist(A);
	persist(B);
	set(VALID, 0);
	return 0;
}

static int check(uint64_t a, uint64_t b, uint64_t valid)
{
	if (!valid && a == b)
		return 0;
	printf("%llu is not %llu\n", (unsigned long long)a, (unsigned long long)b);
	return 1;
}

static int check_read(void)
{
	uint64_t x[B + 1];

	if (pread(fd, x, sizeof(x), 0) != (ssize_t)sizeof(x))
		return 2;
	return check(x[A], x[B], x[VALID]);
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[2] : "";
	int looks = !strcmp(what, "check") || !strcmp(what, "read");

	fd = argc > 2 ? open(argv[1], looks ? O_RDONLY : O_RDWR) : -1;
	if (fd < 0)
		return 2;
	m = mmap(NULL, SIZE, looks ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (m == MAP_FAILED)
		return 2;
	if (!strcmp(what, "run") || !strcmp(what, "noise"))
		return run(!strcmp(what, "noise"));
	if (!strcmp(what, "recover") || !strcmp(what, "sick"))
		return recover(!strcmp(what, "sick"));
	if (!strcmp(what, "check"))
		return check(m[A], m[B], m[VALID]);
	if (!strcmp(what, "read"))
		return check_read();
	recover(0);
	printf("%llu %llu\n", (unsigned long long)m[A], (unsigned long long)m[B]);
	return 0;
}
