/* SPDX-License-Identifier: MIT */
/* core-media.c - faults of the media: which lines, what they do to an image, and their text. */
#include "tap.h"

#include "core/media.h"

static void store(struct trace *t, uint64_t addr, uint64_t len)
{
	static const unsigned char data[256];

	trace_append(t,
		     &(struct event){ .kind = EV_STORE, .addr = addr, .len = len, .data = data });
}

static void test_lines(void)
{
	struct media_lines lines = { 0 };
	auto_trace t;

	trace_init(&t);
	store(&t, 640, 1);
	store(&t, 130, 8);
	store(&t, 138, 8);
	store(&t, 60, 8);
	trace_append(&t, &(struct event){ .kind = EV_LOAD, .addr = 4096, .len = 8 });
	store(&t, 128, 1);
	media_lines(&t, 1, t.events.n, &lines);
	ok(lines.n == 3 && lines.v[0] == 0 && lines.v[1] == 64 && lines.v[2] == 128,
	   "each line that was stored to, once, from the given event on");
	media_lines(&t, 4, 5, &lines);
	is_u(lines.n, 0, "a load stores nothing");
	vec_release(&lines);
}

static void test_apply(void)
{
	auto_image old, img, clean;
	struct err err = ERR_INIT;
	auto_media_faults f = { 0 };
	unsigned char b[200];

	image_init(&old, 200);
	image_write(&old, 0, "old old old", 11);
	image_snapshot(&old, &img);
	image_write(&img, 0, "new new new", 11);
	image_write(&img, 190, "end", 3);
	image_snapshot(&img, &clean);
	if (media_parse("stale:0,poison:192", 200, &f, &err))
		abort();
	media_apply(&f, &old, &img);
	image_read(&img, 0, b, sizeof(b));
	ok(memcmp(b, "old old old", 11) == 0, "a stale line is what it was");
	ok(memcmp(b + 192, "POISONED", 8) == 0, "a poisoned one is the pattern, up to the end");
	ok(memcmp(b + 190, "en", 2) == 0 && b[64] == 0, "and the others are not touched");
	f.n = 0;
	media_apply(&f, &old, &clean);
	image_read(&clean, 0, b, sizeof(b));
	ok(memcmp(b, "new new new", 11) == 0, "no fault, no change");
}

static void refused(const char *text)
{
	struct err err = ERR_INIT;
	auto_media_faults f = { 0 };

	ok(media_parse(text, 4096, &f, &err) == -22 && err.msg[0] && !f.n, "refused: '%s'", text);
}

static void test_text(void)
{
	static const char *const good[] = { "poison:0", "stale:64,poison:4032",
					    "poison:0,poison:0" };
	struct err err = ERR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		auto_media_faults f = { 0 };
		auto_strbuf again = STRBUF_INIT;

		is_i(media_parse(good[i], 4096, &f, &err), 0, "read: '%s'", good[i]);
		media_format(&f, &again);
		is_s(strbuf_str(&again), good[i], "and written");
	}
	refused("");
	refused("poison");
	refused("poison:");
	refused("poison:63");
	refused("poison:4096");
	refused("poison:-64");
	refused("poison:0,");
	refused("poison:0;stale:0");
	refused("rust:0");
	refused("stale:99999999999999999999999");
}

int main(void)
{
	test_lines();
	test_apply();
	test_text();
	return done_testing();
}
