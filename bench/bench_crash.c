/* SPDX-License-Identifier: MIT */
/*
 * bench_crash.c - how fast crash states are made: every subset of 12 writes of one page in flight,
 * on an empty disk and on one that is full of data; a trace like that of a file system, with every
 * write a crash point; and the same for persistent memory. Prints "key value" lines.
 */
#include <time.h>

#include "base/rng.h"
#include "core/crash.h"
#include "core/model_pm.h"
#include "trace-build.h"

enum {
	WRITES = 12,
	ROUNDS = 25,
	DISK = 64 << 20,
	PAGES_FULL = 8192,
	LONG_WRITES = 2000,
	LONG_FLUSH = 40, /* writes from flush to flush */
	PM_OPS = 400,	 /* operations of the trace of persistent memory */
	PM_ENTRY = 136,	 /* bytes of a log entry */
	PM_COPY = 4096,	 /* bytes of a file's data */
	PM_LARGE = 64 << 20,
};

/* Of the processor, as everything here happens in one thread: others may be at work as well. */
static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
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

static void pm_flush(struct trace *t, uint64_t addr, uint64_t len)
{
	for (uint64_t at = addr / PM_LINE * PM_LINE; at < addr + len; at += PM_LINE)
		trace_append(t, &(struct event){ .kind = EV_LINEFLUSH, .addr = at });
}

/* In words, as a copy of the kernel's is. */
static void pm_copy(struct trace *t, uint64_t addr, uint64_t len, uint32_t flags, struct rng *r)
{
	for (uint64_t at = addr; at < addr + len; at += 8) {
		uint64_t word = rng_next(r);

		trace_append(t, &(struct event){ .kind = EV_STORE,
						 .addr = at,
						 .len = 8,
						 .flags = flags,
						 .data = (const unsigned char *)&word });
	}
}

/* Operations of a file system with a log: data, an entry, some fields in place, the log's tail. */
static void pm_trace(struct trace *t)
{
	struct rng r;

	rng_init(&r, 5);
	trace_init(t);
	t->info.size = DISK;
	for (uint64_t i = 0; i < PM_OPS; i++) {
		uint64_t entry = (1 << 20) + i * 192;

		trace_op_begin(t, i, "write");
		pm_copy(t, (4 << 20) + i * PM_COPY, PM_COPY, EV_NONTEMPORAL, &r);
		pm_copy(t, entry, PM_ENTRY, 0, &r);
		pm_flush(t, entry, PM_ENTRY);
		for (uint64_t field = 0; field < 6; field++)
			pm_copy(t, (i * 7 + field * 3) % 1024 * PM_LINE, 16, 0, &r);
		trace_append(t, &(struct event){ .kind = EV_FENCE });
		pm_copy(t, 8192 + i % 64 * 8, 8, 0, &r);
		pm_flush(t, 8192 + i % 64 * 8, 8);
		for (uint64_t field = 0; field < 6; field++)
			pm_flush(t, (i * 7 + field * 3) % 1024 * PM_LINE, 16);
		trace_append(t, &(struct event){ .kind = EV_FENCE });
		trace_op_end(t, i, 0);
	}
}

static void run_pm(const char *name, const struct model_ops *model, const struct image *base,
		   const struct model_pm_opts *pm)
{
	struct crash_points points = { 0 };
	auto_crash_state state = CRASH_STATE_INIT;
	auto_crash e = NULL;
	struct crash_stats stats;
	struct trace t;

	pm_trace(&t);
	crash_points_pm(&t, &points);
	struct crash_opts opts = { .model = model,
				   .model_ctx = pm,
				   .base = base,
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
	crash_points_release(&points);
	trace_release(&t);
}

/* How fast a model reads: one large copy after the other, each flushed and fenced. */
static void run_pm_reading(const char *name, const struct image *base)
{
	auto_model m = model_new(&model_pm, &(struct model_opts){ 0 }, base);
	struct trace t;
	struct rng r;
	size_t n;

	rng_init(&r, 6);
	trace_init(&t);
	t.info.size = DISK;
	for (uint64_t at = 0; at < PM_LARGE; at += 1 << 20) {
		pm_copy(&t, at, 1 << 20, 0, &r);
		pm_flush(&t, at, 1 << 20);
		trace_append(&t, &(struct event){ .kind = EV_FENCE });
	}
	double start = now_s();
	for (size_t i = 0; i < t.events.n; i++)
		if (model_apply(m, i, &t.events.v[i], NULL))
			abort();
	double s = now_s() - start;
	model_pieces(m, &n);
	assert(!n);
	printf("%s_events_per_s %.0f\n", name, (double)t.events.n / s);
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
	run_pm("pm", &model_pm, &full, &(struct model_pm_opts){ .join_min = 256 });
	run_pm("pm_joined", &model_pm, &full, NULL);
	run_pm("pm_eadr", &model_pm_eadr, &full, NULL);
	run_pm_reading("pm", &full);
	return 0;
}
