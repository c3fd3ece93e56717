/* SPDX-License-Identifier: MIT */
/*
 * dmlog_export.c - writes a trace as a dm-log-writes log, whose format is in dmlog_format.h.
 *
 * In a log a request is submitted and complete in one moment, and a flush covers all entries before
 * it. A trace says more: a flush does not cover a write that completes while the flush is under
 * way. The log is written so that at each mark and at the end the block model, given the log, finds
 * the same content as in the trace if everything survives, and the same durable content:
 *
 * L1: a request goes into the log after all older ones that it overlaps. So the request that was
 *     submitted last is on top, as in the model (model_block.c).
 * L2: a mark stands after all requests that were submitted before it.
 * L3: within L1 and L2, a request waits: until a flush that covers it has completed, until it has
 *     itself completed with FUA, or until a request that overlaps it is logged. So no request that
 *     a flush did not cover stands before that flush in the log.
 * L4: if a mark or an overlap has forced a request into the log that a later flush does not cover,
 *     that flush cannot be logged. In its place, the requests that it did cover are logged once
 *     more as FUA writes, and after them, unchanged, the requests that lie above these. A FUA write
 *     that was logged before it completed is treated in the same way.
 *
 * Requests that failed or never completed are left out. Times and CPUs are lost.
 */
#include "core/dmlog.h"

#include <errno.h>
#include <inttypes.h>

#include "base/io.h"
#include "core/bytes.h"
#include "core/dmlog_format.h"
#include "core/ranges.h"

struct event_list vec_of(uint64_t);

struct request {
	uint64_t done_at; /* number of the successful completion, or UINT64_MAX */
	bool failed, answered;
	bool logged, durable; /* in the log; made durable by the log */
	bool again;	      /* to be logged once more */
};

/*
 * The exporter walks over the trace twice, first only to count: the number of entries stands at the
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
	struct request *requests;  /* by event */
	struct event_list waiting; /* submitted, ascending; some may be in the log by now */
	struct ranges waiting_at;  /* ranges of the writes that are not in the log */
	struct event_list logged;  /* in the log since all of it was last durable */
	struct ranges logged_at;
	struct event_list flushing; /* flushes under way that are not in the log, ascending */
	struct event_list found;    /* for searches */
	struct event_list to_go;    /* for let_go_with_older() */
};

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

/* Writes the sector of an entry: its four numbers, and the text of a mark. */
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

static bool flushes(const struct event *ev)
{
	return ev->kind == EV_FLUSH || (ev->flags & EV_PREFLUSH);
}

/* Writes the entry of a request. `durability`: LOG_FLUSH, LOG_FUA, both or 0. */
static int put_request(struct exporter *x, uint64_t number, uint64_t durability, struct err *err)
{
	const struct event *ev = &x->t->events.v[number];
	uint64_t flags = durability;
	int rc = 0;

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

static int put_flush(struct exporter *x, uint64_t number, struct err *err)
{
	const struct event *ev = &x->t->events.v[number];
	uint64_t flags = LOG_FLUSH;

	if (ev->kind == EV_FLUSH && (ev->flags & EV_FUA))
		flags |= LOG_FUA;
	if (ev->kind == EV_FLUSH && (ev->flags & EV_META))
		flags |= LOG_METADATA;
	return put_entry(x, (uint64_t[]){ 0, 0, flags, 0 }, "", 0, err);
}

/* Searches. */

static bool note_found(void *ctx, uint64_t number)
{
	struct exporter *x = ctx;

	vec_push(&x->found, number);
	return true;
}

/* Fills x->found with the requests that overlap a request, ascending. */
static void find_overlapping(struct exporter *x, struct ranges *in, uint64_t number)
{
	const struct event *ev = &x->t->events.v[number];

	vec_clear(&x->found);
	ranges_overlapping(in, ev->addr, ev->addr + ev->len, note_found, x);
	vec_sort(&x->found, by_u64);
}

static bool covers(const struct exporter *x, uint64_t flush, uint64_t number)
{
	return x->requests[number].done_at < flush;
}

static bool waits_for(const struct exporter *x, uint64_t flush, uint64_t number)
{
	return !x->requests[number].logged && covers(x, flush, number);
}

/* True if an older request waits that overlaps this one, and that the flush does not cover. */
static bool above_uncovered(struct exporter *x, uint64_t flush, uint64_t number)
{
	find_overlapping(x, &x->waiting_at, number);
	for (size_t i = 0; i < x->found.n && x->found.v[i] < number; i++)
		if (!covers(x, flush, x->found.v[i]))
			return true;
	return false;
}

/* True if the log, with all that the flush covers, would hold a request that it does not cover. */
static bool cannot_flush(struct exporter *x, uint64_t flush)
{
	return any_of(i, x->logged.n,
		      !x->requests[x->logged.v[i]].durable && !covers(x, flush, x->logged.v[i])) ||
	       any_of(i, x->waiting.n,
		      waits_for(x, flush, x->waiting.v[i]) &&
			      above_uncovered(x, flush, x->waiting.v[i]));
}

/* Requests that go into the log. */

/* Logs a request that waits; the requests below it must be in the log. */
static int let_go(struct exporter *x, uint64_t number, uint64_t durability, struct err *err)
{
	const struct event *ev = &x->t->events.v[number];
	struct request *r = &x->requests[number];

	assert(!r->logged);
	ranges_remove(&x->waiting_at, ev->addr, number);
	vec_push(&x->logged, number);
	ranges_add(&x->logged_at, ev->addr, ev->addr + ev->len, number);
	r->logged = true;
	r->durable = durability & LOG_FUA;
	return put_request(x, number, durability, err);
}

/* True if no request in the log, or before this flush, needs a flush. */
static bool is_idle_flush(struct exporter *x, uint64_t flush)
{
	return all_of(i, x->logged.n, x->requests[x->logged.v[i]].durable) &&
	       !any_of(i, x->waiting.n, waits_for(x, flush, x->waiting.v[i]));
}

/* Takes a flush off the list. True if it was there. */
static bool take_flush(struct exporter *x, uint64_t flush)
{
	size_t kept = 0, before = x->flushing.n;

	for (size_t i = 0; i < before; i++)
		if (x->flushing.v[i] != flush)
			x->flushing.v[kept++] = x->flushing.v[i];
	x->flushing.n = kept;
	return kept < before;
}

/* Logs flushes that make nothing durable, before any request that they do not cover. */
static int let_idle_flushes_go(struct exporter *x, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < x->flushing.n;) {
		uint64_t flush = x->flushing.v[i];

		if (x->t->events.v[flush].kind != EV_FLUSH || !is_idle_flush(x, flush)) {
			i++;
			continue;
		}
		rc = put_flush(x, flush, err);
		take_flush(x, flush);
	}
	return rc;
}

