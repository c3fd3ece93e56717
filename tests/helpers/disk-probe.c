/* SPDX-License-Identifier: MIT */
/*
 * disk-probe.c - drives a recording disk for t0400-disk.sh. Works in the current directory.
 *
 *	disk-probe RECORDER TEST [ARGUMENT]
 *
 * Each test says on standard output what it saw, and why it failed if it did. Exit status: 0 as it
 * should be, 1 not so, 77 the recorder does not work here. Everything is mounted in a namespace of
 * our own, and a clock ends what hangs.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/rng.h"
#include "record/disk_fuse.h"
#include "record/disk.h"
#include "record/disk_bpf.h"

enum { MIB = 1 << 20, PAGE = 4096, TIMEOUT_S = 900, TRIES = 5 };

static const char *recorder;

#define die(...)                                                                                   \
	do {                                                                                       \
		printf("line %d: ", __LINE__);                                                     \
		printf(__VA_ARGS__);                                                               \
		printf("\n");                                                                      \
		exit(1);                                                                           \
	} while (0)
#define must(call)                                                                                 \
	do {                                                                                       \
		if (call)                                                                          \
			die("%s: %s", #call, err.msg);                                             \
	} while (0)
#define want(cond, ...)                                                                            \
	do {                                                                                       \
		if (!(cond))                                                                       \
			die(__VA_ARGS__);                                                          \
	} while (0)

static struct err err;

/* ---- file systems ---- */

static const struct fs {
	const char *name;
	uint64_t size;
	const char *mkfs[16];
	const char *options;
} file_systems[] = {
	{ "ext4",
	  16 * MIB,
	  { "mkfs.ext4", "-q", "-F", "-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0" },
	  "" },
	{ "xfs", 32 * MIB, { "mkfs.xfs", "-q", "-f", "--unsupported" }, "nouuid" },
	{ "btrfs", 32 * MIB, { "mkfs.btrfs", "-q", "-f", "--mixed" }, "" },
};

static const struct fs *find_fs(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(file_systems); i++)
		if (streq(file_systems[i].name, name))
			return &file_systems[i];
	die("there is no file system %s here", name);
}

static void make_fs(const struct fs *fs, struct disk *d)
{
	const char *argv[18] = { 0 };
	struct proc_result res = { 0 };
	unsigned n = 0;

	while (fs->mkfs[n]) {
		argv[n] = fs->mkfs[n];
		n++;
	}
	argv[n] = disk_device(d);
	must(proc_run(
		&(struct proc_opts){ .argv = argv, .timeout_ms = 300000, .merge_stderr = true },
		&res, &err));
	want(res.exit_code == 0, "mkfs failed: %s", strbuf_str(&res.out));
	proc_result_release(&res);
}

static void mount_fs(const struct fs *fs, struct disk *d)
{
	want(mount(disk_device(d), "mnt", fs->name, 0, fs->options) == 0, "mount %s: %m",
	     disk_device(d));
}

static void umount_fs(void)
{
	want(umount("mnt") == 0, "umount: %m");
}

/*
 * Ends a recording. On a loaded machine a completion may be missed, which disk_stop() reports:
 * false then, and the caller records again; but not for ever.
 */
static bool stop_whole(struct disk *d)
{
	static unsigned not_whole;
	int r = disk_stop(d, &err);

	if (r != -EOVERFLOW)
		must(r);
	else
		printf("recorded again: %s\n", err.msg);
	err_clear(&err);
	want(r == 0 || ++not_whole <= TRIES, "too many records are not whole");
	return r == 0;
}

static struct disk *open_disk(uint64_t size)
{
	struct disk *d = NULL;

	must(disk_open(recorder, size, &d, &err));
	return d;
}

/* A disk with a file system that has been mounted once, and its image. */
static struct disk *new_fs(const struct fs *fs, struct image *base)
{
	struct disk *d = open_disk(fs->size);

