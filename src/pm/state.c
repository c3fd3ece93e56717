/* SPDX-License-Identifier: MIT */
/*
 * state.c - builds one crash state with its media fault, checks it again, and makes its losses
 * fewer.
 */
#include "pm/state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "pm/cause.h"
#include "search/bad_lines.h"
#include "search/flight.h"

/* ---- building ---- */

/* Finds the run of the state's trace: this one, or one of its recoveries. */
static int find_run(const struct pm_run *r, const char **id, struct pm_state *out, struct err *err)
{
	const char *whole = *id;
	auto_free char *dir = case_nested(r->dir, whole);

	*id = case_state_within(whole);
	out->run = r;
	out->prefix = xmemdupz(whole, (size_t)(*id - whole));
	if (!dir)
		return 0;
	out->nested = xcalloc(1, sizeof(*out->nested));
	out->run = out->nested;
	return pm_run_load(dir, out->nested, err);
}

static int put_fault(struct pm_state *out, struct err *err)
{
	const struct pm_run *r = out->run;
	auto_call(crash_points_release) struct crash_points points = { 0 };

	pm_run_points(r, &points);
	return bad_lines_put(&r->trace, &r->base, pm_point_before(&points, out->s.point),
			     out->fault, &out->s, err);
}

int pm_state_load(const struct pm_run *r, const char *id, struct pm_state *out, struct err *err)
{
	*out = (struct pm_state){ 0 };
	int rc = find_run(r, &id, out, err);
	auto_free char *alone = xstrdup(id);
	char *slash = strchr(alone, '/');

	out->fault = xstrdup(slash ? slash + 1 : "");
	if (slash)
		*slash = '\0';
	if (!rc) {
		struct crash_opts opts = pm_run_crash(out->run);

		rc = crash_replay(&out->run->trace, &opts, alone, &out->s, err);
	}
	if (!rc && slash)
		rc = put_fault(out, err);
	if (rc)
		pm_state_release(out);
	return rc;
}

void pm_state_release(struct pm_state *s)
{
	if (s->nested)
		pm_run_release(s->nested);
	free(s->nested);
	crash_state_release(&s->s);
	free(s->prefix);
	free(s->fault);
	*s = (struct pm_state){ 0 };
}

bool pm_shows(const struct pm_run *r, const struct pm_case *c, const struct pm_failure *f)
{
	return f->end != CHECK_PASSED || (r->plan.dump && streq(strbuf_str(&c->said), f->said));
}

/* ---- making it smaller ---- */

/* Returns the id, with the recovery and the bad line of the state. */
static char *set_id(const struct pm_state *s, const struct in_flight *f)
{
	struct strbuf id = STRBUF_INIT;

	strbuf_adds(&id, s->prefix);
	flight_id(f, &id);
	if (*s->fault)
		strbuf_addf(&id, "/%s", s->fault);
	return strbuf_detach(&id);
}

struct state_shrinking {
	const struct pm_run *run;
	struct pm_case *c;
	struct pm_state now; /* the smallest that shows the finding */
	struct case_shrunk *out;
};

static int shows_at(struct state_shrinking *x, const char *id, bool *shown, struct err *err)
{
	auto_call(pm_failure_release) struct pm_failure f = { 0 };
	int rc = pm_search_one(x->run, id, &f, err);

	x->out->tried++;
	if (!rc)
		*shown = pm_shows(x->run, x->c, &f);
	return rc;
}

/* Tries the state without the loss of `at`, if the model allows that: another store may need it. */
static int try_without(struct state_shrinking *x, struct in_flight *f, size_t at, struct err *err)
{
	struct err cannot = ERR_INIT;
	struct pm_state next;
	bool shown = false;

	f->pieces.v[at].lost = false;
	auto_free char *id = set_id(&x->now, f);
	int rc = 0;
	if (!pm_state_load(x->run, id, &next, &cannot)) {
		if (next.s.lost.n < x->now.s.lost.n)
			rc = shows_at(x, id, &shown, err);
		if (!rc && shown) {
			pm_state_release(&x->now);
			x->now = next;
			free(x->c->state);
			x->c->state = steal(id);
		} else {
			pm_state_release(&next);
		}
	}
	f->pieces.v[at].lost = !shown;
	return rc;
}

/* Describes the remaining losses. */
static void describe(struct state_shrinking *x)
{
	auto_strbuf detail = STRBUF_INIT;
	const struct crash_state *s = &x->now.s;
	const struct pm_run *r = x->now.run;
	auto_vec struct pm_extents all = { 0 };

	pm_extents_of(&r->trace, s->gone.v, s->gone.n, &all);
	for (size_t i = 0; i < all.n; i++) {
		struct pm_loss loss =
			pm_loss_of(&r->trace, all.v[i].event, s->point, s->gone.v, s->gone.n);

		pm_store_words(&r->trace, &r->where, "lost", &all.v[i], &loss, &detail);
	}
	free(x->c->detail);
	x->c->detail = xstrdup(strbuf_str(&detail));
	x->c->states = 1;
	if (strncmp(x->c->title, "fails if ", 9) != 0 || *x->now.fault)
		return;
	const char *rest = strstr(x->c->title, " lost");
	char *title = xasprintf("fails if %zu %s%s", s->lost.n,
				plural(s->lost.n, "store is", "stores are"), rest ? rest : " lost");

	free(x->c->title);
	x->c->title = title;
}

int pm_shrink(const struct pm_run *r, struct pm_case *c, uint64_t max_tries,
	      struct case_shrunk *out, struct err *err)
{
	struct state_shrinking x = { .run = r, .c = c, .out = out };
	struct in_flight flight = { 0 };
	bool shown = false;

	*out = (struct case_shrunk){ 0 };
	int rc = pm_state_load(r, c->state, &x.now, err);
	if (rc)
		return rc;
	out->lost_before = x.now.s.lost.n;
	rc = shows_at(&x, c->state, &shown, err);
	flight_of(&x.now.s, &flight);
	/* A store needs the earlier ones to its line, so the first is restored first. */
	for (size_t i = 0; !rc && shown && i < flight.pieces.n && out->tried < max_tries; i++)
		if (flight.pieces.v[i].lost)
			rc = try_without(&x, &flight, i, err);
	out->lost_after = x.now.s.lost.n;
	if (!rc && shown && out->lost_after < out->lost_before)
		describe(&x);
	vec_release(&flight.pieces);
	pm_state_release(&x.now);
	return rc ? rc : !shown;
}
