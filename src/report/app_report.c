/* SPDX-License-Identifier: MIT */
/* app_report.c - prints findings of an application as text, JSON and HTML. */
#include "report/app_report.h"

#include "base/below.h"
#include "app/app_words.h"
#include "report/report.h"

enum { BEFORE = 4, AFTER = 2, ROWS_MAX = 60, SAID_SHOWN = 2000 };

int app_view_load(struct app_view *v, const char *dir, struct err *err)
{
	auto_words dirs = { 0 };
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

		rc = case_get(&app_kind, dirs.v[i], &c, err);
		if (!rc)
			vec_push(&v->cases, c);
	}
	return rc;
}

void app_view_release(struct app_view *v)
{
	vec_release_each(p, &v->cases, case_finding_release(&app_kind, p));
	vec_release(&v->at);
	record_release(app_kind.summary, &v->summary);
}

struct app_view app_view_of(const struct app_view *v, size_t i)
{
	struct app_view one = *v;

	one.h = v->at.v[i].h;
	one.log = v->at.v[i].log;
	one.stacks = v->at.v[i].stacks;
	if (v->at.v[i].plan != v->plan) {
		one.outer = v;
		one.restart = v->at.v[i].plan;
	}
	return one;
}

/* Adds the first crash, for a finding in a restart. */
static void add_first_crash(const struct app_view *v, struct strbuf *out)
{
	uint64_t point = v->restart->outer_point;

	strbuf_adds(out, "the power failed a first time ");
	strbuf_adds(out, point ? "after " : "before the first operation");
	if (point)
		app_words_event(v->outer->h->trace, v->outer->log, point - 1, out);
	strbuf_addf(out,
		    " (state %s), and this is what brought it up again; its operations have "
		    "numbers of their own",
		    v->restart->outer_state ? v->restart->outer_state : "-");
}

/* ---- the sequence ---- */

struct row {
	uint64_t event;
	const struct posix_call *call; /* NULL: an acknowledgement */
	enum request_fate fate;
	bool gap; /* events before it are not shown */
	bool cut; /* only the crash itself: the power fails here */
};

struct rows vec_of(struct row);

static enum request_fate fate_of_change(const struct history *h, const struct app_state *s,
					uint32_t change)
{
	if (change_is_durable(&h->changes.v[change], s->point))
		return REQUEST_DURABLE;
	for (size_t i = 0; i < s->survivors.v.n; i++)
		if (s->survivors.v.v[i].change == change)
			return s->survivors.v.v[i].units ? REQUEST_TORN : REQUEST_SURVIVED;
	return REQUEST_LOST;
}

/* Returns the worst fate of an operation's changes. */
static enum request_fate fate_of_event(const struct history *h, const struct app_state *s,
				       uint64_t event)
{
	enum request_fate worst = REQUEST_NONE;
	size_t first = first_where(i, h->changes.n, h->changes.v[i].event >= event);

	if (event >= s->point)
		return REQUEST_LATER;
	for (size_t i = first; i < h->changes.n && h->changes.v[i].event == event; i++)
		worst = max(worst, fate_of_change(h, s, (uint32_t)i));
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
			vec_push(out, (struct row){ .event = i,
						    .call = c,
						    .fate = fate_of_event(v->h, s, i) });
	}
}

/* Finds the rows around the losses and around the crash. */
static int find_rows(const struct app_view *v, const struct app_case *c, struct rows *out,
		     struct err *err)
{
	struct app_state s = { 0 };
	auto_vec struct rows all = { 0 };
	int rc = states_replay(v->h, case_state_within(c->state), &s, err);

	if (rc)
		return rc;
	all_rows(v, &s, &all);
	size_t crash = 0, last = SIZE_MAX;
	bool cut = false;
	while (crash < all.n && all.v[crash].event < s.point)
		crash++;
	for (size_t i = 0; i < all.n; i++) {
		bool near = i + BEFORE >= crash && i < crash + AFTER;

		for (size_t k = i > AFTER ? i - AFTER : 0; !near && k < all.n && k <= i + BEFORE;
		     k++)
			near = all.v[k].fate == REQUEST_LOST || all.v[k].fate == REQUEST_TORN;
		if (!near || out->n >= ROWS_MAX)
			continue;
		if (!cut && all.v[i].event >= c->point) {
			vec_push(out, (struct row){ .cut = true });
			cut = true;
		}
		vec_push(out, all.v[i]);
		vec_last(out).gap = i != last + 1 && i;
		last = i;
	}
	if (!cut)
		vec_push(out, (struct row){ .cut = true });
	app_state_release(&s);
	return 0;
}

