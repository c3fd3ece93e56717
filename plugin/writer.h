/* SPDX-License-Identifier: MIT */
/*
 * writer.h - the stream (outage/pm_stream.h) as it is written: into a mapped file, by all threads
 * of all processes that were forked since, under one lock.
 *
 * W1: a thread that reads memory for a record holds the lock, so a store that another one overwrote
 *     is recorded before that one, and replaying gives what is there.
 * W2: a process may be killed while it writes a record. The next thread that takes the lock drops
 *     the batch that was open, if any, and says so: it is unknown what is missing.
 * W3: the end is written by the last process that was counted.
 * W4: the batch that is open is the last record, and its length is always right. The open batch is
 *     part of the checksum when it is closed: by any other record.
 */
#ifndef PLUGIN_WRITER_H
#define PLUGIN_WRITER_H

#include <stdbool.h>
#include <string.h>

#include "outage/pm_stream.h"

struct writer {	  /* in memory that forked processes share; only writer.c changes it, but for W4 */
	int lock; /* 0, or the process that has it */
	unsigned char *file;
	uint64_t at, size, count, sum;
	uint64_t ready; /* pages of the file up to here are there */
	struct {
		uint64_t from; /* where it is */
		uint64_t end;  /* the next one must not reach further; 0: none is open */
		uint64_t addr, pc, who;
		/* The store that was last, if that was last. */
		uint64_t next; /* where it ended; UINT64_MAX: there is none that can be continued */
		uint64_t last_pc;
		unsigned last; /* kind and shift */
		unsigned n;    /* how many the word at `more` has */
		uint64_t more; /* 0: none yet */
	} batch;
	uint32_t stacks; /* how many were written */
	uint32_t epoch;	 /* changes when all is begun anew */
	int alive;
	bool trouble, ended;
	bool new_call;		  /* of the next batch */
	bool busy;		  /* a record is being written: W2 */
	uint64_t end_at, end_sum; /* where the end was put, if it was */
};

/* The file is of the size that the stream may have. NULL, with errno, if it cannot be mapped. */
struct writer *writer_open(const char *path, uint32_t flags);

void writer_lock(struct writer *w);
void writer_unlock(struct writer *w);
/* In a child, before anything else. */
void writer_forked(void);

/* All of the following want the lock. `data` may be NULL if the kind has none. */
void writer_add(struct writer *w, const struct pm_stream_record *r, const void *data);
/* For what is of the kinds of a batch: 1 << `shift` bytes, or none. */
void writer_add_slowly(struct writer *w, unsigned kind, uint16_t cpu, uint32_t stack,
		       unsigned shift, uint64_t addr, uint64_t pc, const void *data);
