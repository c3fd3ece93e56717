/* SPDX-License-Identifier: MIT */
/*
 * pm.h - the memory: stores, flushes, fences, and nothing else touches it.
 *
 * Each primitive is real instructions in inline assembly, one for each record of the stream that it
 * writes if it is asked to (outage/pm_stream.h), so that a tracer of instructions and this one
 * see the same. Addresses are offsets in the memory, and the caller's contract.
 */
#ifndef PMFS_PM_H
#define PMFS_PM_H

#include "base/util.h"

enum { PM_LINE_SIZE = 64 };

enum pm_flush { PM_CLFLUSH, PM_CLFLUSHOPT, PM_CLWB };

struct pm {
	unsigned char *base;
	uint64_t size;
	enum pm_flush how;
	bool ordinary; /* plain memory: flushes and fences are written down and not executed */
	bool nt_tail;  /* the bug */

	/* The stream, while it is written. */
	bool traced;
	unsigned char *stream;
	size_t len, cap;
	uint64_t count;

	unsigned char *read; /* a byte for each line, set when it is loaded; NULL: do not */
};

/* The best that this processor has. */
enum pm_flush pm_best_flush(void);
/* -1: no such name. */
int pm_flush_by_name(const char *name);

void pm_load(struct pm *m, uint64_t addr, void *out, size_t len);
void pm_store(struct pm *m, uint64_t addr, const void *data, size_t len);
void pm_store8(struct pm *m, uint64_t addr, uint64_t value);
/* Past the cache; bytes before and behind the aligned words are stored and flushed. */
void pm_copy_nt(struct pm *m, uint64_t addr, const void *data, size_t len);
void pm_flush(struct pm *m, uint64_t addr, size_t len);
void pm_fence(struct pm *m);
static inline void pm_persist(struct pm *m, uint64_t addr, size_t len)
{
	pm_flush(m, addr, len);
	pm_fence(m);
}

void pm_begin(struct pm *m, unsigned long op, const char *text);
void pm_end(struct pm *m, unsigned long op);

/* A stream begins, in memory; ends, with its end record; and is dropped. */
void pm_trace_start(struct pm *m);
void pm_trace_end(struct pm *m);
void pm_trace_release(struct pm *m);

#endif
