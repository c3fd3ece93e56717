/* SPDX-License-Identifier: MIT */
/*
 * crash_plan.c - the layers of the enumeration: which sets each tries, and which layer a set
 * belongs to.
 *
 * I1: every set of surviving pieces or units has at most one step of the plan that tries it: the
 *     first that can make it (crash_plan_find). So no set is tried twice, and what is left out is
 *     the number of possible sets less those tried.
 *
 * If a point differs from the one before it only by more writes, a set without any of these writes
 * makes the same state at both. The pieces that were there before are the old ones (view.old; 0 if
 * something else lies between). In the subset layers and "torn, only older ones", sets in which
 * only old pieces survive are not tried again but counted: at the point before, their step is this
 * one or an earlier one, so that they have been tried there. (With k of n surviving here, it is
 * "exactly k" or "all but n - k" of the old ones; with k of n lost, it is "all but" as many fewer
 * as there are new ones, or "all". The argument needs all four layers.)
 */
#include "core/crash_plan.h"

const char *crash_layer_name(enum crash_layer layer)
{
	static const char *const names[] = {
		[CRASH_NONE] = "none",
		[CRASH_ALL] = "all",
		[CRASH_COMPLETED] = "completed",
		[CRASH_EXACTLY] = "exactly",
		[CRASH_ALL_BUT] = "all but",
		[CRASH_TEAR_ALL] = "torn, all others",
		[CRASH_TEAR_BEFORE] = "torn, only older ones",
		[CRASH_PARTS_ALL] = "parts, all others",
		[CRASH_PARTS_BEFORE] = "parts, only older ones",
		[CRASH_UNITS] = "units",
		[CRASH_SAMPLE] = "sample",
		[CRASH_REPLAY] = "replay",
	};

	return names[layer];
}

/* The steps. */

static bool asked(const struct crash_plan *p, enum crash_layer layer)
{
	return p->layers >> layer & 1;
}

static void plan_add(struct crash_plan *p, enum crash_layer layer, uint32_t k)
{
	if (!asked(p, layer))
		return;
	p->at[layer] = p->steps.n;
	vec_push(&p->steps, (struct crash_step){ layer, k, p->few });
}

static void plan_add_subsets(struct crash_plan *p, uint32_t from, uint32_t to)
{
	for (uint32_t k = from; k <= to; k++) {
		plan_add(p, CRASH_EXACTLY, k);
		plan_add(p, CRASH_ALL_BUT, k);
	}
}

void crash_plan_init(struct crash_plan *p, const struct crash_opts *opts, size_t loose_max)
{
	*p = (struct crash_plan){ .layers = opts->layers,
				  .narrowed = opts->vary != NULL,
				  .few = opts->few_tears };
	for (size_t i = 0; i < ARRAY_SIZE(p->at); i++)
		p->at[i] = SIZE_MAX;
	p->subset_max = (uint32_t)min((uint64_t)opts->max_subset, (uint64_t)loose_max / 2);
	p->near_max = opts->near_subset ? min(opts->near_subset, p->subset_max) : p->subset_max;
	plan_add(p, CRASH_NONE, 0);
	plan_add(p, CRASH_ALL, 0);
	plan_add(p, CRASH_COMPLETED, 0);
	p->first_subset = p->steps.n;
	/* No varying piece survives: the same as none, unless other pieces are loose. */
	if (p->narrowed)
		plan_add(p, CRASH_EXACTLY, 0);
	plan_add_subsets(p, 1, p->near_max);
	plan_add(p, CRASH_TEAR_ALL, 0);
	plan_add(p, CRASH_TEAR_BEFORE, 0);
	plan_add(p, CRASH_PARTS_ALL, 0);
	plan_add(p, CRASH_PARTS_BEFORE, 0);
	p->far_subsets = p->steps.n;
	plan_add_subsets(p, p->near_max + 1, p->subset_max);
	plan_add(p, CRASH_UNITS, 0);
}

void crash_plan_release(struct crash_plan *p)
{
	vec_release(&p->steps);
}

/* Which step it is. */

/* The place of a layer in the plan, or the plan's length. */
static size_t find_layer(const struct crash_plan *p, enum crash_layer layer)
{
	return min(p->at[layer], p->steps.n);
}