/* Logs a request, and first all requests below it (L1), which are not durable. */
static int let_go_with_older(struct exporter *x, uint64_t number, uint64_t durability,
			     struct err *err)
{
	find_overlapping(x, &x->waiting_at, number);
	assert(x->found.n);
	int rc = x->found.v[0] < number ? let_idle_flushes_go(x, err) : 0;
	vec_clear(&x->to_go);
	vec_push(&x->to_go, number);
	while (!rc && x->to_go.n) {
		uint64_t top = vec_last(&x->to_go);

		find_overlapping(x, &x->waiting_at, top);
		assert(x->found.n && x->found.v[0] <= top);
		if (x->found.v[0] < top) {
			vec_push(&x->to_go, x->found.v[0]);
			continue;
		}
		x->to_go.n--;
		rc = let_go(x, top, top == number ? durability : 0, err);
	}
	return rc;
}

/* Drops the requests in `waiting` that are in the log. */
static void tidy_waiting(struct exporter *x)
{
	size_t kept = 0;

	for (size_t i = 0; i < x->waiting.n; i++)
		if (!x->requests[x->waiting.v[i]].logged)
			x->waiting.v[kept++] = x->waiting.v[i];
	x->waiting.n = kept;
}

/* Logs the marked requests once more, and those that lie above them (L4). */
static int log_again(struct exporter *x, struct err *err)
{
	int rc = 0;

	vec_sort(&x->logged, by_u64);
	for (size_t i = 0; !rc && i < x->logged.n; i++) {
		uint64_t number = x->logged.v[i];
		struct request *r = &x->requests[number];

		if (!r->again)
			continue;
		r->again = false;
		rc = put_request(x, number, r->durable ? LOG_FUA : 0, err);
		find_overlapping(x, &x->logged_at, number);
		for (size_t j = 0; j < x->found.n; j++)
			x->requests[x->found.v[j]].again |= x->found.v[j] > number;
	}
	return rc;
}

/* Makes the requests that a flush covers durable without logging the flush. */
static int cover_one_by_one(struct exporter *x, uint64_t flush, struct err *err)
{
	for (size_t i = 0; i < x->logged.n; i++) {
		struct request *r = &x->requests[x->logged.v[i]];

		if (!r->durable && covers(x, flush, x->logged.v[i]))
			r->again = r->durable = true;
	}
	int rc = log_again(x, err);
	for (size_t i = 0; !rc && i < x->waiting.n; i++)
		if (waits_for(x, flush, x->waiting.v[i]))
			rc = let_go_with_older(x, x->waiting.v[i], LOG_FUA, err);
	tidy_waiting(x);
	return rc;
}

static int let_covered_go(struct exporter *x, uint64_t flush, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < x->waiting.n; i++)
		if (waits_for(x, flush, x->waiting.v[i]))
			rc = let_go(x, x->waiting.v[i], 0, err);
	tidy_waiting(x);
	return rc;
}

static void all_is_durable(struct exporter *x)
{
	for (size_t i = 0; i < x->logged.n; i++)
		x->requests[x->logged.v[i]].durable = true;
	vec_clear(&x->logged);
	ranges_clear(&x->logged_at);
}

