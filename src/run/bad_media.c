/* SPDX-License-Identifier: MIT */
/* bad_media.c - puts each media fault on a crash state, and tries the recovery of that. */
#include "run/bad_media.h"

#include <errno.h>
#include <inttypes.h>

/* Where the operation began in which, or right after which, the power failed. */
static uint64_t last_begin(const struct trace *t, uint64_t point)
{
	uint64_t at = 0;

	for (uint64_t i = 0; i < point && i < t->events.n; i++)
		if (t->events.v[i].kind == EV_OP_BEGIN)
			at = i;
	return at;
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
	return bad_lines_put(t, base, last_begin(t, state->point), text, state, err);
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

static int check_fault(void *ctx, const struct crash_state *state, const struct image *img,
		       const struct media_faults *one, struct err *err)
{
	struct bad_media *m = ctx;
	struct crash_state bad = *state;

	if (m->r->opts.budget && m->states >= m->r->opts.budget)
		return 1;
	bad.image = *img;
	bad.hash = image_hash(img);
	m->states++;
	return judge_faults(m->r, m->j, &bad, one, err);
}

void bad_media_init(struct bad_media *m, struct run *r, const struct state_judge *j)
{
	*m = (struct bad_media){ .lines = { .trace = &r->trace,
					    .base = j->base,
					    .kinds = r->opts.media,
					    .max = r->opts.media_max,
					    .check = check_fault,
					    .ctx = m },
				 .r = r,
				 .j = j };
}

int bad_media_explore(struct bad_media *m, const struct crash_state *state, struct err *err)
{
	uint64_t left_out;
	int rc = bad_lines_explore(&m->lines, state, last_begin(&m->r->trace, state->point),
				   &left_out, err);

	m->j->totals->left_out += (double)left_out;
	m->j->totals->budget_hit |= left_out > 0;
	return rc;
}
