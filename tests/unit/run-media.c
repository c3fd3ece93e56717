/* SPDX-License-Identifier: MIT */
/*
 * run-media.c - bad lines on top of crash states: what --media may be, and that a finding's state
 * is built again as it was, with what the line held before the last operation, and not before
 * another.
 */
#include <errno.h>

#include "run/bad_media.h"
#include "run/plan.h"
#include "tap.h"

enum { SIZE = 4096 };

static void store(struct trace *t, uint64_t addr, const char *text)
{
	trace_append(t, &(struct event){ .kind = EV_STORE,
					 .addr = addr,
					 .len = strlen(text),
					 .data = (const unsigned char *)text });
}

static void mark(struct trace *t, enum event_kind kind, uint64_t op)
{
	trace_append(t, &(struct event){ .kind = kind, .ref = op });
}

static bool holds(const struct image *img, uint64_t at, const char *text)
{
	char b[64];

	image_read(img, at, b, strlen(text));
	return memcmp(b, text, strlen(text)) == 0;
}

/* Two operations write the same line; the power fails right after the second. */
static void make_trace(struct trace *t)
{
	trace_init(t);
	t->info.size = SIZE;
	mark(t, EV_OP_BEGIN, 0);
	store(t, 128, "first");
	mark(t, EV_OP_END, 0);
	mark(t, EV_OP_BEGIN, 1);
	store(t, 128, "again");
	store(t, 256, "other");
	mark(t, EV_OP_END, 1);
}

static void test_put(void)
{
	auto_trace t;
	auto_image base = IMAGE_INIT;
	struct err err = ERR_INIT;

	make_trace(&t);
	image_init(&base, SIZE);
	image_write(&base, 128, "empty", 5);
	for (int k = 0; k < 3; k++) {
		auto_crash_state s = CRASH_STATE_INIT;

		/* In the middle of the first operation, after it, and at the end. */
		s.point = k == 0 ? 2 : k == 1 ? 3 : t.events.n;
		image_snapshot(&base, &s.image);
		image_write(&s.image, 128, k == 2 ? "again" : "first", 5);
		image_write(&s.image, 256, "other", 5);
		struct hash128 before = image_hash(&s.image);
		int rc = bad_media_put(&t, &base, "stale:128", &s, &err);
		ok(!rc && holds(&s.image, 128, k == 2 ? "first" : "empty"),
		   "stale at event %llu: what was there before that operation",
		   (unsigned long long)s.point);
		ok(holds(&s.image, 256, "other"), "and the other line is not touched");
		ok(!hash_eq(s.hash, before) && hash_eq(s.hash, image_hash(&s.image)),
		   "the state knows its new hash");
		rc = bad_media_put(&t, &base, "poison:256", &s, &err);
		ok(!rc && holds(&s.image, 256, "POISONEDPOISONED"), "and poison is poison");
	}
	auto_crash_state s = CRASH_STATE_INIT;
	s.point = t.events.n;
	image_snapshot(&base, &s.image);
	ok(bad_media_put(&t, &base, "poison:4096", &s, &err) == -EINVAL && *err.msg,
	   "a line that is not there is refused");
	ok(image_equal(&s.image, &base), "and nothing is changed");
}

static void test_words(void)
{
	static const struct {
		const char *text;
		unsigned kinds; /* 0: it is refused */
	} cases[] = {
		{ "poison", 1u << MEDIA_POISON },
		{ "stale", 1u << MEDIA_STALE },
		{ "poison,stale", 1u << MEDIA_POISON | 1u << MEDIA_STALE },
		{ "stale,poison", 1u << MEDIA_POISON | 1u << MEDIA_STALE },
		{ "", 0 },
		{ "poison,", 0 },
		{ "dust", 0 },
		{ "poisons", 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct err err = ERR_INIT;
		unsigned kinds = 99;
		int rc = media_parse_kinds(cases[i].text, &kinds, &err);

		ok(cases[i].kinds ? !rc && kinds == cases[i].kinds
				  : rc == -EINVAL && kinds == 99 && *err.msg,
		   "--media '%s' is %s", cases[i].text, cases[i].kinds ? "taken" : "refused");
	}
	struct err err = ERR_INIT;
	unsigned kinds = 99;

	ok(!media_parse_kinds("none", &kinds, &err) && !kinds, "none is none");
	ok(media_parse_kinds("none,stale", &kinds, &err) == -EINVAL, "and nothing beside it");
}

/* What a plan says reaches the run. */
static void test_plan(void)
{
	struct err err = ERR_INIT;
	struct run_opts o;
	struct plan p;

	plan_init(&p);
	if (plan_set(&p, "guarantee", "linux", &err))
		abort();
	plan_run_opts(&p, &o);
	ok(!o.media && o.media_max == BAD_MEDIA_MAX, "by itself a run has good media");
	int rc = plan_set(&p, "media", "stale", &err);
	if (!rc)
		rc = plan_set(&p, "media-max", "3", &err);
	plan_run_opts(&p, &o);
	ok(!rc && o.media == 1u << MEDIA_STALE && o.media_max == 3, "and bad ones if it is said");
	plan_release(&p);
}

int main(void)
{
	test_put();
	test_words();
	test_plan();
	return done_testing();
}
