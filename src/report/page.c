/* SPDX-License-Identifier: MIT */
/* page.c - the first part of pages of outage app and outage pm: both are rows, in one style. */
#include "report/report.h"

static const char style[] =
	"body{margin:0 auto;max-width:1100px;padding:24px 20px 60px;font:15px/1.5 "
	"system-ui,sans-serif;color:#1c1f24;background:#fff}\n"
	"h1{font-size:24px}h2{font-size:18px;margin:36px 0 8px}p{margin:6px 0}\n"
	"table{border-collapse:collapse;width:100%;font:13px ui-monospace,monospace}"
	"td{padding:2px 10px;border-bottom:1px solid #e3e7ec}td:first-child{width:80px;"
	"color:#667080}\n"
	".lost td{background:#fdecea;color:#c62828}.torn td{background:#fff4dc;color:#8a5a00}"
	".durable td{color:#2e7d32}.later td{color:#a0a8b2}"
	".cut td{border-top:2px solid #c62828;color:#c62828;font-family:system-ui}\n"
	".why{border-left:4px solid #c62828;background:#fdecea;padding:8px 12px}"
	".mend{border-left:4px solid #2e7d32;background:#e8f5e9;padding:8px 12px}"
	"details{color:#667080}ol{margin:2px 0 4px}"
	"pre{background:#f5f7fa;padding:10px;overflow-x:auto;white-space:pre-wrap}"
	".picture{overflow-x:auto;border:1px solid #d8dde4}\n";

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
	strbuf_adds(out, style);
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
