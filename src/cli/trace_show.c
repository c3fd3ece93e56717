/* SPDX-License-Identifier: MIT */
/*
 * trace_show.c - "outage trace show": the events of a trace, and what can be said of an
 * application's calls.
 *
 * Events are read one at a time, so that a trace of any size can be looked at; only what needs to
 * know the whole of it first (a file's history, runs, suggestions) holds all calls in memory.
 */
#include <inttypes.h>

#include "cli/cmd_trace.h"

static void list_kinds(struct strbuf *out)
{
	for (int k = 1; k < EV_KIND_END; k++)
		strbuf_addf(out, "%s%s", k > 1 ? " " : "", event_kind_name((enum event_kind)k));
}

static void show_header(struct strbuf *out, const struct trace_info *info)
{
	strbuf_adds(out, "# ");
	posix_add_safe(out, info->target, strlen(info->target));
	if (info->size)
		strbuf_addf(out, "%s%" PRIu64 " bytes", info->target[0] ? ", " : "", info->size);
	else
		strbuf_addf(out, "%sof unknown size", info->target[0] ? ", " : "");
	strbuf_addf(out, ", sectors of %" PRIu32 "%s\n", info->sector_size,
		    info->completions ? "" : ", completions not recorded");
}

/* Prints the head of an application's calls, which have no device. */
static void show_call_header(struct strbuf *out, const struct trace_info *info)
{
	strbuf_adds(out, "# ");
	posix_add_safe(out, info->target, strlen(info->target));
	strbuf_addf(out,
		    "%scalls of an application\n# event       seconds process     call      path\n",
		    info->target[0] ? ", " : "");
}

/* All that is needed to show a stream of events. */
struct show {
	const struct trace_options *o;
	unsigned kinds;
	struct posix_names names;
	struct strbuf out;
	struct json j;
	bool begun;
};

static void show_begin(struct show *s, const struct trace_info *info, const struct event *first)
{
	if (s->o->json) {
		json_object(&s->j);
		cmd_trace_json_info(&s->j, info);
		json_kv_array(&s->j, "events");
	} else if (first && first->kind == EV_POSIX) {
		show_call_header(&s->out, info);
	} else {
		show_header(&s->out, info);
	}
	s->begun = true;
}

static void show_event(struct show *s, uint64_t n, const struct event *ev)
{
	const struct posix_filter *f = &s->o->filter;
	const struct posix_call *c = NULL;
	struct posix_call call;

	if (ev->kind == EV_POSIX) { /* names come from calls that are not shown, too */
		struct posix_event p = cmd_trace_decoded(ev);

		posix_call_resolve(&s->names, n, ev, &p, &call);
		c = &call;
	}
	if (n < f->from || n > f->to || !(s->kinds >> ev->kind & 1))
		return;
	if (cmd_trace_only_calls(s->o) && (!c || !posix_filter_call(f, c)))
		return;
	if (s->o->json)
		cmd_trace_json_event(&s->j, n, ev, c, s->o->data);
	else
		cmd_trace_add_event(&s->out, n, ev, c, s->o->data);
}

static int show_stream(struct show *s, struct trace_reader *r, struct err *err)
{
	struct event ev;
	int rc;

	for (uint64_t n = 0; (rc = trace_reader_next(r, &ev, err)) > 0; n++) {
		if (!s->begun)
			show_begin(s, trace_reader_info(r), &ev);
		show_event(s, n, &ev);
		if (s->out.len >= 65536 && !cmd_trace_drain(&s->out))
			return 0; /* cli_flush() will say it */
	}
	if (rc < 0)
		return rc;
	if (!s->begun)
		show_begin(s, trace_reader_info(r), NULL);
	if (s->o->json) {
		json_end(&s->j);
		cmd_trace_json_damage(&s->j, trace_reader_damage(r));
		json_end(&s->j);
		strbuf_addch(&s->out, '\n');
	}
	return 0;
}

static int show_events(const struct trace_options *o, struct trace_reader *r, struct err *err)
{
	struct show s = { .o = o, .kinds = o->kinds ? o->kinds << 1 : UINT32_MAX };

	json_init(&s.j, &s.out, false);
	posix_names_init(&s.names);
	int rc = show_stream(&s, r, err);
	cmd_trace_drain(&s.out);
	posix_names_release(&s.names);
	strbuf_release(&s.out);
	return rc;
}

/* Whether an option needs all calls before it can say anything. */
static bool needs_all(const struct trace_options *o)
{
	return o->filter.file || o->runs || o->suggest || o->filter.large;
}

static int check_options(const struct trace_options *o)
{
	if (o->kinds && cmd_trace_only_calls(o))
		return cli_usage(&cmd_trace_show,
				 "--kind chooses events of any kind, the other options calls of an "
				 "application; say only one of them");
	if (o->runs && o->suggest)
		return cli_usage(&cmd_trace_show, "--runs or --suggest?");
	if (o->limit && !o->suggest)
		return cli_usage(&cmd_trace_show, "--limit goes with --suggest");
	if (o->data && (o->runs || o->suggest))
		return cli_usage(&cmd_trace_show, "--data does not go with --%s",
				 o->runs ? "runs" : "suggest");
	return EXIT_OK;
}

static const struct opt options[] = {
	TRACE_OPTION_FILE("the trace; - is standard input"),
	{ OPT_SET, "kind", 0, "KIND,...", TRACE_AT(kinds), .list = list_kinds,
	  .help = "only events of these kinds: write, flush, ..." },
	{ OPT_FLAG, "data", 0, NULL, TRACE_AT(data), .help = "the written bytes as well" },
	OPTION_JSON(TRACE_AT(json)),
	{ OPT_GROUP, .group = cmd_trace_filter_options },
	{ OPT_FLAG, "runs", 0, NULL, TRACE_AT(runs),
	  .help = "repetitions in one line: write x4, fsync; 12 times" },
	{ OPT_FLAG, "suggest", 0, NULL, TRACE_AT(suggest),
	  .help = "faults worth trying, as commands for outage ctl" },
	OPTION_LIMIT("suggestions; default: 20", TRACE_AT(limit), .least = 1),
	OPT_END
};

static int show(struct trace_options *o, struct trace_reader *r, struct err *err)
{
	if (!o->filter.ops && (needs_all(o) || cmd_trace_only_calls(o)))
		o->filter.ops = o->runs || o->suggest ? posix_ops_effective() : POSIX_OPS_ALL;
	return needs_all(o) ? cmd_trace_show_calls(o, r, err) : show_events(o, r, err);
}

static int run(void *given, struct args *args)
{
	int status = cmd_trace_check(&cmd_trace_show, false, args, given);

	if (!status)
		status = check_options(given);
	return status ? status : cmd_trace_read(given, show);
}

const struct command cmd_trace_show = {
	.name = "trace show",
	.summary = "print the events of a trace",
	.usage = "[OPTIONS] FILE",
	.about = "Prints the events of a trace, one a line: number, kind, address and length, "
		 "flags, what it completes, text. Of an application's call: number, time, process, "
		 "call, path, offset and length, result.",
	.options = options,
	.size = sizeof(struct trace_options),
	.run = run,
};