/* Finds the step of a subset layer by its k, as there can be many. */
static size_t find_subset(const struct crash_plan *p, enum crash_layer layer, uint64_t k)
{
	bool both = asked(p, CRASH_EXACTLY) && asked(p, CRASH_ALL_BUT);
	bool zero = p->narrowed && asked(p, CRASH_EXACTLY);
	uint64_t i = p->first_subset;

	if (!asked(p, layer) || k > p->subset_max || (!k && (!zero || layer == CRASH_ALL_BUT)))
		return p->steps.n;
	if (k > p->near_max)
		i = p->far_subsets + (k - p->near_max - 1) * (both ? 2 : 1);
	else if (k)
		i += zero + (k - 1) * (both ? 2 : 1);
	i += k && both && layer == CRASH_ALL_BUT;
	assert(p->steps.v[i].layer == layer && p->steps.v[i].k == k); /* I1 */
	return i;
}

/*
 * Counts the parts of a piece of n units that do not begin with the first: the last k, for each k;
 * each unit alone that is neither the first nor the last; and all but such a unit.
 */
static uint64_t count_parts(uint64_t n)
{
	return n < 2 ? 0 : n - 1 + 2 * (n - 2);
}

/*
 * Counts the few tears that stand for all: the first k of n units, or the last k, where k is 1,
 * half of n, or n - 1. Code that does not stand these is not safe for any other cut.
 */
static uint64_t count_few(uint64_t n)
{
	return min(n - 1, (uint64_t)3);
}

static uint32_t few_units(uint32_t n, uint64_t which)
{
	return which == 0 ? 1 : which == 1 && n > 3 ? n / 2 : n - 1;
}

static bool is_few(uint32_t n, uint32_t k)
{
	return k == 1 || k == n - 1 || (n > 3 && k == n / 2);
}

/* The shape of a set of units. */
enum part { PART_FIRST, PART_NAMED, PART_OTHER };

static enum part part_of(const struct crash_view *v, size_t piece, bool few)
{
	const uint64_t *units = crash_view_units(v, piece);
	uint32_t n = v->pieces[piece].units, kept = crash_view_units_kept(v, piece), turns = 0;
	bool first = units[0] & 1, last = units[(n - 1) / 64] >> (n - 1) % 64 & 1;

	for (uint32_t i = 1; i < n; i++)
		turns += (units[i / 64] >> i % 64 & 1) != (units[(i - 1) / 64] >> (i - 1) % 64 & 1);
	if (few && (turns != 1 || !is_few(n, kept)))
		return PART_OTHER;
	if (turns == 1)
		return first ? PART_FIRST : PART_NAMED;
	if (turns == 2 && first == last && (first ? n - kept : kept) == 1)
		return PART_NAMED;
	return PART_OTHER;
}

static void tear_part(struct crash_view *v, size_t piece, uint64_t which)
{
	uint64_t n = v->pieces[piece].units;

	if (which < n - 1)
		crash_view_tear_range(v, piece, (uint32_t)(n - 1 - which), (uint32_t)n, false);
	else if (which < n - 1 + n - 2)
		crash_view_tear_range(v, piece, (uint32_t)(which - n + 2),
				      (uint32_t)(which - n + 3), false);
	else
		crash_view_tear_range(v, piece, (uint32_t)(which - 2 * n + 4),
				      (uint32_t)(which - 2 * n + 5), true);
}

/* The shape of the choice at hand, as far as crash_plan_find() must know it. */
struct shape {
	uint64_t whole, torn; /* of those that vary */
	size_t tear;	      /* the torn piece as an index into view.vary, if only one is */
	bool none, all;	      /* no loose piece survives; all do */
	bool as_completed;    /* the completed pieces survive, and no other */
	bool older, others;   /* the pieces before `tear` survive; all pieces but `tear` do */
	enum part part;	      /* the shape of the torn piece, if only one is torn */
};

static struct shape shape_of(const struct crash_view *v, bool few)
{
	struct shape s = { .none = true, .all = true, .as_completed = true };
	uint64_t whole_before = 0;

	for (size_t i = 0; i < v->loose.n; i++) {
		enum fate fate = v->fate.v[v->loose.v[i]];
		bool completed = v->pieces[v->loose.v[i]].completed;

		s.none &= fate == FATE_LOST;
		s.all &= fate == FATE_WHOLE;
		s.as_completed &= fate == (completed ? FATE_WHOLE : FATE_LOST);
	}
	for (size_t i = 0; i < v->vary.n; i++) {
		enum fate fate = v->fate.v[v->vary.v[i]];

		if (fate == FATE_TORN) {
			s.torn++;
			s.tear = i;
			whole_before = s.whole;
		}
		s.whole += fate == FATE_WHOLE;
	}
	if (s.torn == 1) {
		s.part = part_of(v, v->vary.v[s.tear], few);
		s.others = s.whole == v->vary.n - 1;
		s.older = s.whole == s.tear && whole_before == s.tear;
	}
	return s;
}

