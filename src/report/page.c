/* SPDX-License-Identifier: MIT */
/* page.c - the first part of pages of outage app and outage pm: both are rows, in one style. */
#include "report/report.h"
#include "report/texts.h"

void report_html_text(struct strbuf *out, const char *s)
{
	report_html_escape(out, s, strlen(s));
}

void html_addf(struct strbuf *out, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	strbuf_vaddf_by(out, report_html_text, fmt, ap);
	va_end(ap);
}

void report_page_begin(struct strbuf *out, const char *command, const char *title)
{
	html_addf(out,
		  "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
		  "<title>%s</title><style>",
		  command);
	strbuf_adds(out, style_rows);
	html_addf(out, "</style></head><body>\n<h1>%s</h1>\n", title);
}

void report_page_cut(struct strbuf *out)
{
	strbuf_adds(out, "<tr class=\"cut\"><td></td><td>the power fails here</td></tr>\n");
}

void report_page_row(struct strbuf *out, bool gap, enum request_fate fate,
		     const struct strbuf *words)
{
	if (gap)
		strbuf_adds(out, "<tr><td></td><td>...</td></tr>\n");
	html_addf(out, "<tr class=\"%s\"><td>%s</td><td>", view_fate_name(fate),
		  view_fate_name(fate));
	report_html_escape(out, strbuf_str(words), words->len);
}

void report_page_said(struct strbuf *out, const struct strbuf *said, size_t most)
{
	if (!said->len)
		return;
	strbuf_adds(out, "<pre>");
	report_html_escape(out, strbuf_str(said), min(said->len, most));
	strbuf_adds(out, "</pre>\n");
}
