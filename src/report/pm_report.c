/* SPDX-License-Identifier: MIT */
/* pm_report.c - a run of outage pm as text, as JSON, and as a page with stores. */
#include "report/pm_report.h"

#include <inttypes.h>

#include "report/report.h"

enum { BEFORE = 6, AFTER = 4, ROWS_MAX = 120, SAID_SHOWN = 4000 };

static void paragraph(struct strbuf *out, const char *key, const char *value)
{
	strbuf_addf(out, "<p>%s ", key);
	report_html_text(out, value);
	strbuf_adds(out, "</p>\n");
}

static bool listed(const uint64_t *v, size_t n, uint64_t event)
{
	for (size_t i = 0; i < n; i++)
		if (v[i] == event)
			return true;
	return false;
}

static const char *fate_of(const struct crash_state *s, const struct event *ev, uint64_t event)
{
	if (event >= s->point)
		return "later";
	if (ev->kind != EV_STORE)
		return "";
	if (listed(s->lost.v, s->lost.n, event))
		return "lost";
	return listed(s->survived.v, s->survived.n, event) ? "survived" : "durable";
}

static bool is_shown(const struct event *ev)
{
	return ev->kind == EV_STORE || ev->kind == EV_LINEFLUSH || ev->kind == EV_FENCE ||
	       ev->kind == EV_OP_BEGIN || ev->kind == EV_OP_END || ev->kind == EV_TEXT;
}

static void add_words(const struct pm_run *r, uint64_t event, struct strbuf *out)
{
	const struct event *ev = &r->trace.events.v[event];
	auto_strbuf words = STRBUF_INIT;

	strbuf_addf(&words, "%" PRIu64 " ", event);
	switch (ev->kind) {
	case EV_OP_BEGIN:
	case EV_OP_END:
		strbuf_addf(&words, "mark: operation %" PRIu64 " %s", ev->ref,
			    ev->kind == EV_OP_BEGIN ? "begins" : "has returned");
		break;
	case EV_TEXT:
		strbuf_adds(&words, "mark: ");
		strbuf_add(&words, (const char *)ev->data, ev->len);
		break;
	case EV_FENCE:
		strbuf_adds(&words, "fence");
		break;
	case EV_LINEFLUSH:
		strbuf_addf(&words, "flush of the line at %#" PRIx64,
			    ev->addr & ~(uint64_t)(PM_LINE - 1));
		break;
	default:
		strbuf_addf(&words, "%s of %" PRIu64 " bytes at %#" PRIx64,
			    ev->flags & EV_NONTEMPORAL ? "non-temporal store" : "store", ev->len,
			    ev->addr);
	}
	if (ev->pc) {
		strbuf_adds(&words, ", made at ");
		pm_where_words(&r->where, ev->pc, &words);
	}
	report_html_escape(out, strbuf_str(&words), words.len);
}

static void add_cut(struct strbuf *out)
{
	strbuf_adds(out, "<tr class=\"cut\"><td></td><td>the power fails here</td></tr>\n");
}

/* Near what was lost, or near the crash; events that are not shown do not count. */
static bool is_near(const struct pm_run *r, const struct crash_state *s, uint64_t event)
{
	if (event + BEFORE >= s->point && event < s->point + AFTER)
		return true;
	for (size_t i = 0; i < s->lost.n; i++)
		if (event + BEFORE >= s->lost.v[i] && event <= s->lost.v[i] + AFTER)
			return true;
	return r->trace.events.v[event].kind == EV_TEXT;
}

static void add_rows(const struct pm_run *r, const struct crash_state *s, struct strbuf *out)
{
	const struct trace *t = &r->trace;
	bool cut = false, gap = false;
	size_t shown = 0;

	strbuf_adds(out, "<table>\n");
	for (uint64_t i = 0; i < t->events.n; i++) {
		if (i >= s->point && !cut) {
			add_cut(out);
			cut = true;
		}
		if (!is_shown(&t->events.v[i]))
			continue;
		if (!is_near(r, s, i) || shown >= ROWS_MAX) {
			gap = true;
			continue;
		}
		const char *fate = fate_of(s, &t->events.v[i], i);

		if (gap)
			strbuf_adds(out, "<tr><td></td><td>...</td></tr>\n");
		gap = false;
		strbuf_addf(out, "<tr class=\"%s\"><td>%s</td><td>", fate, fate);
		add_words(r, i, out);
		strbuf_adds(out, "</td></tr>\n");
		shown++;
	}
	if (!cut)
		add_cut(out);
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
	strbuf_adds(out, "<h2>");
	report_html_text(out, c->title);
	strbuf_addf(out, "</h2>\n<p>%" PRIu64 " %s this way; this one is ", c->states,
		    plural(c->states, "state fails", "states fail"));
	report_html_text(out, c->state);
	strbuf_adds(out, ", kept in ");
	report_html_text(out, c->dir);
	strbuf_adds(out, "</p>\n");
	if (*s.prefix)
		paragraph(out, "of what recovery stored, after a first crash:", "");
	if (*s.fault)
		paragraph(out, "and a bad line:", s.fault);
	add_rows(s.run, &s.s, out);
	if (c->detail && *c->detail) {
		strbuf_adds(out, "<pre>");
		report_html_text(out, c->detail);
		strbuf_adds(out, "</pre>\n");
	}
	if (c->cause)
		paragraph(out, "cause:", c->cause);
	paragraph(out, "seen:", c->seen ? c->seen : "");
	if (c->said.len) {
		strbuf_adds(out, "<pre>");
		report_html_escape(out, strbuf_str(&c->said), min(c->said.len, (size_t)SAID_SHOWN));
		strbuf_adds(out, "</pre>\n");
	}
	pm_state_release(&s);
	return 0;
}

