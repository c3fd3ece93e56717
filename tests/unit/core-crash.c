/* SPDX-License-Identifier: MIT */
/*
 * core-crash.c - the block model and the enumerator, against hand-written cases and against a
 * naive enumeration that knows nothing but the rule.
 */
#include "tap.h"

#include <errno.h>

#include "base/rng.h"
#include "core/crash.h"
#include "core/ranges.h"
#include "trace-build.h"

/*
 * A trace in words, one event each: w0a writes 'a' at 0 (w0abc: three bytes), then maybe +F (FUA)
 * or +P (pre-flush); d0-3 discards three bytes at 0, z0-3 writes zeros; f flushes; c2 completes
 * event 2, x2 fails it; B, E, S mark an operation's begin, end and persistence.
 */
static void trace_from(struct trace *t, const char *text, uint64_t size)
{
	auto_free char *copy = xstrdup(text);
	char *save = NULL;

	trace_init(t);
	t->info.size = size;
	t->info.sector_size = 1;
	for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		struct event ev = { .kind = EV_COMPLETE };
		char *end = w + 1;
		uint64_t number = strtoul(w + 1, &end, 10);

		if (*w == 'w')
			ev = (struct event){ .kind = EV_WRITE,
					     .addr = number,
					     .len = strcspn(end, "+"),
					     .data = (unsigned char *)end };
		else if (*w == 'd' || *w == 'z')
			ev = (struct event){ .kind = *w == 'd' ? EV_DISCARD : EV_ZERO,
					     .addr = number,
					     .len = strtoul(end + 1, NULL, 10) };
		else if (*w == 'f')
			ev.kind = EV_FLUSH;
		else if (*w == 'B' || *w == 'E' || *w == 'S')
			ev.kind = *w == 'B' ? EV_OP_BEGIN : *w == 'E' ? EV_OP_END : EV_PERSIST;
		else
			ev = (struct event){ .kind = EV_COMPLETE,
					     .ref = number,
					     .result = *w == 'x' ? -EIO : 0 };
		ev.flags |= strchr(w, '+') && strchr(strchr(w, '+'), 'F') ? EV_FUA : 0;
		ev.flags |= strchr(w, '+') && strchr(strchr(w, '+'), 'P') ? EV_PREFLUSH : 0;
		trace_append(t, &ev);
	}
}

/* Sets of small disk contents. */

enum { DISK_MAX = 32 };

struct contents vec_of(struct disk { unsigned char b[DISK_MAX]; });

static int compare_disks(const void *a, const void *b)
{
	return memcmp(a, b, DISK_MAX);
}

static void contents_sort(struct contents *c)
{
	size_t kept = 0;

	if (c->n)
		qsort(c->v, c->n, sizeof(*c->v), compare_disks);
	for (size_t i = 0; i < c->n; i++)
		if (!kept || compare_disks(&c->v[kept - 1], &c->v[i]))
			c->v[kept++] = c->v[i];
	c->n = kept;
}

static bool contents_equal(const struct contents *a, const struct contents *b)
{
	return a->n == b->n && (!a->n || memcmp(a->v, b->v, a->n * sizeof(*a->v)) == 0);
}

/* "a..,ab." for two disks of three bytes. */
static void contents_text(const struct contents *c, size_t size, struct strbuf *out)
{
	for (size_t i = 0; i < c->n; i++) {
		if (i)
			strbuf_addch(out, ',');
		for (size_t j = 0; j < size; j++)
			strbuf_addch(out, c->v[i].b[j] ? (char)c->v[i].b[j] : '.');
	}
}

/* What an enumeration gave, besides the contents. */
struct outcome {
	struct contents c; /* in the order of appearance */
	struct strbuf ids;
	struct crash_stats stats;
	bool replays; /* each id gives the same image again */
};

static void outcome_release(struct outcome *o)
{
	vec_release(&o->c);
	strbuf_release(&o->ids);
}

static bool replays_as(const struct trace *t, const struct crash_opts *opts,
		       const struct crash_state *s)
{
	/* Nothing but the id: not the points, the layers, the tear unit or what varies. */
	struct crash_opts only = { .model = opts->model, .base = opts->base };
	auto_crash_state again = CRASH_STATE_INIT;

	return crash_replay(t, &only, strbuf_str(&s->id), &again, NULL) == 0 &&
	       hash_eq(again.hash, s->hash) && again.point == s->point &&
	       image_equal(&again.image, &s->image) &&
	       streq(strbuf_str(&again.id), strbuf_str(&s->id)) &&
	       again.survived.n == s->survived.n && again.lost.n == s->lost.n &&
	       again.torn.n == s->torn.n;
}

static void enumerate(const struct trace *t, const struct crash_opts *opts, struct outcome *out)
{
	auto_crash_state s = CRASH_STATE_INIT;
	auto_crash e = NULL;

	*out = (struct outcome){ .replays = true };
	if (crash_new(t, opts, &e, NULL)) {
		out->replays = false;
		return;
	}
	while (crash_next(e, &s)) {
		struct disk d = { 0 };

		assert(s.image.size <= DISK_MAX);
		image_read(&s.image, 0, d.b, s.image.size);
		vec_push(&out->c, d);
		if (out->ids.len)
			strbuf_addch(&out->ids, ' ');
		strbuf_adds(&out->ids, strbuf_str(&s.id));
		out->replays &= replays_as(t, opts, &s);
	}
	crash_stats(e, &out->stats);
}

static bool adds_up(const struct crash_stats *s)
{
	return s->tried == s->unique + s->duplicates && s->sampled <= s->unique &&
	       s->left_out == s->possible + s->possible_torn - (double)s->tried && s->left_out >= 0;
}

/* Named cases: everything that can be on the disk at the end of a trace. */

static void expect(const char *trace, const char *want, const char *name)
{
	auto_strbuf got = STRBUF_INIT;
	struct trace t;
	struct outcome o;

	trace_from(&t, trace, 3);
	uint64_t point = t.events.n;
	struct crash_opts opts = { .points = &point,
				   .n_points = 1,
				   .layers = CRASH_WITH_WHOLE,
				   .max_subset = UINT32_MAX };
	enumerate(&t, &opts, &o);
	contents_sort(&o.c);
	contents_text(&o.c, 3, &got);
	is_s(strbuf_str(&got), want, "%s", name);
	outcome_release(&o);
	trace_release(&t);
}

