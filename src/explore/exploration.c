/* SPDX-License-Identifier: MIT */
/* exploration.c - begins a run of `outage explore`, or goes on with one that was interrupted. */
#include "explore/exploration.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/below.h"
#include "explore/explore_keep.h"

void exploration_init(struct exploration *e)
{
	*e = (struct exploration){ 0 };
	explore_plan_init(&e->plan);
	inputs_init(&e->inputs);
}

void exploration_release(struct exploration *e)
{
	explore_plan_release(&e->plan);
	inputs_release(&e->inputs);
	free(e->dir);
}

void exploration_abandon(const struct exploration *e)
{
	struct err ignored = ERR_INIT;
	auto_fd dir = e->resume ? -1 : below_open_dir(e->dir, NULL, &ignored);
	auto_free char *pickle = dir < 0 ? NULL : case_find(e->dir, EXPLORE_PICKLES);

	if (dir < 0 || pickle || below_exists(e->dir, "kernel-log") ||
	    unlinkat(dir, "findings", AT_REMOVEDIR) < 0)
		return;
	unlinkat(dir, CASE_RUN, 0);
	unlinkat(dir, TRUST_MARK, 0);
	if (e->was_there || rmdir(e->dir) < 0)
		return;
	if (!e->output)
		rmdir("outage-runs"); /* there may be others in it */
}

/* Where RUN/run is, the run can go on, once it has written how far it came. */
int exploration_begin(struct exploration *e, bool ends, struct err *err)
{
	int rc = explore_plan_complete(&e->plan, ends, err);

	if (!rc)
		rc = explore_plan_inputs(&e->plan, e->inputs_file, &e->inputs, err);
	if (rc)
		return rc;
	e->plan.ours = true;
	e->was_there = e->output && access(e->output, F_OK) == 0;
	case_ready_to_mark(&e->unmarked);
	rc = case_create(e->output, e->plan.target, explore_made, &e->dir, err);
	if (rc)
		return rc;
	rc = case_plan_save(&explore_plan_kept, e->dir, &e->plan, err);
	if (rc)
		exploration_abandon(e);
	return rc;
}

/* ---- going on ---- */

static uint64_t count_findings(const char *run)
{
	auto_words names = { 0 };
	struct err why = ERR_INIT;
	int rc = below_list(run, "findings", &names, &why);

	return names.n + (rc && rc != -ENOENT);
}

int exploration_resume(struct exploration *e, struct err *err)
{
	auto_call(explore_plan_release) struct explore_plan given = e->plan;
	auto_free char *source = xasprintf("%s/" CASE_RUN, e->resume);
	int rc = 0;

	explore_plan_init(&e->plan);
	e->dir = xstrdup(e->resume);
	rc = case_plan_resume(&explore_plan_kept, e->dir, e->output, &given, &e->plan, err);
	/* In this order: a guest's kernel is asked for its version, and so is run. */
	if (!rc)
		rc = explore_plan_trust(&e->plan, e->dir, e->trust, err);
	if (!rc)
		rc = explore_plan_same_kernels(&e->plan, e->dir, err);
	if (!rc)
		rc = explore_plan_inputs(&e->plan, source, &e->inputs, err);
	if (!rc)
		rc = case_sweep(e->dir, err);
	if (!rc && e->plan.ours)
		case_ready_to_mark(&e->unmarked);
	if (!rc)
		e->found_before = count_findings(e->dir);
	return rc;
}