static void add_row(const struct app_view *v, const struct row *r, struct strbuf *out)
{
	app_words_event(v->h->trace, v->log, r->event, out);
	if (r->call && r->call->op == POSIX_WRITE)
		strbuf_addf(out, ", %llu bytes at %llu", llu(r->call->len), llu(r->call->offset));
}

static const struct stack_list *stack_of(const struct app_view *v, const struct row *r)
{
	return app_words_stack(v->stacks, v->h->trace, r->event);
}

/* True if the whole stack is shown for a row; otherwise only the place. */
static bool matters(const struct app_case *c, const struct row *r)
{
	return r->fate == REQUEST_LOST || r->fate == REQUEST_TORN || r->event + 1 == c->point;
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
	auto_vec struct rows rows = { 0 };
	int rc = find_rows(v, c, &rows, err);

	strbuf_addf(out, "\n%s: %s\n  %s\n", app_harm_name(c->harm), app_harm_words(c->harm),
		    c->title);
	if (c->fix && *c->fix)
		strbuf_addf(out, "  mend it with: %s\n", c->fix);
	strbuf_addf(out, "  state %s, %llu acknowledged; %llu %s this way\n  %s\n", c->state,
		    llu(c->acks), COUNT(c->states, "state fails", "states fail"), c->dir);
	if (v->outer) {
		strbuf_adds(out, "  ");
		add_first_crash(v, out);
		strbuf_addch(out, '\n');
	}
	for (const struct row *r = rows.v, *end = r + rows.n; r < end; r++) {
		if (r->cut) {
			strbuf_adds(out, "             ---- the power fails here ----\n");
			continue;
		}
		strbuf_addf(out, "%s    %-8s ", r->gap ? "             ...\n" : "",
			    view_fate_name(r->fate));
		add_row(v, r, out);
		strbuf_addch(out, '\n');
		text_stack(v, c, r, out);
	}
	strbuf_addf(out, "  expected: it succeeds; seen: %s\n",
		    c->seen && *c->seen ? c->seen : "-");
	if (c->shown < c->asked)
		strbuf_addf(out, "  shown %llu of %llu times\n", llu(c->shown), llu(c->asked));
	add_said(out, c);
	return rc;
}

int app_report_text(const struct app_view *v, struct strbuf *out, struct err *err)
{
	const struct app_summary *s = &v->summary;
	uint64_t aside = case_aside(v->run);
	int rc = 0;

	strbuf_addf(out, "%s\n  version  %s\n  run      %s\n  profile  %s, units of %llu bytes\n",
		    v->run, v->version, v->plan->run, v->plan->profile, llu(v->plan->unit));
	strbuf_addf(out, "  %-8s %s\n", app_plan_asks(v->plan), app_plan_command(v->plan));
	if (v->plan->restart && app_plan_command(v->plan) != v->plan->restart)
		strbuf_addf(out, "  restart  %s\n", v->plan->restart);
	if (v->has_summary)
		strbuf_addf(out,
			    "  %llu %s, %llu %s; %llu %s checked, %llu %s; %llu of %llu patterns "
			    "of operations covered\n",
			    COUNT_S(s->operations, "operation"),
			    COUNT_S(s->acks, "acknowledgement"), COUNT_S(s->checked, "state"),
			    COUNT(s->failing, "fails", "fail"), llu(s->covered), llu(s->patterns));
	else
		strbuf_adds(out, "  not finished: it was killed, or is still running; what it "
				 "found until then:\n");
	if (aside)
		strbuf_addf(out,
			    "  it went on after it was interrupted: %llu %s of before %s in "
			    "%s/" CASE_BEFORE "/findings\n",
			    COUNT_S(aside, "finding"), aside == 1 ? "is" : "are", v->run);
	if (s->recoveries)
		strbuf_addf(out,
			    "  recovery: %llu %s of changes, %llu traced, %llu of them different; "
			    "%llu %s of them checked\n",
			    COUNT_S(s->recovery_ways, "way"), llu(s->recoveries),
			    llu(s->recoveries_tried), COUNT_S(s->recovery_states, "state"));
	if (s->left_out > 0) {
		strbuf_adds(out, "  not tried: ");
		app_count_words(s->left_out, out);
		strbuf_addch(out, '\n');
	}
	for (size_t i = 0; i < s->notes.n; i++)
		strbuf_addf(out, "  note: %s\n", s->notes.v[i]);
	if (!v->cases.n && v->has_summary)
		strbuf_addf(out, "nothing found with profile %s\n", v->plan->profile);
	for (size_t i = 0; !rc && i < v->cases.n; i++) {
		struct app_view one = app_view_of(v, i);

		rc = text_case(&one, &v->cases.v[i], out, err);
	}
	return rc;
}

