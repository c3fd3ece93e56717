/* SPDX-License-Identifier: MIT */
/*
 * states.c - enumerates sets of survivors at each point, and gives those with a new state.
 *
 * A waiting state is kept as its survivors, a bit for each change of its window and some words for
 * each torn one, because the trees of all of them would not fit into memory. The state is built
 * again when its turn comes.
 */
#include "app/states.h"

#include <errno.h>

#include "app/cover.h"
#include "app/outline.h"
#include "core/hashset.h"

enum {
	TRIES_MORE = 16384,
	TRIES_TIMES = 8,
	NEAR_SUBSET = 2, /* sizes of subsets that are tried even after the budget is used up */
	ASK_EVERY = 64,	 /* sets between two calls of `stop` */
};

struct waiting_state {
	uint64_t point;
	struct hash128 pattern;
	enum crash_layer layer;
	size_t id, words; /* indexes in the two buffers below */
};

struct states {
	struct history *h;
	struct states_opts opts;
	struct crash_points points;
	struct vec_of(uint32_t) acked; /* by point, for all events */
	struct vec_of(uint32_t) last;  /* by point: 1 + the newest change; 0: none */
	struct image base;
	struct crash *crash;
	struct crash_state at;
	bool ended;   /* the enumerator has ended */
	bool full;    /* ended because more states could not be checked */
	bool stopped; /* ended by `stop` */
	uint64_t looked;
	struct outline *outline;
	struct roles roles;
	struct vec_of(uint32_t) marked; /* by role and fate: the last round with them */
	uint32_t round;
	struct hashset trees, patterns;
	struct survivors survivors;
	struct vec_of(struct waiting_state) waiting;
	size_t next_waiting;
	struct strbuf ids;
	struct vec_of(uint64_t) words;
	uint64_t given;
	struct cover cover;
	size_t next_cover;
};

void app_state_release(struct app_state *s)
{
	free(s->id);
	reffs_state_unref(s->tree);
	survivors_release(&s->survivors);
	*s = (struct app_state){ 0 };
}

/* ---- crash points ---- */

static bool is_point(const struct event *ev)
{
	struct posix_event e;

	if (ev->kind == EV_PERSIST)
		return true;
	if (ev->kind != EV_POSIX || ev->result < 0 || posix_decode(ev, &e, NULL))
		return false;
	return posix_op_changes(e.op) || posix_op_persists(e.op);
}

void states_points(const struct trace *t, uint64_t first, struct crash_points *out)
{
	if (t->events.n)
		vec_push(out, first);
	for (size_t i = first; i < t->events.n; i++)
		if (is_point(&t->events.v[i]))
			vec_push(out, i + 1);
}

uint64_t states_first(const struct trace *t)
{
	size_t i = 0;

	while (i < t->events.n && (t->events.v[i].kind == EV_PERSIST || !is_point(&t->events.v[i])))
		i++;
	return i;
}

uint64_t states_acked(const struct trace *t, uint64_t point)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < point && i < t->events.n; i++)
		n += t->events.v[i].kind == EV_PERSIST;
	return n;
}

/* ---- patterns ---- */

enum fate { FATE_LOST, FATE_TORN, FATE_AHEAD, FATE_COUNT };

static struct hash128 mark(struct states *s, uint32_t change, enum fate fate, struct hash128 sum)
{
	uint32_t what = s->roles.of[change] * FATE_COUNT + fate;

	if (s->marked.v[what] == s->round)
		return sum;
	s->marked.v[what] = s->round;
	return hash_add(sum, hash_bytes(&what, sizeof(what)));
}

static struct hash128 pattern_of(struct states *s, uint64_t point, const struct survivors *v)
{
	uint32_t from, to, newest = s->last.v[point];
	uint64_t at = newest ? s->roles.of[newest - 1] : UINT64_MAX;
	struct hash128 sum = hash_bytes_seeded(&at, sizeof(at), 1);
	bool lost = false;
	size_t k = 0;

