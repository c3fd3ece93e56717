/* SPDX-License-Identifier: MIT */
/* states.c - crash states of a recorded run: which, and what each of them recovers to. */
#include <errno.h>

#include "run/run_impl.h"

/* ---- crash points ---- */

/* The part of the trace in which operations ran: mounting and unmounting are not under test. */
static void operations_span(const struct trace *t, uint64_t *from, uint64_t *to)
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
	if (modes & (RUN_PERSIST | RUN_LAST | RUN_REORDER) || !modes)
		crash_points_persist(t, out);
	keep_span(out, from, to);
	if (modes & RUN_LAST && out->n)
		out->v[0] = out->v[out->n - 1], out->n = 1;
}

static unsigned choose_layers(unsigned modes)
{
	unsigned layers = 0;

	if (modes & (RUN_PERSIST | RUN_LAST) || !modes)
		layers |= CRASH_WITH_COMPLETED;
	if (modes & RUN_PREFIX)
		layers |= CRASH_WITH_ALL;
	if (modes & RUN_REORDER)
		layers |= CRASH_WITH_WHOLE;
	if (modes & RUN_TORN)
		layers |= CRASH_WITH_WHOLE | CRASH_WITH_TEARS;
	return layers;
}

/* ---- one state ---- */

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

struct attempt {
	struct findings findings;
	struct strbuf said;
	struct strbuf kernel_log;
	bool mounted;
};

static void attempt_release(struct attempt *a)
{
	findings_release(&a->findings);
	strbuf_release(&a->said);
	strbuf_release(&a->kernel_log);
}

static void check_mounted(struct run *r, struct promises *p, struct attempt *a)
{
	check_persisted(p, &r->seen, &r->blocks, &a->findings);
}

/* Recovers and looks; what is on the disk was loaded by the caller. */
static int attempt(struct run *r, struct promises *p, struct attempt *a, struct err *err)
{
	struct target *t = &r->target;
	int rc = target_recover(t, &a->said, err);

	if (!rc)
		rc = target_mount(t, &a->said, err);
	if (rc < 0)
		return rc;
	a->mounted = rc == 0;
	if (!a->mounted) {
		findings_add(&a->findings, FINDING_UNMOUNTABLE, NULL,
			     xasprintf("the file system cannot be mounted: %.200s",
				       strbuf_str(&a->said)),
			     NULL);
		return 0;
	}
	rc = tree_walk(t->root, &r->tree_opts, &r->seen, err);
	if (!rc) {
		check_mounted(r, p, a);
		rc = check_usable(t->root, &r->seen, t->ops->ignore, &a->findings, err);
	}
	struct err later = ERR_INIT;
	int unmounted = target_umount(t, false, &later);
	if (unmounted && !rc) {
		*err = later;
		rc = unmounted;
	}
	return rc;
}

static int run_fsck(struct run *r, struct attempt *a, struct err *err)
{
	auto_strbuf said = STRBUF_INIT;
	int rc = target_fsck(&r->target, &said, err);

	if (rc < 0)
		return rc;
	if (rc > 0 && a->mounted)
		findings_add(&a->findings, FINDING_FSCK, NULL,
			     xasprintf("fsck complains: %.300s", strbuf_str(&said)), NULL);
	if (said.len)
		strbuf_add(&a->said, said.buf, said.len);
	return 0;
}

int check_state(struct run *r, const struct workload *w, const struct crash_state *state,
		const struct image *base, const struct run_reporter *report,
		struct run_totals *totals, struct trace *reads, struct err *err)
{
	struct target *t = &r->target;
	struct attempt a auto_call(attempt_release) = { 0 };
	struct promises p = { 0 };
	bool under_way;
	size_t done = operations_done(&r->trace, state->point, &under_way);

	r->report = report;
	run_phase(r, "recovering from crash state", strbuf_str(&state->id));
	int rc = disk_load(t->disk, &state->image, err);

	if (!rc)
		rc = disk_start(t->disk, reads, err);
	if (rc)
		return rc;
	promises_make(&p, &r->history, &r->guarantee, min(done, r->history.results.n), under_way);
	rc = attempt(r, &p, &a, err);
	struct err later = ERR_INIT;
	int stopped = disk_stop(t->disk, &later);
	if (stopped && !rc) {
		*err = later;
		rc = stopped;
	}
	promises_release(&p);
	if (!rc && (r->opts.fsck || !a.mounted))
		rc = run_fsck(r, &a, err);
	if (target_kernel_log(t, &a.kernel_log) && a.mounted)
		findings_add(&a.findings, FINDING_KERNEL_LOG, NULL,
			     xasprintf("the kernel says: %.300s", strbuf_str(&a.kernel_log)), NULL);
	totals->unique_states++;
	if (rc || !a.findings.n)
		return rc;
	totals->findings++;
	return report->found(report->ctx,
			     &(struct run_case){ .target = t,
						 .guarantee = &r->guarantee,
						 .workload = w,
						 .trace = &r->trace,
						 .base = base,
						 .state = state,
						 .done = done,
						 .history = &r->history,
						 .seen = a.mounted ? &r->seen : NULL,
						 .findings = &a.findings,
						 .kernel_log = strbuf_str(&a.kernel_log),
						 .said = strbuf_str(&a.said) },
			     err);
}

/* ---- all of them ---- */

int explore_states(struct run *r, const struct workload *w, const struct run_reporter *report,
		   struct run_totals *totals, struct err *err)
{
	struct crash_points points = { 0 };
	struct crash_opts opts = CRASH_OPTS_INIT;
	struct crash_state state = CRASH_STATE_INIT;
	struct crash_stats stats = { 0 };
	struct crash *e = NULL;

	choose_points(&r->trace, r->opts.modes, &points);
	opts.base = &r->base;
	opts.points = points.v;
	opts.n_points = points.n;
	opts.layers = choose_layers(r->opts.modes);
	opts.max_subset = r->opts.max_subset ? r->opts.max_subset : 2;
	opts.budget = r->opts.budget;
	opts.sample = r->opts.sample;
	opts.seed = r->opts.seed;
	int rc = points.n ? crash_new(&r->trace, &opts, &e, err) : 0;
	while (!rc && e && crash_next(e, &state))
		rc = check_state(r, w, &state, &r->base, report, totals, NULL, err);
	if (e) {
		crash_stats(e, &stats);
		totals->crash_states += stats.tried;
		totals->budget_hit |= stats.budget_hit;
		if (stats.budget_hit)
			totals->left_out += stats.left_out;
	}
	crash_free(e);
	crash_state_release(&state);
	crash_points_release(&points);
	return rc;
}
