/* SPDX-License-Identifier: MIT */
/* states.c - crash states of a recorded run: which, and what each of them recovers to. */
#include "run/attempt.h"
#include "run/reads.h"

/* ---- crash points ---- */

/* The part of the trace in which operations ran: mounting and unmounting are not under test. */
void operations_span(const struct trace *t, uint64_t *from, uint64_t *to)
{
	*from = *to = 0;
	for (size_t i = 0; i < t->events.n; i++) {
		enum event_kind kind = t->events.v[i].kind;

		if (kind == EV_OP_BEGIN && !*from)
			*from = i + 1;
		if (kind == EV_OP_END || kind == EV_PERSIST)
			*to = i + 1;
	}
}

/* Right before and after what orders writes: there most is in flight, or has just landed. */
static void points_around_flushes(const struct trace *t, struct crash_points *out)
{
	for (size_t i = 0; i < t->events.n; i++) {
		const struct event *ev = &t->events.v[i];

		if (ev->kind == EV_FLUSH ||
		    (ev->kind == EV_WRITE && ev->flags & (EV_PREFLUSH | EV_FUA))) {
			vec_push(out, i);
			vec_push(out, i + 1);
		}
	}
}

static void keep_span(struct crash_points *p, uint64_t from, uint64_t to)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++)
		if (p->v[i] >= from && p->v[i] <= to)
			p->v[n++] = p->v[i];
	p->n = n;
}

/*
 * Every write of recovery, and around what orders them: it is short, and the file system is at its
 * weakest there.
 */
static void choose_recovery_points(const struct trace *t, struct crash_points *out)
{
	points_around_flushes(t, out);
	crash_points_writes(t, out);
	keep_span(out, 0, attempt_walked(t));
}

static void choose_points(const struct trace *t, unsigned modes, struct crash_points *out)
{
	uint64_t from, to;

	operations_span(t, &from, &to);
	if (modes & (RUN_PREFIX))
		crash_points_writes(t, out);
	if (modes & (RUN_REORDER | RUN_TORN)) {
		points_around_flushes(t, out);
		crash_points_ops(t, out); /* sorts, and drops what is there twice */
	}
	if (modes & (RUN_PERSIST | RUN_LAST | RUN_PREFIX | RUN_REORDER))
		crash_points_persist(t, out);
	keep_span(out, from, to);
	if (modes & RUN_LAST && out->n)
		out->v[0] = out->v[out->n - 1], out->n = 1;
}

static unsigned choose_layers(unsigned modes)
{
	unsigned layers = 0;

	if (modes & (RUN_PERSIST | RUN_LAST))
		layers |= CRASH_WITH_COMPLETED;
	if (modes & RUN_PREFIX)
		layers |= CRASH_WITH_ALL;
	if (modes & RUN_REORDER)
		layers |= CRASH_WITH_WHOLE;
	if (modes & RUN_TORN)
		layers |= CRASH_WITH_WHOLE | CRASH_WITH_TEARS;
	return layers;
}

/* ---- what all of them need ---- */

/* How far the run had come at a crash point. */
static size_t operations_done(const struct trace *t, uint64_t point, bool *under_way)
{
	size_t begun = 0, ended = 0;

	for (size_t i = 0; i < point && i < t->events.n; i++) {
		begun += t->events.v[i].kind == EV_OP_BEGIN;
		ended += t->events.v[i].kind == EV_OP_END;
	}
	*under_way = begun > ended;
	return ended;
}

/* Subsets of many writes are more than a double can count; what is written down is a number. */
static double add_amount(double a, double b)
{
	return min(a + b, 1e300);
}

static void count_states(struct crash *e, struct run_totals *totals)
{
	struct crash_stats stats = { 0 };

	if (!e)
		return;
	crash_stats(e, &stats);
	totals->crash_states += stats.tried;
	totals->pruned = add_amount(totals->pruned, stats.pruned);
	totals->budget_hit |= stats.budget_hit;
	if (stats.budget_hit)
		totals->left_out = add_amount(totals->left_out, stats.left_out);
}

