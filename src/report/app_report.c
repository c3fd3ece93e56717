/* SPDX-License-Identifier: MIT */
/* app_report.c - prints findings of an application as text, JSON and HTML. */
#include "report/app_report.h"

#include <inttypes.h>

#include "base/below.h"
#include "app/app_words.h"
#include "report/report.h"

enum { BEFORE = 4, AFTER = 2, ROWS_MAX = 60, SAID_SHOWN = 2000 };

/* What became of an operation. */
enum app_fate { FATE_DONE, FATE_DURABLE, FATE_SURVIVED, FATE_TORN, FATE_LOST, FATE_LATER };

static const char *const fate_names[] = {
	[FATE_DONE] = "",     [FATE_DURABLE] = "durable", [FATE_SURVIVED] = "survived",
	[FATE_TORN] = "torn", [FATE_LOST] = "lost",	  [FATE_LATER] = "later"
};

int app_view_load(struct app_view *v, const char *dir, struct err *err)
{
	struct words dirs = { 0 };
	int rc = 0;

	if (below_exists(v->run, "summary")) {
		rc = record_load(app_kind.summary, v->run, CASE_SUMMARY, &v->summary, err);
		v->has_summary = !rc;
	}
	if (!rc && dir)
		vec_push(&dirs, xstrdup(dir));
	else if (!rc)
		rc = case_list(v->run, &dirs, err);
	for (size_t i = 0; !rc && i < dirs.n; i++) {
		struct app_case c = { 0 };

		rc = app_case_load(dirs.v[i], &c, err);
		if (!rc)
			vec_push(&v->cases, c);
	}
	words_release(&dirs);
	return rc;
}

void app_view_release(struct app_view *v)
{
	for (size_t i = 0; i < v->cases.n; i++)
		app_case_release(&v->cases.v[i]);
	vec_release(&v->cases);
	record_release(app_kind.summary, &v->summary);
}

/* ---- the sequence ---- */

struct row {
	uint64_t event;
	const struct posix_call *call; /* NULL: an acknowledgement */
	enum app_fate fate;
	bool gap; /* something before it is not shown */
};

struct rows vec_of(struct row);

static enum app_fate fate_of_change(const struct history *h, const struct app_state *s,
				    uint32_t change)
{
	if (change_is_durable(&h->changes.v[change], s->point))
		return FATE_DURABLE;
	for (size_t i = 0; i < s->survivors.v.n; i++)
		if (s->survivors.v.v[i].change == change)
			return s->survivors.v.v[i].units ? FATE_TORN : FATE_SURVIVED;
	return FATE_LOST;
}

/* An operation may be several changes: the worst counts. */
static enum app_fate fate_of_event(const struct history *h, const struct app_state *s,
				   uint64_t event)
{
	enum app_fate worst = FATE_DONE;
	uint32_t low = 0, high = (uint32_t)h->changes.n;

	if (event >= s->point)
		return FATE_LATER;
	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (h->changes.v[mid].event < event)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < h->changes.n && h->changes.v[low].event == event; low++)
		worst = max(worst, fate_of_change(h, s, low));
	return worst;
}

static bool is_shown(const struct posix_call *c)
{
	return c->result >= 0 && (posix_op_changes(c->op) || posix_op_persists(c->op));
}

static void all_rows(const struct app_view *v, const struct app_state *s, struct rows *out)
{
	const struct trace *t = v->h->trace;
	size_t at = 0;

	for (uint64_t i = 0; i < t->events.n; i++) {
		const struct posix_call *c = NULL;

		while (at < v->log->calls.n && v->log->calls.v[at].event < i)
			at++;
		if (at < v->log->calls.n && v->log->calls.v[at].event == i)
			c = &v->log->calls.v[at];
		if (t->events.v[i].kind == EV_PERSIST || (c && is_shown(c)))
			vec_push(out, (struct row){ i, c, fate_of_event(v->h, s, i), false });
	}
}

/* Those around what was lost, and around the crash. */
static int find_rows(const struct app_view *v, const struct app_case *c, struct rows *out,
		     struct err *err)
{
	struct app_state s = { 0 };
	struct rows all = { 0 };
	int rc = states_replay(v->h, c->state, &s, err);

