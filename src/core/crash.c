/* SPDX-License-Identifier: MIT */
/*
 * crash.c - the crash-state enumerator: takes the steps of the plan at all crash points, then draws
 * samples from the sets that these left out, and counts.
 *
 * Invariants I1 (crash_plan.c), I2 and I3 (crash_view.c) and I4 (crash_id.c) are stated in the
 * files that keep them. Here:
 *
 * I5: if samples are asked for, `sets` holds the sets that the current step has tried, so that
 *     `sets` and `step` tell which sets must not be drawn again; sets that this step skipped up to
 *     the current point (crash_plan.c) are recognised without `sets`.
 * I6: whether a piece varies at a point is asked once, before the first step beyond the early ones
 *     (none, all, completed) is taken there, and then never changes: the choices depend on it.
 *
 * Going from one crash point to another replays the trace forward from the nearest of at most
 * CLONES_MAX clones of the model, which share the pages of their images.
 */
#include "core/crash.h"

#include <errno.h>
#include <float.h>
#include <math.h>

#include "core/choice.h"
#include "core/crash_id.h"
#include "core/crash_plan.h"
#include "core/crash_race.h"
#include "core/crash_view.h"
#include "core/hashset.h"

enum {
	CLONES_MAX = 64,
	TEAR_UNIT_DEFAULT = 512,
	SAMPLE_ROUND_MAX = 1 << 16, /* points drawn at a time */
	CHECK_EVERY = 64,	    /* the id of one in so many states is read back */
};

struct crash_clone {
	uint64_t point;
	struct model *model;
};

/* The facts about a crash point. */
struct crash_at {
	uint64_t marks;	      /* EV_OP_... and EV_PERSIST before it */
	uint64_t flight;      /* pieces in flight */
	uint64_t units;	      /* tear units of the pieces that vary */
	uint64_t few;	      /* their torn sets, with few_tears */
	uint32_t loose, vary; /* pieces that can be lost; pieces that vary */
	uint32_t old;	      /* see crash_plan.c */
	bool grown;	      /* compared with the point before, there are only more loose pieces */
	bool asked;	      /* vary, old and units are final */
	unsigned char tried;  /* early steps, a bit each */
	unsigned char extra;  /* early steps that no choice of the varying pieces can make */
	size_t frozen;	      /* where in `frozen` it says what varies; SIZE_MAX: all */
};

struct crash {
	const struct trace *trace;
	struct crash_opts opts;
	struct model_opts model_opts;
	struct crash_plan plan;
	struct vec_of(struct crash_at) points;
	struct vec_of(uint64_t) frozen;		/* bits of loose pieces that vary */
	struct vec_of(struct crash_clone) kept; /* clones to go back to, ascending */
	struct model *walker;			/* the model that moves along the trace */
	uint64_t walker_at;
	size_t at; /* index of the point `view` shows; SIZE_MAX: none */
	struct crash_view view;

	struct choice choice;
	size_t step;	/* the current step of the plan, or that in which the budget ended it */
	size_t step_at; /* the current point in it; SIZE_MAX: none yet */
	bool sampling;
	struct rng draw;		 /* draws the points to sample */
	struct vec_of(uint64_t) to_draw; /* the points of this round, descending */
	struct hashset seen;		 /* images, mixed with their marks */
	struct hashset sets;		 /* sets tried in this step; only kept for sampling */
	struct crash_stats stats;
	bool counted; /* `possible` and `pruned` in `stats` are up to date */
};

/* States. */

void crash_state_release(struct crash_state *s)
{
	strbuf_release(&s->id);
	image_release(&s->image);
	vec_release(&s->survived);
	vec_release(&s->lost);
	vec_release(&s->torn);
	vec_release(&s->gone);
	*s = (struct crash_state)CRASH_STATE_INIT;
}

static void state_build(struct crash_state *s, struct crash_view *v)
{
	crash_view_apply(v, &s->image);
	s->hash = image_hash(&s->image);
}

static void state_describe(struct crash_state *s, const struct crash_view *v, uint64_t point,
			   struct crash_step step)
{
	s->point = point;
	s->layer = step.layer;
	s->k = step.k;
	crash_id_make(v, point, &s->id);
	crash_view_list(v, s);
}

