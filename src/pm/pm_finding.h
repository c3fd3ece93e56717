/* SPDX-License-Identifier: MIT */
/* pm_finding.h - a finding of `outage pm`, read again with its run, and ready to be looked at. */
#ifndef PM_PM_FINDING_H
#define PM_PM_FINDING_H

#include "pm/pm_run.h"

struct pm_finding {
	struct pm_run run;
	struct pm_case c;
	bool made; /* the file was not there, and is removed in the end */
};

/* `dir` is the finding's. */
int pm_finding_load(const char *dir, struct pm_finding *out, struct err *err) must_check;
/* Its states may be looked at (see case_trust()), and there is a file in whose place they are. */
int pm_finding_ready(struct pm_finding *f, bool trust, struct err *err) must_check;
void pm_finding_release(struct pm_finding *f);

#endif
