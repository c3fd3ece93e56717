/* SPDX-License-Identifier: MIT */
/* core-trace.c - traces in memory and on disk: the rules, the round trip, and damage of any kind.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/rng.h"
#include "core/bytes.h"
#include "core/trace_file.h"
#include "tap.h"
#include "trace-build.h"

static char dir[] = "/tmp/core-trace.XXXXXX";
static char path[64];

/* One event of every kind. */
static void fill(struct trace *t)
{
	unsigned char sector[512];

	memset(sector, 0x5a, sizeof(sector));
	trace_op_begin(t, 0, "creat A/foo");
	uint64_t w = trace_write(t, 4096, sector, sizeof(sector), EV_FUA | EV_META);
	uint64_t f = trace_flush(t);
	trace_complete(t, w, 0);
	trace_complete(t, f, -EIO);
	uint64_t d = trace_append(t, &(struct event){ .kind = EV_DISCARD, .len = 65536 });
	trace_append(t, &(struct event){ .kind = EV_ZERO, .addr = 512, .len = 1024 });
	trace_append(t, &(struct event){ .kind = EV_READ, .addr = 512, .len = 512 });
	trace_complete(t, d, 0);
	trace_append(t, &(struct event){ .kind = EV_STORE,
					 .addr = 72,
					 .len = 3,
					 .cpu = 2,
					 .flags = EV_NONTEMPORAL,
					 .data = (const unsigned char *)"abc" });
	trace_append(t, &(struct event){ .kind = EV_LINEFLUSH, .addr = 64, .flags = EV_CLFLUSH });
	trace_append(t, &(struct event){ .kind = EV_FENCE, .cpu = 1, .time_ns = 1234567 });
	trace_append(t, &(struct event){ .kind = EV_LOAD, .addr = 1, .len = 2 });
	trace_op_end(t, 0, -ENOSPC);
	trace_persist(t, 0);
	trace_text(t, "");
	trace_text(t, "the end");
}

static bool same_event(const struct event *a, const struct event *b)
{
	return a->kind == b->kind && a->flags == b->flags && a->cpu == b->cpu &&
	       a->result == b->result && a->addr == b->addr && a->len == b->len &&
	       a->ref == b->ref && a->time_ns == b->time_ns && a->pc == b->pc &&
	       a->stack == b->stack &&
	       (!event_has_data(a->kind) || !a->len || memcmp(a->data, b->data, a->len) == 0);
}

/* Whether `a` is what `b` begins with. */
static bool is_prefix(const struct trace *a, const struct trace *b)
{
	bool same = a->events.n <= b->events.n && a->info.size == b->info.size &&
		    a->info.sector_size == b->info.sector_size &&
		    a->info.completions == b->info.completions &&
		    streq(a->info.target, b->info.target);

	for (size_t i = 0; same && i < a->events.n; i++)
		same = same_event(&a->events.v[i], &b->events.v[i]);
	return same;
}

static void make(struct trace *t)
{
	trace_init(t);
	t->info.size = 1 << 20;
	t->info.completions = true;
	memcpy(t->info.target, "ext4", 5);
	fill(t);
}

static void slurp(struct strbuf *out)
{
	struct err err = ERR_INIT;

	strbuf_clear(out);
	if (io_slurp(path, 1 << 30, out, &err))
		abort();
}

static void test_memory(void)
{
	auto_trace t;
	struct err err = ERR_INIT;

	make(&t);
	is_i(trace_validate(&t, &err), 0, "every kind is valid");
	is_u(t.events.n, 17, "every event is there");
	is_s((const char *)t.events.v[0].data, "creat A/foo", "a text ends with a NUL");
	ok(!t.events.v[2].data, "a flush has no data");
	trace_clear(&t);
	ok(t.events.n == 0 && t.info.size == 1 << 20, "clear keeps the info");
}

static void refused(struct event ev, const char *want)
{
	auto_trace t;
	struct err err = ERR_INIT;

	trace_init(&t);
	t.info.size = 8192;
	trace_complete(&t, trace_flush(&t), 0);
	trace_flush(&t);
	vec_push(&t.events, ev); /* not trace_append, which asserts */
	ok(trace_validate(&t, &err) == -EINVAL, "refused: %s", want);
	is_s(err.msg, want, "and the sentence");
}

