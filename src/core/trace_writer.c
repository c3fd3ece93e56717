/* SPDX-License-Identifier: MIT */
/*
 * trace_writer.c - writes traces to files, whose format is in trace_format.h.
 *
 * F1: a frame is handed to the kernel in one write, so a crash of this process loses only the
 *     current frame.
 * F2: the writer writes no event and no frame that the reader would refuse: it asserts of a frame
 *     what the reader checks (trace_reader.c).
 * F5: the current frame holds the last events that were appended: `first` and `count` add up to the
 *     number of all.
 *
 * Not thread-safe; a writer has one owner.
 */
#include "core/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include <zstd.h>

#include "base/fault.h"
#include "base/hash.h"
#include "base/io.h"
#include "core/bytes.h"
#include "core/trace_format.h"

enum { PACK_LEVEL = 1 }; /* the fastest level, as a recorder slows down what it records */

static void add_checksum(struct strbuf *sb)
{
	strbuf_add_le64(sb, hash64(sb->buf, sb->len));
}

struct trace_writer {
	int fd;
	bool close_fd; /* false for the descriptor of an io_output */
	char *name;
	struct trace_info info;
	struct trace_check check;
	struct strbuf raw; /* the events of the current frame */
	struct strbuf out; /* the frame as it is written to the file */
	uint32_t count;	   /* events in `raw` */
	uint64_t first;	   /* number of the first of these */
	ZSTD_CCtx *zstd;
	int failed; /* -errno of the first failed write */
};

static int write_out(struct trace_writer *w, struct err *err)
{
	int rc = io_write_full(w->fd, w->out.buf, w->out.len);

	if (rc) {
		w->failed = rc;
		return err_set(err, rc, "cannot write %s: %m", w->name);
	}
	return 0;
}

static int write_header(struct trace_writer *w, struct err *err)
{
	struct strbuf *o = &w->out;
	char target[TRACE_TARGET_SIZE] = { 0 };

	/* The bytes behind the NUL in memory must not get into the file. */
	memcpy(target, w->info.target, strlen(w->info.target));
	strbuf_clear(o);
	strbuf_add(o, file_magic, sizeof(file_magic));
	strbuf_add_le32(o, TRACE_FILE_VERSION);
	strbuf_add_le32(o, (w->info.completions ? HEADER_COMPLETIONS : 0u) |
				   (w->info.places ? HEADER_PLACES : 0u));
	strbuf_add_le64(o, w->info.size);
	strbuf_add_le32(o, w->info.sector_size);
	strbuf_add_le32(o, 0);
	strbuf_add(o, target, sizeof(target));
	add_checksum(o);
	assert(o->len == TRACE_FILE_HEADER);
	return write_out(w, err);
}

/* Takes ownership of `fd` if `close_fd`, also on failure. */
static int writer_new(int fd, bool close_fd, const char *name, const struct trace_info *info,
		      struct trace_writer **out, struct err *err)
{
	struct trace_writer *w = xmalloc(sizeof(*w));

	*w = (struct trace_writer){ .fd = fd,
				    .close_fd = close_fd,
				    .name = xstrdup(name),
				    .info = *info,
				    .zstd = ZSTD_createCCtx() };
	int rc = w->zstd ? write_header(w, err)
			 : err_set(err, -ENOMEM, "not enough memory to compress %s", name);
	if (rc) {
		trace_writer_free(w);
		return rc;
	}
	*out = w;
	return 0;
}

int trace_writer_open(const char *path, const struct trace_info *info, struct trace_writer **out,
		      struct err *err)
{
	int rc = trace_check_info(info, err);
	int fault = fault_point("trace.create");

	if (rc)
		return rc;
	if (fault)
		return err_set(err, fault, "cannot create %s: %m", path);
	/* A group may not write to it, whatever umask says: see trust.h. */
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0644);
	if (fd < 0)
		return err_set(err, -errno, "cannot create %s: %m", path);
	return writer_new(fd, true, path, info, out, err);
}

static void encode_event(struct strbuf *sb, const struct event *ev, bool places)
{
	strbuf_add_le32(sb, (uint32_t)ev->kind);
	strbuf_add_le32(sb, ev->flags);
	strbuf_add_le32(sb, ev->cpu);
	strbuf_add_le32(sb, (uint32_t)ev->result);
	strbuf_add_le64(sb, ev->addr);
	strbuf_add_le64(sb, ev->len);
	strbuf_add_le64(sb, ev->ref);
	strbuf_add_le64(sb, ev->time_ns);
	if (places) {
		strbuf_add_le64(sb, ev->pc);
		strbuf_add_le32(sb, ev->stack);
		strbuf_add_le32(sb, 0);
	}
	if (event_has_data(ev->kind))
		strbuf_add(sb, ev->data, ev->len);
}

/* Asserts F2: the reader finds kind and length of the event, and nothing behind its data. */
static void check_encoded(const struct trace_writer *w, size_t at, const struct event *ev)
{
	const unsigned char *p = (const unsigned char *)w->raw.buf + at;
	size_t record = TRACE_RECORD + (w->info.places ? TRACE_PLACE : 0);

	assert(get_le32(p) == (uint32_t)ev->kind && get_le64(p + 24) == ev->len); /* F2 */
	assert(w->raw.len - at == record + (event_has_data(ev->kind) ? ev->len : 0));
	assert(w->raw.len <= TRACE_FRAME_RAW_MAX);	/* F2, F3 */
	assert(w->first + w->count == w->check.seen.n); /* F5 */
}