/* The next record, a small store, is PM_STREAM_NEW_CALL. */
void writer_new_call(struct writer *w);
/* One more like the last one, from the same place in the program. */
void writer_add_same(struct writer *w, unsigned shift, const void *data);
/* Tells that the record is not to be believed, and why; only the first counts. */
void writer_trouble(struct writer *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void writer_set_region(struct writer *w, uint64_t size);
/* The number of a new CPU. */
uint16_t writer_new_cpu(struct writer *w);
/* Writes a stack, and returns its number; 0 if it cannot. */
uint32_t writer_new_stack(struct writer *w, const uint64_t *frames, size_t n);
/* Forgets all that was written, and whether it had ended. */
void writer_restart(struct writer *w);
/* One process more, or less; the last one writes the end. */
void writer_count(struct writer *w, int change);

/* ---- the fast way for what comes all the time ---- */

/* Around all that changes the stream, in the order of the program. */
static inline __attribute__((always_inline)) void writer_busy(struct writer *w, bool busy)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	w->busy = busy;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline __attribute__((always_inline)) uint64_t writer_who(uint16_t cpu, uint32_t stack)
{
	return cpu | (uint64_t)stack << 16;
}

/* Not more than is there: behind it the region may end. */
static inline __attribute__((always_inline)) uint64_t writer_value(const void *data, unsigned shift)
{
	uint8_t b;
	uint16_t h;
	uint32_t w;
	uint64_t d;

	switch (shift) {
	case 0:
		memcpy(&b, data, sizeof(b));
		return b;
	case 1:
		memcpy(&h, data, sizeof(h));
		return h;
	case 2:
		memcpy(&w, data, sizeof(w));
		return w;
	default:
		memcpy(&d, data, sizeof(d));
		return d;
	}
}

static inline __attribute__((always_inline)) void writer_moved(struct writer *w, uint64_t at)
{
	uint32_t len = (uint32_t)(at - w->batch.from - sizeof(struct pm_stream_record));

	memcpy(w->file + w->batch.from + offsetof(struct pm_stream_record, len), &len, 4);
	w->count++;
	w->at = at;
}

static inline __attribute__((always_inline)) void writer_put_small(struct writer *w, unsigned kind,
								   unsigned shift, uint64_t addr,
								   uint64_t pc, const void *data)
{
	unsigned char *to = w->file + w->at;
	uint64_t word = pm_stream_small(kind, shift, addr - w->batch.addr, pc - w->batch.pc);
	uint64_t at = w->at + 8;

	memcpy(to, &word, 8);
	w->batch.next = UINT64_MAX;
	if (kind == PM_STREAM_STORE || kind == PM_STREAM_NTSTORE) {
		word = writer_value(data, shift);
		memcpy(to + 8, &word, 8);
		at += 8;
		w->batch.next = addr + ((uint64_t)1 << shift);
		w->batch.last = kind | shift << 3;
		w->batch.last_pc = pc;
		w->batch.more = 0;
	}
	writer_moved(w, at);
}

/* A store that goes on where the last one ended, made `far` from it. */
static inline __attribute__((always_inline)) void writer_put_more(struct writer *w, unsigned shift,
								  uint64_t far, const void *data)
{
	uint64_t value = writer_value(data, shift), at = w->at;
	unsigned char *word = w->file + w->batch.more;

	if (w->batch.more && w->batch.n < 7 && *word == (PM_STREAM_MORE | w->batch.n << 3)) {
		w->batch.n++;
	} else {
		w->batch.more = at;
		word = w->file + at;
		memset(word, 0, 8);
		w->batch.n = 1;
		at += 8;
	}
	*word = (unsigned char)(PM_STREAM_MORE | w->batch.n << 3);
	word[w->batch.n] = (unsigned char)far;
	memcpy(w->file + at, &value, 8);
	w->batch.next += (uint64_t)1 << shift;
	w->batch.last_pc += far;
	writer_moved(w, at + 8);
}

static inline __attribute__((always_inline)) void writer_add_small(struct writer *w, unsigned kind,
								   uint16_t cpu, uint32_t stack,
								   unsigned shift, uint64_t addr,
								   uint64_t pc, const void *data)
{
	uint64_t far = pc - w->batch.pc, step = pc - w->batch.last_pc;

	writer_busy(w, true);
	if (kind == PM_STREAM_FENCE)
		addr = w->batch.addr;
	if (w->at + 16 > w->batch.end || w->batch.who != writer_who(cpu, stack))
		writer_add_slowly(w, kind, cpu, stack, shift, addr, pc, data);
	else if (addr == w->batch.next && w->batch.last == (kind | shift << 3) &&
		 (uint64_t)(int64_t)(int8_t)step == step)
		if (shift < 3 && !step)
			writer_add_same(w, shift, data);
		else
			writer_put_more(w, shift, step, data);
	else if (addr - w->batch.addr < PM_STREAM_WINDOW && (uint64_t)(int64_t)(int32_t)far == far)
		writer_put_small(w, kind, shift, addr, pc, data);
	else
		writer_add_slowly(w, kind, cpu, stack, shift, addr, pc, data);
	writer_busy(w, false);
}

#endif
