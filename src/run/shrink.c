/* SPDX-License-Identifier: MIT */
/*
 * shrink.c - tries smaller workloads and smaller losses, and keeps the smallest that still fails.
 *
 * S1: `best` always is a workload that showed the problem when it was last run.
 * S2: after hunt() said yes, the run's trace and history are those of the workload it ran, so that
 *     states of the same trace can be checked without running again.
 */
#include "run/shrink.h"

#include <errno.h>

#include "run/replay.h"
#include "run/run_impl.h"
#include "search/flight.h"

enum { RUNS_MAX = 500, AGAIN_MAX = 3, NEAREST = 2 };
#define SHRUNK_FROM "shrunk-from-"

/* The result of a try. Event numbers are those of the run's trace. */
struct seen {
	bool shown;
	bool again; /* only a run can show it again: it was before any crash, or after two */
	enum crash_layer layer;
	struct strbuf id;
	struct in_flight flight;
	struct vec_of(uint64_t) lost; /* or torn, ascending */
};

struct case_shrink {
	const struct stored_case *c;
	const struct shrink_opts *opts;
	struct shrink_result result;
	enum finding_kind kind;
	struct run *run;
	struct workload best;
	struct seen seen;
	const char *dir;     /* where it goes */
	const char *keep_in; /* where the next state that shows it is kept, or NULL */
};

static void say(struct case_shrink *s, char *words)
{
	if (s->opts->step)
		s->opts->step(s->opts->ctx, words);
	free(words);
}

static bool is_stopped(const struct case_shrink *s)
{
	return s->opts->stopped && s->opts->stopped(s->opts->ctx);
}

static bool spent(struct case_shrink *s)
{
	if (is_stopped(s))
		return true;
	uint64_t limit = s->opts->max_runs ? s->opts->max_runs : RUNS_MAX;

	if (s->result.runs + s->result.states < limit)
		return false;
	s->result.budget_hit = true;
	return true;
}

/* ---- one try ---- */

static void note_state(struct seen *seen, const struct run_case *c)
{
	const struct crash_state *state = c->second ? NULL : c->state;

	seen->again = !state;
	vec_clear(&seen->lost);
	strbuf_clear(&seen->id);
	if (!state)
		return;
	seen->layer = state->layer;
	strbuf_adds(&seen->id, strbuf_str(&state->id));
	flight_of(state, &seen->flight);
	for (size_t i = 0; i < seen->flight.pieces.n; i++)
		if (seen->flight.pieces.v[i].lost)
			vec_push(&seen->lost, seen->flight.pieces.v[i].event);
}

/* -ECANCELED ends the run: it has shown what it was run for. */
static int on_found(void *ctx, const struct run_case *c, struct err *err)
{
	struct case_shrink *s = ctx;

	if (!replay_has_kind(c->findings, s->kind))
		return 0;
	s->seen.shown = true;
	note_state(&s->seen, c);
	int rc = s->keep_in ? store_case_alone(s->keep_in, c, &s->run->opts, err) : 0;
	return rc ? rc : -ECANCELED;
}

static void on_phase(void *ctx, const char *what, const char *on)
{
	const struct case_shrink *s = ctx;

	if (s->opts->phase)
		s->opts->phase(s->opts->ctx, what, on);
}

static void on_starting(void *ctx)
{
	on_phase(ctx, "starting a guest", "");
}

static bool on_stopped(void *ctx)
{
	return is_stopped(ctx);
}

static struct run_reporter reporter_of(struct case_shrink *s)
{
	return (struct run_reporter){
		.found = on_found, .ctx = s, .phase = on_phase, .stopped = on_stopped
	};
}

/* 1 if the workload shows the problem, 0 if not; -ECANCELED if it was stopped. */
static int hunt(struct case_shrink *s, const struct workload *w, struct err *err)
{
	struct run_reporter reporter = reporter_of(s);
	struct run_totals totals = { 0 };

	s->result.runs++;
	s->seen.shown = false;
	int rc = run_workload(s->run, w, &reporter, &totals, err);
	if (rc == -ECANCELED && s->seen.shown)
		rc = 0;
	return rc ? rc : s->seen.shown;
}