	s->round++;
	history_window(s->h, point, &from, &to);
	for (uint32_t i = from; i < to; i++) {
		if (change_is_durable(&s->h->changes.v[i], point))
			continue;
		if (k < v->v.n && v->v.v[k].change == i) {
			bool torn = v->v.v[k++].units;

			if (torn)
				sum = mark(s, i, FATE_TORN, sum);
			if (lost)
				sum = mark(s, i, FATE_AHEAD, sum);
			lost |= torn;
		} else {
			sum = mark(s, i, FATE_LOST, sum);
			lost = true;
		}
	}
	return sum;
}

/* ---- waiting states ---- */

static void put_away(struct states *s, struct hash128 pattern)
{
	const struct survivors *v = &s->survivors;
	uint32_t from, to;

	history_window(s->h, s->at.point, &from, &to);
	vec_push(&s->waiting, (struct waiting_state){ s->at.point, pattern, s->at.layer, s->ids.len,
						      s->words.n });
	strbuf_add(&s->ids, strbuf_str(&s->at.id), s->at.id.len + 1);
	size_t bits = s->words.n, n = (to - from + 63) / 64;
	for (size_t i = 0; i < n; i++)
		vec_push(&s->words, 0);
	vec_each(x, &v->v) {
		uint32_t place = x->change - from;

		if (!x->units) {
			s->words.v[bits + place / 64] |= (uint64_t)1 << place % 64;
			continue;
		}
		vec_push(&s->words, (uint64_t)place + 1); /* torn; 0 ends the list */
		for (uint32_t j = 0; j < change_words(&s->h->changes.v[x->change]); j++)
			vec_push(&s->words, x->units[j]);
	}
	vec_push(&s->words, 0);
}

DEFINE_ORDER(by_change, struct survivor, order(a->change, b->change))

static void take_back(const struct states *s, const struct waiting_state *w, struct survivors *out)
{
	const uint64_t *p = s->words.v + w->words;
	uint32_t from, to;

	history_window(s->h, w->point, &from, &to);
	vec_clear(&out->v);
	for (uint32_t i = 0; i < to - from; i++)
		if (p[i / 64] >> i % 64 & 1)
			vec_push(&out->v, (struct survivor){ from + i, NULL });
	for (p += (to - from + 63) / 64; *p;) {
		uint32_t change = from + (uint32_t)*p - 1;

		vec_push(&out->v, (struct survivor){ change, p + 1 });
		p += 1 + change_words(&s->h->changes.v[change]);
	}
	vec_sort(&out->v, by_change);
}

/* ---- the enumeration ---- */

/* A state, built only if needed: usually the hash is enough. */
struct seen_state {
	struct hash128 hash;
	struct reffs_state *tree; /* NULL: not built */
};

static struct seen_state see(struct states *s, uint64_t point, const struct survivors *v)
{
	struct seen_state seen = { 0 };

	if (!outline_hash(s->outline, point, v->v.v, v->v.n, &seen.hash)) {
		seen.tree = history_build(s->h, point, v->v.v, v->v.n);
		seen.hash = reffs_state_hash(seen.tree);
	}
	return seen;
}

static bool is_new(struct states *s, uint64_t point, struct hash128 tree)
{
	uint64_t acked = s->acked.v[point];

	return hashset_insert(&s->trees,
			      hash_add(tree, hash_bytes_seeded(&acked, sizeof(acked), 2)));
}

/* Gives out the state of survivors `v`. */
static void give(struct states *s, struct app_state *out, struct seen_state seen,
		 const struct survivors *v, const struct waiting_state *w, const char *id,
		 bool representative)
{
	struct survivors kept = out->survivors;

	if (!seen.tree && !s->opts.no_trees)
		seen.tree = history_build(s->h, w->point, v->v.v, v->v.n);

	free(out->id);
	reffs_state_unref(out->tree);
	*out = (struct app_state){ .number = s->given++,
				   .point = w->point,
				   .acked = s->acked.v[w->point],
				   .id = xstrdup(id),
				   .layer = w->layer,
				   .tree = seen.tree,
				   .hash = seen.hash,
				   .pattern = w->pattern,
				   .representative = representative,
				   .survivors = kept };
	survivors_copy(s->h, v->v.v, v->v.n, &out->survivors);
}

