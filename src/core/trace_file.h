/* SPDX-License-Identifier: MIT */
/*
 * trace_file.h - trace files: written while a trace is recorded, and validated when they are read.
 *
 * The format is described byte by byte at the top of trace_format.h.
 */
#ifndef CORE_TRACE_FILE_H
#define CORE_TRACE_FILE_H

#include "core/trace.h"

/* Sizes of the format, for code that takes a file apart (the tests and the fuzzer do). */
enum {
	TRACE_FILE_VERSION = 1,
	TRACE_FILE_HEADER = 104,	 /* bytes before the first frame, checksum included */
	TRACE_FILE_CHECKSUM = 8,	 /* bytes at the end of the header and of each frame */
	TRACE_FRAME_HEADER = 24,	 /* bytes of a frame before its payload */
	TRACE_RECORD = 48,		 /* bytes of an event before its data */
	TRACE_PLACE = 16,		 /* further bytes of an event if trace_info.places */
	TRACE_FRAME_TARGET = 256 * 1024, /* a frame is written once it holds this much */
	TRACE_FRAME_RAW_MAX = TRACE_FRAME_TARGET + TRACE_RECORD + TRACE_PLACE + EVENT_DATA_MAX,
};

/*
 * Bytes of events and their data that trace_load() takes into memory. A file may hold more: a
 * writer and a reader go from frame to frame and have no such limit.
 */
#define TRACE_LOAD_MAX ((uint64_t)8 << 30)

/* ---- writing ---- */

/*
 * Writes to the final path as the events come. If this process crashes, the file is readable up to
 * the last frame that was written whole. After a failed call, all later ones fail.
 */
struct trace_writer;

int trace_writer_open(const char *path, const struct trace_info *info, struct trace_writer **out,
		      struct err *err) must_check;
/* Refuses an event that would make the trace invalid; the writer stays usable. */
int trace_writer_append(struct trace_writer *w, const struct event *ev, struct err *err) must_check;
/* Writes the current frame, however small, so that its events survive this process. */
int trace_writer_flush(struct trace_writer *w, struct err *err) must_check;
/* Marks the trace as complete and closes it. Frees the writer, also on failure. */
int trace_writer_close(struct trace_writer *w, struct err *err) must_check;
/* Gives up: the file stays, without an end frame. NULL is fine. */
void trace_writer_free(struct trace_writer *w);

/* Writes a whole trace; the file appears when it is complete. "-" is standard output. */
int trace_save(const char *path, const struct trace *t, struct err *err) must_check;
/* trace_save() for the file NAME below DIR; see base/below.h. */
int trace_save_below(const char *dir, const char *name, const struct trace *t, struct err *err)
	must_check;

/* ---- reading ---- */

struct trace_damage {
	bool found;
	bool cut_off;	 /* the file only ends too early, as after a crash of the recorder */
	uint64_t frame;	 /* the number of the frame, from 0 */
	uint64_t offset; /* where the frame begins in the file */
	uint64_t events; /* events before the damage, which are good */
	char text[512];	 /* one sentence that says all of this */
};

/*
 * Gives one event after the other, and holds only one frame in memory (and a byte for each earlier
 * event), however long the trace is.
 */
struct trace_reader;

/* "-" is standard input. Fails if the header is damaged. */
int trace_reader_open(const char *path, struct trace_reader **out, struct err *err) must_check;
/* The bytes must outlive the reader. */
int trace_reader_open_bytes(const void *data, size_t len, struct trace_reader **out,
			    struct err *err) must_check;
void trace_reader_free(struct trace_reader *r);
static inline void cleanup_trace_reader(struct trace_reader **r)
{
	trace_reader_free(*r);
}

const struct trace_info *trace_reader_info(const struct trace_reader *r);
/*
 * Returns 1 and an event whose data is valid until the next call; 0 at the end or at the first
 * damage, see trace_reader_damage(); or -errno.
 */
int trace_reader_next(struct trace_reader *r, struct event *ev, struct err *err) must_check;
const struct trace_damage *trace_reader_damage(const struct trace_reader *r);

/*
 * Reads a whole trace, which then passes trace_validate(). Damage is described in `damage`, and the
 * events before it are in `out`; with `damage` NULL it is a failure like any other. A trace of more
 * than TRACE_LOAD_MAX bytes is too large to be held in memory, which is no damage: -EFBIG.
 */
int trace_load(const char *path, struct trace *out, struct trace_damage *damage, struct err *err)
	must_check;
/* trace_load() with the caller's limit. */
int trace_load_limited(const char *path, uint64_t limit, struct trace *out,
		       struct trace_damage *damage, struct err *err) must_check;
/* trace_load() for the file NAME below DIR; damage is a failure. */
int trace_load_below(const char *dir, const char *name, struct trace *out, struct err *err)
	must_check;
int trace_load_bytes(const void *data, size_t len, struct trace *out, struct trace_damage *damage,
		     struct err *err) must_check;

#endif