size_t crash_plan_find(const struct crash_plan *p, const struct crash_view *v)
{
	struct shape s = shape_of(v, p->few);
	uint64_t n = v->vary.n;
	size_t step = p->steps.n;

	if (s.torn) {
		bool first = s.part == PART_FIRST;

		if (s.others && s.part != PART_OTHER)
			step = find_layer(p, first ? CRASH_TEAR_ALL : CRASH_PARTS_ALL);
		if (s.older && s.part != PART_OTHER && step == p->steps.n)
			step = find_layer(p, first ? CRASH_TEAR_BEFORE : CRASH_PARTS_BEFORE);
	} else {
		if (s.none)
			step = find_layer(p, CRASH_NONE);
		if (s.all && step == p->steps.n)
			step = find_layer(p, CRASH_ALL);
		if (s.as_completed && step == p->steps.n)
			step = find_layer(p, CRASH_COMPLETED);
		if (step == p->steps.n)
			step = s.whole <= n - s.whole ? find_subset(p, CRASH_EXACTLY, s.whole)
						      : find_subset(p, CRASH_ALL_BUT, n - s.whole);
	}
	return step < p->steps.n ? step : find_layer(p, CRASH_UNITS);
}

/* Choosing within a step. */

/* True if a layer tears one piece, and lets only older ones survive. */
static bool is_before(enum crash_layer layer)
{
	return layer == CRASH_TEAR_BEFORE || layer == CRASH_PARTS_BEFORE;
}

static bool is_parts(enum crash_layer layer)
{
	return layer == CRASH_PARTS_ALL || layer == CRASH_PARTS_BEFORE;
}

/* The number of ways in which a layer tears a piece. */
static uint64_t count_tears(struct crash_step step, const struct model_piece *p)
{
	if (step.few)
		return count_few(p->units);
	return is_parts(step.layer) ? count_parts(p->units) : p->units - 1;
}

uint64_t crash_few_tears(unsigned layers, const struct crash_view *v)
{
	uint64_t kinds = !!(layers & CRASH_WITH_TEARS) + !!(layers & CRASH_WITH_PARTS), n = 0;

	/* For the last piece, "all others" and "only older ones" are the same sets. */
	for (size_t i = 0; i < v->vary.n; i++)
		n += count_few(v->pieces[v->vary.v[i]].units) * kinds * (i + 1 < v->vary.n ? 2 : 1);
	return n;
}

/* True up to the middle, beyond which "exactly" and "all but" exchange their sets. */
static bool in_first_half(struct crash_step step, uint64_t n)
{
	uint64_t k = step.k;

	return (step.layer != CRASH_EXACTLY || 2 * k <= n) &&
	       (step.layer != CRASH_ALL_BUT || 2 * k < n);
}

/* True if a step leaves out sets that are known from the point before. */
static bool can_skip(struct crash_step step)
{
	return step.k > 0 || is_before(step.layer);
}

bool crash_step_has_members(struct crash_step step, uint64_t n, uint64_t old)
{
	assert(old <= n); /* the old pieces are among those that vary */
	return in_first_half(step, n) && !(step.k > 0 && old > 0 && old == n);
}

/* True if no new piece survives. */
static bool all_new_lost(const struct crash_view *v)
{
	for (size_t i = v->old; i < v->vary.n; i++)
		if (v->fate.v[v->vary.v[i]] != FATE_LOST)
			return false;
	return true;
}

bool crash_step_skipped(struct crash_step step, const struct crash_view *v)
{
	/* A torn old piece at a point without new ones may belong to another step. */
	bool none_new = is_before(step.layer) && v->old == v->vary.n;

	return can_skip(step) && v->old > 0 && !none_new && all_new_lost(v);
}

static void choose_members(struct crash_view *v, struct choice *c, struct crash_step step)
{
	bool exactly = step.layer == CRASH_EXACTLY;
	uint64_t n = v->vary.n, k = step.k, low = 0;

	assert(crash_step_has_members(step, n, v->old)); /* I6 of crash.c */
	/* If there is one new piece, it must not be lost. */
	if (!exactly && v->old > 0 && v->old == n - 1)
		n--;
	crash_view_reset(v, exactly ? FATE_LOST : FATE_WHOLE);
	for (uint64_t left = k; left > 0; left--) {
		if (exactly && left == 1)
			low = max(low, (uint64_t)v->old);
		uint64_t member = low + choice_below(c, n - low - (left - 1));

		v->fate.v[v->vary.v[member]] = exactly ? FATE_WHOLE : FATE_LOST;
		low = member + 1;
	}
	if (crash_step_skipped(step, v))
		choice_below(c, 0);
}

