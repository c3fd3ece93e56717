/* SPDX-License-Identifier: MIT */
/*
 * disk_log.h - the log of requests that the server of a disk file writes for its owner, in shared
 * memory: a ring of records with one writer, the server, and one reader, the owner.
 *
 * L1: a request's record is in the ring before its reply is sent, so the record of each completed
 *     request can be read.
 * L2: the server never waits for the reader; records that do not fit are counted in `lost`.
 * L3: records begin at multiples of 8, lie in one piece, and never overwrite unread ones.
 */
#ifndef RECORD_DISK_LOG_H
#define RECORD_DISK_LOG_H

#include <stdatomic.h>

#include "base/util.h"

enum { DISK_LOG_BYTES = 64 << 20 }; /* a power of two */

enum disk_log_watch {
	DISK_LOG_CHANGES,  /* modified ranges, without data */
	DISK_LOG_REQUESTS, /* everything */
};

struct disk_log_record {
	uint32_t kind; /* an event_kind; 0: skip to the end of the ring */
	int32_t result;
	uint64_t addr, len;
	uint64_t data_len; /* bytes that follow, padded to 8 */
};

struct disk_log {
	atomic_uint_least64_t head, tail; /* bytes written and read since the beginning */
	atomic_uint_least64_t lost;
	atomic_uint watch;
	atomic_bool busy;	      /* a request is being served */
	atomic_uint_least64_t served; /* requests so far, so that a hang can be noticed */
	/* For the keeper, which aborts and detaches these when the owner is gone. */
	atomic_uint connection; /* 0: not known yet */
	atomic_uint loop;	/* the device's number plus one; 0: none */
	atomic_int server;	/* process number; negative: -errno of a failed start */
	unsigned char ring[DISK_LOG_BYTES] __attribute__((aligned(64)));
};

struct disk_log *disk_log_new(void); /* NULL: no memory */
void disk_log_free(struct disk_log *l);

void disk_log_put(struct disk_log *l, const struct disk_log_record *r, const void *data);
/* Returns the oldest record, in place, or NULL. Valid until disk_log_next(). */
const struct disk_log_record *disk_log_peek(struct disk_log *l);
void disk_log_next(struct disk_log *l);

#endif
