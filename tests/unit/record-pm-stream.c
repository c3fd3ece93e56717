/* SPDX-License-Identifier: MIT */
/* Streams of a tracer: good ones become traces, and each kind of damage is told. */
#include "tap.h"

#include <errno.h>
#include <sys/resource.h>

#include "base/strbuf.h"
#include "record/pm_selftest.h"
#include "record/pm_stream.h"

struct stream {
	struct strbuf sb;
	uint64_t count, sum;
};

enum { REGION = 8192 };

static void begin(struct stream *s)
{
	struct pm_stream_header h = { .magic = PM_STREAM_MAGIC,
				      .version = PM_STREAM_VERSION,
				      .header_size = sizeof(h),
				      .region_size = REGION,
				      .flags = PM_STREAM_HAS_PC,
				      .cpus = 2 };

	strbuf_clear(&s->sb);
	s->count = 0;
	s->sum = PM_STREAM_SUM_INIT;
	strbuf_add(&s->sb, &h, sizeof(h));
}

static void add(struct stream *s, struct pm_stream_record r, const void *data)
{
	size_t at = s->sb.len, size = pm_stream_record_size(r.kind, r.len);
	char zeros[8] = { 0 };

	strbuf_add(&s->sb, &r, sizeof(r));
	if (pm_stream_has_data(r.kind)) {
		strbuf_add(&s->sb, data, r.len);
		strbuf_add(&s->sb, zeros, at + size - s->sb.len);
	}
	s->sum = pm_stream_sum(s->sum, s->sb.buf + at, size);
	s->count++;
}

static void end(struct stream *s)
{
	struct pm_stream_record r = { .kind = PM_STREAM_END, .addr = s->count, .pc = s->sum };

	strbuf_add(&s->sb, &r, sizeof(r));
}

static int read_it(const struct stream *s, struct trace *t, struct err *err)
{
	err_clear(err);
	trace_clear(t);
	return pm_stream_read(s->sb.buf, s->sb.len, t, NULL, err);
}

/* One of each kind. */
static void fill(struct stream *s)
{
	uint64_t frames[] = { 0x1000, 0x2000 };

	begin(s);
	add(s, (struct pm_stream_record){ .kind = PM_STREAM_MARK_BEGIN, .addr = 3 }, NULL);
	add(s, (struct pm_stream_record){ .kind = PM_STREAM_STACK, .addr = 1, .len = 16 }, frames);
	add(s,
	    (struct pm_stream_record){
		    .kind = PM_STREAM_STORE, .addr = 10, .len = 3, .pc = 0x77, .stack = 1 },
	    "abc");
	add(s,
	    (struct pm_stream_record){
		    .kind = PM_STREAM_NTSTORE, .addr = REGION - 8, .len = 8, .cpu = 1 },
	    "12345678");
	add(s, (struct pm_stream_record){ .kind = PM_STREAM_FLUSH, .addr = 64 }, NULL);
	add(s, (struct pm_stream_record){ .kind = PM_STREAM_CLFLUSH, .addr = 128 }, NULL);
	add(s, (struct pm_stream_record){ .kind = PM_STREAM_FENCE, .cpu = 1 }, NULL);
	add(s, (struct pm_stream_record){ .kind = PM_STREAM_LOAD, .addr = 0, .len = 8 }, NULL);
	add(s, (struct pm_stream_record){ .kind = PM_STREAM_TEXT, .len = 5 }, "hello");
	add(s, (struct pm_stream_record){ .kind = PM_STREAM_SELF, .addr = 1, .pc = 2 }, NULL);
	add(s, (struct pm_stream_record){ .kind = PM_STREAM_MARK_END, .addr = 3 }, NULL);
	end(s);
}

