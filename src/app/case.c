/* SPDX-License-Identifier: MIT */
/*
 * case.c - lists the changes in flight at a point, lets some survive, and makes the id of that
 * state.
 */
#include "app/case.h"

#include "base/strbuf.h"

void case_release(struct case_at *c)
{
	free(c->v);
	free(c->needs);
	*c = (struct case_at){ 0 };
}

void case_take(const struct history *h, struct model *m, uint64_t point, struct case_at *out)
{
	size_t n, needs = 0;
	const struct model_piece *p = model_pieces(m, &n);

	for (size_t i = 0; i < n; i++)
		needs += p[i].n_needs;
	*out = (struct case_at){ .point = point,
				 .n = n,
				 .v = xcalloc(n + 1, sizeof(*out->v)),
				 .needs = xcalloc(needs + 1, sizeof(*out->needs)) };
	needs = 0;
	uint32_t change = 0;
	for (size_t i = 0; i < n; i++, change++) {
		while (change_is_durable(&h->changes.v[change], point))
			change++;
		assert(h->changes.v[change].event == p[i].event);
		out->v[i] = (struct case_piece){ .change = change,
						 .needs = (uint32_t)needs,
						 .n_needs = p[i].n_needs };
		for (uint32_t j = 0; j < p[i].n_needs; j++)
			out->needs[needs++] = p[i].needs[j];
	}
}

int case_load(const struct history *h, uint64_t point, struct case_at *out, struct err *err)
{
	struct model_opts opts = { .ctx = h };
	auto_image base = IMAGE_INIT;
	int rc = 0;

	image_init(&base, h->units);
	auto_model m = model_new(&model_posix, &opts, &base);
	for (uint64_t i = 0; !rc && i < point; i++)
		rc = model_apply(m, i, &h->trace->events.v[i], err);
	if (!rc)
		case_take(h, m, point, out);
	return rc;
}

void case_close(struct case_at *c)
{
	for (size_t i = 0; i < c->n; i++)
		for (uint32_t j = 0; j < c->v[i].n_needs; j++)
			if (c->v[c->needs[c->v[i].needs + j]].keep != KEEP_ALL)
				c->v[i].keep = KEEP_NONE;
}

void case_give_back(struct case_at *c, size_t piece)
{
	c->v[piece].keep = KEEP_ALL;
	for (uint32_t j = 0; j < c->v[piece].n_needs; j++) {
		uint32_t need = c->needs[c->v[piece].needs + j];

		if (c->v[need].keep != KEEP_ALL)
			case_give_back(c, need);
	}
}

void case_keep_all(struct case_at *c)
{
	for (size_t i = 0; i < c->n; i++)
		c->v[i].keep = KEEP_ALL;
}

void case_kept(const struct case_at *c, struct case_survivors *out)
{
	vec_clear(out);
	for (size_t i = 0; i < c->n; i++)
		if (c->v[i].keep != KEEP_NONE)
			vec_push(out, (struct survivor){ c->v[i].change, c->v[i].keep == KEEP_SOME
										 ? c->v[i].units
										 : NULL });
}

struct hash128 case_tree(struct history *h, uint64_t point, const struct case_survivors *kept)
{
	struct reffs_state *tree = history_build(h, point, kept->v, kept->n);
	struct hash128 hash = reffs_state_hash(tree);

	reffs_state_unref(tree);
	return hash;
}

static void id_words(struct strbuf *id, const uint64_t *bits, size_t n)
{
	for (size_t i = 0; i < n; i += 32) {
		uint64_t word = bits[i / 64] >> i % 64 & UINT32_MAX;

		if (n - i < 32)
			word &= ((uint64_t)1 << (n - i)) - 1;
		strbuf_addf(id, ".%llu", llu(word));
	}
}

char *case_id(const struct history *h, const struct case_at *c)
{
	struct strbuf id = STRBUF_INIT;
	auto_free uint64_t *bits = xcalloc(c->n / 64 + 1, sizeof(*bits));
	size_t torn = 0, whole = 0;

	for (size_t i = 0; i < c->n; i++) {
		torn += c->v[i].keep == KEEP_SOME;
		whole += c->v[i].keep == KEEP_ALL;
		if (c->v[i].keep == KEEP_ALL)
			bits[i / 64] |= (uint64_t)1 << i % 64;
	}
	if (!torn && whole == c->n)
		strbuf_addf(&id, "1.%llu", llu(c->point));
	else if (!torn && !whole)
		strbuf_addf(&id, "0.%llu", llu(c->point));
	else
		strbuf_addf(&id, torn ? "3.%llu.1" : "2.%llu", llu(c->point));
	if (torn || (whole && whole < c->n))
		id_words(&id, bits, c->n);
	if (torn)
		strbuf_addf(&id, ".%zu", torn);
	for (size_t i = 0; i < c->n; i++)
		if (c->v[i].keep == KEEP_SOME) {
			strbuf_addf(&id, ".%zu", i);
			id_words(&id, c->v[i].units, h->changes.v[c->v[i].change].units);
		}
	return strbuf_detach(&id);
}
