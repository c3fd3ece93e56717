/* SPDX-License-Identifier: MIT */
/* pm_report.c - reports a run of outage pm as text, as JSON, and as a page with stores. */
#include "report/pm_report.h"

#include "report/report.h"

enum { BEFORE = 6, AFTER = 4, ROWS_MAX = 120, SAID_SHOWN = 4000 };

static void paragraph(struct strbuf *out, const char *key, const char *value)
{
	html_addf(out, "<p>%s %s</p>\n", key, value);
}

static bool is_shown(const struct event *ev)
{
	return ev->kind == EV_STORE || ev->kind == EV_LINEFLUSH || ev->kind == EV_FENCE ||
	       ev->kind == EV_OP_BEGIN || ev->kind == EV_OP_END || ev->kind == EV_TEXT;
}

static void add_words(const struct pm_run *r, uint64_t event, struct strbuf *words)
{
	const struct event *ev = &r->trace.events.v[event];

	strbuf_addf(words, "%llu ", llu(event));
	switch (ev->kind) {
	case EV_OP_BEGIN:
	case EV_OP_END:
		strbuf_addf(words, "mark: operation %llu %s", llu(ev->ref),
			    ev->kind == EV_OP_BEGIN ? "begins" : "has returned");
		break;
	case EV_TEXT:
		strbuf_adds(words, "mark: ");
		strbuf_add(words, (const char *)ev->data, ev->len);
		break;
	case EV_FENCE:
		strbuf_adds(words, "fence");
		break;
	case EV_LINEFLUSH:
		strbuf_addf(words, "flush of the line at %#llx",
			    llu(ev->addr & ~(uint64_t)(PM_LINE - 1)));
		break;
	default:
		strbuf_addf(words, "%s of %llu bytes at %#llx",
			    ev->flags & EV_NONTEMPORAL ? "non-temporal store" : "store",
			    llu(ev->len), llu(ev->addr));
	}
	if (ev->pc) {
		strbuf_adds(words, ", made at ");
		pm_where_words(&r->where, ev->pc, words);
	}
}

/* True near a lost store or the crash; events that are not shown do not count. */
static bool is_near(const struct pm_run *r, const struct crash_state *s, uint64_t event)
{
	return (event + BEFORE >= s->point && event < s->point + AFTER) ||
	       any_of(i, s->lost.n,
		      event + BEFORE >= s->lost.v[i] && event <= s->lost.v[i] + AFTER) ||
	       r->trace.events.v[event].kind == EV_TEXT;
}

static void add_rows(const struct pm_run *r, const struct crash_state *s, struct strbuf *out)
{
	const struct trace *t = &r->trace;
	bool cut = false, gap = false;
	size_t shown = 0;

	strbuf_adds(out, "<table>\n");
	for (uint64_t i = 0; i < t->events.n; i++) {
		if (i >= s->point && !cut) {
			report_page_cut(out);
			cut = true;
		}
		if (!is_shown(&t->events.v[i]))
			continue;
		if (!is_near(r, s, i) || shown >= ROWS_MAX) {
			gap = true;
			continue;
		}
		auto_strbuf words = STRBUF_INIT;

		add_words(r, i, &words);
		report_page_row(out, gap,
				t->events.v[i].kind == EV_STORE || i >= s->point
					? view_state_fate(s, i)
					: REQUEST_NONE,
				&words);
		strbuf_adds(out, "</td></tr>\n");
		gap = false;
		shown++;
	}
	if (!cut)
		report_page_cut(out);
	strbuf_adds(out, "</table>\n");
	if (shown >= ROWS_MAX)
		strbuf_addf(out, "<p>%d lines are shown, and not more.</p>\n", ROWS_MAX);
}

static int add_case(const struct pm_run *r, const struct pm_case *c, struct strbuf *out,
		    struct err *err)
{
	struct pm_state s;
	int rc = pm_state_load(r, c->state, &s, err);

	if (rc)
		return rc;
	html_addf(out, "<h2>%s</h2>\n<p>%llu %s this way; this one is %s, kept in %s</p>\n",
		  c->title, COUNT(c->states, "state fails", "states fail"), c->state, c->dir);
	if (*s.prefix)
		paragraph(out, "of what recovery stored, after a first crash:", "");
	if (*s.fault)
		paragraph(out, "and a bad line:", s.fault);
	add_rows(s.run, &s.s, out);
	if (c->detail && *c->detail)
		html_addf(out, "<pre>%s</pre>\n", c->detail);
	if (c->cause)
		paragraph(out, "cause:", c->cause);
	paragraph(out, "seen:", c->seen ? c->seen : "");
	report_page_said(out, &c->said, SAID_SHOWN);
	pm_state_release(&s);
	return 0;
}