/* Moving along the trace. */

static int walk(struct model *m, const struct trace *t, uint64_t from, uint64_t to, struct err *err)
{
	for (uint64_t i = from; i < to; i++) {
		int rc = model_apply(m, i, &t->events.v[i], err);

		if (rc)
			return rc;
	}
	return 0;
}

static struct model *start_model(const struct trace *t, const struct crash_opts *opts,
				 const struct model_opts *model_opts)
{
	const struct model_ops *ops = opts->model ? opts->model : &model_block;
	auto_image zeros;

	image_init(&zeros, opts->base ? 0 : t->info.size);
	return model_new(ops, model_opts, opts->base ? opts->base : &zeros);
}

/* The last clone at or before a point. There is one at 0. */
static const struct crash_clone *nearest_clone(const struct crash *e, uint64_t point)
{
	return &e->kept.v[first_where(i, e->kept.n, e->kept.v[i].point > point) - 1];
}

static void enter(struct crash *e, size_t index)
{
	uint64_t point = e->opts.points[index];
	const struct crash_clone *near = nearest_clone(e, point);
	const struct model *m = near->model;

	if (e->at == index)
		return;
	if (near->point != point) {
		if (e->walker_at > point || e->walker_at < near->point) {
			model_free(e->walker);
			e->walker = model_clone(near->model);
			e->walker_at = near->point;
		}
		/* crash_new() has walked here before, so this cannot fail. */
		int rc = walk(e->walker, e->trace, e->walker_at, point, NULL);
		assert(!rc);
		e->walker_at = point;
		m = e->walker;
	}
	const struct crash_at *at = &e->points.v[index];
	crash_view_load(&e->view, m, at->grown && e->at == index - 1);
	if (at->frozen != SIZE_MAX)
		crash_view_narrow(&e->view, e->frozen.v + at->frozen);
	e->view.old = at->asked ? at->old : 0;
	e->at = index;
	/* The view has the pieces that were counted: I6. */
	assert(e->view.loose.n == at->loose && e->view.flight.n == at->flight);
	assert(!at->asked || e->view.vary.n == at->vary);
}

/* Setting up. */

static void add_saturating(double *sum, double x)
{
	*sum = fmin(*sum + x, DBL_MAX);
}

/* The number of subsets of n things, as exact as a double is. */
static double subsets(uint64_t n)
{
	return n < DBL_MAX_EXP ? ldexp(1, (int)n) : DBL_MAX;
}

/* A piece as it was at the point before. */
struct seen_piece {
	uint64_t event, addr, len;
	bool loose;
};

struct survey {
	struct vec_of(struct seen_piece) pieces;
	struct hash128 durable;
	size_t loose_max;
};

/* True if the view has all pieces of the one before, and only loose ones more. Remembers it. */
static bool has_grown(struct survey *s, const struct crash_view *v)
{
	struct hash128 durable = image_hash(&v->model->durable);
	bool grown = hash_eq(durable, s->durable) && v->n >= s->pieces.n;
	size_t before = s->pieces.n;

	s->durable = durable;
	s->pieces.n = min(before, v->n);
	for (size_t i = 0; i < v->n; i++) {
		const struct model_piece *p = &v->pieces[i];
		struct seen_piece now = { p->event, p->addr, p->len, v->base.v[i] == FATE_LOST };

		if (i >= s->pieces.n) {
			grown &= now.loose;
			vec_push(&s->pieces, now);
			continue;
		}
		struct seen_piece *old = &s->pieces.v[i];
		grown &= old->event == now.event && old->addr == now.addr && old->len == now.len &&
			 old->loose == now.loose;
		*old = now;
	}
	return grown;
}

/* True if the sets that were tried at the point before need not be tried again at this one. */
static bool follows(const struct crash *e, size_t index)
{
	const struct crash_at *at = &e->points.v[index];

	return index > 0 && at->grown && !e->view.has_needs &&
	       (e->opts.layers & CRASH_WITH_WHOLE) == CRASH_WITH_WHOLE &&
	       (e->opts.ignore_marks || at->marks == e->points.v[index - 1].marks);
}

