/* SPDX-License-Identifier: MIT */
#include "run/replay.h"

#include <errno.h>

#include "core/trace_file.h"

/* ---- what is stored ---- */

/* Points and layers that include the one the state came from. */
static unsigned modes_of(const struct stored_case *c)
{
	if (!c->layer || stored_case_live(c))
		return RUN_LAST;
	if (streq(c->layer, crash_layer_name(CRASH_COMPLETED)))
		return RUN_PERSIST;
	if (streq(c->layer, crash_layer_name(CRASH_ALL)))
		return RUN_PREFIX | RUN_REORDER;
	for (enum crash_layer l = CRASH_TEAR_ALL; l <= CRASH_UNITS; l++)
		if (streq(c->layer, crash_layer_name(l)))
			return RUN_REORDER | RUN_TORN;
	return RUN_REORDER;
}

int replay_opts(const struct stored_case *c, struct run_opts *out, struct err *err)
{
	const struct guarantee *g = guarantee_find(c->guarantee);

	if (!g)
		return err_set(err, -EINVAL, "%s: there is no guarantee '%.40s'", c->dir,
			       c->guarantee);
	*out = (struct run_opts){
		.target = { .spec = c->target,
			    .mkfs_args = c->mkfs,
			    .recover = c->recover,
			    .fsck = c->fsck,
			    .size = c->size },
		.guarantee = g,
		.modes = modes_of(c),
		.budget = REPLAY_BUDGET,
		.fsck = stored_case_first(c)->kind == FINDING_FSCK,
	};
	return 0;
}

int replay_base(const struct stored_case *c, struct image *out, struct err *err)
{
	auto_free char *path = xasprintf("%s/%s", c->dir, c->base);

	return image_load_file(path, out, err);
}

int replay_trace(const struct stored_case *c, struct trace *out, struct err *err)
{
	auto_free char *path = xasprintf("%s/trace", c->dir);

	return trace_load(path, out, NULL, err);
}

int replay_state(const struct stored_case *c, struct crash_state *out, struct err *err)
{
	auto_trace trace;
	auto_image base = IMAGE_INIT;
	struct crash_opts opts = CRASH_OPTS_INIT;

	if (stored_case_live(c))
		return err_set(err, -EINVAL, "%s was found before any crash: there is no state",
			       c->dir);
	trace_init(&trace);
	int rc = replay_trace(c, &trace, err);
	if (!rc)
		rc = replay_base(c, &base, err);
	opts.base = &base;
	return rc ? rc : crash_replay(&trace, &opts, c->state, out, err);
}

bool replay_from_trace(const struct stored_case *c)
{
	return !stored_case_live(c);
}

/* ---- trying it ---- */

void replay_copy_findings(const struct findings *from, struct findings *to)
{
	findings_clear(to);
	for (size_t i = 0; i < from->n; i++)
		findings_add(to, from->v[i].kind, xstrdup(from->v[i].path),
			     xstrdup(from->v[i].words), xstrdup(from->v[i].promise));
}

bool replay_has_kind(const struct findings *list, enum finding_kind kind)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->v[i].kind == kind)
			return true;
	return false;
}

void replay_result_release(struct replay_result *r)
{
	findings_release(&r->problems);
	strbuf_release(&r->state);
}

struct watcher {
	enum finding_kind kind;
	struct replay_result *result;
};

/* Once it shows, there is no more to do: -ECANCELED ends the run. */
static int on_found(void *ctx, const struct run_case *c, struct err *err)
{
	struct watcher *w = ctx;

	(void)err;
	replay_copy_findings(c->findings, &w->result->problems);
	strbuf_clear(&w->result->state);
	strbuf_adds(&w->result->state, c->state ? strbuf_str(&c->state->id) : "live");
	w->result->shown = replay_has_kind(c->findings, w->kind);
	return w->result->shown ? -ECANCELED : 0;
}

static int try_stored(struct run *run, const struct stored_case *c,
		      const struct run_reporter *reporter, struct run_totals *totals,
		      struct err *err)
{
	auto_trace trace;
	auto_image base = IMAGE_INIT;

	trace_init(&trace);
	int rc = replay_trace(c, &trace, err);
	if (!rc)
		rc = replay_base(c, &base, err);
	if (!rc && base.size != c->size)
		rc = err_set(err, -EINVAL, "%s/%s has %llu bytes; the disk had %llu", c->dir,
			     c->base, (unsigned long long)base.size, (unsigned long long)c->size);
	return rc ? rc
		  : run_replay(run, &c->workload, &trace, NULL, &base, c->state, reporter, totals,
			       err);
}

int replay_case(const struct stored_case *c, bool rerun, struct replay_result *out, struct err *err)
{
	struct replay_result made = { 0 };
	struct watcher watcher = { stored_case_first(c)->kind, &made };
	struct run_reporter reporter = { on_found, &watcher };
	struct run_opts opts;
	struct run *run = NULL;
	int rc = replay_opts(c, &opts, err);

	if (!rc)
		rc = run_open(&opts, &run, err);
	if (!rc)
		rc = rerun ? run_workload(run, &c->workload, &reporter, &made.totals, err)
			   : try_stored(run, c, &reporter, &made.totals, err);
	run_close(run);
	if (rc == -ECANCELED && made.shown)
		rc = 0;
	if (rc)
		replay_result_release(&made);
	else
		*out = made;
	return rc;
}
