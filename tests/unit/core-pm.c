/* SPDX-License-Identifier: MIT */
/*
 * core-pm.c - the models of persistent memory, against hand-written cases and against a naive
 * enumeration that knows nothing but the rules: it tries every prefix of every line.
 */
#include "tap.h"

#include "base/rng.h"
#include "core/crash.h"
#include "core/model_pm.h"
#include "core/pm_join.h"
#include "core/u64map.h"

enum {
	REGION = 160, /* two lines and a half */
	CUTS_MAX = 160,
	FLIGHT_MAX = 9, /* more are too many subsets for one test */
	MUTANT_TRACES = 300,
};

/* What a model is asked for. */
struct setting {
	const char *name;
	const struct model_ops *ops;
	struct model_pm_opts opts;
};

static bool is_eadr(const struct setting *s)
{
	return s->ops == &model_pm_eadr;
}

static uint64_t grain(const struct setting *s)
{
	return s->opts.granularity ? s->opts.granularity : PM_LINE;
}

/* Sets of small memories. */

struct contents vec_of(struct bytes { unsigned char b[REGION]; });

static int compare_bytes(const void *a, const void *b)
{
	return memcmp(a, b, REGION);
}

static void contents_sort(struct contents *c)
{
	size_t kept = 0;

	if (c->n)
		qsort(c->v, c->n, sizeof(*c->v), compare_bytes);
	for (size_t i = 0; i < c->n; i++)
		if (!kept || compare_bytes(&c->v[kept - 1], &c->v[i]))
			c->v[kept++] = c->v[i];
	c->n = kept;
}

static bool contents_equal(const struct contents *a, const struct contents *b)
{
	return a->n == b->n && (!a->n || memcmp(a->v, b->v, a->n * sizeof(*a->v)) == 0);
}

static bool contents_has(const struct contents *c, const struct bytes *b)
{
	return c->n && bsearch(b, c->v, c->n, sizeof(*c->v), compare_bytes);
}

/* Whether all of `a` is in `b`. */
static bool contents_within(const struct contents *a, const struct contents *b)
{
	for (size_t i = 0; i < a->n; i++)
		if (!contents_has(b, &a->v[i]))
			return false;
	return true;
}

/* What the enumerator gives, sorted. */

struct outcome {
	struct contents c;
	bool replays, adds_up;
	uint64_t in_flight; /* pieces in flight at the last point */
};

static bool replays_as(const struct trace *t, const struct crash_opts *opts,
		       const struct crash_state *s)
{
	struct crash_opts only = { .model = opts->model, .model_ctx = opts->model_ctx };
	auto_crash_state again = CRASH_STATE_INIT;

	return crash_replay(t, &only, strbuf_str(&s->id), &again, NULL) == 0 &&
	       image_equal(&again.image, &s->image);
}

static void enumerate(const struct trace *t, const struct setting *s, const uint64_t *points,
		      size_t n_points, struct outcome *out)
{
	struct crash_opts opts = { .model = s->ops,
				   .model_ctx = &s->opts,
				   .points = points,
				   .n_points = n_points,
				   .layers = CRASH_LAYERS_DEFAULT,
				   .max_subset = UINT32_MAX,
				   .ignore_marks = true };
	auto_crash_state state = CRASH_STATE_INIT;
	struct crash_stats stats;
	auto_crash e = NULL;

	*out = (struct outcome){ .replays = true };
	if (crash_new(t, &opts, &e, NULL))
		abort();
	while (crash_next(e, &state)) {
		struct bytes b;

		image_read(&state.image, 0, b.b, REGION);
		vec_push(&out->c, b);
		out->replays &= out->c.n % 8 || replays_as(t, &opts, &state);
		out->in_flight = state.survived.n + state.lost.n;
	}
	crash_stats(e, &stats);
	out->adds_up = stats.left_out == 0 && stats.unique == out->c.n && !stats.budget_hit;
	contents_sort(&out->c);
}

/* The naive enumeration. */

/* The part of a store that lies in one segment. */
struct cut {
	uint64_t event, from, to, segment;
	bool nt;
	uint32_t cpu;
	uint64_t run, due; /* for joining */
	size_t group;
	bool flight, survives;
};

struct naive {
	const struct trace *t;
	const struct setting *s;
	struct cut cuts[CUTS_MAX];
	size_t n;
	size_t flight_max;
	bool words_are_whole; /* of one instruction: see same_word() */
	struct contents *out;
};

static const struct event *event_at(const struct naive *n, uint64_t i)
{
	return &n->t->events.v[i];
}

static bool is_fence_of(const struct naive *n, uint64_t i, uint32_t cpu)
{
	return event_at(n, i)->kind == EV_FENCE && event_at(n, i)->cpu == cpu;
}

static bool is_mark(const struct naive *n, uint64_t i)
{
	enum event_kind k = event_at(n, i)->kind;

	return k == EV_OP_BEGIN || k == EV_OP_END || k == EV_PERSIST;
}

/* Whether an event flushes the line that a cut is in, and the cut is not after it. */
static bool flushes(const struct naive *n, uint64_t i, const struct cut *c, bool clflush)
{
	const struct event *ev = event_at(n, i);

	return ev->kind == EV_LINEFLUSH && i > c->event && !!(ev->flags & EV_CLFLUSH) == clflush &&
	       ev->addr / PM_LINE == c->from / PM_LINE;
}

/* Whether the rules say directly, by this one store, that it is durable before event `point`. */
static bool durable_itself(const struct naive *n, const struct cut *c, uint64_t point)
{
	for (uint64_t i = c->event + 1; i < point; i++) {
		if (c->nt) {
			if (is_fence_of(n, i, c->cpu))
				return true;
		} else if (is_eadr(n->s)) {
			if (event_at(n, i)->kind == EV_FENCE || is_mark(n, i))
				return true;
		} else if (flushes(n, i, c, true)) {
			return true;
		} else if (flushes(n, i, c, false)) {
			for (uint64_t f = i + 1; f < point; f++)
				if (is_fence_of(n, f, event_at(n, i)->cpu))
					return true;
		}
	}
	return false;
}

/* Or because a later one of the same segment is. */
static bool is_durable(const struct naive *n, size_t cut, uint64_t point)
{
	for (size_t i = cut; i < n->n && n->cuts[i].event < point; i++)
		if (n->cuts[i].segment == n->cuts[cut].segment &&
		    durable_itself(n, &n->cuts[i], point))
			return true;
	return false;
}

/* The first that takes care of a cut: 1 + its CPU. Only asked for cuts in flight. */
static uint64_t who_cares(const struct naive *n, size_t cut, uint64_t point)
{
	uint64_t first = UINT64_MAX, cpu = 0;

	for (size_t k = cut; k < n->n && n->cuts[k].event < point; k++) {
		const struct cut *c = &n->cuts[k];

		if (c->segment != n->cuts[cut].segment)
			continue;
		for (uint64_t i = c->event; i < point; i++) {
			bool cares = c->nt ? i == c->event : flushes(n, i, c, false);

			if (cares && i < first) {
				first = i;
				cpu = event_at(n, i)->cpu + 1;
			}
		}
	}
	return cpu;
}

