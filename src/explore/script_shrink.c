/* SPDX-License-Identifier: MIT */
/* script_shrink.c - does a script again, and leaves out of it what is not needed. */
#include <errno.h>

#include "explore/shrink_impl.h"

enum { SLOTS = 512, TRIES = 3 };

/* ---- doing it ---- */

struct slots {
	struct {
		uint32_t id;
		bool used;
		struct point point;
	} v[SLOTS];
	unsigned n;
};

static struct point *find_slot(struct slots *slots, uint32_t id, bool make)
{
	for (unsigned i = 0; i < slots->n; i++)
		if (slots->v[i].id == id)
			return &slots->v[i].point;
	if (!make || slots->n == SLOTS)
		return NULL;
	slots->v[slots->n].id = id;
	return &slots->v[slots->n++].point;
}

/* An alphabet in which every operation is a step. */
static void alphabet_of(const struct script *s, struct alphabet *a)
{
	alphabet_init(a);
	for (size_t i = 0; i < s->w.ops.n; i++) {
		workload_add(&a->w, &s->w.ops.v[i]);
		vec_push(&a->steps, (struct step){ (uint32_t)i, 1 });
		vec_push(&a->made_only, UINT32_MAX);
	}
	alphabet_add_made_only(a);
}

static int do_item(const struct script_item *item, struct stepper *st, struct slots *slots,
		   struct step_result *result, struct err *err)
{
	struct point *p;
	int rc;

	switch (item->kind) {
	case SCRIPT_OP:
		return stepper_step(st, item->n, result, err);
	case SCRIPT_BASE:
		return stepper_reset(st, result, err);
	case SCRIPT_SAVE:
		p = find_slot(slots, item->n, true);
		if (!p)
			return 0;
		stepper_drop(st, p);
		rc = stepper_save(st, p, err);
		if (!rc)
			rc = stepper_compare(st, result, err);
		return rc;
	case SCRIPT_RESTORE:
		p = find_slot(slots, item->n, false);
		/* A state never saved cannot be put back: the script is another one, then. */
		return p && p->states[0] ? stepper_restore(st, p, result, err) : 0;
	}
	return 0;
}

static void note_script(const struct stepper *st, const struct script *s)
{
	struct script_note *note = st->note;
	auto_strbuf text = STRBUF_INIT;

	if (!note)
		return;
	note->len = note->at = 0;
	note->before = st->start ? (uint32_t)st->start_steps : 0;
	script_print(s, &text);
	if (text.len > sizeof(note->text))
		return;
	memcpy(note->text, strbuf_str(&text), text.len);
	note->len = (uint32_t)text.len;
}

static void note_progress(struct script_note *note, size_t items)
{
	if (note)
		note->at = (uint32_t)items;
}

static void note_end(struct script_note *note)
{
	if (note)
		note->len = 0;
}

int script_run(const struct script *s, struct stepper *st, struct step_result *result, size_t *at,
	       struct strbuf *log, struct err *err)
{
	struct slots *slots = xcalloc(1, sizeof(*slots));
	uint64_t every = st->compare_every;
	struct coverage *coverage = st->coverage;
	const struct alphabet *old = st->a;
	struct alphabet a;

	alphabet_of(s, &a);
	st->compare_every = 1;
	st->coverage = NULL;
	st->log = log;
	note_script(st, s);
	int rc = stepper_to_start(st, result, err);
	if (!rc)
		stepper_begin(st, &a);
	for (*at = 0; *at < s->items.n && !rc && result->verdict == STEP_SAME && !stepper_cut(st);
	     ++*at) {
		step_result_clear(result);
		note_progress(st->note, *at + 1);
		rc = do_item(&s->items.v[*at], st, slots, result, err);
	}
	if (!rc && result->verdict == STEP_SAME && st->room_after && !stepper_cut(st))
		rc = stepper_check_room(st, result, err);
	for (unsigned i = 0; i < slots->n; i++)
		stepper_drop(st, &slots->v[i].point);
	free(slots);
	st->compare_every = every;
	st->coverage = coverage;
	st->log = NULL;
	note_end(st->note);
	/* The caller has its own alphabet; what is open now belongs to this one. */
	if (old)
		stepper_begin(st, old);
	alphabet_release(&a);
	return rc;
}

/* ---- leaving out ---- */

/* A mark for each item: all are kept. */
static bool *keep_all(const struct script *s)
{
	size_t n = s->items.n + 1;

	return memset(xmalloc(n), true, n);
}

/* Leaves out what came after the first `n` items. */
static void cut_behind(struct script *s, size_t n)
{
	auto_free bool *keep = keep_all(s);
	struct script cut;

	memset(keep + n, false, s->items.n - n);
	script_init(&cut);
	script_select(s, keep, &cut);
	script_release(s);
	*s = cut;
}