static void test_rules(void)
{
	auto_trace t;
	struct err err = ERR_INIT;

	refused((struct event){ .kind = 99 }, "event 3: there is no kind 99");
	refused((struct event){ .kind = 0 }, "event 3: there is no kind 0");
	refused((struct event){ .kind = EV_COMPLETE, .ref = 3 },
		"event 3: completes event 3, which is not before it");
	refused((struct event){ .kind = EV_COMPLETE, .ref = 1 },
		"event 3: completes event 1, which is not a request");
	refused((struct event){ .kind = EV_COMPLETE, .ref = 0 },
		"event 3: completes event 0 a second time");
	refused((struct event){ .kind = EV_COMPLETE, .ref = 2, .result = 1 },
		"event 3: a result of 1 is neither 0 nor an error");
	refused((struct event){ .kind = EV_WRITE, .len = EVENT_DATA_MAX + 1 },
		"event 3: write carries 67108865 bytes, more than 67108864");
	refused((struct event){ .kind = EV_WRITE }, "event 3: write of 0 bytes");
	refused((struct event){ .kind = EV_FLUSH, .len = 1 }, "event 3: flush has a length");
	refused((struct event){ .kind = EV_DISCARD, .addr = 8000, .len = 512 },
		"event 3: discard at 8000 of 512 bytes leaves the device of 8192 bytes");
	refused((struct event){ .kind = EV_READ, .addr = UINT64_MAX, .len = 512 },
		"event 3: read at 18446744073709551615 of 512 bytes is beyond any device");
	refused((struct event){ .kind = EV_LINEFLUSH, .addr = 65 },
		"event 3: lineflush at 65 is not one line");
	refused((struct event){ .kind = EV_FENCE, .flags = EV_FUA },
		"event 3: flags 0x2 do not belong to a fence");
	refused((struct event){ .kind = EV_FENCE, .cpu = TRACE_CPU_MAX },
		"event 3: CPU 8388608 is too large");
	refused((struct event){ .kind = EV_PERSIST, .ref = TRACE_OP_MAX },
		"event 3: persist of operation 16777216, a number that is too large");

	refused((struct event){ .kind = EV_STACK, .ref = 1, .len = 12 },
		"event 3: a stack of 12 bytes is not one of up to 256 addresses");
	refused((struct event){ .kind = EV_STACK, .ref = 1, .len = 8 * 257 },
		"event 3: a stack of 2056 bytes is not one of up to 256 addresses");
	refused((struct event){ .kind = EV_STACK, .ref = 2 },
		"event 3: stack 2 comes after stack 0");
	refused((struct event){ .kind = EV_FENCE, .pc = 1 },
		"event 3: has a place in a program, which no event of this trace should have");

	trace_init(&t);
	t.info.sector_size = 500;
	ok(trace_validate(&t, &err) == -EINVAL, "a sector size that is no power of two");
	is_s(err.msg, "a sector size of 500 bytes is not a power of two up to 1048576", "says so");
}

static void test_round_trip(void)
{
	auto_trace t, back;
	struct trace_damage damage;
	struct err err = ERR_INIT;

	make(&t);
	is_i(trace_save(path, &t, &err), 0, "save");
	is_i(trace_load(path, &back, &damage, &err), 0, "load");
	ok(!damage.found, "no damage");
	ok(back.events.n == t.events.n && is_prefix(&back, &t), "the same trace");
	ok(trace_validate(&back, &err) == 0, "and valid");
}

/* Places make the records longer, and only then. */
static void test_places(void)
{
	static const uint64_t frames[] = { 0xffffffff81000010, 0x401000, 1 };
	uint64_t got[EVENT_FRAMES_MAX];
	struct trace_damage damage = { 0 };
	struct err err = ERR_INIT;
	auto_trace t, back;

	make(&t);
	ok(!t.info.places, "a trace without places");
	is_u(trace_add_stack(&t, NULL, 0), 1, "an empty stack");
	is_u(trace_add_stack(&t, frames, 3), 2, "a second one");
	trace_append(&t, &(struct event){ .kind = EV_FENCE, .pc = 0x401234, .stack = 2 });
	ok(t.info.places && trace_validate(&t, &err) == 0, "one with them is valid");
	is_i(trace_save(path, &t, &err), 0, "it is saved");
	is_i(trace_load(path, &back, &damage, &err), 0, "and loaded");
	ok(!damage.found && back.events.n == t.events.n && is_prefix(&back, &t) && back.info.places,
	   "the same trace");
	ok(trace_stack(&back, 2, got) == 3 && memcmp(got, frames, sizeof(frames)) == 0,
	   "the frames of a stack");
	ok(!trace_stack(&back, 0, got) && !trace_stack(&back, 1, got) &&
		   !trace_stack(&back, 3, got),
	   "none where there are none");

	vec_last(&t.events).stack = 3;
	is_i(trace_validate(&t, &err), -EINVAL, "a stack that was not there before is refused");
	is_s(err.msg, "event 19: its stack 3 is not among the 2 before it", "and the sentence");
}

