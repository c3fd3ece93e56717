/* SPDX-License-Identifier: MIT */
/*
 * loop.h - a loop device for a file, set up so that the block layer treats it like a disk with a
 * volatile cache: flushes reach the recorder, requests are not rescheduled, and pages do not change
 * while they are written.
 */
#ifndef RECORD_LOOP_H
#define RECORD_LOOP_H

#include "base/err.h"

struct loop {
	char path[32]; /* "/dev/loop3"; empty while there is none */
	char name[64]; /* the name with which it was attached, as the kernel cuts it */
	unsigned number;
	dev_t dev;
	uint32_t sector_size;
	bool fua; /* the device takes FUA writes itself */
};

/* Attaches a free loop device (a new one, if all are taken) to `fd`. `name` is for people. */
int loop_attach(int fd, const char *name, struct loop *out, struct err *err) must_check;
/* Detaches the device; if it is still open, the kernel does that when it is closed. */
void loop_detach(struct loop *l);

/*
 * Calls `fn` for each loop device that has a file, with the file's name as the kernel shows it.
 * A result other than 0 ends the walk and is returned.
 */
typedef int (*loop_each_fn)(void *ctx, unsigned number, const char *backing_file);
int loop_each(loop_each_fn fn, void *ctx);
/*
 * Detaches a device whose owner (owner.h) is gone. Returns 0 or -errno; -ENXIO if there is no such
 * device any more: another process may have cleared it, and taken it, meanwhile.
 */
int loop_clear_orphan(unsigned number);

#endif