static void survey_point(struct crash *e, size_t index, struct survey *s)
{
	uint64_t point = e->opts.points[index], at = index ? e->opts.points[index - 1] : 0;
	struct crash_at p = { .marks = index ? e->points.v[index - 1].marks : 0,
			      .frozen = SIZE_MAX,
			      .asked = !e->opts.vary };

	for (; at < point; at++)
		p.marks += event_marks(e->trace->events.v[at].kind);
	crash_view_load(&e->view, e->walker, false);
	p.grown = has_grown(s, &e->view) && index > 0;
	p.flight = e->view.flight.n;
	p.loose = p.vary = (uint32_t)e->view.loose.n;
	p.units = crash_view_all_units(&e->view);
	p.few = crash_few_tears(e->opts.layers, &e->view);
	vec_push(&e->points, p);
	if (p.asked && follows(e, index))
		e->points.v[index].old = e->points.v[index - 1].loose;
	s->loose_max = max(s->loose_max, e->view.loose.n);
}

/* Goes through all points once: checks the trace, counts, and keeps clones of the model. */
static int survey(struct crash *e, struct survey *s, struct err *err)
{
	const struct crash_opts *o = &e->opts;
	size_t stride = o->n_points / CLONES_MAX + 1;

	for (size_t i = 0; i < o->n_points; i++) {
		uint64_t point = o->points[i];

		if (o->stop && *o->stop)
			return err_set(err, -EINTR, "stopped while crash points were looked at");
		assert(point <= e->trace->events.n && (i == 0 || o->points[i - 1] < point));
		int rc = walk(e->walker, e->trace, e->walker_at, point, err);
		if (rc)
			return rc;
		e->walker_at = point;
		survey_point(e, i, s);
		if (i % stride == stride - 1 && point > 0)
			vec_push(&e->kept, (struct crash_clone){ point, model_clone(e->walker) });
	}
	if (o->n_points)
		e->stats.racing = crash_count_racing(e->trace, o->points[o->n_points - 1]);
	return 0;
}

/* Counts the possible sets. */
static void count_possible(struct crash *e)
{
	struct crash_stats *s = &e->stats;

	if (e->counted)
		return;
	e->counted = true;
	s->possible = s->possible_torn = s->pruned = 0;
	vec_each(at, &e->points) {
		double whole = subsets(at->vary);

		add_saturating(&s->possible, whole + at->extra);
		add_saturating(&s->pruned, subsets(at->flight) - whole - at->extra);
		if (e->opts.layers & CRASH_WITH_TORN)
			add_saturating(&s->possible_torn, e->opts.few_tears
								  ? (double)at->few
								  : subsets(at->units) - whole);
	}
}

int crash_new(const struct trace *t, const struct crash_opts *opts, struct crash **out,
	      struct err *err)
{
	struct survey s = { 0 };

	if (!opts->base && t->info.size > IMAGE_SIZE_MAX)
		return err_set(err, -EFBIG, "a device of %llu bytes is larger than an image can be",
			       llu(t->info.size));
	auto_crash e = xmalloc(sizeof(*e));
	*e = (struct crash){ .trace = t, .opts = *opts, .at = SIZE_MAX, .step_at = SIZE_MAX };
	e->model_opts.ctx = opts->model_ctx;
	if (opts->layers & CRASH_WITH_TORN)
		e->model_opts.tear_unit = opts->tear_unit	? opts->tear_unit
					  : t->info.sector_size ? t->info.sector_size
								: TEAR_UNIT_DEFAULT;
	if (!e->opts.tries && opts->budget)
		e->opts.tries = opts->budget < UINT64_MAX / 128 ? 64 * opts->budget + 65536 : 0;
	e->stats.points = opts->n_points;
	e->walker = start_model(t, opts, &e->model_opts);
	vec_push(&e->kept, (struct crash_clone){ 0, model_clone(e->walker) });
	int rc = survey(e, &s, err);
	vec_release(&s.pieces);
	if (rc)
		return rc;
	crash_plan_init(&e->plan, opts, s.loose_max);
	count_possible(e);
	choice_init_all(&e->choice);
	*out = steal(e);
	return 0;
}