int pm_report_html(const struct pm_run *r, const struct pm_summary *s, const struct pm_cases *cases,
		   struct strbuf *out, struct err *err)
{
	int rc = 0;

	report_page_begin(out, "outage pm", r->plan.program);
	paragraph(out, "file", r->plan.file);
	paragraph(out, r->plan.check ? "check" : "dump",
		  r->plan.check ? r->plan.check : r->plan.dump);
	if (!s)
		paragraph(out, "not finished:",
			  "it was killed, or is still running; what failed until then");
	else
		strbuf_addf(out,
			    "<p>%" PRIu64 " stores, %" PRIu64 " flushes, %" PRIu64
			    " fences, %" PRIu64 " marks; %" PRIu64 " states checked, %" PRIu64
			    " fail; %zu %s</p>\n",
			    s->stores, s->flushes, s->fences, s->marks, s->checked, s->failing,
			    cases->n, plural(cases->n, "finding", "findings"));
	for (size_t i = 0; !rc && i < cases->n; i++)
		rc = add_case(r, &cases->v[i], out, err);
	strbuf_adds(out, "</body></html>\n");
	return rc;
}

/* ---- text and JSON ---- */

static void case_json(struct json *j, const struct pm_case *c)
{
	json_object(j);
	json_kv_string(j, "case", c->dir);
	json_kv_string(j, "title", c->title);
	if (c->cause) {
		auto_free char *class = xmemdupz(c->cause, strcspn(c->cause, ":"));

		json_kv_string(j, "class", class);
		json_kv_string(j, "cause", c->cause);
	}
	json_kv_string(j, "state", c->state);
	json_kv_uint(j, "point", c->point);
	json_kv_uint(j, "states", c->states);
	json_kv_string(j, "seen", c->seen ? c->seen : "");
	json_kv_string(j, "detail", c->detail ? c->detail : "");
	json_key(j, "said");
	json_string_len(j, strbuf_str(&c->said), c->said.len);
	json_end(j);
}

void pm_report_json(const struct pm_plan *p, const struct pm_summary *s,
		    const struct pm_cases *cases, struct strbuf *out)
{
	struct json j;

	json_init(&j, out, true);
	json_object(&j);
	json_kv_string(&j, "file", p->file);
	json_kv_string(&j, "program", p->program);
	json_kv_string(&j, "check", p->check ? p->check : p->dump);
	json_kv_bool(&j, "ended", s);
	if (s) {
		json_kv_uint(&j, "operations", s->operations);
		json_kv_uint(&j, "crash_states", s->crash_states);
		json_kv_uint(&j, "unique_states", s->unique_states);
		json_kv_uint(&j, "checked", s->checked);
	}
	json_key(&j, "findings");
	json_array(&j);
	for (size_t i = 0; i < cases->n; i++)
		case_json(&j, &cases->v[i]);
	json_end(&j);
	json_end(&j);
}

void pm_report_text(const struct pm_plan *p, const struct pm_summary *s,
		    const struct pm_cases *cases, struct strbuf *out)
{
	strbuf_addf(out, "program  %s\nfile     %s\ncheck    %s\n", p->program, p->file,
		    p->check ? p->check : p->dump);
	if (!s)
		strbuf_addf(
			out,
			"not finished: it was killed, or is still running; what failed until then "
			"(some of it may be one finding):\n");
	else
		strbuf_addf(
			out,
			"%llu %s, %llu %s, %llu %s, %llu %s; %llu %s checked, %llu of them %s\n",
			(unsigned long long)s->stores, plural(s->stores, "store", "stores"),
			(unsigned long long)s->flushes, plural(s->flushes, "flush", "flushes"),
			(unsigned long long)s->fences, plural(s->fences, "fence", "fences"),
			(unsigned long long)s->marks, plural(s->marks, "mark", "marks"),
			(unsigned long long)s->checked, plural(s->checked, "state", "states"),
			(unsigned long long)s->failing, plural(s->failing, "fails", "fail"));
	for (size_t i = 0; i < cases->n; i++) {
		const struct pm_case *c = &cases->v[i];

		strbuf_addf(out, "\nproblem  %s\n", c->title);
		if (c->cause)
			strbuf_addf(out, "cause    %s\n", c->cause);
		strbuf_addf(out,
			    "         %s\n         %s: state %s at event %llu, and %llu "
			    "more like it\n%s",
			    c->seen ? c->seen : "", c->dir, c->state, (unsigned long long)c->point,
			    (unsigned long long)(c->states - 1), c->detail ? c->detail : "");
		if (c->said.len)
			strbuf_addf(out, "said     %s%s", strbuf_str(&c->said),
				    c->said.buf[c->said.len - 1] == '\n' ? "" : "\n");
	}
}