/* Runs: which stores are one copy. `first` is the first cut of its store. */

static bool same_run_allowed(const struct naive *n, size_t cut, uint64_t run)
{
	const struct cut *c = &n->cuts[cut];
	uint64_t run_begins = UINT64_MAX;

	for (size_t i = 0; i < cut; i++)
		if (n->cuts[i].run == run)
			run_begins = min(run_begins, n->cuts[i].event);
	for (size_t i = cut; i-- > 0;)
		if (n->cuts[i].segment == c->segment && !is_durable(n, i, c->event))
			return n->cuts[i].run == run || n->cuts[i].event < run_begins;
	return true;
}

/* Whether a store lies at the end of a run, in the direction in which that goes. */
static bool at_end(const struct naive *n, size_t cut, uint64_t run)
{
	const struct event *ev = event_at(n, n->cuts[cut].event), *first = NULL, *second = NULL;
	uint64_t low = UINT64_MAX, high = 0;

	for (size_t i = 0; i < cut; i++) {
		const struct event *e = event_at(n, n->cuts[i].event);

		if (n->cuts[i].run != run)
			continue;
		if (!first)
			first = e;
		else if (!second && e != first)
			second = e;
		low = min(low, e->addr);
		high = max(high, e->addr + e->len);
	}
	bool up = ev->addr == high, down = ev->addr + ev->len == low;
	if (second)
		return first->addr < second->addr ? up : down;
	return up || down;
}

/* Whether an event flushes a line of what a run has so far, and the run's CPU does so. */
static bool flushes_run(const struct naive *n, uint64_t i, size_t cut, uint64_t run)
{
	if (is_eadr(n->s) || event_at(n, i)->cpu != n->cuts[cut].cpu)
		return false;
	for (size_t k = 0; k < cut; k++)
		if (n->cuts[k].run == run &&
		    (flushes(n, i, &n->cuts[k], false) || flushes(n, i, &n->cuts[k], true)))
			return true;
	return false;
}

static bool first_of_store_joins(const struct naive *n, size_t cut, size_t last)
{
	const struct cut *c = &n->cuts[cut], *l = &n->cuts[last];

	if (l->nt != c->nt || !at_end(n, cut, l->run))
		return false;
	for (uint64_t i = l->event + 1; i < c->event; i++)
		if (is_fence_of(n, i, c->cpu) || is_mark(n, i) || flushes_run(n, i, cut, l->run))
			return false;
	/* With eADR all temporal stores have one order. */
	for (size_t i = cut; is_eadr(n->s) && !c->nt && i-- > 0;)
		if (!n->cuts[i].nt)
			return n->cuts[i].run == l->run;
	return true;
}

static void find_runs(struct naive *n)
{
	uint64_t runs = 0;

	for (size_t k = 0; k < n->n; k++) {
		struct cut *c = &n->cuts[k];
		size_t last = k;

		while (last > 0 && n->cuts[last - 1].cpu != c->cpu)
			last--;
		c->run = 0;
		if (last-- > 0 &&
		    (n->cuts[last].event == c->event || first_of_store_joins(n, k, last)) &&
		    same_run_allowed(n, k, n->cuts[last].run))
			c->run = n->cuts[last].run;
		if (!c->run)
			c->run = ++runs;
	}
}

static void find_groups(struct naive *n, uint64_t point)
{
	for (size_t k = 0; k < n->n; k++) {
		struct cut *c = &n->cuts[k];
		size_t last = k;
		uint64_t low = UINT64_MAX, high = 0;

		if (!c->flight)
			continue;
		c->group = k;
		c->due = is_eadr(n->s) ? 0 : who_cares(n, k, point);
		while (last > 0 && !(n->cuts[last - 1].cpu == c->cpu && n->cuts[last - 1].flight))
			last--;
		if (last-- == 0 || n->cuts[last].run != c->run || n->cuts[last].due != c->due)
			continue;
		for (size_t i = 0; i < k; i++)
			if (n->cuts[i].flight && n->cuts[i].group == n->cuts[last].group) {
				low = min(low, n->cuts[i].from);
				high = max(high, n->cuts[i].to);
			}
		if (c->from == high || c->to == low)
			c->group = n->cuts[last].group;
	}
}

static bool groups_are_whole(const struct naive *n)
{
	for (size_t i = 0; i < n->n; i++) {
		uint64_t len = 0;
		bool all = true, any = false;

		for (size_t k = 0; k < n->n; k++)
			if (n->cuts[k].flight && n->cuts[k].group == i) {
				len += n->cuts[k].to - n->cuts[k].from;
				all &= n->cuts[k].survives;
				any |= n->cuts[k].survives;
			}
		if (len > n->s->opts.join_min && any && !all)
			return false;
	}
	return true;
}

/*
 * Whether two events, of which nothing but loads is between, are parts of a store as pm_join.h has
 * it, written straight from there; but for the direction.
 */
static bool same_word(const struct event *a, const struct event *b)
{
	uint64_t word = a->addr / PM_ATOMIC;

	return a->kind == EV_STORE && b->kind == EV_STORE && a->pc && a->pc == b->pc &&
	       a->len == b->len && a->cpu == b->cpu && a->flags == b->flags &&
	       (a->addr + a->len == b->addr || b->addr + b->len == a->addr) &&
	       (a->addr + a->len - 1) / PM_ATOMIC == word && b->addr / PM_ATOMIC == word &&
	       (b->addr + b->len - 1) / PM_ATOMIC == word;
}

/* The cut before in the trace, if it belongs to the same word of the same instruction. */
static bool with_last(const struct naive *n, size_t cut, int *direction)
{
	const struct event *ev = event_at(n, n->cuts[cut].event), *last;

	if (!cut || n->cuts[cut].event != n->cuts[cut - 1].event + 1)
		return false;
	last = event_at(n, n->cuts[cut - 1].event);
	int here = ev->addr > last->addr ? 1 : -1;
	if (!same_word(last, ev) || (*direction && *direction != here))
		return false;
	*direction = here;
	return true;
}

static bool no_word_in_part(const struct naive *n)
{
	int direction = 0;

	for (size_t i = 0; i < n->n; i++) {
		if (!with_last(n, i, &direction))
			direction = 0;
		else if (n->cuts[i].survives != n->cuts[i - 1].survives)
			return false;
	}
	return true;
}

static bool temporal_is_prefix(const struct naive *n)
{
	bool lost = false;

	for (size_t i = 0; i < n->n; i++) {
		if (n->cuts[i].nt)
			continue;
		if (n->cuts[i].survives && lost)
			return false;
		lost |= !n->cuts[i].survives;
	}
	return true;
}

static void give_out(const struct naive *n)
{
	struct bytes b = { 0 };

	if ((is_eadr(n->s) && !temporal_is_prefix(n)) || !groups_are_whole(n) ||
	    (n->words_are_whole && !no_word_in_part(n)))
		return;
	for (size_t i = 0; i < n->n; i++) {
		const struct cut *c = &n->cuts[i];
		const struct event *ev = event_at(n, c->event);

		if (c->survives)
			memcpy(b.b + c->from, ev->data + (c->from - ev->addr), c->to - c->from);
	}
	vec_push(n->out, b);
}

