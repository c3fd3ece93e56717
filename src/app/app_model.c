/* SPDX-License-Identifier: MIT */
/*
 * app_model.c - changes that may be lost, as pieces for the enumerator.
 *
 * A1: pieces stand in the order of their changes; pieces that a piece needs are therefore before
 *     it, and closed sets are those of history.h.
 */
#include "app/app_model.h"

#include "base/util.h"

enum { READ_UNITS = 512 }; /* units read at a time */

struct posix_model {
	struct model model;
	uint64_t point;			 /* events that have happened */
	size_t next;			 /* the first change that has not happened */
	struct vec_of(uint32_t) waiting; /* changes that have happened, and are not durable */
	/* Made from `waiting` when needed. */
	bool made;
	struct vec_of(struct model_piece) pieces;
	struct vec_of(uint32_t) needs;
	struct vec_of(uint32_t) place;	 /* the index of each change's piece */
	struct vec_of(uint32_t) ordered; /* pieces */
	struct vec_of(unsigned char) bytes;
};

static const struct history *history_of(const struct posix_model *p)
{
	return p->model.opts.ctx;
}

static struct model *posix_create(void)
{
	return xcalloc(1, sizeof(struct posix_model));
}

static struct model *posix_clone(const struct model *m)
{
	const struct posix_model *p = container_of(m, struct posix_model, model);
	struct posix_model *copy = xcalloc(1, sizeof(*copy));

	copy->point = p->point;
	copy->next = p->next;
	for (size_t i = 0; i < p->waiting.n; i++)
		vec_push(&copy->waiting, p->waiting.v[i]);
	return &copy->model;
}

static void posix_destroy(struct model *m)
{
	struct posix_model *p = container_of(m, struct posix_model, model);

	vec_release(&p->waiting);
	vec_release(&p->pieces);
	vec_release(&p->needs);
	vec_release(&p->place);
	vec_release(&p->ordered);
	vec_release(&p->bytes);
	free(p);
}

static void set_units(struct image *img, uint64_t from, uint64_t to)
{
	unsigned char ones[256];

	memset(ones, 1, sizeof(ones));
	for (; from < to; from += min(to - from, (uint64_t)sizeof(ones)))
		image_write(img, from, ones, (size_t)min(to - from, (uint64_t)sizeof(ones)));
}

static int posix_apply(struct model *m, uint64_t number, const struct event *ev, struct err *err)
{
	struct posix_model *p = container_of(m, struct posix_model, model);
	const struct history *h = history_of(p);
	size_t kept = 0;

	(void)ev;
	(void)err;
	p->made = false;
	p->point = number + 1;
	for (; p->next < h->changes.n && h->changes.v[p->next].event <= number; p->next++)
		vec_push(&p->waiting, (uint32_t)p->next);
	for (size_t i = 0; i < p->waiting.n; i++) {
		const struct change *c = &h->changes.v[p->waiting.v[i]];

		if (change_is_durable(c, p->point))
			set_units(&m->durable, c->first_unit, c->first_unit + c->units);
		else
			p->waiting.v[kept++] = p->waiting.v[i];
	}
	p->waiting.n = kept;
	return 0;
}

/* Returns the last piece of ordered metadata before a change; SIZE_MAX if there is none. */
static size_t ordered_before(const struct posix_model *p, uint32_t change)
{
	const uint32_t *v = p->ordered.v;
	size_t n = p->ordered.n;

	/* Usually that is the last of all. */
	if (n && p->waiting.v[v[n - 1]] >= change)
		n = first_where(i, n, p->waiting.v[v[i]] >= change);
	return n ? v[n - 1] : SIZE_MAX;
}

static void make_pieces(struct posix_model *p)
{
	const struct history *h = history_of(p);
	bool in_order = h->profile->in_order;
	size_t total = 0;

	vec_clear(&p->pieces);
	vec_clear(&p->needs);
	vec_reserve(&p->place, h->changes.n);
	vec_clear(&p->ordered);
	for (size_t i = 0; i < p->waiting.n; i++) {
		p->place.v[p->waiting.v[i]] = (uint32_t)i;
		total += h->changes.v[p->waiting.v[i]].n_needs;
	}
	vec_reserve(&p->needs, total + p->waiting.n); /* pieces point into it */
	for (size_t i = 0; i < p->waiting.n; i++) {
		const struct change *c = &h->changes.v[p->waiting.v[i]];
		struct model_piece piece = { .event = c->event,
					     .addr = c->first_unit,
					     .len = c->units,
					     .unit_size = p->model.opts.tear_unit ? 1 : c->units,
					     .units = p->model.opts.tear_unit ? c->units : 1,
					     .needs = p->needs.v + p->needs.n,
					     .completed = true };

		for (uint32_t j = 0; j < c->n_needs; j++)
			if (!change_is_durable(&h->changes.v[c->needs[j]], p->point)) {
				p->needs.v[p->needs.n++] = p->place.v[c->needs[j]];
				piece.n_needs++;
			}
		uint32_t after = c->ordered ? p->waiting.v[i] : c->after;
		size_t before = in_order ? ordered_before(p, after) : SIZE_MAX;
		if (before != SIZE_MAX) {
			p->needs.v[p->needs.n++] = (uint32_t)before;
			piece.n_needs++;
		}
		if (c->ordered)
			vec_push(&p->ordered, (uint32_t)i);
		vec_push(&p->pieces, piece);
	}
	p->made = true;
}

static const struct model_piece *posix_pieces(const struct model *m, size_t *n)
{
	struct posix_model *p = container_of(m, struct posix_model, model);

	if (!p->made)
		make_pieces(p);
	*n = p->pieces.n;
	return p->pieces.v;
}

