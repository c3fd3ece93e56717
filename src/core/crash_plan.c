/* SPDX-License-Identifier: MIT */
/*
 * crash_plan.c - the layers of the enumeration: what each tries, and which one a set belongs to.
 *
 * I1: every set of surviving pieces or units has at most one step of the plan that tries it: the
 *     first that can make it (crash_plan_find). So no set is tried twice, and what is left out is
 *     the number of possible sets less those tried.
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
	if (asked(p, layer))
		vec_push(&p->steps, (struct crash_step){ layer, k });
}

void crash_plan_init(struct crash_plan *p, const struct crash_opts *opts, size_t vary_max)
{
	*p = (struct crash_plan){ .layers = opts->layers };
	plan_add(p, CRASH_NONE, 0);
	plan_add(p, CRASH_ALL, 0);
	plan_add(p, CRASH_COMPLETED, 0);
	p->first_subset = p->steps.n;
	for (uint32_t k = 1; k <= opts->max_subset && k <= vary_max / 2; k++) {
		plan_add(p, CRASH_EXACTLY, k);
		plan_add(p, CRASH_ALL_BUT, k);
	}
	p->after_subsets = p->steps.n;
	plan_add(p, CRASH_TEAR_ALL, 0);
	plan_add(p, CRASH_TEAR_BEFORE, 0);
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
	size_t i = layer < CRASH_EXACTLY ? 0 : p->after_subsets;

	while (i < p->steps.n && p->steps.v[i].layer != layer)
		i++;
	return i;
}

/* The same for the subset layers, of which there can be many. */
static size_t find_subset(const struct crash_plan *p, enum crash_layer layer, uint64_t k)
{
	bool both = asked(p, CRASH_EXACTLY) && asked(p, CRASH_ALL_BUT);
	uint64_t i = p->first_subset + (k - 1) * (both ? 2 : 1);

	i += both && layer == CRASH_ALL_BUT;
	if (!asked(p, layer) || i >= p->after_subsets)
		return p->steps.n;
	assert(p->steps.v[i].layer == layer && p->steps.v[i].k == k);
	return i;
}

/* What the choice at hand looks like, as far as crash_plan_find() must know. */
struct shape {
	uint64_t whole, torn;
	size_t tear;	    /* the torn piece, as an index into view.vary, if it is one */
	bool as_completed;  /* survivors are those that completed */
	bool older, others; /* survivors are those before `tear`; all others but it */
};

static struct shape shape_of(const struct crash_view *v)
{
	struct shape s = { .as_completed = true };
	uint64_t whole_before = 0;

	for (size_t i = 0; i < v->vary.n; i++) {
		size_t piece = v->vary.v[i];
		enum fate fate = v->fate.v[piece];

		if (fate == FATE_TORN) {
			s.torn++;
			s.tear = i;
			whole_before = s.whole;
		}
		s.whole += fate == FATE_WHOLE;
		s.as_completed &= fate == (v->pieces[piece].completed ? FATE_WHOLE : FATE_LOST);
	}
	if (s.torn == 1 && crash_view_is_prefix(v, v->vary.v[s.tear])) {
		s.others = s.whole == v->vary.n - 1;
		s.older = s.whole == s.tear && whole_before == s.tear;
	}
	return s;
}

size_t crash_plan_find(const struct crash_plan *p, const struct crash_view *v)
{
	struct shape s = shape_of(v);
	uint64_t n = v->vary.n;
	size_t step = p->steps.n;

	if (s.torn) {
		if (s.others)
			step = find_layer(p, CRASH_TEAR_ALL);
		if (s.older && step == p->steps.n)
			step = find_layer(p, CRASH_TEAR_BEFORE);
	} else {
		if (s.whole == 0)
			step = find_layer(p, CRASH_NONE);
		if (s.whole == n && step == p->steps.n)
			step = find_layer(p, CRASH_ALL);
		if (s.as_completed && step == p->steps.n)
			step = find_layer(p, CRASH_COMPLETED);
		if (step == p->steps.n && s.whole > 0 && s.whole < n)
			step = s.whole <= n - s.whole ? find_subset(p, CRASH_EXACTLY, s.whole)
						      : find_subset(p, CRASH_ALL_BUT, n - s.whole);
	}
	return step < p->steps.n ? step : find_layer(p, CRASH_UNITS);
}

/* Choosing within a step. */

/* Beyond the middle, the sets of "exactly" are those of "all but" and the other way round. */
bool crash_step_has_members(struct crash_step step, uint64_t n)
{
	uint64_t k = step.k;

	return (step.layer != CRASH_EXACTLY || 2 * k <= n) &&
	       (step.layer != CRASH_ALL_BUT || 2 * k < n);
}

static void choose_members(struct crash_view *v, struct choice *c, struct crash_step step)
{
	bool exactly = step.layer == CRASH_EXACTLY;
	uint64_t n = v->vary.n, k = step.k, low = 0;

	assert(crash_step_has_members(step, n));
	crash_view_reset(v, exactly ? FATE_LOST : FATE_WHOLE);
	for (uint64_t left = k; left > 0; left--) {
		uint64_t member = low + choice_below(c, n - low - (left - 1));

		v->fate.v[v->vary.v[member]] = exactly ? FATE_WHOLE : FATE_LOST;
		low = member + 1;
	}
}

static void choose_completed(struct crash_view *v)
{
	crash_view_reset(v, FATE_LOST);
	for (size_t i = 0; i < v->vary.n; i++)
		if (v->pieces[v->vary.v[i]].completed)
			v->fate.v[v->vary.v[i]] = FATE_WHOLE;
}

static void choose_tear(struct crash_view *v, struct choice *c, enum crash_layer layer)
{
	uint64_t tear = choice_below(c, v->vary.n);
	uint64_t kept = 1 + choice_below(c, v->vary.n ? v->pieces[v->vary.v[tear]].units - 1 : 0);

	if (choice_dead(c))
		return;
	crash_view_reset(v, layer == CRASH_TEAR_ALL ? FATE_WHOLE : FATE_LOST);
	for (uint64_t i = 0; layer == CRASH_TEAR_BEFORE && i < tear; i++)
		v->fate.v[v->vary.v[i]] = FATE_WHOLE;
	crash_view_tear_prefix(v, v->vary.v[tear], (uint32_t)kept);
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
		choose_tear(v, c, step.layer);
		break;
	default:
		crash_view_choose_all_units(v, c);
		break;
	}
}
