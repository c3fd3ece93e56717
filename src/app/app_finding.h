/* SPDX-License-Identifier: MIT */
/* app_finding.h - a finding of `outage app`, read again with its run: shown again, and made small.
 */
#ifndef APP_APP_FINDING_H
#define APP_APP_FINDING_H

#include "app/app_run.h"
#include "app/posix_log.h"

struct app_finding {
	struct app_run run;
	struct posix_log log;
	struct app_case c;
};

/* `dir` is the finding's. */
int app_finding_load(const char *dir, struct app_finding *out, struct err *err) must_check;
void app_finding_release(struct app_finding *f);

/*
 * A failure of the searched run, or of a restart of it, `at`, as a case to be released. `at_log` is
 * the log of `at`.
 */
void app_finding_case(struct app_run *run, const struct posix_log *log, const struct app_run *at,
		      const struct posix_log *at_log, const struct search_found *found,
		      struct app_case *out);

/* Whether a check showed the finding: the same harm; any other is another failure. */
bool app_finding_shows(const struct app_case *c, const struct verdict *v);
/*
 * Checks the state again, one that did not always show several times. Commands of the run are
 * called: see case_trust().
 */
int app_finding_again(struct app_finding *f, struct verdict *v, struct err *err) must_check;
/*
 * Explains the state anew, by `checks_max` checks, so that as little as can be is lost; f->c
 * becomes what is found. A finding that does not always show stays as it is. 1: it does not show
 * any more.
 */
int app_finding_shrink(struct app_finding *f, uint64_t checks_max, struct case_shrunk *out,
		       struct err *err) must_check;

#endif
