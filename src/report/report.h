/* SPDX-License-Identifier: MIT */
/*
 * report.h - findings, in the forms that people and programs take.
 *
 * Every function appends to `out`. Names come from the tested system and are hostile: each form
 * escapes them in its own way.
 */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include "base/json.h"
#include "report/view.h"

/* For a terminal: one case, and a run with its clusters and their first cases. */
void report_text_case(const struct view *v, struct strbuf *out);
int report_text_run(const struct run_view *r, struct strbuf *out, struct err *err) must_check;

/* A line for outage-test(1) --suppress for each kind of problem in each cluster. */
void report_suppressions(const struct run_view *r, struct strbuf *out);

/* For a program. */
void report_json_case(const struct view *v, struct json *j);
int report_json_run(const struct run_view *r, struct json *j, struct err *err) must_check;

/* One page that needs nothing else. */
int report_html_run(const struct run_view *r, struct strbuf *out, struct err *err) must_check;
void report_html_escape(struct strbuf *out, const char *text, size_t len);
void report_html_text(struct strbuf *out, const char *s);
/* The text of a %s is escaped. */
void html_addf(struct strbuf *out, const char *fmt, ...) printf_like(2, 3);
/* A page of rows: up to its title, where the power fails, and what was said. */
void report_page_begin(struct strbuf *out, const char *command, const char *title);
void report_page_cut(struct strbuf *out);
/* An open cell is left. `gap`: something before it is not shown. */
void report_page_row(struct strbuf *out, bool gap, enum request_fate fate,
		     const struct strbuf *words);
void report_page_said(struct strbuf *out, const struct strbuf *said, size_t most);
/* A line for each write that was in flight, for people. */
void report_flight(const struct view_crash *c, struct strbuf *out);
/* A trace and its crash, as inline SVG. Without a workload it is the trace of a recovery. */
void report_picture(const struct view_crash *c, const struct workload *w, struct strbuf *out);

/* For who does not have this program. */
#define EXPORTER(file_, mode_, when_, function_)                                                   \
	void function_(const struct view *v, struct strbuf *out);
#include "report/exporters.def"
#undef EXPORTER
void export_xfstest(const struct view *v, struct strbuf *test, struct strbuf *golden);

#endif