void crash_free(struct crash *e)
{
	if (!e)
		return;
	vec_release_each(p, &e->kept, model_free(p->model));
	crash_plan_release(&e->plan);
	vec_release(&e->points);
	vec_release(&e->frozen);
	vec_release(&e->to_draw);
	model_free(e->walker);
	crash_view_release(&e->view);
	choice_release(&e->choice);
	hashset_release(&e->seen);
	hashset_release(&e->sets);
	free(e);
}

/* Finds the pieces that vary. */

/* Asks about each loose piece. True if all of them vary. */
static bool ask(struct crash *e, uint64_t *bits)
{
	const struct crash_view *v = &e->view;
	struct hash128 all = image_hash(crash_view_image_all(&e->view));
	bool every = true;

	for (size_t i = 0; i < v->loose.n; i++) {
		bool varies = e->opts.vary(e->opts.vary_ctx, e->opts.points[e->at], all,
					   &v->pieces[v->loose.v[i]]);

		bits[i / 64] |= (uint64_t)varies << i % 64;
		every &= varies;
	}
	return every;
}

/* The number of early steps that tried a set which no choice of the varying pieces can make: I6. */
static unsigned char count_extra(const struct crash *e)
{
	const struct crash_at *at = &e->points.v[e->at];
	const struct crash_view *v = &e->view;
	unsigned char extra = 0;

	for (size_t step = 0; step < e->plan.first_subset; step++) {
		enum crash_layer layer = e->plan.steps.v[step].layer;
		bool outside = false;

		for (size_t i = 0; layer != CRASH_ALL && i < v->loose.n; i++)
			outside |= v->base.v[v->loose.v[i]] == FATE_WHOLE &&
				   (layer == CRASH_NONE || !v->pieces[v->loose.v[i]].completed);
		extra += outside && (at->tried >> step & 1);
	}
	return extra;
}

/* True if exactly the pieces that varied at the point before, and all new ones, vary here.
 */
static bool varies_alike(const struct crash *e, size_t index)
{
	const struct crash_at *at = &e->points.v[index], *last = at - 1;
	const uint64_t *now = at->frozen == SIZE_MAX ? NULL : e->frozen.v + at->frozen;
	const uint64_t *then = last->frozen == SIZE_MAX ? NULL : e->frozen.v + last->frozen;

	for (uint32_t i = 0; i < at->loose; i++) {
		bool a = !now || (now[i / 64] >> i % 64 & 1);
		bool b = i >= last->loose || !then || (then[i / 64] >> i % 64 & 1);

		if (a != b)
			return false;
	}
	return true;
}

/* Finds out, once, which pieces vary at a point; loads the view if that was not known. */
static void freeze(struct crash *e, size_t index)
{
	struct crash_at *at = &e->points.v[index];
	size_t first = e->frozen.n;

	if (at->asked)
		return;
	enter(e, index);
	vec_reserve(&e->frozen, 1); /* so that v is not NULL if nothing is loose */
	for (size_t i = 0; i < e->view.loose.n; i += 64)
		vec_push(&e->frozen, 0);
	if (ask(e, e->frozen.v + first)) {
		e->frozen.n = first;
	} else {
		at->frozen = first;
		crash_view_narrow(&e->view, e->frozen.v + first);
	}
	assert(e->at == index && !at->asked); /* I6 */
	at->asked = true;
	at->vary = (uint32_t)e->view.vary.n;
	at->units = crash_view_all_units(&e->view);
	at->few = crash_few_tears(e->opts.layers, &e->view);
	at->extra = count_extra(e);
	if (follows(e, index) && e->points.v[index - 1].asked && varies_alike(e, index))
		at->old = e->points.v[index - 1].vary;
	e->view.old = at->old;
	e->counted = false;
}

/* Enumeration. */