/* All prefixes of all segments from one on. */
static void every_prefix(struct naive *n, uint64_t segment)
{
	if (segment * grain(n->s) >= REGION) {
		give_out(n);
		return;
	}
	for (size_t i = 0; i < n->n; i++)
		if (n->cuts[i].segment == segment)
			n->cuts[i].survives = !n->cuts[i].flight;
	every_prefix(n, segment + 1);
	for (size_t i = 0; i < n->n; i++)
		if (n->cuts[i].segment == segment && n->cuts[i].flight) {
			n->cuts[i].survives = true;
			every_prefix(n, segment + 1);
		}
}

static void add_cuts(struct naive *n, uint64_t event)
{
	const struct event *ev = event_at(n, event);
	uint64_t g = grain(n->s);

	for (uint64_t from = ev->addr, to; from < ev->addr + ev->len; from = to) {
		to = min(ev->addr + ev->len, from - from % g + g);
		assert(n->n < CUTS_MAX);
		n->cuts[n->n++] = (struct cut){ .event = event,
						.from = from,
						.to = to,
						.segment = from / g,
						.nt = ev->flags & EV_NONTEMPORAL,
						.cpu = ev->cpu };
	}
}

static bool naive_run(struct naive *n, uint64_t point)
{
	size_t flight = 0;

	vec_clear(n->out);
	for (uint64_t i = 0; i < point; i++)
		if (event_at(n, i)->kind == EV_STORE)
			add_cuts(n, i);
	for (size_t i = 0; i < n->n; i++)
		flight += n->cuts[i].flight = !is_durable(n, i, point);
	if (flight > n->flight_max)
		return false;
	find_runs(n);
	find_groups(n, point);
	every_prefix(n, 0);
	contents_sort(n->out);
	return true;
}

/* False: too much is in flight. */
static bool naive_contents(const struct trace *t, const struct setting *s, uint64_t point,
			   struct contents *out)
{
	struct naive n = { .t = t, .s = s, .out = out, .flight_max = FLIGHT_MAX };

	return naive_run(&n, point);
}

/* Random traces. */

static void random_store(struct trace *t, struct rng *r, struct event *last)
{
	unsigned char data[REGION];
	struct event ev = { .kind = EV_STORE, .cpu = (uint32_t)rng_below(r, 3), .data = data };

	ev.len = 1 + rng_below(r, rng_below(r, 4) ? 8 : 80);
	ev.addr = rng_below(r, REGION - ev.len);
	ev.flags = rng_below(r, 3) ? 0 : EV_NONTEMPORAL;
	if (last->len && rng_below(r, 2)) { /* goes on where the last one was */
		bool up = rng_below(r, 3);

		ev.len = 1 + rng_below(r, 40);
		ev.addr = up ? last->addr + last->len : last->addr - min(last->addr, ev.len);
		ev.cpu = last->cpu;
		ev.flags = rng_below(r, 5) ? last->flags : ev.flags;
	}
	ev.addr = min(ev.addr, (uint64_t)REGION - 1);
	ev.len = min(ev.len, REGION - ev.addr);
	for (size_t i = 0; i < ev.len; i++)
		data[i] = (unsigned char)(1 + t->events.n * 16 + i % 16);
	trace_append(t, &ev);
	if (rng_below(r, 3))
		*last = ev;
}

static void random_trace(struct trace *t, struct rng *r)
{
	uint64_t left = 3 + rng_below(r, 13);
	struct event last = { 0 };

	trace_init(t);
	t->info.size = REGION;
	while (left-- > 0) {
		struct event ev = { .kind = EV_FENCE, .cpu = (uint32_t)rng_below(r, 3) };
		uint64_t what = rng_below(r, 20);

		if (what < 10) {
			random_store(t, r, &last);
			continue;
		}
		if (what < 16) {
			ev.kind = EV_LINEFLUSH;
			ev.addr = rng_below(r, 3) * PM_LINE;
			ev.flags = rng_below(r, 4) ? 0 : EV_CLFLUSH;
		} else if (what == 19) {
			ev = (struct event){ .kind = rng_below(r, 2) ? EV_OP_BEGIN : EV_OP_END };
		}
		trace_append(t, &ev);
	}
}

static const struct setting settings[] = {
	{ "lines", &model_pm, { 0, PM_JOIN_NEVER } },
	{ "words", &model_pm, { PM_ATOMIC, PM_JOIN_NEVER } },
	{ "lines, copies as one", &model_pm, { 0, 0 } },
	{ "words, copies as one", &model_pm, { PM_ATOMIC, 0 } },
	{ "lines, long copies as one", &model_pm, { PM_LINE, 40 } },
	{ "eADR", &model_pm_eadr, { 0, PM_JOIN_NEVER } },
	{ "eADR, words", &model_pm_eadr, { PM_ATOMIC, PM_JOIN_NEVER } },
	{ "eADR, copies as one", &model_pm_eadr, { 0, 0 } },
};

struct totals {
	uint64_t points, states, wrong, no_replay, no_sum;
};

static void compare_at(const struct trace *t, const struct setting *s, const struct model_ops *ops,
		       uint64_t point, struct totals *sum)
{
	struct setting tried = *s;
	struct contents want = { 0 };
	struct outcome o;

	if (naive_contents(t, s, point, &want)) {
		tried.ops = ops;
		enumerate(t, &tried, &point, 1, &o);
		sum->points++;
		sum->states += o.c.n;
		sum->wrong += !contents_equal(&want, &o.c);
		sum->no_replay += !o.replays;
		sum->no_sum += !o.adds_up;
		vec_release(&o.c);
	}
	vec_release(&want);
}

static void compare(const struct setting *s, const struct model_ops *ops, uint64_t seed,
		    unsigned traces, struct totals *sum)
{
	struct rng r;

	*sum = (struct totals){ 0 };
	rng_init(&r, seed);
	for (unsigned i = 0; i < traces; i++) {
		struct trace t;

		random_trace(&t, &r);
		/* Every point of some, and the last one of all. */
		for (uint64_t p = i % 8 ? t.events.n : 0; p <= t.events.n; p++)
			compare_at(&t, s, ops, p, sum);
		trace_release(&t);
	}
}

static void test_against_naive(void)
{
	enum { TRACES = 2000 };

	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		const struct setting *s = &settings[i];
		struct totals sum;

		compare(s, s->ops, 31 + i, TRACES, &sum);
		ok(!sum.wrong && sum.points > TRACES,
		   "%s: at %" PRIu64 " points, the %" PRIu64 " states are those of the rules",
		   s->name, sum.points, sum.states);
		ok(!sum.no_replay && !sum.no_sum, "%s: they are replayed, and nothing is left out",
		   s->name);
		if (sum.wrong || sum.no_replay || sum.no_sum)
			printf("# wrong %" PRIu64 ", not replayed %" PRIu64
			       ", not adding up %" PRIu64 "\n",
			       sum.wrong, sum.no_replay, sum.no_sum);
	}
}

