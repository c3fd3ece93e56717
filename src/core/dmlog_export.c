/* SPDX-License-Identifier: MIT */
/*
 * dmlog_export.c - writes a trace as a dm-log-writes log, whose format is in dmlog_format.h.
 *
 * Requests are logged in the order of their completion, with one exception, which the kernel makes
 * as well: a flush covers only what was complete when the flush was submitted. What completes while
 * a flush is under way is therefore logged after that flush (but before any other flush that does
 * cover it, and before a FUA write, which in a log cannot overtake anything). So a reader of the
 * log never takes a write for durable that is not. Times and CPUs are lost.
 */
#include "core/dmlog.h"

#include <errno.h>
#include <inttypes.h>

#include "base/io.h"
#include "core/bytes.h"
#include "core/dmlog_format.h"

/*
 * The walk over the trace happens twice, first only to count: the number of entries stands at the
 * head of the log, and a pipe cannot be written backwards.
 */
struct exporter {
	const struct trace *t;
	struct dmlog_report report;
	uint32_t sector;
	bool counting;
	int fd;
	const char *name;
	struct strbuf out;
	unsigned char *done; /* by event: whether a request completed, and how */
	struct {
		uint64_t request;
		uint64_t completion; /* its number */
	} * held;		     /* completed while a flush was under way, in that order */
	size_t held_first, held_end; /* those still held */
	size_t flushing;	     /* flushes under way */
};

enum { DONE_NOT, DONE_OK, DONE_FAILED };

static int export_flush_out(struct exporter *x, size_t threshold, struct err *err)
{
	if (x->out.len < threshold || !x->out.len)
		return 0;
	int rc = io_write_full(x->fd, x->out.buf, x->out.len);
	strbuf_clear(&x->out);
	return rc ? err_set(err, rc, "cannot write %s: %m", x->name) : 0;
}

static void add_zeros(struct strbuf *sb, size_t n)
{
	memset(strbuf_grow(sb, n), 0, n);
	sb->len += n;
}

/* The sector of an entry: its four numbers, and the text if it is a mark. */
static int put_entry(struct exporter *x, const uint64_t fields[4], const char *text, size_t len,
		     struct err *err)
{
	x->report.entries++;
	if (x->counting)
		return 0;
	assert(LOG_ENTRY + len < x->sector);
	for (int i = 0; i < 4; i++)
		strbuf_add_le64(&x->out, fields[i]);
	strbuf_add(&x->out, text, len);
	add_zeros(&x->out, x->sector - LOG_ENTRY - len);
	return export_flush_out(x, 1 << 20, err);
}

static int put_short_mark(struct exporter *x, const char *text, size_t len, struct err *err)
{
	return put_entry(x, (uint64_t[]){ 0, 0, LOG_MARK, len }, text, len, err);
}

static int put_mark(struct exporter *x, const struct strbuf *mark, struct err *err)
{
	const size_t room = x->sector - LOG_ENTRY - 1;
	const size_t step = room - strlen("outage:part ");
	auto_strbuf piece = STRBUF_INIT;
	size_t at = 0;
	int rc = 0;

	if (mark->len <= room)
		return put_short_mark(x, strbuf_str(mark), mark->len, err);
	while (!rc && at < mark->len) {
		size_t n = min(step, mark->len - at);

		strbuf_clear(&piece);
		strbuf_adds(&piece, at + n < mark->len ? "outage:part " : "outage:last ");
		strbuf_add(&piece, mark->buf + at, n);
		rc = put_short_mark(x, piece.buf, piece.len, err);
		at += n;
	}
	return rc;
}

