/* SPDX-License-Identifier: MIT */
/*
 * bench_floor.c - how close a run comes to what the kernel itself needs.
 *
 *	bench_floor TARGET [WORKLOADS [PROCESSES]]
 *
 * The floor: put the base image back, mount it, make the workload's system calls, cut it off,
 * unmount; then for each crash state (made beforehand) put it on the disk, mount, read everything,
 * unmount. Nothing is recorded, compared or used. Against it, the whole pipeline on the same
 * workloads. The two take turns, so that what else the machine does touches both alike. Prints
 * "key value" lines.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "record/loop.h"
#include "run/run_impl.h"
#include "run/supply.h"
#include "workload/exec.h"

enum { TURN = 20, PROCESSES_MAX = 16 };

static struct err err;

static void fail(const char *what)
{
	fprintf(stderr, "bench_floor: %s: %s\n", what, err.code ? err.msg : strerror(errno));
	exit(1);
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- what is run ---- */

struct page {
	uint64_t number;
	unsigned char data[IMAGE_PAGE];
};

struct pages vec_of(struct page);

/* A workload, and its crash states as what they differ in from the base. */
struct sample {
	struct workload w;
	struct vec_of(struct pages) states;
};

struct samples vec_of(struct sample);

static int keep_page(void *ctx, uint64_t number, const unsigned char *have,
		     const unsigned char *want)
{
	struct pages *pages = ctx;
	struct page p = { .number = number };

	(void)have;
	memcpy(p.data, want, IMAGE_PAGE);
	vec_push(pages, p);
	return 0;
}

static void make_states(struct run *r, struct sample *s)
{
	auto_findings live = { 0 };
	struct crash_points points = { 0 };
	struct crash_opts opts = CRASH_OPTS_INIT;
	auto_crash_state state = CRASH_STATE_INIT;
	auto_crash e = NULL;
	int rc;

	while ((rc = record_workload(r, &s->w, &live, &err)) == -EOVERFLOW)
		err_clear(&err);
	if (rc)
		fail("record");
	crash_points_persist(&r->trace, &points);
	opts.base = &r->base;
	opts.points = points.v;
	opts.n_points = points.n;
	opts.layers = CRASH_WITH_COMPLETED;
	if (points.n && crash_new(&r->trace, &opts, &e, &err))
		fail("crash states");
	while (e && crash_next(e, &state)) {
		struct pages pages = { 0 };

		image_diff(&r->base, &state.image, keep_page, &pages);
		vec_push(&s->states, pages);
	}
	crash_points_release(&points);
}

static void make_samples(struct run *r, const char *set, uint64_t n, struct samples *out)
{
	struct supply source;

	supply_init(&source);
	if (supply_open_bounds(&source, set, &err))
		fail(set);
	supply_select(&source, 0, UINT64_MAX, n, 1);
	for (uint64_t i = 0; i < supply_count(&source); i++) {
		struct sample s = { .states = { 0 } };

		workload_init(&s.w);
		if (supply_get(&source, i, &s.w, &err))
			fail("workload");
		make_states(r, &s);
		vec_push(out, s);
	}
	supply_release(&source);
}

/* ---- the floor ---- */

struct floor {
	struct run *r;
	struct loop loop;
	int memfd;
	unsigned char *map, *base;
	uint64_t size;
};

static void floor_open(struct floor *f, struct run *r)
{
	f->r = r;
	f->size = r->base.size;
	f->memfd = memfd_create("outage-bench", MFD_CLOEXEC);
	if (f->memfd < 0 || ftruncate(f->memfd, (off_t)f->size))
		fail("memory");
	f->map = mmap(NULL, f->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, f->memfd,
		      0);
	f->base = mmap(NULL, f->size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (f->map == MAP_FAILED || f->base == MAP_FAILED)
		fail("memory");
	for (uint64_t at = 0; at < f->size; at += IMAGE_PAGE) {
		unsigned char page[IMAGE_PAGE];
		static const unsigned char zeros[IMAGE_PAGE];

		image_read(&r->base, at, page, IMAGE_PAGE);
		if (memcmp(page, zeros, IMAGE_PAGE) != 0) {
			memcpy(f->base + at, page, IMAGE_PAGE);
			memcpy(f->map + at, page, IMAGE_PAGE);
		}
	}
	if (loop_attach(f->memfd, "outage-bench", &f->loop, &err))
		fail("loop device");
}

static void floor_close(struct floor *f)
{
	loop_detach(&f->loop);
	close(f->memfd);
}

/* Puts the base back wherever the file has pages, and on it what a crash state has of its own. */
static void floor_load(struct floor *f, const struct pages *pages)
{
	off_t at = 0, stop;

	while ((at = lseek(f->memfd, at, SEEK_DATA)) >= 0) {
		stop = lseek(f->memfd, at, SEEK_HOLE);
		for (; at < stop; at += IMAGE_PAGE)
			if (memcmp(f->map + at, f->base + at, IMAGE_PAGE) != 0)
				memcpy(f->map + at, f->base + at, IMAGE_PAGE);
	}
	for (size_t i = 0; pages && i < pages->n; i++)
		memcpy(f->map + pages->v[i].number * IMAGE_PAGE, pages->v[i].data, IMAGE_PAGE);
}

static int read_all(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	char buf[65536];

	(void)ftw;
	if (type != FTW_F || !S_ISREG(st->st_mode))
		return 0;
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && read(fd, buf, sizeof(buf)) > 0)
		;
	return 0;
}