static void posix_piece_apply(const struct model *m, size_t index, const uint64_t *units,
			      uint64_t from, uint64_t to, struct image *img)
{
	const struct posix_model *p = container_of(m, struct posix_model, model);
	const struct model_piece *piece = &p->pieces.v[index];
	uint64_t run_from, run_to;
	uint32_t i = 0;

	while (model_piece_run(piece, units, &i, &run_from, &run_to)) {
		run_from = max(run_from, from);
		run_to = min(run_to, to);
		if (run_from < run_to)
			set_units(img, run_from, run_to);
	}
}

static void set_bytes(const struct model_piece *piece, const uint64_t *units, uint64_t start,
		      unsigned char *bytes)
{
	uint64_t from, to;
	uint32_t unit = 0;

	while (model_piece_run(piece, units, &unit, &from, &to))
		memset(bytes + (from - start), 1, to - from);
}

/* Changes in flight are close together: a page is written once for all of its changes. */
static void posix_pieces_apply(const struct model *m, const struct model_fates *f,
			       struct image *img)
{
	struct posix_model *p = container_of(m, struct posix_model, model);

	for (size_t i = 0, j; i < p->pieces.n; i = j) {
		uint64_t start = p->pieces.v[i].addr, end = start + p->pieces.v[i].len;

		for (j = i + 1; j < p->pieces.n && p->pieces.v[j].addr - end < IMAGE_PAGE; j++)
			end = p->pieces.v[j].addr + p->pieces.v[j].len;
		vec_reserve(&p->bytes, end - start);
		image_read(img, start, p->bytes.v, end - start);
		for (size_t k = i; k < j; k++)
			if (f->fate[k] == MODEL_WHOLE)
				set_bytes(&p->pieces.v[k], NULL, start, p->bytes.v);
			else if (f->fate[k] == MODEL_PART)
				set_bytes(&p->pieces.v[k], f->units + f->first_word[k], start,
					  p->bytes.v);
		image_write(img, start, p->bytes.v, end - start);
	}
}

const struct model_ops model_posix = {
	.name = "posix",
	.help = "calls of an application; what was not synced may be lost, by a profile",
	.create = posix_create,
	.clone = posix_clone,
	.destroy = posix_destroy,
	.apply = posix_apply,
	.pieces = posix_pieces,
	.piece_apply = posix_piece_apply,
	.pieces_apply = posix_pieces_apply,
};

/* ---- from an image to survivors ---- */

void survivors_release(struct survivors *s)
{
	vec_release(&s->v);
	vec_release(&s->units);
}

/* Empties the list, and makes room for so many words of units: pointers to them stay valid. */
static void survivors_clear(struct survivors *s, size_t words)
{
	vec_clear(&s->v);
	vec_clear(&s->units);
	vec_reserve(&s->units, words);
}

static void survivors_add(struct survivors *s, uint32_t change, const uint64_t *units, size_t words)
{
	assert(s->units.cap - s->units.n >= (units ? words : 0));
	if (units) {
		units = memcpy(s->units.v + s->units.n, units, words * sizeof(*units));
		s->units.n += words;
	}
	vec_push(&s->v, (struct survivor){ change, units });
}

void survivors_copy(const struct history *h, const struct survivor *v, size_t n,
		    struct survivors *to)
{
	size_t words = 0;

	for (size_t i = 0; i < n; i++)
		words += v[i].units ? change_words(&h->changes.v[v[i].change]) : 0;
	survivors_clear(to, words);
	for (size_t i = 0; i < n; i++)
		survivors_add(to, v[i].change, v[i].units,
			      change_words(&h->changes.v[v[i].change]));
}

/* Tells which units of a change survived: none, all, or some, whose bits are appended to `bits`. */
static enum {
	NO_UNITS,
	SOME_UNITS,
	ALL_UNITS
} units_of(const struct change *c, const unsigned char *bytes, uint64_t bits[static 64])
{
	uint32_t there = 0;

	assert(c->units <= MODEL_UNITS_MAX);
	if (c->units == 1)
		return bytes[0] ? ALL_UNITS : NO_UNITS;
	memset(bits, 0, change_words(c) * sizeof(*bits));
	for (uint32_t i = 0; i < c->units; i++)
		if (bytes[i]) {
			bits[i / 64] |= (uint64_t)1 << i % 64;
			there++;
		}
	return there == c->units ? ALL_UNITS : there ? SOME_UNITS : NO_UNITS;
}

void survivors_of(const struct history *h, const struct crash_state *state, struct survivors *out)
{
	unsigned char bytes[MODEL_UNITS_MAX];
	uint64_t bits[64], start = 0, end = 0; /* the units in `bytes` */
	uint32_t from, to, words = 0;

	history_window(h, state->point, &from, &to);
	for (uint32_t i = from; i < to; i++)
		words += change_words(&h->changes.v[i]);
	survivors_clear(out, words);
	for (uint32_t i = from; i < to; i++) {
		const struct change *c = &h->changes.v[i];

		if (change_is_durable(c, state->point))
			continue;
		if (c->first_unit + c->units > end) {
			start = c->first_unit;
			end = min(h->units, start + max(c->units, (uint32_t)READ_UNITS));
			image_read(&state->image, start, bytes, end - start);
		}
		int which = units_of(c, bytes + (c->first_unit - start), bits);
		if (which != NO_UNITS)
			survivors_add(out, i, which == SOME_UNITS ? bits : NULL, change_words(c));
	}
}
