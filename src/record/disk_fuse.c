/* SPDX-License-Identifier: MIT */
/*
 * disk_fuse.c - the recorder that serves the file behind a loop device.
 *
 * This recorder is for machines on which BPF does not work. A file sees less than a device:
 * requests are merged or cut to the size of FUSE requests, FUA has become a write and a flush of
 * everything, and metadata is not marked. The loop driver sends one request after the other, so a
 * request has ended before the next begins, and each completion stands right behind its request.
 */
#include "record/disk_fuse.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "record/disk_log.h"
#include "record/disk_server.h"
#include "record/disk_impl.h"

enum { IDLE_MS = 10000 };

struct fuse_disk {
	struct disk base;
	struct disk_log *log;
	struct disk_server server;
	uint64_t lost; /* the log's counter, as last reported */
};

static struct fuse_disk *disk_of(struct disk *base)
{
	return container_of(base, struct fuse_disk, base);
}

static void fuse_close(struct disk *base)
{
	struct fuse_disk *d = disk_of(base);

	/* The device is closed first: it must not lose its file while it still writes. */
	loop_detach(&base->loop);
	if (d->log)
		atomic_store(&d->log->loop, 0);
	disk_server_stop(&d->server);
	disk_release(base);
	disk_log_free(d->log);
	free(d);
}

static int fuse_attach(struct fuse_disk *d, struct err *err)
{
	char name[DISK_NAME_SIZE];
	int r;

	d->log = disk_log_new();
	if (!d->log)
		return err_set(err, -ENOMEM, "no memory for the log of a disk file");
	disk_owner_name(name);
	r = disk_server_start(d->base.memfd, d->base.size, name, d->log, &d->server, err);
	if (r)
		return r;
	auto_fd file = open(d->server.path, O_RDWR | O_CLOEXEC);
	if (file < 0)
		return err_set(err, -errno, "cannot open the disk file %s: %m", d->server.path);
	r = loop_attach(file, name, &d->base.loop, err);
	if (r)
		return r;
	atomic_store(&d->log->loop, d->base.loop.number + 1);
	d->base.file = xstrdup(d->server.path);
	return 0;
}

static int need_device(struct err *err)
{
	if (access("/dev/fuse", R_OK | W_OK) == 0)
		return 0;
	return err_set(err, -errno,
		       "the fuse recorder needs /dev/fuse (%m); load it with: modprobe fuse");
}

static int fuse_open(uint64_t size, struct disk **out, struct err *err)
{
	int r = need_device(err);

	if (r)
		return r;
	struct fuse_disk *d = xcalloc(1, sizeof(*d));
	d->server.control = -1;
	r = disk_init(&d->base, &disk_fuse, size, err);
	if (!r)
		r = fuse_attach(d, err);
	if (r) {
		fuse_close(&d->base);
		return r;
	}
	*out = &d->base;
	return 0;
}

static int fuse_probe(struct err *err)
{
	struct disk *d;
	int r;

	if (geteuid())
		return err_set(err, -EPERM, "the fuse recorder needs root, for the loop device");
	r = fuse_open(1 << 20, &d, err);
	if (!r)
		fuse_close(d);
	return r;
}

/* Reads the log: into the trace, if there is one, or as changes. */
static int fuse_drain(struct disk *base, struct err *err)
{
	struct fuse_disk *d = disk_of(base);
	const struct disk_log_record *r;

	(void)err;
	while ((r = disk_log_peek(d->log))) {
		struct event ev = { .kind = r->kind, .addr = r->addr, .len = r->len };

		if (!base->trace) {
			if (event_modifies(r->kind))
				disk_changed(base, r->addr, r->len);
		} else if (r->kind == EV_WRITE && r->data_len != r->len) {
			/* The server was performing the write when recording began. */
			atomic_fetch_add(&d->log->lost, 1);
		} else {
			if (r->kind == EV_WRITE)
				ev.data = (const unsigned char *)(r + 1);
			trace_complete(base->trace, trace_append(base->trace, &ev), r->result);
		}
		disk_log_next(d->log);
	}
	return 0;
}

/* True once after records were lost. */
static bool was_lost(struct fuse_disk *d)
{
	uint64_t lost = atomic_load(&d->log->lost);
	bool news = lost != d->lost;

	d->lost = lost;
	return news;
}

static int fuse_settle(struct disk *base, struct err *err)
{
	int r = fuse_drain(base, err);

	if (was_lost(disk_of(base)))
		disk_unknown(base);
	return r;
}

static int fuse_start(struct disk *base, struct err *err)
{
	(void)err;
	atomic_store(&disk_of(base)->log->watch,
		     base->trace ? DISK_LOG_REQUESTS : DISK_LOG_CHANGES);
	return 0;
}

static int fuse_stop(struct disk *base, struct err *err)
{
	struct fuse_disk *d = disk_of(base);
	struct timespec pause = { .tv_nsec = 1000000 };
	int r;

	for (unsigned ms = 0; atomic_load(&d->log->busy); ms++) {
		if (ms > IDLE_MS)
			return err_set(err, -ETIMEDOUT, "requests to %s do not end",
				       base->loop.path);
		nanosleep(&pause, NULL);
	}
	atomic_store(&d->log->watch, DISK_LOG_CHANGES);
	r = fuse_drain(base, err);
	if (was_lost(d)) {
		disk_unknown(base);
		if (!r && base->trace)
			r = err_set(err, -EOVERFLOW,
				    "the record of %s is not whole: more was written between two "
				    "marks than the log holds",
				    base->loop.path);
	}
	return r;
}

const struct disk_ops disk_fuse = {
	.name = "fuse",
	.help = "serves the file behind a loop device; needs root and /dev/fuse; does not see FUA "
		"(a write and a flush come instead), nor what is metadata, nor requests in flight "
		"together",
	.info = "loop over FUSE: FUA is seen as write and flush",
	.probe = fuse_probe,
	.open = fuse_open,
	.close = fuse_close,
	.settle = fuse_settle,
	.start = fuse_start,
	.drain = fuse_drain,
	.stop = fuse_stop,
};
