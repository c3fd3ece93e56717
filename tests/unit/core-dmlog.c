/* SPDX-License-Identifier: MIT */
/* core-dmlog.c - logs of dm-log-writes: there, back again, and what is refused. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/io.h"
#include "base/rng.h"
#include "core/bytes.h"
#include "core/dmlog.h"
#include "core/model.h"
#include "tap.h"
#include "trace-build.h"

static char dir[] = "/tmp/core-dmlog.XXXXXX";
static char path[64];
static unsigned char block[4096];

enum { FLUSH = 1, FUA = 2, DISCARD = 4, MARK = 8, META = 16 };

/* ---- a log made by hand, so that import is not only checked against our own export ---- */

static void pad(struct strbuf *log, size_t to)
{
	while (log->len < to)
		strbuf_addch(log, '\0');
}

static void log_super(struct strbuf *log, uint64_t version, uint64_t entries, uint32_t sector)
{
	strbuf_clear(log);
	strbuf_add_le64(log, UINT64_C(0x6a736677736872));
	strbuf_add_le64(log, version);
	strbuf_add_le64(log, entries);
	strbuf_add_le32(log, sector);
	pad(log, sector);
}

static void log_entry(struct strbuf *log, uint64_t sector, uint64_t n, uint64_t flags,
		      const char *mark)
{
	size_t start = log->len;

	strbuf_add_le64(log, sector);
	strbuf_add_le64(log, n);
	strbuf_add_le64(log, flags);
	strbuf_add_le64(log, strlen(mark));
	strbuf_adds(log, mark);
	pad(log, start + 512);
	if (flags & (MARK | DISCARD))
		return;
	for (uint64_t i = 0; i < n; i++)
		strbuf_add(log, block, 512);
}

/* The trace in short: "W8+512fm C0 F ..." */
static const char *brief(const struct trace *t)
{
	static char text[1024];
	size_t n = 0;

	text[0] = '\0';
	for (size_t i = 0; i < t->events.n && n < sizeof(text); i++) {
		const struct event *ev = &t->events.v[i];
		static const char letters[EV_KIND_END] = "?WFDZRCSLNOBEPTX";

		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%c", i ? " " : "",
				      letters[ev->kind]);
		if (event_modifies(ev->kind))
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%" PRIu64 "+%" PRIu64,
					      ev->addr, ev->len);
		else if (ev->kind == EV_TEXT || ev->kind == EV_OP_BEGIN)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%" PRIu64 "'%s'",
					      ev->ref, (const char *)ev->data);
		else if (ev->kind != EV_FLUSH)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%" PRIu64 "=%d", ev->ref,
					      ev->result);
		n += (size_t)snprintf(
			text + n, sizeof(text) - n, "%s%s%s", ev->flags & EV_PREFLUSH ? "p" : "",
			ev->flags & EV_FUA ? "f" : "", ev->flags & EV_META ? "m" : "");
	}
	return text;
}

static void test_import(void)
{
	auto_strbuf log = STRBUF_INIT;
	auto_trace t = { 0 };
	struct err err = ERR_INIT;

	log_super(&log, 1, 7, 512);
	log_entry(&log, 8, 1, META, "");
	log_entry(&log, 0, 0, FLUSH, "");
	log_entry(&log, 16, 2, FLUSH | FUA, "");
	log_entry(&log, 32, 1 << 20, DISCARD, "");
	log_entry(&log, 0, 0, MARK, "mymark");
	log_entry(&log, 0, 0, MARK, "outage:end 1");
	log_entry(&log, 0, 0, MARK, "dm-log-writes-end");
	strbuf_adds(&log, "what is beyond the last entry does not matter");
	is_i(dmlog_import_bytes(log.buf, log.len, &t, &err), 0, "import");
	is_s(brief(&t),
	     "W4096+512m C0=0 F C2=0 W8192+1024pf C4=0 D16384+536870912 C6=0 T0'mymark' "
	     "T0'outage:end 1' T0'dm-log-writes-end'",
	     "each entry and its completion");
	ok(memcmp(t.events.v[4].data, block, 512) == 0, "with the data");
	ok(t.info.size == 0 && t.info.sector_size == 512 && !t.info.completions, "info");
	is_s(t.info.target, "dm-log-writes", "target");
}

