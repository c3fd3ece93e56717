/* SPDX-License-Identifier: MIT */
/*
 * pm_disk.h - persistent memory of a guest as a recording disk: the guest's machine has the same
 * file as memory that is our content, so the guest's stores are there at once.
 *
 * The guest's stores are seen by a tracer in the machine (pm_tracer.h), which the guest's driver
 * starts and stops. Without a tracer, that something changed is seen by comparing.
 */
#ifndef RECORD_PM_DISK_H
#define RECORD_PM_DISK_H

#include "record/disk.h"

#define PM_RECORDER "pm"

/* The functions of the guest's driver, which lets it run. Each is 0 or -errno. */
struct pm_disk_driver {
	void *ctx;
	/*
	 * From here on a tracer writes what is done into the stream, with loads or without. Nothing
	 * is mounted.
	 */
	int (*start)(void *ctx, bool loads, struct err *err);
	/* The guest makes a mark of its own, with this text. */
	int (*text)(void *ctx, const char *text, struct err *err);
	/* The tracer has written the end of the stream. */
	int (*stop)(void *ctx, struct err *err);
	/* Which machine writes it, between start and stop, for the trace. NULL: unknown. */
	uint64_t (*machine)(void *ctx);
};

/* Memory full of zeros. */
int pm_disk_open(uint64_t size, struct disk **out, struct err *err) must_check;
void pm_disk_drive(struct disk *d, const struct pm_disk_driver *by);

/* Files, for a machine and its tracer: the content, and where the stream is to be written. */
int pm_disk_memory(const struct disk *d);
int pm_disk_stream(struct disk *d, struct err *err) must_check;

/*
 * Tests the tracer: `run` lets the guest run the program of pm_selftest.h on the memory, between a
 * start and an end of the stream; 1: that cannot be done in this guest.
 */
int pm_disk_test(struct disk *d, int (*run)(void *ctx, struct err *err), void *ctx, struct err *err)
	must_check;

/* While a guest has it mounted, disk_load() refuses. */
void pm_disk_in_use(struct disk *d, bool in_use);
/* A path to the content, to be freed, for programs of this user that only read it. */
char *pm_disk_path(const struct disk *d);

#endif