static void test_named(void)
{
	expect("w0a", "...,a..", "a submitted write may survive");
	expect("w0a c0", "...,a..", "a completed write may be lost");
	expect("w0a c0 f", "...,a..", "a flush under way covers nothing yet");
	expect("w0a c0 f c2", "a..", "a completed flush covers what completed before it");
	expect("w0a f c0 c1", "...,a..",
	       "a flush submitted before the write completed does not cover it");
	expect("w0a f c1 c0", "...,a..", "nor if it completed first");
	expect("w0a f c0 c1 f c4", "a..", "the next flush does");
	expect("w0a c0 f x2", "...,a..", "a failed flush covers nothing");
	expect("w0a x0 f c2", "...,a..", "a failed write is never covered");
	expect("w0a x0 f c2 w0b c4 f c6", "b..", "until a durable one hides it");
	expect("w0a w1b+F c1", ".b.,ab.", "FUA covers only itself");
	expect("w0a c0 w1b+F c2", ".b.,ab.", "even if the other one completed");
	expect("w0a+F", "...,a..", "FUA means nothing before completion");
	expect("w0a+F x0", "...,a..", "nor after a failure");
	expect("w0a c0 w1b+P c2", "a..,ab.",
	       "a pre-flush covers earlier completed ones, not its own");
	expect("w0a w1b+P c0 c1", "...,.b.,a..,ab.", "and not those still under way");
	expect("w0a c0 w1b+P", "...,a..,ab.",
	       "nothing is durable before it completes, but what it covers comes before its data");
	expect("w0a c0 w1b+P x2", "...,a..,ab.", "nor if that fails");
	expect("w0a c0 w1b w2c+PF", "...,.b.,a..,a.c,ab.,abc",
	       "a write that had not completed is not among what it covers");
	expect("w0a c0 w1b+PF c2", "ab.", "pre-flush and FUA make both durable");
	expect("w0a c0 d0-1 c2 f c4", "...", "a durable discard");
	expect("w0a c0 f c2 d0-1", "...,a..", "a discard in flight may be lost");
	expect("w0abc c0 f c2 z1-1+F c4", "a.c", "write-zeroes with FUA");
	expect("w0a w0b", "...,a..,b..", "survivors take effect in the order of submission");
	expect("w0a w0b c1 f c3", "b..", "an older write does not overwrite a newer durable one");
	expect("w0ab w1c c1 f c3", ".c.,ac.", "also if they overlap in part");
	expect("w0ab w1cd+F c1 w2e+F c3", ".ce,ace", "nor a newer one above that");
	expect("w0ab w1cd+F c1 c0 f c4", "acd", "until it is durable itself");
	expect("w0ab w1cd+F c1 w2e+F c3 c0 f c6 w1x", "ace,axe", "all of them in order");
	expect("w0a c0 f c2 w1b f c4 c5", "a..,ab.", "completions in any order");
	expect("w0a+F c0 c0 w1b c3 c3", "a..,ab.", "a second completion changes nothing");
}

/* The naive enumeration. */

struct naive {
	const struct trace *t;
	uint64_t point;
	uint32_t unit; /* 0: whole */
};

/* When a request completed successfully, or UINT64_MAX. */
static uint64_t done_at(const struct naive *n, uint64_t request)
{
	for (uint64_t i = 0; i < n->point; i++) {
		const struct event *ev = &n->t->events.v[i];
		if (ev->kind == EV_COMPLETE && ev->ref == request)
			return ev->result < 0 ? UINT64_MAX : i;
	}
	return UINT64_MAX;
}

static bool is_durable(const struct naive *n, uint64_t write)
{
	uint64_t done = done_at(n, write);

	if (done == UINT64_MAX)
		return false;
	if (n->t->events.v[write].flags & EV_FUA)
		return true;
	for (uint64_t f = done + 1; f < n->point; f++) {
		const struct event *ev = &n->t->events.v[f];
		bool flush = ev->kind == EV_FLUSH || (ev->flags & EV_PREFLUSH);
		if (flush && done_at(n, f) != UINT64_MAX)
			return true;
	}
	return false;
}

static void put_byte(const struct event *ev, uint64_t i, struct disk *d)
{
	d->b[ev->addr + i] = ev->kind == EV_WRITE ? ev->data[i] : 0;
}

/* The unit each byte of an event is in, from 0. */
static uint64_t unit_of(const struct naive *n, const struct event *ev, uint64_t i)
{
	return n->unit ? (ev->addr + i) / n->unit - ev->addr / n->unit : 0;
}

static uint64_t units_of(const struct naive *n, const struct event *ev)
{
	return unit_of(n, ev, ev->len - 1) + 1;
}

static unsigned naive_bits(const struct naive *n)
{
	unsigned bits = 0;

	for (uint64_t w = 0; w < n->point; w++)
		if (event_modifies(n->t->events.v[w].kind) && !is_durable(n, w))
			bits += units_of(n, &n->t->events.v[w]);
	return bits;
}

/* How many units of a write survive in a set, and how many it has. */
static uint64_t naive_kept(const struct naive *n, uint64_t set, uint64_t write, uint64_t *units)
{
	uint64_t bit = 0, kept = 0;

	for (uint64_t w = 0; w < write; w++)
		if (event_modifies(n->t->events.v[w].kind) && !is_durable(n, w))
			bit += units_of(n, &n->t->events.v[w]);
	*units = units_of(n, &n->t->events.v[write]);
	for (uint64_t i = 0; i < *units; i++)
		kept += set >> (bit + i) & 1;
	return kept;
}

/* The device flushes before it writes the data of a write with a pre-flush. */
static bool naive_allowed(const struct naive *n, uint64_t set)
{
	uint64_t units;

	for (uint64_t p = 0; p < n->point; p++) {
		const struct event *ev = &n->t->events.v[p];
		if (!event_modifies(ev->kind) || !(ev->flags & EV_PREFLUSH) || is_durable(n, p) ||
		    !naive_kept(n, set, p, &units))
			continue;
		for (uint64_t w = 0; w < p; w++)
			if (event_modifies(n->t->events.v[w].kind) && !is_durable(n, w) &&
			    done_at(n, w) < p && naive_kept(n, set, w, &units) != units)
				return false;
	}
	return true;
}

/* All subsets of the units of all writes that are not durable, as far as they are allowed. */
static void naive_contents(const struct naive *n, struct contents *out)
{
	unsigned bits = naive_bits(n);

	vec_clear(out);
	for (uint64_t set = 0; set < (uint64_t)1 << bits; set++) {
		struct disk d = { 0 };
		uint64_t bit = 0;

		if (!naive_allowed(n, set))
			continue;
		for (uint64_t w = 0; w < n->point; w++) {
			const struct event *ev = &n->t->events.v[w];
			if (!event_modifies(ev->kind))
				continue;
			bool durable = is_durable(n, w);
			for (uint64_t i = 0; i < ev->len; i++)
				if (durable || set >> (bit + unit_of(n, ev, i)) & 1)
					put_byte(ev, i, &d);
			bit += durable ? 0 : units_of(n, ev);
		}
		vec_push(out, d);
	}
	contents_sort(out);
}

