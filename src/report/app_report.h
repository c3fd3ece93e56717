/* SPDX-License-Identifier: MIT */
/* app_report.h - what a run of `outage app` found, as text, JSON, a page, and for others to see. */
#ifndef REPORT_APP_REPORT_H
#define REPORT_APP_REPORT_H

#include "app/app_keep.h"
#include "app/states.h"
#include "base/json.h"
#include "app/posix_log.h"
#include "stack/table.h"

struct app_view {
	const char *run;
	const struct app_plan *plan;
	const struct words *acks;
	const struct words *shown; /* lines that a query may print; NULL: any */
	struct app_summary summary;
	bool has_summary; /* or the run did not come to its end */
	struct history *h;
	const struct posix_log *log;
	const struct stack_table *stacks; /* who called; may be empty */
	struct vec_of(struct app_case) cases;
};

/* Reads the findings of a run, or only that in `dir`, if it is not NULL. */
int app_view_load(struct app_view *v, const char *dir, struct err *err) must_check;
void app_view_release(struct app_view *v);

int app_report_text(const struct app_view *v, struct strbuf *out, struct err *err) must_check;
int app_report_json(const struct app_view *v, struct json *j, struct err *err) must_check;
int app_report_html(const struct app_view *v, struct strbuf *out, struct err *err) must_check;

/* A script that builds the crash directory, and runs the check if it is asked to. */
int app_export_script(const struct app_view *v, const struct app_case *c, struct strbuf *out,
		      struct err *err) must_check;
/* The fault for LazyFS that leads to such a state; false if there is none. */
bool app_export_lazyfs(const struct app_view *v, const struct app_case *c, struct strbuf *out);

#endif