/* Where a state goes that shows the problem with less than all before: nowhere, or where it is
 * seen. */
static const char *at_once(const struct case_shrink *s)
{
	return s->opts->smaller ? s->dir : NULL;
}

static int tell_smaller(struct case_shrink *s, size_t ops, struct err *err)
{
	return s->opts->smaller ? s->opts->smaller(s->opts->ctx, ops, &s->dir, err) : 0;
}

/* ---- fewer operations ---- */

bool shrink_lacks_handle(const struct workload *so_far, const struct op *op)
{
	for (size_t i = 0; op->def->args[i].kind != ARG_END; i++) {
		bool handle = op->def->args[i].kind == ARG_HANDLE || op->args[i].is_handle;

		if (handle && !workload_handle(so_far, op->args[i].text))
			return true;
	}
	return false;
}

/* A generated name stands for its operations: with fewer of them it would lie. */
static void take_name(const struct workload *w, struct workload *out)
{
	bool less = out->ops.n < w->ops.n &&
		    strncmp(w->name, SHRUNK_FROM, strlen(SHRUNK_FROM)) != 0;
	auto_free char *name = xasprintf("%s%s", less ? SHRUNK_FROM : "", w->name);

	out->name = arena_memdupz(&out->arena, name, min(strlen(name), (size_t)WORKLOAD_NAME_MAX));
	out->named = true;
}

/*
 * Copies the operations of `w` whose `keep` is set into `out`, without those that use a handle that
 * is then never opened. With fewer operations than before, its name says what it was made of.
 */
static void shrink_select(const struct workload *w, const bool *keep, struct workload *out)
{
	workload_clear(out);
	for (size_t i = 0; i < w->ops.n; i++)
		if (keep[i] && !shrink_lacks_handle(out, &w->ops.v[i]))
			workload_add(out, &w->ops.v[i]);
	if (w->named)
		take_name(w, out);
}

/* Tries without operations [from, to) of the best. 1 if that is the best now. */
static int try_without(struct case_shrink *s, size_t from, size_t to, struct err *err)
{
	size_t n = s->best.ops.n;
	auto_free bool *keep = xcalloc(n, sizeof(*keep));
	auto_workload less;

	for (size_t i = 0; i < n; i++)
		keep[i] = i < from || i >= to;
	workload_init(&less);
	shrink_select(&s->best, keep, &less);
	if (!less.ops.n)
		return 0;
	/* A workload that cannot be run shows nothing; whether any can was seen at the start. */
	struct err why = ERR_INIT;
	s->keep_in = at_once(s);
	int rc = hunt(s, &less, &why);
	s->keep_in = NULL;
	if (rc == -EPERM || rc == -ENOMEM || rc == -ENOSPC) {
		*err = why;
		return rc;
	}
	say(s, xasprintf("%zu of %zu operations: %s", less.ops.n, n,
			 rc > 0	   ? "shows again"
			 : rc == 0 ? "does not show"
				   : why.msg));
	if (rc <= 0)
		return 0;
	struct workload old = s->best;
	s->best = less;
	less = old;
	rc = tell_smaller(s, s->best.ops.n, err);
	return rc ? rc : 1;
}

/* One pass over the best with pieces of `size`, the last first. 1 if something could go. */
static int drop_pieces(struct case_shrink *s, size_t size, struct err *err)
{
	int any = 0;

	for (size_t to = s->best.ops.n; to > 0 && !spent(s);) {
		size_t from = to > size ? to - size : 0;
		int rc = to - from < s->best.ops.n ? try_without(s, from, to, err) : 0;

		if (rc < 0)
			return rc;
		any |= rc;
		/* More may have gone than asked for, with their handle. */
		to = min(from, s->best.ops.n);
	}
	return any;
}

static int fewer_operations(struct case_shrink *s, struct err *err)
{
	int rc = 0;

	for (size_t size = s->best.ops.n / 2; size > 1 && rc >= 0; size /= 2)
		rc = drop_pieces(s, size, err);
	while (rc >= 0 && s->best.ops.n > 1 && !spent(s)) {
		rc = drop_pieces(s, 1, err);
		if (!rc)
			break;
	}
	return min(rc, 0);
}

