/* SPDX-License-Identifier: MIT */
/* case_json.c - all facts of a case, for programs. outage-report(1) describes the keys. */
#include "report/report.h"

static void put_problems(const struct view *v, struct json *j)
{
	json_kv_array(j, "problems");
	vec_each(p, &v->c.problems) {
		json_object_of(j, KV("kind", finding_kind_name(p->kind)), KV("path", p->path),
			       KV("words", p->words), KV("promise", p->promise));
	}
	json_end(j);
}

static void put_workload(const struct view *v, struct json *j)
{
	const struct workload *w = &v->c.workload;
	auto_strbuf text = STRBUF_INIT;

	json_kvs(j, KV("workload", w->named ? w->name : NULL), KV("operations_done", v->c.done));
	json_kv_array(j, "operations");
	for (size_t i = 0; i < w->ops.n; i++) {
		int32_t result;

		strbuf_clear(&text);
		op_print(&w->ops.v[i], &text);
		json_object(j);
		json_kvs(j, KV("index", i), KV("text", strbuf_str(&text)),
			 KV("setup", w->ops.v[i].setup), KV("persists", workload_persists(w, i)));
		json_key(j, "result");
		if (view_result(v, i, &result))
			json_int(j, result);
		else
			json_null(j);
		json_end(j);
	}
	json_end(j);
}

/* Adds an event's place in the program, and its callers, as far as they have names. */
static void put_place(const struct view_crash *c, const struct event *ev, struct json *j)
{
	json_kvs(j, KV("place", view_place(c, ev)));
	json_kv_array(j, "callers");
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
	json_kv_array(j, "writes");
	for (size_t i = 0; c->has_state && i < c->trace.events.n; i++) {
		const struct event *ev = &c->trace.events.v[i];

		if (!event_modifies(ev->kind))
			continue;
		json_object(j);
		json_kvs(j, KV("event", i), KV("kind", event_kind_name(ev->kind)),
			 KV("addr", ev->addr), KV("len", ev->len),
			 KV("meta", (bool)(ev->flags & EV_META)),
			 KV("preflush", (bool)(ev->flags & EV_PREFLUSH)),
			 KV("fua", (bool)(ev->flags & EV_FUA)));
		if (ev->kind == EV_STORE) {
			json_kvs(j, KV("nontemporal", (bool)(ev->flags & EV_NONTEMPORAL)),
				 KV("cpu", ev->cpu), KV("pc", ev->pc));
			put_place(c, ev, j);
		}
		json_kvs(j, KV("fate", view_fate_name(view_fate(c, i))));
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
	json_kvs(j, KV("expected", v->expected_text.len ? v->expected_text.buf : NULL),
		 KV("seen", v->seen_text.len ? v->seen_text.buf : NULL));
	json_kv_array(j, "differences");
	vec_each(d, &v->diff.list) {
		json_object_of(j, KV("kind", tree_diff_kind_name(d->kind)), KV("path", d->path),
			       KV("words", d->words), KV("allowed", (bool)!view_about(v, d->path)));
	}
	json_end(j);
}

void report_json_case(const struct view *v, struct json *j)
{
	const struct stored_problem *first = stored_case_first(&v->c);

	auto_free char *cause = view_cause(v);

	json_object(j);
	json_kvs(j, KV("case", v->c.dir), KV("kind", finding_kind_name(first->kind)),
		 KV("words", first->words), KV("promise", first->promise),
		 KV("cluster", v->cluster), KV("target", v->c.target),
		 KV("guarantee", v->c.guarantee), KV("kernel", v->c.kernel),
		 KV("recorder", v->c.recorder), KV("mkfs", v->c.mkfs), KV("recover", v->c.recover),
		 KV("crash", v->c.crash), KV("prune", v->c.prune),
		 KV("max_subset", v->c.max_subset), KV("budget", v->c.budget),
		 KV("seed", v->c.seed), KV("lose_flush", v->c.lose_flush),
		 KV("sector", v->c.sector), KV("phase", v->c.phase), KV("size", v->c.size),
		 KV("state", v->c.state), KV("layer", v->c.layer));
	put_problems(v, j);
	json_kvs(j, KV("cause", cause),
		 KV("diagnosis", v->diagnosis.len ? v->diagnosis.buf : NULL));
	put_workload(v, j);
	put_writes(&v->crash, j);
	json_kvs(j, KV("trace_error", v->no_trace));
	put_second(v, j);
	put_trees(v, j);
	json_kvs(j, KV("kernel_log", strbuf_str(&v->kernel_log)), KV("said", strbuf_str(&v->said)));
	json_end(j);
}

/* Adds options, by name and as written, and then the run's totals. */
static void put_facts(const struct run_view *r, struct json *j)
{
	const struct run_totals *t = &r->progress.totals;

	json_kv_object(j, "options");
	for (size_t i = 0; i < r->options.n; i++)
		json_kvs(j, KV(r->options.v[i].key, r->options.v[i].value));
	json_end(j);
	json_kvs(j, KV("target", run_view_option(r, "target")),
		 KV("kernel", run_view_option(r, "kernel")));
	json_kv_object(j, "totals");
	json_kvs(j, KV("workloads", r->progress.done), KV("workloads_total", r->plan.workloads),
		 KV("crash_states", t->crash_states), KV("unique_states", t->unique_states),
		 KV("findings", r->findings), KV("kept", r->cases.n),
		 KV("suppressed", r->progress.totals.suppressed), KV("budget_hit", t->budget_hit),
		 KV("pruned", t->pruned), KV("left_out", t->left_out));
	json_end(j);
}

int report_json_run(const struct run_view *r, struct json *j, struct err *err)
{
	int rc = 0;

	json_object(j);
	json_kvs(j, KV("run", r->dir), KV("version", r->version));
	put_facts(r, j);
	json_kv_array(j, "clusters");
	vec_each(c, &r->clusters) {
		bool kept = c->first != RUN_NO_CASE;

		json_object_of(j, KV("name", c->name), KV("count", c->count), KV("kept", c->kept),
			       KV("words", c->words),
			       KV("first", kept ? r->cases.v[c->first].c.dir : NULL));
	}
	json_end(j);
	json_kv_array(j, "findings");
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
