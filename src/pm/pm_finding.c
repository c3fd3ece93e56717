/* SPDX-License-Identifier: MIT */
/* pm_finding.c - reads a finding with its run, and has a file for its states. */
#include "pm/pm_finding.h"

#include <unistd.h>

#include "base/below.h"
#include "pm/file.h"

int pm_finding_load(const char *dir, struct pm_finding *out, struct err *err)
{
	auto_free char *run = below_run_of(dir);
	int rc = pm_run_load(run, &out->run, err);

	out->made = false;
	if (rc)
		return rc;
	rc = case_get(&pm_kind, dir, &out->c, err);
	if (rc)
		pm_run_release(&out->run);
	return rc;
}

int pm_finding_ready(struct pm_finding *f, bool trust, struct err *err)
{
	struct pm_plan *plan = &f->run.plan;
	int rc = case_trust(&pm_kind, f->run.dir, &f->c, plan, trust, &plan->ours, err);

	return rc ? rc : pm_file_place(plan->file, &f->made, err);
}

void pm_finding_release(struct pm_finding *f)
{
	if (f->made)
		unlink(f->run.plan.file);
	case_finding_release(&pm_kind, &f->c);
	pm_run_release(&f->run);
}