/* True if the current set is tried only while the budget has room. */
static bool is_far(const struct states *s)
{
	switch (s->at.layer) {
	case CRASH_EXACTLY:
	case CRASH_ALL_BUT:
		return s->at.k > NEAR_SUBSET;
	case CRASH_UNITS:
	case CRASH_SAMPLE:
		return true;
	default:
		return false;
	}
}

/* Finds the next set. */
static bool next_set(struct states *s)
{
	if (s->ended)
		return false;
	s->stopped = s->opts.stop && s->looked++ % ASK_EVERY == 0 && s->opts.stop(s->opts.stop_ctx);
	if (s->stopped || !crash_next(s->crash, &s->at))
		return false;
	s->full = s->opts.budget && s->trees.n >= s->opts.budget && is_far(s);
	return !s->full;
}

/* Gives the next state of a new pattern; other new states have to wait. */
static bool next_new(struct states *s, struct app_state *out)
{
	while (next_set(s)) {
		survivors_of(s->h, &s->at, &s->survivors);
		struct seen_state seen = see(s, s->at.point, &s->survivors);

		if (is_new(s, s->at.point, seen.hash)) {
			struct waiting_state w = {
				.point = s->at.point,
				.pattern = pattern_of(s, s->at.point, &s->survivors),
				.layer = s->at.layer,
			};

			if (hashset_insert(&s->patterns, w.pattern)) {
				give(s, out, seen, &s->survivors, &w, strbuf_str(&s->at.id), true);
				return true;
			}
			put_away(s, w.pattern);
		}
		reffs_state_unref(seen.tree);
	}
	s->ended = true;
	return false;
}

/* Gives the next state that covers a pattern of operations. */
static bool next_covering(struct states *s, struct app_state *out)
{
	if (s->next_cover == s->cover.v.n)
		return false;
	const struct cover_state *c = &s->cover.v.v[s->next_cover++];
	struct seen_state seen = see(s, c->point, &c->survivors);
	struct waiting_state w = { .point = c->point,
				   .pattern = pattern_of(s, c->point, &c->survivors),
				   .layer = CRASH_REPLAY };

	(void)is_new(s, c->point, seen.hash); /* always true here */
	bool first = hashset_insert(&s->patterns, w.pattern);
	give(s, out, seen, &c->survivors, &w, c->id, first);
	out->covers = c->patterns;
	return true;
}

bool states_next(struct states *s, struct app_state *out)
{
	if (s->opts.budget && s->given >= s->opts.budget)
		return false;
	if (next_covering(s, out))
		return true;
	if (next_new(s, out))
		return true;
	if (s->stopped || s->next_waiting == s->waiting.n)
		return false;
	const struct waiting_state *w = &s->waiting.v[s->next_waiting++];
	take_back(s, w, &s->survivors);
	assert(hash_eq(pattern_of(s, w->point, &s->survivors), w->pattern)); /* E1 */
	give(s, out, see(s, w->point, &s->survivors), &s->survivors, w, s->ids.buf + w->id, false);
	return true;
}

void states_stats(struct states *s, struct states_stats *out)
{
	struct crash_stats c;

	crash_stats(s->crash, &c);
	*out = (struct states_stats){ .points = c.points,
				      .possible = c.possible + c.possible_torn,
				      .tried = c.tried + s->next_cover,
				      .operations = s->cover.patterns,
				      .unique = s->trees.n,
				      .given = s->given,
				      .patterns = s->patterns.n,
				      .waiting = s->waiting.n - s->next_waiting,
				      .left_out = c.left_out,
				      .maps = s->h->maps };
	out->waiting += s->cover.v.n - s->next_cover;
	out->budget_hit = out->waiting || c.budget_hit || s->full || s->stopped ||
			  (!s->ended && s->opts.budget);
}

/* ---- life ---- */

static void by_points(struct states *s)
{
	const struct trace *t = s->h->trace;
	uint32_t acked = 0, change = 0;

	for (uint64_t point = 0; point <= t->events.n; point++) {
		acked += point && t->events.v[point - 1].kind == EV_PERSIST;
		while (change < s->h->changes.n && s->h->changes.v[change].event < point)
			change++;
		vec_push(&s->acked, acked);
		vec_push(&s->last, change);
	}
}

