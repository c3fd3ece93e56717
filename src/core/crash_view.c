/* SPDX-License-Identifier: MIT */
/*
 * crash_view.c - what is in flight at one crash point, and which of it survives.
 *
 * I2: fates are chosen for the pieces in `vary` only; the others survive whole.
 * I3: fates are closed before they are applied: what a surviving piece needs survives whole.
 */
#include "core/crash_view.h"

void crash_view_release(struct crash_view *v)
{
	vec_release(&v->flight);
	vec_release(&v->vary);
	vec_release(&v->first_word);
	vec_release(&v->base);
	vec_release(&v->fate);
	vec_release(&v->units);
}

/* What must survive in any case takes with it what it needs. */
static void fix_needs(struct crash_view *v)
{
	for (size_t i = v->n; i-- > 0;)
		for (uint32_t j = 0; v->base.v[i] == FATE_WHOLE && j < v->pieces[i].n_needs; j++)
			v->base.v[v->pieces[i].needs[j]] = FATE_WHOLE;
}

void crash_view_load(struct crash_view *v, const struct model *m, const struct crash_opts *opts)
{
	size_t words = 0;

	v->model = m;
	v->pieces = model_pieces(m, &v->n);
	v->has_needs = false;
	vec_clear(&v->flight);
	vec_clear(&v->vary);
	vec_clear(&v->first_word);
	vec_clear(&v->base);
	for (size_t i = 0; i < v->n; i++) {
		const struct model_piece *p = &v->pieces[i];
		bool fixed = p->pinned || (opts && opts->vary && !opts->vary(opts->vary_ctx, p));

		vec_push(&v->base, fixed ? FATE_WHOLE : FATE_LOST);
		vec_push(&v->first_word, (uint32_t)words);
		words += (p->units + 63) / 64;
		v->has_needs |= p->n_needs > 0;
		if (!p->pinned)
			vec_push(&v->flight, (uint32_t)i);
	}
	fix_needs(v);
	for (size_t i = 0; i < v->n; i++)
		if (v->base.v[i] == FATE_LOST)
			vec_push(&v->vary, (uint32_t)i);
	vec_clear(&v->fate);
	vec_reserve(&v->fate, v->n);
	v->fate.n = v->n;
	vec_clear(&v->units);
	vec_reserve(&v->units, words);
	v->units.n = words;
}

/* Units. */

uint32_t crash_view_units_kept(const struct crash_view *v, size_t piece)
{
	uint32_t words = (v->pieces[piece].units + 63) / 64, kept = 0;

	for (uint32_t i = 0; i < words; i++)
		kept += (uint32_t)__builtin_popcountll(crash_view_units(v, piece)[i]);
	return kept;
}

bool crash_view_is_prefix(const struct crash_view *v, size_t piece)
{
	const uint64_t *units = crash_view_units(v, piece);
	uint32_t kept = crash_view_units_kept(v, piece);

	for (uint32_t i = 0; i < kept; i++)
		if (!(units[i / 64] >> i % 64 & 1))
			return false;
	return true;
}

uint64_t crash_view_all_units(const struct crash_view *v)
{
	uint64_t n = 0;

	for (size_t i = 0; i < v->vary.n; i++)
		n += v->pieces[v->vary.v[i]].units;
	return n;
}

/* Takes the fate of a piece from its units: all is whole, nothing is lost. */
static void fate_of_units(struct crash_view *v, size_t piece)
{
	uint32_t kept = crash_view_units_kept(v, piece);

	v->fate.v[piece] = kept == 0			    ? FATE_LOST
			   : kept == v->pieces[piece].units ? FATE_WHOLE
							    : FATE_TORN;
}

/* Fates. */

void crash_view_reset(struct crash_view *v, enum fate fate)
{
	if (v->n)
		memcpy(v->fate.v, v->base.v, v->n);
	for (size_t i = 0; fate != FATE_LOST && i < v->vary.n; i++)
		v->fate.v[v->vary.v[i]] = (unsigned char)fate;
}