/* Enough for several frames, with data of all sizes, half of it incompressible. */
static void test_many_frames(void)
{
	auto_trace t, back;
	auto_free unsigned char *data = xcalloc(1, 5 << 20);
	struct err err = ERR_INIT;
	struct trace_writer *w = NULL;
	struct rng rng;
	int rc = 0;

	rng_init(&rng, 1);
	for (size_t i = 0; i < 1 << 20; i++)
		data[i] = (unsigned char)rng_next(&rng);
	make(&t);
	t.info.size = 0;
	for (int i = 0; i < 3000; i++)
		trace_write(&t, rng_below(&rng, 1 << 30), data + rng_below(&rng, 2 << 20),
			    1 + rng_below(&rng, i % 1000 == 999 ? 3 << 20 : 1000), 0);
	ok(trace_writer_open(path, &t.info, &w, &err) == 0, "open a writer");
	for (size_t i = 0; !rc && i < t.events.n; i++)
		rc = trace_writer_append(w, &t.events.v[i], &err);
	is_i(rc, 0, "append everything");
	is_i(trace_writer_close(w, &err), 0, "close");
	is_i(trace_load(path, &back, NULL, &err), 0, "load what must not be damaged");
	ok(back.events.n == t.events.n && is_prefix(&back, &t), "the same trace");
}

static void test_writer_crash(void)
{
	auto_trace t, back;
	struct trace_damage damage;
	struct err err = ERR_INIT;
	struct trace_writer *w = NULL;

	make(&t);
	ok(trace_writer_open(path, &t.info, &w, &err) == 0, "open a writer");
	for (size_t i = 0; i < 5; i++)
		if (trace_writer_append(w, &t.events.v[i], &err))
			abort();
	is_i(trace_writer_append(w, &(struct event){ .kind = EV_WRITE }, &err), -EINVAL,
	     "an invalid event is refused");
	is_s(err.msg, "event 5: write of 0 bytes", "with a sentence");
	err_clear(&err);
	is_i(trace_writer_flush(w, &err), 0, "flush");
	ok(trace_writer_append(w, &t.events.v[5], &err) == 0, "append one more");
	trace_writer_free(w); /* as a crash would */
	is_i(trace_load(path, &back, &damage, &err), 0, "what was flushed is readable");
	ok(damage.found && damage.cut_off && damage.events == 5, "and the trace is cut off");
	ok(back.events.n == 5 && is_prefix(&back, &t), "five events");
	ok(strncmp(damage.text, "frame 1 at byte ", 16) == 0 &&
		   strstr(damage.text, ": the file ends without an end frame; 5 events before it "
				       "are readable"),
	   "the sentence: %s", damage.text);
	ok(trace_load(path, &back, NULL, &err) == -EBADMSG, "fails where damage is not expected");
}

/* The file of a small trace with a frame every third event. */
static void small_file(struct trace *t, struct strbuf *file)
{
	struct err err = ERR_INIT;
	struct trace_writer *w = NULL;

	make(t);
	if (trace_writer_open(path, &t->info, &w, &err))
		abort();
	for (size_t i = 0; i < t->events.n; i++)
		if (trace_writer_append(w, &t->events.v[i], &err) ||
		    (i % 3 == 2 && trace_writer_flush(w, &err)))
			abort();
	if (trace_writer_close(w, &err))
		abort();
	slurp(file);
}

static void test_truncation(void)
{
	auto_trace t;
	auto_strbuf file = STRBUF_INIT;
	size_t bad = 0, readable = 0;

	small_file(&t, &file);
	for (size_t len = 0; len < file.len; len++) {
		auto_free char *copy = xmemdupz(file.buf, len); /* so that overruns are seen */
		struct trace_damage damage = { 0 };
		struct err err = ERR_INIT;
		struct trace got;
		int rc = trace_load_bytes(copy, len, &got, &damage, &err);

		if (len < TRACE_FILE_HEADER) {
			bad += rc != -EINVAL || !err.msg[0];
			continue;
		}
		bad += rc || !damage.found || !damage.cut_off || damage.events != got.events.n ||
		       !is_prefix(&got, &t) || trace_validate(&got, &err);
		readable = max(readable, got.events.n);
		trace_release(&got);
	}
	is_u(bad, 0, "cut off after any byte: said so, and the rest is right");
	is_u(readable, t.events.n, "cut off within the end frame: all events are readable");
}