	must(disk_start(d, NULL, &err));
	make_fs(fs, d);
	mount_fs(fs, d);
	umount_fs();
	must(disk_stop(d, &err));
	image_snapshot(disk_image(d), base);
	must(disk_verify(d, base, &err));
	return d;
}

static void mark(struct disk *d, enum event_kind kind, uint64_t op, const char *text)
{
	must(disk_mark(d,
		       &(struct event){ .kind = kind,
					.ref = op,
					.len = text ? strlen(text) : 0,
					.data = (const unsigned char *)text },
		       &err));
}

/* create, write, fsync; syncfs; each with its marks. */
static void workload(struct disk *d, size_t bytes)
{
	char *data = xmalloc(bytes);
	int fd;

	memset(data, 'x', bytes);
	mark(d, EV_OP_BEGIN, 0, "write and fsync");
	fd = open("mnt/file", O_CREAT | O_WRONLY | O_TRUNC, 0644);
	want(fd >= 0, "creat: %m");
	want(write(fd, data, bytes) == (ssize_t)bytes, "write: %m");
	want(fsync(fd) == 0, "fsync: %m");
	close(fd);
	mark(d, EV_OP_END, 0, NULL);
	mark(d, EV_PERSIST, 0, NULL);
	mark(d, EV_OP_BEGIN, 1, "mkdir and syncfs");
	want(mkdir("mnt/dir", 0755) == 0, "mkdir: %m");
	fd = open("mnt", O_RDONLY | O_DIRECTORY);
	want(fd >= 0 && syncfs(fd) == 0, "syncfs: %m"); /* sync(2) would wait for other disks too */
	close(fd);
	mark(d, EV_OP_END, 1, NULL);
	free(data);
}

/* ---- what a trace says ---- */

static void replay(const struct trace *t, struct image *img)
{
	for (size_t i = 0; i < t->events.n; i++) {
		const struct event *ev = &t->events.v[i];

		if (ev->kind == EV_WRITE)
			image_write(img, ev->addr, ev->data, ev->len);
		else if (event_modifies(ev->kind))
			image_zero(img, ev->addr, ev->len);
	}
}

/* The device itself, read through its front door, against what we think it holds. */
static void same_through_device(struct disk *d, const struct image *img)
{
	auto_image read_image = IMAGE_INIT;

	must(image_load_file(disk_device(d), &read_image, &err));
	want(image_equal(&read_image, img), "%s reads otherwise than its image", disk_device(d));
}

static size_t find_mark(const struct trace *t, enum event_kind kind, uint64_t op)
{
	for (size_t i = 0; i < t->events.n; i++)
		if (t->events.v[i].kind == kind && t->events.v[i].ref == op)
			return i;
	die("there is no mark of kind %d for operation %d", (int)kind, (int)op);
}

static unsigned count(const struct trace *t, size_t from, size_t to, enum event_kind kind,
		      uint32_t flags)
{
	unsigned n = 0;

	for (size_t i = from; i < to; i++)
		n += t->events.v[i].kind == kind && (t->events.v[i].flags & flags) == flags;
	return n;
}

static uint64_t bytes_written(const struct trace *t)
{
	uint64_t n = 0;

	for (size_t i = 0; i < t->events.n; i++)
		n += t->events.v[i].kind == EV_WRITE ? t->events.v[i].len : 0;
	return n;
}

static void show(const struct trace *t, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		const struct event *ev = &t->events.v[i];

		printf("%4zu %-8s", i, event_kind_name(ev->kind));
		if (ev->kind == EV_COMPLETE)
			printf(" of %llu: %d", (unsigned long long)ev->ref, ev->result);
		else if (event_is_request(ev->kind))
			printf(" %9llu +%-7llu%s%s%s", (unsigned long long)ev->addr,
			       (unsigned long long)ev->len,
			       ev->flags & EV_PREFLUSH ? " preflush" : "",
			       ev->flags & EV_FUA ? " fua" : "",
			       ev->flags & EV_META ? " meta" : "");
		printf("\n");
	}
}

