/* SPDX-License-Identifier: MIT */
/*
 * crash_view.c - the pieces in flight at one crash point, and which of them survive.
 *
 * I2: fates are chosen for the pieces in `vary` only; the others survive whole.
 * I3: fates are closed before they are applied: the needs of a surviving piece survive whole.
 * I7: `vary` is a subset of `loose`, and that of all pieces; each in ascending order.
 *
 * Most states differ in few pieces from one of two images: one where nothing survives, and one
 * where everything does. Those two are kept, and a state is made from the nearer one: for each
 * piece with another fate, its range is made again from the durable image and the survivors there.
 */
#include "core/crash_view.h"

/* If a model can apply all pieces at once, so many of them cost as much as one range by itself. */
enum { AT_ONCE = 64 };

static void drop_images(struct crash_view *v)
{
	image_release(&v->none);
	image_release(&v->all);
	ranges_clear(&v->index);
	v->has_none = v->has_all = false;
}

void crash_view_release(struct crash_view *v)
{
	drop_images(v);
	ranges_release(&v->index);
	vec_release(&v->below);
	vec_release(&v->flight);
	vec_release(&v->loose);
	vec_release(&v->vary);
	vec_release(&v->first_word);
	vec_release(&v->base);
	vec_release(&v->fate);
	vec_release(&v->units);
}

/* The needs of a piece that must survive must survive, too. */
static void fix_needs(struct crash_view *v)
{
	for (size_t i = v->n; v->has_needs && i-- > 0;)
		for (uint32_t j = 0; v->base.v[i] == FATE_WHOLE && j < v->pieces[i].n_needs; j++)
			v->base.v[v->pieces[i].needs[j]] = FATE_WHOLE;
}

static void apply_whole(const struct crash_view *v, size_t piece, struct image *img)
{
	const struct model_piece *p = &v->pieces[piece];

	model_piece_apply(v->model, piece, NULL, p->addr, p->addr + p->len, img);
}

void crash_view_load(struct crash_view *v, const struct model *m, bool grown)
{
	size_t words = 0, n_before = v->n;

	v->model = m;
	v->pieces = model_pieces(m, &v->n);
	v->has_needs = false;
	v->old = 0;
	vec_clear(&v->flight);
	vec_clear(&v->loose);
	vec_clear(&v->vary);
	vec_clear(&v->first_word);
	vec_clear(&v->base);
	/* There may be tens of thousands of pieces at each point, so room is made once. */
	vec_reserve(&v->flight, v->n);
	vec_reserve(&v->loose, v->n);
	vec_reserve(&v->vary, v->n);
	vec_reserve(&v->first_word, v->n);
	vec_reserve(&v->base, v->n);
	for (size_t i = 0; i < v->n; i++) {
		const struct model_piece *p = &v->pieces[i];

		v->base.v[v->base.n++] = p->pinned ? FATE_WHOLE : FATE_LOST;
		v->first_word.v[v->first_word.n++] = (uint32_t)words;
		words += (p->units + 63) / 64;
		v->has_needs |= p->n_needs > 0;
		if (!p->pinned)
			v->flight.v[v->flight.n++] = (uint32_t)i;
	}
	fix_needs(v);
	for (size_t i = 0; i < v->n; i++)
		if (v->base.v[i] == FATE_LOST) {
			v->loose.v[v->loose.n++] = (uint32_t)i;
			v->vary.v[v->vary.n++] = (uint32_t)i;
		}
	assert(v->loose.n <= v->flight.n && v->flight.n <= v->n); /* I7 */
	vec_clear(&v->fate);
	vec_reserve(&v->fate, v->n);
	v->fate.n = v->n;
	vec_clear(&v->units);
	vec_reserve(&v->units, words);
	v->units.n = words;
	if (!grown)
		drop_images(v);
	for (size_t i = n_before; v->has_all && i < v->n; i++)
		apply_whole(v, i, &v->all);
}

void crash_view_narrow(struct crash_view *v, const uint64_t *varies)
{
	for (size_t i = 0; i < v->loose.n; i++)
		if (!(varies[i / 64] >> i % 64 & 1))
			v->base.v[v->loose.v[i]] = FATE_WHOLE;
	fix_needs(v);
	vec_clear(&v->vary);
	for (size_t i = 0; i < v->loose.n; i++)
		if (v->base.v[v->loose.v[i]] == FATE_LOST)
			vec_push(&v->vary, v->loose.v[i]);
	assert(v->vary.n <= v->loose.n); /* I7 */
}