static void test_flips(void)
{
	auto_trace t;
	auto_strbuf file = STRBUF_INIT;
	size_t bad = 0, headers = 0;

	small_file(&t, &file);
	for (size_t i = 0; i < file.len; i++) {
		for (int bit = 0; bit < 9; bit++) {
			auto_free char *copy = xmemdupz(file.buf, file.len);
			struct trace_damage damage = { 0 };
			struct err err = ERR_INIT;
			struct trace got;

			copy[i] ^= bit < 8 ? 1 << bit : 0xff;
			if (trace_load_bytes(copy, file.len, &got, &damage, &err)) {
				headers += err.msg[0] != '\0';
				continue;
			}
			bad += !damage.found || !is_prefix(&got, &t) || trace_validate(&got, &err);
			trace_release(&got);
		}
	}
	is_u(bad, 0, "any byte changed: damage is found, and what is before it is right");
	is_u(headers, TRACE_FILE_HEADER * 9, "a bad header, and only that, is a failure");
}

/* A file with a good header and one frame with the given payload. */
static void craft(struct strbuf *file, const struct strbuf *payload, uint32_t count, uint64_t first)
{
	auto_trace t;
	auto_strbuf frame = STRBUF_INIT;
	struct err err = ERR_INIT;

	trace_init(&t);
	if (trace_save(path, &t, &err))
		abort();
	slurp(file);
	strbuf_cut(file, TRACE_FILE_HEADER);
	strbuf_adds(&frame, "EVTS");
	strbuf_add_le32(&frame, (uint32_t)payload->len);
	strbuf_add_le32(&frame, (uint32_t)payload->len);
	strbuf_add_le32(&frame, count);
	strbuf_add_le64(&frame, first);
	strbuf_add(&frame, payload->buf, payload->len);
	strbuf_add_le64(&frame, hash64(frame.buf, frame.len));
	strbuf_add(file, frame.buf, frame.len);
}

static void add_record(struct strbuf *sb, uint32_t kind, uint64_t len, uint64_t ref)
{
	strbuf_add_le32(sb, kind);
	for (int i = 0; i < 3; i++)
		strbuf_add_le32(sb, 0);
	strbuf_add_le64(sb, 0);
	strbuf_add_le64(sb, len);
	strbuf_add_le64(sb, ref);
	strbuf_add_le64(sb, 0);
}

static void damage_is(const struct strbuf *file, uint64_t events, const char *why)
{
	struct trace_damage damage = { 0 };
	struct err err = ERR_INIT;
	auto_trace got = { 0 };
	char want[512];

	snprintf(want, sizeof(want),
		 "frame 0 at byte 104: %s; %" PRIu64 " event%s before it %s readable", why, events,
		 events == 1 ? "" : "s", events == 1 ? "is" : "are");
	ok(trace_load_bytes(file->buf, file->len, &got, &damage, &err) == 0 && damage.found &&
		   got.events.n == events,
	   "crafted: %s", why);
	is_s(damage.text, want, "and the sentence");
}

