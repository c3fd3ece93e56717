/* SPDX-License-Identifier: MIT */
/*
 * disk.c - the part of a recording disk that all recorders share.
 *
 * The content is a memfd, mapped here and served through a loop device. To swap it is to copy the
 * pages that differ, while no process has the device open: the last close of a block device drops
 * its cache, and the cache is flushed once more in case another process was reading (a prober that
 * was woken by mkfs).
 *
 * B1: `image` is the content except where `changed` and `unknown` say that it may be behind; both
 *     are empty after a load, or after the image was updated.
 * B2: disk_stop() gives out a trace only if replaying it on the image of disk_start() gives the
 *     content, compared byte for byte wherever the trace has writes; only every n-th trace is
 *     compared if disk_check_every() said so.
 */
#include "record/disk_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/io.h"
#include "core/patch.h"

enum { BUSY_TRIES = 200 };

static const struct disk_ops *recorders[DISK_RECORDERS_MAX] = { &disk_bpf };

void disk_register(const struct disk_ops *ops)
{
	unsigned i = 0;

	while (i < DISK_RECORDERS_MAX && recorders[i] && recorders[i] != ops)
		i++;
	assert(i < DISK_RECORDERS_MAX);
	recorders[i] = ops;
}

const char *disk_recorder_name(unsigned i, const char **help)
{
	if (i >= DISK_RECORDERS_MAX || !recorders[i])
		return NULL;
	if (help)
		*help = recorders[i]->help;
	return recorders[i]->name;
}

static const struct disk_ops *find(const char *name, struct err *err)
{
	auto_strbuf list = STRBUF_INIT;

	for (unsigned i = 0; i < DISK_RECORDERS_MAX && recorders[i]; i++) {
		if (streq(recorders[i]->name, name))
			return recorders[i];
		strbuf_addf(&list, "%s%s", i ? ", " : "", recorders[i]->name);
	}
	err_set(err, -EINVAL, "there is no recorder called %.40s; there are %s", name,
		strbuf_str(&list));
	return NULL;
}

int disk_probe(const char *recorder, struct err *err)
{
	const struct disk_ops *ops = find(recorder, err);

	return ops ? ops->probe(err) : -EINVAL;
}

int disk_open(const char *recorder, uint64_t size, struct disk **out, struct err *err)
{
	struct err first = ERR_INIT;
	int r = -ENODEV;

	if (size < IMAGE_PAGE || size % 512 || size > IMAGE_SIZE_MAX)
		return err_set(err, -EINVAL, "a disk cannot have %llu bytes", llu(size));
	if (recorder) {
		const struct disk_ops *ops = find(recorder, err);

		return ops ? ops->open(size, out, err) : -EINVAL;
	}
	for (unsigned i = 0; i < DISK_RECORDERS_MAX && recorders[i]; i++) {
		struct err e = ERR_INIT;

		r = recorders[i]->open(size, out, &e);
		if (!r)
			return 0;
		err_context(&e, "recorder %s", recorders[i]->name);
		if (!first.code)
			first = e;
	}
	return err_set(err, r, "%s", first.msg);
}

void disk_close(struct disk *d)
{
	if (d)
		d->ops->close(d);
}

enum disk_kind disk_kind(const struct disk *d)
{
	return d->ops->kind;
}

const char *disk_recorder(const struct disk *d)
{
	return d->ops->name;
}

const char *disk_device(const struct disk *d)
{
	return d->loop.path;
}

const char *disk_file(const struct disk *d)
{
	return d->file;
}

char *disk_path(const struct disk *d)
{
	return xasprintf("/proc/%d/fd/%d", (int)getpid(), d->memfd);
}

void disk_set_in_use(struct disk *d, bool in_use)
{
	assert(d->ops->in_guest);
	if (d->in_use && !in_use)
		d->ops->unmounted(d);
	d->in_use = in_use;
}

uint64_t disk_pages_loaded(const struct disk *d)
{
	return d->pages_loaded;
}

/* ---- the content ---- */

int disk_init(struct disk *d, const struct disk_ops *ops, uint64_t size, struct err *err)
{
	char name[DISK_NAME_SIZE];
	int r = fault_point("disk.memfd");

	d->ops = ops;
	d->size = size;
	image_init(&d->image, size);
	d->memfd = r ? -1 : memfd_create(disk_owner_name(name), MFD_CLOEXEC);
	if (d->memfd < 0)
		return err_set(err, r ? r : -errno, "cannot make memory for a disk: %m");
	if (ftruncate(d->memfd, (off_t)size) < 0)
		return err_set(err, -errno, "cannot make a disk of %llu bytes (%m); see --size",
			       llu(size));
	void *map =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, d->memfd, 0);
	if (map == MAP_FAILED)
		return err_set(err, -errno, "cannot map a disk of %llu bytes (%m); see --size",
			       llu(size));
	d->map = map;
	return 0;
}

