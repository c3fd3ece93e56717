/* SPDX-License-Identifier: MIT */
/*
 * record-disk.c - a recording disk whose making, loading or recording fails at any place: the error
 * says so, no loop device, process or descriptor stays, and the next disk works.
 */
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/owner.h"
#include "leaks.h"
#include "record/disk_fuse.h"
#include "record/disk_impl.h"

enum { SIZE = 1 << 20, PAGE = 4096 };

static int count_ours(void *ctx, unsigned number, const char *file)
{
	char name[DISK_NAME_SIZE];
	unsigned *n = ctx;

	(void)number;
	*n += strstr(file, disk_owner_name(name)) != NULL;
	return 0;
}

/* Loop devices of this process. One that was detached goes when its last user, a prober, is gone.
 */
static unsigned loops(void)
{
	unsigned n = 1;

	for (int i = 0; n && i < 200; i++) {
		n = 0;
		if (loop_each(count_ours, &n))
			return 1;
		if (n)
			util_sleep_ms(10);
	}
	return n;
}

static int write_page(const struct disk *d, uint64_t at, const void *page)
{
	auto_fd fd = open(disk_device(d), O_RDWR | O_CLOEXEC);

	return fd < 0 || pwrite(fd, page, PAGE, (off_t)at) != PAGE || fsync(fd) < 0 ? -errno : 0;
}

/* Loads an image, records a write, and replays it. */
static int use(struct disk *d, const struct image *img, struct trace *t, struct err *err)
{
	unsigned char page[PAGE];
	int rc = disk_load(d, img, err);

	memset(page, 7, sizeof(page));
	if (!rc)
		rc = disk_start(d, t, err);
	if (rc)
		return rc;
	int written = write_page(d, 2 * PAGE, page);
	rc = disk_stop(d, err);
	if (!rc && written)
		return err_set(err, written, "cannot write to the disk");
	return rc;
}

static bool is_recorded(struct disk *d, const struct trace *t)
{
	unsigned char page[PAGE];

	image_read(disk_image(d), 2 * PAGE, page, sizeof(page));
	return page[0] == 7 && page[PAGE - 1] == 7 && t->events.n > 0;
}

static void test_faults(const char *recorder)
{
	struct fault_loop loop = { .error = ENOMEM };
	unsigned failed = 0, wrong = 0, before = loops();
	struct err err = ERR_INIT;
	auto_trace t;
	auto_image img;

	trace_init(&t);
	image_init(&img, SIZE);
	image_write(&img, 5 * PAGE + 3, "content", 7);
	size_t open_before = open_files();
	while (fault_loop_next(&loop)) {
		struct disk *d = NULL;

		err_clear(&err);
		int rc = disk_open(recorder, SIZE, &d, &err);
		if (!rc)
			rc = use(d, &img, &t, &err);
		fault_pause();
		bool bad = rc ? rc != -ENOMEM || !err.msg[0] || (d && t.events.n)
			      : !is_recorded(d, &t);
		/* A disk that failed can be used again. */
		if (rc && d)
			bad |= use(d, &img, &t, &err) || !is_recorded(d, &t);
		disk_close(d);
		failed += rc != 0;
		bad |= loops() != before || open_files() != open_before;
		if (bad)
			printf("# point %d: %d %s; %u loops, %zu files of %zu\n", loop.round, rc,
			       err.msg, loops(), open_files(), open_before);
		wrong += bad;
		trace_clear(&t);
	}
	ok(failed >= 5 && !wrong, "%s: %u places fail, and nothing stays", recorder, failed);
}

int main(void)
{
	static const char *const names[] = { "bpf", "fuse" };

	if (geteuid() != 0) {
		skip("a recording disk needs root");
		return done_testing();
	}
	disk_register(&disk_fuse);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct err err = ERR_INIT;

		if (disk_probe(names[i], &err))
			skip(err.msg);
		else
			test_faults(names[i]);
	}
	return done_testing();
}
