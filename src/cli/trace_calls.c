/* SPDX-License-Identifier: MIT */
/*
 * trace_calls.c - "outage trace show" of an application's calls, where all of them must be known
 * first: the history of some files, runs, and suggestions.
 */
#include "cli/cmd_trace.h"

enum { SUGGESTIONS = 20 };

bool cmd_trace_only_calls(const struct trace_options *o)
{
	const struct posix_filter *f = &o->filter;

	return f->file || f->ops || f->pid || f->large || o->runs || o->suggest;
}

static void text_calls(const struct trace_options *o, const struct posix_log *log,
		       const struct posix_selection *sel, struct strbuf *out)
{
	for (size_t i = 0; i < sel->n; i++) {
		const struct posix_call *c = &log->calls.v[sel->v[i]];

		cmd_trace_add_event(out, c->event, &log->trace.events.v[c->at], c, o->data);
		if (out->len >= 65536 && !cmd_trace_drain(out))
			return;
	}
}

static void json_calls(const struct trace_options *o, const struct posix_log *log,
		       const struct posix_selection *sel, struct json *j)
{
	json_kv_array(j, "events");
	for (size_t i = 0; i < sel->n; i++) {
		const struct posix_call *c = &log->calls.v[sel->v[i]];

		cmd_trace_json_event(j, c->event, &log->trace.events.v[c->at], c, o->data);
		if (j->out->len >= 65536)
			cmd_trace_drain(j->out);
	}
	json_end(j);
}

static void text_suggestions(const struct posix_suggestions *s, bool root_guessed,
			     struct strbuf *out)
{
	strbuf_adds(out, "# faults to try, each in a run of its own: outage ctl MNT ..., before "
			 "the application starts\n");
	for (size_t i = 0; i < s->list.n; i++)
		strbuf_addf(out, "%s  # event %llu: %s\n", s->list.v[i].command,
			    llu(s->list.v[i].event), s->list.v[i].why);
	if (!s->list.n)
		strbuf_adds(out, "# none: nothing in these calls waits for a sync\n");
	if (root_guessed)
		strbuf_adds(out, "# the trace does not tell the root of the mount: paths are those "
				 "from the first directory in it\n");
	if (s->left_out)
		strbuf_addf(out, "# %zu more; --limit N shows them\n", s->left_out);
}

static void json_suggestions(const struct posix_suggestions *s, struct json *j)
{
	json_kv_array(j, "suggestions");
	for (size_t i = 0; i < s->list.n; i++) {
		json_object_of(j, KV("command", s->list.v[i].command), KV("why", s->list.v[i].why),
			       KV("event", s->list.v[i].event));
	}
	json_end(j);
	json_kvs(j, KV("left_out", s->left_out));
}

static void show_suggestions(const struct trace_options *o, const struct posix_log *log,
			     const struct posix_selection *sel, struct strbuf *out, struct json *j)
{
	struct posix_suggestions s;

	posix_suggest(log, sel, o->limit ? (size_t)o->limit : SUGGESTIONS, &s);
	if (o->json)
		json_suggestions(&s, j);
	else
		text_suggestions(&s, log->names.root_guessed, out);
	posix_suggestions_release(&s);
}

static void show_selected(const struct trace_options *o, const struct posix_log *log,
			  const struct posix_selection *sel, struct strbuf *out, struct json *j)
{
	if (o->suggest) {
		show_suggestions(o, log, sel, out, j);
	} else if (!o->json) {
		(o->runs ? posix_text_runs(log, sel, out) : text_calls(o, log, sel, out));
	} else if (o->runs) {
		json_key(j, "groups");
		posix_json_runs(log, sel, j);
	} else {
		json_calls(o, log, sel, j);
	}
}

int cmd_trace_show_calls(const struct trace_options *o, struct trace_reader *r, struct err *err)
{
	auto_posix_log log;
	auto_strbuf out = STRBUF_INIT;
	struct posix_selection sel;
	struct json j;

	posix_log_init(&log);
	int rc = cmd_trace_read_calls(o, r, &log, &sel, err);
	if (rc)
		return rc;
	json_init(&j, &out, false);
	if (o->json) {
		json_object(&j);
		cmd_trace_json_info(&j, trace_reader_info(r));
	}
	show_selected(o, &log, &sel, &out, &j);
	if (o->json) {
		cmd_trace_json_damage(&j, trace_reader_damage(r));
		json_end(&j);
		strbuf_addch(&out, '\n');
	}
	cmd_trace_drain(&out);
	vec_release(&sel);
	return 0;
}
