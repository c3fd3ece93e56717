/* SPDX-License-Identifier: MIT */
/* crash_states.c - crash states of a recorded run: which, and what each of them recovers to. */
#include <errno.h>

#include "run/bad_media.h"
#include "run/state_judge.h"
#include "search/pm_model.h"
#include "search/recovery_reads.h"
#include "run/semantics.h"
#include "check/semantic.h"
#include "search/second.h"

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

/*
 * Every write of recovery, and around what orders them: it is short, and the file system is at its
 * weakest there.
 */
static void choose_recovery_points(const struct trace *t, struct crash_points *out)
{
	if (pm_traced(t)) {
		pm_points(t, out);
	} else {
		points_around_flushes(t, out);
		crash_points_writes(t, out);
	}
	crash_points_keep(out, 0, attempt_walked(t));
}

/* In persistent memory a prefix is what nothing was lost of; what it ends with are fences and
 * marks.
 */
static void choose_pm_points(const struct trace *t, unsigned modes, struct crash_points *out)
{
	if (modes & (RUN_PREFIX | RUN_REORDER | RUN_TORN))
		pm_points(t, out);
	else
		crash_points_persist(t, out);
}

static void choose_block_points(const struct trace *t, unsigned modes, struct crash_points *out)
{
	if (modes & (RUN_PREFIX))
		crash_points_writes(t, out);
	if (modes & (RUN_REORDER | RUN_TORN)) {
		points_around_flushes(t, out);
		crash_points_ops(t, out); /* sorts, and drops what is there twice */
	}
	if (modes & (RUN_PERSIST | RUN_LAST | RUN_PREFIX | RUN_REORDER))
		crash_points_persist(t, out);
}

/*
 * Every operation has its own crash points in persistent memory, and what only prepares the others
 * is an operation under test elsewhere; 0 if there is nothing else.
 */
static uint64_t setup_end(const struct trace *t, const struct workload *w)
{
	for (size_t i = 0; i < w->ops.n; i++)
		if (!w->ops.v[i].setup)
			return pm_begin_point(t, i);
	return 0;
}

static void choose_points(const struct run *r, const struct workload *w, struct crash_points *out)
{
	unsigned modes = r->opts.modes;
	uint64_t from, to;

	operations_span(&r->trace, &from, &to);
	if (r->target.ops->pm) {
		from = max(from, setup_end(&r->trace, w));
		choose_pm_points(&r->trace, modes, out);
	} else {
		choose_block_points(&r->trace, modes, out);
	}
	crash_points_keep(out, from, to);
	if (modes & RUN_LAST && out->n)
		out->v[0] = out->v[out->n - 1], out->n = 1;
}

static unsigned choose_layers(unsigned modes, bool pm)
{
	unsigned layers = 0;

	if (modes & (RUN_PERSIST | RUN_LAST))
		layers |= pm ? CRASH_WITH_NONE | CRASH_WITH_ALL : CRASH_WITH_COMPLETED;
	if (modes & RUN_PREFIX)
		layers |= CRASH_WITH_ALL;
	if (modes & RUN_REORDER)
		layers |= CRASH_WITH_WHOLE;
	if (modes & RUN_TORN)
		layers |= CRASH_WITH_WHOLE | CRASH_WITH_TEARS;
	return layers;
}

/* Of a trace that begins with `base`; without layers. */
static struct crash_opts which_states(const struct run *r, const struct trace *t,
				      const struct image *base, const struct crash_points *points,
				      struct model_pm_opts *model)
{
	struct crash_opts opts = { .base = base,
				   .points = points->v,
				   .n_points = points->n,
				   .max_subset = r->max_subset,
				   .budget = r->opts.budget,
				   .sample = r->opts.sample,
				   .seed = r->opts.seed };

	pm_choose_model(&r->opts.pm, t, model, &opts);
	return opts;
}

/* ---- what all of them need ---- */

/* Notes where in the trace marks are, once it is whole: there may be a million other events. */
static void find_marks(struct run *r)
{
	vec_clear(&r->marks);
	for (size_t i = 0; i < r->trace.events.n; i++)
		if (event_marks(r->trace.events.v[i].kind))
			vec_push(&r->marks, i);
}

