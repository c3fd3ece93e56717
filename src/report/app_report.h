/* SPDX-License-Identifier: MIT */
/* app_report.h - findings of `outage app`, as text, JSON, a page, and for others to see. */
#ifndef REPORT_APP_REPORT_H
#define REPORT_APP_REPORT_H

#include "app/app_keep.h"
#include "app/states.h"
#include "base/json.h"
#include "app/posix_log.h"
#include "stack/table.h"

struct app_view {
	const char *run;
	const char *version; /* of the program that made it */
	const struct app_plan *plan;
	const struct words *acks;
	const struct words *shown; /* lines that a query may print; NULL: any */
	struct app_summary summary;
	bool has_summary; /* or the run did not come to its end */
	struct history *h;
	const struct posix_log *log;
	const struct stack_table *stacks; /* the callers; may be empty */
	struct vec_of(struct app_case) cases;
	/* By case: the record that its state is of, which is the run's or that of a restart. */
	struct vec_of(struct app_view_at {
		const struct app_plan *plan;
		struct history *h;
		const struct posix_log *log;
		const struct stack_table *stacks;
	}) at;
	/* For a case of a restart: the view of the run, and the plan of the restart. */
	const struct app_view *outer;
	const struct app_plan *restart;
};

/* Reads the findings of a run, or only that in `dir`, if it is not NULL. */
int app_view_load(struct app_view *v, const char *dir, struct err *err) must_check;
void app_view_release(struct app_view *v);
/* The view of what case `i` is about; it borrows from `v`, and is not released. */
struct app_view app_view_of(const struct app_view *v, size_t i);

int app_report_text(const struct app_view *v, struct strbuf *out, struct err *err) must_check;
int app_report_json(const struct app_view *v, struct json *j, struct err *err) must_check;
int app_report_html(const struct app_view *v, struct strbuf *out, struct err *err) must_check;

/* A script that builds the crash directory, and runs the check if it is asked to. */
int app_export_script(const struct app_view *v, const struct app_case *c, struct strbuf *out,
		      struct err *err) must_check;
/* The fault for LazyFS that leads to such a state; false if there is none. */
bool app_export_lazyfs(const struct app_view *v, const struct app_case *c, struct strbuf *out);

#endif