int shrink_shows(struct shrink *h, struct script *s, struct err *err)
{
	auto_call(step_result_release) struct step_result result = { 0 };
	auto_strbuf log = STRBUF_INIT;
	size_t at;
	int rc = script_run(s, h->st, &result, &at, h->how->shown ? &log : NULL, err);

	h->out->runs++;
	if (!rc && result.verdict == STEP_DIFFERENT && streq(result.signature, h->how->signature)) {
		cut_behind(s, at);
		if (h->how->shown)
			rc = h->how->shown(h->how->ctx, s, h->out, &result, &log, err);
		rc = rc ? rc : 1;
	}
	return rc;
}

void shrink_take(struct shrink *h, struct script *less)
{
	struct script old = *h->best;

	*h->best = *less;
	*less = old;
}

static int try_kept(struct shrink *h, const bool *keep, struct err *err)
{
	auto_call(script_release) struct script less;

	script_init(&less);
	script_select(h->best, keep, &less);
	int rc = less.items.n ? shrink_shows(h, &less, err) : 0;
	if (rc > 0)
		shrink_take(h, &less);
	return rc;
}

static int try_without(struct shrink *h, size_t from, size_t to, struct err *err)
{
	auto_free bool *keep = keep_all(h->best);

	memset(keep + from, false, to - from);
	return try_kept(h, keep, err);
}

bool shrink_spent(struct shrink *h)
{
	h->out->budget_hit |= h->out->runs >= h->how->max_runs;
	return h->out->budget_hit || stepper_cut(h->st);
}

/* One pass with pieces of `size`, the last first. 1 if something could go. */
static int drop_pieces(struct shrink *h, size_t size, struct err *err)
{
	int any = 0;

	for (size_t to = h->best->items.n; to > 0 && !shrink_spent(h);) {
		size_t from = to > size ? to - size : 0;
		int rc = to - from < h->best->items.n ? try_without(h, from, to, err) : 0;

		if (rc < 0)
			return rc;
		any |= rc;
		to = min(from, h->best->items.n);
	}
	return any;
}

/* Two that only make sense together: what a handle opens and closes, a save and its restore. */
static int drop_pairs(struct shrink *h, struct err *err)
{
	size_t n = h->best->items.n;

	if (n > 24)
		return 0;
	for (size_t i = 0; i < n; i++)
		for (size_t k = i + 2; k < n && !shrink_spent(h); k++) {
			auto_free bool *keep = keep_all(h->best);

			keep[i] = keep[k] = false;
			int rc = try_kept(h, keep, err);
			if (rc)
				return rc;
		}
	return 0;
}

static int leave_out(struct shrink *h, struct err *err)
{
	int rc = 0;

	for (size_t size = h->best->items.n / 2; size > 1 && rc >= 0; size /= 2)
		rc = drop_pieces(h, size, err);
	do {
		do
			rc = rc < 0 || shrink_spent(h) ? min(rc, 0) : drop_pieces(h, 1, err);
		while (rc > 0);
		if (!rc && !shrink_spent(h))
			rc = drop_pairs(h, err);
		if (!rc && !shrink_spent(h))
			rc = shrink_simplify(h, err);
	} while (rc > 0);
	return rc ? rc : shrink_numbers(h, err);
}

/* One more try before anything is left out; the first that shows is what is made smaller. */
static int try_whole(struct shrink *h, struct err *err)
{
	auto_call(script_release) struct script copy;

	script_init(&copy);
	script_copy(&copy, h->best);
	h->out->tries++;
	int rc = shrink_shows(h, &copy, err);
	/* Given up half-way, it was none. */
	if (!rc && stepper_cut(h->st))
		h->out->tries--;
	h->out->shown += rc > 0;
	if (rc > 0 && h->out->shown == 1)
		shrink_take(h, &copy);
	return rc;
}

int script_cut(struct script *s, struct stepper *st, const struct shrink_how *how,
	       struct shrunk *out, struct err *err)
{
	struct shrink h = { s, st, how, out };

	*out = (struct shrunk){ 0 };
	int rc = try_whole(&h, err);
	for (size_t size = s->items.n / 2; size && rc > 0; size /= 2) {
		int dropped = drop_pieces(&h, size, err);

		rc = dropped < 0 ? dropped : rc;
	}
	return rc < 0 ? rc : !out->shown;
}

int script_shrink(struct script *s, struct stepper *st, const struct shrink_how *how,
		  struct shrunk *out, struct err *err)
{
	struct shrink h = { s, st, how, out };
	int rc = 0;

	*out = (struct shrunk){ 0 };
	for (unsigned i = 0; i < TRIES && rc >= 0 && !stepper_cut(st); i++)
		rc = try_whole(&h, err);
	if (rc < 0)
		return rc;
	return out->shown ? leave_out(&h, err) : 1;
}