static void refused(const struct strbuf *log, const char *want)
{
	struct err err = ERR_INIT;
	struct trace t;

	ok(dmlog_import_bytes(log->buf, log->len, &t, &err) == -EINVAL, "refused");
	is_s(err.msg, want, "%s", want);
}

static void test_bad_super(void)
{
	auto_strbuf log = STRBUF_INIT;

	refused(&log, "memory is not a dm-log-writes log: no magic number at byte 0");
	log_super(&log, 1, 0, 512);
	strbuf_cut(&log, 20);
	refused(&log, "memory: the log ends within its superblock");
	log_super(&log, 2, 0, 512);
	refused(&log, "memory is a dm-log-writes log of version 2, which is not supported; this "
		      "program reads version 1");
	log_super(&log, 1, 0, 500);
	refused(&log, "memory: superblock at byte 24: a sector size of 500 bytes is not a power of "
		      "two from 512 to 65536");
	log_super(&log, 1, 0, 1 << 20);
	refused(&log, "memory: superblock at byte 24: a sector size of 1048576 bytes is not a "
		      "power of two from 512 to 65536");
	log.buf[0] ^= 1;
	refused(&log, "memory is not a dm-log-writes log: no magic number at byte 0");
}

static void bad_entry(uint64_t sector, uint64_t n, uint64_t flags, const char *want)
{
	auto_strbuf log = STRBUF_INIT;
	char sentence[256];

	log_super(&log, 1, 2, 512);
	log_entry(&log, 0, 0, FLUSH, "");
	log_entry(&log, sector, 0, flags, "");
	put_le64((unsigned char *)log.buf + 1024 + 8, n);
	snprintf(sentence, sizeof(sentence), "memory: entry 1 at byte 1024: %s", want);
	refused(&log, sentence);
}

static void test_bad_entries(void)
{
	auto_strbuf log = STRBUF_INIT;

	bad_entry(8, 1, 0, "its 512 bytes of data go past the end of the log");
	bad_entry(8, 1 << 20, 0, "a write of 536870912 bytes is larger than 67108864");
	bad_entry(UINT64_MAX, 1, 0, "sector 18446744073709551615 and 1 more are beyond any device");
	bad_entry(0, UINT64_C(1) << 50, DISCARD,
		  "sector 0 and 1125899906842624 more are beyond any device");
	bad_entry(8, 0, 0, "neither a write nor a flush nor a discard nor a mark");
	bad_entry(8, 0, DISCARD, "a discard of no sectors");
	bad_entry(8, 1, MARK, "a mark with data");
	bad_entry(8, 1, 32, "flags 0x20 are not known");

	log_super(&log, 1, UINT64_MAX, 512);
	log_entry(&log, 0, 0, FLUSH, "");
	refused(&log, "memory: entry 1 at byte 1024: the log ends here, and should have "
		      "18446744073709551615 entries");
	log_super(&log, 1, 1, 512);
	log_entry(&log, 0, 0, MARK, "x");
	put_le64((unsigned char *)log.buf + 512 + 24, 481);
	refused(&log, "memory: entry 0 at byte 512: a mark of 481 bytes does not fit into its "
		      "sector");
	log_super(&log, 1, 2, 512);
	log_entry(&log, 0, 0, MARK, "outage:part begin");
	log_entry(&log, 0, 0, FLUSH, "");
	refused(&log, "memory: entry 1 at byte 1024: the mark before it has no last part");
	log_super(&log, 1, 2, 512);
	log_entry(&log, 0, 0, MARK, "outage:zero");
	log_entry(&log, 0, 0, FLUSH, "");
	refused(&log, "memory: entry 1 at byte 1024: should be the discard that the mark before it "
		      "announces");
	log_super(&log, 1, 2, 512);
	log_entry(&log, 0, 0, MARK, "outage:device 4096 512 small");
	log_entry(&log, 8, 1, 0, "");
	refused(&log,
		"memory: event 0: write at 4096 of 512 bytes leaves the device of 4096 bytes");
}

