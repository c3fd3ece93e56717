/* SPDX-License-Identifier: MIT */
/*
 * bench_disk.c - how fast a disk is recorded: rounds a second of loading the base image, mounting
 * ext4, create + write + fsync, and umount, with and without recording. Prints "key value" lines.
 *
 * The two take turns, so that what else the machine does touches both alike.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/proc.h"
#include "record/disk.h"

enum { SIZE = 16 << 20, TURNS = 20, ROUNDS = 20 };

static struct err err;
static char dir[] = "/tmp/outage-bench-XXXXXX";

static void finish(int status, const char *what)
{
	if (what)
		fprintf(stderr, "bench_disk: %s: %s\n", what, err.code ? err.msg : strerror(errno));
	umount2(dir, MNT_DETACH);
	rmdir(dir);
	exit(status);
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void workload(void)
{
	char path[64], data[4096] = "data";

	snprintf(path, sizeof(path), "%s/file", dir);
	int fd = open(path, O_CREAT | O_WRONLY, 0644);
	if (fd < 0 || write(fd, data, sizeof(data)) < 0 || fsync(fd))
		finish(1, "workload");
	close(fd);
}

static void make_fs(struct disk *d)
{
	const char *argv[] = { "mkfs.ext4", "-q", "-F", "-b", "4096", disk_device(d), NULL };
	struct proc_result res = { 0 };

	if (proc_run(&(struct proc_opts){ .argv = argv, .timeout_ms = 60000 }, &res, &err) ||
	    res.exit_code)
		finish(1, "mkfs.ext4");
	proc_result_release(&res);
}

static void mount_fs(struct disk *d)
{
	if (mount(disk_device(d), dir, "ext4", 0, ""))
		finish(1, "mount");
}

static void umount_fs(void)
{
	if (umount(dir))
		finish(1, "umount");
}

/* Seconds for ROUNDS rounds; `t` NULL: nothing is recorded. */
static double turn(struct disk *d, const struct image *base, struct trace *t, unsigned *not_whole)
{
	double start = now_s();

	for (int i = 0; i < ROUNDS; i++) {
		if (disk_load(d, base, &err) || disk_start(d, t, &err))
			finish(1, "load");
		mount_fs(d);
		workload();
		umount_fs();
		int r = disk_stop(d, &err);
		if (r && r != -EOVERFLOW)
			finish(1, "stop");
		*not_whole += r != 0;
		err_clear(&err);
	}
	return now_s() - start;
}

int main(int argc, char **argv)
{
	struct disk *d = NULL;
	auto_image base = IMAGE_INIT;
	auto_trace t;
	double with = 0, without = 0;
	unsigned not_whole = 0;

	trace_init(&t);
	if (geteuid() || disk_open(argc > 1 ? argv[1] : NULL, SIZE, &d, &err)) {
		printf("disk_skipped 1\n");
		return 0;
	}
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    !mkdtemp(dir))
		finish(1, "namespace");
	if (disk_start(d, NULL, &err))
		finish(1, "start");
	make_fs(d);
	mount_fs(d);
	umount_fs();
	if (disk_stop(d, &err))
		finish(1, "stop");
	image_snapshot(disk_image(d), &base);
	for (int i = 0; i < TURNS; i++) {
		without += turn(d, &base, NULL, &not_whole);
		with += turn(d, &base, &t, &not_whole);
	}
	printf("disk_recorder %s\n", disk_recorder(d));
	printf("disk_rounds_per_s_recorded %.0f\n", TURNS * ROUNDS / with);
	printf("disk_rounds_per_s_unrecorded %.0f\n", TURNS * ROUNDS / without);
	printf("disk_recording_costs %.2f\n", with / without);
	printf("disk_events_per_round %zu\n", t.events.n);
	printf("disk_records_not_whole %u of %d\n", not_whole, TURNS * ROUNDS);
	disk_close(d);
	finish(0, NULL);
}
