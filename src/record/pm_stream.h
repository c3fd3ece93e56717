/* SPDX-License-Identifier: MIT */
/*
 * pm_stream.h - reads the stream of a tracer of persistent memory (outage/pm_stream.h), and makes a
 * trace of it. The stream may come from anywhere, and is validated.
 */
#ifndef RECORD_PM_STREAM_H
#define RECORD_PM_STREAM_H

#include <outage/pm_stream.h>

#include "core/image.h"
#include "core/trace.h"

struct pm_reader {
	const unsigned char *data;
	size_t at, len;
	struct pm_stream_header head;
	uint64_t count, sum;
	struct pm_stream_record batch; /* the batch that the next records belong to */
	size_t batch_at, batch_end;
	struct { /* stores that continue a run */
		struct pm_stream_record last;
		unsigned n, i; /* their number, and how many were read */
		bool same;
		size_t data, word;
	} more;
};

struct pm_record {
	struct pm_stream_record r;
	const unsigned char *data; /* `r.len` bytes, for kinds with data */
};

/* Begins to read; `data` is borrowed. */
int pm_reader_init(struct pm_reader *p, const void *data, size_t len, struct err *err) must_check;
/*
 * Returns 1 and a record, 0 at the end, or -errno: -EPIPE if the tracer did not come to its end,
 * -EIO if it reports a failure of its own, others for a wrong stream.
 */
int pm_reader_next(struct pm_reader *p, struct pm_record *out, struct err *err) must_check;

struct pm_counts {
	uint64_t stores, flushes, fences, loads, marks;
	uint64_t bytes; /* bytes of stores */
	uint32_t cpus;
};

void pm_count(struct pm_counts *c, const struct event *ev);

/*
 * Appends all of a stream to a trace that has no events. `counts` may be NULL. Memory is bounded by
 * four times `len`, or 64 MiB; -EFBIG if that is not enough.
 */
int pm_stream_read(const void *data, size_t len, struct trace *out, struct pm_counts *counts,
		   struct err *err) must_check;

/*
 * Applies the stores of a trace to `base`, which is as large as the region, and compares the result
 * with `after`. Fails with -EUCLEAN if they differ.
 */
int pm_replay_check(const struct trace *t, const struct image *base, const struct image *after,
		    struct err *err) must_check;

#endif