/* ---- JSON ---- */

static void json_stack(const struct app_view *v, const struct row *r, struct json *j)
{
	const struct stack_list *s = stack_of(v, r);

	if (!s)
		return;
	json_kv_array(j, "stack");
	for (uint32_t i = 0; i < s->n; i++) {
		const struct stack_frame *f = &v->stacks->frames.v[s->frames[i]];
		const struct stack_module *m = &v->stacks->modules.v[f->module];

		json_object_of(j, KV("module", m->path), KV_SOME("build_id", m->build_id),
			       KV("offset", f->offset), KV_SOME("function", f->function),
			       KV_SOME("file", f->file), KV_SOME("line", f->line));
	}
	json_end(j);
}

static int json_case(const struct app_view *v, const struct app_case *c, struct json *j,
		     struct err *err)
{
	auto_vec struct rows rows = { 0 };
	int rc = find_rows(v, c, &rows, err);

	if (rc)
		return rc;
	json_object(j);
	json_kvs(j, KV("case", c->dir), KV("state", c->state), KV("point", c->point));
	if (v->outer)
		json_kvs(j,
			 KV("outer_state", v->restart->outer_state ? v->restart->outer_state : ""),
			 KV("outer_point", v->restart->outer_point));
	json_kvs(j, KV("acknowledged", c->acks), KV("states", c->states),
		 KV("harm", app_harm_name(c->harm)), KV("title", c->title),
		 KV("fix", c->fix ? c->fix : ""), KV("verified", c->verified),
		 KV("explained", (bool)!c->unexplained), KV("cause", c->cause ? c->cause : ""),
		 KV("seen", c->seen ? c->seen : ""), KV("shown", c->shown), KV("asked", c->asked),
		 KV("said", &c->said));
	json_kv_array(j, "sequence");
	for (size_t i = 0; i < rows.n; i++) {
		auto_strbuf words = STRBUF_INIT;
		const struct posix_call *call = rows.v[i].call;

		if (rows.v[i].cut)
			continue;
		add_row(v, &rows.v[i], &words);
		json_object(j);
		json_kvs(j, KV("event", rows.v[i].event),
			 KV("op", call ? posix_op_name(call->op) : "acknowledge"),
			 KV_SOME("path", call ? call->path : NULL),
			 KV_SOME("path2", call ? call->path2 : NULL),
			 KV("words", strbuf_str(&words)),
			 KV("fate", view_fate_name(rows.v[i].fate)));
		json_stack(v, &rows.v[i], j);
		json_end(j);
	}
	json_end(j);
	json_end(j);
	return 0;
}

int app_report_json(const struct app_view *v, struct json *j, struct err *err)
{
	const struct app_summary *s = &v->summary;
	int rc = 0;

	json_object(j);
	json_kvs(j, KV("run", v->run), KV("kind", "app"), KV("version", v->version),
		 KV("directory", v->plan->dir), KV("command", v->plan->run),
		 KV("profile", v->plan->profile), KV("ended", v->has_summary),
		 KV("findings_before", case_aside(v->run)), KV("operations", s->operations),
		 KV("acknowledgements", s->acks), KV("crash_states", s->crash_states),
		 KV("unique_states", s->unique_states), KV("checked", s->checked),
		 KV("patterns", s->patterns), KV("patterns_covered", s->covered),
		 KV("failing", s->failing), KV("budget_hit", s->budget_hit),
		 KV("left_out", s->left_out), KV("recovery_ways", s->recovery_ways),
		 KV("recoveries", s->recoveries), KV("recoveries_tried", s->recoveries_tried),
		 KV("recovery_states", s->recovery_states),
		 KV("recovery_left_out", s->recovery_left_out));
	json_kv_array(j, "findings");
	for (size_t i = 0; !rc && i < v->cases.n; i++) {
		struct app_view one = app_view_of(v, i);

		rc = json_case(&one, &v->cases.v[i], j, err);
	}
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
	html_addf(out, "<details%s><summary>%s</summary><ol>", matters(c, r) ? " open" : "",
		  strbuf_str(&place));
	for (uint32_t i = 0; i < s->n; i++) {
		auto_strbuf words = STRBUF_INIT;

		stack_frame_words(v->stacks, &v->stacks->frames.v[s->frames[i]], &words);
		html_addf(out, "<li>%s</li>", strbuf_str(&words));
	}
	strbuf_adds(out, "</ol></details>");
}