void crash_view_tear_prefix(struct crash_view *v, size_t piece, uint32_t kept)
{
	uint64_t *units = crash_view_units(v, piece);

	assert(kept > 0 && kept < v->pieces[piece].units);
	memset(units, 0, (v->pieces[piece].units + 63) / 64 * sizeof(*units));
	for (uint32_t i = 0; i < kept; i++)
		units[i / 64] |= (uint64_t)1 << (i % 64);
	v->fate.v[piece] = FATE_TORN;
}

void crash_view_choose_set(struct crash_view *v, struct choice *c, const uint32_t *list, size_t n)
{
	crash_view_reset(v, FATE_LOST);
	for (size_t i = 0; i < n; i += CRASH_WORD_BITS) {
		size_t bits = min(n - i, (size_t)CRASH_WORD_BITS);
		uint64_t word = choice_below(c, (uint64_t)1 << bits);

		for (size_t j = 0; j < bits; j++)
			if (word >> j & 1)
				v->fate.v[list[i + j]] = FATE_WHOLE;
	}
}

void crash_view_choose_units(struct crash_view *v, struct choice *c, size_t piece)
{
	uint32_t n = v->pieces[piece].units;
	uint64_t *units = crash_view_units(v, piece);

	memset(units, 0, (n + 63) / 64 * sizeof(*units));
	for (uint32_t i = 0; i < n; i += CRASH_WORD_BITS) {
		uint32_t bits = min(n - i, (uint32_t)CRASH_WORD_BITS);

		units[i / 64] |= choice_below(c, (uint64_t)1 << bits) << i % 64;
	}
	fate_of_units(v, piece);
}

/* A set whose id would be too long to be replayed is not made; it stays among those left out. */
void crash_view_choose_all_units(struct crash_view *v, struct choice *c)
{
	if (v->units.n + v->flight.n > CHOICE_DEPTH_MAX / 4) {
		choice_below(c, 0);
		return;
	}
	crash_view_reset(v, FATE_LOST);
	for (size_t i = 0; i < v->vary.n; i++)
		crash_view_choose_units(v, c, v->vary.v[i]);
}

void crash_view_close_adding(struct crash_view *v)
{
	for (size_t i = v->n; v->has_needs && i-- > 0;)
		for (uint32_t j = 0; v->fate.v[i] != FATE_LOST && j < v->pieces[i].n_needs; j++)
			v->fate.v[v->pieces[i].needs[j]] = FATE_WHOLE;
}

void crash_view_close_dropping(struct crash_view *v)
{
	for (size_t i = 0; v->has_needs && i < v->n; i++)
		for (uint32_t j = 0; j < v->pieces[i].n_needs; j++)
			if (v->fate.v[v->pieces[i].needs[j]] != FATE_WHOLE)
				v->fate.v[i] = FATE_LOST;
}

/* What comes of it. */

struct hash128 crash_view_hash(const struct crash_view *v, uint64_t seed)
{
	struct hash128 h = hash_bytes_seeded(v->fate.v, v->n, seed);

	for (size_t i = 0; i < v->vary.n; i++) {
		size_t piece = v->vary.v[i];
		size_t len = (v->pieces[piece].units + 63) / 64 * sizeof(uint64_t);

		if (v->fate.v[piece] == FATE_TORN)
			h = hash_add(h, hash_bytes_seeded(crash_view_units(v, piece), len, piece));
	}
	return h;
}

void crash_view_apply(const struct crash_view *v, struct image *img)
{
	image_restore(img, &v->model->durable);
	for (size_t i = 0; i < v->n; i++)
		if (v->fate.v[i] != FATE_LOST)
			model_piece_apply(v->model, i,
					  v->fate.v[i] == FATE_TORN ? crash_view_units(v, i) : NULL,
					  img);
}

void crash_view_list(const struct crash_view *v, struct crash_state *s)
{
	vec_clear(&s->survived);
	vec_clear(&s->lost);
	vec_clear(&s->torn);
	for (size_t i = 0; i < v->flight.n; i++) {
		size_t piece = v->flight.v[i];
		const struct model_piece *p = &v->pieces[piece];

		if (v->fate.v[piece] == FATE_WHOLE)
			vec_push(&s->survived, p->event);
		else if (v->fate.v[piece] == FATE_LOST)
			vec_push(&s->lost, p->event);
		else
			vec_push(&s->torn,
				 (struct crash_tear){ p->event, crash_view_units_kept(v, piece),
						      p->units });
	}
}
