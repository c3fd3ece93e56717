/* SPDX-License-Identifier: MIT */
/*
 * bench_pm.c - what tracing persistent memory costs, in user emulation: the CPU time of the same
 * work (pm_work.c) emulated and not traced, traced, with loads, and with stacks. Prints "key value"
 * lines; a ratio is to the work that is emulated and not traced.
 *
 *	bench_pm PLUGIN PM_WORK [ROUNDS]
 *
 * The four take turns, so that what else the machine does touches all alike; medians.
 *
 *	stores		nothing but words stored, lines flushed and fences: the worst case
 *	copies		pages, by the C library, flushed line by line
 *	past-cache	pages, by non-temporal stores of words
 *	files		operations of a file system on persistent memory, durable one by one
 *	ordinary	no persistent memory: what a program pays for work that is not traced
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/util.h"

enum { ROUNDS_MAX = 99, POOL = 1 << 20, TIMEOUT_MS = 120000 };
#define STREAM ((off_t)1 << 30)

static const char *const kinds[] = { "stores", "copies", "past-cache", "files", "ordinary" };
static const char *const ways[] = { "plain", "traced", "loads", "stacks" };
enum { N_KINDS = ARRAY_SIZE(kinds), N_WAYS = ARRAY_SIZE(ways) };

static struct err err;
static double took[N_KINDS][N_WAYS][ROUNDS_MAX];

static void die(const char *what)
{
	fprintf(stderr, "bench_pm: %s: %s\n", what, err.code ? err.msg : strerror(errno));
	exit(1);
}

static int memory_file(off_t size)
{
	int fd = memfd_create("bench", 0);

	if (fd < 0 || ftruncate(fd, size))
		die("memory");
	return fd;
}

static double run(const char *plugin, const char *work, const char *kind, const char *way)
{
	char option[512], pool[64];
	int stream = memory_file(STREAM), region = memory_file(POOL);
	const char *argv[9] = { "qemu-x86_64", "-cpu", "max" };
	int n = 3;

	snprintf(pool, sizeof(pool), "/proc/%d/fd/%d", getpid(), region);
	snprintf(option, sizeof(option), "%s,stream=/proc/%d/fd/%d,region=user:%s%s", plugin,
		 getpid(), stream, pool,
		 streq(way, "loads")	? ",loads=on"
		 : streq(way, "stacks") ? ",stacks=on"
					: "");
	if (!streq(way, "plain")) {
		argv[n++] = "-plugin";
		argv[n++] = option;
	}
	argv[n++] = work;
	argv[n++] = kind;
	argv[n] = pool;
	struct proc_opts o = { .argv = argv, .timeout_ms = TIMEOUT_MS, .output_limit = 4096 };
	struct proc_result r = { 0 };

	if (proc_run(&o, &r, &err))
		die("qemu");
	if (r.exit_code || r.timed_out) {
		fputs(strbuf_str(&r.err), stderr);
		die(kind);
	}
	double ns = strtod(strbuf_str(&r.out), NULL);
	proc_result_release(&r);
	close(stream);
	close(region);
	return ns;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), by_value);
	return v[n / 2];
}

int main(int argc, char **argv)
{
	size_t rounds = argc > 3 ? strtoul(argv[3], NULL, 10) : 5;

	if (argc < 3 || !rounds || rounds > ROUNDS_MAX) {
		fputs("usage: bench_pm PLUGIN PM_WORK [ROUNDS]\n", stderr);
		return 2;
	}
	for (size_t i = 0; i < rounds; i++)
		for (size_t k = 0; k < N_KINDS; k++)
			for (size_t w = 0; w < N_WAYS; w++)
				took[k][w][i] = run(argv[1], argv[2], kinds[k], ways[w]);
	for (size_t k = 0; k < N_KINDS; k++) {
		double plain = median(took[k][0], rounds);

		printf("%s_plain_us %.0f\n", kinds[k], plain / 1000);
		for (size_t w = 1; w < N_WAYS; w++)
			printf("%s_%s_ratio %.2f\n", kinds[k], ways[w],
			       median(took[k][w], rounds) / plain);
	}
	return 0;
}
