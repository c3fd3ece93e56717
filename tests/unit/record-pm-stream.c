/* SPDX-License-Identifier: MIT */
/* Streams of a tracer: good ones become traces, and each kind of damage is told. */
#include "tap.h"

#include <errno.h>

#include "base/strbuf.h"
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
	ok(t->events.n == 10 && ev[9].addr == 18 && ev[9].len == 1 && ev[9].data[0] == 9 &&
		   ev[9].pc == 0x105 && ev[9].flags == EV_NONTEMPORAL,
	   "as an event each");
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

static void test_interrupts(struct stream *s, struct trace *t)
{
	uint64_t far = KERNEL + 0x100000;

	is_u(events_of_copy(s, t, KERNEL, far, 72), 2, "fences of an interrupt do not cut a copy");
	is_u(events_of_copy(s, t, KERNEL, KERNEL + 64, 72), 4, "fences of a copy's own do");
	is_u(events_of_copy(s, t, KERNEL, far, 128), 3, "so does one before a store elsewhere");
	ok(t->events.v[1].kind == EV_FENCE, "where it was");
	is_u(events_of_copy(s, t, 0x401000, 0x501000, 72), 4, "a program's fences are its own");
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
	test_interrupts(&s, &t);
	strbuf_release(&s.sb);
	return done_testing();
}