/* Every request ends, once, after it began; only then has fsync returned. */
static void all_complete(const struct trace *t)
{
	unsigned requests = 0, completions = 0;

	for (size_t i = 0; i < t->events.n; i++) {
		requests += event_is_request(t->events.v[i].kind);
		completions += t->events.v[i].kind == EV_COMPLETE;
		want(t->events.v[i].result == 0, "event %zu failed", i);
	}
	want(requests == completions, "%u requests and %u completions", requests, completions);
}

/* The writes of the first operation that carry its data. */
static unsigned data_writes(const struct trace *t, size_t from, size_t to)
{
	unsigned n = 0;

	for (size_t i = from; i < to; i++) {
		const struct event *ev = &t->events.v[i];

		if (ev->kind == EV_WRITE && ev->data[0] == 'x' &&
		    !memcmp(ev->data, ev->data + 1, 100))
			n++;
	}
	return n;
}

/* What the file system must have done between its beginning and the return of fsync. */
static void check_sequence(const struct fs *fs, const struct trace *t)
{
	size_t from = find_mark(t, EV_OP_BEGIN, 0), to = find_mark(t, EV_OP_END, 0);
	unsigned flushes = count(t, from, to, EV_FLUSH, 0);

	want(data_writes(t, from, to) > 0, "the data was not written before fsync returned");
	for (size_t i = from; i < to; i++) {
		unsigned ends = 0;

		if (!event_is_request(t->events.v[i].kind) || t->events.v[i].kind == EV_READ)
			continue;
		for (size_t j = i; j < to; j++)
			ends += t->events.v[j].kind == EV_COMPLETE && t->events.v[j].ref == i;
		want(ends == 1, "request %zu did not end before fsync returned", i);
	}
	if (streq(recorder, "fuse")) {
		want(flushes > 0, "no flush before fsync returned");
		return;
	}
	if (streq(fs->name, "ext4")) {
		/* data; descriptor and metadata into the journal; the commit block */
		want(count(t, from, to, EV_WRITE, 0) >= 4, "too few writes for a journal commit");
		want(count(t, from, to, EV_WRITE, EV_PREFLUSH | EV_FUA) == 1, "no commit block");
	} else if (streq(fs->name, "xfs")) {
		want(count(t, from, to, EV_WRITE, EV_PREFLUSH | EV_FUA) >= 1, "no log write");
	} else {
		/* btrfs: the log tree, then a flush (or a superblock that brings one along), then
		 * the superblock */
		want(count(t, from, to, EV_WRITE, EV_FUA) >= 1, "no superblock with FUA");
		want(flushes + count(t, from, to, EV_WRITE, EV_PREFLUSH) >= 1, "no flush");
	}
}

/* ---- the tests ---- */