size_t operations_done(const struct run *r, uint64_t point, bool *under_way)
{
	size_t begun = 0, ended = 0;

	for (size_t i = 0; i < r->marks.n && r->marks.v[i] < point; i++) {
		enum event_kind kind = r->trace.events.v[r->marks.v[i]].kind;

		begun += kind == EV_OP_BEGIN;
		ended += kind == EV_OP_END;
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

/* The budget is that of the workload: second crashes share it with the first. */
static void spend(struct run *r)
{
	r->budget_left -= r->budget_left > 0;
}

static bool spent(const struct run *r)
{
	return r->opts.modes & RUN_RECOVERY && r->opts.budget && !r->budget_left;
}

/* How the data that was promised is compared: stores are torn in smaller pieces than sectors. */
static void make_promises(struct run *r, const struct crash_state *state, struct promises *p)
{
	bool under_way;
	size_t done = operations_done(r, state->point, &under_way);

	promises_make(p, &r->history, &r->guarantee, min(done, r->history.results.n), under_way);
	p->unit = r->target.ops->pm ? 1 : 0;
}

int judge_attempt(struct run *r, const struct crash_state *state, struct trace *record,
		  struct attempt *a, struct err *err)
{
	struct promises p = { 0 };

	run_phase(r, "recovering from crash state", strbuf_str(&state->id));
	make_promises(r, state, &p);
	int rc = attempt_state(r, &state->image, &p, record, a, err);
	promises_release(&p);
	return rc;
}

int judge_tell(struct run *r, const struct state_judge *j, const struct crash_state *state,
	       const struct crash_state *second, const struct attempt *a, size_t operation,
	       const char *diagnosis, struct err *err)
{
	bool under_way;
	size_t done = operations_done(r, state->point, &under_way);

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
						    .media = j->media,
						    .modes = r->opts.modes,
						    .done = done,
						    .history = &r->history,
						    .mounted = attempt_mounted(r, a),
						    .seen = a->mounted ? a->seen : NULL,
						    .findings = &a->findings,
						    .operation = operation,
						    .diagnosis = diagnosis,
						    .places = r->target.ops->pm ? r : NULL,
						    .kernel_log = strbuf_str(&a->kernel_log),
						    .said = strbuf_str(&a->said) },
				err);
}

/* ---- a second crash, while recovering from the first ---- */

/* A dump that failed is told as that. */
static void compare_dumps(const struct attempt *first, struct attempt *again)
{
	struct strbuf words = { 0 };

	if (!first->dumped || !again->dumped ||
	    streq(strbuf_str(&first->dump), strbuf_str(&again->dump)))
		return;
	strbuf_adds(&words, "recovering again gives another state");
	semantic_difference(strbuf_str(&first->dump), strbuf_str(&again->dump), "the first time",
			    &words);
	findings_add(&again->findings, FINDING_RECOVERY, NULL, strbuf_detach(&words),
		     xstrdup("recovery had been interrupted by a second crash"));
}

/* Recovery that was interrupted must lead where recovery leads that was not. */
static void compare(struct run *r, const struct attempt *first, struct attempt *again)
{
	auto_tree_diff diff = { 0 };
	struct tree_opts opts = r->tree_opts;

	if (r->opts.dump) {
		compare_dumps(first, again);
		return;
	}
	opts.blocks = false; /* preallocation is done as the file system likes */
	tree_diff(first->seen, again->seen, &opts, &diff);
	for (size_t i = 0; i < diff.list.n; i++)
		findings_add(
			&again->findings, FINDING_RECOVERY, xstrdup(diff.list.v[i].path),
			xasprintf("recovering again gives another state: %s", diff.list.v[i].words),
			xstrdup("recovery had been interrupted by a second crash"));
}

static int check_second(struct run *r, const struct state_judge *j, const struct crash_state *state,
			const struct crash_state *second, const struct attempt *first,
			struct err *err)
{
	auto_attempt again = ATTEMPT_INIT(&r->seen_again);
	struct promises p = { 0 };

	run_phase(r, "recovering again from crash state", strbuf_str(&second->id));
	make_promises(r, state, &p);
	int rc = attempt_state(r, &second->image, &p, NULL, &again, err);
	promises_release(&p);
	if (rc)
		return rc;
	/* Where nothing is ordered, a repair that is interrupted may go another way. */
	if (again.mounted && first->mounted && r->guarantee.ordered)
		compare(r, first, &again);
	spend(r);
	j->totals->unique_states++;
	return judge_tell(r, j, state, second, &again, RUN_NO_OPERATION, NULL, err);
}

static int explore_recovery(struct run *r, const struct state_judge *j,
			    const struct crash_state *state, const struct attempt *first,
			    struct err *err)
{
	struct crash_points points = { 0 };
	struct model_pm_opts model;
	auto_crash_state second = CRASH_STATE_INIT;
	auto_crash e = NULL;

