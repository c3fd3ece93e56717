/* SPDX-License-Identifier: MIT */
/*
 * trace_reader.c - reads traces from files, whose format is in trace_format.h.
 *
 * F3: the reader uses no length before it has compared it with a limit of this format, and no
 *     payload before it has checked the checksum.
 * F4: a file without an end frame is reported as cut off.
 * F6: `left` events of the frame begin at `at`; the last of them ends where the frame ends.
 *
 * Not thread-safe; a reader has one owner.
 */
#include "core/trace_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <zstd.h>

#include "base/hash.h"
#include "core/bytes.h"
#include "core/source.h"
#include "core/trace_format.h"

struct trace_reader {
	struct source src;
	struct trace_info info;
	struct trace_check check;
	struct trace_damage damage;
	struct strbuf file; /* the current frame as it is in the file */
	struct strbuf raw;  /* its payload, unpacked */
	size_t at;	    /* where the next event begins in `raw` */
	uint32_t left;	    /* events of the frame that were not given out yet */
	uint64_t frame;	    /* number of the next frame */
	bool done;
	ZSTD_DCtx *zstd;
};

/* The fields of a frame header. */
struct frame_head {
	bool end;
	uint32_t raw_len, packed_len, count;
	uint64_t first;
};

/* Ends the reading, and describes the damage. Returns 0, as there is no event. */
static int printf_like(3, 4) damaged(struct trace_reader *r, bool cut_off, const char *why, ...)
{
	struct trace_damage *d = &r->damage;
	size_t size = sizeof(d->text);
	va_list ap;

	d->found = true;
	d->cut_off = cut_off;
	d->events = r->check.seen.n;
	int n = snprintf(d->text, size, "frame %" PRIu64 " at byte %" PRIu64 ": ", d->frame,
			 d->offset);
	assert(n > 0);
	va_start(ap, why);
	n += vsnprintf(d->text + n, size - (size_t)n, why, ap);
	va_end(ap);
	if ((size_t)n < size)
		snprintf(d->text + n, size - (size_t)n,
			 "; %" PRIu64 " event%s before it %s readable", d->events,
			 d->events == 1 ? "" : "s", d->events == 1 ? "is" : "are");
	r->done = true;
	return 0;
}

static bool checksum_ok(const unsigned char *data, size_t len)
{
	return hash64(data, len) == get_le64(data + len);
}

static int read_header(struct trace_reader *r, struct err *err)
{
	unsigned char h[TRACE_FILE_HEADER];
	const char *name = r->src.name;
	ssize_t n = source_read(&r->src, h, sizeof(h), err);

	if (n < 0)
		return (int)n;
	if ((size_t)n < sizeof(file_magic) || memcmp(h, file_magic, sizeof(file_magic)) != 0)
		return err_set(err, -EINVAL, "%s is not a trace", name);
	/* The version is checked first: another one may have another header. */
	if (n >= 12 && get_le32(h + 8) != TRACE_FILE_VERSION)
		return err_set(err, -EINVAL,
			       "%s is a trace of version %" PRIu32
			       ", which is not supported; this program reads version %d",
			       name, get_le32(h + 8), TRACE_FILE_VERSION);
	if ((size_t)n < sizeof(h))
		return err_set(err, -EINVAL, "%s is a trace that was cut off within its header",
			       name);
	if (!checksum_ok(h, sizeof(h) - TRACE_FILE_CHECKSUM))
		return err_set(err, -EINVAL,
			       "%s is a trace with a damaged header: its checksum does not match",
			       name);
	if ((get_le32(h + 12) & ~(uint32_t)HEADER_FLAGS_ALL) || get_le32(h + 28))
		return err_set(err, -EINVAL, "%s is a trace with an unknown kind of header", name);
	r->info.completions = get_le32(h + 12) & HEADER_COMPLETIONS;
	r->info.places = get_le32(h + 12) & HEADER_PLACES;
	r->info.size = get_le64(h + 16);
	r->info.sector_size = get_le32(h + 24);
	memcpy(r->info.target, h + 32, sizeof(r->info.target));
	if (trace_check_info(&r->info, err))
		return err_context(err, "%s is a trace with a bad header", name);
	return 0;
}

/* Takes ownership of the source. */
static int reader_new(struct source *src, struct trace_reader **out, struct err *err)
{
	struct trace_reader *r = xmalloc(sizeof(*r));

	*r = (struct trace_reader){ .src = *src, .zstd = ZSTD_createDCtx() };
	int rc = r->zstd ? read_header(r, err)
			 : err_set(err, -ENOMEM, "not enough memory to read %s", src->name);
	if (rc) {
		trace_reader_free(r);
		return rc;
	}
	*out = r;
	return 0;
}

int trace_reader_open(const char *path, struct trace_reader **out, struct err *err)
{
	struct source src;
	int rc = source_open(path, &src, err);

	return rc ? rc : reader_new(&src, out, err);
}

/* Opens the file NAME below DIR, where no link is followed; see base/below.h. */
static int trace_reader_open_below(const char *dir, const char *name, struct trace_reader **out,
				   struct err *err)
{
	struct source src;
	int rc = source_open_below(dir, name, &src, err);