static void test_good(struct stream *s, struct trace *t)
{
	static const enum event_kind kinds[] = { EV_OP_BEGIN,  EV_STACK,     EV_STORE, EV_STORE,
						 EV_LINEFLUSH, EV_LINEFLUSH, EV_FENCE, EV_LOAD,
						 EV_TEXT,      EV_OP_END };
	struct err err = ERR_INIT;
	bool same = true;

	fill(s);
	is_i(read_it(s, t, &err), 0, "a stream with one of each is read");
	is_u(t->events.n, ARRAY_SIZE(kinds), "as so many events");
	for (size_t i = 0; i < min(t->events.n, ARRAY_SIZE(kinds)); i++)
		same &= t->events.v[i].kind == kinds[i];
	ok(same, "of the right kinds");
	const struct event *ev = &t->events.v[2];
	ok(ev->addr == 10 && ev->len == 3 && memcmp(ev->data, "abc", 3) == 0 && ev->pc == 0x77 &&
		   ev->stack == 1,
	   "a store has its place, its data, and where it was made");
	ok(t->events.v[3].flags == EV_NONTEMPORAL && t->events.v[3].cpu == 1,
	   "a non-temporal one is told apart, and its CPU");
	ok(t->events.v[4].flags == 0 && t->events.v[5].flags == EV_CLFLUSH, "so is clflush");
	is_i(trace_validate(t, &err), 0, "the trace is valid");
	strbuf_add(&s->sb, "what follows the end", 20);
	is_i(read_it(s, t, &err), 0, "what follows the end is ignored");
}

static void test_cuts(struct stream *s, struct trace *t)
{
	struct err err = ERR_INIT;
	size_t whole, good = 0, dead = 0;

	fill(s);
	whole = s->sb.len;
	for (size_t n = 0; n < whole; n++) {
		auto_free char *copy = xmemdupz(s->sb.buf, n);

		err_clear(&err);
		trace_clear(t);
		int rc = pm_stream_read(copy, n, t, NULL, &err);
		good += rc == 0;
		dead += rc == -EPIPE;
	}
	is_u(good, 0, "a stream that is cut anywhere is refused");
	ok(dead > whole / 2, "mostly as that of a tracer that died");
	s->sb.len -= sizeof(struct pm_stream_record);
	memset(strbuf_grow(&s->sb, 4096), 0, 4096);
	s->sb.len += 4096;
	is_i(read_it(s, t, &err), -EPIPE, "so is one that goes on with zeros");
	ok(strstr(err.msg, "killed"), "with a sentence: %s", err.msg);
}

static void test_flips(struct stream *s, struct trace *t)
{
	struct err err = ERR_INIT;
	size_t accepted = 0;

	fill(s);
	/* The header's region, flags and CPUs are not part of the sum. */
	for (size_t i = sizeof(struct pm_stream_header) * 8; i < s->sb.len * 8; i++) {
		s->sb.buf[i / 8] ^= (char)(1 << i % 8);
		if (!read_it(s, t, &err)) {
			size_t tail = s->sb.len - sizeof(struct pm_stream_record);

			/* Of the end, only count and sum mean something. */
			accepted += i / 8 < tail;
		}
		s->sb.buf[i / 8] ^= (char)(1 << i % 8);
	}
	is_u(accepted, 0, "no bit of a record can be flipped unnoticed");
}

static void refused(struct stream *s, struct trace *t, struct pm_stream_record r, int code,
		    const char *what)
{
	static const char data[4104];
	struct err err = ERR_INIT;

	begin(s);
	add(s, r, data);
	end(s);
	is_i(read_it(s, t, &err), code, "%s: %s", what, err.msg);
}

/* A batch of these words, in a region of REGION bytes. */
static int read_batch(struct stream *s, struct trace *t, const uint64_t *words, size_t n,
		      unsigned records, struct err *err)
{
	begin(s);
	add(s,
	    (struct pm_stream_record){
		    .kind = PM_STREAM_BATCH, .pc = 0x100, .len = (uint32_t)n * 8 },
	    words);
	s->count = records;
	end(s);
	return read_it(s, t, err);
}

