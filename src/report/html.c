/* SPDX-License-Identifier: MIT */
/*
 * html.c - one page for a run. A page needs no other file and no script: the browser folds its
 * parts.
 *
 * H1: all text from a file goes through report_html_escape(); no attribute holds any of it.
 */
#include "report/report.h"
#include "report/texts.h"

enum { CASES_LISTED = 50, HEADLINE = 90 };

/* ---- escaping ---- */

void report_html_escape(struct strbuf *out, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		switch (c) {
		case '&':
			strbuf_adds(out, "&amp;");
			break;
		case '<':
			strbuf_adds(out, "&lt;");
			break;
		case '>':
			strbuf_adds(out, "&gt;");
			break;
		case '"':
			strbuf_adds(out, "&quot;");
			break;
		case '\'':
			strbuf_adds(out, "&#39;");
			break;
		default:
			/* Control characters and those beyond ASCII are not safe as text. */
			if ((c >= 0x20 && c < 0x7f) || c == '\n' || c == '\t')
				strbuf_addch(out, (char)c);
			else
				strbuf_addf(out, "\\x%02x", c);
		}
	}
}

/* ---- a case ---- */

/* Returns a problem's words for one line: those of programs are long, then the consequence. */
static const char *headline(const struct stored_problem *p)
{
	return strlen(p->words) <= HEADLINE ? p->words : finding_kind_words(p->kind);
}

static void put_problems(const struct view *v, struct strbuf *out)
{
	vec_each(p, &v->c.problems) {
		const char *kind = finding_kind_words(p->kind);
		size_t said = strncmp(p->words, kind, strlen(kind)) ? 0 : strlen(kind);

		html_addf(out, "<p class=\"said\"><b>%s</b>%s%s", kind, said ? "" : ": ",
			  p->words + said);
		const char *joint, *reason = view_problem_reason(p, &joint);

		if (*reason)
			html_addf(out, "<small>%s %s</small>", joint, reason);
		strbuf_adds(out, "</p>\n");
	}
}

static void put_cut(const struct view *v, struct strbuf *out)
{
	strbuf_adds(out, "<tr class=\"cut\"><td></td><td>the power fails");
	if (v->crash.has_state)
		strbuf_addf(out, ", at event %llu of %zu", llu(v->crash.state.point),
			    v->crash.trace.events.n);
	else if (v->c.done < v->c.workload.ops.n)
		strbuf_adds(out, " here, or during the next operation: the trace would tell");
	strbuf_adds(out, v->second.has_trace ? "; and a second time, during recovery</td></tr>\n"
					     : "</td></tr>\n");
}

static void put_operation(const struct view *v, const struct view_step *s, struct strbuf *out)
{
	const struct op *op = &v->c.workload.ops.v[s->op];
	auto_strbuf line = STRBUF_INIT;

	op_print(op, &line);
	strbuf_addf(out, "<tr><td>%zu</td><td>%s", s->op,
		    op->setup ? "<span class=\"setup\">setup</span> " : "");
	report_html_text(out, strbuf_str(&line));
	if (s->error)
		html_addf(out, " <span class=\"tag\">failed: %s</span>", strerror(s->error));
	if (s->under_way)
		strbuf_adds(out, " <span class=\"tag\">under way</span>");
	strbuf_adds(out, "</td></tr>\n");
}

static void put_workload(const struct view *v, struct strbuf *out)
{
	auto_vec struct view_steps steps = { 0 };

	strbuf_adds(out, "<h3>Workload</h3>\n<table class=\"ops\">\n");
	view_steps(v, &steps);
	for (const struct view_step *s = steps.v, *end = s + steps.n; s < end; s++) {
		if (s->kind == STEP_OPERATION) {
			put_operation(v, s, out);
		} else if (s->kind == STEP_CRASH) {
			put_cut(v, out);
		} else {
			strbuf_adds(out, "<tr><td></td><td><span class=\"setup\">mark</span> ");
			report_html_escape(out, (const char *)s->mark->data, s->mark->len);
			strbuf_adds(out,
				    s->late ? " <span class=\"tag\">not reached</span></td></tr>\n"
					    : "</td></tr>\n");
		}
	}
	strbuf_adds(out, "</table>\n");
}

