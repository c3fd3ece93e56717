/* SPDX-License-Identifier: MIT */
/* trace_graph.c - "outage trace graph": the calls of an application, drawn. */
#include "base/io.h"
#include "base/log.h"
#include "cli/cmd_trace.h"

enum { ROWS_MAX = 10000 }; /* as many as programs that show pictures can take */

static void say_cut(const struct posix_graph_cut *cut)
{
	if (cut->calls)
		log_warn("%zu calls are not drawn; --limit, --from, --to, --file and --op say "
			 "which are",
			 cut->calls);
	if (cut->lanes)
		log_warn("%zu files with few calls share a lane; --file says which are drawn",
			 cut->lanes);
}

static void graph_json(const struct trace_options *o, size_t calls,
		       const struct posix_graph_cut *cut, const struct trace_damage *d)
{
	struct json j;

	cli_json_begin(&j);
	json_kvs(&j, KV("graph", o->output), KV("calls", calls), KV("calls_not_drawn", cut->calls),
		 KV("files_sharing", cut->lanes));
	cmd_trace_json_damage(&j, d);
	cli_json_end(&j);
}

static int draw(struct trace_options *o, struct trace_reader *r, struct err *err)
{
	auto_posix_log log;
	auto_strbuf svg = STRBUF_INIT;
	struct posix_selection sel;
	struct posix_graph_cut cut;
	struct posix_graph_opts opts = { .title = o->file, .rows_max = (size_t)o->limit };

	if (!o->filter.ops)
		o->filter.ops = posix_ops_effective();
	posix_log_init(&log);
	int rc = cmd_trace_read_calls(o, r, &log, &sel, err);
	if (rc)
		return rc;
	posix_graph(&log, &sel, &opts, &svg, &cut);
	rc = io_write_file(NULL, o->output, strbuf_str(&svg), svg.len, 0, err);
	if (!rc)
		say_cut(&cut);
	if (!rc && o->json)
		graph_json(o, sel.n, &cut, trace_reader_damage(r));
	vec_release(&sel);
	return rc;
}

static const struct opt options[] = {
	TRACE_OPTION_FILE("the trace; - is standard input"),
	TRACE_OPTION_OUTPUT("SVG", "where the picture goes; - is standard output"),
	OPTION_LIMIT("rows; default: 500", TRACE_AT(limit), .least = 1, .most = ROWS_MAX),
	OPTION_JSON(TRACE_AT(json)),
	{ OPT_GROUP, .group = cmd_trace_filter_options },
	OPT_END
};

static int run(void *given, struct args *args)
{
	int status = cmd_trace_check(&cmd_trace_graph, true, args, given);

	return status ? status : cmd_trace_read(given, draw);
}

const struct command cmd_trace_graph = {
	.name = "trace graph",
	.summary = "draw the calls of an application",
	.usage = "[OPTIONS] FILE -o SVG",
	.about = "Draws the calls of an application: a lane for each file, time downwards, equal "
		 "calls in one box, what repeats in a bracket, syncs as barriers, renames as "
		 "arrows, and in red what was never synced.",
	.options = options,
	.size = sizeof(struct trace_options),
	.run = run,
};