struct random_trace {
	struct trace t;
	uint64_t pending[64];
	size_t n_pending;
};

static void random_request(struct random_trace *rt, struct rng *r, uint64_t size, uint64_t align)
{
	unsigned char data[DISK_MAX];
	struct event ev = { .kind = EV_FLUSH };
	uint64_t kind = rng_below(r, 10);

	if (kind >= 2) {
		ev.kind = kind == 2 ? EV_DISCARD : kind == 3 ? EV_ZERO : EV_WRITE;
		ev.addr = rng_below(r, size / align) * align;
		ev.len = min((rng_below(r, 3) + 1) * align, size - ev.addr);
		memset(data, (int)('a' + rt->t.events.n % 64), sizeof(data));
		ev.data = data;
		ev.flags |= rng_below(r, 6) == 0 ? EV_FUA : 0;
		ev.flags |= rng_below(r, 6) == 0 ? EV_PREFLUSH : 0;
	}
	rt->pending[rt->n_pending++] = trace_append(&rt->t, &ev);
}

static void random_trace(struct random_trace *rt, struct rng *r, uint64_t size, uint64_t align)
{
	uint64_t requests = 1 + rng_below(r, 9);

	*rt = (struct random_trace){ 0 };
	trace_init(&rt->t);
	rt->t.info.size = size;
	while (requests > 0) {
		if (rt->n_pending && rng_below(r, 2)) {
			size_t i = rng_below(r, rt->n_pending);
			trace_complete(&rt->t, rt->pending[i], rng_below(r, 10) ? 0 : -EIO);
			rt->pending[i] = rt->pending[--rt->n_pending];
		} else if (rng_below(r, 8) == 0) {
			trace_append(&rt->t, &(struct event){ .kind = EV_OP_END });
		} else {
			random_request(rt, r, size, align);
			requests--;
		}
	}
}

struct totals {
	uint64_t points, states;
	int wrong_set, wrong_replay, wrong_stats;
};

static void compare_at(const struct trace *t, uint64_t point, unsigned layers, uint32_t unit,
		       struct totals *sum)
{
	struct naive n = { t, point, unit };
	struct crash_opts opts = { .points = &point,
				   .n_points = 1,
				   .layers = layers,
				   .max_subset = UINT32_MAX,
				   .tear_unit = unit };
	struct contents want = { 0 };
	struct outcome o;

	naive_contents(&n, &want);
	enumerate(t, &opts, &o);
	size_t given = o.c.n;
	contents_sort(&o.c);
	sum->wrong_set += !contents_equal(&want, &o.c);
	sum->wrong_replay += !o.replays;
	sum->wrong_stats += !adds_up(&o.stats) || o.stats.left_out > 0 || given != o.c.n ||
			    o.stats.unique != given || o.stats.budget_hit;
	sum->points++;
	sum->states += o.stats.tried;
	outcome_release(&o);
	vec_release(&want);
}

static void test_against_naive(void)
{
	enum { TRACES = 3000 };
	struct totals sum = { 0 };
	struct rng r;

	rng_init(&r, 11);
	for (int i = 0; i < TRACES; i++) {
		struct random_trace rt;

		random_trace(&rt, &r, 13, 1);
		for (uint64_t p = 0; p <= rt.t.events.n; p++) {
			unsigned completed = rng_below(&r, 2) ? CRASH_WITH_COMPLETED : 0;
			compare_at(&rt.t, p, CRASH_WITH_WHOLE | completed, 0, &sum);
		}
		trace_release(&rt.t);
	}
	ok(!sum.wrong_set, "%d traces, %" PRIu64 " points: the states are those of the rule",
	   TRACES, sum.points);
	ok(!sum.wrong_replay, "each of %" PRIu64 " states is rebuilt from its id", sum.states);
	ok(!sum.wrong_stats, "the numbers add up and nothing is left out");
}

static void test_torn_against_naive(void)
{
	enum { TRACES = 2000, BITS_MAX = 10 };
	struct totals sum = { 0 };
	struct rng r;

	rng_init(&r, 12);
	for (int i = 0; i < TRACES; i++) {
		struct random_trace rt;
		uint64_t align = 1 + rng_below(&r, 4);

		random_trace(&rt, &r, 24, align);
		uint64_t p = rng_below(&r, rt.t.events.n + 1);
		struct naive n = { &rt.t, p, 4 };
		/* With and without the layers before the last: the states must be the same. */
		unsigned layers = rng_below(&r, 4) ? CRASH_LAYERS_DEFAULT | CRASH_WITH_TORN
						   : CRASH_WITH_UNITS;
		if (naive_bits(&n) <= BITS_MAX)
			compare_at(&rt.t, p, layers, 4, &sum);
		trace_release(&rt.t);
	}
	ok(!sum.wrong_set && sum.points > TRACES / 4,
	   "torn, %" PRIu64 " points: the states are those of the rule", sum.points);
	ok(!sum.wrong_replay, "each of %" PRIu64 " states is rebuilt from its id", sum.states);
	ok(!sum.wrong_stats, "the numbers add up and nothing is left out");
}

/* All points of one trace at once, against the union of the naive ones. */
static void test_all_points(void)
{
	enum { TRACES = 500 };
	int wrong = 0, lost_marks = 0;
	struct rng r;

	rng_init(&r, 13);
	for (int i = 0; i < TRACES; i++) {
		struct random_trace rt;
		struct crash_points points = { 0 };
		struct contents want = { 0 }, one = { 0 };
		struct outcome o;

		random_trace(&rt, &r, 13, 1);
		crash_points_all(&rt.t, &points);
		for (size_t p = 0; p < points.n; p++) {
			naive_contents(&(struct naive){ &rt.t, points.v[p], 0 }, &one);
			for (size_t j = 0; j < one.n; j++)
				vec_push(&want, one.v[j]);
		}
		contents_sort(&want);
		struct crash_opts opts = { .points = points.v,
					   .n_points = points.n,
					   .layers = CRASH_WITH_WHOLE,
					   .max_subset = UINT32_MAX,
					   .ignore_marks = true };
		enumerate(&rt.t, &opts, &o);
		size_t given = o.c.n;
		contents_sort(&o.c);
		wrong += !contents_equal(&want, &o.c) || given != o.c.n || !adds_up(&o.stats) ||
			 o.stats.left_out > 0 || !o.replays;
		outcome_release(&o);
		opts.ignore_marks = false;
		enumerate(&rt.t, &opts, &o);
		lost_marks += o.c.n < given || !adds_up(&o.stats);
		outcome_release(&o);
		vec_release(&want);
		vec_release(&one);
		crash_points_release(&points);
		trace_release(&rt.t);
	}
	ok(!wrong, "%d traces, all points at once", TRACES);
	ok(!lost_marks, "never fewer states when marks tell them apart");
}

