/* SPDX-License-Identifier: MIT */
/*
 * disk.h - a recording disk: a block device, of this machine or of a guest, that a file system is
 * mounted on, whose content can be swapped, and whose requests become a trace.
 *
 * D1: the content of the device is `image` when it is not mounted: every write is applied to the
 *     image in the order in which it took effect, and disk_load() writes only the pages that
 *     differ.
 * D2: between disk_start() and disk_stop() every request is in the trace, in the order of
 *     submission, with its completion; marks stand where they were made. If an event was lost,
 *     disk_stop() fails: only a whole trace is given out.
 * D3: the device, its file and its processes are gone after disk_close(); after a crash of this
 *     process, disk_clean_up() finds and clears what is left.
 *
 * There are several recorders, each with a table of functions: "bpf" watches the block layer's
 * tracepoints, "fuse" (which a higher room registers) serves the file behind a loop device. One
 * disk per worker; a disk is used by one thread, and by the process that opened it: open disks
 * after fork(), not before.
 */
#ifndef RECORD_DISK_H
#define RECORD_DISK_H

#include "base/err.h"
#include "core/image.h"
#include "core/trace.h"

struct disk;
struct disk_ops; /* see disk_impl.h */

extern const struct disk_ops disk_bpf;

enum { DISK_RECORDERS_MAX = 8 };

/* Adds a recorder to those that disk_open() knows; "bpf" is always there. */
void disk_register(const struct disk_ops *ops);
/* Returns the i-th recorder's name, best first, and its needs and limits; NULL after the last. */
const char *disk_recorder_name(unsigned i, const char **help);
/* Checks that the recorder works here: 0, or -errno and a sentence with a remedy. */
int disk_probe(const char *recorder, struct err *err) must_check;

/* `recorder`: "bpf", "fuse", or NULL for the best that works here. `size` in bytes. */
int disk_open(const char *recorder, uint64_t size, struct disk **out, struct err *err) must_check;
void disk_close(struct disk *d); /* NULL is fine */

static inline void disk_cleanup(struct disk **d)
{
	disk_close(*d);
}
#define auto_disk __attribute__((cleanup(disk_cleanup))) struct disk *

/*
 * The disk's kind, which decides what a trace of it consists of: requests to a block device, or
 * stores, line flushes and fences of a processor, where the disk is persistent memory.
 */
enum disk_kind { DISK_BLOCK, DISK_PM };

enum disk_kind disk_kind(const struct disk *d);
const char *disk_recorder(const struct disk *d);
/* The device to mount, or to run mkfs on: "/dev/loop3". */
const char *disk_device(const struct disk *d);
/* The recorded file behind the device, for file systems that are served from a file; or NULL. */
const char *disk_file(const struct disk *d);
/* A path to the content, to be freed, for programs of this user that only read it. */
char *disk_path(const struct disk *d);
/*
 * Tells whether a guest has the disk mounted; then disk_load() fails. Only the driver of the guest
 * knows: from here, a mounted disk looks like any other use.
 */
void disk_set_in_use(struct disk *d, bool in_use);
/* The content of the device after the last disk_load(), disk_start() or disk_stop(). */
const struct image *disk_image(struct disk *d);
/* Pages that disk_load() has written so far. */
uint64_t disk_pages_loaded(const struct disk *d);

/* Makes `img` the content of the device. -EBUSY while it is mounted. */
int disk_load(struct disk *d, const struct image *img, struct err *err) must_check;

/*
 * Begins to record into `t` (cleared first; info is filled in), which belongs to the recorder until
 * disk_stop(). With t == NULL only the image is kept up to date, which is cheaper. The device may
 * be mounted already; disk_image() is its content at this moment, if no request was in flight.
 */
int disk_start(struct disk *d, struct trace *t, struct err *err) must_check;
/* Puts a mark (EV_OP_BEGIN, EV_OP_END, EV_PERSIST, EV_TEXT) between the requests made so far. */
int disk_mark(struct disk *d, const struct event *ev, struct err *err) must_check;
/*
 * Ends recording when all requests have ended. The trace is complete then, and disk_image() is the
 * content of the device; a replay of the trace is compared with it on all pages that were written.
 * Fails with -EOVERFLOW if events were lost, -EIO if the record does not replay; the trace is then
 * empty and the image is read back from the device.
 */
int disk_stop(struct disk *d, struct err *err) must_check;

/*
 * Includes loads in traces of persistent memory from now on, or not; they cost time. Traces of
 * block devices always have reads.
 */
void disk_want_loads(struct disk *d, bool want);

/* Makes disk_stop() check, which takes time, only every n-th trace, from the next one on. */
void disk_check_every(struct disk *d, unsigned n);

/* Compares the device's content with `expect`; the message has the first difference. */
int disk_verify(struct disk *d, const struct image *expect, struct err *err) must_check;

/* Removes what a killed run left behind: devices whose file is ours and whose owner is gone. */
int disk_clean_up(unsigned *removed, struct err *err) must_check;

#endif
