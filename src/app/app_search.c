/* SPDX-License-Identifier: MIT */
/* app_search.c - hands states to the checkers, explains failures, and groups them by cause. */
#include "app/app_search.h"

#include <errno.h>

enum {
	SHOWN_MIN = 2, /* checks of a state that is reported; more if they differ */
	SHOWN_MAX = 6,
	END_MAX = 6, /* checks without a crash, after checks of a state have differed */
};

/*
 * Failing states with the same pattern (states.h) and harm. A few states of such a pattern are
 * explained; the others are counted.
 */
struct known {
	struct hash128 pattern;
	enum app_harm harm;
	size_t finding;
};

struct searching {
	const struct app_search_opts *o;
	struct search_result *out;
	struct checkers_opts checkers;
	struct checker *again; /* checks states once more */
	struct roles roles;
	struct vec_of(struct known) knowns;
	uint64_t counted; /* findings that count for the limit */
	uint64_t start_ns;
	struct verdict verdict, last; /* of the last check, and of the last one in explaining */
	bool passed;		      /* the last check passed */
	bool faulty;		      /* the check fails without a crash, too */
};

/* ---- one check ---- */

static bool is_told_to_stop(void *ctx)
{
	const struct app_search_opts *o = ctx;

	return o->stop && *o->stop;
}

static struct checkers_opts checkers_of(const struct app_search_opts *o)
{
	struct checkers_opts c = o->checkers;

	c.stop = is_told_to_stop;
	c.ctx = (void *)(uintptr_t)o;
	return c;
}

/* Asks a process that stays for such questions. */
static int ask(const struct app_search_opts *o, struct checker *k, const char *id,
	       struct verdict *out, struct err *err)
{
	auto_call(check_result_release) struct check_result r = { 0 };
	auto_call(app_state_release) struct app_state s = { 0 };
	int rc = states_replay(o->h, id, &s, err);

	if (!rc)
		rc = checker_ask(k, id, &r, err);
	if (rc == -EINTR)
		rc = err_set(err, rc, "%s",
			     o->stop && *o->stop ? "stopped by a signal" : "the time is up");
	if (!rc)
		judge_verdict(o->judge, s.acked, &r, out);
	if (!rc && out->error)
		rc = err_set(err, -EIO, "%.700s", out->seen);
	return rc;
}

int search_one(const struct app_search_opts *o, const char *id, struct verdict *out,
	       struct err *err)
{
	struct checkers_opts checkers = checkers_of(o);
	struct checker *k = checker_new(o->h, &checkers);
	int rc = ask(o, k, id, out, err);

	checker_free(k);
	return rc;
}

int search_end_fails(const struct app_search_opts *o, const char *advice, const struct verdict *v,
		     struct err *err)
{
	auto_strbuf said = STRBUF_INIT;

	if (!advice && o->judge->plan->query && v->harm == APP_ROLLED_BACK)
		return err_set(err, -EINVAL,
			       "%s, and nothing crashed: a line that was acknowledged must stay "
			       "visible; if the run changes or removes what it acknowledged, use "
			       "--check",
			       v->seen);
	strbuf_add_flat(&said, strbuf_str(&v->said));
	return err_set(err, -EINVAL, "the %s fails %s: %s (%.100s: %.300s)",
		       app_plan_asks(o->judge->plan),
		       advice ? "where the application had come up once after a crash, without a "
				"second one"
			      : "on the directory as the run left it, without any crash",
		       advice ? advice : "mend that first", v->seen, strbuf_str(&said));
}

int search_end(const struct app_search_opts *o, const char *advice, struct err *err)
{
	auto_free char *id = xasprintf("1.%zu", o->h->trace->events.n);
	auto_call(verdict_release) struct verdict v = { 0 };
	int rc = search_one(o, id, &v, err);

	if (!rc && v.fails)
		rc = search_end_fails(o, advice, &v, err);
	return rc;
}

/* ---- failures ---- */

static void note_error(struct searching *s, const char *words)
{
	struct search_totals *t = &s->out->totals;

	if (!t->errors++)
		snprintf(t->error, sizeof(t->error), "%.760s", words);
}