static void legend_item(struct strbuf *out, const char *fate, const char *shape, const char *words)
{
	strbuf_addf(out,
		    "<span><svg width=\"12\" height=\"12\"><g class=\"w %s\">%s</g></svg>%s</span>",
		    fate, shape, words);
}

static void put_legend(struct strbuf *out)
{
	static const char dot[] = "<circle cx=\"6\" cy=\"6\" r=\"4.5\"/>";
	static const char box[] = "<rect x=\"1.5\" y=\"1.5\" width=\"9\" height=\"9\"/>";

	strbuf_adds(out, "<div class=\"legend\"><span><svg width=\"16\" height=\"12\"><g "
			 "class=\"op persist\"><rect x=\"1\" y=\"1\" width=\"14\" height=\"10\" "
			 "rx=\"2\"/></g></svg>makes a promise</span>");
	legend_item(out, "later", dot, "data");
	legend_item(out, "later", box, "metadata");
	legend_item(out, "durable", dot, "durable before the crash");
	legend_item(out, "survived", dot, "in flight, survived");
	legend_item(out, "lost", dot, "in flight, lost");
	legend_item(out, "torn", dot, "in flight, torn");
	legend_item(out, "later", dot, "after the crash");
	strbuf_adds(out,
		    "<span><svg width=\"12\" height=\"12\"><g class=\"flush\"><path d=\"M6 1l6 "
		    "10h-12z\"/></g></svg>flush</span><span><svg width=\"12\" height=\"12\"><path "
		    "class=\"fua\" d=\"M6 1l5 5l-5 5l-5 -5z\"/></svg>FUA</span></div>\n");
}

/* True if a flush came before the crash: the page says if none did, which often is the cause. */
static bool flushed_before(const struct view_crash *c)
{
	for (size_t i = 0; i < c->state.point && i < c->trace.events.n; i++) {
		const struct event *ev = &c->trace.events.v[i];

		if (ev->kind == EV_FLUSH ||
		    (ev->kind == EV_WRITE && ev->flags & (EV_PREFLUSH | EV_FUA)))
			return true;
	}
	return false;
}

static void put_flight(const struct view_crash *c, const char *when, struct strbuf *out)
{
	const struct crash_state *s = &c->state;
	size_t n = s->lost.n + s->torn.n + s->survived.n;

	if (c->has_state)
		strbuf_addf(out,
			    "<p class=\"note\">In flight when the power failed%s: %llu %s; %zu "
			    "lost, %zu torn%s, %zu survived.%s</p>\n",
			    when, COUNT_S(n, "write"), s->lost.n, s->torn.n, view_torn_into(s).text,
			    s->survived.n, flushed_before(c) ? "" : " No flush had been sent.");
	if (c->has_state && n && c->places) {
		auto_strbuf lines = STRBUF_INIT;

		report_flight(c, &lines);
		html_addf(out, "<pre>%s</pre>\n", strbuf_str(&lines));
	}
}

static void put_trace(const struct view *v, struct strbuf *out)
{
	if (v->no_trace)
		html_addf(out,
			  "<p class=\"note\">The trace cannot be used, so it is not known which "
			  "operation was under way, nor what was in flight and got lost: %s</p>\n",
			  v->no_trace);
	if (!v->crash.has_trace)
		return;
	strbuf_adds(out, "<h3>What reached the disk</h3>\n");
	report_picture(&v->crash, &v->c.workload, out);
	put_flight(&v->crash, "", out);
	if (v->second.has_trace) {
		strbuf_adds(out, "<h3>What recovery sent to the disk</h3>\n<p>While it recovered "
				 "from the first crash, the power failed a second time.</p>\n");
		report_picture(&v->second, NULL, out);
		put_flight(&v->second, " again", out);
	}
	put_legend(out);
}

static void put_cell(struct strbuf *out, const char *line, size_t len)
{
	strbuf_adds(out, "<td>");
	if (line)
		report_html_escape(out, line, len);
	strbuf_adds(out, "</td>");
}