	return rc ? rc : reader_new(&src, out, err);
}

int trace_reader_open_bytes(const void *data, size_t len, struct trace_reader **out,
			    struct err *err)
{
	struct source src;

	source_open_bytes(data, len, &src);
	return reader_new(&src, out, err);
}

void trace_reader_free(struct trace_reader *r)
{
	if (!r)
		return;
	source_release(&r->src);
	trace_check_release(&r->check);
	strbuf_release(&r->file);
	strbuf_release(&r->raw);
	ZSTD_freeDCtx(r->zstd);
	free(r);
}

const struct trace_info *trace_reader_info(const struct trace_reader *r)
{
	return &r->info;
}

const struct trace_damage *trace_reader_damage(const struct trace_reader *r)
{
	return &r->damage;
}

/* Appends `len` bytes to r->file. Returns 1; 0 if the file ends before (damage); or -errno. */
static int read_part(struct trace_reader *r, size_t len, struct err *err)
{
	ssize_t n = source_read(&r->src, strbuf_grow(&r->file, len), len, err);

	if (n < 0)
		return (int)n;
	r->file.len += (size_t)n;
	if ((size_t)n == len)
		return 1;
	if (!r->file.len)
		return damaged(r, true, "the file ends without an end frame");
	return damaged(r, true, "the file ends within the frame");
}

/* Returns 1 if the header in r->file is within all limits, else 0 (damage). */
static int parse_frame(struct trace_reader *r, struct frame_head *f)
{
	const unsigned char *h = (const unsigned char *)r->file.buf;

	*f = (struct frame_head){ .end = memcmp(h, end_magic, sizeof(end_magic)) == 0,
				  .raw_len = get_le32(h + 4),
				  .packed_len = get_le32(h + 8),
				  .count = get_le32(h + 12),
				  .first = get_le64(h + 16) };
	if (!f->end && memcmp(h, frame_magic, sizeof(frame_magic)) != 0)
		return damaged(r, false, "no frame begins here");
	if (f->end && (f->raw_len || f->packed_len || f->count))
		return damaged(r, false, "an end frame with events");
	if (f->raw_len > TRACE_FRAME_RAW_MAX || f->packed_len > f->raw_len)
		return damaged(r, false,
			       "a length of %" PRIu32 " bytes, %" PRIu32
			       " in the file, is not possible",
			       f->raw_len, f->packed_len);
	if (!f->end && (!f->count || f->count > f->raw_len / TRACE_RECORD))
		return damaged(r, false, "%" PRIu32 " events in %" PRIu32 " bytes are not possible",
			       f->count, f->raw_len);
	return 1;
}

/* Unpacks the payload into r->raw. Returns 1, or 0 for damage. */
static int unpack(struct trace_reader *r, const struct frame_head *f)
{
	const char *payload = r->file.buf + TRACE_FRAME_HEADER;

	strbuf_clear(&r->raw);
	assert(f->raw_len <= TRACE_FRAME_RAW_MAX && f->packed_len <= f->raw_len); /* F3 */
	if (f->packed_len == f->raw_len) {
		strbuf_add(&r->raw, payload, f->raw_len);
		return 1;
	}

	char *to = strbuf_grow(&r->raw, f->raw_len);
	size_t n = ZSTD_decompressDCtx(r->zstd, to, f->raw_len, payload, f->packed_len);

	if (ZSTD_isError(n))
		return damaged(r, false, "cannot be unpacked: %s", ZSTD_getErrorName(n));
	if (n != f->raw_len)
		return damaged(r, false, "unpacks to %zu bytes, not %" PRIu32, n, f->raw_len);
	r->raw.len = n;
	return 1;
}

/* Checks that nothing follows the end frame: readers would take it for a part of the trace. */
static int check_end(struct trace_reader *r, struct err *err)
{
	char byte;
	ssize_t n = source_read(&r->src, &byte, 1, err);

	if (n < 0)
		return (int)n;
	r->done = true;
	return n ? damaged(r, false, "the file goes on after the end frame") : 0;
}

/* Returns 1 if there is a frame with events; 0 at the end or at damage; or -errno. */
static int next_frame(struct trace_reader *r, struct err *err)
{
	struct frame_head f = { 0 };
	int rc;

	r->damage.frame = r->frame;
	r->damage.offset = r->src.pos;
	strbuf_clear(&r->file);
	rc = read_part(r, TRACE_FRAME_HEADER, err);
	if (rc > 0)
		rc = parse_frame(r, &f);
	if (rc > 0)
		rc = read_part(r, (size_t)f.packed_len + TRACE_FILE_CHECKSUM, err);
	if (rc <= 0)
		return rc;
	if (!checksum_ok((const unsigned char *)r->file.buf, r->file.len - TRACE_FILE_CHECKSUM))
		return damaged(r, false, "checksum does not match");
	if (f.first != r->check.seen.n)
		return damaged(r, false, "%s %" PRIu64,
			       f.end ? "the number of events should be" : "its first event is",
			       f.first);
	r->frame++;
	if (f.end)
		return check_end(r, err);
	r->at = 0;
	r->left = f.count;
	return unpack(r, &f);
}