int trace_writer_append(struct trace_writer *w, const struct event *ev, struct err *err)
{
	if (w->failed)
		return err_set(err, w->failed, "cannot write %s: %m", w->name);
	int rc = trace_check_event(&w->check, &w->info, ev, err);
	if (rc)
		return rc;
	size_t before = w->raw.len;
	encode_event(&w->raw, ev, w->info.places);
	w->count++;
	check_encoded(w, before, ev);
	return w->raw.len >= TRACE_FRAME_TARGET ? trace_writer_flush(w, err) : 0;
}

/* Appends `raw` to `out`, packed if that makes it smaller. Returns its length. */
static uint32_t pack(ZSTD_CCtx *zstd, const struct strbuf *raw, struct strbuf *out)
{
	size_t room = ZSTD_compressBound(raw->len);
	char *to = strbuf_grow(out, room);
	size_t n = ZSTD_compressCCtx(zstd, to, room, raw->buf, raw->len, PACK_LEVEL);

	if (ZSTD_isError(n) || n >= raw->len) {
		strbuf_add(out, raw->buf, raw->len);
		return (uint32_t)raw->len;
	}
	out->len += n;
	return (uint32_t)n;
}

int trace_writer_flush(struct trace_writer *w, struct err *err)
{
	struct strbuf *o = &w->out;

	if (w->failed)
		return err_set(err, w->failed, "cannot write %s: %m", w->name);
	if (!w->count)
		return 0;
	strbuf_clear(o);
	strbuf_add(o, frame_magic, sizeof(frame_magic));
	strbuf_add_le32(o, (uint32_t)w->raw.len);
	strbuf_add_le32(o, 0); /* the packed length, once it is known */
	strbuf_add_le32(o, w->count);
	strbuf_add_le64(o, w->first);
	assert(o->len == TRACE_FRAME_HEADER);
	assert(w->count <= w->raw.len / TRACE_RECORD);	/* F2 */
	assert(w->first + w->count == w->check.seen.n); /* F5 */

	uint32_t packed = pack(w->zstd, &w->raw, o);
	assert(packed <= w->raw.len && o->len == TRACE_FRAME_HEADER + (size_t)packed); /* F2 */

	put_le32((unsigned char *)o->buf + 8, packed);
	add_checksum(o);
	w->first += w->count;
	w->count = 0;
	strbuf_clear(&w->raw);
	return write_out(w, err);
}

static int write_end(struct trace_writer *w, struct err *err)
{
	struct strbuf *o = &w->out;
	int rc = trace_writer_flush(w, err);

	if (rc)
		return rc;
	assert(!w->count && w->first == w->check.seen.n); /* F5 */
	strbuf_clear(o);
	strbuf_add(o, end_magic, sizeof(end_magic));
	for (int i = 0; i < 3; i++)
		strbuf_add_le32(o, 0);
	strbuf_add_le64(o, w->first);
	add_checksum(o);
	assert(o->len == TRACE_FRAME_HEADER + TRACE_FILE_CHECKSUM); /* F2 */
	return write_out(w, err);
}

int trace_writer_close(struct trace_writer *w, struct err *err)
{
	int rc = write_end(w, err);

	if (w->close_fd && close(steal_fd(&w->fd)) < 0 && !rc)
		rc = err_set(err, -errno, "cannot finish writing %s: %m", w->name);
	trace_writer_free(w);
	return rc;
}

void trace_writer_free(struct trace_writer *w)
{
	if (!w)
		return;
	if (w->close_fd)
		util_close(w->fd);
	ZSTD_freeCCtx(w->zstd);
	trace_check_release(&w->check);
	strbuf_release(&w->raw);
	strbuf_release(&w->out);
	free(w->name);
	free(w);
}

/* Writes the whole trace; takes ownership of the output. */
static int save_output(struct io_output *out, const struct trace *t, struct err *err)
{
	struct trace_writer *w = NULL;
	int rc = writer_new(out->fd, false, out->path, &t->info, &w, err);

	for (size_t i = 0; !rc && i < t->events.n; i++)
		rc = trace_writer_append(w, &t->events.v[i], err);
	if (rc)
		trace_writer_free(w);
	else
		rc = trace_writer_close(w, err);
	if (!rc)
		return io_output_commit(out, err);
	io_output_release(out);
	return rc;
}

int trace_save(const char *path, const struct trace *t, struct err *err)
{
	struct io_output out;
	int rc = trace_check_info(&t->info, err);

	if (!rc)
		rc = io_output_open(path, &out, err);
	return rc ? rc : save_output(&out, t, err);
}

int trace_save_below(const char *dir, const char *name, const struct trace *t, struct err *err)
{
	struct io_output out;
	int rc = trace_check_info(&t->info, err);

	if (!rc)
		rc = io_output_open_below(dir, name, false, &out, err);
	return rc ? rc : save_output(&out, t, err);
}
