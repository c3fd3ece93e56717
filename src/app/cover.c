/* SPDX-License-Identifier: MIT */
/* cover.c - finds the patterns of a history, and puts together one crash state for each. */
#include "app/cover.h"

#include "app/case.h"
#include "app/states.h"

enum fate { FATE_LOST, FATE_ALONE, FATE_NOTHING, FATE_ALL, FATE_TORN, FATE_COUNT };

/* A change and a fate that a pattern is tried with. */
struct wish {
	uint64_t point;
	uint32_t change;
	enum fate fate;
};

struct covering {
	struct history *h;
	const struct roles *roles;
	struct cover *out;
	struct vec_of(struct wish) wishes;
	bool *done; /* by role and fate */
	struct vec_of(struct hash128) trees;
};

static bool *done_of(struct covering *v, uint32_t change, enum fate fate)
{
	return &v->done[v->roles->of[change] * FATE_COUNT + fate];
}

/* ---- states ---- */

/* Half of its units, the first ones; all of at most two is one of them. */
static uint64_t *half_of(uint32_t units)
{
	uint64_t *bits = xcalloc((units + 63) / 64, sizeof(*bits));

	for (uint32_t i = 0; i < units / 2; i++)
		bits[i / 64] |= (uint64_t)1 << i % 64;
	return bits;
}

static size_t count_kept(const struct case_at *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++)
		n += c->v[i].keep == KEEP_ALL;
	return n;
}

/* Sets what survives; false if the pattern is none here (V2). */
static bool grant(const struct history *h, struct case_at *c, const struct wish *w,
		  uint64_t **units)
{
	size_t at = 0;

	while (at < c->n && c->v[at].change != w->change)
		at++;
	bool flies = at < c->n;

	switch (w->fate) {
	case FATE_ALL:
		case_keep_all(c);
		return true;
	case FATE_NOTHING:
		return c->n;
	case FATE_ALONE: /* with what it needs; and something else must be lost */
		if (flies)
			case_give_back(c, at);
		return flies && count_kept(c) < c->n;
	case FATE_LOST:
		case_keep_all(c);
		if (flies)
			c->v[at].keep = KEEP_NONE;
		case_close(c);
		return flies && count_kept(c); /* and something must not */
	case FATE_TORN:
		if (!flies || h->changes.v[w->change].units < 2)
			return false;
		case_keep_all(c);
		*units = half_of(h->changes.v[w->change].units);
		c->v[at].keep = KEEP_SOME;
		c->v[at].units = *units;
		case_close(c);
		return true;
	case FATE_COUNT:
		break;
	}
	return false;
}

static void survivors_from(const struct history *h, const struct case_at *c, struct survivors *out)
{
	for (size_t i = 0; i < c->n; i++) {
		uint32_t words = (h->changes.v[c->v[i].change].units + 63) / 64;

		if (c->v[i].keep == KEEP_SOME) /* at most one: the pointer stays */
			for (uint32_t j = 0; j < words; j++)
				vec_push(&out->units, c->v[i].units[j]);
	}
	for (size_t i = 0; i < c->n; i++)
		if (c->v[i].keep != KEEP_NONE)
			vec_push(&out->v,
				 (struct survivor){ c->v[i].change, c->v[i].keep == KEEP_SOME
									    ? out->units.v
									    : NULL });
}

/* Two patterns may come to the same state. */
static void add_state(struct covering *v, const struct case_at *c)
{
	struct cover_state s = { .point = c->point, .patterns = 1 };
	uint64_t acked = states_acked(v->h->trace, c->point);

	survivors_from(v->h, c, &s.survivors);
	struct reffs_state *tree = history_build(v->h, c->point, s.survivors.v.v, s.survivors.v.n);
	struct hash128 hash =
		hash_add(reffs_state_hash(tree), hash_bytes_seeded(&acked, sizeof(acked), 2));
	reffs_state_unref(tree);
	v->out->patterns++;
	for (size_t i = 0; i < v->trees.n; i++)
		if (hash_eq(v->trees.v[i], hash)) {
			v->out->v.v[i].patterns++;
			survivors_release(&s.survivors);
			return;
		}
	s.id = case_id(v->h, c);
	vec_push(&v->trees, hash);
	vec_push(&v->out->v, s);
}

