/* SPDX-License-Identifier: MIT */
/*
 * disk.h - a recording disk: a block device, of this machine or of a guest, that a file system is
 * mounted on, whose content can be swapped, and whose requests become a trace.
 *
 * D1: the device holds exactly `image` when nothing is mounted: every write is applied to it in
 *     the order in which it took effect, and disk_load() writes only the pages that differ.
 * D2: between disk_start() and disk_stop() every request is in the trace, in the order of
 *     submission, with its completion; marks stand where they were made. If one was lost,
 *     disk_stop() fails: a trace is whole or it is not given out.
 * D3: the device, its file and its processes are gone after disk_close(), and after a crash of ours
 *     what is left can be found and cleared by disk_clean_up().
 *
 * Several recorders stand behind one table: "bpf" watches the block layer's tracepoints, "fuse"
 * (which a higher room registers) serves the file behind a loop device. One disk per worker; a disk
 * is used by one thread, and by the process that opened it: open disks after fork(), not before.
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

/* Adds a recorder to those that disk_open() knows; "bpf" is there from the start. */
void disk_register(const struct disk_ops *ops);
/* The i-th recorder's name, best first, and what it needs and cannot see; NULL after the last. */
const char *disk_recorder_name(unsigned i, const char **help);
/* Whether it works here: 0, or -errno and in `err` what is missing and what to do. */
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
/* "/dev/loop3": what to mount, or to run mkfs on. */
const char *disk_device(const struct disk *d);
/* The recorded file behind the device, for file systems that live on a file. NULL: none is. */
const char *disk_file(const struct disk *d);
/* The content of the device after the last disk_load(), disk_start() or disk_stop(). */
const struct image *disk_image(struct disk *d);
/* Pages that disk_load() has written so far. */
uint64_t disk_pages_loaded(const struct disk *d);

/* Makes the device hold `img`. -EBUSY while it is mounted. */
int disk_load(struct disk *d, const struct image *img, struct err *err) must_check;

/*
 * Begins to record into `t` (cleared first; info is filled in), which belongs to the recorder until
 * disk_stop(). With t == NULL only the image is kept up to date, which is cheaper. The device may
 * be mounted already; disk_image() is what it held at this moment, if nothing was in flight.
 */
int disk_start(struct disk *d, struct trace *t, struct err *err) must_check;
/* Puts a mark (EV_OP_BEGIN, EV_OP_END, EV_PERSIST, EV_TEXT) between the requests made so far. */
int disk_mark(struct disk *d, const struct event *ev, struct err *err) must_check;
/*
 * Ends recording when all requests have ended. The trace then holds everything, and disk_image()
 * what the device holds; that the one replays to the other is checked on the pages concerned.
 * Fails with -EOVERFLOW if events were lost, -EIO if the record does not replay; the trace is then
 * empty and the image is read back from the device.
 */
int disk_stop(struct disk *d, struct err *err) must_check;

/*
 * From now on a trace of persistent memory has loads, too, which costs time. Reads of block devices
 * are always there.
 */
void disk_want_loads(struct disk *d, bool want);

/* That check costs time; from now on it is made of every n-th trace only, the next one first. */
void disk_check_every(struct disk *d, unsigned n);

/* Compares the device's content with `expect`, byte by byte; says the first difference. */
int disk_verify(struct disk *d, const struct image *expect, struct err *err) must_check;

/* Removes what a killed run left behind: devices whose file is ours and whose owner is gone. */
int disk_clean_up(unsigned *removed, struct err *err) must_check;

#endif