/* Bytes of an event before its data. */
static size_t record_size(const struct trace_reader *r)
{
	return TRACE_RECORD + (r->info.places ? TRACE_PLACE : 0);
}

static void decode_event(const unsigned char *p, struct event *ev)
{
	*ev = (struct event){ .kind = (enum event_kind)get_le32(p),
			      .flags = get_le32(p + 4),
			      .cpu = get_le32(p + 8),
			      .result = (int32_t)get_le32(p + 12),
			      .addr = get_le64(p + 16),
			      .len = get_le64(p + 24),
			      .ref = get_le64(p + 32),
			      .time_ns = get_le64(p + 40) };
}

static int next_event(struct trace_reader *r, struct event *ev)
{
	const unsigned char *p = (const unsigned char *)r->raw.buf + r->at;
	assert(r->left > 0 && r->at <= r->raw.len); /* F6 */
	size_t left = r->raw.len - r->at;
	struct err why = ERR_INIT;
	size_t record = record_size(r);
	struct event e;

	if (left < record)
		return damaged(r, false, "event %zu does not fit into it", r->check.seen.n);
	decode_event(p, &e);
	if (r->info.places) {
		e.pc = get_le64(p + TRACE_RECORD);
		e.stack = get_le32(p + TRACE_RECORD + 8);
	}
	if (r->info.places && get_le32(p + TRACE_RECORD + 12))
		return damaged(r, false, "event %zu has a place of an unknown kind",
			       r->check.seen.n);
	left -= record;
	if (event_has_data(e.kind) && e.len > left)
		return damaged(r, false, "the data of event %zu does not fit into it",
			       r->check.seen.n);
	size_t data_len = event_has_data(e.kind) ? (size_t)e.len : 0;
	if (r->left == 1 && data_len != left)
		return damaged(r, false, "%zu bytes are left over after its last event",
			       left - data_len);
	if (event_has_data(e.kind))
		e.data = p + record;
	if (trace_check_event(&r->check, &r->info, &e, &why))
		return damaged(r, false, "%s", why.msg);
	r->at += record + data_len;
	r->left--;
	assert(r->at <= r->raw.len && (r->left || r->at == r->raw.len)); /* F6 */
	*ev = e;
	return 1;
}

int trace_reader_next(struct trace_reader *r, struct event *ev, struct err *err)
{
	if (r->done)
		return 0;
	if (!r->left) {
		int rc = next_frame(r, err);

		if (rc <= 0)
			return rc;
	}
	return next_event(r, ev);
}

static int load_all(struct trace_reader *r, const char *name, uint64_t limit, struct trace *out,
		    struct trace_damage *damage, struct err *err)
{
	auto_trace t;
	struct event ev = { 0 };
	uint64_t size = 0;
	int rc;

	trace_init(&t);
	t.info = r->info;
	while ((rc = trace_reader_next(r, &ev, err)) > 0) {
		size += record_size(r) + (event_has_data(ev.kind) ? ev.len : 0);
		if (size > limit)
			return err_set(err, -EFBIG,
				       "%s is too large to be held in memory: its events take more "
				       "than %" PRIu64 " bytes",
				       name, limit);
		trace_append(&t, &ev);
		assert(t.events.n == r->check.seen.n && t.stacks.n == r->check.stacks); /* T1, T4 */
	}
	if (rc < 0)
		return rc;
	if (r->damage.found && !damage)
		return err_set(err, -EBADMSG, "%s is damaged: %s", name, r->damage.text);
	assert(t.events.n == r->check.seen.n);
	if (damage)
		*damage = r->damage;
	*out = t;
	t = (struct trace){ 0 };
	return 0;
}

int trace_load_limited(const char *path, uint64_t limit, struct trace *out,
		       struct trace_damage *damage, struct err *err)
{
	auto_call(cleanup_trace_reader) struct trace_reader *r = NULL;
	int rc = trace_reader_open(path, &r, err);

	return rc ? rc : load_all(r, path, limit, out, damage, err);
}

int trace_load(const char *path, struct trace *out, struct trace_damage *damage, struct err *err)
{
	return trace_load_limited(path, TRACE_LOAD_MAX, out, damage, err);
}

int trace_load_below(const char *dir, const char *name, struct trace *out, struct err *err)
{
	auto_call(cleanup_trace_reader) struct trace_reader *r = NULL;
	int rc = trace_reader_open_below(dir, name, &r, err);

	return rc ? rc : load_all(r, r->src.name, TRACE_LOAD_MAX, out, NULL, err);
}

int trace_load_bytes(const void *data, size_t len, struct trace *out, struct trace_damage *damage,
		     struct err *err)
{
	auto_call(cleanup_trace_reader) struct trace_reader *r = NULL;
	int rc = trace_reader_open_bytes(data, len, &r, err);

	return rc ? rc : load_all(r, "the trace", TRACE_LOAD_MAX, out, damage, err);
}