static void test_record(const char *arg)
{
	const struct fs *fs = find_fs(arg);
	auto_image base = IMAGE_INIT, after = IMAGE_INIT;
	struct trace t;
	struct disk *d = new_fs(fs, &base);

	trace_init(&t);
	do {
		must(disk_load(d, &base, &err));
		must(disk_start(d, &t, &err));
		mount_fs(fs, d);
		workload(d, 5 * PAGE);
		umount_fs();
	} while (!stop_whole(d));
	must(trace_validate(&t, &err));
	if (getenv("PROBE_SHOW"))
		show(&t, 0, t.events.n);

	image_snapshot(&base, &after);
	replay(&t, &after);
	must(disk_verify(d, &after, &err));
	want(image_equal(&after, disk_image(d)), "the disk's image is not its content");
	same_through_device(d, &after);
	all_complete(&t);
	check_sequence(fs, &t);

	/* There and back: exact, and only what differs is written. */
	uint64_t before = disk_pages_loaded(d);
	must(disk_load(d, &base, &err));
	must(disk_verify(d, &base, &err));
	same_through_device(d, &base);
	uint64_t there = disk_pages_loaded(d) - before;
	must(disk_load(d, &after, &err));
	must(disk_verify(d, &after, &err));
	want(disk_pages_loaded(d) - before == 2 * there, "not as many pages back as there");
	want(there > 0 && there < base.size / PAGE / 4, "%llu of %llu pages were written",
	     (unsigned long long)there, (unsigned long long)base.size / PAGE);

	/* What is mounted after a load is what was loaded. */
	mount_fs(fs, d);
	struct stat st;
	want(stat("mnt/file", &st) == 0 && st.st_size == 5 * PAGE, "the file is not there again");
	want(disk_load(d, &base, NULL) == -EBUSY, "a mounted disk let itself be loaded");
	umount_fs();
	must(disk_load(d, &base, &err));
	mount_fs(fs, d);
	want(stat("mnt/file", &st) < 0 && errno == ENOENT, "the file is still there");
	umount_fs();
	printf("%s on %s: %zu events, %u writes, %u flushes, %u reads, %u preflush, %u fua, "
	       "%llu pages restored\n",
	       fs->name, disk_recorder(d), t.events.n, count(&t, 0, t.events.n, EV_WRITE, 0),
	       count(&t, 0, t.events.n, EV_FLUSH, 0), count(&t, 0, t.events.n, EV_READ, 0),
	       count(&t, 0, t.events.n, EV_WRITE, EV_PREFLUSH),
	       count(&t, 0, t.events.n, EV_WRITE, EV_FUA), (unsigned long long)there);
	trace_release(&t);
	disk_close(d);
}

/* Large requests, which are split below, and discards: recorded once each, and exact. */
static void test_split(const char *arg)
{
	enum { SIZE = 64 * MIB, BIG = 8 * MIB };
	struct disk *d = open_disk(SIZE);
	auto_image img = IMAGE_INIT;
	struct trace t;
	struct rng rng;
	unsigned char *data = aligned_alloc(PAGE, BIG);
	uint64_t range[2] = { 5 * MIB, 2 * MIB };

	(void)arg;
	trace_init(&t);
	rng_init(&rng, 7);
	for (size_t i = 0; i < BIG; i += 8) {
		uint64_t x = rng_next(&rng);
		memcpy(data + i, &x, 8);
	}
	do {
		must(disk_start(d, &t, &err));
		int fd = open(disk_device(d), O_RDWR | O_DIRECT | O_CLOEXEC);
		want(fd >= 0, "open: %m");
		want(pwrite(fd, data, BIG, 4 * MIB) == BIG, "write: %m");
		want(pwrite(fd, data + 512, 3 * 512, 512) == 3 * 512, "small write: %m");
		want(ioctl(fd, BLKDISCARD, range) == 0, "discard: %m");
		want(fsync(fd) == 0, "fsync: %m");
		close(fd);
	} while (!stop_whole(d));
	image_init(&img, SIZE);
	replay(&t, &img);
	must(disk_verify(d, &img, &err));
	all_complete(&t);
	want(bytes_written(&t) == BIG + 3 * 512, "not every byte was recorded once");
	want(count(&t, 0, t.events.n, EV_FLUSH, 0) >= 1, "no flush");
	want(count(&t, 0, t.events.n, EV_DISCARD, 0) >= 1, "no discard");
	printf("8 MiB in %u writes, %u discards\n", count(&t, 0, t.events.n, EV_WRITE, 0),
	       count(&t, 0, t.events.n, EV_DISCARD, 0));
	free(data);
	trace_release(&t);
	disk_close(d);
}

/* The next event that is no read, nor the end of one: anybody may look at a device. */
static size_t next_event(const struct trace *t, size_t at)
{
	while (at < t->events.n) {
		const struct event *ev = &t->events.v[at];

		if (ev->kind == EV_COMPLETE)
			ev = &t->events.v[ev->ref];
		if (ev->kind != EV_READ)
			break;
		at++;
	}
	return at;
}