static void round_trip(const struct trace *t, const char *want, struct dmlog_report *report)
{
	auto_trace back = { 0 };
	struct err err = ERR_INIT;

	ok(dmlog_export(t, path, report, &err) == 0, "export %s", err.msg);
	ok(dmlog_import(path, &back, &err) == 0, "import it again %s", err.msg);
	is_s(brief(&back), want, "%s", want);
	ok(back.info.size == t->info.size && back.info.sector_size == t->info.sector_size &&
		   streq(back.info.target, t->info.target),
	   "the device is the same");
	for (size_t i = 0; i < back.events.n; i++)
		if (back.events.v[i].kind == EV_WRITE && memcmp(back.events.v[i].data, block, 512))
			ok(false, "the data of event %zu", i);
}

static void test_round_trip(void)
{
	auto_trace t;
	struct dmlog_report report;

	trace_init(&t);
	t.info.size = 1 << 30;
	t.info.sector_size = 4096;
	memcpy(t.info.target, "ext4 on a disk", 15);
	trace_op_begin(&t, 3, "rename A B");
	trace_complete(&t, trace_write(&t, 4096, block, 512, EV_META), 0);
	trace_complete(&t, trace_flush(&t), 0);
	trace_complete(&t, trace_write(&t, 8192, block, 4096, EV_PREFLUSH | EV_FUA), 0);
	trace_complete(&t, trace_append(&t, &(struct event){ .kind = EV_ZERO, .len = 1024 }), 0);
	trace_complete(&t, trace_append(&t, &(struct event){ .kind = EV_DISCARD, .len = 512 }), 0);
	trace_op_end(&t, 3, -ENOSPC);
	trace_op_end(&t, 4, INT32_MAX);
	trace_persist(&t, 3);
	trace_op_begin(&t, 0, "");
	trace_text(&t, "");
	trace_text(&t, "outage:zero");
	trace_text(&t, "outage:text outage:part x");
	trace_text(&t, "begin 3 not ours");
	round_trip(&t,
		   "B3'rename A B' W4096+512m C1=0 F C3=0 W8192+4096pf C5=0 Z0+1024 C7=0 D0+512 "
		   "C9=0 E3=-28 E4=2147483647 P3=0 B0'' T0'' T0'outage:zero' "
		   "T0'outage:text outage:part x' T0'begin 3 not ours'",
		   &report);
	is_u(report.entries, 16, "entries: the device, the mark of the zero, and all the rest");
	is_u(report.reads + report.pm + report.incomplete + report.failed, 0, "nothing left out");
}

/* Texts around the length that fits into a sector. */
static void test_long_marks(void)
{
	size_t bad = 0;

	for (size_t len = 440; len < 1500; len += len < 500 || len > 900 ? 1 : 97) {
		auto_trace t, back = { 0 };
		auto_free char *text = xcalloc(1, len + 1);
		struct dmlog_report report;
		struct err err = ERR_INIT;

		memset(text, 'x', len);
		memcpy(text, "outage:last ", 12);
		trace_init(&t);
		trace_op_begin(&t, 7, text);
		trace_text(&t, text);
		if (dmlog_export(&t, path, &report, &err) || dmlog_import(path, &back, &err)) {
			bad++;
			continue;
		}
		bad += back.events.n != 2 || back.events.v[0].len != len ||
		       memcmp(back.events.v[0].data, text, len) || back.events.v[1].len != len ||
		       memcmp(back.events.v[1].data, text, len);
	}
	is_u(bad, 0, "marks that are too long for a sector come back whole");
}

static void test_left_out(void)
{
	auto_trace t;
	struct dmlog_report report;

	trace_init(&t);
	uint64_t a = trace_write(&t, 0, block, 512, 0);
	trace_write(&t, 512, block, 512, 0); /* never completes */
	uint64_t f = trace_flush(&t);
	uint64_t r = trace_append(&t, &(struct event){ .kind = EV_READ, .len = 512 });
	uint64_t g = trace_append(&t, &(struct event){ .kind = EV_FLUSH }); /* never completes */
	trace_append(&t, &(struct event){ .kind = EV_FENCE });
	trace_append(&t, &(struct event){ .kind = EV_LOAD, .len = 1 });
	trace_complete(&t, r, 0);
	trace_complete(&t, f, -EIO);
	trace_complete(&t, a, 0);
	round_trip(&t, "W0+512 C0=0", &report);
	is_u(report.reads, 1, "reads");
	is_u(report.pm, 2, "persistent memory");
	is_u(report.incomplete, 2, "incomplete");
	is_u(report.failed, 1, "failed");
	ok(g == 4, "the flush that never completes holds nothing back");
}