/* ---- fewer lost writes ---- */

struct events vec_of(uint64_t);

/* The id of the state in which of what is in flight exactly `lost` is lost. */
static void make_id(struct seen *seen, const struct events *lost, struct strbuf *out)
{
	for (size_t i = 0, at = 0; i < seen->flight.pieces.n; i++) {
		struct flight_piece *p = &seen->flight.pieces.v[i];

		p->lost = at < lost->n && lost->v[at] == p->event;
		at += p->lost;
	}
	strbuf_clear(out);
	flight_id(&seen->flight, out);
}

/* Checks a state of the trace at hand. 1 if it shows the problem. */
static int try_state(struct case_shrink *s, const char *id, struct err *err)
{
	struct run_reporter reporter = reporter_of(s);
	struct run_totals totals = { 0 };
	auto_crash_state state = CRASH_STATE_INIT;

	s->result.states++;
	s->seen.shown = false;
	int rc = pm_choice_replay(&s->run->opts.pm, &s->run->trace, &s->run->base, id, &state, err);
	if (rc)
		return rc;
	/* The layer says only that the state was rebuilt, not how to find it by running again. */
	if (state.torn.n || streq(id, strbuf_str(&s->seen.id)))
		state.layer = s->seen.layer;
	else
		state.layer = state.lost.n ? CRASH_ALL_BUT : CRASH_ALL;
	rc = check_replayed(s->run, &s->best, &state, NULL, &s->run->base, &reporter, &totals, err);
	if (rc == -ECANCELED && s->seen.shown)
		rc = 0;
	return rc ? rc : s->seen.shown;
}

static int try_lost(struct case_shrink *s, const struct events *lost, size_t before,
		    struct err *err)
{
	auto_strbuf id = STRBUF_INIT;

	make_id(&s->seen, lost, &id);
	s->keep_in = at_once(s);
	int rc = try_state(s, strbuf_str(&id), err);
	s->keep_in = NULL;
	if (rc > 0) {
		int told = tell_smaller(s, s->best.ops.n, err);

		rc = told ? told : rc;
	}
	if (rc >= 0)
		say(s, xasprintf("%zu of %zu lost %s: %s", lost->n, before,
				 plural(before, "write", "writes"),
				 rc ? "shows again" : "does not show"));
	return rc;
}

/* Nothing, one, or two of the writes are lost: the first such state that shows it. */
static int nearest_first(struct case_shrink *s, const struct events *all, struct err *err)
{
	auto_vec struct events few = { 0 };
	int rc = try_lost(s, &few, all->n, err);

	for (size_t i = 0; i < all->n && !rc && all->n > 1 && !spent(s); i++) {
		vec_clear(&few);
		vec_push(&few, all->v[i]);
		rc = try_lost(s, &few, all->n, err);
	}
	for (size_t i = 0; i < all->n && !rc && all->n > 2; i++)
		for (size_t j = i + 1; j < all->n && !rc && !spent(s); j++) {
			vec_clear(&few);
			vec_push(&few, all->v[i]);
			vec_push(&few, all->v[j]);
			rc = try_lost(s, &few, all->n, err);
		}
	return rc;
}

/* Lets pieces of what is lost survive, as long as it shows. */
static int piece_by_piece(struct case_shrink *s, struct events *lost, struct err *err)
{
	auto_vec struct events less = { 0 };
	int rc = 0;

	for (size_t size = max(lost->n / 2, (size_t)1); size && rc >= 0; size /= 2)
		for (size_t to = lost->n; to > 0 && rc >= 0 && !spent(s);) {
			size_t from = to > size ? to - size : 0;

			vec_clear(&less);
			for (size_t i = 0; i < lost->n; i++)
				if (i < from || i >= to)
					vec_push(&less, lost->v[i]);
			/* So few were tried one by one, as nearest_first() came first. */
			rc = less.n > NEAREST ? try_lost(s, &less, lost->n, err) : 0;
			if (rc > 0) {
				struct events old = *lost;
				*lost = less;
				less = old;
			}
			to = from;
		}
	return min(rc, 0);
}

