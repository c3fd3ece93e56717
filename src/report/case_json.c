/* SPDX-License-Identifier: MIT */
/* case_json.c - everything about a case, for programs. The keys are described in outage-report(1).
 */
#include "report/report.h"

static void put_text(struct json *j, const char *key, const char *text)
{
	json_key(j, key);
	if (text)
		json_string(j, text);
	else
		json_null(j);
}

static void put_problems(const struct view *v, struct json *j)
{
	json_key(j, "problems");
	json_array(j);
	for (size_t i = 0; i < v->c.problems.n; i++) {
		const struct stored_problem *p = &v->c.problems.v[i];

		json_object(j);
		json_kv_string(j, "kind", finding_kind_name(p->kind));
		json_kv_string(j, "path", p->path);
		json_kv_string(j, "words", p->words);
		json_kv_string(j, "promise", p->promise);
		json_end(j);
	}
	json_end(j);
}

static void put_workload(const struct view *v, struct json *j)
{
	const struct workload *w = &v->c.workload;
	auto_strbuf text = STRBUF_INIT;

	put_text(j, "workload", w->named ? w->name : NULL);
	json_kv_uint(j, "operations_done", v->c.done);
	json_key(j, "operations");
	json_array(j);
	for (size_t i = 0; i < w->ops.n; i++) {
		int32_t result;

		strbuf_clear(&text);
		op_print(&w->ops.v[i], &text);
		json_object(j);
		json_kv_uint(j, "index", i);
		json_kv_string(j, "text", strbuf_str(&text));
		json_kv_bool(j, "setup", w->ops.v[i].setup);
		json_kv_bool(j, "persists", workload_persists(w, i));
		json_key(j, "result");
		if (view_result(v, i, &result))
			json_int(j, result);
		else
			json_null(j);
		json_end(j);
	}
	json_end(j);
}

/* Where it was made, and who called, as far as there are names. */
static void put_place(const struct view_crash *c, const struct event *ev, struct json *j)
{
	put_text(j, "place", view_place(c, ev));
	json_key(j, "callers");
	json_array(j);
	const char *name;
	for (size_t i = 0; (name = view_caller(c, ev, i)); i++)
		json_string(j, name);
	json_end(j);
}

static void put_writes(const struct view_crash *c, struct json *j)
{
	json_key(j, "crash_point");
	if (c->has_state)
		json_uint(j, c->state.point);
	else
		json_null(j);
	json_key(j, "writes");
	json_array(j);
	for (size_t i = 0; c->has_state && i < c->trace.events.n; i++) {
		const struct event *ev = &c->trace.events.v[i];

		if (!event_modifies(ev->kind))
			continue;
		json_object(j);
		json_kv_uint(j, "event", i);
		json_kv_string(j, "kind", event_kind_name(ev->kind));
		json_kv_uint(j, "addr", ev->addr);
		json_kv_uint(j, "len", ev->len);
		json_kv_bool(j, "meta", ev->flags & EV_META);
		json_kv_bool(j, "preflush", ev->flags & EV_PREFLUSH);
		json_kv_bool(j, "fua", ev->flags & EV_FUA);
		if (ev->kind == EV_STORE) {
			json_kv_bool(j, "nontemporal", ev->flags & EV_NONTEMPORAL);
			json_kv_uint(j, "cpu", ev->cpu);
			json_kv_uint(j, "pc", ev->pc);
			put_place(c, ev, j);
		}
		json_kv_string(j, "fate", fate_name(view_fate(c, i)));
		json_end(j);
	}
	json_end(j);
}

static void put_second(const struct view *v, struct json *j)
{
	json_key(j, "second_crash");
	if (!v->second.has_trace) {
		json_null(j);
		return;
	}
	json_object(j);
	put_writes(&v->second, j);
	json_end(j);
}

static void put_trees(const struct view *v, struct json *j)
{
	put_text(j, "expected", v->expected_text.len ? v->expected_text.buf : NULL);
	put_text(j, "seen", v->seen_text.len ? v->seen_text.buf : NULL);
	json_key(j, "differences");
	json_array(j);
	for (size_t i = 0; i < v->diff.list.n; i++) {
		const struct tree_difference *d = &v->diff.list.v[i];

		json_object(j);
		json_kv_string(j, "kind", tree_diff_kind_name(d->kind));
		json_kv_string(j, "path", d->path);
		json_kv_string(j, "words", d->words);
		json_kv_bool(j, "allowed", !view_about(v, d->path));
		json_end(j);
	}
	json_end(j);
}

