/* SPDX-License-Identifier: MIT */
/* search.c - the loop over crash states: turns, the budget, and what is tried on a good state. */
#include "search/search.h"

#include "search/second.h"

int search_open(struct crash_search *s, struct err *err)
{
	s->left = s->states.budget;
	s->firsts = s->points.n;
	s->states.points = s->points.v;
	s->states.n_points = s->points.n;
	if (s->reads) {
		s->states.vary = reads_vary;
		s->states.vary_ctx = s->reads;
	}
	return crash_new(s->trace, &s->states, &s->crash, err);
}

void search_close(struct crash_search *s)
{
	crash_free(s->crash);
	s->crash = NULL;
	crash_points_release(&s->points);
}

/* ---- the budget ---- */

/* True if the budget is spent. Without second crashes, the enumerator keeps the budget. */
static bool is_spent(const struct crash_search *s)
{
	return s->again && s->states.budget && !s->left;
}

/* A state of a second crash counts in the budget of the search of first crashes, too. */
static void spend(struct crash_search *s)
{
	for (; s; s = s->within) {
		s->left -= s->left > 0;
		assert(s->left <= s->states.budget); /* G4 */
	}
}

void search_count(const struct crash_search *s, struct search_tally *out)
{
	*out = (struct search_tally){ 0 };
	if (!s->crash)
		return;
	crash_stats(s->crash, &out->states);
	out->budget_hit = out->states.budget_hit || is_spent(s) || s->lines_left_out > 0;
	out->left_out = s->lines_left_out + (out->states.budget_hit ? out->states.left_out : 0);
	assert(out->budget_hit || out->left_out <= 0); /* G3 */
}

/* ---- one state ---- */

/* True for states from which reads are learnt: they come before any that varies single pieces. */
static bool teaches(const struct crash_state *state)
{
	return state->layer == CRASH_NONE || state->layer == CRASH_ALL;
}

static int attempt(struct crash_search *s, const struct crash_state *state, struct err *err)
{
	struct reads_of of = { .point = state->point, .image = state->hash };
	bool learns = s->learn && teaches(state);
	int rc = s->ops->attempt(s->ctx, state, learns ? &of : NULL, err);

	if (rc < 0 || !learns) {
		vec_release(&of.where);
	} else {
		reads_settle(&of);
		vec_push(s->reads, of);
	}
	return rc;
}

static int try_bad_lines(struct crash_search *s, const struct crash_state *state, struct err *err)
{
	uint64_t left_out = 0;
	int rc = bad_lines_explore(s->bad, state, s->ops->since(s->ctx, state->point), &left_out,
				   err);

	s->lines_left_out += (double)left_out;
	if (s->ops->lines_done)
		s->ops->lines_done(s->ctx, left_out);
	return rc;
}

static int try_state(struct crash_search *s, const struct crash_state *state, struct err *err)
{
	int rc = attempt(s, state, err);

	if (rc < 0)
		return rc;
	bool good = !rc;
	rc = 0;
	spend(s);
	s->firsts -= s->firsts > 0;
	/* This first crash and the later ones share the rest of the budget evenly. */
	if (good && s->again && !is_spent(s)) /* G2 */
		rc = s->ops->again(s->ctx, state,
				   s->states.budget ? second_share(s->left, s->firsts) : 0, err);
	if (!rc && good && s->bad) /* G2 */
		rc = try_bad_lines(s, state, err);
	return rc;
}

/* ---- all of them ---- */

static enum search_turn turn_of(struct crash_search *s, const struct crash_state *state)
{
	return s->ops->turn ? s->ops->turn(s->ctx, s->n, state) : SEARCH_TRY;
}

/* True if the search was stopped; a search within a stopped one is stopped, too. */
static bool is_stopped(struct crash_search *s)
{
	s->stopped |= (s->ops->stopped && s->ops->stopped(s->ctx)) ||
		      (s->within && is_stopped(s->within));
	return s->stopped;
}

int search_go(struct crash_search *s, struct err *err)
{
	auto_crash_state state = CRASH_STATE_INIT;
	int rc = s->crash ? 0 : search_open(s, err);

	assert((!s->again || s->ops->again) && (!s->bad || s->ops->since));
	while (!rc && !is_stopped(s) && !is_spent(s) && crash_next(s->crash, &state)) {
		enum search_turn turn = turn_of(s, &state);

		s->stopped |= turn == SEARCH_STOP;
		if (s->stopped)
			break;
		if (turn == SEARCH_TRY)
			rc = try_state(s, &state, err);
		s->n++;
	}
	return rc;
}