/* Whether nothing and everything that is in flight survives in states of a set. */
static bool has_extremes(const struct trace *t, const struct setting *s, uint64_t point,
			 const struct contents *c)
{
	struct crash_opts opts = { .model = s->ops, .model_ctx = &s->opts };
	bool has = true;

	for (unsigned kind = 0; kind < 2; kind++) {
		auto_crash_state state = CRASH_STATE_INIT;
		char id[40];
		struct bytes b;

		snprintf(id, sizeof(id), "%u.%" PRIu64, kind, point);
		if (crash_replay(t, &opts, id, &state, NULL))
			abort();
		image_read(&state.image, 0, b.b, REGION);
		has &= contents_has(c, &b);
	}
	return has;
}

/*
 * Copies taken as one leave states out, and make none up. What is left are the states where all,
 * nothing, what was flushed, or the first so many copies survive, and others.
 */
static void test_joined_within_split(void)
{
	enum { TRACES = 1500 };
	uint64_t outside = 0, extremes = 0, fewer = 0, points = 0;
	struct rng r;

	rng_init(&r, 77);
	for (unsigned i = 0; i < TRACES; i++) {
		struct trace t;

		random_trace(&t, &r);
		uint64_t p = t.events.n;
		for (unsigned eadr = 0; eadr < 2; eadr++) {
			const struct setting *split = &settings[eadr ? 5 : 0],
					     *joined = &settings[eadr ? 7 : 2];
			struct contents all = { 0 };
			struct outcome o = { 0 };

			if (naive_contents(&t, split, p, &all)) {
				points++;
				enumerate(&t, joined, &p, 1, &o);
				outside += !contents_within(&o.c, &all);
				fewer += o.c.n < all.n;
				extremes += has_extremes(&t, split, p, &o.c);
			}
			vec_release(&o.c);
			vec_release(&all);
		}
		trace_release(&t);
	}
	ok(!outside, "%" PRIu64 " points: states with copies as one are states without", points);
	ok(extremes == points, "everything and nothing are among them");
	ok(fewer > points / 20, "and %" PRIu64 " times there are fewer", fewer);
}

/* ---- bytes of one instruction, as one store ---- */

static void trace_from(struct trace *t, const char *text); /* below */

static void put_in_trace(void *ctx, const struct event *ev)
{
	trace_append(ctx, ev);
}

static void join_trace(const struct trace *t, struct trace *out)
{
	struct pm_join j = { .put = put_in_trace, .ctx = out };

	trace_init(out);
	out->info.size = t->info.size;
	for (size_t i = 0; i < t->events.n; i++)
		pm_join_add(&j, &t->events.v[i]);
	pm_join_end(&j);
}

/* What an instruction with a repeat prefix does, and what can come in between. */
static void random_string(struct trace *t, struct rng *r)
{
	struct event ev = { .kind = EV_STORE,
			    .cpu = (uint32_t)rng_below(r, 2),
			    .flags = rng_below(r, 4) ? 0 : EV_NONTEMPORAL,
			    .len = 1u << rng_below(r, 3),
			    .pc = 0x1000 * rng_below(r, 3) };
	uint64_t n = 1 + rng_below(r, 9);
	bool up = rng_below(r, 4);

	ev.addr = 40 + rng_below(r, 110); /* there is room downwards */
	while (n-- > 0 && ev.addr + ev.len <= REGION) {
		unsigned char data[8];
		uint64_t what = rng_below(r, 40);

		for (size_t i = 0; i < sizeof(data); i++)
			data[i] = (unsigned char)(1 + rng_below(r, 255));
		ev.data = data;
		trace_append(t, &ev);
		ev.addr += up ? ev.len : -ev.len;
		if (what == 0)
			ev.pc ^= 0x1000;
		else if (what == 1)
			ev.flags ^= EV_NONTEMPORAL;
		else if (what == 2)
			trace_append(t, &(struct event){ .kind = EV_LINEFLUSH,
							 .addr = ev.addr / PM_LINE * PM_LINE,
							 .cpu = ev.cpu });
		else if (what == 3)
			up = !up;
	}
}

static void random_strings(struct trace *t, struct rng *r)
{
	uint64_t left = 1 + rng_below(r, 6);

	trace_init(t);
	t->info.size = REGION;
	while (left-- > 0) {
		uint64_t what = rng_below(r, 8);

		if (what < 4)
			random_string(t, r);
		else if (what < 7)
			trace_append(t,
				     &(struct event){ .kind = what == 4 ? EV_FENCE : EV_LINEFLUSH,
						      .addr = what == 4 ? 0 : PM_LINE * (what - 5),
						      .cpu = (uint32_t)rng_below(r, 2) });
		else
			trace_append(t, &(struct event){ .kind = EV_OP_END });
	}
}

struct joined {
	uint64_t points, wrong, fewer, more, states, states_before, events, events_before;
};

static void compare_joined(const struct trace *t, const struct setting *s, struct joined *sum)
{
	struct contents want = { 0 }, all = { 0 };
	struct naive n = {
		.t = t, .s = s, .out = &want, .flight_max = 24, .words_are_whole = true
	};
	struct naive every = { .t = t, .s = s, .out = &all, .flight_max = 24 };
	struct trace short_one;
	struct outcome o = { 0 };

	join_trace(t, &short_one);
	uint64_t point = short_one.events.n;
	bool small = naive_run(&n, t->events.n) && naive_run(&every, t->events.n);
	/* The enumerator tries subsets, and wants few. */
	struct contents few = { 0 };
	small &= naive_contents(&short_one, s, point, &few);
	if (small) {
		enumerate(&short_one, s, &point, 1, &o);
		sum->points++;
		sum->wrong += !contents_equal(&want, &o.c);
		sum->more += !contents_within(&o.c, &all);
		sum->fewer += o.c.n < all.n;
		sum->states += o.c.n;
		sum->states_before += all.n;
		sum->events += short_one.events.n;
		sum->events_before += t->events.n;
	}
	vec_release(&few);
	vec_release(&o.c);
	vec_release(&want);
	vec_release(&all);
	trace_release(&short_one);
}

static void test_strings(void)
{
	enum { TRACES = 1500 };
	static const size_t with[] = { 0, 1, 5, 6 }; /* of `settings` */

	for (size_t k = 0; k < ARRAY_SIZE(with); k++) {
		const struct setting *s = &settings[with[k]];
		struct joined sum = { 0 };
		struct rng r;

		rng_init(&r, 41 + k);
		for (unsigned i = 0; i < TRACES; i++) {
			struct trace t;

			random_strings(&t, &r);
			compare_joined(&t, s, &sum);
			trace_release(&t);
		}
		ok(!sum.wrong && sum.points > TRACES / 4,
		   "%s: at %" PRIu64
		   " points, bytes of one instruction in one word survive together, "
		   "and all else as before",
		   s->name, sum.points);
		ok(!sum.more, "%s: no state is made up", s->name);
		ok(sum.fewer > sum.points / 10 && sum.events < sum.events_before,
		   "%s: %" PRIu64 " states of %" PRIu64 ", %" PRIu64 " events of %" PRIu64, s->name,
		   sum.states, sum.states_before, sum.events, sum.events_before);
	}
}