/* Makes the chosen state. True if it was not given out before. */
static bool try_state(struct crash *e, struct crash_state *s, struct crash_step step)
{
	assert(step.layer <= CRASH_COMPLETED || e->points.v[e->at].asked); /* I6 */
	/* If the step says what is lost, pieces that need a torn or lost one are lost, too. */
	if (step.layer == CRASH_ALL_BUT || step.layer == CRASH_TEAR_ALL)
		crash_view_close_dropping(&e->view);
	else
		crash_view_close_adding(&e->view);
	state_build(s, &e->view);
	struct hash128 key = s->hash;
	if (!e->opts.ignore_marks) {
		uint64_t both[3] = { s->hash.lo, s->hash.hi, e->points.v[e->at].marks };
		key = hash_bytes(both, sizeof(both));
	}
	e->stats.tried++;
	if (!hashset_insert(&e->seen, key)) {
		e->stats.duplicates++;
		return false;
	}
	e->stats.unique++;
	state_describe(s, &e->view, e->opts.points[e->at], step);
	if (e->stats.unique % CHECK_EVERY == 1)
		crash_id_check(&e->view, e->trace->events.n, &s->id);
	return true;
}

static bool budget_used_up(const struct crash *e)
{
	return (e->opts.budget && e->stats.unique >= e->opts.budget) ||
	       (e->opts.tries && e->stats.tried - e->stats.skipped >= e->opts.tries);
}