/* Order, identity, budget. */

static void ids_are(const char *trace, struct crash_opts opts, const char *want, const char *name)
{
	struct trace t;
	struct outcome o;
	struct crash_points points = { 0 };

	trace_from(&t, trace, 8);
	if (!opts.points) {
		vec_push(&points, t.events.n);
		opts.points = points.v;
		opts.n_points = 1;
	}
	enumerate(&t, &opts, &o);
	is_s(strbuf_str(&o.ids), want, "%s", name);
	ok(o.replays && adds_up(&o.stats), "%s: ids replay, numbers add up", name);
	outcome_release(&o);
	crash_points_release(&points);
	trace_release(&t);
}

static bool not_at_2(void *ctx, uint64_t point, struct hash128 all, const struct model_piece *p)
{
	(void)ctx;
	(void)point;
	(void)all;
	return p->addr != 2;
}

static void test_order(void)
{
	struct crash_opts whole = { .layers = CRASH_WITH_WHOLE, .max_subset = UINT32_MAX };
	struct crash_opts torn = { .layers = CRASH_WITH_NONE | CRASH_WITH_ALL | CRASH_WITH_TORN };
	struct crash_opts pruned = whole;
	static const uint64_t two[] = { 2, 4 };
	struct crash_opts layers_first = {
		.layers = CRASH_WITH_WHOLE, .max_subset = 1, .points = two, .n_points = 2
	};

	ids_are("w0a w1b w2c w3d", whole,
		"0.4 1.4 4.4.0 4.4.1 4.4.2 4.4.3 5.4.0 5.4.1 5.4.2 5.4.3 "
		"6.4.0.1 6.4.0.2 6.4.0.3 6.4.1.2 6.4.1.3 6.4.2.3",
		"none, all, one, all but one, two");
	ids_are("w0a w1b w2c w3d", layers_first,
		"0.2 1.2 1.4 4.2.0 4.2.1 4.4.2 4.4.3 5.4.0 5.4.1 5.4.2 5.4.3",
		"a layer at all points before the next layer; what was seen is dropped");
	ids_are("w0ab w2cde", torn,
		"0.2 1.2 3.2.1.2.1.0.1 3.2.1.1.1.1.1 3.2.1.1.1.1.3 3.2.1.0.1.0.1 "
		"3.2.1.2.1.0.2 3.2.1.1.1.1.4 3.2.1.1.1.1.6 3.2.1.1.1.1.2 3.2.1.1.1.1.5 "
		"3.2.1.0.1.0.2 "
		"3.2.1.0.1.1.1 3.2.1.0.1.1.2 3.2.1.0.1.1.3 3.2.1.0.1.1.4 3.2.1.0.1.1.5 "
		"3.2.1.0.1.1.6 4.2.1 3.2.1.0.2.0.1.1.1 3.2.1.0.2.0.1.1.2 3.2.1.0.2.0.1.1.3 "
		"3.2.1.0.2.0.1.1.4 3.2.1.0.2.0.1.1.5 3.2.1.0.2.0.1.1.6 3.2.1.0.2.0.2.1.1 "
		"3.2.1.0.2.0.2.1.2 3.2.1.0.2.0.2.1.3 3.2.1.0.2.0.2.1.4 3.2.1.0.2.0.2.1.5 "
		"3.2.1.0.2.0.2.1.6 4.2.0",
		"torn after whole: first parts, last and single ones, then subsets of units");
	ids_are("w0ab w2c w3d w4e",
		(struct crash_opts){ .layers = CRASH_WITH_WHOLE | CRASH_WITH_TEARS,
				     .max_subset = UINT32_MAX,
				     .near_subset = 1 },
		"0.4 1.4 4.4.0 4.4.1 4.4.2 4.4.3 5.4.0 5.4.1 5.4.2 5.4.3 "
		"3.4.1.14.1.0.1 3.4.1.0.1.0.1 "
		"6.4.0.1 6.4.0.2 6.4.0.3 6.4.1.2 6.4.1.3 6.4.2.3",
		"larger subsets after torn ones");
	pruned.vary = not_at_2;
	ids_are("w0a w1b w2c w3d", pruned,
		"0.4 1.4 4.4.2 6.4.0.2 6.4.1.2 6.4.2.3 5.4.0 5.4.1 5.4.3",
		"what does not vary survives, and the id says so");
	ids_are("w0a c0 w1b w2c w3d c3", (struct crash_opts){ .layers = CRASH_LAYERS_DEFAULT },
		"0.6 1.6 6.6.0.2", "completed only");
	ids_are("w0a w0a w0a", whole, "0.3 1.3", "equal images are one state");
	ids_are("w1a x0 w0bcd+F c2 w1e x4 w0fg+F c6", whole, "0.8",
		"what a durable write hides is not in flight any more");
	ids_are("w0a c0 f c2", whole, "0.4", "one state if nothing is in flight");
	ids_are("B w0a E S",
		(struct crash_opts){ .layers = CRASH_WITH_NONE | CRASH_WITH_ALL,
				     .points = (uint64_t[]){ 2, 3, 4 },
				     .n_points = 3 },
		"0.2 0.3 0.4 1.2 1.3 1.4", "after another mark the same image is another state");
}

static void test_bad_ids(void)
{
	static const char *const bad[] = {
		"",
		"0",
		"0.3",
		"0.2.0",
		"x",
		"1.2.3",
		"4.2.2",
		"4.2",
		"4.2.0.0",
		"6.2.0.1.1",
		"6.2.1.0",
		"5.2.0",
		"2.2.4",
		"2.2",
		"3.2.0.0.1.0.1",
		"3.2.1.1.1.0.1",
		"3.2.1.0.0",
		"3.2.1.0.1.0.3",
		"3.2.1.0.1.0.0",
		"3.2.1.0.2.1.1.0.1",
		"3.2.1.0.3",
		"99.2.0",
		"36.2.0",
		"18446744073709551615.2",
	};
	struct crash_opts opts = { 0 };
	struct crash_state s = { .point = 99 };
	struct err err = ERR_INIT;
	struct trace t;
	size_t refused = 0;

	trace_from(&t, "w0ab w2cde", 8);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		err_clear(&err);
		if (crash_replay(&t, &opts, bad[i], &s, &err) == -EINVAL && err.msg[0] &&
		    s.point == 99)
			refused++;
		else
			printf("# accepted: %s\n", bad[i]);
	}
	is_u(refused, ARRAY_SIZE(bad), "ids that fit nothing are refused: %s", err.msg);
	trace_release(&t);
	trace_from(&t, "w0ab w7xx", 8);
	uint64_t point = 2;
	opts.points = &point;
	opts.n_points = 1;
	auto_crash e = NULL;
	err_clear(&err);
	is_i(crash_new(&t, &opts, &e, &err), -EINVAL, "a write outside the device: %s", err.msg);
	trace_release(&t);
}