	if (rc)
		return rc;
	all_rows(v, &s, &all);
	size_t crash = 0, last = SIZE_MAX;
	while (crash < all.n && all.v[crash].event < s.point)
		crash++;
	for (size_t i = 0; i < all.n; i++) {
		bool near = i + BEFORE >= crash && i < crash + AFTER;

		for (size_t k = i > AFTER ? i - AFTER : 0; !near && k < all.n && k <= i + BEFORE;
		     k++)
			near = all.v[k].fate == FATE_LOST || all.v[k].fate == FATE_TORN;
		if (!near || out->n >= ROWS_MAX)
			continue;
		vec_push(out, all.v[i]);
		vec_last(out).gap = i != last + 1 && i;
		last = i;
	}
	vec_release(&all);
	app_state_release(&s);
	return 0;
}

static void add_row(const struct app_view *v, const struct row *r, struct strbuf *out)
{
	app_words_event(v->h->trace, v->log, r->event, out);
	if (r->call && r->call->op == POSIX_WRITE)
		strbuf_addf(out, ", %" PRIu64 " bytes at %" PRIu64, r->call->len, r->call->offset);
}

static const struct stack_list *stack_of(const struct app_view *v, const struct row *r)
{
	return app_words_stack(v->stacks, v->h->trace, r->event);
}

/* The whole stack is told of what matters, else the place alone. */
static bool matters(const struct app_case *c, const struct row *r)
{
	return r->fate == FATE_LOST || r->fate == FATE_TORN || r->event + 1 == c->point;
}

/* ---- text ---- */

static void text_stack(const struct app_view *v, const struct app_case *c, const struct row *r,
		       struct strbuf *out)
{
	const struct stack_list *s = stack_of(v, r);
	auto_strbuf place = STRBUF_INIT;

	if (!s)
		return;
	if (!matters(c, r)) {
		if (app_words_place(v->stacks, v->h->trace, r->event, &place))
			strbuf_addf(out, "               at %s\n", strbuf_str(&place));
		return;
	}
	for (uint32_t i = 0; i < s->n; i++) {
		auto_strbuf words = STRBUF_INIT;

		stack_frame_words(v->stacks, &v->stacks->frames.v[s->frames[i]], &words);
		strbuf_adds(out, "               at ");
		posix_add_safe(out, strbuf_str(&words), words.len);
		strbuf_addch(out, '\n');
	}
}

static void add_said(struct strbuf *out, const struct app_case *c)
{
	const char *p = strbuf_str(&c->said), *end = p + min(c->said.len, (size_t)SAID_SHOWN);

	while (p < end) {
		const char *line = memchr(p, '\n', (size_t)(end - p));
		const char *stop = line ? line : end;

		strbuf_adds(out, "    | ");
		posix_add_safe(out, p, (size_t)(stop - p));
		strbuf_addch(out, '\n');
		p = line ? line + 1 : end;
	}
}

static int text_case(const struct app_view *v, const struct app_case *c, struct strbuf *out,
		     struct err *err)
{
	struct rows rows = { 0 };
	bool crashed = false;
	int rc = find_rows(v, c, &rows, err);

	strbuf_addf(out, "\n%s: %s\n  %s\n", app_harm_name(c->harm), app_harm_words(c->harm),
		    c->title);
	if (c->fix && *c->fix)
		strbuf_addf(out, "  mend it with: %s\n", c->fix);
	strbuf_addf(out, "  state %s, %" PRIu64 " acknowledged; %" PRIu64 " %s this way\n  %s\n",
		    c->state, c->acks, c->states, plural(c->states, "state fails", "states fail"),
		    c->dir);
	for (size_t i = 0; !rc && i < rows.n; i++) {
		if (rows.v[i].event >= c->point && !crashed) {
			strbuf_adds(out, "             ---- the power fails here ----\n");
			crashed = true;
		}
		if (rows.v[i].gap)
			strbuf_adds(out, "             ...\n");
		strbuf_addf(out, "    %-8s ", fate_names[rows.v[i].fate]);
		add_row(v, &rows.v[i], out);
		strbuf_addch(out, '\n');
		text_stack(v, c, &rows.v[i], out);
	}
	if (!crashed)
		strbuf_adds(out, "             ---- the power fails here ----\n");
	strbuf_addf(out, "  expected: it succeeds; seen: %s\n",
		    c->seen && *c->seen ? c->seen : "-");
	if (c->shown < c->asked)
		strbuf_addf(out, "  shown %" PRIu64 " of %" PRIu64 " times\n", c->shown, c->asked);
	add_said(out, c);
	vec_release(&rows);
	return rc;
}