static uint64_t sum_saturating(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Begins a step at a point: finds varying pieces, and counts sets that need not be tried. */
static void begin(struct crash *e, size_t step, size_t index)
{
	const struct crash_at *at = &e->points.v[index];

	if (step != e->step)
		hashset_clear(&e->sets);
	e->step = step;
	e->step_at = index;
	if (step < e->plan.first_subset)
		return;
	freeze(e, index);
	if (!at->old)
		return;
	enter(e, index);
	uint64_t skips = crash_step_skips(&e->plan, step, &e->view);
	e->stats.skipped = sum_saturating(e->stats.skipped, skips);
	e->stats.duplicates = sum_saturating(e->stats.duplicates, skips);
	e->stats.tried = sum_saturating(e->stats.tried, skips);
}

/* Gives the next state of the plan; false at its end. */
static bool next_in_plan(struct crash *e, struct crash_state *s)
{
	struct choice *c = &e->choice;

	while (choice_next(c)) {
		size_t step = choice_below(c, e->plan.steps.n);
		uint64_t index = choice_below(c, e->opts.n_points);

		if (choice_dead(c))
			continue;
		if (step != e->step || index != e->step_at)
			begin(e, step, index);
		struct crash_at *at = &e->points.v[index];
		if (!crash_step_has_members(e->plan.steps.v[step], at->vary, at->old))
			continue;
		enter(e, index);
		crash_step_choose(e->plan.steps.v[step], &e->view, c);
		if (choice_dead(c) || crash_plan_find(&e->plan, &e->view) != step)
			continue;
		if (budget_used_up(e)) {
			e->stats.budget_hit = true;
			return false;
		}
		if (step < e->plan.first_subset)
			at->tried |= (unsigned char)(1 << step);
		if (e->opts.sample) {
			bool fresh = hashset_insert(&e->sets, crash_view_hash(&e->view, index));
			assert(fresh); /* I1, I5 */
		}
		if (try_state(e, s, e->plan.steps.v[step]))
			return true;
	}
	e->step = e->plan.steps.n;
	hashset_clear(&e->sets);
	return false;
}

/* Sampling. */

static void start_sampling(struct crash *e)
{
	/* If few sets are left, most draws hit a tried one, so the number of draws is bounded. */
	uint64_t draws = e->opts.sample < UINT64_MAX / 64 ? 32 * e->opts.sample + 1024 : UINT64_MAX;

	e->sampling = true;
	choice_release(&e->choice);
	choice_init_random(&e->choice, e->opts.seed, e->opts.n_points ? draws : 0);
	rng_split(&e->choice.rng, 1, &e->draw);
}

DEFINE_ORDER(descending, uint64_t, order(*b, *a))

/* Draws the points of a round, sorted: going from one point to another is expensive. */
static void draw_points(struct crash *e)
{
	uint64_t n = min(e->opts.sample - e->stats.sampled, (uint64_t)SAMPLE_ROUND_MAX);

	while (n-- > 0)
		vec_push(&e->to_draw, rng_below(&e->draw, e->opts.n_points));
	vec_sort(&e->to_draw, descending);
}

/* Makes the random choice: a point, whole pieces or units, and a set of them. */
static void choose_sample(struct crash *e, struct choice *c)
{
	bool torn = e->opts.layers & CRASH_WITH_TORN && !e->opts.few_tears;

	if (!e->to_draw.n)
		draw_points(e);
	size_t index = e->to_draw.v[--e->to_draw.n];
	freeze(e, index);
	enter(e, index);
	if (torn && choice_below(c, 2)) {
		crash_view_choose_all_units(&e->view, c);
		return;
	}
	crash_view_choose_set(&e->view, c, e->view.vary.v, e->view.vary.n);
}

/* True if the chosen set was tried, or skipped as a known one. Remembers the set. */
static bool is_drawn_again(struct crash *e)
{
	/* Steps before e->step are done; a set that is in no step counts as one after them. */
	size_t step = crash_plan_find(&e->plan, &e->view);

	if (step < e->step)
		return true;
	if (step == e->step && step < e->plan.steps.n && e->at <= e->step_at &&
	    crash_step_skipped(e->plan.steps.v[step], &e->view))
		return true;
	return !hashset_insert(&e->sets, crash_view_hash(&e->view, e->at));
}

static double left_out(const struct crash_stats *s)
{
	return fmin(s->possible + s->possible_torn, DBL_MAX) - (double)s->tried;
}

static bool next_sample(struct crash *e, struct crash_state *s)
{
	static const struct crash_step sample = { CRASH_SAMPLE, 0, false };

	while (e->stats.sampled < e->opts.sample) {
		count_possible(e);
		if (left_out(&e->stats) <= 0 || !choice_next(&e->choice))
			return false;
		choose_sample(e, &e->choice);
		if (choice_dead(&e->choice))
			continue;
		if (is_drawn_again(e))
			continue;
		if (try_state(e, s, sample)) {
			e->stats.sampled++;
			return true;
		}
	}
	return false;
}

bool crash_next(struct crash *e, struct crash_state *s)
{
	if (!e->sampling) {
		if (next_in_plan(e, s))
			return true;
		start_sampling(e);
	}
	return next_sample(e, s);
}

void crash_stats(struct crash *e, struct crash_stats *out)
{
	count_possible(e);
	/* The numbers add up (crash.h), unless the number of skipped sets is saturated. */
	assert(e->stats.tried == UINT64_MAX ||
	       e->stats.tried == e->stats.unique + e->stats.duplicates);
	*out = e->stats;
	out->left_out = left_out(out);
}

/* Replay. */

static int no_such_state(struct err *err, const char *id)
{
	return err_set(err, -EINVAL, "'%.80s' is not the id of a crash state of this trace", id);
}

/* From here on the id's remaining digits say what survives. */
static int replay_at(const struct trace *t, const struct crash_opts *opts, struct choice *c,
		     const struct crash_id_head *head, struct crash_state *s, struct err *err)
{
	struct model_opts model_opts = { .tear_unit = head->tear_unit, .ctx = opts->model_ctx };
	auto_call(crash_view_release) struct crash_view v = { 0 };
	auto_model m = start_model(t, opts, &model_opts);
	int rc = walk(m, t, 0, head->point, err);

	if (rc)
		return rc;
	crash_view_load(&v, m, false);
	crash_id_choose(head, &v, c);
	if (choice_failed(c))
		return -EINVAL;
	crash_view_close_adding(&v);
	state_build(s, &v);
	state_describe(s, &v, head->point, (struct crash_step){ CRASH_REPLAY, 0, false });
	return 0;
}

int crash_replay(const struct trace *t, const struct crash_opts *opts, const char *id,
		 struct crash_state *s, struct err *err)
{
	auto_choice c = { 0 };
	auto_crash_state made = CRASH_STATE_INIT;

	if (!opts->base && t->info.size > IMAGE_SIZE_MAX)
		return no_such_state(err, id);
	if (choice_init_replay(&c, id, NULL) || !choice_next(&c))
		return no_such_state(err, id);
	struct crash_id_head head = crash_id_begin(&c, t->events.n);
	if (choice_dead(&c))
		return no_such_state(err, id);
	int rc = replay_at(t, opts, &c, &head, &made, err);
	if (rc)
		return no_such_state(err, id);
	crash_state_release(s);
	*s = made;
	made = (struct crash_state)CRASH_STATE_INIT;
	return 0;
}