/* What a state is judged by, and who is told. */
struct judge {
	const struct workload *w;
	const struct image *base;
	const struct run_reporter *report;
	struct run_totals *totals;
};

/* The budget is that of the workload: second crashes share it with the first. */
static void spend(struct run *r)
{
	r->budget_left -= r->budget_left > 0;
}

static bool spent(const struct run *r)
{
	return r->opts.modes & RUN_RECOVERY && r->opts.budget && !r->budget_left;
}

static int tell(struct run *r, const struct judge *j, const struct crash_state *state,
		const struct crash_state *second, size_t done, const struct attempt *a,
		struct err *err)
{
	if (!a->findings.n)
		return 0;
	j->totals->findings++;
	return j->report->found(j->report->ctx,
				&(struct run_case){ .target = &r->target,
						    .guarantee = &r->guarantee,
						    .workload = j->w,
						    .trace = &r->trace,
						    .base = j->base,
						    .state = state,
						    .recovery = second ? &r->recovery : NULL,
						    .second = second,
						    .modes = r->opts.modes,
						    .done = done,
						    .history = &r->history,
						    .seen = a->mounted ? a->seen : NULL,
						    .findings = &a->findings,
						    .kernel_log = strbuf_str(&a->kernel_log),
						    .said = strbuf_str(&a->said) },
				err);
}

/* ---- a second crash, while recovering from the first ---- */

/* Recovery that was interrupted must lead where recovery leads that was not. */
static void compare(struct run *r, const struct attempt *first, struct attempt *again)
{
	auto_tree_diff diff = { 0 };
	struct tree_opts opts = r->tree_opts;

	opts.blocks = false; /* preallocation is done as the file system likes */
	tree_diff(first->seen, again->seen, &opts, &diff);
	for (size_t i = 0; i < diff.list.n; i++)
		findings_add(
			&again->findings, FINDING_RECOVERY, xstrdup(diff.list.v[i].path),
			xasprintf("recovering again gives another state: %s", diff.list.v[i].words),
			xstrdup("recovery had been interrupted by a second crash"));
}

static int check_second(struct run *r, const struct judge *j, const struct crash_state *state,
			const struct crash_state *second, const struct promises *p, size_t done,
			const struct attempt *first, struct err *err)
{
	auto_attempt again = ATTEMPT_INIT(&r->seen_again);

	run_phase(r, "recovering again from crash state", strbuf_str(&second->id));
	int rc = attempt_state(r, &second->image, p, NULL, &again, err);

	if (rc)
		return rc;
	/* Where nothing is ordered, a repair that is interrupted may go another way. */
	if (again.mounted && first->mounted && r->guarantee.ordered)
		compare(r, first, &again);
	spend(r);
	j->totals->unique_states++;
	return tell(r, j, state, second, done, &again, err);
}

static int explore_recovery(struct run *r, const struct judge *j, const struct crash_state *state,
			    const struct promises *p, size_t done, const struct attempt *first,
			    struct err *err)
{
	struct crash_points points = { 0 };
	struct crash_opts opts = CRASH_OPTS_INIT;
	auto_crash_state second = CRASH_STATE_INIT;
	auto_crash e = NULL;
	/* What is left of the budget is for this first crash and those to come, alike. */
	uint64_t share = r->opts.budget
				 ? max(r->budget_left / max(r->firsts_left, (size_t)1), (uint64_t)1)
				 : 0;

	choose_recovery_points(&r->recovery, &points);
	opts.base = &state->image;
	opts.points = points.v;
	opts.n_points = points.n;
	opts.layers = choose_layers(r->opts.modes | RUN_REORDER | RUN_PREFIX);
	opts.max_subset = r->max_subset;
	opts.budget = share;
	opts.sample = r->opts.sample;
	opts.seed = r->opts.seed;
	int rc = points.n ? crash_new(&r->recovery, &opts, &e, err) : 0;
	while (!rc && e && crash_next(e, &second))
		rc = check_second(r, j, state, &second, p, done, first, err);
	count_states(e, j->totals);
	crash_points_release(&points);
	return rc;
}