/* Units. */

uint32_t crash_view_units_kept(const struct crash_view *v, size_t piece)
{
	uint32_t words = (v->pieces[piece].units + 63) / 64, kept = 0;

	for (uint32_t i = 0; i < words; i++)
		kept += (uint32_t)__builtin_popcountll(crash_view_units(v, piece)[i]);
	return kept;
}

uint64_t crash_view_all_units(const struct crash_view *v)
{
	uint64_t n = 0;

	for (size_t i = 0; i < v->vary.n; i++)
		n += v->pieces[v->vary.v[i]].units;
	return n;
}

/* Sets the fate of a piece by its units: FATE_WHOLE if all survive, FATE_LOST if none does. */
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

void crash_view_tear_range(struct crash_view *v, size_t piece, uint32_t from, uint32_t to,
			   bool all_but)
{
	uint64_t *units = crash_view_units(v, piece);
	uint32_t n = v->pieces[piece].units;

	assert(from < to && to <= n && to - from < n);
	memset(units, 0, (n + 63) / 64 * sizeof(*units));
	for (uint32_t i = 0; i < n; i++)
		if ((i >= from && i < to) != all_but)
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

/* A set whose id would be too long to replay is not made, and counts as left out. */
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

/* The results of the fates. */

/*
 * Hashes bytes with a number. The number is not used as a seed: XXH3 of short inputs gives equal
 * hashes for different bytes with neighbouring seeds.
 */
static struct hash128 numbered(uint64_t number, const void *data, size_t len)
{
	struct hash128 h = hash_bytes(data, len);
	uint64_t both[3] = { number, h.lo, h.hi };

	return hash_bytes(both, sizeof(both));
}

struct hash128 crash_view_hash(const struct crash_view *v, uint64_t point)
{
	struct hash128 h = numbered(point, v->fate.v, v->n);

	for (size_t i = 0; i < v->vary.n; i++) {
		size_t piece = v->vary.v[i];
		size_t len = (v->pieces[piece].units + 63) / 64 * sizeof(uint64_t);

		if (v->fate.v[piece] == FATE_TORN)
			h = hash_add(h, numbered(piece, crash_view_units(v, piece), len));
	}
	return h;
}

static const struct image *image_none(struct crash_view *v)
{
	size_t next = 0;

	if (v->has_none)
		return &v->none;
	v->has_none = true;
	image_restore(&v->none, &v->model->durable);
	for (size_t i = 0; i < v->n; i++)
		if (next < v->loose.n && v->loose.v[next] == i)
			next++;
		else
			apply_whole(v, i, &v->none);
	return &v->none;
}

const struct image *crash_view_image_all(struct crash_view *v)
{
	if (v->has_all)
		return &v->all;
	v->has_all = true;
	image_restore(&v->all, &v->model->durable);
	for (size_t i = 0; i < v->n; i++)
		apply_whole(v, i, &v->all);
	return &v->all;
}

static bool note_below(void *ctx, uint64_t piece)
{
	struct crash_view *v = ctx;

	if (v->fate.v[piece] != FATE_LOST)
		vec_push(&v->below, (uint32_t)piece);
	return true;
}

DEFINE_ORDER(compare_pieces, uint32_t, order(*a, *b))

static void apply_in(const struct crash_view *v, size_t piece, uint64_t from, uint64_t to,
		     struct image *img)
{
	const uint64_t *units = v->fate.v[piece] == FATE_TORN ? crash_view_units(v, piece) : NULL;

	model_piece_apply(v->model, piece, units, from, to, img);
}

/* Makes again the range that a piece can change. */
static void redo(struct crash_view *v, size_t piece, struct image *img)
{
	uint64_t from = v->pieces[piece].addr, to = from + v->pieces[piece].len;
	size_t first;

	while (v->index.n < v->n) {
		const struct model_piece *p = &v->pieces[v->index.n];

		ranges_add(&v->index, p->addr, p->addr + p->len, v->index.n);
	}
	vec_clear(&v->below);
	ranges_overlapping(&v->index, from, to, note_below, v);
	vec_sort(&v->below, compare_pieces);
	/* Pieces below a piece that covers the whole range do not matter. */
	for (first = v->below.n; first > 0; first--) {
		const struct model_piece *p = &v->pieces[v->below.v[first - 1]];

		if (v->fate.v[v->below.v[first - 1]] == FATE_WHOLE && p->addr <= from &&
		    to <= p->addr + p->len)
			break;
	}
	if (first > 0 && v->below.v[first - 1] > piece)
		return; /* so this piece does not matter */
	if (first > 0)
		first--;
	else
		image_copy(img, &v->model->durable, from, to - from);
	for (size_t i = first; i < v->below.n; i++)
		apply_in(v, v->below.v[i], from, to, img);
}

/* Makes a state that differs much from both images. */
static void apply_all(const struct crash_view *v, struct image *img)
{
	struct model_fates fates = { v->fate.v, v->units.v, v->first_word.v };

	image_restore(img, &v->model->durable);
	if (v->model->ops->pieces_apply) {
		v->model->ops->pieces_apply(v->model, &fates, img);
		return;
	}
	for (size_t i = 0; i < v->n; i++)
		if (v->fate.v[i] != FATE_LOST)
			apply_in(v, i, v->pieces[i].addr, v->pieces[i].addr + v->pieces[i].len,
				 img);
}

/* Asserts I3, in as much time as the closing took. */
static void check_closed(const struct crash_view *v)
{
	for (size_t i = 0; v->has_needs && i < v->n; i++)
		for (uint32_t j = 0; v->fate.v[i] != FATE_LOST && j < v->pieces[i].n_needs; j++)
			assert(v->fate.v[v->pieces[i].needs[j]] == FATE_WHOLE); /* I3 */
}

void crash_view_apply(struct crash_view *v, struct image *img)
{
	size_t count[3] = { 0 };

	check_closed(v);
	for (size_t i = 0; i < v->loose.n; i++)
		count[v->fate.v[v->loose.v[i]]]++;
	assert(count[FATE_LOST] + count[FATE_WHOLE] + count[FATE_TORN] == v->loose.n); /* I7 */
	size_t lost = count[FATE_LOST] + count[FATE_TORN];
	size_t kept = count[FATE_WHOLE] + count[FATE_TORN];
	size_t differ = min(lost, kept);
	size_t few = v->model->ops->pieces_apply ? v->n / AT_ONCE : max(v->loose.n / 4, (size_t)2);
	if (differ > few) {
		apply_all(v, img);
		return;
	}
	enum fate usual = lost <= kept ? FATE_WHOLE : FATE_LOST;
	image_restore(img, usual == FATE_WHOLE ? crash_view_image_all(v) : image_none(v));
	for (size_t i = 0; i < v->loose.n; i++)
		if (v->fate.v[v->loose.v[i]] != usual)
			redo(v, v->loose.v[i], img);
}

/* Lists the ranges between those that survived, and returns how many bytes did. */
static uint64_t list_torn(const struct crash_view *v, size_t piece, struct crash_state *s)
{
	const struct model_piece *p = &v->pieces[piece];
	uint64_t at = p->addr, kept = 0, from, to;

	for (uint32_t i = 0; model_piece_run(p, crash_view_units(v, piece), &i, &from, &to);) {
		if (from > at)
			vec_push(&s->gone, (struct crash_part){ p->event, at, from - at });
		kept += to - from;
		at = to;
	}
	if (at < p->addr + p->len)
		vec_push(&s->gone, (struct crash_part){ p->event, at, p->addr + p->len - at });
	return kept;
}

void crash_view_list(const struct crash_view *v, struct crash_state *s)
{
	vec_clear(&s->survived);
	vec_clear(&s->lost);
	vec_clear(&s->torn);
	vec_clear(&s->gone);
	for (size_t i = 0; i < v->flight.n; i++) {
		size_t piece = v->flight.v[i];
		const struct model_piece *p = &v->pieces[piece];

		if (v->fate.v[piece] == FATE_WHOLE) {
			vec_push(&s->survived, p->event);
		} else if (v->fate.v[piece] == FATE_LOST) {
			vec_push(&s->lost, p->event);
			vec_push(&s->gone, (struct crash_part){ p->event, p->addr, p->len });
		} else {
			vec_push(&s->torn,
				 (struct crash_tear){ .event = p->event,
						      .kept = crash_view_units_kept(v, piece),
						      .units = p->units,
						      .unit = p->unit_size,
						      .kept_bytes = list_torn(v, piece, s),
						      .addr = p->addr,
						      .bytes = p->len });
		}
	}
}
