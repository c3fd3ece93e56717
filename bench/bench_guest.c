/* SPDX-License-Identifier: MIT */
/*
 * bench_guest.c - how close crash states in a guest come to what the guest itself needs.
 *
 *	bench_guest TARGET [WORKLOADS [PROCESSES]]	default: uml:ext4 30 1
 *
 * The floor: the agent mounts, walks and unmounts the new file system, over and over; nothing is
 * loaded, recovered, compared or used. Against it, crash states as a run has them, recording left
 * out of the time. The two take turns in the same guest, so that what else the machine does touches
 * both alike. Then the guest is taken away several times, and the time taken until a new one has
 * mounted. Prints "key value" lines; "cpu" is what a state needs of processors, of the guest's and
 *of ours, which is less than what a clock says where others are at work as well.
 */
#include <errno.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "run/run_impl.h"
#include "run/supply.h"
#include "target/guest_target.h"

enum { BUDGET = 20, RESTARTS = 9, PROCESSES_MAX = 16 };

static struct err err;

static void fail(const char *what)
{
	fprintf(stderr, "bench_guest: %s: %s\n", what, err.code ? err.msg : strerror(errno));
	exit(1);
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Of processors, by the guest and by us. */
static double used_s(struct run *r)
{
	struct guest_target *g = r->target.own;
	struct timespec ours, guest = { 0 };
	clockid_t clock;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ours);
	if (g->guest->pid && clock_getcpuclockid(g->guest->pid, &clock) == 0)
		clock_gettime(clock, &guest);
	return (double)(ours.tv_sec + guest.tv_sec) + (double)(ours.tv_nsec + guest.tv_nsec) / 1e9;
}

static void mount_it(struct target *t)
{
	auto_strbuf said = STRBUF_INIT;

	if (target_mount(t, &said, &err))
		fail(strbuf_str(&said));
}

static void bare_round(struct run *r)
{
	mount_it(&r->target);
	if (target_walk(&r->target, &r->tree_opts, &r->seen, &err) ||
	    target_umount(&r->target, false, &err))
		fail("walk and unmount");
}

static int ignore_finding(void *ctx, const struct run_case *c, struct err *e)
{
	(void)ctx;
	(void)c;
	(void)e;
	return 0;
}

struct times {
	double bare, ours, cpu;
	uint64_t states;
	double restart[RESTARTS];
};

static void measure_states(struct run *r, const struct workload *w, bool counts, struct times *out)
{
	struct run_reporter reporter = { .found = ignore_finding };
	struct run_totals totals = { 0 };
	auto_findings live = { 0 };

	if (record_workload(r, w, &live, &err))
		fail("record");
	double start = now_s(), cpu = used_s(r), between;
	if (explore_states(r, w, &reporter, &totals, &err))
		fail("crash states");
	between = now_s();
	cpu = used_s(r) - cpu;
	if (disk_load(r->target.disk, &r->base, &err))
		fail("load");
	double bare = now_s();
	for (uint64_t i = 0; i < totals.unique_states; i++)
		bare_round(r);
	if (!counts)
		return;
	out->bare += now_s() - bare;
	out->ours += between - start;
	out->cpu += max(cpu, 0.0); /* a guest that was replaced counts from its start */
	out->states += totals.unique_states;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Both kinds of guest targets keep a struct guest_target first in what is their own. */
static void measure_restarts(struct run *r, struct times *out)
{
	struct guest_target *g = r->target.own;

	for (int i = 0; i < RESTARTS; i++) {
		double start = now_s();

		guest_stop(g->guest);
		mount_it(&r->target);
		out->restart[i] = now_s() - start;
		if (target_umount(&r->target, false, &err))
			fail("unmount");
	}
	qsort(out->restart, RESTARTS, sizeof(double), by_size);
}

static void measure(const char *target, uint64_t n, unsigned worker, struct times *out)
{
	struct run_opts opts = { .target = { .spec = target, .worker = worker },
				 .modes = RUN_PREFIX,
				 .budget = BUDGET };
	struct run *r = NULL;
	struct supply source;

	if (run_open(&opts, &r, &err))
		fail(target);
	supply_init(&source);
	if (supply_open_bounds(&source, "seq-1", &err))
		fail("seq-1");
	supply_select(&source, 0, UINT64_MAX, n + 1, 1);
	for (uint64_t i = 0; i < supply_count(&source); i++) {
		struct workload w;

		workload_init(&w);
		if (supply_get(&source, i, &w, &err))
			fail("workload");
		measure_states(r, &w, i > 0, out); /* the first one warms up */
		workload_release(&w);
	}
	supply_release(&source);
	measure_restarts(r, out);
	run_close(r);
}

int main(int argc, char **argv)
{
	const char *target = argc > 1 ? argv[1] : "uml:ext4";
	uint64_t n = argc > 2 ? strtoull(argv[2], NULL, 10) : 30;
	unsigned processes = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 1;
	double bare = 0, ours = 0, cpu = 0, states = 0, restart = 0;
	int fds[2];

	if (strncmp(target, "uml:", 4) != 0 && strncmp(target, "vm:", 3) != 0)
		fail("the target is not in a guest");
	if (processes < 1 || processes > PROCESSES_MAX || pipe(fds))
		fail("processes");
	for (unsigned i = 0; i < processes; i++) {
		if (fork())
			continue;
		struct times t = { 0 };

		measure(target, n, i, &t);
		_exit(write(fds[1], &t, sizeof(t)) != sizeof(t));
	}
	for (unsigned i = 0; i < processes; i++) {
		struct times t;
		int status;

		if (wait(&status) < 0 || status || read(fds[0], &t, sizeof(t)) != sizeof(t))
			return 1;
		bare += (double)t.states / t.bare;
		ours += (double)t.states / t.ours;
		cpu += t.cpu;
		states += (double)t.states;
		restart = max(restart, t.restart[RESTARTS / 2]);
	}
	printf("bare_per_s %.1f\nstates_per_s %.1f\nratio %.2f\nrestart_ms %.0f\ncpu_ms %.1f\n",
	       bare, ours, ours / bare, restart * 1e3, cpu / states * 1e3);
	return 0;
}