static int export_mark(struct exporter *x, const struct event *ev, struct err *err)
{
	auto_strbuf mark = STRBUF_INIT;
	const char *text = (const char *)ev->data;

	switch (ev->kind) {
	case EV_OP_BEGIN:
		strbuf_addf(&mark, "outage:begin %" PRIu64 " ", ev->ref);
		strbuf_add(&mark, text, ev->len);
		break;
	case EV_OP_END:
		strbuf_addf(&mark, "outage:end %" PRIu64 " %" PRId32, ev->ref, ev->result);
		break;
	case EV_PERSIST:
		strbuf_addf(&mark, "outage:persist %" PRIu64, ev->ref);
		break;
	default:
		assert(ev->kind == EV_TEXT);
		if (ev->len >= strlen(LOG_MARK_PREFIX) &&
		    memcmp(text, LOG_MARK_PREFIX, strlen(LOG_MARK_PREFIX)) == 0)
			strbuf_adds(&mark, "outage:text ");
		strbuf_add(&mark, text, ev->len);
	}
	return put_mark(x, &mark, err);
}

static int put_request(struct exporter *x, uint64_t number, struct err *err)
{
	const struct event *ev = &x->t->events.v[number];
	uint64_t flags = 0;
	int rc = 0;

	if (ev->kind == EV_FLUSH || (ev->flags & EV_PREFLUSH))
		flags |= LOG_FLUSH;
	if (ev->flags & EV_FUA)
		flags |= LOG_FUA;
	if (ev->flags & EV_META)
		flags |= LOG_METADATA;
	if (ev->kind == EV_DISCARD || ev->kind == EV_ZERO)
		flags |= LOG_DISCARD;
	if (ev->kind == EV_ZERO)
		rc = put_short_mark(x, "outage:zero", strlen("outage:zero"), err);
	if (!rc)
		rc = put_entry(x,
			       (uint64_t[]){ ev->addr / x->sector, ev->len / x->sector, flags, 0 },
			       "", 0, err);
	if (rc || ev->kind != EV_WRITE || x->counting)
		return rc;
	strbuf_add(&x->out, ev->data, ev->len);
	return export_flush_out(x, 1 << 20, err);
}

/* Lets go of what completed before event `before`. */
static int release_held(struct exporter *x, uint64_t before, struct err *err)
{
	int rc = 0;

	while (!rc && x->held_first < x->held_end && x->held[x->held_first].completion < before)
		rc = put_request(x, x->held[x->held_first++].request, err);
	return rc;
}

static bool flushes(const struct event *ev)
{
	return ev->kind == EV_FLUSH || (ev->flags & EV_PREFLUSH);
}

static int export_request_done(struct exporter *x, uint64_t request, uint64_t completion,
			       struct err *err)
{
	const struct event *ev = &x->t->events.v[request];
	int rc = 0;

	if (flushes(ev)) {
		assert(x->flushing > 0);
		x->flushing--;
		rc = release_held(x, request, err);
		if (!rc)
			rc = put_request(x, request, err);
		return rc || x->flushing ? rc : release_held(x, UINT64_MAX, err);
	}
	if (x->flushing && !(ev->flags & EV_FUA)) {
		x->held[x->held_end].request = request;
		x->held[x->held_end++].completion = completion;
		return 0;
	}
	rc = release_held(x, UINT64_MAX, err);
	return rc ? rc : put_request(x, request, err);
}

static int export_event(struct exporter *x, uint64_t number, struct err *err)
{
	const struct event *ev = &x->t->events.v[number];

	switch (ev->kind) {
	case EV_READ:
		x->report.reads++;
		return 0;
	case EV_WRITE:
	case EV_FLUSH:
	case EV_DISCARD:
	case EV_ZERO:
		x->report.incomplete += x->done[number] == DONE_NOT;
		x->report.failed += x->done[number] == DONE_FAILED;
		x->flushing += flushes(ev) && x->done[number] == DONE_OK;
		return 0;
	case EV_COMPLETE:
		if (x->t->events.v[ev->ref].kind == EV_READ || x->done[ev->ref] != DONE_OK)
			return 0;
		return export_request_done(x, ev->ref, number, err);
	case EV_OP_BEGIN:
	case EV_OP_END:
	case EV_PERSIST:
	case EV_TEXT:
		return export_mark(x, ev, err);
	default:
		x->report.pm++;
		return 0;
	}
}