static void test_order(void)
{
	auto_trace t;
	struct dmlog_report report;
	uint64_t a, b, c, f, g;

	/* b completes after the flush was submitted: the flush does not cover it. */
	trace_init(&t);
	a = trace_write(&t, 0, block, 512, 0);
	b = trace_write(&t, 512, block, 512, 0);
	trace_complete(&t, a, 0);
	f = trace_flush(&t);
	trace_complete(&t, b, 0);
	trace_complete(&t, f, 0);
	round_trip(&t, "W0+512 C0=0 F C2=0 W512+512 C4=0", &report);

	/* A second flush covers b, and says so while the first is still under way. */
	trace_clear(&t);
	b = trace_write(&t, 512, block, 512, 0);
	c = trace_write(&t, 1024, block, 512, 0);
	f = trace_flush(&t);
	trace_complete(&t, b, 0);
	g = trace_flush(&t);
	trace_complete(&t, c, 0);
	trace_complete(&t, g, 0);
	trace_persist(&t, 1);
	trace_complete(&t, f, 0);
	round_trip(&t, "W512+512 C0=0 F C2=0 F C4=0 W1024+512 C6=0 P1=0", &report);

	/* A FUA write is durable when it completes, and overtakes nothing. */
	trace_clear(&t);
	f = trace_flush(&t);
	trace_complete(&t, trace_write(&t, 0, block, 512, 0), 0);
	trace_complete(&t, trace_write(&t, 0, block, 512, EV_FUA), 0);
	trace_persist(&t, 1);
	trace_complete(&t, f, 0);
	round_trip(&t, "F C0=0 W0+512 C2=0 W0+512f C4=0 P1=0", &report);

	/* It does not make others durable that wait for a flush. */
	trace_clear(&t);
	a = trace_write(&t, 0, block, 512, 0);
	f = trace_flush(&t);
	trace_complete(&t, a, 0);
	trace_complete(&t, trace_write(&t, 8192, block, 512, EV_FUA), 0);
	trace_complete(&t, f, 0);
	round_trip(&t, "W8192+512f C0=0 F C2=0 W0+512 C4=0", &report);

	/* A mark stays behind what came before it, though a flush is under way. */
	trace_clear(&t);
	f = trace_flush(&t);
	trace_complete(&t, trace_write(&t, 0, block, 512, 0), 0);
	trace_op_end(&t, 0, 0);
	trace_complete(&t, f, 0);
	round_trip(&t, "F C0=0 W0+512 C2=0 E0=0", &report);

	/* Where the flush covers something else, that is said one by one after the mark. */
	trace_clear(&t);
	trace_complete(&t, trace_write(&t, 512, block, 512, 0), 0);
	f = trace_flush(&t);
	trace_complete(&t, trace_write(&t, 0, block, 512, 0), 0);
	trace_op_end(&t, 0, 0);
	trace_complete(&t, f, 0);
	round_trip(&t, "W512+512 C0=0 W0+512 C2=0 E0=0 W512+512f C5=0", &report);

	/* Of two that race, the one submitted last is on top, as in the model. */
	trace_clear(&t);
	a = trace_write(&t, 0, block, 1024, 0);
	b = trace_write(&t, 0, block, 512, 0);
	trace_complete(&t, b, 0);
	trace_complete(&t, a, 0);
	round_trip(&t, "W0+1024 C0=0 W0+512 C2=0", &report);
}

/* What the block model says of a trace after some of its events. */
enum { SECTORS = 12 };

struct verdict {
	unsigned char none[SECTORS], all[SECTORS]; /* what is in each if nothing survives; all */
};