static void test_crafted(void)
{
	auto_strbuf file = STRBUF_INIT, payload = STRBUF_INIT;

	add_record(&payload, EV_FLUSH, 0, 0);
	add_record(&payload, EV_COMPLETE, 0, 7);
	craft(&file, &payload, 2, 0);
	damage_is(&file, 1, "event 1: completes event 7, which is not before it");
	craft(&file, &payload, 2, 3);
	damage_is(&file, 0, "its first event is 3");
	craft(&file, &payload, 1, 0);
	damage_is(&file, 0, "48 bytes are left over after its last event");
	craft(&file, &payload, 3, 0);
	damage_is(&file, 0, "3 events in 96 bytes are not possible");
	craft(&file, &payload, 0, 0);
	damage_is(&file, 0, "0 events in 96 bytes are not possible");

	strbuf_clear(&payload);
	add_record(&payload, EV_TEXT, UINT64_MAX, 0);
	craft(&file, &payload, 1, 0);
	damage_is(&file, 0, "the data of event 0 does not fit into it");
	strbuf_clear(&payload);
	add_record(&payload, 77, 0, 0);
	craft(&file, &payload, 1, 0);
	damage_is(&file, 0, "event 0: there is no kind 77");
	put_le32((unsigned char *)file.buf + TRACE_FILE_HEADER + 4, UINT32_MAX);
	damage_is(&file, 0, "a length of 4294967295 bytes, 48 in the file, is not possible");
	file.buf[TRACE_FILE_HEADER] = 'X';
	damage_is(&file, 0, "no frame begins here");

	/* With places, the last four bytes of a record are reserved. */
	strbuf_clear(&payload);
	add_record(&payload, EV_FENCE, 0, 0);
	strbuf_add_le64(&payload, 0x401000);
	strbuf_add_le64(&payload, (uint64_t)1 << 32);
	craft(&file, &payload, 1, 0);
	unsigned char *h = (unsigned char *)file.buf;
	put_le32(h + 12, 2);
	put_le64(h + 96, hash64(h, 96));
	damage_is(&file, 0, "event 0 has a place of an unknown kind");
}

/* More than 8 GiB of events: zeros that take little room. The reader goes through; loading says no.
 */
static void test_large(void)
{
	enum { LEN = EVENT_DATA_MAX, EVENTS = 130 };
	auto_free unsigned char *zeros = xcalloc(1, LEN);
	auto_strbuf one = STRBUF_INIT, file = STRBUF_INIT;
	auto_call(cleanup_trace_reader) struct trace_reader *r = NULL;
	struct trace_info info = { .sector_size = 512 };
	struct trace_writer *w = NULL;
	struct err err = ERR_INIT;
	struct event ev;
	uint64_t bytes = 0;

	is_i(trace_writer_open(path, &info, &w, &err), 0, "a large trace");
	ev = (struct event){ .kind = EV_WRITE, .len = LEN, .data = zeros };
	if (trace_writer_append(w, &ev, &err) || trace_writer_close(w, &err))
		abort();
	/* Its one frame again and again, each with its own number: the writer would take longer. */
	slurp(&one);
	size_t frame = one.len - TRACE_FILE_HEADER - TRACE_FRAME_HEADER - TRACE_FILE_CHECKSUM;
	strbuf_add(&file, one.buf, TRACE_FILE_HEADER);
	for (uint64_t i = 0; i <= EVENTS; i++) {
		bool end = i == EVENTS;
		unsigned char *at =
			(unsigned char *)one.buf + TRACE_FILE_HEADER + (end ? frame : 0);
		size_t len =
			(end ? one.len - TRACE_FILE_HEADER - frame : frame) - TRACE_FILE_CHECKSUM;

		put_le64(at + 16, i);
		put_le64(at + len, hash64(at, len));
		strbuf_add(&file, at, len + TRACE_FILE_CHECKSUM);
	}
	is_i(trace_reader_open_bytes(file.buf, file.len, &r, &err), 0, "is opened");
	while (trace_reader_next(r, &ev, &err) > 0)
		bytes += ev.len;
	ok(bytes == (uint64_t)EVENTS * LEN && bytes > TRACE_LOAD_MAX, "%" PRIu64 " bytes are read",
	   bytes);
	ok(!trace_reader_damage(r)->found, "without damage %s", trace_reader_damage(r)->text);

	struct trace_damage damage = { 0 };
	struct trace got;

	is_i(trace_load_limited(path, LEN, &got, &damage, &err), -EFBIG, "too large for memory");
	ok(!damage.found, "which is no damage");
	ok(strstr(err.msg, "is too large to be held in memory: its events take more than 67108864 "
			   "bytes") != NULL,
	   "but %s", err.msg);
	is_i(trace_load_limited(path, LEN + TRACE_RECORD, &got, &damage, &err), 0, "just enough");
	trace_release(&got);
}

static void fails_with(const struct strbuf *file, const char *want)
{
	struct err err = ERR_INIT;
	struct trace got;

	ok(trace_load_bytes(file->buf, file->len, &got, NULL, &err) < 0, "fails");
	is_s(err.msg, want, "%s", want);
}