/* Events of a trace in words, joined: "s8+3" is a store of three bytes at 8. */
static void joins(const char *trace, const char *want, const char *name)
{
	static const char kinds[] = { [EV_STORE] = 's',
				      [EV_LINEFLUSH] = 'f',
				      [EV_FENCE] = 'F',
				      [EV_LOAD] = 'l',
				      [EV_OP_END] = 'm' };
	auto_strbuf got = STRBUF_INIT;
	struct trace t, out;

	trace_from(&t, trace);
	join_trace(&t, &out);
	for (size_t i = 0; i < out.events.n; i++) {
		const struct event *ev = &out.events.v[i];

		strbuf_addf(&got, "%s%c%" PRIu64, i ? " " : "", kinds[ev->kind], ev->addr);
		if (ev->kind == EV_STORE)
			strbuf_addf(&got, "%.*s", (int)ev->len, (const char *)ev->data);
	}
	is_s(strbuf_str(&got), want, "%s", name);
	trace_release(&out);
	trace_release(&t);
}

static void test_joins(void)
{
	joins("s0a%1 s1b%1 s2c%1", "s0abc", "bytes of one instruction are one store");
	joins("s0a s1b", "s0a s1b", "not if nobody knows whose they are");
	joins("s0a%1 s1b%2", "s0a s1b", "nor of two");
	joins("s6a%1 s7b%1 s8c%1 s9d%1", "s6ab s8cd", "8 aligned bytes at most");
	joins("s3c%1 s2b%1 s1a%1", "s1abc", "downwards");
	joins("s2b%1 s3c%1 s1a%1", "s2bc s1a", "not in both directions");
	joins("s0ab%1 s2cd%1 s4ef%1 s6gh%1", "s0abcdefgh", "wider ones");
	joins("s0ab%1 s2c%1", "s0ab s2c", "not of two lengths");
	joins("s7ab%1 s9cd%1", "s7ab s9cd", "nor over the end of a word");
	joins("s0a%1 s2c%1", "s0a s2c", "nor with a gap");
	joins("s0a%1 s0b%1", "s0a s0b", "nor to the same place");
	joins("s0a%1 n1b%1", "s0a s1b", "nor past the cache and in it");
	joins("s0a%1 s1b%1@1", "s0a s1b", "nor of two CPUs");
	joins("s0a%1 F s1b%1", "s0a F0 s1b", "nor across a fence");
	joins("s0a%1 F@1 s1b%1", "s0a F0 s1b", "anybody's");
	joins("s0a%1 f0 s1b%1", "s0a f0 s1b", "nor what is flushed and what is not");
	joins("s0a%1 m s1b%1", "s0a m0 s1b", "nor across a mark");
	joins("s0a%1 s64x%9@1 s1b%1", "s0a s64x s1b", "nor across a store of another");
	joins("s0a%1 l64 s1b%1", "l64 s0ab", "loads of something else are not in the way");
	joins("s0a%1 l0 s1b%1", "s0a l0 s1b", "of the same, they are");
	joins("s0abcdefgh%1 s8abcdefgh%1", "s0abcdefgh s8abcdefgh", "words stay as they are");
}

/* The places where the power fails leave no state out. */
static void test_points(void)
{
	enum { TRACES = 1500 };
	uint64_t wrong = 0, traces = 0, saved = 0, not_naive = 0;
	struct rng r;

	rng_init(&r, 78);
	for (unsigned i = 0; i < TRACES; i++) {
		const struct setting *s = &settings[i % 2 ? 0 : i % 4 ? 1 : 5];
		struct crash_points all = { 0 }, some = { 0 };
		struct contents naive = { 0 }, any = { 0 };
		struct outcome o_all = { 0 }, o_some = { 0 };
		bool small = true;
		struct trace t;

		random_trace(&t, &r);
		crash_points_all(&t, &all);
		crash_points_pm(&t, &some);
		for (size_t p = 0; p < all.n; p++) {
			small &= naive_contents(&t, s, all.v[p], &naive);
			for (size_t k = 0; k < naive.n; k++)
				vec_push(&any, naive.v[k]);
		}
		contents_sort(&any);
		if (small) {
			/* What was there before the first store is a state as well. */
			vec_push(&some, 0);
			for (size_t p = some.n - 1; p > 0 && some.v[p] < some.v[p - 1]; p--) {
				uint64_t x = some.v[p];
				some.v[p] = some.v[p - 1];
				some.v[p - 1] = x;
			}
			if (some.n > 1 && some.v[1] == 0) {
				memmove(some.v, some.v + 1, (some.n - 1) * sizeof(*some.v));
				some.n--;
			}
			enumerate(&t, s, all.v, all.n, &o_all);
			enumerate(&t, s, some.v, some.n, &o_some);
			wrong += !contents_equal(&o_all.c, &o_some.c);
			not_naive += !contents_equal(&o_all.c, &any);
			saved += all.n - some.n;
			traces++;
		}
		vec_release(&o_all.c);
		vec_release(&o_some.c);
		vec_release(&naive);
		vec_release(&any);
		crash_points_release(&all);
		crash_points_release(&some);
		trace_release(&t);
	}
	ok(!wrong && traces > TRACES / 4,
	   "%" PRIu64 " traces: no state is missed between the points", traces);
	ok(!not_naive, "all points at once have the states of each");
	ok(saved > traces, "although there are %" PRIu64 " fewer", saved);
}

/* Models that are wrong, to see that the comparison would notice. */

static int fence_drains_all(struct model *m, uint64_t n, const struct event *ev, struct err *err)
{
	struct event other = *ev;
	int rc = 0;

	if (ev->kind != EV_FENCE)
		return model_pm.apply(m, n, ev, err);
	for (other.cpu = 0; !rc && other.cpu < 3; other.cpu++)
		rc = model_pm.apply(m, n, &other, err);
	return rc;
}

static int clflush_waits(struct model *m, uint64_t n, const struct event *ev, struct err *err)
{
	struct event other = *ev;

	if (ev->kind == EV_LINEFLUSH)
		other.flags = 0;
	return model_pm.apply(m, n, &other, err);
}

static int clwb_does_not_wait(struct model *m, uint64_t n, const struct event *ev, struct err *err)
{
	struct event other = *ev;

	if (ev->kind == EV_LINEFLUSH)
		other.flags = EV_CLFLUSH;
	return model_pm.apply(m, n, &other, err);
}

static int all_is_temporal(struct model *m, uint64_t n, const struct event *ev, struct err *err)
{
	struct event other = *ev;

	if (ev->kind == EV_STORE)
		other.flags = 0;
	return model_pm.apply(m, n, &other, err);
}

static int marks_are_fences(struct model *m, uint64_t n, const struct event *ev, struct err *err)
{
	struct event other = *ev;

	if (ev->kind == EV_OP_BEGIN)
		other = (struct event){ .kind = EV_FENCE };
	return model_pm.apply(m, n, &other, err);
}

static int flush_of_one_cpu(struct model *m, uint64_t n, const struct event *ev, struct err *err)
{
	struct event other = *ev;

	if (ev->kind == EV_LINEFLUSH)
		other.cpu = 0;
	return model_pm.apply(m, n, &other, err);
}

