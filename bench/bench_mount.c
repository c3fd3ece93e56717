/* SPDX-License-Identifier: MIT */
/*
 * bench_mount.c - what mounted file systems cost, side by side.
 *
 *	bench_mount [-r ROUNDS] [-q PERCENT] [-t TEST]... NAME=DIR[:PID]...
 *
 * Each DIR is an empty directory of a mount, PID the process that serves it. The first one is what
 * the others are compared with. Each test is run in rounds, and in each round on every mount, the
 * order turned around from round to round, so that whatever else the machine does hits all of them.
 * For each test and mount: the median time of an operation, that of the server's CPU time for it
 * (all its threads), and the ratio of the times to the first mount's. Times are microseconds.
 * With -q another part of the rounds than the middle: 0 is the fastest.
 *
 * "stat_cold" waits until nothing that the kernel was given for a second is valid any more. Reads
 * are of files that were opened anew: a mount that keeps pages only while a file is open has none.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"

enum {
	FILES = 200,
	LISTED = 1000,
	STATS = 2000,
	SMALL = 4096,
	LARGE = 131072,
	FILE_SIZE = 8 << 20,
	SMALL_IOS = 512,
	SYNCS = 200,
	LISTINGS = 5,
	THREADS_MAX = 4,
	MOUNTS_MAX = 8,
	ROUNDS_MAX = 1000,
	PATH_SIZE = 512,
};

struct mount {
	const char *name, *dir;
	clockid_t cpu;
	bool has_cpu;
};

/* What a test does in a round; all paths are below the working directory, the mount's. */
struct test {
	const char *name;
	int ops;
	void (*prepare)(const struct test *t);
	void (*run)(const struct test *t);
	void (*clear)(const struct test *t);
	size_t io; /* of reads and writes */
	int threads;
	bool random, cold;
};

static void die(const char *what, const char *on)
{
	fprintf(stderr, "bench_mount: %s %s: %s\n", what, on, strerror(errno));
	exit(2);
}

/* Nothing that is measured may fail: it would look fast. */
#define need(call, what)                                                                           \
	do {                                                                                       \
		if ((call) < 0)                                                                    \
			die("cannot", what);                                                       \
	} while (0)

static double now_us(clockid_t clock)
{
	struct timespec t;

	if (clock_gettime(clock, &t))
		die("cannot read", "a clock; has the server ended?");
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static const char *path(const char *prefix, int i)
{
	static _Thread_local char text[PATH_SIZE];

	snprintf(text, sizeof(text), "%s%d", prefix, i);
	return text;
}

/* ---- names ---- */

static void create(const char *prefix, int n)
{
	for (int i = 0; i < n; i++) {
		int fd = open(path(prefix, i), O_CREAT | O_WRONLY, 0644);

		need(fd, "create a file");
		close(fd);
	}
}

static void unlink_all(const char *prefix, int n)
{
	for (int i = 0; i < n; i++)
		need(unlink(path(prefix, i)), "unlink a file");
}

static void in_dir(const struct test *t)
{
	(void)t;
	need(mkdir("d", 0755), "make a directory");
}

static void out_of_dir(const struct test *t)
{
	(void)t;
	need(rmdir("d"), "remove a directory");
}

static void with_files(const struct test *t)
{
	in_dir(t);
	create("d/f", FILES);
}

static void without_files(const struct test *t)
{
	unlink_all("d/f", FILES);
	out_of_dir(t);
}

static void run_create(const struct test *t)
{
	create("d/f", t->ops);
}

static void run_unlink(const struct test *t)
{
	unlink_all("d/f", t->ops);
}

static void run_stat(const struct test *t)
{
	struct stat st;

	for (int i = 0; i < t->ops; i++)
		need(stat(path("d/f", i % FILES), &st), "stat a file");
}

static void run_missing(const struct test *t)
{
	struct stat st;

	for (int i = 0; i < t->ops; i++)
		if (!stat(path("d/missing", i), &st))
			die("there is", "a file that was not made");
}

/* Attributes as the server has them, whatever the kernel knows. */
static void run_getattr(const struct test *t)
{
	struct statx st;
	auto_fd fd = open("d/f0", O_RDONLY);

	need(fd, "open a file");
	for (int i = 0; i < t->ops; i++)
		need(statx(fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_ALL, &st),
		     "stat a file");
}

static void run_open(const struct test *t)
{
	for (int i = 0; i < t->ops; i++) {
		int fd = open(path("d/f", i), O_RDONLY);

		need(fd, "open a file");
		close(fd);
	}
}

static void make_dirs(const struct test *t)
{
	for (int i = 0; i < t->ops; i++)
		need(mkdir(path("d/s", i), 0755), "make a directory");
}

static void remove_dirs(const struct test *t)
{
	for (int i = 0; i < t->ops; i++)
		need(rmdir(path("d/s", i)), "remove a directory");
}

static void dir_with_dirs(const struct test *t)
{
	in_dir(t);
	make_dirs(t);
}

static void without_dirs(const struct test *t)
{
	remove_dirs(t);
	out_of_dir(t);
}

static void run_rename(const struct test *t)
{
	char from[PATH_SIZE];

	for (int i = 0; i < t->ops; i++) {
		snprintf(from, sizeof(from), "d/f%d", i);
		need(rename(from, path("d/g", i)), "rename a file");
	}
}

static void without_renamed(const struct test *t)
{
	unlink_all("d/g", t->ops);
	out_of_dir(t);
}

/* ---- listings ---- */

static void with_list(const struct test *t)
{
	in_dir(t);
	create("d/f", LISTED);
}

static void without_list(const struct test *t)
{
	unlink_all("d/f", LISTED);
	out_of_dir(t);
}

static int list(bool look)
{
	DIR *d = opendir("d");
	struct dirent *e;
	struct stat st;
	int n = 0;

	if (!d)
		die("cannot open", "a directory");
	for (; (e = readdir(d)); n++)
		if (look)
			need(fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW), "stat a file");
	closedir(d);
	return n;
}