int app_report_text(const struct app_view *v, struct strbuf *out, struct err *err)
{
	const struct app_summary *s = &v->summary;
	int rc = 0;

	strbuf_addf(out, "%s\n  run      %s\n  profile  %s, units of %" PRIu64 " bytes\n", v->run,
		    v->plan->run, v->plan->profile, v->plan->unit);
	strbuf_addf(out, "  %-8s %s\n", app_plan_asks(v->plan),
		    v->plan->check     ? v->plan->check
		    : v->plan->restart ? v->plan->restart
				       : v->plan->query);
	if (v->has_summary)
		strbuf_addf(out,
			    "  %" PRIu64 " %s, %" PRIu64 " %s; %" PRIu64 " %s checked, %" PRIu64
			    " %s; %" PRIu64 " of %" PRIu64 " patterns of operations covered\n",
			    s->operations, plural(s->operations, "operation", "operations"),
			    s->acks, plural(s->acks, "acknowledgement", "acknowledgements"),
			    s->checked, plural(s->checked, "state", "states"), s->failing,
			    plural(s->failing, "fails", "fail"), s->covered, s->patterns);
	else
		strbuf_adds(out, "  not finished: it was killed, or is still running; what it "
				 "found until then:\n");
	if (s->left_out > 0) {
		strbuf_adds(out, "  not tried: ");
		app_count_words(s->left_out, out);
		strbuf_addch(out, '\n');
	}
	for (size_t i = 0; i < s->notes.n; i++)
		strbuf_addf(out, "  note: %s\n", s->notes.v[i]);
	if (!v->cases.n && v->has_summary)
		strbuf_addf(out, "nothing found with profile %s\n", v->plan->profile);
	for (size_t i = 0; !rc && i < v->cases.n; i++)
		rc = text_case(v, &v->cases.v[i], out, err);
	return rc;
}

/* ---- JSON ---- */

static void json_stack(const struct app_view *v, const struct row *r, struct json *j)
{
	const struct stack_list *s = stack_of(v, r);

	if (!s)
		return;
	json_key(j, "stack");
	json_array(j);
	for (uint32_t i = 0; i < s->n; i++) {
		const struct stack_frame *f = &v->stacks->frames.v[s->frames[i]];
		const struct stack_module *m = &v->stacks->modules.v[f->module];

		json_object(j);
		json_kv_string(j, "module", m->path);
		if (m->build_id)
			json_kv_string(j, "build_id", m->build_id);
		json_kv_uint(j, "offset", f->offset);
		if (f->function)
			json_kv_string(j, "function", f->function);
		if (f->file)
			json_kv_string(j, "file", f->file);
		if (f->line)
			json_kv_uint(j, "line", f->line);
		json_end(j);
	}
	json_end(j);
}

static int json_case(const struct app_view *v, const struct app_case *c, struct json *j,
		     struct err *err)
{
	struct rows rows = { 0 };
	int rc = find_rows(v, c, &rows, err);

	if (rc)
		return rc;
	json_object(j);
	json_kv_string(j, "case", c->dir);
	json_kv_string(j, "state", c->state);
	json_kv_uint(j, "point", c->point);
	json_kv_uint(j, "acknowledged", c->acks);
	json_kv_uint(j, "states", c->states);
	json_kv_string(j, "harm", app_harm_name(c->harm));
	json_kv_string(j, "title", c->title);
	json_kv_string(j, "fix", c->fix ? c->fix : "");
	json_kv_bool(j, "verified", c->verified);
	json_kv_bool(j, "explained", !c->unexplained);
	json_kv_string(j, "cause", c->cause ? c->cause : "");
	json_kv_string(j, "seen", c->seen ? c->seen : "");
	json_kv_uint(j, "shown", c->shown);
	json_kv_uint(j, "asked", c->asked);
	json_key(j, "said");
	json_string_len(j, strbuf_str(&c->said), c->said.len);
	json_key(j, "sequence");
	json_array(j);
	for (size_t i = 0; i < rows.n; i++) {
		auto_strbuf words = STRBUF_INIT;
		const struct posix_call *call = rows.v[i].call;

		add_row(v, &rows.v[i], &words);
		json_object(j);
		json_kv_uint(j, "event", rows.v[i].event);
		json_kv_string(j, "op", call ? posix_op_name(call->op) : "acknowledge");
		if (call && call->path)
			json_kv_string(j, "path", call->path);
		if (call && call->path2)
			json_kv_string(j, "path2", call->path2);
		json_kv_string(j, "words", strbuf_str(&words));
		json_kv_string(j, "fate", fate_names[rows.v[i].fate]);
		json_stack(v, &rows.v[i], j);
		json_end(j);
	}
	json_end(j);
	json_end(j);
	vec_release(&rows);
	return 0;
}

