/* SPDX-License-Identifier: MIT */
/*
 * app_finding.h - reads a finding of `outage app` with its run, shows it again, and makes it small.
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

/* Loads the finding in `dir`. */
int app_finding_load(const char *dir, struct app_finding *out, struct err *err) must_check;
void app_finding_release(struct app_finding *f);

/*
 * Makes a case of a failure of the searched run, or of its restart `at`; to be released. `at_log`
 * is the log of `at`.
 */
void app_finding_case(struct app_run *run, const struct posix_log *log, const struct app_run *at,
		      const struct posix_log *at_log, const struct search_found *found,
		      struct app_case *out);

/* True if a check showed the finding: the same harm. Any other harm is another failure. */
bool app_finding_shows(const struct app_case *c, const struct verdict *v);
/*
 * Checks the state again, several times if its checks have differed. Commands of the run are
 * executed: see case_trust().
 */
int app_finding_again(struct app_finding *f, struct verdict *v, struct err *err) must_check;
/*
 * Explains the state anew, with `checks_max` checks, so that as few operations as possible are
 * lost; f->c gets the result. A finding whose checks have differed stays as it is. Returns 1 if the
 * finding does not show any more.
 */
int app_finding_shrink(struct app_finding *f, uint64_t checks_max, struct case_shrunk *out,
		       struct err *err) must_check;

#endif