/* ---- one state ---- */

/* Recovers one state and checks it; with a second id, also that of the crash while recovering. */
static int check_state(struct run *r, const struct judge *j, const struct crash_state *state,
		       const struct crash_state *second, struct reads *reads, struct err *err)
{
	auto_attempt a = ATTEMPT_INIT(&r->seen);
	struct promises p = { 0 };
	bool under_way, again = !second && r->opts.modes & RUN_RECOVERY;
	size_t done = operations_done(&r->trace, state->point, &under_way);

	r->report = j->report;
	run_phase(r, "recovering from crash state", strbuf_str(&state->id));

	promises_make(&p, &r->history, &r->guarantee, min(done, r->history.results.n), under_way);
	int rc = attempt_state(r, &state->image, &p, reads || again ? &r->recovery : NULL, &a, err);
	if (!rc && reads)
		reads_learn(reads, state, &r->recovery);
	if (!rc && second) {
		rc = check_second(r, j, state, second, &p, done, &a, err);
	} else if (!rc) {
		spend(r);
		r->firsts_left -= r->firsts_left > 0;
		j->totals->unique_states++;
		rc = tell(r, j, state, NULL, done, &a, err);
		/* What is wrong after one crash is not looked at after two. */
		if (!rc && again && a.mounted && !a.findings.n && !spent(r))
			rc = explore_recovery(r, j, state, &p, done, &a, err);
	}
	promises_release(&p);
	return rc;
}

int check_replayed(struct run *r, const struct workload *w, const struct crash_state *state,
		   const struct crash_state *second, const struct image *base,
		   const struct run_reporter *report, struct run_totals *totals, struct err *err)
{
	struct judge j = { w, base, report, totals };

	return check_state(r, &j, state, second, NULL, err);
}

/* ---- all of them ---- */

/* Whether the enumerator varies single writes, so that it pays to know which of them are read. */
static bool prunes(const struct run *r)
{
	return !r->opts.vary_all && r->opts.modes & (RUN_REORDER | RUN_TORN);
}

/* The states from which it is learnt: they come before any that varies single writes. */
static bool teaches(const struct crash_state *s)
{
	return s->layer == CRASH_NONE || s->layer == CRASH_ALL;
}

int explore_states(struct run *r, const struct workload *w, const struct run_reporter *report,
		   struct run_totals *totals, struct err *err)
{
	struct judge j = { w, &r->base, report, totals };
	struct crash_points points = { 0 };
	struct crash_opts opts = CRASH_OPTS_INIT;
	auto_crash_state state = CRASH_STATE_INIT;
	auto_crash e = NULL;
	struct reads reads = { 0 };

	r->budget_left = r->opts.budget;
	choose_points(&r->trace, r->opts.modes, &points);
	r->firsts_left = points.n;
	opts.base = &r->base;
	opts.points = points.v;
	opts.n_points = points.n;
	opts.layers = choose_layers(r->opts.modes);
	opts.max_subset = r->max_subset;
	opts.budget = r->opts.budget;
	opts.sample = r->opts.sample;
	opts.seed = r->opts.seed;
	if (prunes(r)) {
		opts.vary = reads_vary;
		opts.vary_ctx = &reads;
	}
	int rc = points.n ? crash_new(&r->trace, &opts, &e, err) : 0;
	while (!rc && e && !spent(r) && crash_next(e, &state))
		rc = check_state(r, &j, &state, NULL, opts.vary && teaches(&state) ? &reads : NULL,
				 err);
	totals->budget_hit |= e && spent(r);
	count_states(e, totals);
	reads_release(&reads);
	crash_points_release(&points);
	return rc;
}
