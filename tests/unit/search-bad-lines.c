/* SPDX-License-Identifier: MIT */
/* Bad lines on top of crash states: which are tried, each once, and how many are left out. */
#include "search/bad_lines.h"
#include "tap.h"

enum { LINES = 6, STOP = 3 };

struct tried {
	struct strbuf words;
	unsigned n, stop; /* 0: never */
};

static int note(void *ctx, const struct crash_state *s, const struct image *bad,
		const struct media_faults *one, struct err *err)
{
	struct tried *t = ctx;

	(void)err;
	if (t->stop && t->n == t->stop)
		return 1;
	t->n++;
	strbuf_adds(&t->words, t->words.len ? " " : "");
	media_format(one, &t->words);
	ok(!image_equal(&s->image, bad), "the image is another one");
	return 0;
}

static void make(struct trace *t, const struct image *base, struct crash_state *s)
{
	trace_init(t);
	t->info.size = base->size;
	image_snapshot(base, &s->image);
	for (uint64_t i = 0; i < LINES; i++) {
		trace_append(t, &(struct event){ .kind = EV_STORE,
						 .addr = i * PM_LINE,
						 .len = 4,
						 .data = (const unsigned char *)"news" });
		image_write(&s->image, i * PM_LINE, "news", 4);
	}
	s->hash = image_hash(&s->image);
	s->point = t->events.n;
	s->layer = CRASH_ALL;
}

static void test(unsigned kinds, uint64_t max, unsigned stop, const char *expected, uint64_t left)
{
	auto_trace t;
	auto_image base = IMAGE_INIT;
	auto_crash_state s = CRASH_STATE_INIT;
	struct tried tried = { .stop = stop };
	struct err err = ERR_INIT;
	uint64_t left_out;

	image_init(&base, (uint64_t)LINES * PM_LINE);
	make(&t, &base, &s);
	struct bad_lines b = {
		.trace = &t, .base = &base, .kinds = kinds, .max = max, .check = note, .ctx = &tried
	};
	ok(!bad_lines_explore(&b, &s, 0, &left_out, &err), "they are tried");
	is_s(strbuf_str(&tried.words), expected, "these lines");
	is_u(left_out, left, "the others are counted");
	strbuf_clear(&tried.words);
	ok(!bad_lines_explore(&b, &s, 0, &left_out, &err) && !tried.words.len,
	   "no image is tried twice");
	s.layer = CRASH_EXACTLY;
	ok(!bad_lines_explore(&b, &s, 0, &left_out, &err) && !left_out,
	   "nor where something survived and something else did not");
	bad_lines_release(&b);
	strbuf_release(&tried.words);
}

int main(void)
{
	test(1u << MEDIA_POISON, LINES, 0,
	     "poison:0 poison:64 poison:128 poison:192 poison:256 poison:320", 0);
	test(1u << MEDIA_STALE, 3, 0, "stale:0 stale:128 stale:256", 3);
	test(1u << MEDIA_POISON | 1u << MEDIA_STALE, 2, 0, "poison:0 poison:192 stale:0 stale:192",
	     8);
	test(1u << MEDIA_POISON | 1u << MEDIA_STALE, LINES, STOP, "poison:0 poison:64 poison:128",
	     9);
	return done_testing();
}