static void run_list(const struct test *t)
{
	for (int i = 0; i < t->ops; i++)
		if (list(t->cold) != LISTED + 2)
			die("cannot see", "all names");
}

/* ---- data ---- */

struct worker {
	pthread_t thread;
	const struct test *t;
	int number;
	void (*work)(const struct worker *w, int fd, char *buf);
	int flags;
};

static int ios_of(const struct test *t)
{
	return t->ops / t->threads;
}

/* Each place once, near places far apart in time if they are to be random. */
static off_t place(const struct test *t, int i)
{
	int places = (int)(FILE_SIZE / t->io), step = t->random ? places / 2 + places / 8 + 1 : 1;

	return (off_t)((i * step) % places) * (off_t)t->io;
}

static void do_writes(const struct worker *w, int fd, char *buf)
{
	for (int i = 0; i < ios_of(w->t); i++)
		if (pwrite(fd, buf, w->t->io, place(w->t, i)) != (ssize_t)w->t->io)
			die("cannot write", "a file");
}

static void do_synced_writes(const struct worker *w, int fd, char *buf)
{
	for (int i = 0; i < ios_of(w->t); i++) {
		if (pwrite(fd, buf, w->t->io, place(w->t, i)) != (ssize_t)w->t->io)
			die("cannot write", "a file");
		need(fdatasync(fd), "sync a file");
	}
}

static void do_reads(const struct worker *w, int fd, char *buf)
{
	for (int i = 0; i < ios_of(w->t); i++)
		if (pread(fd, buf, w->t->io, place(w->t, i)) != (ssize_t)w->t->io)
			die("cannot read", "a file");
}

static void *work(void *arg)
{
	struct worker *w = arg;
	auto_free char *buf = xcalloc(1, LARGE);
	auto_fd fd = open(path("data", w->number), w->flags, 0644);

	memset(buf, 'x', LARGE);
	need(fd, "open a file");
	w->work(w, fd, buf);
	return NULL;
}

static void all_work(const struct test *t, void (*what)(const struct worker *, int, char *),
		     int flags)
{
	struct worker w[THREADS_MAX];

	for (int i = 0; i < t->threads; i++)
		w[i] = (struct worker){ .t = t, .number = i, .work = what, .flags = flags };
	if (t->threads == 1) {
		work(&w[0]);
		return;
	}
	for (int i = 0; i < t->threads; i++)
		if (pthread_create(&w[i].thread, NULL, work, &w[i]))
			die("cannot start", "a thread");
	for (int i = 0; i < t->threads; i++)
		pthread_join(w[i].thread, NULL);
}

static void run_writes(const struct test *t)
{
	all_work(t, do_writes, O_WRONLY | O_CREAT);
}

static void run_synced_writes(const struct test *t)
{
	all_work(t, do_synced_writes, O_WRONLY | O_CREAT);
}

static void run_reads(const struct test *t)
{
	all_work(t, do_reads, O_RDONLY);
}

static void with_data(const struct test *t)
{
	struct test whole = { .ops = FILE_SIZE / LARGE * t->threads,
			      .io = LARGE,
			      .threads = t->threads };

	run_writes(&whole);
}