static void test_batches(struct stream *s, struct trace *t)
{
	const uint64_t first = pm_stream_small(PM_STREAM_STORE, 3, 64, 5);
	const uint64_t more = PM_STREAM_MORE | 2 << 3 | 0xff01ull << 8;
	const uint64_t good[] = {
		first, 1, more, 2, 3, pm_stream_small(PM_STREAM_FLUSH, 0, 64, 9)
	};
	const uint64_t bytes[] = { pm_stream_small(PM_STREAM_NTSTORE, 0, 9, 5), 0xa,
				   PM_STREAM_MORE_SAME | 9 << 8, 0x0807060504030201, 9 };
	const struct {
		const char *what;
		uint64_t word[4];
		size_t n;
	} bad[] = {
		{ "no kind", { 0 }, 1 },
		{ "a store that is cut off", { first }, 1 },
		{ "one that goes on after nothing", { more, 1, 2 }, 3 },
		{ "one after a flush",
		  { pm_stream_small(PM_STREAM_FLUSH, 0, 0, 0), more, 1, 2 },
		  4 },
		{ "one that goes on too long", { first, 1, more, 2 }, 4 },
		{ "none that go on", { first, 1, PM_STREAM_MORE, 2 }, 4 },
		{ "a flag that is not known",
		  { first, 1, PM_STREAM_MORE | 1 << 3 | 1 << 7, 2 },
		  4 },
		{ "very many", { first, 1, PM_STREAM_MORE_SAME | 0xffffffull << 8, 2 }, 4 },
		{ "far outside", { pm_stream_small(PM_STREAM_STORE, 3, REGION, 0), 1 }, 2 },
		{ "a flush with a length", { pm_stream_small(PM_STREAM_FLUSH, 1, 64, 0) }, 1 },
		{ "a flush of no line", { pm_stream_small(PM_STREAM_FLUSH, 0, 65, 0) }, 1 },
	};
	struct err err = ERR_INIT;
	const struct event *ev;

	is_i(read_batch(s, t, good, ARRAY_SIZE(good), 4, &err), 0, "a batch is read: %s", err.msg);
	is_u(t->events.n, 4, "as four events");
	ev = t->events.v;
	ok(ev[0].addr == 64 && ev[0].pc == 0x105 && ev[0].len == 8 && ev[0].data[0] == 1 &&
		   ev[1].addr == 72 && ev[1].pc == 0x106 && ev[1].data[0] == 2 &&
		   ev[2].addr == 80 && ev[2].pc == 0x105 && ev[2].data[0] == 3 &&
		   ev[3].addr == 64 && ev[3].kind == EV_LINEFLUSH && ev[3].pc == 0x109,
	   "each with its place");
	is_i(read_batch(s, t, bytes, ARRAY_SIZE(bytes), 10, &err), 0,
	     "one with many bytes as well");
	ev = t->events.v;
	ok(t->events.n == 2 && ev[0].addr == 9 && ev[0].len == 7 &&
		   memcmp(ev[0].data, "\n\1\2\3\4\5\6", 7) == 0 && ev[1].addr == 16 &&
		   ev[1].len == 3 && memcmp(ev[1].data, "\7\10\11", 3) == 0 && ev[1].pc == 0x105 &&
		   ev[1].flags == EV_NONTEMPORAL,
	   "as an event for each 8 bytes, which the instruction stored one by one");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		err_clear(&err);
		is_i(read_batch(s, t, bad[i].word, bad[i].n, 1, &err), -EINVAL, "%s: %s",
		     bad[i].what, err.msg);
	}
}