static int check_again(void *ctx, const char *id, enum app_harm *harm, struct err *err)
{
	struct searching *s = ctx;
	int rc = ask(s->o, s->again, id, &s->last, err);

	*harm = s->last.harm;
	return rc ? rc : s->last.fails;
}

static bool is_explained(const struct searching *s, size_t finding)
{
	return s->out->found.v[finding].why.kind != EXPLAIN_NOT;
}

/* Returns the finding with this cause, or SIZE_MAX. */
static size_t find_cause(const struct searching *s, const char *cause)
{
	for (size_t i = 0; i < s->out->found.n; i++)
		if (is_explained(s, i) && streq(s->out->found.v[i].why.cause, cause))
			return i;
	return SIZE_MAX;
}

/* Checks a state several times; checks that `f` has counted are not repeated. */
static int show(struct searching *s, const struct explained *why, struct search_found *f,
		struct err *err)
{
	unsigned most = SHOWN_MIN;

	while (f->asked < most) {
		int rc = check_again(s, why->id, &s->last.harm, err);

		if (rc < 0)
			return rc;
		f->asked++;
		if (rc && s->last.harm == why->harm) {
			verdict_release(&f->verdict);
			f->verdict = s->last;
			s->last = (struct verdict){ 0 };
			f->shown++;
		}
		if (f->shown < f->asked)
			most = SHOWN_MAX;
	}
	return 0;
}

void search_found_release(struct search_found *f)
{
	explained_release(&f->why);
	verdict_release(&f->verdict);
	*f = (struct search_found){ 0 };
}

/* Adds the finding, and returns its index. */
static size_t add_found(struct searching *s, struct search_found *f)
{
	vec_push(&s->out->found, *f);
	*f = (struct search_found){ 0 };
	s->counted += !s->o->found || s->o->found(s->o->ctx, &vec_last(&s->out->found));
	return s->out->found.n - 1;
}

/* Adds a finding. A failure that does not show again is none: `at` is then SIZE_MAX. */
static int add_explained(struct searching *s, struct explained *why, size_t *at, struct err *err)
{
	auto_call(search_found_release) struct search_found f = { 0 };
	int rc = show(s, why, &f, err);

	*at = SIZE_MAX;
	if (!rc && f.shown) {
		f.why = *why;
		*why = (struct explained){ 0 };
		*at = add_found(s, &f);
	}
	return rc;
}

static struct explain_opts explain_opts_of(struct searching *s)
{
	return (struct explain_opts){
		.h = s->o->h,
		.made = s->o->made,
		.roles = &s->roles,
		.check = check_again,
		.ctx = s,
	};
}

static int explain_state(struct searching *s, const struct app_state *state, enum app_harm harm,
			 size_t *at, struct err *err)
{
	struct explain_opts o = explain_opts_of(s);
	auto_call(explained_release) struct explained why = { 0 };

	for (size_t i = 0; i < s->out->found.n; i++) {
		if (s->out->found.v[i].why.harm != harm || !is_explained(s, i))
			continue;
		int same = explain_same(&o, state, &s->out->found.v[i].why, err);

		if (same < 0)
			return same;
		if (same) {
			*at = i;
			return 0;
		}
	}
	int rc = explain(&o, state, harm, &why, err);
	if (rc)
		return rc;
	*at = find_cause(s, why.cause);
	if (*at == SIZE_MAX)
		rc = add_explained(s, &why, at, err);
	return rc;
}

/*
 * True if the finding may explain the state. A failure before the first operation does not explain
 * the loss of acknowledged data, nor does a state whose checks differ explain another failure: only
 * another such state, `unsteady`, is counted there.
 */
static bool speaks_of(const struct search_found *f, const struct app_state *state, bool unsteady)
{
	return unsteady ? f->why.unsteady
			: !f->why.unsteady && (f->why.kind != EXPLAIN_START || !state->acked);
}

static size_t known_finding(const struct searching *s, const struct app_state *state,
			    enum app_harm harm, bool unsteady)
{
	const struct known *k = vec_find(
		i, &s->knowns,
		s->knowns.v[i].harm == harm && hash_eq(s->knowns.v[i].pattern, state->pattern) &&
			speaks_of(&s->out->found.v[s->knowns.v[i].finding], state, unsteady));