/*
 * Starts the enumeration. All sets of units of the pieces in flight are tried if they are few.
 * Otherwise the first points would use up the budget: a sample is fairer.
 */
static int start(struct states *s, struct err *err)
{
	const struct states_opts *o = &s->opts;
	uint64_t tries = o->tries ? o->tries : o->budget ? TRIES_TIMES * o->budget + TRIES_MORE : 0;
	struct crash_opts c = { .model = &model_posix,
				.model_ctx = s->h,
				.base = &s->base,
				.points = s->points.v,
				.n_points = s->points.n,
				.layers = o->layers ? o->layers
						    : CRASH_WITH_WHOLE | CRASH_WITH_TORN,
				.max_subset = o->max_subset ? o->max_subset : UINT32_MAX,
				.near_subset = NEAR_SUBSET,
				.tear_unit = 1,
				.budget = tries,
				.tries = tries,
				.sample = o->sample,
				.seed = o->seed };
	struct crash_stats stats;

	if (!o->layers && o->max_subset) /* sets of units would exceed that bound */
		c.layers &= ~(unsigned)CRASH_WITH_UNITS;
	int rc = crash_new(s->h->trace, &c, &s->crash, err);
	if (rc || o->layers || o->max_subset || !tries)
		return rc;
	crash_stats(s->crash, &stats);
	if (stats.possible + stats.possible_torn <= (double)tries)
		return 0;
	crash_free(s->crash);
	s->crash = NULL;
	c.layers &= ~(unsigned)CRASH_WITH_UNITS;
	c.sample = o->sample ? o->sample : o->budget;
	return crash_new(s->h->trace, &c, &s->crash, err);
}

int states_new(struct history *h, const struct states_opts *opts, struct states **out,
	       struct err *err)
{
	struct states *s = xcalloc(1, sizeof(*s));

	s->h = h;
	s->opts = *opts;
	states_points(h->trace, h->first_point, &s->points);
	by_points(s);
	s->outline = outline_new(h);
	roles_init(&s->roles, h);
	for (size_t i = 0; i < s->roles.texts.n * FATE_COUNT; i++)
		vec_push(&s->marked, 0);
	image_init(&s->base, h->units);
	int rc = start(s, err);
	if (!rc && opts->cover)
		rc = cover_make(h, &s->roles, !opts->layers || (opts->layers & CRASH_WITH_TEARS),
				&s->cover, err);
	if (rc)
		states_free(s);
	else
		*out = s;
	return rc;
}

void states_free(struct states *s)
{
	if (!s)
		return;
	crash_free(s->crash);
	cover_release(&s->cover);
	crash_state_release(&s->at);
	crash_points_release(&s->points);
	image_release(&s->base);
	outline_free(s->outline);
	roles_release(&s->roles);
	hashset_release(&s->trees);
	hashset_release(&s->patterns);
	survivors_release(&s->survivors);
	strbuf_release(&s->ids);
	vec_release(&s->acked);
	vec_release(&s->last);
	vec_release(&s->marked);
	vec_release(&s->waiting);
	vec_release(&s->words);
	free(s);
}

int states_replay(struct history *h, const char *id, struct app_state *out, struct err *err)
{
	auto_image base = IMAGE_INIT;
	struct crash_opts only = { .model = &model_posix, .model_ctx = h, .base = &base };
	auto_crash_state at = CRASH_STATE_INIT;
	struct app_state found = { 0 };

	image_init(&base, h->units);
	int rc = crash_replay(h->trace, &only, id, &at, err);
	if (rc)
		return rc;
	survivors_of(h, &at, &found.survivors);
	found.point = at.point;
	found.acked = states_acked(h->trace, at.point);
	found.id = xstrdup(id);
	found.layer = CRASH_REPLAY;
	found.tree = history_build(h, at.point, found.survivors.v.v, found.survivors.v.n);
	found.hash = reffs_state_hash(found.tree);
	app_state_release(out);
	*out = found;
	return 0;
}