static void test_nonsense(struct stream *s, struct trace *t)
{
	struct err err = ERR_INIT;

	refused(s, t, (struct pm_stream_record){ .kind = 99 }, -EINVAL, "an unknown kind");
	refused(s, t, (struct pm_stream_record){ .kind = PM_STREAM_FENCE, .flags = 1 }, -EINVAL,
		"flags");
	refused(s, t, (struct pm_stream_record){ .kind = PM_STREAM_FENCE, .cpu = 2 }, -EINVAL,
		"a CPU that is not there");
	refused(s, t, (struct pm_stream_record){ .kind = PM_STREAM_STORE, .addr = 0 }, -EINVAL,
		"a store of nothing");
	refused(s, t,
		(struct pm_stream_record){ .kind = PM_STREAM_STORE, .addr = REGION - 4, .len = 8 },
		-EINVAL, "a store over the end");
	refused(s, t,
		(struct pm_stream_record){ .kind = PM_STREAM_STORE, .addr = UINT64_MAX, .len = 8 },
		-EINVAL, "a store far away");
	refused(s, t, (struct pm_stream_record){ .kind = PM_STREAM_FLUSH, .addr = 3 }, -EINVAL,
		"a flush of no line");
	refused(s, t, (struct pm_stream_record){ .kind = PM_STREAM_FLUSH, .addr = REGION }, -EINVAL,
		"a flush outside");
	refused(s, t, (struct pm_stream_record){ .kind = PM_STREAM_MARK_END, .addr = 1 << 30 },
		-EINVAL, "a mark with a huge number");
	refused(s, t, (struct pm_stream_record){ .kind = PM_STREAM_TEXT, .len = 4100 }, -EINVAL,
		"a text that is too long");
	refused(s, t, (struct pm_stream_record){ .kind = PM_STREAM_STACK, .addr = 2, .len = 8 },
		-EINVAL, "a stack out of turn");
	refused(s, t, (struct pm_stream_record){ .kind = PM_STREAM_STORE, .len = 1, .stack = 1 },
		-EINVAL, "a stack that is not there");

	begin(s);
	add(s, (struct pm_stream_record){ .kind = PM_STREAM_TROUBLE, .len = 9 }, "no\033[2J me");
	end(s);
	is_i(read_it(s, t, &err), -EIO, "a tracer that gave up is heard");
	ok(strstr(err.msg, "no?[2J me"), "and cannot talk to a terminal: %s", err.msg);

	begin(s);
	end(s);
	((struct pm_stream_header *)(void *)s->sb.buf)->version = PM_STREAM_VERSION + 1;
	is_i(read_it(s, t, &err), -EPROTO, "another version: %s", err.msg);
	begin(s);
	end(s);
	((struct pm_stream_header *)(void *)s->sb.buf)->header_size = 1 << 20;
	is_i(read_it(s, t, &err), -EINVAL, "a header that is longer than all: %s", err.msg);
	begin(s);
	end(s);
	s->sb.buf[0] = 'X';
	is_i(read_it(s, t, &err), -EINVAL, "something else: %s", err.msg);
}

static void test_replay(struct stream *s, struct trace *t)
{
	struct err err = ERR_INIT;
	auto_image base = IMAGE_INIT, after = IMAGE_INIT;

	fill(s);
	(void)!read_it(s, t, &err);
	image_init(&base, REGION);
	image_snapshot(&base, &after);
	image_write(&after, 10, "abc", 3);
	is_i(pm_replay_check(t, &base, &after, &err), -EUCLEAN, "a store too many is noticed: %s",
	     err.msg);
	image_write(&after, REGION - 8, "12345678", 8);
	err_clear(&err);
	is_i(pm_replay_check(t, &base, &after, &err), 0, "what is explained passes");
	image_write(&after, 5000, "x", 1);
	is_i(pm_replay_check(t, &base, &after, &err), -EUCLEAN, "a store that is missing, too");
	ok(strstr(err.msg, "5000"), "and where: %s", err.msg);
}

/* Two halves of a copy by a kernel's function at KERNEL, and a fence between them. */
#define KERNEL 0xffffffff81000000
static size_t events_of_copy(struct stream *s, struct trace *t, uint64_t pc, uint64_t fence,
			     uint64_t second)
{
	struct pm_stream_record r = { .kind = PM_STREAM_NTSTORE, .addr = 64, .len = 8, .pc = pc };
	struct pm_stream_record f = { .kind = PM_STREAM_FENCE, .pc = fence };
	struct err err = ERR_INIT;

	begin(s);
	add(s, r, "12345678");
	add(s, f, NULL);
	add(s, f, NULL);
	r.addr = second;
	r.pc += 16;
	add(s, r, "12345678");
	end(s);
	return read_it(s, t, &err) ? 0 : t->events.n;
}

/* Wherever a fence is, it may be one that something relies on: none is ever taken away. */
static void test_fences_stay(struct stream *s, struct trace *t)
{
	uint64_t far = KERNEL + 0x100000;

	is_u(events_of_copy(s, t, KERNEL, far, 72), 4,
	     "a caller's fences between two copies of a kernel's function stay");
	ok(t->events.v[1].kind == EV_FENCE && t->events.v[2].kind == EV_FENCE, "where they were");
	is_u(events_of_copy(s, t, KERNEL, KERNEL + 64, 72), 4, "so do those near the copy");
	is_u(events_of_copy(s, t, KERNEL, far, 128), 4, "and those before a store elsewhere");
	is_u(events_of_copy(s, t, 0x401000, 0x501000, 72), 4, "and those of a program");
}