void disk_release(struct disk *d)
{
	loop_detach(&d->loop);
	if (d->map)
		munmap(d->map, d->size);
	if (d->memfd >= 0)
		close(d->memfd);
	free(d->file);
	vec_release(&d->changed);
	image_release(&d->image);
}

void disk_changed(struct disk *d, uint64_t addr, uint64_t len)
{
	if (!image_range_ok(&d->image, addr, len))
		d->unknown = true;
	else if (len)
		vec_push(&d->changed, (struct disk_range){ addr, len });
}

void disk_unknown(struct disk *d)
{
	d->unknown = true;
}

/*
 * Gives the next range [*at, *stop) of [*at, end) that is not a hole; false if there is none. Holes
 * are not read, because a read through the mapping would allocate memory.
 */
static bool next_data(const struct disk *d, uint64_t *at, uint64_t end, uint64_t *stop)
{
	off_t data = *at < end ? lseek(d->memfd, (off_t)*at, SEEK_DATA) : -1;
	off_t hole;

	if (data < 0 || (uint64_t)data >= end)
		return false;
	hole = lseek(d->memfd, data, SEEK_HOLE);
	*at = (uint64_t)data;
	*stop = hole < 0 || (uint64_t)hole > end ? end : (uint64_t)hole;
	return true;
}

static void read_back(struct disk *d, uint64_t addr, uint64_t len)
{
	uint64_t at = addr, end = addr + len, stop;

	assert(image_range_ok(&d->image, addr, len)); /* B1: disk_changed() refuses others */
	for (; next_data(d, &at, end, &stop); at = stop) {
		assert(addr <= at && at < stop && stop <= end);
		image_zero(&d->image, addr, at - addr);
		image_write(&d->image, at, d->map + at, stop - at);
		addr = stop;
	}
	image_zero(&d->image, addr, end - addr);
}

void disk_find_changes(struct disk *d)
{
	unsigned char page[IMAGE_PAGE];
	uint64_t stop = 0;

	for (uint64_t at = 0, data = 0; at < d->size; at += IMAGE_PAGE) {
		size_t n = min(d->size - at, (uint64_t)IMAGE_PAGE);

		if (at >= stop) {
			data = at;
			if (!next_data(d, &data, d->size, &stop))
				data = stop = d->size;
		}
		image_read(&d->image, at, page, n);
		if (at < data ? !all_zero(page, n) : memcmp(page, d->map + at, n) != 0)
			disk_changed(d, at, n);
	}
}

/* Updates the image to the content of the device. */
static void catch_up(struct disk *d)
{
	if (d->unknown)
		read_back(d, 0, d->size);
	else
		for (size_t i = 0; i < d->changed.n; i++)
			read_back(d, d->changed.v[i].addr, d->changed.v[i].len);
	vec_clear(&d->changed);
	d->unknown = false;
}

/* Asserts B1 after a load, for the page that was loaded last. No process has the device open. */
static void check_loaded(const struct disk *d, uint64_t pages_before)
{
	unsigned char page[IMAGE_PAGE];
	uint64_t at = d->page_loaded * IMAGE_PAGE;

	assert(!d->changed.n && !d->unknown && d->image.size == d->size); /* B1 */
	/* The guest shares persistent memory, and may change it at any time. */
	if (d->pages_loaded == pages_before || d->ops->kind == DISK_PM)
		return;
	size_t n = min(d->size - at, (uint64_t)IMAGE_PAGE);
	image_read(&d->image, at, page, n);
	assert(memcmp(d->map + at, page, n) == 0); /* B1 */
}

static int load_page(void *ctx, uint64_t page, const unsigned char *have, const unsigned char *want)
{
	struct disk *d = ctx;
	uint64_t at = page * IMAGE_PAGE;

	(void)have;
	assert(at < d->size);
	memcpy(d->map + at, want, min((uint64_t)IMAGE_PAGE, d->size - at));
	d->pages_loaded++;
	d->page_loaded = page;
	return 0;
}

const struct image *disk_image(struct disk *d)
{
	catch_up(d);
	return &d->image;
}

/* Reads the next piece of [*from, to) that is not all zeros; returns its size, or 0. */
static size_t next_written(const struct image *img, uint64_t *from, uint64_t to,
			   unsigned char page[IMAGE_PAGE])
{
	for (size_t n; *from < to; *from += n) {
		n = min(to - *from, IMAGE_PAGE - *from % IMAGE_PAGE);
		image_read(img, *from, page, n);
		if (!all_zero(page, n))
			return n;
	}
	return 0;
}

