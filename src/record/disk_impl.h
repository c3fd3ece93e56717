/* SPDX-License-Identifier: MIT */
/*
 * disk_impl.h - the base of every recorder: struct disk is embedded in its own structure, the
 * content lives in a memfd that is mapped here, and disk.c does everything that does not depend on
 * how the requests are seen.
 */
#ifndef RECORD_DISK_IMPL_H
#define RECORD_DISK_IMPL_H

#include "base/owner.h"
#include "base/vec.h"
#include "record/disk.h"
#include "record/loop.h"

struct disk_ops {
	const char *name;
	const char *help; /* a sentence: what it needs and what it cannot see */
	const char *info; /* the recorder and its limits, for the trace's header */
	enum disk_kind kind;
	/* Whether it works here: 0, or -errno and in `err` what is missing and what to do. */
	int (*probe)(struct err *err);
	/* A disk full of zeros. disk_open() has checked the size. */
	int (*open)(uint64_t size, struct disk **out, struct err *err);
	void (*close)(struct disk *d);
	/*
	 * Whether the content may be changed now; -EBUSY. NULL: there is a device, and a process
	 * that can open it for itself may.
	 */
	int (*claim)(struct disk *d, struct err *err);
	/*
	 * Tells with disk_changed() or disk_unknown() what was written, while nothing was being
	 * recorded, since the last call.
	 */
	int (*settle)(struct disk *d, struct err *err);
	/* Records into d->trace, or with NULL only which parts change. */
	int (*start)(struct disk *d, struct err *err);
	/* Takes everything submitted so far into d->trace. */
	int (*drain)(struct disk *d, struct err *err);
	/* Takes a mark; NULL: it is put behind what drain() took. */
	int (*mark)(struct disk *d, const struct event *ev, struct err *err);
	/* Waits for what is in flight and ends recording; -EOVERFLOW: the trace is not whole. */
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
	unsigned char *map; /* the same, mapped; reading a hole through it would fill the hole */
	struct loop loop;
	char *file; /* for disk_file(); NULL */
	bool recording;
	struct trace *trace;			  /* while recording; or NULL */
	struct vec_of(struct disk_range) changed; /* where the image may be behind */
	bool unknown;				  /* the image may be behind anywhere */
	uint64_t pages_loaded;
	uint64_t page_loaded; /* the last of them */
	unsigned check_every; /* 0 and 1: each trace is replayed and compared */
	uint64_t stops;	      /* of recordings with a trace */
	bool loads;
};

/* A name for a memfd or file by which disk_clean_up() knows it and its owner, this process. */
#define DISK_NAME_SIZE OWNER_NAME_SIZE
const char *disk_owner_name(char name[DISK_NAME_SIZE]);

/* Makes the memfd and the image; `d` is zeroed memory. On failure disk_release() is still due. */
int disk_init(struct disk *d, const struct disk_ops *ops, uint64_t size, struct err *err)
	must_check;
void disk_release(struct disk *d);

void disk_changed(struct disk *d, uint64_t addr, uint64_t len);
void disk_unknown(struct disk *d);
/*
 * Looks where the content is not what the image is: for recorders that cannot see what is written.
 */
void disk_find_changes(struct disk *d);

#endif
