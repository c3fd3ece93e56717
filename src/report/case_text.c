/* SPDX-License-Identifier: MIT */
/* case_text.c - a case as text, for a person at a terminal. */
#include "report/report.h"

enum { WRITES_SHOWN = 40 };

/* Adds text from outside, escaped: it must not move the cursor. */
static void add_clean(struct strbuf *out, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '\n' || c == '\t' || (c >= 0x20 && c != 0x7f))
			strbuf_addch(out, (char)c);
		else
			strbuf_addf(out, "\\x%02x", c);
	}
}

static void add_cleans(struct strbuf *out, const char *text)
{
	add_clean(out, text, strlen(text));
}

static void add(struct strbuf *out, const char *fmt, ...) printf_like(2, 3);

static void add(struct strbuf *out, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	strbuf_vaddf_by(out, add_cleans, fmt, ap);
	va_end(ap);
}

/* Adds every line of a text, indented. */
static void add_indented(struct strbuf *out, const char *text)
{
	while (*text) {
		size_t len = strcspn(text, "\n");

		if (len) {
			strbuf_adds(out, "    ");
			add_clean(out, text, len);
			strbuf_addch(out, '\n');
		}
		text += len + (text[len] == '\n');
	}
}

static void add_problems(const struct view *v, struct strbuf *out)
{
	for (size_t i = 0; i < v->c.problems.n; i++) {
		const struct stored_problem *p = &v->c.problems.v[i];

		add(out, "%s %s [%s]\n", i ? "     and" : "problem ", p->words,
		    finding_kind_name(p->kind));
		const char *joint, *reason = view_problem_reason(p, &joint);

		if (*reason)
			add(out, "%-8s %s\n", joint, reason);
	}
}

static void add_place(const struct view *v, struct strbuf *out)
{
	add(out, "target   %s, guarantee %s, Linux %s\ncase     %s\nstate    %s\n", v->c.target,
	    v->c.guarantee, v->c.kernel ? v->c.kernel : "unknown", v->c.dir, v->c.state);
	if (v->c.phase)
		add(out, "phase    %s\n", v->c.phase);
}

/* Adds the crash. The trace tells its place; without it, there are two possible places. */
static void add_crash(const struct view *v, struct strbuf *out)
{
	if (v->crash.has_state)
		strbuf_addf(out, "       ---- the power fails here, at event %llu of %zu ----\n",
			    llu(v->crash.state.point), v->crash.trace.events.n);
	else
		strbuf_addf(out, "       ---- the power fails here%s ----\n",
			    v->c.done < v->c.workload.ops.n
				    ? ", or during the next operation: the trace would tell"
				    : "");
	if (v->second.has_trace)
		strbuf_adds(out, "       ---- and a second time, during recovery ----\n");
}

static void add_operation(const struct view *v, const struct view_step *s, struct strbuf *out)
{
	const struct op *op = &v->c.workload.ops.v[s->op];

	strbuf_addf(out, "  %4zu %s", s->op, op->setup ? "setup " : "");
	op_print(op, out);
	if (s->under_way)
		strbuf_adds(out, "    <- under way");
	else if (s->error)
		strbuf_addf(out, "    <- failed: %s", strerror(s->error));
	strbuf_addch(out, '\n');
}

static void add_workload(const struct view *v, struct strbuf *out)
{
	const struct workload *w = &v->c.workload;
	auto_vec struct view_steps steps = { 0 };

	add(out, "\nworkload %s\n", w->named ? w->name : "");
	view_steps(v, &steps);
	for (const struct view_step *s = steps.v, *end = s + steps.n; s < end; s++) {
		if (s->kind == STEP_OPERATION) {
			add_operation(v, s, out);
		} else if (s->kind == STEP_CRASH) {
			add_crash(v, out);
		} else {
			strbuf_adds(out, "         mark ");
			add_clean(out, (const char *)s->mark->data, s->mark->len);
			strbuf_adds(out, s->late ? "    <- not reached\n" : "\n");
		}
	}
}

static void add_no_trace(const struct view *v, struct strbuf *out)
{
	if (v->no_trace)
		add(out,
		    "\nthe trace cannot be used: %s\n"
		    "  so it is not known which operation was under way, nor what was in flight "
		    "and got lost;\n"
		    "  'outage replay --rerun' makes a new one\n",
		    v->no_trace);
}

static void add_write(const struct view_crash *c, const struct pm_pieces *pieces, uint64_t event,
		      const char *fate, struct strbuf *out)
{
	const struct event *ev = &c->trace.events.v[event];
	struct pm_piece p = pm_piece_of(pieces, &c->trace, event);

	strbuf_addf(out, "  %-8s event %-5llu %-7s %7llu bytes at %llu%s%s%s%s", fate, llu(event),
		    p.len > ev->len ? "copy" : event_kind_name(ev->kind), llu(p.len), llu(p.addr),
		    ev->flags & EV_META ? ", metadata" : "",
		    ev->flags & EV_PREFLUSH ? ", preflush" : "", ev->flags & EV_FUA ? ", FUA" : "",
		    ev->flags & EV_NONTEMPORAL ? ", non-temporal" : "");
	const char *name = view_place(c, ev);
	if (ev->pc)
		strbuf_addf(out, ", made at %#llx%s%s%s", llu(ev->pc), name ? " (" : "",
			    name ? name : "", name ? ")" : "");
	const char *caller = view_caller(c, ev, 0);
	if (caller)
		strbuf_addf(out, ", called from %s", caller);
	strbuf_addch(out, '\n');
}