int pm_report_html(const struct pm_run *r, const char *version, const struct pm_summary *s,
		   const struct pm_cases *cases, struct strbuf *out, struct err *err)
{
	int rc = 0;

	report_page_begin(out, "outage pm", r->plan.program);
	paragraph(out, "version", version);
	paragraph(out, "file", r->plan.file);
	paragraph(out, r->plan.check ? "check" : "dump",
		  r->plan.check ? r->plan.check : r->plan.dump);
	if (!s)
		paragraph(out, "not finished:",
			  "it was killed, or is still running; what failed until then");
	else
		strbuf_addf(out,
			    "<p>%llu stores, %llu flushes, %llu fences, %llu marks; %llu states "
			    "checked, %llu fail; %llu %s</p>\n",
			    llu(s->stores), llu(s->flushes), llu(s->fences), llu(s->marks),
			    llu(s->checked), llu(s->failing), COUNT_S(cases->n, "finding"));
	for (size_t i = 0; !rc && i < cases->n; i++)
		rc = add_case(r, &cases->v[i], out, err);
	strbuf_adds(out, "</body></html>\n");
	return rc;
}

/* ---- text and JSON ---- */

static void case_json(struct json *j, const struct pm_case *c)
{
	json_object(j);
	json_kvs(j, KV("case", c->dir), KV("title", c->title));
	if (c->cause) {
		auto_free char *class = xmemdupz(c->cause, strcspn(c->cause, ":"));

		json_kvs(j, KV("class", class), KV("cause", c->cause));
	}
	json_kvs(j, KV("state", c->state), KV("point", c->point), KV("states", c->states),
		 KV("seen", c->seen ? c->seen : ""), KV("detail", c->detail ? c->detail : ""),
		 KV("said", &c->said));
	json_end(j);
}

void pm_report_json(const struct pm_plan *p, const char *version, const struct pm_summary *s,
		    const struct pm_cases *cases, struct strbuf *out)
{
	struct json j;

	json_init(&j, out, true);
	json_object(&j);
	json_kvs(&j, KV("version", version), KV("file", p->file), KV("program", p->program),
		 KV("check", p->check ? p->check : p->dump), KV("ended", (bool)s));
	if (s) {
		json_kvs(&j, KV("operations", s->operations), KV("crash_states", s->crash_states),
			 KV("unique_states", s->unique_states), KV("checked", s->checked));
	}
	json_kv_array(&j, "findings");
	for (size_t i = 0; i < cases->n; i++)
		case_json(&j, &cases->v[i]);
	json_end(&j);
	json_end(&j);
}

void pm_report_text(const struct pm_plan *p, const char *version, const struct pm_summary *s,
		    const struct pm_cases *cases, struct strbuf *out)
{
	strbuf_addf(out, "version  %s\nprogram  %s\nfile     %s\ncheck    %s\n", version,
		    p->program, p->file, p->check ? p->check : p->dump);
	if (!s)
		strbuf_addf(out, "not finished: it was killed, or is still running; what failed "
				 "until then (some of it may be one finding):\n");
	else
		strbuf_addf(
			out,
			"%llu %s, %llu %s, %llu %s, %llu %s; %llu %s checked, %llu of them %s\n",
			COUNT_S(s->stores, "store"), COUNT(s->flushes, "flush", "flushes"),
			COUNT_S(s->fences, "fence"), COUNT_S(s->marks, "mark"),
			COUNT_S(s->checked, "state"), COUNT(s->failing, "fails", "fail"));
	vec_each(c, cases) {
		strbuf_addf(out, "\nproblem  %s\n", c->title);
		if (c->cause)
			strbuf_addf(out, "cause    %s\n", c->cause);
		strbuf_addf(out,
			    "         %s\n         %s: state %s at event %llu, and %llu more like "
			    "it\n%s",
			    c->seen ? c->seen : "", c->dir, c->state, llu(c->point),
			    llu(c->states - 1), c->detail ? c->detail : "");
		if (c->said.len)
			strbuf_addf(out, "said     %s%s", strbuf_str(&c->said),
				    c->said.buf[c->said.len - 1] == '\n' ? "" : "\n");
	}
}