/* A trace with many writes in flight at many points. */
static void long_trace(struct trace *t, unsigned writes)
{
	trace_init(t);
	t->info.size = DISK_MAX;
	t->info.sector_size = 4;
	for (unsigned i = 0; i < writes; i++) {
		unsigned char data[8];

		memset(data, (int)(i + 1), sizeof(data));
		trace_write(t, i % 4 * 8, data, sizeof(data), 0);
		if (i % 16 == 15)
			trace_append(t, &(struct event){ .kind = EV_OP_END });
	}
}

static void test_budget(unsigned layers, uint64_t budget, uint64_t sample)
{
	struct trace t;
	struct crash_points points = { 0 };
	struct outcome a, b, c;

	long_trace(&t, 100);
	crash_points_writes(&t, &points);
	struct crash_opts opts = { .points = points.v,
				   .n_points = points.n,
				   .layers = layers,
				   .max_subset = 2,
				   .budget = budget,
				   .sample = sample,
				   .seed = 3 };
	enumerate(&t, &opts, &a);
	enumerate(&t, &opts, &b);
	opts.seed = 4;
	enumerate(&t, &opts, &c);
	ok(streq(strbuf_str(&a.ids), strbuf_str(&b.ids)), "budget %" PRIu64 ": same seed, same run",
	   budget);
	ok(!streq(strbuf_str(&a.ids), strbuf_str(&c.ids)), "another seed, another sample");
	ok(adds_up(&a.stats) && a.stats.left_out > 0 && a.stats.points == 100, "numbers add up");
	is_u(a.stats.sampled, sample, "as many samples as asked for");
	ok(a.stats.budget_hit == (budget != 0) && (!budget || a.stats.unique == budget + sample),
	   "%" PRIu64 " unique of %" PRIu64 " tried", a.stats.unique, a.stats.tried);
	is_u(a.stats.unique, a.c.n, "as many as were given out");
	ok(a.replays && c.replays, "each id replays, from any of 100 points");
	outcome_release(&a);
	outcome_release(&b);
	outcome_release(&c);
	crash_points_release(&points);
	trace_release(&t);
}

static void test_sample_of_little(void)
{
	struct trace t;
	struct outcome o;
	uint64_t point = 6;

	trace_from(&t, "w0a w1b w2c w3d w4e w5f", 8);
	struct crash_opts opts = { .points = &point,
				   .n_points = 1,
				   .layers = CRASH_WITH_WHOLE,
				   .max_subset = 1,
				   .budget = 4,
				   .sample = 1000 };
	enumerate(&t, &opts, &o);
	size_t given = o.c.n;
	contents_sort(&o.c);
	is_u(o.c.n, 64, "a sample larger than the rest finds all of it");
	ok(given == 64 && o.stats.tried == 64 && o.stats.left_out == 0 && adds_up(&o.stats),
	   "each once");
	ok(o.stats.budget_hit && o.stats.sampled == 60, "60 of them past the budget");
	outcome_release(&o);
	opts.budget = 14;
	opts.sample = 0;
	enumerate(&t, &opts, &o);
	ok(!o.stats.budget_hit && o.stats.unique == 14 && o.stats.left_out == 50,
	   "a budget that just suffices is not hit; what is beyond max_subset is left out");
	outcome_release(&o);
	opts = (struct crash_opts){ .points = &point,
				    .n_points = 1,
				    .layers = CRASH_WITH_WHOLE,
				    .max_subset = 3,
				    .tries = 10 };
	enumerate(&t, &opts, &o);
	ok(o.stats.budget_hit && o.stats.tried == 10, "tries are bounded as well");
	outcome_release(&o);
	trace_release(&t);
}

static void test_large_numbers(void)
{
	struct trace t;
	struct outcome o;
	uint64_t point = 2000;

	long_trace(&t, 2000);
	struct crash_opts opts = { .points = &point,
				   .n_points = 1,
				   .layers = CRASH_LAYERS_DEFAULT | CRASH_WITH_TORN,
				   .max_subset = UINT32_MAX,
				   .budget = 20,
				   .sample = 20 };
	enumerate(&t, &opts, &o);
	ok(o.stats.possible > 1e300 && o.stats.left_out > 1e300 && o.stats.sampled == 20,
	   "thousands in flight: numbers saturate, samples come");
	ok(o.replays, "their ids replay");
	outcome_release(&o);
	trace_release(&t);
}

/* What a state says about its pieces, and a tear unit that is coarsened. */
static void test_details(void)
{
	auto_crash_state s = CRASH_STATE_INIT;
	struct crash_opts opts = { 0 };
	struct trace t;

	trace_from(&t, "w0ab w2cd w4ef c0 w5g+F c4", 8);
	is_i(crash_replay(&t, &opts, "3.6.1.1.1.2.2", &s, NULL), 0, "a torn state");
	ok(s.survived.n == 1 && s.survived.v[0] == 0, "the first survived");
	ok(s.lost.n == 1 && s.lost.v[0] == 1, "the second was lost");
	ok(s.torn.n == 1 && s.torn.v[0].event == 2 && s.torn.v[0].kept == 1 &&
		   s.torn.v[0].units == 2,
	   "the third was torn");
	unsigned char got[8];
	image_read(&s.image, 0, got, 8);
	ok(memcmp(got, "ab\0\0\0g\0", 8) == 0, "and under the durable one it does not show");
	trace_release(&t);

	struct model_piece p = { .addr = 512 * 3, .len = 512 * 5000 };
	model_piece_cut(&p, 512);
	ok(p.units <= MODEL_UNITS_MAX && p.unit_size == 1024, "large pieces have coarser units");
	uint64_t from = 0, to = 0, units[64] = { 1 | 1 << 2 };
	uint32_t i = 0;
	ok(model_piece_run(&p, units, &i, &from, &to) && from == 1536 && to == 2048, "cut at 2048");
	ok(model_piece_run(&p, units, &i, &from, &to) && from == 3072 && to == 4096, "then 3072");
	ok(!model_piece_run(&p, units, &i, &from, &to), "no more");
	struct err err = ERR_INIT;
	ok(model_find("block") == &model_block && !model_find("nothing") && !model_at(99),
	   "lookup");
	ok(!model_known("nothing", &err) && strstr(err.msg, "block, "), "names: %s", err.msg);
	for (size_t k = 0; model_at(k); k++) {
		const struct model_ops *m = model_at(k);

		ok(m->name && m->help && m->create && m->clone && m->destroy && m->apply &&
			   m->pieces && m->piece_apply && model_find(m->name) == m,
		   "the model %s is whole", m->name);
	}
}