static void judge(const struct trace *t, uint64_t until, struct verdict *v)
{
	auto_image base, none = IMAGE_INIT, all = IMAGE_INIT;
	struct model_opts opts = { 0 };
	struct err err = ERR_INIT;
	size_t n;

	image_init(&base, SECTORS * 512);
	auto_model m = model_new(&model_block, &opts, &base);
	for (uint64_t i = 0; i < until; i++)
		if (model_apply(m, i, &t->events.v[i], &err))
			abort();
	const struct model_piece *p = model_pieces(m, &n);
	image_restore(&none, &m->durable);
	image_restore(&all, &m->durable);
	for (size_t i = 0; i < n; i++) {
		model_piece_apply(m, i, NULL, 0, UINT64_MAX, &all);
		if (p[i].pinned)
			model_piece_apply(m, i, NULL, 0, UINT64_MAX, &none);
	}
	for (uint64_t i = 0; i < SECTORS; i++) {
		image_read(&none, i * 512, &v->none[i], 1);
		image_read(&all, i * 512, &v->all[i], 1);
	}
}

static void random_request(struct trace *t, struct rng *r, uint64_t *pending, size_t *n)
{
	static unsigned char data[4 * 512];
	struct event ev = { .kind = EV_FLUSH };
	uint64_t kind = rng_below(r, 10);

	if (kind >= 3) {
		ev.kind = kind == 3 ? EV_DISCARD : kind == 4 ? EV_ZERO : EV_WRITE;
		ev.addr = rng_below(r, SECTORS) * 512;
		ev.len = min((1 + rng_below(r, 4)) * 512, SECTORS * 512 - ev.addr);
		memset(data, (int)(1 + t->events.n % 250), sizeof(data));
		ev.data = data;
		ev.flags |= rng_below(r, 5) == 0 ? EV_FUA : 0;
		ev.flags |= rng_below(r, 6) == 0 ? EV_PREFLUSH : 0;
	}
	pending[(*n)++] = trace_append(t, &ev);
}

/* Races, flushes that overtake, marks anywhere. */
static void random_trace(struct trace *t, struct rng *r, bool failures)
{
	uint64_t requests = 1 + rng_below(r, 24), pending[32];
	size_t n = 0;

	trace_init(t);
	t->info.size = SECTORS * 512;
	while (requests || n) {
		uint64_t what = rng_below(r, 8);

		if (n && (what < 4 || !requests)) {
			size_t i = rng_below(r, n);

			if (!failures || rng_below(r, 5))
				trace_complete(t, pending[i], 0);
			else if (rng_below(r, 2))
				trace_complete(t, pending[i], -EIO);
			pending[i] = pending[--n];
		} else if (what == 4) {
			trace_op_end(t, t->events.n, 0);
		} else if (requests) {
			random_request(t, r, pending, &n);
			requests--;
		}
	}
}

/* The same without what a log cannot hold: what failed or never completed. */
static void without_failed(const struct trace *t, struct trace *out)
{
	auto_free uint64_t *number = xcalloc(t->events.n, sizeof(*number));
	auto_free bool *good = xcalloc(t->events.n, sizeof(*good));

	trace_init(out);
	out->info = t->info;
	for (size_t i = 0; i < t->events.n; i++)
		if (t->events.v[i].kind == EV_COMPLETE)
			good[t->events.v[i].ref] = t->events.v[i].result == 0;
	for (size_t i = 0; i < t->events.n; i++) {
		struct event ev = t->events.v[i];

		if (event_is_request(ev.kind) && !good[i])
			continue;
		if (ev.kind == EV_COMPLETE) {
			if (!good[ev.ref])
				continue;
			ev.ref = number[ev.ref];
		}
		number[i] = trace_append(out, &ev);
	}
}

static size_t next_mark(const struct trace *t, size_t from)
{
	while (from < t->events.n && t->events.v[from].kind != EV_OP_END)
		from++;
	return from;
}