/* What a sync then has to do is what was written since. */
static void with_synced_data(const struct test *t)
{
	with_data(t);
	for (int i = 0; i < t->threads; i++) {
		auto_fd fd = open(path("data", i), O_RDWR);

		need(fd, "open a file");
		need(fsync(fd), "sync a file");
	}
}

static void without_data(const struct test *t)
{
	unlink_all("data", t->threads);
}

/* ---- rounds ---- */

static void nothing(const struct test *t)
{
	(void)t;
}

#define NAMES_(NAME, OPS, PREPARE, RUN, CLEAR, IS_COLD)                                            \
	{                                                                                          \
		.name = (NAME), .ops = (OPS), .prepare = (PREPARE), .run = (RUN),                  \
		.clear = (CLEAR), .threads = 1, .cold = (IS_COLD),                                 \
	}
#define DATA(NAME, RUN, PREPARE, IO, RANDOM, THREADS)                                              \
	{                                                                                          \
		.name = (NAME),                                                                    \
		.ops = ((IO) == SMALL ? SMALL_IOS : FILE_SIZE / LARGE) * (THREADS),                \
		.prepare = (PREPARE), .run = (RUN), .clear = without_data, .io = (IO),             \
		.threads = (THREADS), .random = (RANDOM),                                          \
	}

#define NAMES(...) NAMES_(__VA_ARGS__, false)
#define COLD(...)  NAMES_(__VA_ARGS__, true)

static const struct test tests[] = {
	NAMES("create+close", FILES, in_dir, run_create, without_files),
	NAMES("open+close", FILES, with_files, run_open, without_files),
	NAMES("stat_warm", STATS, with_files, run_stat, without_files),
	COLD("stat_cold", FILES, with_files, run_stat, without_files),
	NAMES("stat_missing", FILES, with_files, run_missing, without_files),
	NAMES("getattr", FILES, with_files, run_getattr, without_files),
	NAMES("unlink", FILES, with_files, run_unlink, out_of_dir),
	NAMES("mkdir", FILES, in_dir, make_dirs, without_dirs),
	NAMES("rmdir", FILES, dir_with_dirs, remove_dirs, out_of_dir),
	NAMES("rename", FILES, with_files, run_rename, without_renamed),
	NAMES("readdir_1000", LISTINGS, with_list, run_list, without_list),
	COLD("readdir_stat_cold", 1, with_list, run_list, without_list),
	{
		.name = "write+fdatasync",
		.ops = SYNCS,
		.prepare = with_synced_data,
		.run = run_synced_writes,
		.clear = without_data,
		.io = SMALL,
		.threads = 1,
	},
	DATA("write_4k_seq", run_writes, nothing, SMALL, false, 1),
	DATA("write_4k_seq_4", run_writes, nothing, SMALL, false, 4),
	DATA("write_4k_rand", run_writes, with_data, SMALL, true, 1),
	DATA("write_4k_rand_4", run_writes, with_data, SMALL, true, 4),
	DATA("write_128k_seq", run_writes, nothing, LARGE, false, 1),
	DATA("write_128k_seq_4", run_writes, nothing, LARGE, false, 4),
	DATA("write_128k_rand", run_writes, with_data, LARGE, true, 1),
	DATA("write_128k_rand_4", run_writes, with_data, LARGE, true, 4),
	DATA("read_4k_seq", run_reads, with_data, SMALL, false, 1),
	DATA("read_4k_seq_4", run_reads, with_data, SMALL, false, 4),
	DATA("read_4k_rand", run_reads, with_data, SMALL, true, 1),
	DATA("read_4k_rand_4", run_reads, with_data, SMALL, true, 4),
	DATA("read_128k_seq", run_reads, with_data, LARGE, false, 1),
	DATA("read_128k_seq_4", run_reads, with_data, LARGE, false, 4),
	DATA("read_128k_rand", run_reads, with_data, LARGE, true, 1),
	DATA("read_128k_rand_4", run_reads, with_data, LARGE, true, 4),
};

struct figures {
	double wall[ROUNDS_MAX], cpu[ROUNDS_MAX];
};

static void enter(const struct mount *m)
{
	if (chdir(m->dir))
		die("cannot enter", m->dir);
}

static void measure(const struct test *t, const struct mount *m, struct figures *f, int round)
{
	double cpu = m->has_cpu ? now_us(m->cpu) : 0, start = now_us(CLOCK_MONOTONIC);

	t->run(t);
	f->wall[round] = (now_us(CLOCK_MONOTONIC) - start) / t->ops;
	f->cpu[round] = m->has_cpu ? (now_us(m->cpu) - cpu) / t->ops : 0;
}

