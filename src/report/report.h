/* SPDX-License-Identifier: MIT */
/*
 * report.h - reports findings in several forms, for people and programs.
 *
 * Every function appends to `out`. Names come from the tested system and are hostile: each form
 * escapes them in its own way.
 */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include "base/json.h"
#include "report/view.h"

/* As text for a terminal: one case, and a run with its clusters and their first cases. */
void report_text_case(const struct view *v, struct strbuf *out);
int report_text_run(const struct run_view *r, struct strbuf *out, struct err *err) must_check;

/* Adds a line for outage-test(1) --suppress for each kind of problem in each cluster. */
void report_suppressions(const struct run_view *r, struct strbuf *out);

/* As JSON. */
void report_json_case(const struct view *v, struct json *j);
int report_json_run(const struct run_view *r, struct json *j, struct err *err) must_check;

/* Makes one page that needs no other file. */
int report_html_run(const struct run_view *r, struct strbuf *out, struct err *err) must_check;
void report_html_escape(struct strbuf *out, const char *text, size_t len);
void report_html_text(struct strbuf *out, const char *s);
/* The text of each %s is escaped. */
void html_addf(struct strbuf *out, const char *fmt, ...) printf_like(2, 3);
/* Parts of a page with rows: its begin, the power failure, a row, and output of a command. */
void report_page_begin(struct strbuf *out, const char *command, const char *title);
void report_page_cut(struct strbuf *out);
/* The cell is left open. `gap`: something before this row is not shown. */
void report_page_row(struct strbuf *out, bool gap, enum request_fate fate,
		     const struct strbuf *words);
void report_page_said(struct strbuf *out, const struct strbuf *said, size_t most);
/* Adds a line for each write that was in flight. */
void report_flight(const struct view_crash *c, struct strbuf *out);
/* Draws a trace and its crash as inline SVG; without a workload, the trace of a recovery. */
void report_picture(const struct view_crash *c, const struct workload *w, struct strbuf *out);

/* The exporters, for people without this program. */
#define EXPORTER(file_, mode_, when_, function_)                                                   \
	void function_(const struct view *v, struct strbuf *out);
#include "report/exporters.def"
#undef EXPORTER
void export_xfstest(const struct view *v, struct strbuf *test, struct strbuf *golden);
/* A test of that number that crashes after a workload, and looks at what its end promised. */
void export_generated_xfstest(const struct workload *w, const char *number, struct strbuf *test,
			      struct strbuf *golden);

#endif
