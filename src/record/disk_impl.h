/* SPDX-License-Identifier: MIT */
/*
 * disk_impl.h - the base of every recorder: struct disk is embedded in its own structure, the
 * content is a memfd that is mapped here, and disk.c has all that the recorders share.
 */
#ifndef RECORD_DISK_IMPL_H
#define RECORD_DISK_IMPL_H

#include "base/owner.h"
#include "base/vec.h"
#include "record/disk.h"
#include "record/loop.h"

struct disk_ops {
	const char *name;
	const char *info; /* the recorder and its limits, for the trace's header */
	enum disk_kind kind;
	/* A guest has it, as this: "disk". NULL: there is a device. */
	const char *in_guest;
	/* ---- of recorders that disk_open() knows ---- */
	const char *help; /* a sentence: its needs and limits */
	/* Checks that it works here: 0, or -errno and a sentence with a remedy. */
	int (*probe)(struct err *err);
	/* Makes a disk full of zeros. disk_open() has checked the size. */
	int (*open)(uint64_t size, struct disk **out, struct err *err);
	/* ---- of all ---- */
	void (*close)(struct disk *d);
	/* Takes the last changes of a guest that has unmounted it; NULL: there is no guest. */
	void (*unmounted)(struct disk *d);
	/*
	 * Calls disk_changed() or disk_unknown() for what was written without a recording since the
	 * last call.
	 */
	int (*settle)(struct disk *d, struct err *err);
	/* Records into d->trace; if that is NULL, only notes which parts change. */
	int (*start)(struct disk *d, struct err *err);
	/* Takes everything submitted so far into d->trace. */
	int (*drain)(struct disk *d, struct err *err);
	/* Takes a mark; NULL: the mark is appended after a drain(). */
	int (*mark)(struct disk *d, const struct event *ev, struct err *err);
	/* Waits for requests in flight, and ends recording; -EOVERFLOW: the trace is not whole. */
	int (*stop)(struct disk *d, struct err *err);
};

struct disk_range {
	uint64_t addr, len;
};

struct disk {
	const struct disk_ops *ops;
	uint64_t size;
	struct image image;
	int memfd;	    /* the content */
	unsigned char *map; /* the same, mapped; a read of a hole through it fills the hole */
	struct loop loop;
	char *file;  /* for disk_file(), or NULL */
	bool in_use; /* by a guest that has it mounted */
	bool recording;
	struct trace *trace;			  /* while recording; or NULL */
	struct vec_of(struct disk_range) changed; /* where the image may be behind */
	bool unknown;				  /* the image may be behind anywhere */
	uint64_t pages_loaded;
	uint64_t page_loaded; /* the page that was loaded last */
	unsigned check_every; /* 0 and 1: each trace is replayed and compared */
	uint64_t stops;	      /* the number of recordings with a trace */
	bool loads;
};

/* Writes a name for a memfd or file, by which disk_clean_up() finds its owner, this process. */
#define DISK_NAME_SIZE OWNER_NAME_SIZE
const char *disk_owner_name(char name[DISK_NAME_SIZE]);

/* Makes the memfd and the image; `d` is zeroed memory. Call disk_release() also after a failure. */
int disk_init(struct disk *d, const struct disk_ops *ops, uint64_t size, struct err *err)
	must_check;
void disk_release(struct disk *d);

void disk_changed(struct disk *d, uint64_t addr, uint64_t len);
void disk_unknown(struct disk *d);
/*
 * Compares content and image, and notes the changes: for recorders that do not see writes.
 */
void disk_find_changes(struct disk *d);

#endif