/* Writes to the same places with marks between them: each stands where it was made. */
static void test_order(const char *arg)
{
	enum { SIZE = 8 * MIB, N = 500 };
	struct disk *d = open_disk(SIZE);
	struct trace t;
	unsigned char *data = aligned_alloc(PAGE, PAGE);

	(void)arg;
	trace_init(&t);
	do {
		must(disk_start(d, &t, &err));
		int fd = open(disk_device(d), O_RDWR | O_DIRECT | O_CLOEXEC);
		want(fd >= 0, "open: %m");
		for (unsigned i = 0; i < N; i++) {
			memset(data, (int)i, PAGE);
			mark(d, EV_OP_BEGIN, i, "write");
			want(pwrite(fd, data, PAGE, (off_t)(i % 7) * PAGE) == PAGE, "write: %m");
			mark(d, EV_OP_END, i, NULL);
		}
		close(fd);
	} while (!stop_whole(d));
	/* begin, write, complete, end: exactly so, each time */
	size_t at = 0;
	for (unsigned i = 0; i < N; i++) {
		size_t begin = next_event(&t, at), write = next_event(&t, begin + 1);
		size_t done = next_event(&t, write + 1), end = next_event(&t, done + 1);

		want(end < t.events.n && t.events.v[begin].kind == EV_OP_BEGIN &&
			     t.events.v[begin].ref == i,
		     "operation %u has no mark", i);
		want(t.events.v[write].kind == EV_WRITE &&
			     t.events.v[write].data[0] == (unsigned char)i,
		     "operation %u: its write does not follow its mark, but event %zu", i, write);
		want(t.events.v[done].kind == EV_COMPLETE && t.events.v[done].ref == write,
		     "operation %u: its write does not end", i);
		want(t.events.v[end].kind == EV_OP_END, "operation %u does not end", i);
		at = end + 1;
	}
	free(data);
	trace_release(&t);
	disk_close(d);
}

static void test_overflow(const char *arg)
{
	enum { SIZE = 8 * MIB };
	struct trace t;
	struct err e = ERR_INIT;
	unsigned char *data = aligned_alloc(PAGE, MIB);

	(void)arg;
	disk_bpf_set_ring(64 << 10);
	struct disk *d = open_disk(SIZE);
	trace_init(&t);
	must(disk_start(d, &t, &err));
	int fd = open(disk_device(d), O_RDWR | O_DIRECT | O_CLOEXEC);
	want(fd >= 0, "open: %m");
	memset(data, 'o', MIB);
	want(pwrite(fd, data, MIB, PAGE) == MIB, "write: %m");
	close(fd);
	want(disk_stop(d, &e) == -EOVERFLOW, "the overflow was not reported");
	printf("%s\n", e.msg);
	want(t.events.n == 0, "a trace that is not whole was given out");
	must(disk_verify(d, disk_image(d), &err));

	/* And the next one is whole again. */
	must(disk_start(d, &t, &err));
	fd = open(disk_device(d), O_RDWR | O_DIRECT | O_CLOEXEC);
	want(pwrite(fd, data, PAGE, 0) == PAGE, "write: %m");
	close(fd);
	must(disk_stop(d, &err));
	want(count(&t, 0, t.events.n, EV_WRITE, 0) == 1, "the write is not there");
	must(disk_verify(d, disk_image(d), &err));

	/* Unrecorded changes that overflow: found when the disk is next used. */
	fd = open(disk_device(d), O_RDWR | O_DIRECT | O_CLOEXEC);
	for (unsigned i = 0; i < 2000; i++)
		want(pwrite(fd, data, 512, i * 512) == 512, "write: %m");
	close(fd);
	must(disk_start(d, NULL, &err));
	must(disk_stop(d, &err));
	must(disk_verify(d, disk_image(d), &err));
	free(data);
	trace_release(&t);
	disk_close(d);
}