static void choose_completed(struct crash_view *v)
{
	crash_view_reset(v, FATE_LOST);
	for (size_t i = 0; i < v->loose.n; i++)
		v->fate.v[v->loose.v[i]] = v->pieces[v->loose.v[i]].completed ? FATE_WHOLE
									      : FATE_LOST;
}

/* The number of sets of k out of n. */
static uint64_t binomial(uint64_t n, uint64_t k)
{
	uint64_t result = 1;

	if (k > n)
		return 0;
	k = min(k, n - k);
	for (uint64_t i = 1; i <= k; i++) {
		unsigned __int128 next = (unsigned __int128)result * (n - k + i) / i;

		if (next > UINT64_MAX)
			return UINT64_MAX;
		result = (uint64_t)next;
	}
	return result;
}

/* True if a skipped set of this step is that of the completed pieces, which has its own step. */
static bool completed_is_skipped(const struct crash_plan *p, struct crash_step step,
				 struct crash_view *v)
{
	uint64_t whole = 0, n = v->vary.n;

	if (!asked(p, CRASH_COMPLETED))
		return false;
	choose_completed(v);
	for (size_t i = 0; i < v->n; i++)
		if (v->base.v[i] == FATE_WHOLE && v->fate.v[i] != FATE_WHOLE)
			return false; /* not one of the sets of varying pieces */
	for (size_t i = 0; i < n; i++)
		whole += v->fate.v[v->vary.v[i]] == FATE_WHOLE;
	return crash_step_skipped(step, v) &&
	       (step.layer == CRASH_EXACTLY ? whole == step.k : n - whole == step.k);
}

uint64_t crash_step_skips(const struct crash_plan *p, size_t index, struct crash_view *v)
{
	struct crash_step step = p->steps.v[index];
	uint64_t n = v->vary.n, old = v->old, count = 0;

	if (!can_skip(step) || !old || !in_first_half(step, n))
		return 0;
	if (is_before(step.layer)) {
		for (uint64_t i = 0; old < n && i < old; i++)
			count += count_tears(step, &v->pieces[v->vary.v[i]]);
		return count;
	}
	if (step.layer == CRASH_EXACTLY)
		count = binomial(old, step.k);
	else if (step.k >= n - old)
		count = binomial(old, step.k - (n - old));
	if (count && count < UINT64_MAX && completed_is_skipped(p, step, v))
		count--;
	return count;
}

static void tear_few(struct crash_view *v, size_t piece, uint64_t which, bool last)
{
	uint32_t n = v->pieces[piece].units, k = few_units(n, which);

	crash_view_tear_range(v, piece, last ? n - k : 0, last ? n : k, false);
}

static void choose_tear(struct crash_view *v, struct choice *c, struct crash_step step)
{
	enum crash_layer layer = step.layer;
	/* The same condition as in crash_step_skipped(). */
	size_t low = is_before(layer) && v->old < v->vary.n ? v->old : 0;
	uint64_t tear = low + choice_below(c, v->vary.n - low);
	uint64_t which = choice_below(
		c, v->vary.n > low ? count_tears(step, &v->pieces[v->vary.v[tear]]) : 0);

	if (choice_dead(c))
		return;
	crash_view_reset(v, is_before(layer) ? FATE_LOST : FATE_WHOLE);
	for (uint64_t i = 0; is_before(layer) && i < tear; i++)
		v->fate.v[v->vary.v[i]] = FATE_WHOLE;
	if (step.few)
		tear_few(v, v->vary.v[tear], which, is_parts(layer));
	else if (is_parts(layer))
		tear_part(v, v->vary.v[tear], which);
	else
		crash_view_tear_range(v, v->vary.v[tear], 0, (uint32_t)which + 1, false);
}

void crash_step_choose(struct crash_step step, struct crash_view *v, struct choice *c)
{
	switch (step.layer) {
	case CRASH_NONE:
		crash_view_reset(v, FATE_LOST);
		break;
	case CRASH_ALL:
		crash_view_reset(v, FATE_WHOLE);
		break;
	case CRASH_COMPLETED:
		choose_completed(v);
		break;
	case CRASH_EXACTLY:
	case CRASH_ALL_BUT:
		choose_members(v, c, step);
		break;
	case CRASH_TEAR_ALL:
	case CRASH_TEAR_BEFORE:
	case CRASH_PARTS_ALL:
	case CRASH_PARTS_BEFORE:
		choose_tear(v, c, step);
		break;
	default:
		crash_view_choose_all_units(v, c);
		break;
	}
}