/* Stores of a copy, and of the one after it. */
static void test_new_calls(struct stream *s, struct trace *t)
{
	struct pm_stream_record r = { .kind = PM_STREAM_STORE, .len = 8, .pc = 0x100 };
	uint64_t words[] = { pm_stream_small(PM_STREAM_STORE, 3, 64, 0), 7,
			     pm_stream_small(PM_STREAM_STORE, 3, 128, 0), 8 };
	struct pm_stream_record b = { .kind = PM_STREAM_BATCH,
				      .len = sizeof(words),
				      .flags = PM_STREAM_NEW_CALL };
	struct err err = ERR_INIT;

	begin(s);
	add(s, r, "12345678");
	r.addr = 8;
	r.flags = PM_STREAM_NEW_CALL;
	add(s, r, "12345678");
	add(s, b, words);
	s->count++;
	end(s);
	is_i(read_it(s, t, &err), 0, "it is told where a call begins: %s", err.msg);
	ok(t->events.n == 4 && !t->events.v[0].flags && t->events.v[1].flags == EV_NEW_CALL,
	   "at a store");
	ok(t->events.v[2].flags == EV_NEW_CALL && !t->events.v[3].flags,
	   "of a batch, at its first one");
	begin(s);
	add(s, (struct pm_stream_record){ .kind = PM_STREAM_FENCE, .flags = PM_STREAM_NEW_CALL },
	    NULL);
	end(s);
	is_i(read_it(s, t, &err), -EINVAL, "not at a fence");
	err_clear(&err);
	begin(s);
	r.flags = 2;
	add(s, r, "12345678");
	end(s);
	is_i(read_it(s, t, &err), -EINVAL, "nor anything else");
	trace_clear(t);
}

/* A stream of so many stores of 8 bytes, in as few bytes as can be. */
static void fill_long(struct stream *s, size_t stores)
{
	enum { EACH = 500 };
	static uint64_t words[2 + 1 + EACH - 1];

	words[0] = pm_stream_small(PM_STREAM_STORE, 3, 0, 0);
	words[2] = PM_STREAM_MORE_SAME | (uint64_t)(EACH - 1) << 8;
	begin(s);
	for (size_t i = 0; i < stores; i += EACH) {
		add(s,
		    (struct pm_stream_record){
			    .kind = PM_STREAM_BATCH, .pc = 0x100, .len = sizeof(words) },
		    words);
		s->count += EACH - 1;
	}
	end(s);
}

/* A quarter of what the process may have is less than such a stream needs. */
static void test_little_memory(struct stream *s, struct trace *t, size_t fit)
{
#ifndef __SANITIZE_ADDRESS__ /* which takes all addresses that there are */
	struct rlimit usual, low = { 160 << 20, 0 };
	struct err err = ERR_INIT;

	trace_clear(t);
	getrlimit(RLIMIT_AS, &usual);
	low.rlim_max = usual.rlim_max;
	fill_long(s, fit - 1000);
	setrlimit(RLIMIT_AS, &low);
	is_i(read_it(s, t, &err), -EFBIG, "nor one for which there is not enough: %s", err.msg);
	setrlimit(RLIMIT_AS, &usual);
	ok(strstr(err.msg, "more than 40 MiB"), "of which a quarter may be used");
	trace_clear(t);
#else
	(void)s, (void)t, (void)fit;
#endif
}