/* Logs all requests that wait (L2). */
static int let_all_go(struct exporter *x, struct err *err)
{
	int rc = x->waiting_at.n ? let_idle_flushes_go(x, err) : 0;

	for (size_t i = 0; !rc && i < x->waiting.n; i++)
		if (!x->requests[x->waiting.v[i]].logged)
			rc = let_go(x, x->waiting.v[i], 0, err);
	tidy_waiting(x);
	return rc;
}

/* The functions below export the events of the trace, one kind each. */

static int export_flush_done(struct exporter *x, uint64_t flush, struct err *err)
{
	const struct event *ev = &x->t->events.v[flush];
	bool with_data = ev->kind != EV_FLUSH;

	if (!take_flush(x, flush))
		return 0; /* was exported early */
	if (cannot_flush(x, flush))
		return cover_one_by_one(x, flush, err);
	int rc = let_covered_go(x, flush, err);
	if (rc)
		return rc;
	all_is_durable(x);
	if (with_data && !above_uncovered(x, flush, flush)) {
		uint64_t fua = ev->flags & EV_FUA ? LOG_FUA : 0;

		return let_go(x, flush, LOG_FLUSH | fua, err);
	}
	return put_flush(x, flush, err);
}

static int export_request_done(struct exporter *x, uint64_t request, struct err *err)
{
	const struct event *ev = &x->t->events.v[request];
	struct request *r = &x->requests[request];
	int rc = flushes(ev) ? export_flush_done(x, request, err) : 0;

	if (rc || ev->kind == EV_FLUSH || !(ev->flags & EV_FUA) || r->durable)
		return rc;
	if (!r->logged)
		return let_go_with_older(x, request, LOG_FUA, err);
	r->again = r->durable = true;
	return log_again(x, err);
}

static void export_submitted(struct exporter *x, uint64_t number)
{
	const struct event *ev = &x->t->events.v[number];
	const struct request *r = &x->requests[number];

	x->report.incomplete += !r->answered;
	x->report.failed += r->failed;
	if (r->done_at == UINT64_MAX)
		return;
	if (flushes(ev))
		vec_push(&x->flushing, number);
	if (ev->kind == EV_FLUSH)
		return;
	vec_push(&x->waiting, number);
	ranges_add(&x->waiting_at, ev->addr, ev->addr + ev->len, number);
}

static int export_event(struct exporter *x, uint64_t number, struct err *err)
{
	const struct event *ev = &x->t->events.v[number];
	int rc;

	switch (ev->kind) {
	case EV_READ:
		x->report.reads++;
		return 0;
	case EV_WRITE:
	case EV_FLUSH:
	case EV_DISCARD:
	case EV_ZERO:
		export_submitted(x, number);
		return 0;
	case EV_COMPLETE:
		if (x->t->events.v[ev->ref].kind == EV_READ || ev->result < 0)
			return 0;
		return export_request_done(x, ev->ref, err);
	case EV_OP_BEGIN:
	case EV_OP_END:
	case EV_PERSIST:
	case EV_TEXT:
		rc = let_all_go(x, err);
		return rc ? rc : export_mark(x, ev, err);
	case EV_POSIX:
		x->report.posix++;
		return 0;
	case EV_STACK:
		return 0;
	default:
		x->report.pm++;
		return 0;
	}
}

static int export_walk(struct exporter *x, struct err *err)
{
	auto_strbuf device = STRBUF_INIT;

	x->report = (struct dmlog_report){ 0 };
	all_is_durable(x); /* there is no request yet */
	for (size_t i = 0; i < x->t->events.n; i++)
		x->requests[i].logged = x->requests[i].durable = false;
	strbuf_addf(&device, "outage:device %" PRIu64 " %" PRIu32 " %s", x->t->info.size,
		    x->t->info.sector_size, x->t->info.target);
	int rc = put_mark(x, &device, err);
	for (size_t i = 0; !rc && i < x->t->events.n; i++)
		rc = export_event(x, i, err);
	if (!rc)
		rc = let_all_go(x, err);
	assert(rc || (!x->flushing.n && !x->waiting.n));
	return rc;
}

/* Chooses the device's sector size if all requests are multiples of it, else the smallest size. */
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
	x->requests = xcalloc(t->events.n, sizeof(*x->requests));
	for (size_t i = 0; i < t->events.n; i++) {
		const struct event *ev = &t->events.v[i];

		x->requests[i].done_at = UINT64_MAX;
		if (ev->kind != EV_COMPLETE)
			continue;
		struct request *r = &x->requests[ev->ref];
		r->answered = true;
		r->failed = ev->result < 0;
		if (!r->failed)
			r->done_at = i;
	}
}

static void exporter_release(struct exporter *x)
{
	free(x->requests);
	vec_release(&x->waiting);
	ranges_release(&x->waiting_at);
	vec_release(&x->logged);
	ranges_release(&x->logged_at);
	vec_release(&x->flushing);
	vec_release(&x->found);
	vec_release(&x->to_go);
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
