/* SPDX-License-Identifier: MIT */
/* pm_finding.h - a finding of `outage pm`, loaded with its run, to check its states again. */
#ifndef PM_PM_FINDING_H
#define PM_PM_FINDING_H

#include "pm/pm_run.h"

struct pm_finding {
	struct pm_run run;
	struct pm_case c;
	bool made; /* the file did not exist, and is removed in the end */
};

/* Loads the finding in `dir`. */
int pm_finding_load(const char *dir, struct pm_finding *out, struct err *err) must_check;
/* Checks that its states may be checked (see case_trust()), and makes the file if there is none. */
int pm_finding_ready(struct pm_finding *f, bool trust, struct err *err) must_check;
void pm_finding_release(struct pm_finding *f);

#endif
