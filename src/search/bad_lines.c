/* SPDX-License-Identifier: MIT */
/* bad_lines.c - puts media faults on crash states, and remembers which of these were tried. */
#include "search/bad_lines.h"

#include "core/patch.h"

void bad_lines_release(struct bad_lines *b)
{
	hashset_release(&b->tried);
	image_release(&b->old);
}

/* Makes the memory after the first `at` events with nothing lost: stale lines get this content. */
static void image_at(const struct trace *t, const struct image *base, uint64_t at,
		     struct image *out)
{
	struct patch patch;

	image_snapshot(base, out);
	patch_init(&patch, out);
	for (uint64_t i = 0; i < at; i++)
		if (t->events.v[i].kind == EV_STORE)
			patch_write(&patch, t->events.v[i].addr, t->events.v[i].data,
				    t->events.v[i].len);
	patch_finish(&patch);
}

static int try_fault(struct bad_lines *b, const struct crash_state *s, struct media_fault fault,
		     struct err *err)
{
	const struct media_faults one = { .v = &fault, .n = 1 };
	auto_image bad = IMAGE_INIT;

	image_snapshot(&s->image, &bad);
	media_apply(&one, &b->old, &bad);
	struct hash128 hash = image_hash(&bad);
	if (hash_eq(hash, s->hash) || !hashset_insert(&b->tried, hash))
		return 0;
	if (b->budget && b->states >= b->budget)
		return 1;
	b->states++;
	return b->check(b->ctx, s, &bad, &one, err);
}

static int try_lines(struct bad_lines *b, const struct crash_state *s,
		     const struct media_lines *lines, enum media_kind kind, uint64_t *left_out,
		     struct err *err)
{
	uint64_t n = min((uint64_t)lines->n, b->max), i = 0;
	int rc = 0;

	for (; i < n && !rc; i++)
		rc = try_fault(b, s, (struct media_fault){ kind, lines->v[i * lines->n / n] }, err);
	*left_out += lines->n - i + (rc > 0);
	return rc;
}

int bad_lines_explore(struct bad_lines *b, const struct crash_state *s, uint64_t from,
		      uint64_t *left_out, struct err *err)
{
	auto_vec struct media_lines lines = { 0 };
	int rc = 0;

	assert(from <= s->point);
	*left_out = 0;
	if (s->layer != CRASH_NONE && s->layer != CRASH_ALL)
		return 0;
	if (!b->known || b->from != from) {
		image_release(&b->old);
		image_at(b->trace, b->base, from, &b->old);
		b->from = from;
		b->known = true;
	}
	media_lines(b->trace, from, s->point, &lines);
	for (unsigned k = MEDIA_POISON; k <= MEDIA_STALE && rc >= 0; k++)
		if (b->kinds & 1u << k)
			rc = try_lines(b, s, &lines, (enum media_kind)k, left_out, err);
	return min(rc, 0);
}

int bad_lines_put(const struct trace *t, const struct image *base, uint64_t from, const char *text,
		  struct crash_state *state, struct err *err)
{
	auto_media_faults faults = { 0 };
	auto_image old = IMAGE_INIT;
	int rc = media_parse(text, base->size, &faults, err);

	if (rc)
		return rc;
	image_at(t, base, from, &old);
	media_apply(&faults, &old, &state->image);
	state->hash = image_hash(&state->image);
	return 0;
}