static void put_trees(const struct view *v, struct strbuf *out)
{
	static const char *const classes[] = { "", " class=\"changed\"", " class=\"gone\"",
					       " class=\"extra\"" };
	auto_vec struct view_rows rows = { 0 };
	bool allowed = false;

	if (!v->has_expected)
		return;
	view_rows(v, &rows);
	strbuf_addf(out,
		    "<h3>What is there</h3>\n<table "
		    "class=\"tree\"><tr><th>expected</th><th>%s</th></tr>\n",
		    v->has_seen ? "seen" : "nothing could be seen");
	for (size_t i = 0; i < rows.n; i++) {
		allowed |= rows.v[i].allowed;
		strbuf_addf(out, "<tr%s>",
			    rows.v[i].allowed ? " class=\"free\""
			    : v->has_seen     ? classes[rows.v[i].mark]
					      : "");
		put_cell(out, rows.v[i].expected, rows.v[i].expected_len);
		put_cell(out, rows.v[i].seen, rows.v[i].seen_len);
		strbuf_adds(out, "</tr>\n");
	}
	strbuf_adds(out, "</table>\n");
	for (size_t i = 0; i < v->diff.list.n; i++)
		if (view_about(v, v->diff.list.v[i].path))
			html_addf(out, "<div class=\"note\">%s</div>\n", v->diff.list.v[i].words);
	if (allowed)
		strbuf_adds(out, "<div class=\"note\">Grey and slanted: it differs, and may; "
				 "nothing had promised it.</div>\n");
	if (!v->has_seen)
		strbuf_adds(out, "<div class=\"note\">This is the latest state: not all of it need "
				 "be promised.</div>\n");
}

static void put_diagnosis(const struct view *v, struct strbuf *out)
{
	if (v->diagnosis.len)
		html_addf(out, "<h3>Diagnosis</h3>\n<pre>%s</pre>\n", v->diagnosis.buf);
}

static void put_said(const struct view *v, struct strbuf *out)
{
	if (v->kernel_log.len)
		html_addf(out, "<h3>Kernel log</h3>\n<pre>%s</pre>\n", v->kernel_log.buf);
	if (v->said.len)
		html_addf(out, "<h3>Mount and fsck said</h3>\n<pre>%s</pre>\n", v->said.buf);
}

static void put_again(const struct view *v, struct strbuf *out)
{
	html_addf(out,
		  "<h3>See it again</h3>\n<pre>outage replay %s\noutage shrink %s\n"
		  "outage export %s -o reproducer</pre>\n<p class=\"note\">%s, guarantee %s, Linux "
		  "%s; "
		  "state <code>%s</code></p>\n",
		  v->c.dir, v->c.dir, v->c.dir, v->c.target, v->c.guarantee,
		  v->c.kernel ? v->c.kernel : "unknown", v->c.state);
}

static void put_case(const struct view *v, struct strbuf *out)
{
	put_problems(v, out);
	put_workload(v, out);
	put_diagnosis(v, out);
	put_trace(v, out);
	put_trees(v, out);
	put_said(v, out);
	put_again(v, out);
}

/* ---- the page ---- */

/* Adds "4 more kept, 165 counted only". */
static void put_others(const struct run_view *r, const struct run_cluster *c, struct strbuf *out)
{
	uint64_t more = c->kept - 1, counted = c->count - c->kept;
	size_t shown = 0;

	if (c->count < 2)
		return;
	if (!more) {
		strbuf_addf(out, "<p class=\"note\">%llu more counted only</p>\n", llu(counted));
		return;
	}
	strbuf_addf(out, "<details><summary>%llu more kept", llu(more));
	if (counted)
		strbuf_addf(out, ", %llu counted only", llu(counted));
	strbuf_adds(out, "</summary>\n<pre>");
	for (size_t i = (size_t)c->first + 1; i < r->cases.n && shown < CASES_LISTED; i++)
		if (streq(r->cases.v[i].cluster, c->name)) {
			html_addf(out, "%s  %s\n", r->cases.v[i].c.dir,
				  headline(stored_case_first(&r->cases.v[i].c)));
			shown++;
		}
	if (shown < more)
		strbuf_addf(out, "and %llu more", llu(more - shown));
	strbuf_adds(out, "</pre></details>\n");
}

