/* SPDX-License-Identifier: MIT */
/* test_run.c - begins a run of `outage test`, or goes on with one that was interrupted. */
#include "run/test_run.h"

#include <errno.h>
#include <unistd.h>

#include "base/io.h"
#include "run/store.h"

void test_run_init(struct test_run *r)
{
	*r = (struct test_run){ .progress = { .fd = -1 } };
	plan_init(&r->plan);
	supply_init(&r->source);
}

void test_run_release(struct test_run *r)
{
	plan_release(&r->plan);
	supply_release(&r->source);
	suppress_release(&r->suppress);
	progress_release(&r->progress);
	earlier_release(&r->earlier);
	free(r->dir);
}

static int open_source(struct test_run *r, struct err *err)
{
	const struct plan *p = &r->plan;

	/* A run that goes on is trusted with its workloads: a hash of them is in its record. */
	r->source.trust = r->trust || r->resume;
	int rc = p->bounds ? supply_open_bounds(&r->source, p->bounds, err) : 0;

	for (size_t i = 0; i < p->files.n && !rc; i++)
		rc = supply_add_path(&r->source, p->files.v[i], err);
	supply_select(&r->source, p->skip, p->limit, p->sample, p->seed);
	if (!rc && !supply_count(&r->source))
		rc = err_set(err, -EINVAL, "there is no workload to run");
	return rc;
}

static int save_suppressions(const struct test_run *r, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;

	if (!r->suppress.rules.n)
		return 0;
	suppress_print(&r->suppress, &text);
	return io_write_file(r->dir, "suppressions", text.buf, text.len, 0, err);
}

/* The rules that the run began with; if some are given again, they must be the same. */
static int load_suppressions(struct test_run *r, struct err *err)
{
	auto_strbuf given = STRBUF_INIT, saved = STRBUF_INIT;

	suppress_print(&r->suppress, &given);
	suppress_release(&r->suppress);
	int rc = suppress_load_saved(&r->suppress, r->dir, err);
	suppress_print(&r->suppress, &saved);
	if (rc || !given.len || streq(strbuf_str(&given), strbuf_str(&saved)))
		return rc;
	return err_set(err, -EINVAL,
		       "the run began with another --suppress: leave the option out, or begin a "
		       "new run");
}

/* ---- a new one ---- */

/* Where RUN/run is, the run can go on, also if it was killed before it had done anything. */
int test_run_begin(struct test_run *r, struct err *err)
{
	auto_strbuf hash = STRBUF_INIT;
	int rc = plan_complete(&r->plan, err);

	if (!rc)
		rc = open_source(r, err);
	if (rc)
		return rc;
	supply_hash(&r->source, &hash);
	r->plan.hash = strbuf_detach(&hash);
	r->plan.workloads = supply_count(&r->source);
	r->plan.ours = true;
	case_ready_to_mark(&r->unmarked);
	rc = case_create(r->output, r->plan.target, store_made, &r->dir, err);
	if (!rc)
		rc = save_suppressions(r, err);
	if (!rc)
		rc = case_plan_save(&plan_kept, r->dir, &r->plan, err);
	return rc ? rc : progress_create(r->dir, r->plan.workloads, &r->progress, err);
}

/* ---- going on ---- */

/* The numbers in the record must mean what they meant. */
static int check_source(struct test_run *r, struct err *err)
{
	auto_strbuf hash = STRBUF_INIT;
	int rc = open_source(r, err);

	if (rc)
		return rc;
	supply_hash(&r->source, &hash);
	if (!streq(strbuf_str(&hash), r->plan.hash) ||
	    supply_count(&r->source) != r->plan.workloads)
		return err_set(err, -EINVAL,
			       "the workloads are not those %s began with: begin a new run",
			       r->dir);
	return 0;
}

static int check_resumable(const struct test_run *r, struct err *err)
{
	struct target_opts target = plan_target(&r->plan);

	if (plan_from_stdin(&r->plan))
		return err_set(
			err, -EINVAL,
			"%s took its workloads from standard input, which is gone: begin a new run",
			r->dir);
	return plan_same_kernel(&target, r->plan.kernel, r->dir, err);
}

int test_run_resume(struct test_run *r, struct err *err)
{
	auto_call(plan_release) struct plan given = r->plan;
	int rc = 0;

	plan_init(&r->plan);
	r->dir = xstrdup(r->resume);
	rc = case_plan_resume(&plan_kept, r->dir, r->output, &given, &r->plan, err);
	/* In this order: a guest's kernel is asked for its version, and so is run. */
	if (!rc)
		rc = plan_trust(&r->plan, r->dir, r->trust, err);
	if (!rc)
		rc = check_resumable(r, err);
	if (!rc)
		rc = load_suppressions(r, err);
	if (!rc)
		rc = check_source(r, err);
	if (!rc)
		rc = progress_resume(r->dir, r->plan.workloads, &r->progress, err);
	if (!rc)
		rc = case_sweep(r->dir, err);
	if (!rc)
		rc = earlier_load(r->dir, &r->progress, &r->earlier, err);
	if (!rc)
		plan_look_at_files(&r->plan);
	if (!rc && r->plan.ours)
		case_ready_to_mark(&r->unmarked);
	return rc;
}

/* ---- the end ---- */

/* The run made all of these: it refuses what is there. */
void test_run_abandon(const struct test_run *r)
{
	if (r->resume || r->progress.done)
		return;
	if (case_discard(r->dir, store_made) && !r->output)
		rmdir("outage-runs"); /* unless others are there */
}

uint64_t test_run_missed(const struct test_run *r, const struct earlier_case **first)
{
	uint64_t n = 0;

	vec_each(e, &r->earlier) {
		if (e->again || !e->id || !progress_has(&r->progress, e->workload))
			continue;
		if (!n++)
			*first = e;
	}
	return n;
}
