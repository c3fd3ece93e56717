/* SPDX-License-Identifier: MIT */
/* bad_media.c - puts each media fault on a crash state, and tries the recovery of that. */
#include "run/bad_media.h"

#include <errno.h>
#include <inttypes.h>

void bad_media_release(struct bad_media *m)
{
	hashset_release(&m->tried);
	image_release(&m->old);
}

/* Where the operation began in which, or right after which, the power failed. */
static uint64_t last_begin(const struct trace *t, uint64_t point)
{
	uint64_t at = 0;

	for (uint64_t i = 0; i < point && i < t->events.n; i++)
		if (t->events.v[i].kind == EV_OP_BEGIN)
			at = i;
	return at;
}

static void image_before(const struct trace *t, const struct image *base, uint64_t at,
			 struct image *out)
{
	image_snapshot(base, out);
	for (uint64_t i = 0; i < at; i++)
		if (t->events.v[i].kind == EV_STORE)
			image_write(out, t->events.v[i].addr, t->events.v[i].data,
				    t->events.v[i].len);
}

/* ---- one state ---- */

/* A copy of what a state is known by, with another image. */
static void copy_state(const struct crash_state *from, struct crash_state *to)
{
	to->point = from->point;
	to->layer = from->layer;
	to->k = from->k;
	strbuf_adds(&to->id, strbuf_str(&from->id));
	for (size_t i = 0; i < from->survived.n; i++)
		vec_push(&to->survived, from->survived.v[i]);
	for (size_t i = 0; i < from->lost.n; i++)
		vec_push(&to->lost, from->lost.v[i]);
	image_snapshot(&from->image, &to->image);
}

static int judge_faults(struct run *r, const struct state_judge *j, const struct crash_state *bad,
			const struct media_faults *faults, struct err *err)
{
	auto_attempt a = ATTEMPT_INIT(&r->seen_again);
	auto_strbuf words = STRBUF_INIT, diagnosis = STRBUF_INIT;
	struct state_judge inner = *j;

	media_format(faults, &words);
	strbuf_adds(&diagnosis, "media fault: of what the last operation wrote,");
	for (size_t i = 0; i < faults->n; i++)
		strbuf_addf(&diagnosis, "%s the line at %" PRIu64 " %s", i ? ", and" : "",
			    faults->v[i].line,
			    faults->v[i].kind == MEDIA_POISON
				    ? "is poisoned"
				    : "holds what it held before, although it was flushed");
	strbuf_adds(&diagnosis, "\n");
	inner.media = strbuf_str(&words);
	int rc = judge_attempt(r, bad, NULL, &a, err);
	if (rc)
		return rc;
	j->totals->crash_states++;
	j->totals->unique_states++;
	return judge_tell(r, &inner, bad, NULL, &a, RUN_NO_OPERATION, strbuf_str(&diagnosis), err);
}

int bad_media_put(const struct trace *t, const struct image *base, const char *text,
		  struct crash_state *state, struct err *err)
{
	auto_media_faults faults = { 0 };
	auto_image old = IMAGE_INIT;
	int rc = media_parse(text, base->size, &faults, err);

	if (rc)
		return rc;
	image_before(t, base, last_begin(t, state->point), &old);
	media_apply(&faults, &old, &state->image);
	state->hash = image_hash(&state->image);
	return 0;
}

int bad_media_replay(struct run *r, const struct state_judge *j, const char *text,
		     struct crash_state *state, struct err *err)
{
	auto_media_faults faults = { 0 };
	int rc = bad_media_put(&r->trace, j->base, text, state, err);

	if (!rc)
		rc = media_parse(text, j->base->size, &faults, err);
	return rc ? rc : judge_faults(r, j, state, &faults, err);
}

/* ---- all of them ---- */

/* 1 if it was tried, 0 if it makes no other state, or one that was there. */
static int try_fault(struct run *r, const struct state_judge *j, const struct crash_state *state,
		     struct media_fault fault, struct bad_media *m, struct err *err)
{
	auto_crash_state bad = CRASH_STATE_INIT;
	auto_media_faults one = { 0 };

	vec_push(&one, fault);
	copy_state(state, &bad);
	media_apply(&one, &m->old, &bad.image);
	bad.hash = image_hash(&bad.image);
	if (hash_eq(bad.hash, state->hash) || !hashset_insert(&m->tried, bad.hash))
		return 0;
	int rc = judge_faults(r, j, &bad, &one, err);
	return rc ? rc : 1;
}

/* Of more lines than may be tried those are taken that lie evenly among them. */
static int try_lines(struct run *r, const struct state_judge *j, const struct crash_state *state,
		     const struct media_lines *lines, enum media_kind kind, struct bad_media *m,
		     struct err *err)
{
	uint64_t n = min((uint64_t)lines->n, r->opts.media_max);
	int rc = 0;

	for (uint64_t i = 0; i < n && rc >= 0; i++) {
		struct media_fault fault = { kind, lines->v[i * lines->n / n] };

		if (r->opts.budget && m->states >= r->opts.budget) {
			n = i;
			break;
		}
		rc = try_fault(r, j, state, fault, m, err);
		m->states += rc == 1;
	}
	if (n < lines->n) {
		j->totals->left_out += (double)(lines->n - n);
		j->totals->budget_hit = true;
	}
	return min(rc, 0);
}

int bad_media_explore(struct run *r, const struct state_judge *j, const struct crash_state *state,
		      struct bad_media *m, struct err *err)
{
	uint64_t from = last_begin(&r->trace, state->point);
	struct media_lines lines = { 0 };
	int rc = 0;

	if (state->layer != CRASH_NONE && state->layer != CRASH_ALL)
		return 0;
	if (!m->old.size || m->old_at != from) {
		image_release(&m->old);
		image_before(&r->trace, j->base, from, &m->old);
		m->old_at = from;
	}
	media_lines(&r->trace, from, state->point, &lines);
	for (unsigned k = MEDIA_POISON; k <= MEDIA_STALE && !rc; k++)
		if (r->opts.media & 1u << k)
			rc = try_lines(r, j, state, &lines, (enum media_kind)k, m, err);
	vec_release(&lines);
	return rc;
}