static int export_walk(struct exporter *x, struct err *err)
{
	auto_strbuf device = STRBUF_INIT;

	x->report = (struct dmlog_report){ 0 };
	x->held_first = x->held_end = x->flushing = 0;
	strbuf_addf(&device, "outage:device %" PRIu64 " %" PRIu32 " %s", x->t->info.size,
		    x->t->info.sector_size, x->t->info.target);
	int rc = put_mark(x, &device, err);
	for (size_t i = 0; !rc && i < x->t->events.n; i++)
		rc = export_event(x, i, err);
	assert(rc || (!x->flushing && x->held_first == x->held_end));
	return rc;
}

/* The device's own sectors if all requests keep to them, else the smallest there are. */
static int choose_sector(struct exporter *x, struct err *err)
{
	uint32_t own = x->t->info.sector_size;

	x->sector = own >= LOG_SECTOR_MIN && own <= LOG_SECTOR_PAGE ? own : LOG_SECTOR_MIN;
	for (size_t i = 0; i < x->t->events.n; i++) {
		const struct event *ev = &x->t->events.v[i];

		if (!event_modifies(ev->kind) || ev->kind == EV_STORE)
			continue;
		if ((ev->addr | ev->len) % LOG_SECTOR_MIN)
			return err_set(err, -EINVAL,
				       "event %zu: a %s at %" PRIu64 " of %" PRIu64
				       " bytes cannot be exported: a log has sectors of %d bytes",
				       i, event_kind_name(ev->kind), ev->addr, ev->len,
				       LOG_SECTOR_MIN);
		if ((ev->addr | ev->len) % x->sector)
			x->sector = LOG_SECTOR_MIN;
	}
	return 0;
}

static void exporter_init(struct exporter *x, const struct trace *t)
{
	*x = (struct exporter){ .t = t, .fd = -1 };
	x->done = xcalloc(t->events.n, 1);
	x->held = xcalloc(t->events.n, sizeof(*x->held));
	for (size_t i = 0; i < t->events.n; i++) {
		const struct event *ev = &t->events.v[i];

		if (ev->kind == EV_COMPLETE)
			x->done[ev->ref] = ev->result ? DONE_FAILED : DONE_OK;
	}
}

static void exporter_release(struct exporter *x)
{
	free(x->done);
	free(x->held);
	strbuf_release(&x->out);
}

static void put_super(struct exporter *x, uint64_t entries)
{
	strbuf_add_le64(&x->out, LOG_MAGIC);
	strbuf_add_le64(&x->out, LOG_VERSION);
	strbuf_add_le64(&x->out, entries);
	strbuf_add_le32(&x->out, x->sector);
	add_zeros(&x->out, x->sector - LOG_SUPER);
}

int dmlog_export(const struct trace *t, const char *path, struct dmlog_report *report,
		 struct err *err)
{
	auto_call(io_output_release) struct io_output out = { .fd = -1 };
	auto_call(exporter_release) struct exporter x = { .fd = -1 };
	int rc = trace_validate(t, err);

	if (rc)
		return rc;
	exporter_init(&x, t);
	rc = choose_sector(&x, err);
	if (rc)
		return rc;
	x.counting = true;
	rc = export_walk(&x, err);
	if (!rc)
		rc = io_output_open(path, &out, err);
	if (rc)
		return rc;
	put_super(&x, x.report.entries);
	x.counting = false;
	x.fd = out.fd;
	x.name = out.path;
	uint64_t counted = x.report.entries;
	rc = export_walk(&x, err);
	if (!rc)
		rc = export_flush_out(&x, 0, err);
	if (!rc)
		rc = io_output_commit(&out, err);
	if (rc)
		return rc;
	assert(x.report.entries == counted);
	*report = x.report;
	return 0;
}
