/* SPDX-License-Identifier: MIT */
/* flight.c - lists the pieces in flight at a crash, and makes ids of states from sets of them. */
#include "search/flight.h"

#include <inttypes.h>

static int by_event(const void *a, const void *b)
{
	const struct flight_piece *x = a, *y = b;

	return (x->event > y->event) - (x->event < y->event);
}

void flight_of(const struct crash_state *s, struct in_flight *out)
{
	out->point = s->point;
	vec_clear(&out->pieces);
	for (size_t i = 0; i < s->survived.n; i++)
		vec_push(&out->pieces, (struct flight_piece){ s->survived.v[i], false });
	for (size_t i = 0; i < s->lost.n; i++)
		vec_push(&out->pieces, (struct flight_piece){ s->lost.v[i], true });
	for (size_t i = 0; i < s->torn.n; i++)
		vec_push(&out->pieces, (struct flight_piece){ s->torn.v[i].event, true });
	if (out->pieces.n)
		qsort(out->pieces.v, out->pieces.n, sizeof(*out->pieces.v), by_event);
}

void flight_id(const struct in_flight *f, struct strbuf *out)
{
	strbuf_addf(out, "2.%" PRIu64, f->point);
	for (size_t i = 0; i < f->pieces.n; i += 32) {
		uint32_t word = 0;

		for (size_t k = i; k < min(i + 32, f->pieces.n); k++)
			word |= (uint32_t)!f->pieces.v[k].lost << (k - i);
		strbuf_addf(out, ".%" PRIu32, word);
	}
}
