/* SPDX-License-Identifier: MIT */
/*
 * pm_disk.h - persistent memory of a guest as a recording disk: the file with the content is also
 * memory of the guest's machine, so the guest's stores change the content at once.
 *
 * The guest's stores are seen by a tracer in the machine (pm_tracer.h), which the guest's driver
 * starts and stops. Without a tracer, changes are found by comparing.
 */
#ifndef RECORD_PM_DISK_H
#define RECORD_PM_DISK_H

#include "record/disk.h"

#define PM_RECORDER "pm"

/* The functions of the guest's driver, which runs the guest. Each returns 0 or -errno. */
struct pm_disk_driver {
	void *ctx;
	/*
	 * Makes the tracer write the stream from now on, with loads or without. Nothing is mounted.
	 */
	int (*start)(void *ctx, bool loads, struct err *err);
	/* Makes the guest mark this text. */
	int (*text)(void *ctx, const char *text, struct err *err);
	/* Makes the tracer write the end of the stream. */
	int (*stop)(void *ctx, struct err *err);
	/* Returns the machine that writes the stream, between start and stop. NULL: unknown. */
	uint64_t (*machine)(void *ctx);
};

/* Opens memory full of zeros. */
int pm_disk_open(uint64_t size, struct disk **out, struct err *err) must_check;
void pm_disk_drive(struct disk *d, const struct pm_disk_driver *by);

/* The files for a machine and its tracer: the content, and the stream to be written. */
int pm_disk_memory(const struct disk *d);
int pm_disk_stream(struct disk *d, struct err *err) must_check;

/*
 * Tests the tracer: `run` lets the guest run the program of pm_selftest.h on the memory, between a
 * start and an end of the stream; it returns 1 if this guest cannot.
 */
int pm_disk_test(struct disk *d, int (*run)(void *ctx, struct err *err), void *ctx, struct err *err)
	must_check;

#endif