/* ---- where ---- */

/* The last point at which a change is still in flight: what could wrongly be there without it is.
 */
static uint64_t last_point(const struct history *h, const struct change *c)
{
	return min(c->durable_at, (uint64_t)h->trace->events.n);
}

/*
 * Candidates, by point. For each role, the first changes and the last ones: what is possible
 * depends on what else is in flight.
 */
enum { TRIES_EACH = 8 };

static int by_point(const void *a, const void *b)
{
	const struct wish *x = a, *y = b;

	if (x->point != y->point)
		return x->point < y->point ? -1 : 1;
	if (x->change != y->change)
		return x->change < y->change ? -1 : 1;
	return (int)x->fate - (int)y->fate;
}

static void make_wishes(struct covering *v, bool torn)
{
	const struct history *h = v->h;
	auto_free uint32_t *seen = xcalloc(v->roles->texts.n + 1, sizeof(*seen));
	auto_free uint32_t *left = xcalloc(v->roles->texts.n + 1, sizeof(*left));

	for (uint32_t i = 0; i < h->changes.n; i++)
		left[v->roles->of[i]]++;
	for (uint32_t i = 0; i < h->changes.n; i++) {
		const struct change *c = &h->changes.v[i];
		uint32_t role = v->roles->of[i];

		left[role]--;
		if (seen[role]++ >= TRIES_EACH && left[role])
			continue;
		for (int fate = 0; fate < FATE_COUNT - !torn; fate++)
			vec_push(&v->wishes,
				 (struct wish){ fate == FATE_LOST ? last_point(h, c) : c->event + 1,
						i, (enum fate)fate });
	}
	if (v->wishes.n)
		qsort(v->wishes.v, v->wishes.n, sizeof(*v->wishes.v), by_point);
}

/* Goes once through the events; at each point the wishes that are still open are tried. */
static int grant_all(struct covering *v, struct err *err)
{
	struct model_opts opts = { .ctx = v->h };
	auto_image base = IMAGE_INIT;
	uint64_t at = 0;
	int rc = 0;

	image_init(&base, v->h->units);
	auto_model m = model_new(&model_posix, &opts, &base);
	for (size_t i = 0; !rc && i < v->wishes.n; i++) {
		const struct wish *w = &v->wishes.v[i];
		bool *done = done_of(v, w->change, w->fate);
		auto_free uint64_t *units = NULL;
		auto_case c = { 0 };

		if (*done)
			continue;
		for (; !rc && at < w->point; at++)
			rc = model_apply(m, at, &v->h->trace->events.v[at], err);
		if (rc)
			break;
		case_take(v->h, m, w->point, &c);
		if (grant(v->h, &c, w, &units)) {
			*done = true;
			add_state(v, &c);
		}
	}
	return rc;
}

static int by_worth(const void *a, const void *b)
{
	const struct cover_state *x = a, *y = b;

	/* One that stands for several patterns first; and so that the order is certain. */
	if (x->patterns != y->patterns)
		return x->patterns > y->patterns ? -1 : 1;
	return x->point != y->point ? (x->point < y->point ? -1 : 1) : strcmp(x->id, y->id);
}

int cover_make(struct history *h, const struct roles *roles, bool torn, struct cover *out,
	       struct err *err)
{
	struct covering v = { .h = h, .roles = roles, .out = out };

	*out = (struct cover){ 0 };
	v.done = xcalloc(roles->texts.n * FATE_COUNT + 1, sizeof(*v.done));
	make_wishes(&v, torn);
	int rc = grant_all(&v, err);
	if (out->v.n)
		qsort(out->v.v, out->v.n, sizeof(*out->v.v), by_worth);
	free(v.done);
	vec_release(&v.wishes);
	vec_release(&v.trees);
	if (rc)
		cover_release(out);
	return rc;
}

void cover_release(struct cover *c)
{
	for (size_t i = 0; i < c->v.n; i++) {
		free(c->v.v[i].id);
		survivors_release(&c->v.v[i].survivors);
	}
	vec_release(&c->v);
}