/* A model with dependencies: a write needs the write before it to the same eight bytes. */

struct chain {
	struct model m;
	struct vec_of(struct model_piece) pieces;
	struct vec_of(const struct event *) events;
	struct vec_of(uint32_t *) needs;
};

static struct model *chain_create(void)
{
	return xcalloc(1, sizeof(struct chain));
}

static int chain_apply(struct model *m, uint64_t number, const struct event *ev, struct err *err)
{
	struct chain *c = (struct chain *)m;
	uint32_t *needs = xmalloc(sizeof(*needs));

	(void)err;
	struct model_piece p = {
		.event = number, .addr = ev->addr, .len = ev->len, .needs = needs
	};
	model_piece_cut(&p, m->opts.tear_unit);
	for (size_t i = 0; i < c->pieces.n; i++)
		if (c->pieces.v[i].addr / 8 == ev->addr / 8) {
			*needs = (uint32_t)i;
			p.n_needs = 1;
		}
	vec_push(&c->pieces, p);
	vec_push(&c->events, ev);
	vec_push(&c->needs, needs);
	return 0;
}

static struct model *chain_clone(const struct model *m)
{
	const struct chain *from = (const struct chain *)m;
	struct model *to = chain_create();

	to->opts = m->opts;
	for (size_t i = 0; i < from->pieces.n; i++)
		chain_apply(to, from->pieces.v[i].event, from->events.v[i], NULL);
	return to;
}

static void chain_destroy(struct model *m)
{
	struct chain *c = (struct chain *)m;

	for (size_t i = 0; i < c->needs.n; i++)
		free(c->needs.v[i]);
	vec_release(&c->needs);
	vec_release(&c->pieces);
	vec_release(&c->events);
	free(c);
}

static const struct model_piece *chain_pieces(const struct model *m, size_t *n)
{
	*n = ((const struct chain *)m)->pieces.n;
	return ((const struct chain *)m)->pieces.v;
}

static void chain_piece_apply(const struct model *m, size_t index, const uint64_t *units,
			      uint64_t low, uint64_t high, struct image *img)
{
	const struct chain *c = (const struct chain *)m;
	const struct event *ev = c->events.v[index];
	uint64_t from, to;

	for (uint32_t i = 0; model_piece_run(&c->pieces.v[index], units, &i, &from, &to);) {
		from = max(from, low);
		to = min(to, high);
		if (from < to)
			image_write(img, from, ev->data + (from - ev->addr), to - from);
	}
}

static const struct model_ops chain_model = {
	.name = "chain",
	.help = "for this test",
	.create = chain_create,
	.clone = chain_clone,
	.destroy = chain_destroy,
	.apply = chain_apply,
	.pieces = chain_pieces,
	.piece_apply = chain_piece_apply,
};

/* All closed sets: of each line, a prefix of its writes; torn, the last of it in part. */
static void naive_chains(const struct trace *t, bool torn, struct contents *out)
{
	unsigned bits = (unsigned)t->events.n * (torn ? 2 : 1);

	for (uint64_t set = 0; set < (uint64_t)1 << bits; set++) {
		struct disk d = { 0 };
		bool whole_so_far[DISK_MAX / 8], closed = true;

		memset(whole_so_far, 1, sizeof(whole_so_far));
		for (uint64_t w = 0; w < t->events.n; w++) {
			const struct event *ev = &t->events.v[w];
			unsigned part = torn ? set >> (2 * w) & 3 : (set >> w & 1) * 3;

			closed &= !part || whole_so_far[ev->addr / 8];
			whole_so_far[ev->addr / 8] &= part == 3;
			for (uint64_t i = 0; i < 4; i++)
				if (part >> (i / 2) & 1)
					put_byte(ev, i, &d);
		}
		if (closed)
			vec_push(out, d);
	}
	contents_sort(out);
}

static void test_needs(bool torn)
{
	enum { TRACES = 200 };
	int wrong = 0, wrong_replay = 0, wrong_vary = 0;
	struct rng r;

	rng_init(&r, 14);
	for (int i = 0; i < TRACES; i++) {
		struct trace t;
		struct contents want = { 0 };
		struct outcome o;
		uint64_t point = 1 + rng_below(&r, torn ? 4 : 8);

		trace_init(&t);
		t.info.size = DISK_MAX;
		for (uint64_t w = 0; w < point; w++) {
			unsigned char data[4];
			memset(data, (int)(w + 1), sizeof(data));
			trace_write(&t, rng_below(&r, 6) * 4, data, 4, 0);
		}
		struct crash_opts opts = { .model = &chain_model,
					   .points = &point,
					   .n_points = 1,
					   .layers = CRASH_WITH_WHOLE |
						     (torn ? CRASH_WITH_TORN : 0),
					   .max_subset = UINT32_MAX,
					   .tear_unit = 2 };
		naive_chains(&t, torn, &want);
		enumerate(&t, &opts, &o);
		contents_sort(&o.c);
		wrong += !contents_equal(&want, &o.c) || !adds_up(&o.stats) || o.stats.left_out > 0;
		wrong_replay += !o.replays;
		outcome_release(&o);
		opts.vary = not_at_2;
		enumerate(&t, &opts, &o);
		wrong_vary += !adds_up(&o.stats) || !o.replays || o.stats.left_out > 0;
		outcome_release(&o);
		vec_release(&want);
		trace_release(&t);
	}
	ok(!wrong, "%s: the states are the closed sets",
	   torn ? "torn dependencies" : "dependencies");
	ok(!wrong_replay && !wrong_vary, "and their ids replay");
}

/* Many points at once give what each of them gives alone, and count the same. */

/* Adds what a run gives out, each content with the number of marks before its point. */
static void collect(const struct trace *t, const struct crash_opts *opts, struct contents *out,
		    struct crash_stats *stats)
{
	auto_crash_state s = CRASH_STATE_INIT;
	auto_crash e = NULL;

	if (crash_new(t, opts, &e, NULL))
		abort();
	while (crash_next(e, &s)) {
		struct disk d = { 0 };

		assert(s.image.size < DISK_MAX);
		image_read(&s.image, 0, d.b, s.image.size);
		for (uint64_t i = 0; i < s.point; i++)
			d.b[DISK_MAX - 1] += t->events.v[i].kind == EV_OP_END;
		vec_push(out, d);
	}
	crash_stats(e, stats);
}