static void write_something(size_t bytes)
{
	char *data = xmalloc(bytes);
	int fd = open("mnt/something", O_CREAT | O_WRONLY | O_TRUNC, 0644);

	memset(data, 's', bytes);
	want(fd >= 0 && write(fd, data, bytes) == (ssize_t)bytes && fsync(fd) == 0, "write: %m");
	close(fd);
	free(data);
}

/* Ends that are not seen while it is mounted: it does not take for ever, and nothing is made up. */
static void test_missed(const char *arg)
{
	const struct fs *fs = find_fs(arg);
	auto_image base = IMAGE_INIT;
	struct trace t;
	struct err e = ERR_INIT;
	struct disk *d = new_fs(fs, &base);

	trace_init(&t);
	mount_fs(fs, d);
	must(disk_start(d, NULL, &err));
	disk_bpf_miss_ends(2);
	write_something(4 * PAGE);
	must(disk_stop(d, &err));
	disk_bpf_miss_ends(0);
	umount_fs();
	must(disk_start(d, NULL, &err));
	must(disk_stop(d, &err));
	must(disk_verify(d, disk_image(d), &err));

	/* Of a trace nobody can say then what a flush covered. */
	mount_fs(fs, d);
	must(disk_start(d, &t, &err));
	disk_bpf_miss_ends(2);
	write_something(4 * PAGE);
	want(disk_stop(d, &e) == -EOVERFLOW, "a trace without all ends was given out");
	disk_bpf_miss_ends(0);
	printf("%s\n", e.msg);
	umount_fs();
	trace_release(&t);
	disk_close(d);
}

/* Holds a mounted, recording disk until it is killed. */
static void test_hold(const char *arg)
{
	const struct fs *fs = find_fs("ext4");
	auto_image base = IMAGE_INIT;
	struct trace t;
	struct disk *d = new_fs(fs, &base);

	(void)arg;
	trace_init(&t);
	must(disk_start(d, &t, &err));
	mount_fs(fs, d);
	workload(d, PAGE);
	printf("%s\n", disk_device(d));
	fflush(stdout);
	pause();
}

/* A server that has stopped: whoever waits for the disk gets an error, and not for ever. */
static void test_hang(const char *arg)
{
	struct disk *d = open_disk(MIB);
	int server = 0, fd;
	time_t start = time(NULL);
	char page[PAGE] = "page";

	(void)arg;
	want(sscanf(disk_file(d), "/proc/%d/", &server) == 1 && server > 1, "who serves %s?",
	     disk_file(d));
	fd = open(disk_device(d), O_WRONLY | O_CLOEXEC);
	want(fd >= 0 && pwrite(fd, page, PAGE, 0) == PAGE && fsync(fd) == 0, "write: %m");
	want(kill(server, SIGSTOP) == 0, "kill: %m");
	want(pwrite(fd, page, PAGE, 0) == PAGE && fsync(fd) < 0, "a stopped server wrote");
	printf("%m after %d s\n", (int)(time(NULL) - start));
	want(time(NULL) - start < 300, "it took too long");
	close(fd);
	disk_close(d);
	want(kill(server, 0) < 0, "the server is still there");
}

static void test_clean(const char *arg)
{
	unsigned removed = 0;

	(void)arg;
	must(disk_clean_up(&removed, &err));
	printf("%u\n", removed);
}

/* Our own memory; what is shared with the kernel or the server has a fixed size. */
static uint64_t memory_kib(void)
{
	char line[256];
	unsigned long long kib = 0;
	auto_file f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "RssAnon: %llu", &kib) == 1)
			break;
	want(kib > 0, "cannot read our own memory use");
	return kib;
}

