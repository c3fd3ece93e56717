/* SPDX-License-Identifier: MIT */
/*
 * bench_app.c - crash states of an application's run: how many are put together in memory in a
 * second, and how many become directories that a check could look at.
 *
 * The run is that of a small database: a log that is appended to and synced now and then, tables
 * that are written beside and renamed, old logs that are removed.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "app/checkers.h"
#include "base/io.h"
#include "calls.h"

enum { PAGE = 4096 };

static void database(struct trace *t, int rounds)
{
	char name[32], table[32];

	for (int i = 0; i < rounds; i++) {
		uint64_t log = 1000 + (uint64_t)i * 2, tab = log + 1;

		snprintf(name, sizeof(name), "%06d.log", i);
		snprintf(table, sizeof(table), "%06d.tab", i);
		calls_create(t, log, name);
		for (int j = 0; j < 8; j++) {
			calls_fill(t, log, (uint64_t)j * 700, 700, 'a' + j);
			if (j % 4 == 3) {
				calls_sync(t, POSIX_FDATASYNC, log);
				trace_persist(t, (uint64_t)(i * 2 + j / 4));
			}
		}
		calls_create(t, tab, "tmp");
		calls_fill(t, tab, 0, 3 * PAGE, 'A' + i % 26);
		calls_sync(t, POSIX_FSYNC, tab);
		calls_rename(t, tab, "tmp", table);
		if (i) {
			snprintf(name, sizeof(name), "%06d.log", i - 1);
			calls_unlink(t, log - 2, name);
		}
	}
}

/* Of this process: other programs on the machine do not count. */
static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void measure(const char *profile, uint64_t budget)
{
	struct app_state a = { 0 };
	struct states_stats stats;
	struct states *s = NULL;
	struct err err = ERR_INIT;
	struct history h;
	auto_trace t;

	trace_init(&t);
	database(&t, 60);
	struct history_opts opts = { .profile = profile_find(profile),
				     .base = -1,
				     .root_ino = CALLS_ROOT };
	if (history_new(&t, &opts, &h, &err)) {
		fprintf(stderr, "%s\n", err.msg);
		exit(1);
	}
	struct states_opts which = { .budget = budget, .tries = budget * 2, .no_trees = true };
	double start = cpu_s(), built_s = 0;
	uint64_t built = 0;
	if (states_new(&h, &which, &s, &err)) {
		fprintf(stderr, "%s\n", err.msg);
		exit(1);
	}
	/* Some of them as a worker makes them before it checks them. */
	while (states_next(s, &a))
		if (a.number % 16 == 0) {
			built_s -= cpu_s();
			reffs_state_unref(
				history_build(&h, a.point, a.survivors.v.v, a.survivors.v.n));
			built_s += cpu_s();
			built++;
		}
	double took = cpu_s() - start - built_s;
	states_stats(s, &stats);
	printf("%s_tried %" PRIu64 "\n%s_given %" PRIu64 "\n%s_patterns %" PRIu64 "\n", profile,
	       stats.tried, profile, stats.given, profile, stats.patterns);
	printf("%s_tried_per_cpu_s %.0f\n", profile, (double)stats.tried / took);
	printf("%s_trees_per_cpu_s %.0f\n", profile, (double)built / built_s);
	app_state_release(&a);
	states_free(s);
	history_release(&h);
}

/* ---- directories ---- */

enum { FILES = 20, FILE_SIZE = 200 << 10, JOBS = 2 };

struct files {
	char dir[32];
	struct trace t;
	struct history h;
};

/* 4 MB in 20 files before the run; the run changes all of them. */
static void files_make(struct files *f)
{
	auto_free char *data = xmalloc(FILE_SIZE);
	struct err err = ERR_INIT;
	char name[64];

	memset(f, 0, sizeof(*f));
	snprintf(f->dir, sizeof(f->dir), "/tmp/bench-app-XXXXXX");
	if (!mkdtemp(f->dir))
		exit(1);
	trace_init(&f->t);
	memset(data, 'd', FILE_SIZE);
	for (int i = 0; i < FILES; i++) {
		struct stat st;

		snprintf(name, sizeof(name), "%s/%06d.dat", f->dir, i);
		auto_fd fd = open(name, O_RDWR | O_CREAT, 0644);
		if (fd < 0 || io_write_full(fd, data, FILE_SIZE) || fstat(fd, &st))
			exit(1);
		for (int j = 0; j < 4; j++)
			calls_fill(&f->t, st.st_ino, (uint64_t)j * 50000, 5000, 'A' + i);
	}
	auto_fd base = open(f->dir, O_RDONLY | O_DIRECTORY);
	struct history_opts opts = { .profile = profile_find("minimal"),
				     .base = base,
				     .root_ino = 7,
				     .base_numbers = true };
	if (history_new(&f->t, &opts, &f->h, &err)) {
		fprintf(stderr, "%s\n", err.msg);
		exit(1);
	}
}

static void files_remove(struct files *f)
{
	char name[64];

	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "%s/%06d.dat", f->dir, i);
		unlink(name);
	}
	rmdir(f->dir);
	history_release(&f->h);
	trace_release(&f->t);
}