static bool by_address(void *ctx, uint64_t point, struct hash128 all, const struct model_piece *p)
{
	(void)ctx;
	(void)point;
	(void)all;
	return p->addr % 3 != 1;
}

static void test_points_together(unsigned layers, bool narrow)
{
	enum { TRACES = 400, SIZE = 13 };
	int wrong_set = 0, wrong_count = 0;
	uint64_t tried = 0, skipped = 0;
	struct rng r;

	rng_init(&r, 15);
	for (int i = 0; i < TRACES; i++) {
		struct random_trace rt;
		struct crash_points points = { 0 };
		struct contents alone = { 0 }, together = { 0 };
		struct crash_stats one, all;
		uint64_t sum = 0;

		random_trace(&rt, &r, SIZE, 1);
		if (i % 2)
			crash_points_all(&rt.t, &points);
		else
			crash_points_writes(&rt.t, &points);
		struct crash_opts opts = { .points = points.v,
					   .n_points = points.n,
					   .layers = layers,
					   .max_subset = 1 + (uint32_t)rng_below(&r, 3),
					   .tear_unit = 1,
					   .vary = narrow ? by_address : NULL };
		collect(&rt.t, &opts, &together, &all);
		for (size_t p = 0; p < points.n; p++) {
			opts.points = &points.v[p];
			opts.n_points = 1;
			collect(&rt.t, &opts, &alone, &one);
			sum += one.tried;
			wrong_count += one.skipped > 0 || !adds_up(&one);
		}
		size_t given = together.n;
		contents_sort(&alone);
		contents_sort(&together);
		wrong_set += !contents_equal(&alone, &together) || given != together.n;
		wrong_count += all.tried != sum || !adds_up(&all);
		tried += all.tried;
		skipped += all.skipped;
		vec_release(&alone);
		vec_release(&together);
		crash_points_release(&points);
		trace_release(&rt.t);
	}
	ok(!wrong_set, "layers %#x%s: together the points give what each gives alone", layers,
	   narrow ? ", narrowed" : "");
	ok(!wrong_count && skipped > 0,
	   "and count the same: %" PRIu64 " tried, %" PRIu64 " of them known before", tried,
	   skipped);
}

/* Every write a crash point, all in flight: what was tried before is not made again. */
static void test_skipping(void)
{
	enum { WRITES = 300 };
	struct trace t;
	struct crash_points points = { 0 };
	struct contents c = { 0 };
	struct crash_stats stats;

	trace_init(&t);
	t.info.size = DISK_MAX - 1;
	for (unsigned i = 0; i < WRITES; i++)
		trace_write(&t, i % 16, &(unsigned char){ (unsigned char)(1 + i / 16) }, 1, 0);
	crash_points_writes(&t, &points);
	struct crash_opts opts = { .points = points.v,
				   .n_points = points.n,
				   .layers = CRASH_LAYERS_DEFAULT,
				   .max_subset = 1 };
	collect(&t, &opts, &c, &stats);
	uint64_t made = stats.tried - stats.skipped;
	ok(made < WRITES * (WRITES + 10) / 2 && stats.tried > WRITES * WRITES - WRITES,
	   "%" PRIu64 " of %" PRIu64 " states are made", made, stats.tried);
	vec_release(&c);
	crash_points_release(&points);
	trace_release(&t);
}

/* What varies is asked when it can be known. */

struct reader {
	bool seen_all[64]; /* by point */
	int too_early, asked;
	struct rng r;
};

static bool reads_0(void *ctx, uint64_t point, struct hash128 all, const struct model_piece *p)
{
	struct reader *rd = ctx;

	(void)all;
	rd->asked++;
	rd->too_early += !rd->seen_all[point];
	return !rd->seen_all[point] || p->addr == 0;
}

static bool moody(void *ctx, uint64_t point, struct hash128 all, const struct model_piece *p)
{
	struct reader *rd = ctx;

	(void)point;
	(void)all;
	(void)p;
	return rng_below(&rd->r, 2);
}

static void test_vary_late(void)
{
	static const uint64_t points[] = { 2, 4 };
	auto_strbuf ids = STRBUF_INIT;
	auto_crash_state s = CRASH_STATE_INIT;
	auto_crash e = NULL;
	struct reader rd = { 0 };
	struct crash_stats stats, before;
	struct trace t;

	trace_from(&t, "w0a w1b w2c w3d", 8);
	struct crash_opts opts = { .points = points,
				   .n_points = 2,
				   .layers = CRASH_LAYERS_DEFAULT,
				   .max_subset = UINT32_MAX,
				   .vary = reads_0,
				   .vary_ctx = &rd };
	is_i(crash_new(&t, &opts, &e, NULL), 0, "a predicate that learns");
	crash_stats(e, &before);
	ok(rd.asked == 0 && before.possible == 20 && before.pruned == 0, "is not asked at first");
	while (crash_next(e, &s)) {
		strbuf_addf(&ids, "%s%s", ids.len ? " " : "", strbuf_str(&s.id));
		if (s.layer == CRASH_ALL)
			rd.seen_all[s.point] = true;
		crash_stats(e, &stats);
		if (!adds_up(&stats))
			rd.too_early = 99;
	}
	is_s(strbuf_str(&ids), "0.2 1.2 1.4 4.2.1 5.4.0",
	     "then only what was read of everything is varied");
	ok(rd.too_early == 0 && rd.asked == 6, "it is asked once for each, after that was seen");
	/* Of 4 + 16 sets, two at each point are left, and the empty one that came before. */
	ok(stats.possible == 6 && stats.pruned == 14 && stats.left_out == 0 && stats.tried == 6,
	   "and the numbers follow: %g possible, %g pruned", stats.possible, stats.pruned);
	trace_release(&t);
}

/* Whatever it answers, and whenever a budget cuts in. */
static void test_vary_moody(void)
{
	enum { TRACES = 600 };
	int wrong = 0;
	struct rng r;

	rng_init(&r, 16);
	for (int i = 0; i < TRACES; i++) {
		struct reader rd = { .r = r };
		struct random_trace rt;
		struct crash_points points = { 0 };
		struct outcome o;

		random_trace(&rt, &r, 13, 1);
		crash_points_all(&rt.t, &points);
		struct crash_opts opts = { .points = points.v,
					   .n_points = points.n,
					   .layers = CRASH_LAYERS_DEFAULT |
						     (i % 3 ? 0 : CRASH_WITH_TORN),
					   .max_subset = 2,
					   .tear_unit = 1,
					   .budget = i % 2 ? 1 + rng_below(&r, 40) : 60,
					   .sample = rng_below(&r, 20),
					   .vary = moody,
					   .vary_ctx = &rd };
		enumerate(&rt.t, &opts, &o);
		wrong += !adds_up(&o.stats) || !o.replays || o.stats.unique != o.c.n;
		outcome_release(&o);
		crash_points_release(&points);
		trace_release(&rt.t);
	}
	ok(!wrong, "any answer is good: numbers add up, ids replay");
}