static void html_row(const struct app_view *v, const struct app_case *c, const struct row *r,
		     struct strbuf *out)
{
	auto_strbuf words = STRBUF_INIT;

	if (r->cut) {
		report_page_cut(out);
		return;
	}
	add_row(v, r, &words);
	report_page_row(out, r->gap, r->fate, &words);
	html_stack(v, c, r, out);
	strbuf_adds(out, "</td></tr>\n");
}

/* Draws the calls of all shown rows, by file. */
static void html_picture(const struct app_view *v, const struct app_case *c,
			 const struct rows *rows, struct strbuf *out)
{
	auto_vec struct posix_selection sel = { 0 };
	struct posix_graph_opts o = { .title = "operations by file",
				      .crash = true,
				      .crash_at = c->point };
	auto_vec struct vec_of(uint64_t) lost = { 0 };
	struct posix_graph_cut cut;
	auto_strbuf svg = STRBUF_INIT;

	for (size_t i = 0; i < rows->n; i++) {
		if (rows->v[i].call)
			vec_push(&sel, (size_t)(rows->v[i].call - v->log->calls.v));
		if (rows->v[i].fate == REQUEST_LOST || rows->v[i].fate == REQUEST_TORN)
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
}

static int html_case(const struct app_view *v, const struct app_case *c, struct strbuf *out,
		     struct err *err)
{
	auto_vec struct rows rows = { 0 };
	int rc = find_rows(v, c, &rows, err);

	html_addf(out, "<h2>%s: %s</h2>\n<p class=\"why\">%s", app_harm_name(c->harm),
		  app_harm_words(c->harm), c->title);
	if (c->fix && *c->fix)
		html_addf(out, "</p>\n<p class=\"mend\">mend it with: %s", c->fix);
	html_addf(out, "</p>\n<p>%llu %s this way; this one is %s, kept in %s",
		  COUNT(c->states, "state fails", "states fail"), c->state, c->dir);
	if (v->outer) {
		auto_strbuf words = STRBUF_INIT;

		add_first_crash(v, &words);
		html_addf(out, "</p>\n<p>%s", strbuf_str(&words));
	}
	strbuf_adds(out, "</p>\n<table>\n");
	for (size_t i = 0; i < rows.n; i++)
		html_row(v, c, &rows.v[i], out);
	strbuf_adds(out, "</table>\n");
	html_picture(v, c, &rows, out);
	html_addf(out, "<p>seen: %s", c->seen && *c->seen ? c->seen : "nothing was said");
	if (c->shown < c->asked)
		strbuf_addf(out, "; shown %llu of %llu times", llu(c->shown), llu(c->asked));
	strbuf_adds(out, "</p>\n");
	report_page_said(out, &c->said, SAID_SHOWN);
	return rc;
}

int app_report_html(const struct app_view *v, struct strbuf *out, struct err *err)
{
	const struct app_summary *s = &v->summary;
	int rc = 0;

	report_page_begin(out, "outage app", v->plan->run);
	html_addf(out, "<p>version %s</p>\n<p>directory %s</p>\n<p>%s %s", v->version, v->plan->dir,
		  app_plan_asks(v->plan), app_plan_command(v->plan));
	if (v->plan->restart && app_plan_command(v->plan) != v->plan->restart)
		html_addf(out, "</p>\n<p>restart %s", v->plan->restart);
	html_addf(
		out,
		"</p>\n<p>profile %s; %llu operations, %llu acknowledgements; %llu states checked, "
		"%llu fail; %llu of %llu patterns of operations covered; %llu %s</p>\n",
		v->plan->profile, llu(s->operations), llu(s->acks), llu(s->checked),
		llu(s->failing), llu(s->covered), llu(s->patterns), COUNT_S(v->cases.n, "finding"));
	for (size_t i = 0; i < s->notes.n; i++)
		html_addf(out, "<p>note: %s</p>\n", s->notes.v[i]);
	for (size_t i = 0; !rc && i < v->cases.n; i++) {
		struct app_view one = app_view_of(v, i);

		rc = html_case(&one, &v->cases.v[i], out, err);
	}
	strbuf_adds(out, "</body></html>\n");
	return rc;
}