	return k ? k->finding : SIZE_MAX;
}

/* Makes a finding of a state that has just failed, before anything is explained (F1). */
static int hold(struct searching *s, const struct app_state *state, struct search_found *f,
		struct err *err)
{
	struct explain_opts o = explain_opts_of(s);
	int rc = explain_not(&o, state, s->verdict.harm, &f->why, err);

	if (rc)
		return rc;
	f->verdict = s->verdict;
	s->verdict = (struct verdict){ 0 };
	f->shown = f->asked = 1;
	f->states = 1; /* for the callback; the caller counts the states below */
	if (s->o->failed)
		s->o->failed(s->o->ctx, f);
	f->states = 0;
	return 0;
}

/*
 * Finds the finding of the state; SIZE_MAX if the reason is unknown, as checks of the state have
 * differed.
 */
static int understand(struct searching *s, const struct app_state *state, struct search_found *held,
		      size_t *at, struct err *err)
{
	int rc = show(s, &held->why, held, err);

	*at = SIZE_MAX;
	if (rc || held->shown < held->asked)
		return rc;
	return explain_state(s, state, held->why.harm, at, err);
}

/*
 * Sets `faulty` if the check sometimes fails on the final directory of the run, where it may have
 * passed by chance before: the check is then at fault, and a state that fails once means nothing.
 */
static int try_end(struct searching *s, struct err *err)
{
	auto_free char *id = xasprintf("1.%zu", s->o->h->trace->events.n);

	for (unsigned i = 0; i < END_MAX && !s->faulty; i++) {
		enum app_harm harm;
		int rc = check_again(s, id, &harm, err);

		if (rc < 0)
			return rc;
		s->faulty = rc;
	}
	return 0;
}

/* F3. Finds the finding of an earlier similar state, a new one, or none (SIZE_MAX). */
static int take_unsteady(struct searching *s, const struct app_state *state,
			 struct search_found *held, size_t *at, struct err *err)
{
	*at = known_finding(s, state, held->why.harm, true);
	if (*at != SIZE_MAX)
		return 0;
	int rc = try_end(s, err);
	if (rc)
		return rc;
	if (s->faulty) {
		s->out->totals.faulty++;
		return 0;
	}
	held->why.unsteady = true;
	s->out->totals.unexplained++;
	s->out->totals.unsteady++;
	*at = add_found(s, held);
	return 0;
}

static char *cut_words(const struct searching *s, const struct err *err)
{
	if (err->code != -EINTR)
		return xasprintf("an error (%.300s)", err->msg);
	return xstrdup(s->out->totals.by_signal ? "a signal" : "the end of --time");
}

/* Finds the finding of a failing state of an unknown pattern. */
static int take_new(struct searching *s, const struct app_state *state, size_t *at, struct err *err)
{
	auto_call(search_found_release) struct search_found held = { 0 };
	size_t before = s->out->found.n;
	int rc = hold(s, state, &held, err);

	if (rc)
		return rc;
	rc = understand(s, state, &held, at, err);
	if (!rc && *at == SIZE_MAX)
		rc = take_unsteady(s, state, &held, at, err);
	if (rc) { /* F2 */
		held.why.cut_by = cut_words(s, err);
		s->out->totals.unexplained++;
		*at = add_found(s, &held);
	} else if (s->out->found.n == before && s->o->dropped) {
		s->o->dropped(s->o->ctx);
	}
	return rc;
}

static int take_failing(struct searching *s, const struct app_state *state, struct err *err)
{
	enum app_harm harm = s->verdict.harm;
	size_t at = known_finding(s, state, harm, false);
	int rc = 0;

	if (at == SIZE_MAX) {
		rc = take_new(s, state, &at, err);
		if (at == SIZE_MAX)
			return rc;
		vec_push(&s->knowns, (struct known){ state->pattern, harm, at });
	}
	s->out->found.v[at].states++;
	return rc;
}

