/* SPDX-License-Identifier: MIT */
/* cover.c - finds the patterns of a history, and puts together one crash state for each. */
#include "app/cover.h"

#include "app/case.h"
#include "app/states.h"

enum fate { FATE_LOST, FATE_ALONE, FATE_NOTHING, FATE_ALL, FATE_TORN, FATE_COUNT };

/* A change, and a fate of it that a pattern needs. */
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

/* Returns the bits of the first half of the units; a change of one unit has none. */
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

/* Sets the survivors of a wish; false if the pattern is impossible here (V2). */
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
		return flies && count_kept(c); /* and something must survive */
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

/* Adds a state, or counts a further pattern of the same state. */
static void add_state(struct covering *v, const struct case_at *c)
{
	struct cover_state s = { .point = c->point, .patterns = 1 };
	uint64_t acked = states_acked(v->h->trace, c->point);
	auto_vec struct case_survivors kept = { 0 };

	case_kept(c, &kept);
	struct hash128 hash = hash_add(case_tree(v->h, c->point, &kept),
				       hash_bytes_seeded(&acked, sizeof(acked), 2));
	v->out->patterns++;
	for (size_t i = 0; i < v->trees.n; i++)
		if (hash_eq(v->trees.v[i], hash)) {
			v->out->v.v[i].patterns++;
			return;
		}
	survivors_copy(v->h, kept.v, kept.n, &s.survivors);
	s.id = case_id(v->h, c);
	vec_push(&v->trees, hash);
	vec_push(&v->out->v, s);
}

/* ---- crash points ---- */

/* Returns the last point at which a change is in flight: what may survive without it is there. */
static uint64_t last_point(const struct history *h, const struct change *c)
{
	return min(c->durable_at, (uint64_t)h->trace->events.n);
}

/*
 * Candidates, by point: the first and the last changes of each role, as it depends on the other
 * changes in flight what is possible.
 */
enum { TRIES_EACH = 8 };

DEFINE_ORDER(by_point, struct wish,
	     order(a->point, b->point) ?: order(a->change, b->change) ?: order(a->fate, b->fate))

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
	vec_sort(&v->wishes, by_point);
}

/* Goes through the events once; tries the open wishes at each point. */
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

/* States that stand for several patterns come first; the rest fixes the order. */
DEFINE_ORDER(by_worth, struct cover_state,
	     order(b->patterns, a->patterns) ?: order(a->point, b->point) ?: strcmp(a->id, b->id))

int cover_make(struct history *h, const struct roles *roles, bool torn, struct cover *out,
	       struct err *err)
{
	struct covering v = { .h = h, .roles = roles, .out = out };

	*out = (struct cover){ 0 };
	v.done = xcalloc(roles->texts.n * FATE_COUNT + 1, sizeof(*v.done));
	make_wishes(&v, torn);
	int rc = grant_all(&v, err);
	vec_sort(&out->v, by_worth);
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