static void test_rounds(const char *arg)
{
	const struct fs *fs = find_fs("ext4");
	unsigned rounds = arg ? (unsigned)strtoul(arg, NULL, 10) : 300;
	auto_image base = IMAGE_INIT;
	struct trace t;
	struct disk *d = new_fs(fs, &base);
	uint64_t after_warm_up = 0;

	trace_init(&t);
	for (unsigned i = 0; i < rounds; i++) {
		do {
			must(disk_load(d, &base, &err));
			must(disk_start(d, &t, &err));
			mount_fs(fs, d);
			workload(d, PAGE);
			umount_fs();
		} while (!stop_whole(d));
		if (i == rounds / 3)
			after_warm_up = memory_kib();
	}
	uint64_t end = memory_kib();
	printf("%u rounds, %llu KiB after a third, %llu KiB at the end\n", rounds,
	       (unsigned long long)after_warm_up, (unsigned long long)end);
#ifndef __SANITIZE_ADDRESS__ /* which keeps freed memory for a while */
	want(end < after_warm_up + 1024, "memory grows");
#endif
	trace_release(&t);
	disk_close(d);
}

/* Opening and closing, again and again, and two disks at once in one process. */
static void test_open(const char *arg)
{
	struct trace ta, tb;
	unsigned char page[PAGE];

	(void)arg;
	trace_init(&ta);
	trace_init(&tb);
	for (unsigned i = 0; i < 10; i++) {
		struct disk *a = open_disk(MIB), *b = open_disk(2 * MIB + 512);

		must(disk_start(a, &ta, &err));
		must(disk_start(b, &tb, &err));
		int fa = open(disk_device(a), O_WRONLY | O_CLOEXEC);
		int fb = open(disk_device(b), O_WRONLY | O_CLOEXEC);
		memset(page, 'a', PAGE);
		want(pwrite(fa, page, PAGE, 0) == PAGE && fsync(fa) == 0, "write: %m");
		memset(page, 'b', PAGE);
		want(pwrite(fb, page, PAGE, 0) == PAGE && fsync(fb) == 0, "write: %m");
		close(fa);
		close(fb);
		bool whole = stop_whole(a);
		whole = stop_whole(b) && whole;
		/* In which pieces a page comes depends on the block size that fits the device. */
		want(!whole || (bytes_written(&ta) == PAGE && bytes_written(&tb) == PAGE),
		     "not one page each");
		image_read(disk_image(a), 0, page, PAGE);
		want(page[0] == 'a', "the first disk holds another's data");
		image_read(disk_image(b), 0, page, PAGE);
		want(page[0] == 'b', "the second disk holds another's data");
		disk_close(a);
		disk_close(b);
	}
	trace_release(&ta);
	trace_release(&tb);
	want(disk_open(recorder, 100, NULL, NULL) == -EINVAL, "a disk of 100 bytes");
	want(disk_open("gramophone", MIB, NULL, NULL) == -EINVAL, "a recorder that is not there");
}

static const struct {
	const char *name;
	void (*run)(const char *arg);
} tests[] = {
	{ "record", test_record },     { "split", test_split }, { "order", test_order },
	{ "overflow", test_overflow }, { "hold", test_hold },	{ "clean", test_clean },
	{ "rounds", test_rounds },     { "open", test_open },	{ "hang", test_hang },
	{ "missed", test_missed },
};

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	recorder = argv[1];
	disk_register(&disk_fuse);
	alarm(TIMEOUT_S);
	if (streq(argv[2], "clean")) {
		test_clean(NULL);
		return 0;
	}
	if (disk_probe(recorder, &err)) {
		printf("%s\n", err.msg);
		return 77;
	}
	if (streq(argv[2], "probe"))
		return 0;
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		die("no mount namespace of our own: %m");
	if (mkdir("mnt", 0700) && errno != EEXIST)
		die("mkdir: %m");
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++) {
		if (!streq(tests[i].name, argv[2]))
			continue;
		tests[i].run(argv[3]);
		return 0;
	}
	return 2;
}