void report_json_case(const struct view *v, struct json *j)
{
	const struct stored_problem *first = stored_case_first(&v->c);

	auto_free char *cause = view_cause(v);

	json_object(j);
	json_kv_string(j, "case", v->c.dir);
	json_kv_string(j, "kind", finding_kind_name(first->kind));
	json_kv_string(j, "words", first->words);
	json_kv_string(j, "promise", first->promise);
	json_kv_string(j, "cluster", v->cluster);
	json_kv_string(j, "target", v->c.target);
	json_kv_string(j, "guarantee", v->c.guarantee);
	put_text(j, "kernel", v->c.kernel);
	put_text(j, "recorder", v->c.recorder);
	put_text(j, "mkfs", v->c.mkfs);
	put_text(j, "recover", v->c.recover);
	put_text(j, "crash", v->c.crash);
	put_text(j, "prune", v->c.prune);
	json_kv_uint(j, "max_subset", v->c.max_subset);
	json_kv_uint(j, "budget", v->c.budget);
	json_kv_uint(j, "seed", v->c.seed);
	json_kv_uint(j, "lose_flush", v->c.lose_flush);
	put_text(j, "phase", v->c.phase);
	json_kv_uint(j, "size", v->c.size);
	json_kv_string(j, "state", v->c.state);
	put_text(j, "layer", v->c.layer);
	put_problems(v, j);
	put_text(j, "cause", cause);
	put_text(j, "diagnosis", v->diagnosis.len ? v->diagnosis.buf : NULL);
	put_workload(v, j);
	put_writes(&v->crash, j);
	put_text(j, "trace_error", v->no_trace);
	put_second(v, j);
	put_trees(v, j);
	json_kv_string(j, "kernel_log", strbuf_str(&v->kernel_log));
	json_kv_string(j, "said", strbuf_str(&v->said));
	json_end(j);
}

/* Options by their names, as they are written; then what was done, as numbers. */
static void put_facts(const struct run_view *r, struct json *j)
{
	const struct run_totals *t = &r->progress.totals;
	auto_strbuf value = STRBUF_INIT;
	const char *key;

	json_key(j, "options");
	json_object(j);
	for (size_t i = 0; r->has_plan && plan_value(&r->plan, i, &key, &value); i++) {
		if (value.len)
			json_kv_string(j, key, value.buf);
		strbuf_clear(&value);
	}
	json_end(j);
	put_text(j, "target", r->has_plan ? r->plan.target : NULL);
	put_text(j, "kernel", r->has_plan ? r->plan.kernel : NULL);
	json_key(j, "totals");
	json_object(j);
	json_kv_uint(j, "workloads", r->progress.done);
	json_kv_uint(j, "workloads_total", r->plan.workloads);
	json_kv_uint(j, "crash_states", t->crash_states);
	json_kv_uint(j, "unique_states", t->unique_states);
	json_kv_uint(j, "findings", r->findings);
	json_kv_uint(j, "kept", r->cases.n);
	json_kv_uint(j, "suppressed", r->progress.suppressed);
	json_kv_bool(j, "budget_hit", t->budget_hit);
	json_kv_double(j, "pruned", t->pruned);
	json_kv_double(j, "left_out", t->left_out);
	json_end(j);
}

int report_json_run(const struct run_view *r, struct json *j, struct err *err)
{
	int rc = 0;

	json_object(j);
	json_kv_string(j, "run", r->dir);
	put_facts(r, j);
	json_key(j, "clusters");
	json_array(j);
	for (size_t i = 0; i < r->clusters.n; i++) {
		const struct run_cluster *c = &r->clusters.v[i];
		bool kept = c->first != RUN_NO_CASE;

		json_object(j);
		json_kv_string(j, "name", c->name);
		json_kv_uint(j, "count", c->count);
		json_kv_uint(j, "kept", c->kept);
		json_kv_string(j, "words", c->words);
		put_text(j, "first", kept ? r->cases.v[c->first].c.dir : NULL);
		json_end(j);
	}
	json_end(j);
	json_key(j, "findings");
	json_array(j);
	for (size_t i = 0; i < r->cases.n && !rc; i++) {
		struct view v;

		rc = view_load(r->cases.v[i].c.dir, false, &v, err);
		if (rc)
			break;
		report_json_case(&v, j);
		view_release(&v);
	}
	json_end(j);
	json_end(j);
	return rc;
}