/* The target mounts whatever its disk says; for the floor that is the floor's own device. */
static void floor_mount(struct floor *f)
{
	auto_strbuf said = STRBUF_INIT;

	if (target_mount_device(&f->r->target, f->loop.path, &said, &err))
		fail(strbuf_str(&said));
}

static void floor_umount(struct floor *f)
{
	if (f->r->target.ops->umount(&f->r->target, false, &err))
		fail("unmount");
}

static void floor_sample(struct floor *f, const struct sample *s)
{
	struct exec x;

	floor_load(f, NULL);
	floor_mount(f);
	exec_init(&x, f->r->target.root, &s->w, &(struct exec_env){ 0 });
	for (size_t i = 0; i < s->w.ops.n; i++)
		exec_op(&x, i);
	exec_release(&x);
	floor_umount(f);
	for (size_t i = 0; i < s->states.n; i++) {
		floor_load(f, &s->states.v[i]);
		floor_mount(f);
		nftw(f->r->target.mnt, read_all, 16, FTW_PHYS | FTW_MOUNT);
		floor_umount(f);
	}
}

/* ---- the pipeline ---- */

static int ignore_finding(void *ctx, const struct run_case *c, struct err *e)
{
	(void)ctx;
	(void)c;
	(void)e;
	return 0;
}

static void pipeline_sample(struct run *r, const struct sample *s)
{
	struct run_reporter reporter = { .found = ignore_finding };
	struct run_totals totals = { 0 };

	if (run_workload(r, &s->w, &reporter, &totals, &err))
		fail("run");
}

/* ---- turns ---- */

struct times {
	double floor, pipeline;
	uint64_t workloads, states;
};

static void measure(const char *target, uint64_t n, unsigned worker, struct times *out)
{
	struct run_opts opts = { .target = { .spec = target, .worker = worker } };
	struct run *r = NULL;
	struct samples samples = { 0 };
	struct floor f;

	if (run_open(&opts, &r, &err))
		fail(target);
	make_samples(r, "seq-1", n, &samples);
	floor_open(&f, r);
	for (size_t from = 0; from < samples.n; from += TURN) {
		size_t to = min(from + TURN, samples.n);
		double start = now_s(), between;

		for (size_t i = from; i < to; i++)
			floor_sample(&f, &samples.v[i]);
		between = now_s();
		for (size_t i = from; i < to; i++)
			pipeline_sample(r, &samples.v[i]);
		out->pipeline += now_s() - between;
		out->floor += between - start;
	}
	out->workloads += samples.n;
	for (size_t i = 0; i < samples.n; i++)
		out->states += samples.v[i].states.n;
	floor_close(&f);
	run_close(r);
}

int main(int argc, char **argv)
{
	const char *target = argc > 1 ? argv[1] : "ext4";
	uint64_t n = argc > 2 ? strtoull(argv[2], NULL, 10) : 200;
	unsigned processes = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 1;
	double floor_rate = 0, pipeline_rate = 0;
	int fds[2];

	if (geteuid()) {
		printf("floor_skipped 1\n");
		return 0;
	}
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
		int status;

		if (wait(&status) < 0 || status)
			return 1;
		struct times t;
		if (read(fds[0], &t, sizeof(t)) != sizeof(t))
			return 1;
		floor_rate += (double)t.workloads / t.floor;
		pipeline_rate += (double)t.workloads / t.pipeline;
	}
	printf("%s_floor_per_s %.1f\n%s_pipeline_per_s %.1f\n%s_ratio %.2f\n", target, floor_rate,
	       target, pipeline_rate, target, pipeline_rate / floor_rate);
	return 0;
}