static void test_headers(void)
{
	auto_strbuf file = STRBUF_INIT, none = STRBUF_INIT, payload = STRBUF_INIT;
	unsigned char *h;

	fails_with(&none, "memory is not a trace");
	craft(&file, &payload, 0, 0);
	strbuf_cut(&file, TRACE_FILE_HEADER);
	h = (unsigned char *)file.buf;
	put_le32(h + 24, 513);
	fails_with(&file, "memory is a trace with a damaged header: its checksum does not match");
	put_le64(h + 96, hash64(h, 96));
	fails_with(&file, "memory is a trace with a bad header: a sector size of 513 bytes is not "
			  "a power of two up to 1048576");
	put_le32(h + 8, 7);
	fails_with(&file, "memory is a trace of version 7, which is not supported; this program "
			  "reads version 1");
	put_le32(h + 8, 1);
	strbuf_cut(&file, 50);
	fails_with(&file, "memory is a trace that was cut off within its header");
}

static void test_trailing(void)
{
	auto_trace t, got;
	auto_strbuf file = STRBUF_INIT;
	struct trace_damage damage = { 0 };
	struct err err = ERR_INIT;

	small_file(&t, &file);
	strbuf_addch(&file, 'x');
	is_i(trace_load_bytes(file.buf, file.len, &got, &damage, &err), 0, "load");
	ok(damage.found && !damage.cut_off && got.events.n == t.events.n,
	   "bytes after the end are damage: %s", damage.text);
}

static void test_faults(void)
{
	auto_trace t;
	struct fault_loop loop = { .error = ENOSPC };
	int rounds = 0, bad = 0;

	make(&t);
	while (fault_loop_next(&loop)) {
		struct err err = ERR_INIT;
		struct trace_damage damage;
		struct trace got;

		unlink(path);
		rounds++;
		int rc = trace_save(path, &t, &err);
		if (rc) {
			bad += rc != -ENOSPC || !err.msg[0] || access(path, F_OK) == 0;
			continue;
		}
		rc = trace_load(path, &got, &damage, &err);
		if (rc) {
			bad += rc != -ENOSPC || !err.msg[0];
			continue;
		}
		bad += damage.found || !is_prefix(&got, &t) || got.events.n != t.events.n;
		trace_release(&got);
	}
	ok(rounds > 5, "%d fault points passed", rounds - 1);
	is_i(bad, 0, "save and load succeed or fail cleanly, and a failed save leaves no file");
}

/* Appends all of `t`, each event in a frame of its own. The first failure, or 0. */
static int write_slowly(const struct trace *t, int *bad)
{
	struct err err = ERR_INIT, again = ERR_INIT;
	struct trace_writer *w = NULL;
	int rc = trace_writer_open(path, &t->info, &w, &err);

	if (rc)
		return rc;
	for (size_t i = 0; !rc && i < t->events.n; i++) {
		rc = trace_writer_append(w, &t->events.v[i], &err);
		if (!rc)
			rc = trace_writer_flush(w, &err);
	}
	if (rc)
		*bad += trace_writer_append(w, &t->events.v[0], &again) != rc;
	int closed = trace_writer_close(w, &err);
	*bad += (rc && closed != rc) || (closed && !err.msg[0]);
	return closed;
}

/* A writer that fails keeps failing, and what it wrote before stays readable. */
static void test_writer_faults(void)
{
	auto_trace t;
	int bad = 0, n = 0;
	bool hit;

	make(&t);
	do {
		struct err err = ERR_INIT;
		struct trace_damage damage = { 0 };
		struct trace got;

		unlink(path);
		fault_arm(++n, EIO);
		int rc = write_slowly(&t, &bad);
		hit = fault_disarm(NULL);
		bad += rc != (hit ? -EIO : 0);
		if (n <= 2) /* creating the file, writing the header */
			continue;
		bad += trace_load(path, &got, &damage, &err) || damage.found != hit ||
		       damage.cut_off != hit || !is_prefix(&got, &t);
		if (!err.code)
			trace_release(&got);
	} while (hit);
	is_i(bad, 0, "a disk that fails at write 1 to %d", n - 1);
}

int main(void)
{
	if (!mkdtemp(dir))
		return 1;
	snprintf(path, sizeof(path), "%s/trace", dir);
	test_memory();
	test_rules();
	test_round_trip();
	test_places();
	test_many_frames();
	test_writer_crash();
	test_truncation();
	test_flips();
	test_crafted();
	test_large();
	test_headers();
	test_trailing();
	test_faults();
	test_writer_faults();
	unlink(path);
	rmdir(dir);
	return done_testing();
}
