/* SPDX-License-Identifier: MIT */
/*
 * writer.h - the stream (outage/pm_stream.h) as it is written: into a mapped file, by all threads
 * of all processes that were forked since, under one lock.
 *
 * W1: who reads memory for a record holds the lock, so a store that another one overwrote is
 *     recorded before that one, and replaying gives what is there.
 * W2: the place of the next record moves only when a record is whole: a process that is killed in
 *     between leaves nothing behind.
 * W3: the end is written by the last process that was counted.
 */
#ifndef PLUGIN_WRITER_H
#define PLUGIN_WRITER_H

#include <stdbool.h>

#include "outage/pm_stream.h"

struct writer;

/* The file is of the size that the stream may have. NULL, with errno, if it cannot be mapped. */
struct writer *writer_open(const char *path, uint32_t flags);

void writer_lock(struct writer *w);
void writer_unlock(struct writer *w);
/* In a child, before anything else. */
void writer_forked(void);

/* All of the following want the lock. `data` may be NULL if the kind has none. */
void writer_add(struct writer *w, const struct pm_stream_record *r, const void *data);
/* What is recorded is not to be believed, and why; only the first counts. */
void writer_trouble(struct writer *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void writer_set_region(struct writer *w, uint64_t size);
uint64_t writer_region(const struct writer *w);
/* The number of a CPU that nobody had before. */
uint16_t writer_new_cpu(struct writer *w);
/* Forgets all that was written, and whether it had ended. */
void writer_restart(struct writer *w);
/* One process more, or less; the last one writes the end. */
void writer_count(struct writer *w, int change);

#endif
