/* SPDX-License-Identifier: MIT */
/*
 * bench_app.c - crash states of an application's run: how many are put together in memory in a
 * second, and how many become directories that a check could look at.
 *
 * The run is that of a small database: a log that is appended to and synced now and then, tables
 * that are written beside and renamed, old logs that are removed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "app/states.h"

enum { ROOT = 100, PAGE = 4096 };

static void append(struct trace *t, struct posix_event e)
{
	auto_strbuf buf = STRBUF_INIT;
	struct event ev;

	posix_to_event(&e, 0, &buf, &ev);
	trace_append(t, &ev);
}

static void make_file(struct trace *t, uint64_t ino, const char *name)
{
	append(t, (struct posix_event){
			  .op = POSIX_CREATE, .ino = ino, .dir = ROOT, .name = name, .arg = 0644 });
}

static void write_file(struct trace *t, uint64_t ino, uint64_t offset, size_t len, int letter)
{
	auto_free char *data = xmalloc(len);

	memset(data, letter, len);
	append(t, (struct posix_event){ .op = POSIX_WRITE,
					.ino = ino,
					.offset = offset,
					.result = (int64_t)len,
					.payload = data,
					.payload_len = len });
}

static void database(struct trace *t, int rounds)
{
	char name[32], table[32];

	for (int i = 0; i < rounds; i++) {
		uint64_t log = 1000 + (uint64_t)i * 2, tab = log + 1;

		snprintf(name, sizeof(name), "%06d.log", i);
		snprintf(table, sizeof(table), "%06d.tab", i);
		make_file(t, log, name);
		for (int j = 0; j < 8; j++) {
			write_file(t, log, (uint64_t)j * 700, 700, 'a' + j);
			if (j % 4 == 3) {
				append(t,
				       (struct posix_event){ .op = POSIX_FDATASYNC, .ino = log });
				trace_persist(t, (uint64_t)(i * 2 + j / 4));
			}
		}
		make_file(t, tab, "tmp");
		write_file(t, tab, 0, 3 * PAGE, 'A' + i % 26);
		append(t, (struct posix_event){ .op = POSIX_FSYNC, .ino = tab });
		append(t, (struct posix_event){ .op = POSIX_RENAME,
						.ino = tab,
						.dir = ROOT,
						.dir2 = ROOT,
						.name = "tmp",
						.name2 = table });
		if (i) {
			snprintf(name, sizeof(name), "%06d.log", i - 1);
			append(t, (struct posix_event){ .op = POSIX_UNLINK,
							.ino = log - 2,
							.dir = ROOT,
							.name = name });
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
				     .root_ino = ROOT };
	if (history_new(&t, &opts, &h, &err)) {
		fprintf(stderr, "%s\n", err.msg);
		exit(1);
	}
	double start = cpu_s();
	if (states_new(&h, &(struct states_opts){ .budget = budget, .tries = budget * 2 }, &s,
		       &err)) {
		fprintf(stderr, "%s\n", err.msg);
		exit(1);
	}
	while (states_next(s, &a))
		;
	double took = cpu_s() - start;
	states_stats(s, &stats);
	printf("%s_tried %" PRIu64 "\n%s_given %" PRIu64 "\n%s_patterns %" PRIu64 "\n", profile,
	       stats.tried, profile, stats.given, profile, stats.patterns);
	printf("%s_tried_per_cpu_s %.0f\n", profile, (double)stats.tried / took);
	app_state_release(&a);
	states_free(s);
	history_release(&h);
}

int main(void)
{
	measure("ext4-ordered", 200000);
	measure("minimal", 60000);
	return 0;
}