/* Writes into a hole; where `img` is zero it stays a hole, to save memory. */
static void write_into_hole(struct disk *d, const struct image *img, uint64_t from, uint64_t to)
{
	unsigned char page[IMAGE_PAGE];

	for (size_t n; (n = next_written(img, &from, to, page)); from += n)
		memcpy(d->map + from, page, n);
}

/*
 * Writes `img` wherever the image may be behind. The old content is not read, as no caller needs it
 * after a recovery.
 */
static void write_over(struct disk *d, const struct image *img)
{
	for (size_t i = 0; i < d->changed.n; i++) {
		uint64_t at = d->changed.v[i].addr, end = at + d->changed.v[i].len, stop;

		for (uint64_t from = at; from < end; from = at = stop) {
			if (!next_data(d, &at, end, &stop))
				at = stop = end;
			write_into_hole(d, img, from, at);
			image_read(img, at, d->map + at, stop - at);
		}
	}
	vec_clear(&d->changed);
}

/* Opens the device with O_EXCL: fails if it is mounted, or another process has it open so. */
static int open_exclusive(const char *path)
{
	const struct timespec nap = { .tv_nsec = 5000000 };
	int fd;

	for (unsigned tries = 0;; tries++) {
		fd = open(path, O_RDONLY | O_EXCL | O_CLOEXEC);
		if (fd >= 0 || errno != EBUSY || tries == BUSY_TRIES)
			return fd;
		nanosleep(&nap, NULL);
	}
}

/* Claims the device, and drops the kernel's cache of it. */
static int claim_device(struct disk *d, int *dev, struct err *err)
{
	int r = fault_point("disk.load");

	if (d->ops->in_guest && r)
		return err_set(err, r, "cannot change what %s holds", d->loop.path);
	if (d->ops->in_guest)
		return d->in_use ? err_set(err, -EBUSY,
					   "cannot change what the guest's %s holds while the "
					   "guest has it mounted",
					   d->ops->in_guest)
				 : 0;
	*dev = r ? -1 : open_exclusive(d->loop.path);
	if (*dev < 0)
		return err_set(err, r ? r : -errno, "cannot change what %s holds: %m",
			       d->loop.path);
	return 0;
}

static int drop_cache(const struct disk *d, int dev, struct err *err)
{
	if (dev >= 0 && ioctl(dev, BLKFLSBUF, 0) < 0)
		return err_set(err, -errno, "cannot drop the cache of %s: %m", d->loop.path);
	return 0;
}

int disk_load(struct disk *d, const struct image *img, struct err *err)
{
	auto_fd dev = -1;
	uint64_t before = d->pages_loaded;

	assert(!d->recording);
	if (img->size != d->size)
		return err_set(err, -EINVAL, "an image of %llu bytes does not fit a disk of %llu",
			       llu(img->size), llu(d->size));
	int r = claim_device(d, &dev, err);
	if (!r)
		r = drop_cache(d, dev, err);
	if (!r)
		r = d->ops->settle(d, err);
	if (r)
		return r;
	if (d->unknown)
		catch_up(d);
	write_over(d, img);
	image_diff(&d->image, img, load_page, d);
	image_restore(&d->image, img);
	check_loaded(d, before);
	return drop_cache(d, dev, err);
}

/* ---- recording ---- */

int disk_start(struct disk *d, struct trace *t, struct err *err)
{
	int r;

	assert(!d->recording);
	r = d->ops->settle(d, err);
	if (r)
		return r;
	catch_up(d);
	assert(!d->changed.n && !d->unknown); /* B1 */
	if (t) {
		trace_clear(t);
		assert(!t->events.n);
		t->info = (struct trace_info){ .size = d->size,
					       .sector_size = d->loop.sector_size,
					       .completions = d->ops->kind == DISK_BLOCK };
		snprintf(t->info.target, sizeof(t->info.target), "%s", d->ops->info);
	}
	d->trace = t;
	d->recording = true;
	r = d->ops->start(d, err);
	if (r) {
		d->trace = NULL;
		d->recording = false;
	}
	return r;
}

int disk_mark(struct disk *d, const struct event *ev, struct err *err)
{
	int r;

	assert(d->recording);
	assert(ev->kind == EV_OP_BEGIN || ev->kind == EV_OP_END || ev->kind == EV_PERSIST ||
	       ev->kind == EV_TEXT);
	if (!d->trace)
		return 0;
	if (d->ops->mark)
		return d->ops->mark(d, ev, err);
	r = d->ops->drain(d, err);
	if (!r)
		trace_append(d->trace, ev);
	return r;
}

/* True if the image is zero in a range, in which the device has a hole. */
static bool hole_in_image(const struct disk *d, uint64_t from, uint64_t to)
{
	unsigned char page[IMAGE_PAGE];

	return !next_written(&d->image, &from, to, page);
}

