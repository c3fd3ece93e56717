/* SPDX-License-Identifier: MIT */
/*
 * crash.c - the crash-state enumerator: takes the steps of the plan at all crash points, then draws
 * samples from what they left out, and counts.
 *
 * Invariants I1 (crash_plan.c), I2 and I3 (crash_view.c) and I4 (crash_id.c) stand where they are
 * kept. Here:
 *
 * I5: if samples are asked for, `sets` holds what was tried of the step at hand, so that with
 *     `step` it says what must not be drawn again.
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
#include "core/crash_view.h"
#include "core/hashset.h"

enum {
	CLONES_MAX = 64,
	TEAR_UNIT_DEFAULT = 512,
};

struct crash_clone {
	uint64_t point;
	struct model *model;
};

struct crash {
	const struct trace *trace;
	struct crash_opts opts;
	struct model_opts model_opts;
	struct crash_plan plan;
	struct vec_of(uint64_t) marks_before;	/* EV_OP_... and EV_PERSIST before each point */
	struct vec_of(uint32_t) vary_at;	/* pieces that vary, at each point */
	struct vec_of(struct crash_clone) kept; /* clones to go back to, ascending */
	struct model *walker;			/* the model that moves along the trace */
	uint64_t walker_at;
	size_t at; /* index of the point `view` shows; SIZE_MAX: none */
	struct crash_view view;

	struct choice choice;
	size_t step; /* of the plan, at hand or where the budget ended it */
	bool sampling;
	struct hashset seen; /* images, mixed with their marks */
	struct hashset sets; /* sets tried in this step; only kept for sampling */
	struct crash_stats stats;
};

/* States. */

void crash_state_release(struct crash_state *s)
{
	strbuf_release(&s->id);
	image_release(&s->image);
	vec_release(&s->survived);
	vec_release(&s->lost);
	vec_release(&s->torn);
	*s = (struct crash_state)CRASH_STATE_INIT;
}

static void state_build(struct crash_state *s, const struct crash_view *v)
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
	size_t low = 0, high = e->kept.n;

	while (high - low > 1) {
		size_t mid = low + (high - low) / 2;

		if (e->kept.v[mid].point <= point)
			low = mid;
		else
			high = mid;
	}
	return &e->kept.v[low];
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
		/* crash_new() went this way before, so it cannot fail. */
		int rc = walk(e->walker, e->trace, e->walker_at, point, NULL);
		assert(!rc);
		e->walker_at = point;
		m = e->walker;
	}
	crash_view_load(&e->view, m, &e->opts);
	e->at = index;
}

/* Setting up. */

static void add_saturating(double *sum, double x)
{
	*sum = fmin(*sum + x, DBL_MAX);
}

/* The number of subsets of n things, as far as a double goes. */
static double subsets(uint64_t n)
{
	return n < DBL_MAX_EXP ? ldexp(1, (int)n) : DBL_MAX;
}

/* Goes through all points once: finds what is wrong with the trace, counts, and leaves clones. */
static int survey(struct crash *e, size_t *vary_max, struct err *err)
{
	const struct crash_opts *o = &e->opts;
	size_t stride = o->n_points / CLONES_MAX + 1;
	uint64_t marks = 0, at = 0;

	for (size_t i = 0; i < o->n_points; i++) {
		uint64_t point = o->points[i];

		assert(point <= e->trace->events.n && (i == 0 || o->points[i - 1] < point));
		int rc = walk(e->walker, e->trace, at, point, err);
		if (rc)
			return rc;
		for (; at < point; at++) {
			enum event_kind kind = e->trace->events.v[at].kind;
			marks += kind == EV_OP_BEGIN || kind == EV_OP_END || kind == EV_PERSIST;
		}
		e->walker_at = point;
		vec_push(&e->marks_before, marks);
		if (i % stride == stride - 1 && point > 0)
			vec_push(&e->kept, (struct crash_clone){ point, model_clone(e->walker) });
		crash_view_load(&e->view, e->walker, o);
		vec_push(&e->vary_at, (uint32_t)e->view.vary.n);
		*vary_max = max(*vary_max, e->view.vary.n);
		double whole = subsets(e->view.vary.n);
		add_saturating(&e->stats.possible, whole);
		add_saturating(&e->stats.pruned, subsets(e->view.flight.n) - whole);
		if (o->layers & CRASH_WITH_TORN)
			add_saturating(&e->stats.possible_torn,
				       subsets(crash_view_all_units(&e->view)) - whole);
	}
	return 0;
}

int crash_new(const struct trace *t, const struct crash_opts *opts, struct crash **out,
	      struct err *err)
{
	size_t vary_max = 0;

	if (!opts->base && t->info.size > IMAGE_SIZE_MAX)
		return err_set(err, -EFBIG, "a device of %llu bytes is larger than an image can be",
			       (unsigned long long)t->info.size);
	auto_crash e = xmalloc(sizeof(*e));
	*e = (struct crash){ .trace = t, .opts = *opts, .at = SIZE_MAX };
	if (opts->layers & CRASH_WITH_TORN)
		e->model_opts.tear_unit = opts->tear_unit	? opts->tear_unit
					  : t->info.sector_size ? t->info.sector_size
								: TEAR_UNIT_DEFAULT;
	if (!e->opts.tries && opts->budget)
		e->opts.tries = opts->budget < UINT64_MAX / 128 ? 64 * opts->budget + 65536 : 0;
	e->stats.points = opts->n_points;
	e->walker = start_model(t, opts, &e->model_opts);
	vec_push(&e->kept, (struct crash_clone){ 0, model_clone(e->walker) });
	int rc = survey(e, &vary_max, err);
	if (rc)
		return rc;
	crash_plan_init(&e->plan, opts, vary_max);
	choice_init_all(&e->choice);
	*out = steal(e);
	return 0;
}