static int runs_have_no_end(struct model *m, uint64_t n, const struct event *ev, struct err *err)
{
	struct event other = *ev;

	if (ev->kind == EV_OP_BEGIN || ev->kind == EV_OP_END)
		other.kind = EV_TEXT;
	return model_pm.apply(m, n, &other, err);
}

static void test_mutants(void)
{
	static const struct {
		const char *name;
		int (*apply)(struct model *, uint64_t, const struct event *, struct err *);
		size_t setting;
	} mutants[] = {
		{ "a fence that drains other CPUs", fence_drains_all, 0 },
		{ "a clflush that waits for a fence", clflush_waits, 0 },
		{ "a clwb that does not", clwb_does_not_wait, 0 },
		{ "non-temporal stores like others", all_is_temporal, 0 },
		{ "marks that are fences", marks_are_fences, 0 },
		{ "flushes of one CPU", flush_of_one_cpu, 0 },
		{ "copies that go on after a mark", runs_have_no_end, 2 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(mutants); i++) {
		struct model_ops ops = model_pm;
		struct totals sum;

		ops.apply = mutants[i].apply;
		compare(&settings[mutants[i].setting], &ops, 99, 4 * MUTANT_TRACES, &sum);
		ok(sum.wrong, "%s: noticed at %" PRIu64 " of %" PRIu64 " points", mutants[i].name,
		   sum.wrong, sum.points);
	}
}

/*
 * Cases by hand. A trace in words: s0ab stores "ab" at 0, n0ab past the cache; f64 is a clwb of
 * the line at 64, c64 a clflush; l64 loads a byte; F is a fence; m a mark. @1 at the end: by CPU 1;
 * %9: from the program at 0x9000, %9+2: 2 bytes behind that; !: after a call.
 */
static void trace_from(struct trace *t, const char *text)
{
	auto_free char *copy = xstrdup(text);
	char *save = NULL;

	trace_init(t);
	t->info.size = REGION;
	for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		struct event ev = { .kind = EV_FENCE };
		char *end = w + 1, *at = strchr(w, '@'), *from = strchr(w, '%');
		uint64_t number = strtoul(w + 1, &end, 10);

		if (*w == 's' || *w == 'n')
			ev = (struct event){ .kind = EV_STORE,
					     .addr = number,
					     .flags = (*w == 'n' ? EV_NONTEMPORAL : 0) |
						      (strchr(w, '!') ? EV_NEW_CALL : 0),
					     .len = strcspn(end, "@%!"),
					     .data = (unsigned char *)end };
		else if (*w == 'f' || *w == 'c')
			ev = (struct event){ .kind = EV_LINEFLUSH,
					     .addr = number,
					     .flags = *w == 'c' ? EV_CLFLUSH : 0 };
		else if (*w == 'l')
			ev = (struct event){ .kind = EV_LOAD, .addr = number, .len = 1 };
		else if (*w == 'm')
			ev.kind = EV_OP_END;
		ev.cpu = at ? (uint32_t)strtoul(at + 1, NULL, 10) : 0;
		ev.pc = from ? strtoul(from + 1, &end, 10) << 12 : 0;
		if (from && *end == '+')
			ev.pc += strtoul(end + 1, NULL, 10);
		trace_append(t, &ev);
	}
}

/* Bytes 0, 1, 8, 64, 65 and 128 of each memory: "a.....,ab....". */
static void contents_text(const struct contents *c, struct strbuf *out)
{
	static const size_t shown[] = { 0, 1, 8, 64, 65, 128 };

	for (size_t i = 0; i < c->n; i++) {
		if (i)
			strbuf_addch(out, ',');
		for (size_t j = 0; j < ARRAY_SIZE(shown); j++)
			strbuf_addch(out, c->v[i].b[shown[j]] ? (char)c->v[i].b[shown[j]] : '.');
	}
}

static void expect(size_t setting, const char *trace, const char *want, const char *name)
{
	auto_strbuf got = STRBUF_INIT;
	struct outcome o;
	struct trace t;

	trace_from(&t, trace);
	uint64_t point = t.events.n;
	enumerate(&t, &settings[setting], &point, 1, &o);
	contents_text(&o.c, &got);
	is_s(strbuf_str(&got), want, "%s", name);
	vec_release(&o.c);
	trace_release(&t);
}

