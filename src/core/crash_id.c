/* SPDX-License-Identifier: MIT */
/*
 * crash_id.c - makes the ids of crash states from fates, and turns ids into fates again.
 *
 * I4: the image of a state follows from its id, the trace, the model and the base image.
 *
 * The reader accepts more forms than are made: any form that fits the fates will do, and the state
 * has the id that is made for it. crash_id_check() reads an id back (I4).
 */
#include "core/crash_id.h"

enum { LIST_MAX = 16 }; /* pieces that an id names one by one */

/* The first digit of an id; for lists of k pieces it is 2k more than one of the last two. */
enum id_kind { ID_NONE, ID_ALL, ID_SET, ID_TORN };

/* Making. */

static void put(struct strbuf *id, uint64_t digit)
{
	if (id->len)
		strbuf_addch(id, '.');
	strbuf_addu(id, digit);
}

/* The pieces in flight that survive whole, as words. */
static void put_set(const struct crash_view *v, struct strbuf *id)
{
	for (size_t i = 0; i < v->flight.n; i += CRASH_WORD_BITS) {
		uint64_t word = 0;

		for (size_t j = 0; j < CRASH_WORD_BITS && i + j < v->flight.n; j++)
			word |= (uint64_t)(v->fate.v[v->flight.v[i + j]] == FATE_WHOLE) << j;
		put(id, word);
	}
}

static void put_torn(const struct crash_view *v, size_t torn, struct strbuf *id)
{
	put_set(v, id);
	put(id, torn);
	for (size_t i = 0; i < v->flight.n; i++) {
		size_t piece = v->flight.v[i];

		if (v->fate.v[piece] != FATE_TORN)
			continue;
		put(id, i);
		for (uint32_t unit = 0; unit < v->pieces[piece].units; unit += CRASH_WORD_BITS)
			put(id, crash_view_units(v, piece)[unit / 64] >> unit % 64 & UINT32_MAX);
	}
}

static void put_list(const struct crash_view *v, enum fate fate, struct strbuf *id)
{
	for (size_t i = 0; i < v->flight.n; i++)
		if (v->fate.v[v->flight.v[i]] == fate)
			put(id, i);
}

void crash_id_make(const struct crash_view *v, uint64_t point, struct strbuf *id)
{
	size_t count[3] = { 0 };

	for (size_t i = 0; i < v->flight.n; i++)
		count[v->fate.v[v->flight.v[i]]]++;
	size_t whole = count[FATE_WHOLE], lost = count[FATE_LOST], few = min(whole, lost);

	strbuf_clear(id);
	if (count[FATE_TORN]) {
		put(id, ID_TORN);
		put(id, point);
		put(id, v->model->opts.tear_unit);
		put_torn(v, count[FATE_TORN], id);
	} else if (few == 0) {
		put(id, lost || !whole ? ID_NONE : ID_ALL);
		put(id, point);
	} else if (few > LIST_MAX) {
		put(id, ID_SET);
		put(id, point);
		put_set(v, id);
	} else {
		put(id, (whole <= lost ? ID_SET : ID_TORN) + 2 * few);
		put(id, point);
		put_list(v, whole <= lost ? FATE_WHOLE : FATE_LOST, id);
	}
}

/* Reading. */

static void choose_list(struct crash_view *v, struct choice *c, uint64_t kind)
{
	uint64_t k = kind / 2 - 1, n = v->flight.n, low = 0;
	bool all_but = kind % 2;

	if (k > LIST_MAX || (all_but ? k >= n - min(k, n) : k > n - min(k, n))) {
		choice_below(c, 0);
		return;
	}
	crash_view_reset(v, all_but ? FATE_WHOLE : FATE_LOST);
	for (uint64_t i = 0; i < k; i++) {
		uint64_t member = choice_below(c, n);

		if (member < low) /* not ascending */
			choice_below(c, 0);
		v->fate.v[v->flight.v[member]] = all_but ? FATE_LOST : FATE_WHOLE;
		low = member + 1;
	}
}

static void choose_torn(struct crash_view *v, struct choice *c)
{
	uint64_t low = 0;

	crash_view_choose_set(v, c, v->flight.v, v->flight.n);
	uint64_t count = choice_below(c, v->flight.n + 1);
	if (!count)
		choice_below(c, 0);
	for (uint64_t i = 0; i < count; i++) {
		uint64_t member = choice_below(c, v->flight.n);
		size_t piece = v->flight.v[member];

		if (member < low || v->fate.v[piece] != FATE_LOST)
			choice_below(c, 0);
		crash_view_choose_units(v, c, piece);
		if (v->fate.v[piece] != FATE_TORN)
			choice_below(c, 0);
		low = member + 1;
	}
}

struct crash_id_head crash_id_begin(struct choice *c, uint64_t n_events)
{
	struct crash_id_head head = { .kind = choice_below(c, ID_TORN + 2 * LIST_MAX + 1) };

	head.point = choice_below(c, n_events + 1);
	if (head.kind == ID_TORN) {
		head.tear_unit = (uint32_t)choice_below(c, UINT32_MAX);
		if (!head.tear_unit)
			choice_below(c, 0);
	}
	return head;
}

void crash_id_choose(const struct crash_id_head *head, struct crash_view *v, struct choice *c)
{
	switch (head->kind) {
	case ID_NONE:
		crash_view_reset(v, FATE_LOST);
		break;
	case ID_ALL:
		crash_view_reset(v, FATE_WHOLE);
		break;
	case ID_SET:
		crash_view_choose_set(v, c, v->flight.v, v->flight.n);
		break;
	case ID_TORN:
		choose_torn(v, c);
		break;
	default:
		choose_list(v, c, head->kind);
		break;
	}
}

void crash_id_check(struct crash_view *v, uint64_t n_events, const struct strbuf *id)
{
	struct hash128 made = crash_view_hash(v, 0);
	auto_choice c = { 0 };

	/* If a loose piece does not vary, the view cannot make the choices of an id. */
	if (v->vary.n != v->loose.n || choice_init_replay(&c, strbuf_str(id), NULL) ||
	    !choice_next(&c))
		return;
	struct crash_id_head head = crash_id_begin(&c, n_events);
	crash_id_choose(&head, v, &c);
	assert(!choice_failed(&c) && hash_eq(crash_view_hash(v, 0), made)); /* I4 */
}
