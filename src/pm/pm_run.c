/* SPDX-License-Identifier: MIT */
/* pm_run.c - loads a recorded run, and makes its crash points and images. */
#include "pm/pm_run.h"

#include <errno.h>
#include <inttypes.h>

#include "base/below.h"
#include "core/trace_file.h"
#include "pm/cause.h"
#include "search/pm_model.h"

/* Fails if there is no such model, or if it is not one of persistent memory. */
static int pm_model_check(const char *name, struct err *err)
{
	const struct model_ops *model = model_known(name, err);

	return !model	   ? -EINVAL
	       : model->pm ? 0
			   : err_set(err, -EINVAL, "the model %s is of a disk", name);
}

int pm_run_load(const char *dir, struct pm_run *out, struct err *err)
{
	struct pm_run r = { .dir = xstrdup(dir) };

	trace_init(&r.trace);
	int rc = pm_plan_load(dir, &r.plan, err);
	if (!rc)
		rc = image_load_below(dir, "base.img", &r.base, err);
	if (!rc)
		rc = trace_load_below(dir, "trace", &r.trace, err);
	if (!rc)
		rc = pm_where_load(dir, &r.where, err);
	if (!rc && r.base.size != r.trace.info.size) {
		auto_free char *shown = below_shown(dir, NULL);

		rc = err_set(err, -EINVAL, "%s/base.img is not as long as the region of %s/trace",
			     shown, shown);
	}
	if (!rc) {
		r.where.noticed = r.plan.preload;
		r.model = pm_model_opts(r.plan.granularity, r.plan.split);
		rc = model_pm_opts_check(&r.model, err);
		if (!rc && r.plan.model)
			rc = pm_model_check(r.plan.model, err);
	}
	if (rc)
		pm_run_release(&r);
	else
		*out = r;
	return rc;
}

void pm_run_release(struct pm_run *r)
{
	pm_plan_release(&r->plan);
	trace_release(&r->trace);
	pm_where_release(&r->where);
	for (size_t i = 0; i < r->n_nested; i++)
		pm_run_release(&r->nested[i]);
	free(r->nested);
	r->nested = NULL;
	r->n_nested = 0;
	free(r->outer.state);
	r->outer.state = NULL;
	image_release(&r->base);
	free(r->dir);
	r->dir = NULL;
}

void pm_run_points(const struct pm_run *r, struct crash_points *out)
{
	crash_points_pm(&r->trace, out);
	crash_points_keep(out, r->plan.first_point, UINT64_MAX);
}

struct crash_opts pm_run_crash(const struct pm_run *r)
{
	struct crash_opts o = CRASH_OPTS_INIT;

	o.model = r->plan.model ? model_find(r->plan.model) : &model_pm;
	o.model_ctx = &r->model;
	o.base = &r->base;
	o.layers = CRASH_WITH_WHOLE;
	/* A processor writes 8 bytes as one, but not a copy. */
	if (!r->plan.split)
		o.layers |= CRASH_WITH_TEARS | CRASH_WITH_PARTS;
	o.tear_unit = PM_LINE;
	o.few_tears = true;
	o.max_subset = (uint32_t)min(r->plan.max_subset, (uint64_t)UINT32_MAX);
	o.budget = r->plan.budget;
	o.seed = r->plan.seed;
	return o;
}

uint64_t pm_run_copies(const struct pm_run *r)
{
	return r->plan.split ? 0 : pm_count_copies(&r->trace, PM_JOIN_USUAL);
}

void pm_marks(const struct trace *t, uint64_t point, struct strbuf *out)
{
	for (uint64_t i = 0; i < min(point, (uint64_t)t->events.n); i++) {
		const struct event *ev = &t->events.v[i];

		if (ev->kind == EV_OP_BEGIN || ev->kind == EV_OP_END)
			strbuf_addf(out, "%s %" PRIu64 "\n",
				    ev->kind == EV_OP_BEGIN ? "begin" : "end", ev->ref);
		if (ev->kind == EV_TEXT) {
			strbuf_adds(out, "text ");
			strbuf_add_flat(out, (const char *)ev->data);
			strbuf_addch(out, '\n');
		}
	}
}

uint64_t pm_point_before(const struct crash_points *points, uint64_t point)
{
	uint64_t before = 0;

	for (size_t i = 0; i < points->n && points->v[i] < point; i++)
		before = points->v[i];
	return before;
}
