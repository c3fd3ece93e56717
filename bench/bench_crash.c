/* SPDX-License-Identifier: MIT */
/*
 * bench_crash.c - how fast crash states are made: every subset of 12 writes of one page in flight,
 * on an empty disk and on one that is full of data; and a trace like that of a file system, with
 * every write a crash point. Prints "key value" lines.
 */
#include <time.h>

#include "base/rng.h"
#include "core/crash.h"

enum {
	WRITES = 12,
	ROUNDS = 25,
	DISK = 64 << 20,
	PAGES_FULL = 8192,
	LONG_WRITES = 2000,
	LONG_FLUSH = 40, /* writes from flush to flush */
};

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void fill(unsigned char *data, size_t len, struct rng *r)
{
	for (size_t i = 0; i < len; i += 8) {
		uint64_t x = rng_next(r);
		memcpy(data + i, &x, 8);
	}
}

static void run(const char *name, const struct image *base, size_t len, bool near)
{
	struct trace t;
	struct rng r;
	unsigned char data[IMAGE_PAGE];
	uint64_t unique = 0, tried = 0, point;

	rng_init(&r, 1);
	trace_init(&t);
	t.info.size = DISK;
	for (uint64_t i = 0; i < WRITES; i++) {
		fill(data, len, &r);
		trace_write(&t, (near ? i : i * 601) * IMAGE_PAGE, data, len, 0);
	}
	point = t.events.n;
	struct crash_opts opts = { .base = base,
				   .points = &point,
				   .n_points = 1,
				   .layers = CRASH_WITH_WHOLE,
				   .max_subset = UINT32_MAX };
	double start = now_s();
	for (int i = 0; i < ROUNDS; i++) {
		auto_crash e = NULL;
		struct crash_stats stats;
		auto_crash_state s = CRASH_STATE_INIT;

		if (crash_new(&t, &opts, &e, NULL))
			abort();
		while (crash_next(e, &s))
			unique++;
		crash_stats(e, &stats);
		tried += stats.tried;
	}
	double s = now_s() - start;
	printf("%s_states %llu\n", name, (unsigned long long)tried / ROUNDS);
	printf("%s_unique %llu\n", name, (unsigned long long)unique / ROUNDS);
	printf("%s_states_per_s %.0f\n", name, (double)tried / s);
	trace_release(&t);
}

/* Each write completes; a flush now and then; every write a crash point; subsets of up to two. */
static void run_trace(const char *name, const struct image *base)
{
	struct crash_points points = { 0 };
	auto_crash_state state = CRASH_STATE_INIT;
	auto_crash e = NULL;
	struct crash_stats stats;
	unsigned char data[IMAGE_PAGE];
	struct trace t;
	struct rng r;

	rng_init(&r, 3);
	trace_init(&t);
	t.info.size = DISK;
	for (uint64_t i = 0; i < LONG_WRITES; i++) {
		/* A journal that grows, and blocks here and there, some of them again. */
		uint64_t page = i % 4 ? 4096 + i % 1024 : rng_below(&r, 64) * 40;

		fill(data, sizeof(data), &r);
		trace_complete(&t, trace_write(&t, page * IMAGE_PAGE, data, sizeof(data), 0), 0);
		if (i % LONG_FLUSH == LONG_FLUSH - 1)
			trace_complete(&t, trace_flush(&t), 0);
	}
	crash_points_writes(&t, &points);
	struct crash_opts opts = { .base = base,
				   .points = points.v,
				   .n_points = points.n,
				   .layers = CRASH_LAYERS_DEFAULT,
				   .max_subset = 2 };
	double start = now_s();
	if (crash_new(&t, &opts, &e, NULL))
		abort();
	while (crash_next(e, &state))
		;
	crash_stats(e, &stats);
	double s = now_s() - start;
	printf("%s_states %llu\n", name, (unsigned long long)stats.tried);
	printf("%s_unique %llu\n", name, (unsigned long long)stats.unique);
	printf("%s_states_per_s %.0f\n", name, (double)stats.tried / s);
	printf("%s_unique_per_s %.0f\n", name, (double)stats.unique / s);
	crash_points_release(&points);
	trace_release(&t);
}

int main(void)
{
	auto_image empty, full;
	unsigned char data[IMAGE_PAGE];
	struct rng r;

	image_init(&empty, DISK);
	image_init(&full, DISK);
	rng_init(&r, 2);
	for (uint64_t i = 0; i < PAGES_FULL; i++) {
		fill(data, sizeof(data), &r);
		image_write(&full, i * IMAGE_PAGE, data, sizeof(data));
	}
	run("empty_disk", &empty, IMAGE_PAGE, true);
	run("full_disk", &full, IMAGE_PAGE, true);
	run("full_disk_scattered", &full, IMAGE_PAGE, false);
	run("full_disk_sectors", &full, 512, true);
	run_trace("trace", &full);
	return 0;
}