static void measure_places(struct files *f, uint64_t budget)
{
	struct place_opts o = { .base = f->dir, .before = f->h.before, .at = f->dir };
	struct app_state *a = xcalloc(budget, sizeof(*a));
	struct states *s = NULL;
	struct place *p = NULL;
	struct err err = ERR_INIT;
	uint64_t n = 0;

	if (place_new(&o, &p, &err) ||
	    states_new(&f->h, &(struct states_opts){ .budget = budget }, &s, &err)) {
		fprintf(stderr, "%s\n", err.msg);
		exit(1);
	}
	while (n < budget && states_next(s, &a[n]))
		n++;
	double cpu = cpu_s();
	uint64_t start = util_now_ns();
	for (uint64_t i = 0; i < n; i++)
		if (place_put(p, a[i].tree, &err) || place_clear(p, &err)) {
			fprintf(stderr, "%s\n", err.msg);
			exit(1);
		}
	printf("places %" PRIu64 "\nplaces_per_s %.0f\nplaces_per_cpu_s %.0f\n", n,
	       (double)n / ((double)(util_now_ns() - start) / 1e9), (double)n / (cpu_s() - cpu));
	fflush(stdout);
	_exit(0);
}

/* Of all processes that have ended. */
static double children_s(void)
{
	struct rusage use;

	getrusage(RUSAGE_CHILDREN, &use);
	return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
	       (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
}

struct rates {
	double per_s, per_cpu_s;
};

static void start_once(char *const command[])
{
	pid_t pid = vfork();

	if (!pid) {
		execv(command[0], command);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
}

/* What the machine needs to start the command so often and wait for it, and nothing else. */
static struct rates measure_floor(char *const command[], unsigned times, const char *name)
{
	double cpu = children_s();
	uint64_t start = util_now_ns();
	pid_t pids[JOBS];

	for (int i = 0; i < JOBS; i++) {
		pids[i] = fork();
		for (unsigned j = 0; !pids[i] && j < times / JOBS; j++)
			start_once(command);
		if (!pids[i])
			_exit(0);
	}
	for (int i = 0; i < JOBS; i++)
		waitpid(pids[i], NULL, 0);
	struct rates r = { times / ((double)(util_now_ns() - start) / 1e9),
			   times / (children_s() - cpu) };
	printf("floor_%s_per_s %.0f\nfloor_%s_per_cpu_s %.0f\n", name, r.per_s, name, r.per_cpu_s);
	fflush(stdout);
	return r;
}

struct checks {
	const char *command, *name;
	uint64_t budget;
	bool alone;  /* without a launcher */
	size_t more; /* bytes of memory that a long run would have */
};

static void measure_checks(struct files *f, const struct checks *x, struct rates floor)
{
	auto_free char *ballast = NULL;
	struct launcher *launcher = NULL;
	double cpu = children_s();
	struct checkers_opts o = {
		.jobs = JOBS,
		.place = { .base = f->dir, .before = f->h.before, .at = f->dir },
		.check = { .command = x->command },
	};
	struct states_opts which = { .budget = x->budget, .no_trees = true };
	struct checkers_stats stats;
	struct states *s = NULL;
	struct err err = ERR_INIT;

	if (!x->alone && launcher_start(&launcher, &err))
		exit(1);
	o.launcher = launcher;
	ballast = xmalloc(x->more + 1);
	memset(ballast, 1, x->more + 1);
	if (states_new(&f->h, &which, &s, &err))
		exit(1);
	uint64_t start = util_now_ns();
	if (checkers_run(&f->h, s, &o, &stats, &err)) {
		fprintf(stderr, "%s\n", err.msg);
		exit(1);
	}
	double took = (double)(util_now_ns() - start) / 1e9;
	launcher_stop(launcher);
	struct rates r = { (double)stats.checked / took,
			   (double)stats.checked / (children_s() - cpu) };
	printf("checks_%s %" PRIu64 "\nchecks_%s_per_s %.0f\nchecks_%s_per_cpu_s %.0f\n", x->name,
	       stats.passed, x->name, r.per_s, x->name, r.per_cpu_s);
	printf("checks_%s_cpu_over_floor %.2f\n", x->name, floor.per_cpu_s / r.per_cpu_s);
	fflush(stdout);
	states_free(s);
}

/* A check that a shell is needed for, and a program that is none. */
static void measure_all_checks(struct files *f)
{
	char shell[] = "/bin/sh", c[] = "-c", colon[] = ":", self[4096] = "";
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	auto_free char *nothing = xasprintf("%.*s/nothing", (int)(strrchr(self, '/') - self), self);

	if (len < 0)
		exit(1);
	struct rates sh = measure_floor((char *[]){ shell, c, colon, NULL }, 1000, "shell");
	struct rates program = measure_floor((char *[]){ nothing, NULL }, 1000, "program");
	measure_checks(f, &(struct checks){ ":", "small", 2000, false, 0 }, sh);
	measure_checks(f, &(struct checks){ nothing, "program", 2000, false, 0 }, program);
	measure_checks(f, &(struct checks){ ":", "small_alone", 500, true, 0 }, sh);
	measure_checks(f, &(struct checks){ ":", "large", 1000, false, (size_t)512 << 20 }, sh);
	measure_checks(f, &(struct checks){ ":", "large_alone", 200, true, (size_t)512 << 20 }, sh);
}

int main(int argc, char **argv)
{
	bool states = argc < 2 || streq(argv[1], "states"), rest = argc < 2 || !states;
	struct files f;
	pid_t pid;

	if (states) {
		measure("ext4-ordered", 200000);
		measure("minimal", 60000);
	}
	fflush(stdout);
	if (!rest)
		return 0;
	files_make(&f);
	measure_all_checks(&f);
	fflush(stdout);
	pid = fork();
	if (!pid)
		measure_places(&f, 3000);
	waitpid(pid, NULL, 0);
	files_remove(&f);
	return 0;
}