static void test_named(void)
{
	enum { LINES, WORDS, JOINED, EADR = 5 };

	expect(LINES, "s0a", "......,a.....", "a store may be evicted any time");
	expect(LINES, "s0a F", "......,a.....", "a fence alone makes nothing durable");
	expect(LINES, "s0a f0", "......,a.....", "nor does a flush alone");
	expect(LINES, "s0a f0 F", "a.....", "both do");
	expect(LINES, "f0 s0a F", "......,a.....", "not in the wrong order");
	expect(LINES, "s0a f0 s1b F", "a.....,ab....", "a flush captures what came before it");
	expect(LINES, "s0a f64 F", "......,a.....", "another line is another line");
	expect(LINES, "s0a f0 F@1", "......,a.....", "another CPU's fence does not count");
	expect(LINES, "s0a f0@1 F@1", "a.....", "another CPU's flush and fence do");
	expect(LINES, "s0a f0 F@1 F", "a.....", "one's own comes later");
	expect(LINES, "s0a c0", "a.....", "clflush orders itself");
	expect(LINES, "s0a c0 s64b", "a.....,a..b..", "with respect to what follows");
	expect(LINES, "s0a s1b", "......,a.....,ab....", "stores to a line persist in order");
	expect(LINES, "s0a s8c", "......,a.....,a.c...", "anywhere in the line");
	expect(WORDS, "s0a s8c", "......,..c...,a.....,a.c...", "but not with words");
	expect(WORDS, "s0a s1b", "......,a.....,ab....", "within a word they do");
	expect(LINES, "s0a s64b", "......,...b..,a.....,a..b..", "lines in any order");
	expect(LINES, "s0a@1 s0b", "......,a.....,b.....", "CPUs in the order of the trace");
	expect(LINES, "n0a", "......,a.....", "a non-temporal store is in flight");
	expect(LINES, "n0a F", "a.....", "until the fence");
	expect(LINES, "n0a F@1", "......,a.....", "of its own CPU");
	expect(LINES, "n0a c0", "......,a.....", "a flush of the cache does not reach it");
	expect(LINES, "n0a s1b F", "a.....,ab....", "the tail of a copy that stays in the cache");
	expect(LINES, "s0a n1b F", "ab....", "what was cached is evicted before");
	expect(LINES, "s8c n0a F", "a.c...", "anywhere in the line");
	expect(WORDS, "s8c n0a F", "a.....,a.c...", "with words, only in the word");
	expect(LINES, "s64b s128c f64 F", "...b..,...b.c", "a flush is of one line");
	/* Byte 63 is not shown. */
	expect(LINES, "s63xyz", "......,...yz.,......,...yz.", "a store across lines, in either");
	expect(JOINED, "s0a s1b", "......,ab....", "a copy is whole or lost");
	expect(JOINED, "s0a s2c s1b", "......,a.....,ab....", "not if it jumps");
	expect(JOINED, "s1b s0a", "......,ab....", "downwards as well");
	expect(JOINED, "s0a s1b@1", "......,a.....,ab....", "not of two CPUs");
	expect(JOINED, "s0a s64b@1 s1c", "......,...b..,ac....,ac.b..",
	       "also with another between");
	expect(JOINED, "s0a n1b", "......,a.....,ab....", "not past the cache and in it");
	expect(JOINED, "s0a F s1b", "......,a.....,ab....", "not across a fence");
	expect(JOINED, "s0a F@1 s1b", "......,ab....", "but across another CPU's");
	expect(JOINED, "s0a m s1b", "......,a.....,ab....", "not across a mark");
	expect(JOINED, "s0a f0 s1b", "......,a.....,ab....", "not what is flushed and what is not");
	expect(JOINED, "s0a f0 s1b f0", "......,a.....,ab....", "nor what was flushed between");
	expect(JOINED, "s0a f0@1 s1b f0@1", "......,ab....", "but by another CPU");
	expect(JOINED, "s0a f64 s1b", "......,ab....", "or elsewhere");
	expect(JOINED, "s0a%1 f0 s1b%1 f0", "......,ab....", "or by the loop that copies");
	expect(JOINED, "s0a%1 f0 s1b%1+9 f0", "......,a.....,ab....", "not what follows the loop");
	expect(JOINED, "s0a%1 s1b%1", "......,ab....", "from one place in the program");
	expect(JOINED, "s0a%1 s1b%9", "......,a.....,ab....", "not from two");
	expect(JOINED, "s0a%1 s1b%1!", "......,a.....,ab....", "nor by two calls");
	expect(JOINED, "s62x%1 s63x%1+4 s64a%1+8 s65b%1+12", "......,...ab.",
	       "code without a loop");
	expect(JOINED, "s63x%1 s64a%1+9 s65b%1+9", "......,...ab.", "what comes before a loop is");
	expect(JOINED, "s63x%1 s64a%1 s65b%1+9", "......,...a..,...ab.",
	       "what comes after it is not");
	expect(EADR, "s0a", "......,a.....", "eADR: before the store, and after");
	expect(EADR, "s0a s64b s128c", "......,a.....,a..b..,a..b.c", "eADR: in order");
	expect(EADR, "s0a s64b F@1 s128c", "a..b..,a..b.c", "eADR: durable once executed");
	expect(EADR, "s0a m s64b", "a.....,a..b..", "eADR: a mark comes after the stores");
	expect(EADR, "n0a s64b", "......,...b..,a.....,a..b..", "eADR: not so past the cache");
	expect(EADR, "n0a m", "......,a.....", "eADR: where only a fence helps");
	expect(EADR, "n0a F", "a.....", "eADR: of the same CPU");
	expect(EADR, "n0a F@1", "......,a.....", "eADR: not of another");
}

static void expect_points(const char *trace, const char *want, const char *name)
{
	struct crash_points points = { 0 };
	auto_strbuf got = STRBUF_INIT;
	struct trace t;

	trace_from(&t, trace);
	crash_points_pm(&t, &points);
	for (size_t i = 0; i < points.n; i++)
		strbuf_addf(&got, "%s%" PRIu64, i ? " " : "", points.v[i]);
	is_s(strbuf_str(&got), want, "%s", name);
	crash_points_release(&points);
	trace_release(&t);
}

static void test_named_points(void)
{
	expect_points("F f0 F", "", "no point where nothing was stored");
	expect_points("s0a f0 F F", "2", "before a fence, not before the next");
	expect_points("s0a s64b c0 c64 F", "2", "before the first of many clflushes");
	expect_points("s0a c0 s64b c64 F", "1 3", "before each with a store between");
	expect_points("m s0a f0 F m m", "1 3 5 6", "after each mark");
	expect_points("s0a m", "1 2", "before it as well, if there are stores");
	expect_points("s0a F@1 s0b", "1 3", "at the end, if there are stores");
}

/* What is large stays small. */

static uint64_t count_pieces(const struct trace *t, const struct setting *s, uint64_t *needs)
{
	struct model_opts opts = { .ctx = &s->opts };
	auto_image zeros;
	size_t n;

	image_init(&zeros, t->info.size);
	auto_model m = model_new(s->ops, &opts, &zeros);
	for (size_t i = 0; i < t->events.n; i++)
		if (model_apply(m, i, &t->events.v[i], NULL))
			abort();
	const struct model_piece *p = model_pieces(m, &n);
	*needs = 0;
	for (size_t i = 0; i < n; i++)
		*needs += p[i].n_needs;
	/* A clone has the same. */
	auto_model copy = model_clone(m);
	size_t again;
	model_pieces(copy, &again);
	return again == n ? n : UINT64_MAX;
}

/* What a piece needs, and what that needs; the order and repetitions do not matter. */
static uint64_t all_needs(const struct model_piece *p, size_t i)
{
	uint64_t set = 0;

	assert(i < 64);
	for (uint32_t j = 0; j < p[i].n_needs; j++)
		set |= (uint64_t)1 << p[i].needs[j] | all_needs(p, p[i].needs[j]);
	return set;
}

static bool same_pieces(const struct model *a, const struct model *b)
{
	size_t n_a, n_b;
	const struct model_piece *p_a = model_pieces(a, &n_a), *p_b = model_pieces(b, &n_b);
	bool same = n_a == n_b && image_equal(&a->durable, &b->durable);

	for (size_t i = 0; same && i < n_a; i++)
		same = p_a[i].event == p_b[i].event && p_a[i].addr == p_b[i].addr &&
		       p_a[i].len == p_b[i].len &&
		       (i >= 40 || all_needs(p_a, i) == all_needs(p_b, i)) &&
		       p_a[i].completed == p_b[i].completed;
	return same;
}

/* A clone that is made anywhere goes the same way. */
static void test_clones(void)
{
	enum { TRACES = 1000 };
	unsigned wrong = 0;
	struct rng r;

	rng_init(&r, 79);
	for (unsigned i = 0; i < TRACES; i++) {
		const struct setting *s = &settings[i % ARRAY_SIZE(settings)];
		struct model_opts opts = { .ctx = &s->opts };
		auto_model copy = NULL;
		auto_image zeros;
		struct trace t;

		random_trace(&t, &r);
		image_init(&zeros, REGION);
		auto_model m = model_new(s->ops, &opts, &zeros);
		uint64_t at = rng_below(&r, t.events.n);
		for (size_t k = 0; k < t.events.n; k++) {
			if (k == at)
				copy = model_clone(m);
			if (model_apply(m, k, &t.events.v[k], NULL) ||
			    (copy && model_apply(copy, k, &t.events.v[k], NULL)))
				abort();
		}
		wrong += !same_pieces(m, copy);
		trace_release(&t);
	}
	ok(!wrong, "%d clones go the way of their models", TRACES);
}

