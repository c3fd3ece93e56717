/* SPDX-License-Identifier: MIT */
/* dist.c - the weights of each distribution, and a wheel that draws by weight. */
#include "explore/dist.h"

static const char *const names[DIST_END] = {
	[DIST_UNIFORM] = "uniform",
	[DIST_RANK] = "rank",
	[DIST_INVERSE] = "inverse",
	[DIST_DECAY] = "decay",
	[DIST_INVERSE_DECAY] = "inverse-decay",
};

enum dist dist_find(const char *name)
{
	for (enum dist d = 0; d < DIST_END; d++)
		if (streq(names[d], name))
			return d;
	return DIST_END;
}

static double decay(size_t i)
{
	double w = 1;

	for (size_t k = 0; k < i && w > 1e-4; k++)
		w *= 0.9;
	return w;
}

double dist_weight(enum dist d, size_t i, size_t n)
{
	assert(i < n);
	switch (d) {
	case DIST_RANK:
		return 1.0 / (double)(i + 1);
	case DIST_INVERSE:
		return 1.0 / (double)(n - i);
	case DIST_DECAY:
		return decay(i);
	case DIST_INVERSE_DECAY:
		return decay(n - 1 - i);
	default:
		return 1;
	}
}

void wheel_release(struct wheel *w)
{
	vec_release(&w->ends);
}

void wheel_clear(struct wheel *w)
{
	vec_clear(&w->ends);
}

void wheel_add(struct wheel *w, double weight)
{
	uint64_t last = w->ends.n ? vec_last(&w->ends) : 0;

	assert(weight >= 0 && weight <= WHEEL_WEIGHT_MAX);
	/* A weight that is not zero stays so. */
	vec_push(&w->ends, last + (uint64_t)(weight * 1e6) + (weight > 0 && weight < 1e-6));
}

bool wheel_turns(const struct wheel *w)
{
	return w->ends.n && vec_last(&w->ends) > 0;
}

size_t wheel_draw(const struct wheel *w, struct rng *r)
{
	uint64_t at = rng_below(r, vec_last(&w->ends));

	return first_where(i, w->ends.n, w->ends.v[i] > at);
}