/* At each mark and at the end, the log says what the trace says. */
static void test_same_durability(void)
{
	enum { TRACES = 2000 };
	size_t durable = 0, content = 0, marks = 0, places = 0, again = 0;
	struct rng r;

	rng_init(&r, 21);
	for (int i = 0; i < TRACES; i++) {
		auto_trace all, t, back = { 0 };
		struct dmlog_report report;
		struct err err = ERR_INIT;
		size_t a = 0, b = 0;

		random_trace(&all, &r, i % 4 == 0);
		without_failed(&all, &t);
		if (dmlog_export(&all, path, &report, &err) || dmlog_import(path, &back, &err)) {
			printf("# %s\n", err.msg);
			marks++;
			continue;
		}
		again += back.events.n > t.events.n;
		do {
			struct verdict want, got;

			a = next_mark(&t, a);
			b = next_mark(&back, b);
			judge(&t, a, &want);
			judge(&back, b, &got);
			durable += memcmp(want.none, got.none, SECTORS) != 0;
			content += memcmp(want.all, got.all, SECTORS) != 0;
			marks += (a < t.events.n) != (b < back.events.n);
			places++;
			b++;
		} while (a++ < t.events.n);
	}
	is_u(marks, 0, "%d random traces: all marks are there", TRACES);
	is_u(durable, 0, "at %zu marks and ends the same is durable", places);
	is_u(content, 0, "and the same is there if everything survives");
	ok(again > TRACES / 100, "%zu of them took a write that is logged twice", again);
}

static void test_unaligned(void)
{
	auto_trace t;
	struct dmlog_report report;
	struct err err = ERR_INIT;

	trace_init(&t);
	trace_write(&t, 100, block, 512, 0);
	unlink(path);
	ok(dmlog_export(&t, path, &report, &err) == -EINVAL, "an odd address cannot be exported");
	is_s(err.msg,
	     "event 0: a write at 100 of 512 bytes cannot be exported: a log has sectors of 512 "
	     "bytes",
	     "says so");
	ok(access(path, F_OK) < 0, "no file");
}

/* Whatever happens to a log, import ends, and what it accepts is valid. */
static void test_damage(void)
{
	auto_strbuf log = STRBUF_INIT;
	size_t bad = 0, accepted = 0;

	log_super(&log, 1, 4, 512);
	log_entry(&log, 8, 1, META, "");
	log_entry(&log, 0, 0, MARK, "outage:begin 1 creat A");
	log_entry(&log, 0, 0, FLUSH, "");
	log_entry(&log, 8, 1, FUA, "");
	for (size_t i = 0; i < 2 * log.len; i++) {
		size_t len = i < log.len ? log.len : i - log.len;
		auto_free char *copy = xmemdupz(log.buf, len);
		struct err err = ERR_INIT;
		struct trace t;

		if (i < log.len)
			copy[i] ^= 0xff;
		if (dmlog_import_bytes(copy, len, &t, &err)) {
			bad += !err.msg[0];
			continue;
		}
		accepted++;
		bad += i >= log.len || trace_validate(&t, &err);
		trace_release(&t);
	}
	is_u(bad, 0, "any byte changed, any length: refused with a sentence, or a valid trace");
	ok(accepted > 1000, "a log has no checksums: %zu changes went unnoticed", accepted);
}

static void test_faults(void)
{
	auto_trace t;
	struct fault_loop loop = { .error = ENOSPC };
	int rounds = 0, bad = 0;

	trace_init(&t);
	trace_complete(&t, trace_write(&t, 0, block, sizeof(block), 0), 0);
	while (fault_loop_next(&loop)) {
		struct err err = ERR_INIT;
		struct dmlog_report report;
		struct trace got;

		unlink(path);
		rounds++;
		int rc = dmlog_export(&t, path, &report, &err);
		if (rc) {
			bad += rc != -ENOSPC || !err.msg[0] || access(path, F_OK) == 0;
			continue;
		}
		rc = dmlog_import(path, &got, &err);
		if (rc) {
			bad += rc != -ENOSPC || !err.msg[0];
			continue;
		}
		bad += got.events.n != t.events.n;
		trace_release(&got);
	}
	ok(rounds > 3, "%d fault points passed", rounds - 1);
	is_i(bad, 0, "export and import succeed or fail cleanly");
}

int main(void)
{
	if (!mkdtemp(dir))
		return 1;
	snprintf(path, sizeof(path), "%s/log", dir);
	for (size_t i = 0; i < sizeof(block); i++)
		block[i] = (unsigned char)(i % 512 * 7);
	test_import();
	test_bad_super();
	test_bad_entries();
	test_round_trip();
	test_long_marks();
	test_left_out();
	test_order();
	test_same_durability();
	test_unaligned();
	test_damage();
	test_faults();
	unlink(path);
	rmdir(dir);
	return done_testing();
}