static void test_memory(struct stream *s, struct trace *t)
{
	size_t fit = (64 << 20) / (sizeof(struct event) + 8);
	struct err err = ERR_INIT;

	fill_long(s, fit - 1000);
	is_i(read_it(s, t, &err), 0, "a long stream is read: %s", err.msg);
	ok(t->events.n >= fit - 1000 && s->sb.len < 8 << 20, "all of it");
	fill_long(s, fit + 1000);
	is_i(read_it(s, t, &err), -EFBIG, "one that would take too much memory is not: %s",
	     err.msg);
	ok(t->events.n <= fit + 1, "and no more memory is taken than that");
	err_clear(&err);
	trace_clear(t);
	test_little_memory(s, t, fit);
	fill_long(s, fit + 1000);
	/* What follows the end is room that the stream might have had. */
	memset(strbuf_grow(&s->sb, 32 << 20), 0, 32 << 20);
	is_i(pm_stream_read(s->sb.buf, s->sb.len + (32 << 20), t, NULL, &err), 0,
	     "whoever allows a longer one allows more memory");
	trace_clear(t);
}

/*
 * What a tracer tells of its test (plugin/selftest.S), and what a machine makes of it: interrupts,
 * and processors that lack instructions.
 */
enum { STORE = PM_STREAM_STORE, NT = PM_STREAM_NTSTORE };

static const struct test_record {
	uint8_t kind;
	uint32_t len;
	uint64_t addr, value; /* of SELF, the second number */
} of_test[] = {
	{ PM_STREAM_SELF, 0, 0x1122334455667788, 42 },
	{ PM_STREAM_MARK_BEGIN, 0, 1, 0 },
	{ STORE, 1, 0, 0x11 },
	{ STORE, 2, 2, 0x2222 },
	{ STORE, 4, 4, 0x33333333 },
	{ STORE, 8, 8, 0x4444444444444444 },
	{ STORE, 8, 0x10, 0x4444444444444444 },
	{ STORE, 8, 0x18, 0x4444444444444444 },
	{ PM_STREAM_FLUSH, 0, 0, 0 },
	{ PM_STREAM_FLUSH, 0, 0x40, 0 },
	{ PM_STREAM_CLFLUSH, 0, 0x80, 0 },
	{ PM_STREAM_FLUSH, 0, 0xc0, 0 },
	{ PM_STREAM_FENCE, 0, 0, 0 },
	{ PM_STREAM_FENCE, 0, 0, 0 },
	{ PM_STREAM_MARK_END, 0, 1, 0 },
	{ PM_STREAM_MARK_BEGIN, 0, 2, 0 },
	{ NT, 8, 0x100, 0x5555555555555555 },
	{ NT, 4, 0x108, 0x55555555 },
	{ NT, 8, 0x110, 0x5555555555555555 },
	{ NT, 8, 0x120, 0x4444444444444444 },
	{ NT, 8, 0x128, 0x4444444444444444 },
	{ NT, 8, 0x130, 0x4444444444444444 },
	{ NT, 8, 0x138, 0x4444444444444444 },
	{ NT, 8, 0x140, 0x4444444444444444 },
	{ NT, 8, 0x148, 0x4444444444444444 },
	{ PM_STREAM_FENCE, 0, 0, 0 },
	{ STORE, 8, 0x200, 7 },
	{ PM_STREAM_FENCE, 0, 0, 0 }, /* lock inc */
	{ STORE, 8, 0x200, 8 },
	{ PM_STREAM_FENCE, 0, 0, 0 }, /* xchg */
	{ STORE, 8, 0x208, 9 },
	{ STORE, 8, 0x210, 0x3333333322220011 },
	{ STORE, 8, 0x218, 0x4444444444444444 },
	{ PM_STREAM_FENCE, 0, 0, 0 }, /* lock cmpxchg16b */
	{ STORE, 16, 0x220, 3 },
	{ STORE, 8, 0x230, 0x8000000000000000 },
	{ STORE, 2, 0x238, 0x3fff },
	{ STORE, 8, 0x240, 0x3ff0000000000000 },
	{ STORE, 4, 0xffc, 0x66666666 },
	{ STORE, 4, 0x1000, 0x66666666 },
	{ PM_STREAM_TEXT, 8, 0, 0x74736574666c6573 },
	{ PM_STREAM_MARK_END, 0, 2, 0 },
};

enum { NOWHERE = 1000, SFENCE = 12, LOCKS = 3 };
static const size_t locked[LOCKS] = { 27, 29, 33 };

