/* SPDX-License-Identifier: MIT */
/*
 * loop.h - a loop device for a file, set up so that the block layer treats it like a disk with a
 * volatile cache: flushes are not thrown away before anyone sees them, nothing is scheduled, and
 * pages do not change while they are written.
 */
#ifndef RECORD_LOOP_H
#define RECORD_LOOP_H

#include "base/err.h"

struct loop {
	char path[32]; /* "/dev/loop3"; empty while there is none */
	char name[64]; /* the name it was attached as, cut to what the kernel keeps */
	unsigned number;
	dev_t dev;
	uint32_t sector_size;
	bool fua; /* the device takes FUA writes itself */
};

/* Puts a free loop device (a new one, if all are taken) over `fd`. `name` is for people. */
int loop_attach(int fd, const char *name, struct loop *out, struct err *err) must_check;
/* Gives it back. If something still has it open, the kernel does that when it is closed. */
void loop_detach(struct loop *l);

/*
 * Calls `fn` for each loop device that has a file, with the file's name as the kernel shows it.
 * A result other than 0 ends the walk and is returned.
 */
typedef int (*loop_each_fn)(void *ctx, unsigned number, const char *backing_file);
int loop_each(loop_each_fn fn, void *ctx);
/*
 * Detaches a device whose owner (owner.h) is gone: 0 or -errno. -ENXIO: it is none; others may have
 * cleared it, and taken it, since it was looked at.
 */
int loop_clear_orphan(unsigned number);

#endif
