/* SPDX-License-Identifier: MIT */
/* pm_report.h - findings of a run of `outage pm`: text, JSON, a page, an exported script. */
#ifndef REPORT_PM_REPORT_H
#define REPORT_PM_REPORT_H

#include "pm/state.h"

/* `version` of the program made the run; `s` is NULL if the run did not end. */
int pm_report_html(const struct pm_run *r, const char *version, const struct pm_summary *s,
		   const struct pm_cases *cases, struct strbuf *out, struct err *err) must_check;

/* Makes a script that builds the file after the crash, and runs the check if asked to. */
int pm_export_script(const struct pm_run *r, const struct pm_case *c, struct strbuf *out,
		     struct err *err) must_check;
/* `s` is NULL if the run did not end. */
void pm_report_text(const struct pm_plan *p, const char *version, const struct pm_summary *s,
		    const struct pm_cases *cases, struct strbuf *out);
void pm_report_json(const struct pm_plan *p, const char *version, const struct pm_summary *s,
		    const struct pm_cases *cases, struct strbuf *out);

#endif