void report_flight(const struct view_crash *c, struct strbuf *out)
{
	const struct crash_state *s = &c->state;
	auto_vec struct pm_pieces pieces = { 0 };

	pm_pieces_at(&c->pm, &c->trace, s->point, &pieces);
	for (size_t i = 0; i < s->lost.n && i < WRITES_SHOWN; i++)
		add_write(c, &pieces, s->lost.v[i], "lost", out);
	for (size_t i = 0; i < s->torn.n && i < WRITES_SHOWN; i++)
		add_write(c, &pieces, s->torn.v[i].event, "torn", out);
	for (size_t i = 0; i < s->survived.n && i < WRITES_SHOWN; i++)
		add_write(c, &pieces, s->survived.v[i], "survived", out);
	if (max(max(s->lost.n, s->torn.n), s->survived.n) > WRITES_SHOWN)
		strbuf_addf(out, "  and more: of each kind %d are shown\n", WRITES_SHOWN);
}

static void add_flight(const struct view_crash *c, const char *when, struct strbuf *out)
{
	const struct crash_state *s = &c->state;
	size_t n = s->lost.n + s->torn.n + s->survived.n;

	strbuf_addf(out, "in flight%s: %llu %s; %zu lost, %zu torn%s, %zu survived\n", when,
		    COUNT_S(n, "write"), s->lost.n, s->torn.n, view_torn_into(s).text,
		    s->survived.n);
	report_flight(c, out);
}

/* Adds the writes that recovery had made durable before the power failed again. */
static void add_recovered(const struct view_crash *c, struct strbuf *out)
{
	const struct pm_pieces none = { 0 };
	size_t shown = 0;

	for (uint64_t i = 0; i < c->state.point; i++)
		if (event_modifies(c->trace.events.v[i].kind) &&
		    view_fate(c, i) == REQUEST_DURABLE && shown++ < WRITES_SHOWN)
			add_write(c, &none, i, "durable", out);
}

static void add_writes(const struct view *v, struct strbuf *out)
{
	const struct view_crash *second = &v->second;

	if (v->crash.has_state) {
		strbuf_addch(out, '\n');
		add_flight(&v->crash, "", out);
	}
	if (!second->has_state)
		return;
	strbuf_addf(out,
		    "\nthe power failed a second time, while it recovered from the first: at event "
		    "%llu\nof %zu of the recovery, whose writes have numbers of their own\n",
		    llu(second->state.point), view_recovered(second));
	add_flight(second, " then", out);
	add_recovered(second, out);
}

/* Adds an entry; in brackets if it may differ. */
static void add_entry(struct strbuf *out, char mark, bool allowed, const char *text, size_t len)
{
	while (text && len) {
		const char *end = memchr(text, '\n', len);
		size_t line = end ? (size_t)(end - text) : len;

		strbuf_addf(out, allowed ? "(%c) " : "  %c ", mark);
		add_clean(out, text, line);
		strbuf_addch(out, '\n');
		text += line + (end != NULL);
		len -= line + (end != NULL);
	}
}

static bool any_allowed(const struct view_rows *rows)
{
	return any_of(i, rows->n, rows->v[i].allowed);
}

/* Skips the first line, which is for programs. */
static const char *skip_header(const struct strbuf *text)
{
	const char *s = strbuf_str(text), *end = strchr(s, '\n');

	return end ? end + 1 : s;
}

static void add_trees(const struct view *v, struct strbuf *out)
{
	auto_vec struct view_rows rows = { 0 };

	if (!v->has_expected)
		return;
	if (!v->has_seen) {
		strbuf_adds(out, "\nexpected (the latest state: not all of it need be promised); "
				 "nothing could be seen\n");
		add_indented(out, skip_header(&v->expected_text));
		return;
	}
	strbuf_adds(out, "\nexpected (-) and seen (+)");
	view_rows(v, &rows);
	strbuf_adds(out, any_allowed(&rows)
				 ? "; in brackets: what differs and may, as nothing promised it\n"
				 : "\n");
	vec_each(r, &rows) {
		if (r->mark == ROW_SAME) {
			add_entry(out, ' ', false, r->seen, r->seen_len);
			continue;
		}
		add_entry(out, '-', r->allowed, r->expected, r->expected_len);
		add_entry(out, '+', r->allowed, r->seen, r->seen_len);
	}
	for (size_t i = 0; i < v->diff.list.n; i++) {
		bool about = view_about(v, v->diff.list.v[i].path);

		add(out, about ? "  %s\n" : "  (%s)\n", v->diff.list.v[i].words);
	}
}