static void test_tear_unit(void)
{
	auto_crash_state s = CRASH_STATE_INIT;
	struct crash_opts opts = { 0 };
	struct trace t;

	trace_from(&t, "w0abcdefgh", 8);
	t.info.sector_size = 4;
	is_i(crash_replay(&t, &opts, "3.1.4.0.1.0.1", &s, NULL), 0, "torn between sectors");
	ok(s.torn.n == 1 && s.torn.v[0].unit == 4, "the tear says so");
	is_i(crash_replay(&t, &opts, "3.1.2.0.1.0.1", &s, NULL), 0, "torn within a sector");
	ok(s.torn.n == 1 && s.torn.v[0].unit == 2, "the tear says so");
	is_i(crash_replay(&t, &opts, "1.1", &s, NULL), 0, "not torn");
	is_u(s.torn.n, 0, "there is no tear");
	trace_release(&t);
}

static void racing_is(const char *trace, uint64_t point, uint64_t want, const char *name)
{
	struct crash_opts opts = { .points = &point, .n_points = 1, .layers = CRASH_WITH_NONE };
	struct crash_stats stats = { 0 };
	auto_crash e = NULL;
	struct trace t;

	trace_from(&t, trace, 8);
	if (crash_new(&t, &opts, &e, NULL) == 0)
		crash_stats(e, &stats);
	is_u(stats.racing, want, "racing: %s", name);
	trace_release(&t);
}

static void test_racing(void)
{
	racing_is("w0a w1b", 2, 0, "apart");
	racing_is("w0ab w1b", 2, 1, "overlapping");
	racing_is("w0ab c0 w1b", 3, 0, "one after the other");
	racing_is("w0ab x0 w1b", 3, 0, "also if the first failed");
	racing_is("w0abc d0-2 w2x c0 w0a", 5, 3, "pairs, not requests");
	racing_is("w0abc d0-2 w2x c0 w0a", 1, 0, "what comes after the last point does not count");
}

/* The index, against a list. */

struct hits {
	uint64_t sum;
	int n;
};

static bool add_hit(void *ctx, uint64_t id)
{
	struct hits *h = ctx;

	h->sum += id * id;
	h->n++;
	return true;
}

static void test_ranges(void)
{
	enum { ROUNDS = 20000, MAX = 256 };
	auto_call(ranges_release) struct ranges r = RANGES_INIT;
	struct {
		uint64_t from, to, id;
	} list[MAX];
	size_t n = 0;
	int wrong = 0;
	struct rng rng;

	rng_init(&rng, 17);
	for (uint64_t round = 0; round < ROUNDS; round++) {
		uint64_t from = rng_below(&rng, 1000), to = from + 1 + rng_below(&rng, 50);
		struct hits got = { 0 }, want = { 0 };

		if (n == MAX || (n && rng_below(&rng, 3) == 0)) {
			size_t i = rng_below(&rng, n);

			ranges_remove(&r, list[i].from, list[i].id);
			list[i] = list[--n];
		} else {
			ranges_add(&r, from, to, round);
			list[n].from = from;
			list[n].to = to;
			list[n++].id = round;
		}
		from = rng_below(&rng, 1000);
		to = from + rng_below(&rng, 100);
		ranges_overlapping(&r, from, to, add_hit, &got);
		for (size_t i = 0; i < n; i++)
			if (list[i].from < to && from < list[i].to && from < to)
				add_hit(&want, list[i].id);
		wrong += got.n != want.n || got.sum != want.sum || r.n != n;
	}
	ok(!wrong, "%d searches for ranges that overlap", ROUNDS);
	ranges_clear(&r);
	for (uint64_t i = 0; i < ROUNDS; i++)
		ranges_add(&r, i * 10, i * 10 + 5, i);
	r.steps = 0;
	for (uint64_t i = 0; i < ROUNDS; i++)
		ranges_overlapping(&r, i * 10, i * 10 + 5, add_hit, &(struct hits){ 0 });
	ok(r.steps < ROUNDS * 100, "%" PRIu64 " steps for one among %d", r.steps / ROUNDS, ROUNDS);
}

/* FUA writes among many that no flush covers: what they cost must not depend on those. */
static void test_many_fua(uint64_t stride, const char *name)
{
	enum { WRITES = 20000 };
	struct crash_opts opts = { .n_points = 1, .layers = CRASH_WITH_NONE | CRASH_WITH_ALL };
	auto_crash_state s = CRASH_STATE_INIT;
	auto_crash e = NULL;
	unsigned char data[512];
	uint64_t point, n = 0;
	struct trace t;

	memset(data, 1, sizeof(data));
	trace_init(&t);
	t.info.size = (uint64_t)1 << 32;
	for (uint64_t i = 0; i < WRITES; i++)
		trace_complete(
			&t,
			trace_write(&t, i * stride, data, sizeof(data), i % 4 == 3 ? EV_FUA : 0),
			0);
	point = t.events.n;
	opts.points = &point;
	is_i(crash_new(&t, &opts, &e, NULL), 0, "%d writes, every fourth FUA, %s", WRITES, name);
	while (crash_next(e, &s))
		n++;
	ok(n > 0 && s.survived.n + s.lost.n <= WRITES, "and their states");
	trace_release(&t);
}

int main(void)
{
	test_named();
	test_against_naive();
	test_torn_against_naive();
	test_all_points();
	test_order();
	test_bad_ids();
	test_budget(CRASH_LAYERS_DEFAULT, 300, 50);
	test_budget(CRASH_LAYERS_DEFAULT | CRASH_WITH_TORN, 1500, 40);
	test_budget(CRASH_WITH_NONE | CRASH_WITH_ALL, 0, 30);
	test_sample_of_little();
	test_large_numbers();
	test_details();
	test_needs(false);
	test_needs(true);
	test_points_together(CRASH_LAYERS_DEFAULT, false);
	test_points_together(CRASH_WITH_WHOLE, false);
	test_points_together(CRASH_LAYERS_DEFAULT | CRASH_WITH_TEARS, false);
	test_points_together(CRASH_LAYERS_DEFAULT, true);
	test_points_together(CRASH_LAYERS_DEFAULT | CRASH_WITH_TEARS, true);
	test_skipping();
	test_vary_late();
	test_vary_moody();
	test_tear_unit();
	test_racing();
	test_ranges();
	test_many_fua(4096, "apart");
	test_many_fua(256, "each over half of the last");
	return done_testing();
}