static int fewer_lost(struct case_shrink *s, struct err *err)
{
	auto_vec struct events lost = { 0 };
	auto_strbuf found = STRBUF_INIT;

	for (size_t i = 0; i < s->seen.lost.n; i++)
		vec_push(&lost, s->seen.lost.v[i]);
	strbuf_adds(&found, strbuf_str(&s->seen.id));
	size_t all = lost.n;
	int rc = nearest_first(s, &lost, err);
	if (rc == 0) {
		rc = piece_by_piece(s, &lost, err);
		/* Torn writes that may be neither whole nor lost: as it was found, then. */
		if (!rc && lost.n < all)
			make_id(&s->seen, &lost, &found);
	} else if (rc > 0) {
		strbuf_clear(&found);
		strbuf_adds(&found, strbuf_str(&s->seen.id));
		rc = 0;
	}
	if (!rc) {
		strbuf_clear(&s->seen.id);
		strbuf_adds(&s->seen.id, strbuf_str(&found));
	}
	return rc;
}

/* ---- all of it ---- */

/* Runs the best again, until its trace is at hand and it shows. */
static int settle(struct case_shrink *s, struct err *err)
{
	int rc = 0;

	for (unsigned i = 0; i < AGAIN_MAX && !rc; i++)
		rc = is_stopped(s) ? -ECANCELED : hunt(s, &s->best, err);
	return rc;
}

/* 1 if it was kept. */
static int keep(struct case_shrink *s, struct err *err)
{
	auto_strbuf id = STRBUF_INIT;

	s->keep_in = s->dir;
	if (s->seen.again)
		return settle(s, err);
	strbuf_adds(&id, strbuf_str(&s->seen.id));
	return try_state(s, strbuf_str(&id), err);
}

static int shrink(struct case_shrink *s, struct err *err)
{
	int rc = settle(s, err);

	say(s, xasprintf("the whole workload, %zu operations: %s", s->best.ops.n,
			 rc > 0 ? "shows again" : "does not show"));
	if (rc <= 0)
		return rc < 0 ? rc : 1;
	s->result.lost_before = s->seen.lost.n;
	rc = fewer_operations(s, err);
	if (!rc)
		rc = settle(s, err);
	if (rc > 0 && s->seen.lost.n)
		rc = fewer_lost(s, err) ? -EIO : 1;
	if (rc > 0 && is_stopped(s))
		rc = -ECANCELED;
	if (rc > 0)
		rc = keep(s, err);
	if (rc <= 0)
		return rc < 0 ? rc : err_set(err, -EAGAIN, "%s shows only now and then", s->c->dir);
	s->result.ops_after = s->best.ops.n;
	s->result.lost_after = s->seen.lost.n;
	return tell_smaller(s, s->best.ops.n, err);
}

int shrink_case(const struct stored_case *c, const struct shrink_opts *opts, const char *dir,
		struct shrink_result *out, struct err *err)
{
	struct case_shrink s = {
		.c = c, .opts = opts, .kind = stored_case_first(c)->kind, .dir = dir
	};
	struct run_opts run_opts;

	if (c->media)
		return err_set(err, -EINVAL,
			       "%s has a media fault, of a line that only this workload writes: it "
			       "cannot be shrunk",
			       c->dir);
	int rc = replay_opts(c, &run_opts, err);

	run_opts.target.starting = on_starting;
	run_opts.target.starting_ctx = &s;
	workload_init(&s.best);
	auto_free bool *all = xcalloc(c->workload.ops.n + 1, sizeof(*all));
	for (size_t i = 0; i < c->workload.ops.n; i++)
		all[i] = true;
	shrink_select(&c->workload, all, &s.best);
	s.result.ops_before = s.best.ops.n;
	if (!rc)
		rc = run_open(&run_opts, &s.run, err);
	if (!rc)
		rc = shrink(&s, err);
	run_close(s.run);
	workload_release(&s.best);
	strbuf_release(&s.seen.id);
	vec_release(&s.seen.flight.pieces);
	vec_release(&s.seen.lost);
	*out = s.result;
	return rc;
}