/* Adds the diagnosis, before the writes in flight: it names the stores that differ. */
static void add_diagnosis(const struct view *v, struct strbuf *out)
{
	if (!v->diagnosis.len)
		return;
	strbuf_adds(out, "\ndiagnosis\n");
	add_indented(out, v->diagnosis.buf);
}

static void add_said(const struct view *v, struct strbuf *out)
{
	if (v->kernel_log.len) {
		strbuf_adds(out, "\nkernel log\n");
		add_indented(out, v->kernel_log.buf);
	}
	if (v->said.len) {
		strbuf_adds(out, "\nwhat was said by mount, fsck and commands\n");
		add_indented(out, v->said.buf);
	}
}

void report_text_case(const struct view *v, struct strbuf *out)
{
	add_problems(v, out);
	add_place(v, out);
	add_workload(v, out);
	add_no_trace(v, out);
	add_diagnosis(v, out);
	add_writes(v, out);
	add_trees(v, out);
	add_said(v, out);
	add(out, "\nsee it again: outage replay %s\n", v->c.dir);
}

static void add_fact(const char *key, const char *value, struct strbuf *out)
{
	strbuf_addf(out, "    %-13s ", key);
	for (; *value; value++)
		if (*value != '\n')
			add_clean(out, value, 1);
		else if (value[1]) /* several files */
			strbuf_addf(out, "\n    %-13s ", key);
	strbuf_addch(out, '\n');
}

static void add_facts(const struct run_view *r, struct strbuf *out)
{
	auto_strbuf value = STRBUF_INIT;
	const char *key;

	for (size_t i = 0; run_view_fact(r, i, &key, &value); i++)
		if (value.len)
			add_fact(key, value.buf, out);
	if (r->options.n)
		strbuf_adds(out, "options\n");
	for (size_t i = 0; i < r->options.n; i++)
		add_fact(r->options.v[i].key, r->options.v[i].value, out);
}

static int add_cluster(const struct run_view *r, size_t i, struct strbuf *out, struct err *err)
{
	const struct run_cluster *c = &r->clusters.v[i];
	struct view v;

	add(out, "\n==== %zu of %zu: %s, %llu %s", i + 1, r->clusters.n, c->name,
	    COUNT_S(c->count, "case"));
	if (c->kept < c->count)
		strbuf_addf(out, ", %llu of them kept", llu(c->kept));
	strbuf_adds(out, " ====\n\n");
	if (c->first == RUN_NO_CASE) {
		add(out, "problem  %s\n", c->words);
		return 0;
	}
	int rc = view_load(r->cases.v[c->first].c.dir, false, &v, err);
	if (rc)
		return rc;
	report_text_case(&v, out);
	view_release(&v);
	return 0;
}

int report_text_run(const struct run_view *r, struct strbuf *out, struct err *err)
{
	int rc = 0;

	add(out, "run %s: %llu %s in %llu %s\n", r->dir, COUNT_S(r->findings, "finding"),
	    COUNT_S(r->clusters.n, "cluster"));
	add_facts(r, out);
	for (size_t i = 0; i < r->clusters.n && !rc; i++)
		rc = add_cluster(r, i, out, err);
	return rc;
}

/* Adds a pattern that matches only the target, if one can be written. */
static void add_target(const struct run_view *r, struct strbuf *out)
{
	const char *target = r->has_plan  ? r->plan.target
			     : r->cases.n ? r->cases.v[0].c.target
					  : "*";

	if (strpbrk(target, "*?[#@"))
		strbuf_addf(out, "%.*s*", (int)strcspn(target, ",: *?[#@"), target);
	else
		add_cleans(out, target);
}

static void add_rule(const struct run_view *r, const struct run_cluster *c, const char *kind,
		     struct strbuf *out)
{
	auto_strbuf rule = STRBUF_INIT;

	add(&rule, "%s%s @ ", kind, strchr(c->name, ':'));
	add_target(r, &rule);
	strbuf_adds(&rule, " # ");
	/* A kind may be the first of one cluster and a later one of another. */
	if (strstr(strbuf_str(out), rule.buf))
		return;
	strbuf_add(out, rule.buf, rule.len);
	strbuf_addf(out, "%llu %s, ", COUNT_S(c->count, "case"));
	for (const char *w = c->words; *w; w++)
		add_clean(out, *w == '\n' ? " " : w, 1);
	strbuf_addch(out, '\n');
}

/* Adds a rule for each kind of problem: a finding with several kinds needs a rule for each. */
void report_suppressions(const struct run_view *r, struct strbuf *out)
{
	for (size_t i = 0; i < r->clusters.n; i++)
		for (int k = 0; strchr(r->clusters.v[i].name, ':') && k < FINDING_KIND_END; k++)
			if (r->clusters.v[i].kinds & 1U << k)
				add_rule(r, &r->clusters.v[i],
					 finding_kind_name((enum finding_kind)k), out);
}