int app_report_json(const struct app_view *v, struct json *j, struct err *err)
{
	const struct app_summary *s = &v->summary;
	int rc = 0;

	json_object(j);
	json_kv_string(j, "run", v->run);
	json_kv_string(j, "kind", "app");
	json_kv_string(j, "directory", v->plan->dir);
	json_kv_string(j, "command", v->plan->run);
	json_kv_string(j, "profile", v->plan->profile);
	json_kv_bool(j, "ended", v->has_summary);
	json_kv_uint(j, "operations", s->operations);
	json_kv_uint(j, "acknowledgements", s->acks);
	json_kv_uint(j, "crash_states", s->crash_states);
	json_kv_uint(j, "unique_states", s->unique_states);
	json_kv_uint(j, "checked", s->checked);
	json_kv_uint(j, "patterns", s->patterns);
	json_kv_uint(j, "patterns_covered", s->covered);
	json_kv_uint(j, "failing", s->failing);
	json_kv_bool(j, "budget_hit", s->budget_hit);
	json_kv_double(j, "left_out", s->left_out);
	json_key(j, "findings");
	json_array(j);
	for (size_t i = 0; !rc && i < v->cases.n; i++)
		rc = json_case(v, &v->cases.v[i], j, err);
	json_end(j);
	json_end(j);
	return rc;
}

/* ---- a page ---- */

static void html_stack(const struct app_view *v, const struct app_case *c, const struct row *r,
		       struct strbuf *out)
{
	const struct stack_list *s = stack_of(v, r);
	auto_strbuf place = STRBUF_INIT;

	if (!s)
		return;
	if (!app_words_place(v->stacks, v->h->trace, r->event, &place))
		strbuf_adds(&place, "called by");
	strbuf_addf(out, "<details%s><summary>", matters(c, r) ? " open" : "");
	report_html_text(out, strbuf_str(&place));
	strbuf_adds(out, "</summary><ol>");
	for (uint32_t i = 0; i < s->n; i++) {
		auto_strbuf words = STRBUF_INIT;

		stack_frame_words(v->stacks, &v->stacks->frames.v[s->frames[i]], &words);
		strbuf_adds(out, "<li>");
		report_html_text(out, strbuf_str(&words));
		strbuf_adds(out, "</li>");
	}
	strbuf_adds(out, "</ol></details>");
}

static void html_row(const struct app_view *v, const struct app_case *c, const struct row *r,
		     struct strbuf *out)
{
	auto_strbuf words = STRBUF_INIT;
	const char *fate = fate_names[r->fate];

	if (r->gap)
		strbuf_adds(out, "<tr><td></td><td>...</td></tr>\n");
	add_row(v, r, &words);
	strbuf_addf(out, "<tr class=\"%s\"><td>%s</td><td>", fate, fate);
	report_html_text(out, strbuf_str(&words));
	html_stack(v, c, r, out);
	strbuf_adds(out, "</td></tr>\n");
}

/* The calls of all shown rows, by file. */
static void html_picture(const struct app_view *v, const struct app_case *c,
			 const struct rows *rows, struct strbuf *out)
{
	struct posix_selection sel = { 0 };
	struct posix_graph_opts o = { .title = "operations by file",
				      .crash = true,
				      .crash_at = c->point };
	struct vec_of(uint64_t) lost = { 0 };
	struct posix_graph_cut cut;
	auto_strbuf svg = STRBUF_INIT;

	for (size_t i = 0; i < rows->n; i++) {
		if (rows->v[i].call)
			vec_push(&sel, (size_t)(rows->v[i].call - v->log->calls.v));
		if (rows->v[i].fate == FATE_LOST || rows->v[i].fate == FATE_TORN)
			vec_push(&lost, rows->v[i].event);
	}
	o.lost = lost.v;
	o.n_lost = lost.n;
	if (sel.n) {
		posix_graph(v->log, &sel, &o, &svg, &cut);
		const char *begin = strstr(strbuf_str(&svg), "<svg");

		if (begin) {
			strbuf_adds(out,
				    "<details><summary>by file</summary><div class=\"picture\">");
			strbuf_adds(out, begin);
			strbuf_adds(out, "</div></details>\n");
		}
	}
	vec_release(&sel);
	vec_release(&lost);
}