static int on_done(void *ctx, const struct app_state *state, const struct check_result *r)
{
	struct searching *s = ctx;
	struct search_totals *t = &s->out->totals;
	struct err err = ERR_INIT;

	judge_verdict(s->o->judge, state->acked, r, &s->verdict);
	s->passed = !s->verdict.error && !s->verdict.fails;
	if (s->verdict.error) {
		note_error(s, s->verdict.seen);
	} else {
		t->checked++;
		t->failing += s->verdict.fails;
		t->covered += state->covers;
	}
	t->left += r->left_processes;
	/* After the limit, failing states are only counted. */
	if (s->verdict.fails && !(s->o->limit && s->counted >= s->o->limit) &&
	    take_failing(s, state, &err) && err.code != -EINTR)
		note_error(s, err.msg);
	if (s->o->progress)
		s->o->progress(s->o->ctx, t, s->out->found.n);
	return 0;
}

/* Called after on_done() for the same state; a query may have succeeded with a wrong answer. */
static void on_changed(void *ctx, const struct app_state *state, const struct app_change *change)
{
	const struct searching *s = ctx;

	if (s->passed)
		s->o->changed(s->o->ctx, state, change);
}

static bool must_stop(void *ctx)
{
	struct searching *s = ctx;
	const struct app_search_opts *o = s->o;
	struct search_totals *t = &s->out->totals;

	if (o->stop && *o->stop)
		t->by_signal = true;
	t->stopped |= t->by_signal || (o->time_ns && util_now_ns() - s->start_ns > o->time_ns) ||
		      (o->limit && s->counted >= o->limit);
	return t->stopped;
}

void search_result_release(struct search_result *r)
{
	for (size_t i = 0; i < r->found.n; i++)
		search_found_release(&r->found.v[i]);
	vec_release(&r->found);
}

int search(const struct app_search_opts *o, struct search_result *out, struct err *err)
{
	struct searching s = { .o = o, .out = out, .start_ns = util_now_ns() };
	struct checkers_stats stats = { 0 };
	struct states_opts which = o->states;
	struct states *states = NULL;

	which.no_trees = true;
	which.stop = must_stop;
	which.stop_ctx = &s;
	int rc = states_new(o->h, &which, &states, err);
	if (rc)
		return rc;
	roles_init(&s.roles, o->h);
	s.checkers = checkers_of(o);
	s.checkers.done = on_done;
	s.checkers.changed = o->changed ? on_changed : NULL;
	s.checkers.stop = must_stop;
	s.checkers.ctx = &s;
	s.again = checker_new(o->h, &s.checkers);
	rc = checkers_run(o->h, states, &s.checkers, &stats, err);
	out->totals.stopped |= rc != 0;
	checker_free(s.again);
	states_stats(states, &out->totals.states);
	out->totals.unlike = stats.unlike;
	states_free(states);
	verdict_release(&s.verdict);
	verdict_release(&s.last);
	vec_release(&s.knowns);
	roles_release(&s.roles);
	return rc;
}

/* ---- one state ---- */

static int explain_one(struct searching *s, const struct app_state *state, const char *id,
		       enum app_harm harm, unsigned checks_max, struct search_found *out,
		       struct err *err)
{
	struct explain_opts how = explain_opts_of(s);
	enum app_harm seen;
	int rc = check_again(s, id, &seen, err);

	if (rc <= 0 || seen != harm)
		return rc < 0 ? rc : 1;
	how.checks_max = checks_max;
	rc = explain(&how, state, harm, &out->why, err);
	if (!rc)
		rc = show(s, &out->why, out, err);
	return rc ? rc : !out->shown;
}

int search_again(const struct app_search_opts *o, const char *id, enum app_harm harm,
		 unsigned checks_max, struct search_found *out, struct err *err)
{
	struct searching s = { .o = o, .checkers = checkers_of(o) };
	struct app_state state = { 0 };
	int rc = states_replay(o->h, id, &state, err);

	if (rc)
		return rc;
	s.again = checker_new(o->h, &s.checkers);
	roles_init(&s.roles, o->h);
	rc = explain_one(&s, &state, id, harm, checks_max, out, err);
	checker_free(s.again);
	roles_release(&s.roles);
	verdict_release(&s.last);
	app_state_release(&state);
	return rc;
}
