/* SPDX-License-Identifier: MIT */
/*
 * bench_trace.c - what tracing persistent memory costs in a machine: the time that its processor
 * needs for the same workloads on the same file system, emulated and not traced, traced, and traced
 * with loads. Prints "key value" lines; a ratio is to the machine that is not traced.
 *
 *	bench_trace [TARGET [WORKLOADS [ROUNDS]]]	default: vm:ext4-dax 6 5
 *
 * It is the time of the emulator's process, and not that of a clock, so that others on the machine
 * do not count. The three take turns. The first round, in which code is translated, does not count;
 * of the others, medians. `ops` is what the operations need, `all` mounting and unmounting, too.
 */
#include <errno.h>
#include <time.h>

#include "run/run_impl.h"
#include "run/supply.h"
#include "target/guest_target.h"

enum { ROUNDS_MAX = 99, WORKLOADS_MAX = 59 };

enum way { PLAIN, STORES, LOADS, N_WAYS };
static const char *const ways[N_WAYS] = { "plain", "stores", "loads" };

struct spent {
	double ops, all;
};

static struct err err;
static struct workload workloads[WORKLOADS_MAX];

static void fail(const char *what)
{
	fprintf(stderr, "bench_trace: %s: %s\n", what, err.code ? err.msg : strerror(errno));
	exit(1);
}

/* Seconds of the processor that the machine at hand has used so far. */
static double used(struct run *r)
{
	struct guest_target *g = r->target.own;
	struct timespec t;
	clockid_t clock;

	if (clock_getcpuclockid(g->guest->pid, &clock) || clock_gettime(clock, &t))
		fail("the emulator's time");
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void perform(struct run *r, const struct workload *w, bool traced)
{
	struct exec_env env = { 0 };
	int64_t result;

	if (target_begin(&r->target, w, &env, &err))
		fail("begin");
	for (size_t i = 0; i < w->ops.n; i++) {
		struct event begin = { .kind = EV_OP_BEGIN,
				       .ref = i,
				       .data = (const unsigned char *)"" },
			     end = { .kind = EV_OP_END, .ref = i };

		if ((traced && disk_mark(r->target.disk, &begin, &err)) ||
		    target_op(&r->target, i, &result, &err) ||
		    (traced && disk_mark(r->target.disk, &end, &err)))
			fail("operation");
	}
	if (target_end(&r->target, &err))
		fail("end");
}

static void run_once(struct run *r, const struct workload *w, enum way way, struct spent *out)
{
	struct disk *disk = r->target.disk;
	auto_strbuf said = STRBUF_INIT;

	if (disk_load(disk, &r->base, &err))
		fail("load");
	disk_want_loads(disk, way == LOADS);
	/* From here on another machine is asked, if it is traced. */
	if (disk_start(disk, way == PLAIN ? NULL : &r->trace, &err))
		fail("start");
	double start = used(r);
	if (target_mount(&r->target, &said, &err))
		fail(strbuf_str(&said));
	double mounted = used(r);
	perform(r, w, way != PLAIN);
	out->ops += used(r) - mounted;
	if (target_umount(&r->target, false, &err))
		fail("unmount");
	out->all += used(r) - start;
	if (disk_stop(disk, &err))
		fail("stop");
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), by_size);
	return v[n / 2];
}

static void get_workloads(struct supply *source, size_t n)
{
	supply_init(source);
	if (supply_open_bounds(source, "seq-1", &err))
		fail("seq-1");
	supply_select(source, 0, UINT64_MAX, n, 1);
	for (size_t i = 0; i < n; i++) {
		workload_init(&workloads[i]);
		if (supply_get(source, i, &workloads[i], &err))
			fail("workload");
	}
}

int main(int argc, char **argv)
{
	struct run_opts opts = { .target = { .spec = argc > 1 ? argv[1] : "vm:ext4-dax" } };
	size_t n = argc > 2 ? strtoul(argv[2], NULL, 10) : 6;
	size_t rounds = argc > 3 ? strtoul(argv[3], NULL, 10) : 5;
	static double ops[N_WAYS][ROUNDS_MAX], all[N_WAYS][ROUNDS_MAX];
	struct supply source;
	struct run *r = NULL;

	if (!n || n > WORKLOADS_MAX || !rounds || rounds > ROUNDS_MAX) {
		fputs("usage: bench_trace [TARGET [WORKLOADS [ROUNDS]]]\n", stderr);
		return 2;
	}
	if (run_open(&opts, &r, &err))
		fail(opts.target.spec);
	if (disk_kind(r->target.disk) != DISK_PM)
		fail("the target is not on persistent memory");
	get_workloads(&source, n);
	for (size_t round = 0; round <= rounds; round++)
		for (size_t way = 0; way < N_WAYS; way++) {
			struct spent s = { 0 };

			for (size_t i = 0; i < n; i++)
				run_once(r, &workloads[i], (enum way)way, &s);
			if (round) {
				ops[way][round - 1] = s.ops;
				all[way][round - 1] = s.all;
			}
		}
	for (size_t way = 0; way < N_WAYS; way++) {
		double o = median(ops[way], rounds), a = median(all[way], rounds);

		printf("%s_ops_ms %.2f\n", ways[way], o / (double)n * 1e3);
		printf("%s_all_ms %.2f\n", ways[way], a / (double)n * 1e3);
		if (way == PLAIN)
			continue;
		printf("%s_ops_ratio %.2f\n", ways[way], o / ops[PLAIN][rounds / 2]);
		printf("%s_all_ratio %.2f\n", ways[way], a / all[PLAIN][rounds / 2]);
	}
	for (size_t i = 0; i < n; i++)
		workload_release(&workloads[i]);
	supply_release(&source);
	run_close(r);
	return 0;
}