/* What is different this time; NOWHERE: not that. */
struct twist {
	size_t fence_before, without, wrong_value;
	uint64_t fence_pc;
	uint64_t self;
	unsigned flush; /* 0: as they are */
};

static const struct twist as_it_is = { NOWHERE, NOWHERE, NOWHERE, 0, 42, 0 };

static uint64_t wrong_record(struct stream *s, const struct twist *by, bool in_machine)
{
	struct selftest_wrong wrong;
	struct err err = ERR_INIT;

	begin(s);
	for (size_t i = 0; i < ARRAY_SIZE(of_test); i++) {
		struct test_record x = of_test[i];
		uint64_t data[2] = { x.value + (i == by->wrong_value), 0 };
		struct pm_stream_record r = {
			.kind = x.kind, .len = x.len, .addr = x.addr, .pc = 0x401000
		};
		struct pm_stream_record f = { .kind = PM_STREAM_FENCE, .pc = by->fence_pc };

		if (i == by->fence_before)
			add(s, f, NULL);
		if (i == by->without)
			continue;
		if (x.kind == PM_STREAM_SELF)
			r.pc = by->self;
		if (x.kind == PM_STREAM_FLUSH && by->flush)
			r.kind = (uint8_t)by->flush;
		add(s, r, data);
	}
	end(s);
	return pm_selftest_compare(s->sb.buf, s->sb.len, in_machine, &wrong, &err) ? 1
										   : wrong.number;
}

static void test_interrupted_selftest(struct stream *s)
{
	struct twist t = as_it_is;
	unsigned passed = 0, machine = 0, program = 0, strict = 0;

	for (size_t i = 0; i < LOCKS; i++) {
		t.without = locked[i];
		t.fence_before = NOWHERE;
		strict += wrong_record(s, &t, true) == locked[i] + 1;
		/* Right before it, or a store earlier: what was stored since wants its own. */
		t.fence_before = locked[i];
		t.fence_pc = KERNEL;
		passed += wrong_record(s, &t, true) == 0;
		program += wrong_record(s, &t, false) == 0;
		t.fence_before = locked[i] - 1;
		machine += wrong_record(s, &t, true) == 0;
	}
	is_u(strict, LOCKS, "a locked instruction that is not told is noticed");
	is_u(passed, LOCKS, "unless an interrupt of the machine has had one since the last store");
	is_u(machine, 0, "not before it");
	is_u(program, 0, "a program that is emulated alone has no interrupts");
	t.without = t.fence_before = SFENCE;
	ok(wrong_record(s, &t, true), "a fence that is one is always told");
	t.without = NOWHERE;
	t.fence_before = 9;
	t.fence_pc = 0x501000;
	is_u(wrong_record(s, &t, true), 0, "others of the machine have fences");
	ok(wrong_record(s, &t, false), "there are none if it is alone");
}

static void test_selftest(struct stream *s)
{
	struct twist t = as_it_is;

	is_u(wrong_record(s, &t, true), 0, "the tracer's test passes in a machine");
	is_u(wrong_record(s, &t, false), 0, "and in a process");
	t.wrong_value = 4;
	is_u(wrong_record(s, &t, true), 5, "another value is noticed, and where");
	t = as_it_is;
	t.self = 41;
	is_u(wrong_record(s, &t, true), 1, "so is a register that is out of date");
	t.self = 43;
	ok(wrong_record(s, &t, true), "without clflushopt, nothing but clflush can be told");
	t.flush = PM_STREAM_CLFLUSH;
	is_u(wrong_record(s, &t, true), 0, "which it is");
	t.self = 42;
	ok(wrong_record(s, &t, true), "with it, others must be told as such");
	test_interrupted_selftest(s);
}

int main(void)
{
	struct stream s = { 0 };
	auto_trace t;

	trace_init(&t);
	test_good(&s, &t);
	test_cuts(&s, &t);
	test_flips(&s, &t);
	test_batches(&s, &t);
	test_nonsense(&s, &t);
	test_replay(&s, &t);
	test_fences_stay(&s, &t);
	test_new_calls(&s, &t);
	test_memory(&s, &t);
	test_selftest(&s);
	strbuf_release(&s.sb);
	return done_testing();
}