/* On all mounts, in one order or the other. */
static void run_round(const struct test *t, const struct mount *m, int n, struct figures *f,
		      int round)
{
	for (int i = 0; t->cold && i < n; i++) {
		enter(&m[i]);
		t->prepare(t);
	}
	if (t->cold)
		nanosleep(&(struct timespec){ .tv_sec = 1, .tv_nsec = 100000000 }, NULL);
	for (int k = 0; k < n; k++) {
		int i = round % 2 ? n - 1 - k : k;

		enter(&m[i]);
		if (!t->cold)
			t->prepare(t);
		if (t->run == run_stat && !t->cold)
			t->run(t); /* what is warm was seen before */
		measure(t, &m[i], &f[i], round);
		t->clear(t);
	}
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Noise only ever makes it slower: on a busy machine a low part says more than the middle. */
static int percent = 50;

static double quantile(double *v, int n)
{
	qsort(v, (size_t)n, sizeof(*v), compare);
	return v[(n - 1) * percent / 100];
}

static void run_test(const struct test *t, const struct mount *m, int n, int rounds)
{
	auto_free struct figures *f = xcalloc((size_t)n, sizeof(*f));
	double first = 0;

	if (t->cold)
		rounds = min(rounds, 5); /* each takes a second */
	for (int round = 0; round < rounds; round++)
		run_round(t, m, n, f, round);
	printf("%-18s", t->name);
	for (int i = 0; i < n; i++) {
		double wall = quantile(f[i].wall, rounds), cpu = quantile(f[i].cpu, rounds);

		printf(" %9.2f", wall);
		if (m[i].has_cpu)
			printf(" %8.2f", cpu);
		else
			printf(" %8s", "-");
		if (i)
			printf(" %6.2f", wall / first);
		else
			first = wall;
	}
	printf("\n");
	fflush(stdout);
}

static void print_head(const struct mount *m, int n)
{
	printf("%-18s", "");
	for (int i = 0; i < n; i++)
		printf(" %*s", i ? 25 : 18, m[i].name);
	printf("\n%-18s", "us an operation");
	for (int i = 0; i < n; i++)
		printf(" %9s %8s%s", "time", "CPU", i ? "  ratio" : "");
	printf("\n");
}

static int usage(void)
{
	fprintf(stderr,
		"usage: bench_mount [-r ROUNDS] [-q PERCENT] [-t TEST]... NAME=DIR[:PID]...\n");
	return 2;
}

/* NAME=DIR[:PID]; takes the text apart. */
static bool parse_mount(char *text, struct mount *m)
{
	char *dir = strchr(text, '='), *colon = strrchr(text, ':'), *end = NULL;

	if (!dir || dir == text || !dir[1])
		return false;
	*dir++ = '\0';
	*m = (struct mount){ .name = text };
	if (colon > dir) {
		long pid = strtol(colon + 1, &end, 10);

		*colon = '\0';
		m->has_cpu = end > colon + 1 && !*end && pid > 0 &&
			     !clock_getcpuclockid((pid_t)pid, &m->cpu);
		if (!m->has_cpu) {
			fprintf(stderr, "bench_mount: no process %s serves %s\n", colon + 1, text);
			return false;
		}
	}
	m->dir = realpath(dir, NULL);
	if (!m->dir)
		die("cannot find", dir);
	return true;
}

static bool chosen(const char *const *only, int n, const char *name)
{
	for (int i = 0; i < n; i++)
		if (strstr(name, only[i]))
			return true;
	return !n;
}

int main(int argc, char **argv)
{
	enum { ONLY_MAX = 64 };
	struct mount m[MOUNTS_MAX];
	const char *only[ONLY_MAX];
	int n = 0, n_only = 0, rounds = 15, option;

	while ((option = getopt(argc, argv, "q:r:t:")) != -1) {
		if (option == 'r')
			rounds = atoi(optarg);
		else if (option == 'q')
			percent = atoi(optarg);
		else if (option == 't' && n_only < ONLY_MAX)
			only[n_only++] = optarg;
		else
			return usage();
	}
	if (optind == argc || argc - optind > MOUNTS_MAX || rounds < 1 || rounds > ROUNDS_MAX ||
	    percent < 0 || percent > 100)
		return usage();
	for (int i = optind; i < argc; i++)
		if (!parse_mount(argv[i], &m[n++]))
			return usage();
	umask(022);
	print_head(m, n);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		if (chosen(only, n_only, tests[i].name))
			run_test(&tests[i], m, n, rounds);
	for (int i = 0; i < n; i++)
		free((char *)(uintptr_t)m[i].dir);
	return 0;
}