void crash_free(struct crash *e)
{
	if (!e)
		return;
	for (size_t i = 0; i < e->kept.n; i++)
		model_free(e->kept.v[i].model);
	vec_release(&e->kept);
	crash_plan_release(&e->plan);
	vec_release(&e->marks_before);
	vec_release(&e->vary_at);
	model_free(e->walker);
	crash_view_release(&e->view);
	choice_release(&e->choice);
	hashset_release(&e->seen);
	hashset_release(&e->sets);
	free(e);
}

/* Enumeration. */

/* Makes the chosen state; whether it is one that was not given out before. */
static bool try_state(struct crash *e, struct crash_state *s, struct crash_step step)
{
	/* A torn or lost piece takes with it what needs it, where the step says what is lost. */
	if (step.layer == CRASH_ALL_BUT || step.layer == CRASH_TEAR_ALL)
		crash_view_close_dropping(&e->view);
	else
		crash_view_close_adding(&e->view);
	state_build(s, &e->view);
	struct hash128 key = s->hash;
	if (!e->opts.ignore_marks) {
		uint64_t both[3] = { s->hash.lo, s->hash.hi, e->marks_before.v[e->at] };
		key = hash_bytes(both, sizeof(both));
	}
	e->stats.tried++;
	if (!hashset_insert(&e->seen, key)) {
		e->stats.duplicates++;
		return false;
	}
	e->stats.unique++;
	state_describe(s, &e->view, e->opts.points[e->at], step);
	return true;
}

static bool budget_used_up(const struct crash *e)
{
	return (e->opts.budget && e->stats.unique >= e->opts.budget) ||
	       (e->opts.tries && e->stats.tried >= e->opts.tries);
}

/* The layers, one after the other. */
static bool next_in_plan(struct crash *e, struct crash_state *s)
{
	struct choice *c = &e->choice;

	while (choice_next(c)) {
		size_t step = choice_below(c, e->plan.steps.n);
		uint64_t index = choice_below(c, e->opts.n_points);

		if (choice_dead(c) ||
		    !crash_step_has_members(e->plan.steps.v[step], e->vary_at.v[index]))
			continue;
		if (step != e->step)
			hashset_clear(&e->sets);
		e->step = step;
		enter(e, index);
		crash_step_choose(e->plan.steps.v[step], &e->view, c);
		if (choice_dead(c) || crash_plan_find(&e->plan, &e->view) != step)
			continue;
		if (budget_used_up(e)) {
			e->stats.budget_hit = true;
			return false;
		}
		if (e->opts.sample)
			hashset_insert(&e->sets, crash_view_hash(&e->view, index));
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
	/* Where little is left, most draws hit what was tried: give up some time. */
	uint64_t draws = e->opts.sample < UINT64_MAX / 64 ? 32 * e->opts.sample + 1024 : UINT64_MAX;

	e->sampling = true;
	choice_release(&e->choice);
	choice_init_random(&e->choice, e->opts.seed, e->opts.n_points ? draws : 0);
}

/* The random choice: a point, whole pieces or units, and a set of them. */
static void choose_sample(struct crash *e, struct choice *c)
{
	bool torn = e->opts.layers & CRASH_WITH_TORN;

	enter(e, choice_below(c, e->opts.n_points));
	if (torn && choice_below(c, 2)) {
		crash_view_choose_all_units(&e->view, c);
		return;
	}
	crash_view_choose_set(&e->view, c, e->view.vary.v, e->view.vary.n);
}

static bool next_sample(struct crash *e, struct crash_state *s)
{
	static const struct crash_step sample = { CRASH_SAMPLE, 0 };
	struct crash_stats now;

	while (e->stats.sampled < e->opts.sample) {
		crash_stats(e, &now);
		if (now.left_out <= 0 || !choice_next(&e->choice))
			return false;
		choose_sample(e, &e->choice);
		if (choice_dead(&e->choice))
			continue;
		size_t step = crash_plan_find(&e->plan, &e->view);
		/* Steps before e->step are done; what is in no step counts as one after them. */
		if (step < e->step || !hashset_insert(&e->sets, crash_view_hash(&e->view, e->at)))
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

void crash_stats(const struct crash *e, struct crash_stats *out)
{
	*out = e->stats;
	out->left_out = fmin(out->possible + out->possible_torn, DBL_MAX) - (double)out->tried;
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
	struct model_opts model_opts = { .tear_unit = head->tear_unit };
	auto_call(crash_view_release) struct crash_view v = { 0 };
	auto_model m = start_model(t, opts, &model_opts);
	int rc = walk(m, t, 0, head->point, err);

	if (rc)
		return rc;
	crash_view_load(&v, m, NULL);
	crash_id_choose(head, &v, c);
	if (choice_failed(c))
		return -EINVAL;
	crash_view_close_adding(&v);
	state_build(s, &v);
	state_describe(s, &v, head->point, (struct crash_step){ CRASH_REPLAY, 0 });
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
