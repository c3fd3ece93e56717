/* SPDX-License-Identifier: MIT */
/* crash_states.c - crash states of a recorded run: which, and what each of them recovers to. */
#include <errno.h>

#include "check/semantic.h"
#include "run/bad_media.h"
#include "run/semantics.h"
#include "search/pm_model.h"
#include "search/search.h"

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

/* The options for a trace that begins with `base`; without layers and points. */
static struct crash_opts which_states(const struct run *r, const struct trace *t,
				      const struct image *base, struct model_pm_opts *model)
{
	struct crash_opts opts = { .base = base,
				   .max_subset = r->max_subset,
				   .budget = r->opts.budget,
				   .sample = r->opts.sample,
				   .seed = r->opts.seed };

	if (!pm_traced(t))
		opts.tear_unit = r->opts.sector ? r->opts.sector : CRASH_SECTOR;

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

static void add_tally(const struct crash_search *s, struct run_totals *totals)
{
	struct search_tally t;

	search_count(s, &t);
	totals->crash_states += t.states.tried;
	totals->pruned = add_amount(totals->pruned, t.states.pruned);
	totals->left_out = add_amount(totals->left_out, t.left_out);
	totals->budget_hit |= t.budget_hit;
}

/* How the data that was promised is compared: stores are torn in smaller pieces than sectors. */
static void make_promises(struct run *r, const struct crash_state *state, struct promises *p)
{
	bool under_way;
	size_t done = operations_done(r, state->point, &under_way);

	promises_make(p, &r->history, &r->guarantee, min(done, r->history.results.n), under_way);
	p->unit = r->target.ops->pm ? 1 : 0;
}

/* Recovers `is`, which is to be what was promised when `state` was left. */
static int attempt_as(struct run *r, const char *phase, const struct crash_state *is,
		      const struct crash_state *state, struct trace *record, struct attempt *a,
		      struct err *err)
{
	auto_call(promises_release) struct promises p = { 0 };

	run_phase(r, phase, strbuf_str(&is->id));
	make_promises(r, state, &p);
	return attempt_state(r, &is->image, &p, record, a, err);
}

int judge_attempt(struct run *r, const struct crash_state *state, struct trace *record,
		  struct attempt *a, struct err *err)
{
	return attempt_as(r, "recovering from crash state", state, state, record, a, err);
}

int judge_tell(struct run *r, const struct state_judge *j, const struct crash_state *state,
	       const struct crash_state *second, const struct attempt *a, size_t operation,
	       const char *diagnosis, struct err *err)
{
	struct run_case c = run_case_of(r, j->w, j->base);
	bool under_way;

	if (!a->findings.n)
		return 0;
	j->totals->findings++;
	c.state = state;
	c.recovery = second ? &r->recovery : NULL;
	c.second = second;
	c.media = j->media;
	c.done = operations_done(r, state->point, &under_way);
	c.mounted = attempt_mounted(r, a);
	c.seen = a->mounted ? a->seen : NULL;
	c.findings = &a->findings;
	c.operation = operation;
	c.diagnosis = diagnosis;
	c.places = r->target.ops->pm ? r : NULL;
	c.kernel_log = strbuf_str(&a->kernel_log);
	c.said = strbuf_str(&a->said);
	return j->report->found(j->report->ctx, &c, err);
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

static int judge_second(struct run *r, const struct state_judge *j, const struct crash_state *state,
			const struct crash_state *second, const struct attempt *first,
			struct err *err)
{
	auto_attempt again = ATTEMPT_INIT(&r->seen_again);
	int rc = attempt_as(r, "recovering again from crash state", second, state, NULL, &again,
			    err);

	if (rc)
		return rc;
	/* Where nothing is ordered, a repair that is interrupted may go another way. */
	if (again.mounted && first->mounted && r->guarantee.ordered)
		compare(r, first, &again);
	j->totals->unique_states++;
	return judge_tell(r, j, state, second, &again, RUN_NO_OPERATION, NULL, err);
}

/* ---- what is searched: the states of a workload, and of a recovery ---- */

struct first_crashes {
	struct crash_search search;
	struct run *r;
	const struct state_judge *j;
	struct semantics *semantics; /* for persistent memory; NULL: each state by itself */
	struct attempt last;
};

struct second_crashes {
	const struct first_crashes *of;
	const struct crash_state *state; /* the one tried last */
};

static int attempt_second(void *ctx, const struct crash_state *second, struct reads_of *unused,
			  struct err *err)
{
	const struct second_crashes *x = ctx;

	(void)unused;
	return judge_second(x->of->r, x->of->j, x->state, second, &x->of->last, err);
}

static const struct search_ops second_ops = { .attempt = attempt_second };

static int explore_recovery(void *ctx, const struct crash_state *state, uint64_t budget,
			    struct err *err)
{
	struct first_crashes *x = ctx;
	struct run *r = x->r;
	struct second_crashes again = { x, state };
	struct model_pm_opts model;
	auto_call(search_close) struct crash_search s = {
		.ops = &second_ops,
		.ctx = &again,
		.trace = &r->recovery,
		.states = which_states(r, &r->recovery, &state->image, &model),
		.within = &x->search
	};

	s.states.layers = choose_layers(r->opts.modes | RUN_REORDER | RUN_PREFIX, false);
	s.states.budget = budget;
	choose_recovery_points(&r->recovery, &s.points);
	int rc = search_go(&s, err);
	add_tally(&s, x->j->totals);
	return rc;
}

static bool first_stopped(void *ctx)
{
	const struct first_crashes *x = ctx;

	return run_stopped(x->j->report);
}

static int attempt_first(void *ctx, const struct crash_state *state, struct reads_of *reads,
			 struct err *err)
{
	struct first_crashes *x = ctx;
	struct run *r = x->r;
	bool record = reads || x->search.again;

	attempt_release(&x->last);
	x->last = (struct attempt)ATTEMPT_INIT(&r->seen);
	disk_want_loads(r->target.disk, reads);
	int rc = judge_attempt(r, state, record ? &r->recovery : NULL, &x->last, err);
	if (r->target.disk)
		disk_want_loads(r->target.disk, false);
	if (rc)
		return rc;
	if (reads)
		reads_learn(reads, &r->recovery, 1, false);
	x->j->totals->unique_states++;
	if (x->semantics)
		semantics_add(x->semantics, state, &x->last);
	else
		rc = judge_tell(r, x->j, state, NULL, &x->last, RUN_NO_OPERATION, NULL, err);
	return rc ? rc : !x->last.mounted || x->last.findings.n;
}

static uint64_t written_since(void *ctx, uint64_t point)
{
	const struct first_crashes *x = ctx;

	return bad_media_since(&x->r->trace, point);
}

static int attempt_bad(void *ctx, const struct crash_state *state, const struct image *img,
		       const struct media_faults *one, struct err *err)
{
	const struct first_crashes *x = ctx;
	struct crash_state bad = *state;

	bad.image = *img;
	bad.hash = image_hash(img);
	return bad_media_judge(x->r, x->j, &bad, one, err);
}

static const struct search_ops first_ops = { .stopped = first_stopped,
					     .attempt = attempt_first,
					     .again = explore_recovery,
					     .since = written_since };

/* Whether the enumerator varies single writes, so that it pays to know which of them are read. */
static bool prunes(const struct run *r)
{
	return !r->opts.vary_all && r->opts.modes & (RUN_REORDER | RUN_TORN);
}

int explore_states(struct run *r, const struct workload *w, const struct run_reporter *report,
		   struct run_totals *totals, struct err *err)
{
	struct state_judge j = { .w = w, .base = &r->base, .report = report, .totals = totals };
	struct model_pm_opts model;
	auto_call(reads_release) struct reads reads = { 0 };
	struct first_crashes x = { .r = r, .j = &j, .last = ATTEMPT_INIT(&r->seen) };
	struct crash_search *s = &x.search;
	auto_call(bad_lines_release) struct bad_lines bad = { .trace = &r->trace,
							      .base = &r->base,
							      .kinds = r->opts.media,
							      .max = r->opts.media_max,
							      .budget = r->opts.budget,
							      .check = attempt_bad,
							      .ctx = &x };

	r->report = report;
	find_marks(r);
	*s = (struct crash_search){ .ops = &first_ops,
				    .ctx = &x,
				    .trace = &r->trace,
				    .states = which_states(r, &r->trace, &r->base, &model),
				    .reads = prunes(r) ? &reads : NULL,
				    .learn = prunes(r),
				    .again = r->opts.modes & RUN_RECOVERY,
				    .bad = r->opts.media ? &bad : NULL };
	s->states.layers = choose_layers(r->opts.modes, r->target.ops->pm);
	choose_points(r, w, &s->points);
	if (r->target.ops->pm)
		x.semantics = semantics_new(r, &j, &s->points);
	int rc = search_go(s, err);
	if (!rc && x.semantics)
		rc = semantics_tell(x.semantics, NULL, err);
	semantics_free(x.semantics);
	attempt_release(&x.last);
	add_tally(s, totals);
	search_close(s);
	return !rc && s->stopped ? -ECANCELED : rc;
}

/* ---- one state ---- */

int check_replayed(struct run *r, const struct workload *w, struct crash_state *state,
		   const struct crash_state *second, const struct image *base,
		   const struct run_reporter *report, struct run_totals *totals, struct err *err)
{
	struct state_judge j = { .w = w, .base = base, .report = report, .totals = totals };
	auto_attempt a = ATTEMPT_INIT(&r->seen);

	r->report = report;
	find_marks(r);
	if (r->opts.fault)
		return bad_media_replay(r, &j, r->opts.fault, state, err);
	if (!second && r->target.ops->pm) {
		totals->unique_states++;
		return semantics_check_one(r, &j, state, err);
	}
	int rc = judge_attempt(r, state, NULL, &a, err);
	if (rc)
		return rc;
	if (second)
		return judge_second(r, &j, state, second, &a, err);
	totals->unique_states++;
	return judge_tell(r, &j, state, NULL, &a, RUN_NO_OPERATION, NULL, err);
}