static int html_case(const struct app_view *v, const struct app_case *c, struct strbuf *out,
		     struct err *err)
{
	struct rows rows = { 0 };
	bool crashed = false;
	int rc = find_rows(v, c, &rows, err);

	strbuf_addf(out, "<h2>%s: %s</h2>\n<p class=\"why\">", app_harm_name(c->harm),
		    app_harm_words(c->harm));
	report_html_text(out, c->title);
	if (c->fix && *c->fix) {
		strbuf_adds(out, "</p>\n<p class=\"mend\">mend it with: ");
		report_html_text(out, c->fix);
	}
	strbuf_addf(out, "</p>\n<p>%" PRIu64 " %s this way; this one is ", c->states,
		    plural(c->states, "state fails", "states fail"));
	report_html_text(out, c->state);
	strbuf_adds(out, ", kept in ");
	report_html_text(out, c->dir);
	strbuf_adds(out, "</p>\n<table>\n");
	for (size_t i = 0; !rc && i < rows.n; i++) {
		if (rows.v[i].event >= c->point && !crashed) {
			strbuf_adds(out, "<tr class=\"cut\"><td></td><td>the power fails "
					 "here</td></tr>\n");
			crashed = true;
		}
		html_row(v, c, &rows.v[i], out);
	}
	if (!crashed)
		strbuf_adds(out, "<tr class=\"cut\"><td></td><td>the power fails here</td></tr>\n");
	strbuf_adds(out, "</table>\n");
	html_picture(v, c, &rows, out);
	strbuf_adds(out, "<p>seen: ");
	report_html_text(out, c->seen && *c->seen ? c->seen : "nothing was said");
	if (c->shown < c->asked)
		strbuf_addf(out, "; shown %" PRIu64 " of %" PRIu64 " times", c->shown, c->asked);
	strbuf_adds(out, "</p>\n");
	if (c->said.len) {
		strbuf_adds(out, "<pre>");
		report_html_escape(out, strbuf_str(&c->said), min(c->said.len, (size_t)SAID_SHOWN));
		strbuf_adds(out, "</pre>\n");
	}
	vec_release(&rows);
	return rc;
}

int app_report_html(const struct app_view *v, struct strbuf *out, struct err *err)
{
	const struct app_summary *s = &v->summary;
	int rc = 0;

	report_page_begin(out, "outage app", v->plan->run);
	strbuf_adds(out, "<p>directory ");
	report_html_text(out, v->plan->dir);
	strbuf_addf(out, "</p>\n<p>%s ", app_plan_asks(v->plan));
	report_html_text(out, v->plan->check	 ? v->plan->check
			      : v->plan->restart ? v->plan->restart
						 : v->plan->query);
	strbuf_adds(out, "</p>\n<p>profile ");
	report_html_text(out, v->plan->profile);
	strbuf_addf(out,
		    "; %" PRIu64 " operations, %" PRIu64 " acknowledgements; %" PRIu64
		    " states checked, %" PRIu64 " fail; %" PRIu64 " of %" PRIu64
		    " patterns of operations covered; %zu %s</p>\n",
		    s->operations, s->acks, s->checked, s->failing, s->covered, s->patterns,
		    v->cases.n, plural(v->cases.n, "finding", "findings"));
	for (size_t i = 0; i < s->notes.n; i++) {
		strbuf_adds(out, "<p>note: ");
		report_html_text(out, s->notes.v[i]);
		strbuf_adds(out, "</p>\n");
	}
	for (size_t i = 0; !rc && i < v->cases.n; i++)
		rc = html_case(v, &v->cases.v[i], out, err);
	strbuf_adds(out, "</body></html>\n");
	return rc;
}