static int put_cluster(const struct run_view *r, size_t i, struct strbuf *out, struct err *err)
{
	const struct run_cluster *c = &r->clusters.v[i];
	struct view v;

	if (c->first == RUN_NO_CASE) {
		html_addf(out,
			  "<p class=\"said\" id=\"c%zu\">%zu. %s <span class=\"tag\">%s; no case "
			  "of it was kept</span></p>\n",
			  i + 1, i + 1, c->words, c->name);
		return 0;
	}
	int rc = view_load(r->cases.v[c->first].c.dir, false, &v, err);
	if (rc)
		return rc;
	html_addf(out,
		  "<details class=\"case\" id=\"c%zu\"%s><summary>%zu. %s <span class=\"tag\">%s, "
		  "%llu %s</span></summary>\n",
		  i + 1, i < 3 ? " open" : "", i + 1, headline(stored_case_first(&v.c)), c->name,
		  COUNT_S(c->count, "case"));
	put_case(&v, out);
	put_others(r, c, out);
	strbuf_adds(out, "</details>\n");
	view_release(&v);
	return 0;
}

static void put_fact(const char *key, const char *value, struct strbuf *out)
{
	html_addf(out, "<tr><td>%s</td><td>%s</td></tr>\n", key, value);
}

static void put_options(const struct run_view *r, struct strbuf *out)
{
	strbuf_adds(out, "<details class=\"options\"><summary>Options</summary>\n"
			 "<table class=\"sum\">\n");
	for (size_t i = 0; i < r->options.n; i++)
		put_fact(r->options.v[i].key, r->options.v[i].value, out);
	strbuf_adds(out, "</table></details>\n");
}

static void put_about(const struct run_view *r, struct strbuf *out)
{
	auto_strbuf value = STRBUF_INIT;
	const char *key;

	strbuf_adds(out, "<table class=\"sum\">\n");
	put_fact("run", r->dir, out);
	if (!r->has_plan && r->cases.n) {
		const struct stored_case *c = &r->cases.v[0].c;

		strbuf_addf(&value, "%s, guarantee %s, Linux %s", c->target, c->guarantee,
			    c->kernel ? c->kernel : "unknown");
		put_fact("target", value.buf, out);
	}
	for (size_t i = 0; run_view_fact(r, i, &key, &value); i++)
		if (value.len)
			put_fact(key, value.buf, out);
	strbuf_adds(out, "</table>\n");
	if (r->options.n)
		put_options(r, out);
}

static void put_clusters(const struct run_view *r, struct strbuf *out)
{
	strbuf_adds(out, "<h2>Clusters</h2>\n<table><tr><th "
			 "class=\"num\">cases</th><th>what</th><th>first of them</th></tr>\n");
	for (size_t i = 0; i < r->clusters.n; i++) {
		const struct run_cluster *c = &r->clusters.v[i];

		html_addf(out,
			  "<tr><td class=\"num\">%llu</td><td><a "
			  "href=\"#c%zu\">%s</a></td><td>%s</td></tr>\n",
			  llu(c->count), i + 1, c->name,
			  c->first == RUN_NO_CASE
				  ? c->words
				  : headline(stored_case_first(&r->cases.v[c->first].c)));
	}
	strbuf_adds(out, "</table>\n<h2>The first case of each</h2>\n");
}

int report_html_run(const struct run_view *r, struct strbuf *out, struct err *err)
{
	int rc = 0;

	strbuf_adds(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
			 "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
			 "<meta name=\"color-scheme\" content=\"light dark\">\n<title>outage: ");
	html_addf(out, "%s</title>\n<style>\n", r->dir);
	strbuf_addf(out, "%s</style></head><body>\n<h1>", style_run);
	if (r->findings)
		strbuf_addf(out, "<span class=\"bad\">%llu %s</span> in %llu %s</h1>\n",
			    COUNT_S(r->findings, "finding"), COUNT_S(r->clusters.n, "cluster"));
	else
		strbuf_adds(out, "Nothing found</h1>\n");
	put_about(r, out);
	if (r->clusters.n)
		put_clusters(r, out);
	for (size_t i = 0; i < r->clusters.n && !rc; i++)
		rc = put_cluster(r, i, out, err);
	strbuf_adds(out, "</body></html>\n");
	return rc;
}