static void copy_in(struct trace *t, uint64_t addr, uint64_t len, uint64_t step, uint32_t flags,
		    uint32_t cpu)
{
	unsigned char data[4096];

	memset(data, 7, sizeof(data));
	for (uint64_t at = 0; at < len; at += step)
		trace_append(t, &(struct event){ .kind = EV_STORE,
						 .addr = addr + at,
						 .len = step,
						 .flags = flags,
						 .cpu = cpu,
						 .data = data });
}

static void test_large(void)
{
	const struct setting *split = &settings[0], *joined = &settings[2];
	enum { MB = 1 << 20 };
	uint64_t needs;
	struct trace t;

	trace_init(&t);
	t.info.size = 8 * MB;
	copy_in(&t, 0, MB, 8, 0, 0);
	is_u(count_pieces(&t, joined, &needs), 1, "1 MB in words is one piece");
	is_u(count_pieces(&t, split, &needs), MB / 8, "or as many as there are");
	is_u(needs, MB / 8 - MB / 64, "each with the one before it in its line");
	for (uint64_t at = 0; at < MB / 2; at += PM_LINE)
		trace_append(&t, &(struct event){ .kind = EV_LINEFLUSH, .addr = at });
	is_u(count_pieces(&t, joined, &needs), 2, "half of it flushed: two");
	trace_append(&t, &(struct event){ .kind = EV_FENCE });
	is_u(count_pieces(&t, joined, &needs), 1, "and fenced: one is left");
	is_u(count_pieces(&t, split, &needs), MB / 16, "or half of them");
	copy_in(&t, MB / 2, MB, 4096, EV_NONTEMPORAL, 1);
	is_u(count_pieces(&t, joined, &needs), 2, "another copy over it");
	is_u(needs, 1, "needs it once");
	trace_append(&t, &(struct event){ .kind = EV_FENCE, .cpu = 1 });
	is_u(count_pieces(&t, joined, &needs), 0, "its fence makes both durable");
	/* Two CPUs in turns. */
	for (uint64_t i = 0; i < 1000; i++) {
		copy_in(&t, i * 64, 64, 64, 0, 0);
		copy_in(&t, 4 * MB + i * 64, 64, 64, 0, 1);
	}
	is_u(count_pieces(&t, joined, &needs), 2, "two CPUs that copy in turns");
	trace_release(&t);
	trace_init(&t);
	t.info.size = MB + PM_LINE;
	for (uint64_t at = 0; at <= MB; at += PM_LINE) {
		/* Eight stores of a loop's body; in the end, one of another place. */
		for (uint64_t i = 0; i < PM_LINE && at + i <= MB; i += 8)
			trace_append(&t, &(struct event){ .kind = EV_STORE,
							  .addr = at + i,
							  .len = 8,
							  .pc = at < MB ? 0x100 + i : 0x180,
							  .data = (unsigned char *)"12345678" });
		trace_append(&t, &(struct event){ .kind = EV_LINEFLUSH, .addr = at, .pc = 0x140 });
	}
	is_u(count_pieces(&t, joined, &needs), 2,
	     "1 MB of which each line is flushed is one piece, and the flag behind it another");
	trace_release(&t);
}

/* A store of more than a word can be torn between words, a copy between lines. */
static void test_torn(void)
{
	static const struct model_pm_opts joined = { 0, 0 };
	auto_crash_state s = CRASH_STATE_INIT;
	auto_crash e = NULL;
	bool below = false, word_cut = false, line_cut = false, in_line = false;
	struct trace t;
	uint64_t point;

	trace_init(&t);
	t.info.size = REGION;
	t.info.sector_size = PM_ATOMIC;
	trace_append(&t,
		     &(struct event){ .kind = EV_STORE,
				      .addr = 4,
				      .len = 24,
				      .data = (const unsigned char *)"abcdefghijklmnopqrstuvwx" });
	copy_in(&t, 64, 80, 8, 0, 0);
	point = t.events.n;
	struct crash_opts opts = { .model = &model_pm,
				   .model_ctx = &joined,
				   .points = &point,
				   .n_points = 1,
				   .layers = CRASH_LAYERS_DEFAULT | CRASH_WITH_TORN,
				   .tear_unit = 1,
				   .max_subset = 2 };
	if (crash_new(&t, &opts, &e, NULL))
		abort();
	while (crash_next(e, &s)) {
		unsigned char b[REGION];

		image_read(&s.image, 0, b, REGION);
		below |= !b[4] != !b[7] || !b[8] != !b[15] || !b[16] != !b[23];
		word_cut |= !b[4] != !b[8];
		in_line |= !b[64] != !b[127] || !b[128] != !b[143];
		line_cut |= !b[64] != !b[128];
	}
	ok(word_cut && !below, "a store is torn between words, not within them");
	ok(line_cut && !in_line, "a copy between lines, as within them there is an order");
	trace_release(&t);
}

static void test_refused(void)
{
	struct err err = ERR_INIT;
	struct trace t;
	uint64_t point = 1;
	struct crash *e = NULL;
	struct crash_opts opts = { .model = &model_pm, .points = &point, .n_points = 1 };

	trace_init(&t);
	t.info.size = 0;
	trace_append(&t, &(struct event){ .kind = EV_STORE,
					  .addr = 8,
					  .len = 1,
					  .data = (const unsigned char *)"x" });
	is_i(crash_new(&t, &opts, &e, &err), -22, "a store outside the region is refused");
	is_s(err.msg, "event 0, a store of 1 bytes at 8, is outside the region of 0 bytes",
	     "and said");
	trace_release(&t);
	err = (struct err)ERR_INIT;
	is_i(model_pm_opts_check(&(struct model_pm_opts){ 16, 0 }, &err), -22,
	     "a granularity of 16");
	is_s(err.msg, "a granularity of 16 bytes is neither 64 nor 8", "is none");
	ok(!model_pm_opts_check(&(struct model_pm_opts){ 8, 0 }, &err) &&
		   !model_pm_opts_check(&(struct model_pm_opts){ 0 }, &err),
	   "8 is, and so is the usual one");
	ok(model_find("pm") == &model_pm && model_find("pm-eadr") == &model_pm_eadr,
	   "both models have names");
}

static void test_map(void)
{
	enum { KEYS = 5000 };
	struct u64map m = U64MAP_INIT;
	unsigned wrong = 0;

	for (unsigned round = 0; round < 3; round++) {
		uint64_t n = round == 1 ? 3 : KEYS;

		for (uint32_t i = 0; i < n; i++)
			u64map_add(&m, (uint64_t)i << 40, i);
		for (uint32_t i = 0; i < KEYS; i++)
			wrong += u64map_get(&m, (uint64_t)i << 40) != (i < n ? i : U64MAP_NONE);
		wrong += m.n != n;
		u64map_clear(&m);
		wrong += u64map_get(&m, 0) != U64MAP_NONE;
	}
	ok(!wrong, "a map of numbers");
	u64map_release(&m);
}

int main(void)
{
	test_map();
	test_named();
	test_named_points();
	test_against_naive();
	test_joined_within_split();
	test_strings();
	test_joins();
	test_points();
	test_clones();
	test_mutants();
	test_large();
	test_torn();
	test_refused();
	return done_testing();
}