/* Compares the image, to which the trace was applied, with the content of the device. */
static int compare(struct disk *d, uint64_t addr, uint64_t len, struct err *err)
{
	unsigned char page[IMAGE_PAGE];
	uint64_t at = addr, stop = addr, end = addr + len;

	for (uint64_t from = addr; from < end; from = stop) {
		at = from;
		if (!next_data(d, &at, end, &stop))
			at = stop = end;
		if (!hole_in_image(d, from, at))
			return err_set(err, -EIO,
				       "the record of %s does not replay: between %llu and %llu "
				       "the device is empty, and the record is not",
				       d->loop.path, llu(from), llu(at));
		while (at < stop) {
			size_t n = min(stop - at, IMAGE_PAGE - at % IMAGE_PAGE), i = 0;

			image_read(&d->image, at, page, n);
			if (memcmp(page, d->map + at, n) != 0) {
				while (page[i] == d->map[at + i])
					i++;
				return err_set(err, -EIO,
					       "the record of %s does not replay: byte %llu is "
					       "%02x on the device, %02x in the record",
					       d->loop.path, llu(at) + i, d->map[at + i], page[i]);
			}
			at += n;
		}
	}
	return 0;
}

/* Applies the trace to the image and checks it against the content (B2). */
static int replay(struct disk *d, struct trace *t, struct err *err)
{
	int r = fault_point("disk.replay");

	patch_trace(t, &d->image);
	if (r)
		return err_set(err, r, "cannot compare the record of %s with it: %m", d->loop.path);
	/* The trace does not tell where a missed store was, so all is compared. */
	if (d->ops->kind == DISK_PM)
		return compare(d, 0, d->size, err);
	for (size_t i = 0; i < t->events.n && !r; i++) {
		const struct event *ev = &t->events.v[i];

		if (event_modifies(ev->kind))
			r = compare(d, ev->addr, ev->len, err);
	}
	return r;
}

static void note_changes(struct disk *d, const struct trace *t)
{
	for (size_t i = 0; i < t->events.n; i++)
		if (event_modifies(t->events.v[i].kind))
			disk_changed(d, t->events.v[i].addr, t->events.v[i].len);
}

void disk_want_loads(struct disk *d, bool want)
{
	d->loads = want;
}

void disk_check_every(struct disk *d, unsigned n)
{
	d->check_every = n;
}

int disk_stop(struct disk *d, struct err *err)
{
	struct trace *t = d->trace;
	int r;

	assert(d->recording);
	r = d->ops->stop(d, err);
	d->trace = NULL;
	d->recording = false;
	if (!r && t)
		r = trace_validate(t, err);
	if (!r && t && (d->ops->kind == DISK_PM || d->stops++ % max(d->check_every, 1U) == 0))
		r = replay(d, t, err);
	else if (!r && t)
		note_changes(d, t);
	if (r) {
		if (t)
			trace_clear(t);
		disk_unknown(d);
	}
	assert(!d->trace && (!r || !t || !t->events.n)); /* B2 */
	return r;
}

/* ---- checking and clearing ---- */

int disk_verify(struct disk *d, const struct image *expect, struct err *err)
{
	auto_image now = IMAGE_INIT;
	uint64_t at = 0;
	int r = image_load_fd(d->memfd, d->loop.path, &now, err);

	if (r)
		return r;
	if (expect->size != now.size)
		return err_set(err, -EIO, "%s has %llu bytes, expected %llu", d->loop.path,
			       llu(now.size), llu(expect->size));
	if (image_differs(&now, expect, &at)) {
		unsigned char have, want;

		image_read(&now, at, &have, 1);
		image_read(expect, at, &want, 1);
		return err_set(err, -EIO, "byte %llu of %s is %02x, expected %02x", llu(at),
			       d->loop.path, have, want);
	}
	return 0;
}

const char *disk_owner_name(char name[DISK_NAME_SIZE])
{
	return owner_name("disk", name);
}

static int clear_if_orphan(void *ctx, unsigned number, const char *file)
{
	unsigned *removed = ctx;
	int r;

	if (owner_state(file, NULL) != OWNER_GONE)
		return 0;
	r = loop_clear_orphan(number);
	if (r == -ENXIO || r == -ENOENT)
		return 0; /* another process clears at the same time */
	if (!r)
		(*removed)++;
	return r;
}

int disk_clean_up(unsigned *removed, struct err *err)
{
	unsigned n = 0;
	int r = loop_each(clear_if_orphan, &n);

	if (removed)
		*removed = n;
	return r ? err_set(err, r, "cannot detach a loop device that was left behind: %m") : 0;
}