	choose_recovery_points(&r->recovery, &points);
	struct crash_opts opts = which_states(r, &r->recovery, &state->image, &points, &model);
	opts.layers = choose_layers(r->opts.modes | RUN_REORDER | RUN_PREFIX, false);
	/* The rest of the budget is shared evenly by this first crash and those to come. */
	if (opts.budget)
		opts.budget = second_share(r->budget_left, r->firsts_left);
	int rc = points.n ? crash_new(&r->recovery, &opts, &e, err) : 0;
	while (!rc && e && !run_stopped(j->report) && crash_next(e, &second))
		rc = check_second(r, j, state, &second, first, err);
	count_states(e, j->totals);
	crash_points_release(&points);
	return rc;
}

/* ---- one state ---- */

static void learn(struct reads *reads, const struct crash_state *state, const struct trace *record)
{
	struct reads_of of = { .point = state->point, .image = state->hash };

	reads_learn(&of, record, 1, false);
	reads_settle(&of);
	vec_push(reads, of);
}

/* Recovers one state and checks it; with a second id, also that of the crash while recovering. */
static int check_state(struct run *r, const struct state_judge *j, const struct crash_state *state,
		       const struct crash_state *second, struct reads *reads, struct err *err)
{
	auto_attempt a = ATTEMPT_INIT(&r->seen);
	bool again = !second && r->opts.modes & RUN_RECOVERY;

	r->report = j->report;
	disk_want_loads(r->target.disk, reads);
	int rc = judge_attempt(r, state, reads || again ? &r->recovery : NULL, &a, err);
	if (r->target.disk)
		disk_want_loads(r->target.disk, false);
	if (!rc && reads)
		learn(reads, state, &r->recovery);
	if (!rc && second)
		return check_second(r, j, state, second, &a, err);
	if (rc)
		return rc;
	spend(r);
	r->firsts_left -= r->firsts_left > 0;
	j->totals->unique_states++;
	if (j->semantics)
		semantics_add(j->semantics, state, &a);
	else
		rc = judge_tell(r, j, state, NULL, &a, RUN_NO_OPERATION, NULL, err);
	/* A state that is wrong after one crash is not tried after two, or with worse media. */
	bool good = a.mounted && !a.findings.n;
	if (!rc && again && good && !spent(r))
		rc = explore_recovery(r, j, state, &a, err);
	if (!rc && good && j->bad_media)
		rc = bad_media_explore(j->bad_media, state, err);
	return rc;
}

int check_replayed(struct run *r, const struct workload *w, struct crash_state *state,
		   const struct crash_state *second, const struct image *base,
		   const struct run_reporter *report, struct run_totals *totals, struct err *err)
{
	struct state_judge j = { .w = w, .base = base, .report = report, .totals = totals };

	r->report = report;
	find_marks(r);
	if (r->opts.fault)
		return bad_media_replay(r, &j, r->opts.fault, state, err);
	if (!second && r->target.ops->pm) {
		totals->unique_states++;
		return semantics_check_one(r, &j, state, err);
	}
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
	struct state_judge j = { .w = w, .base = &r->base, .report = report, .totals = totals };
	struct crash_points points = { 0 };
	struct model_pm_opts model;
	auto_crash_state state = CRASH_STATE_INIT;
	auto_crash e = NULL;
	struct bad_media media;
	struct reads reads = { 0 };

	bad_media_init(&media, r, &j);
	j.bad_media = r->opts.media ? &media : NULL;
	r->budget_left = r->opts.budget;
	find_marks(r);
	choose_points(r, w, &points);
	r->firsts_left = points.n;
	struct crash_opts opts = which_states(r, &r->trace, &r->base, &points, &model);
	opts.layers = choose_layers(r->opts.modes, r->target.ops->pm);
	if (prunes(r)) {
		opts.vary = reads_vary;
		opts.vary_ctx = &reads;
	}
	if (r->target.ops->pm)
		j.semantics = semantics_new(r, &j, &points);
	int rc = points.n ? crash_new(&r->trace, &opts, &e, err) : 0;
	bool stopped = run_stopped(report);

	while (!rc && e && !stopped && !spent(r) && crash_next(e, &state)) {
		rc = check_state(r, &j, &state, NULL, opts.vary && teaches(&state) ? &reads : NULL,
				 err);
		stopped = run_stopped(report);
	}
	if (!rc && j.semantics)
		rc = semantics_tell(j.semantics, NULL, err);
	semantics_free(j.semantics);
	totals->budget_hit |= e && spent(r);
	count_states(e, totals);
	reads_release(&reads);
	bad_lines_release(&media.lines);
	crash_points_release(&points);
	return !rc && stopped ? -ECANCELED : rc;
}
