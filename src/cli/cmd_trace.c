/* SPDX-License-Identifier: MIT */
/*
 * cmd_trace.c - "outage trace": look into traces, draw them, and exchange them with dm-log-writes.
 * Here is what the subcommands share; each has a file of its own, trace_*.c.
 */
#include <errno.h>
#include <inttypes.h>

#include "base/number.h"
#include "cli/trace.h"

static const struct command *const subcommands[] = { &trace_cmd_show, &trace_cmd_info,
						     &trace_cmd_graph, &trace_cmd_import,
						     &trace_cmd_export };

int trace_print_usage(const struct command *cmd)
{
	fputs(cmd->usage, stdout);
	return cli_flush();
}

/* ---- options ---- */

/* A bit for each call named in "write,fsync"; an exit status. */
static int parse_ops(const struct command *cmd, const char *list, uint64_t *ops)
{
	*ops = 0;
	for (const char *s = list; s; s = strchr(s, ',') ? strchr(s, ',') + 1 : NULL) {
		auto_free char *name = xmemdupz(s, strcspn(s, ","));
		enum posix_op op = posix_op_find(name);
		auto_strbuf all = STRBUF_INIT;

		for (int i = 0; op == POSIX_OP_END && i < POSIX_OP_END; i++)
			strbuf_addf(&all, "%s%s", i ? ", " : "", posix_op_name((enum posix_op)i));
		if (op == POSIX_OP_END)
			return cli_usage(cmd, "there is no call '%s'; there are %s", name,
					 strbuf_str(&all));
		*ops |= UINT64_C(1) << op;
	}
	return EXIT_OK;
}

/* Of the calls of an application; an exit status, or -1 if it is none of them. */
static int take_filter(const struct command *cmd, int opt, struct trace_options *o)
{
	struct posix_filter *f = &o->filter;
	struct err err = ERR_INIT;
	uint64_t n;

	switch (opt) {
	case TRACE_OPT_FROM:
	case TRACE_OPT_TO:
		if (number_parse(optarg, opt == TRACE_OPT_FROM ? &f->from : &f->to))
			return cli_usage(cmd, "'%s' is not the number of an event", optarg);
		return EXIT_OK;
	case TRACE_OPT_FILE:
		f->file = optarg;
		return EXIT_OK;
	case TRACE_OPT_OP:
		return parse_ops(cmd, optarg, &f->ops);
	case TRACE_OPT_PID:
		if (number_parse(optarg, &n) || !n || n > UINT32_MAX)
			return cli_usage(cmd, "'%s' is not the number of a process", optarg);
		f->pid = (uint32_t)n;
		return EXIT_OK;
	case TRACE_OPT_LARGE:
		f->large = POSIX_PAGE_SIZE;
		o->large_alone = !optarg;
		if (optarg && number_parse_size(optarg, &f->large, &err))
			return cli_usage(cmd, "%s", err.msg);
		return f->large ? EXIT_OK : cli_usage(cmd, "--large needs a size above 0");
	default:
		return -1;
	}
}

/* One option; an exit status. */
static int take_option(const struct command *cmd, int opt, char **argv, struct trace_options *o)
{
	struct err err = ERR_INIT;
	int status = take_filter(cmd, opt, o);

	if (status >= 0)
		return status;
	switch (opt) {
	case TRACE_OPT_HELP:
		o->help = true;
		return EXIT_OK;
	case TRACE_OPT_JSON:
		o->json = true;
		return EXIT_OK;
	case TRACE_OPT_DATA:
		o->data = true;
		return EXIT_OK;
	case TRACE_OPT_KIND:
		o->kinds = optarg;
		return EXIT_OK;
	case TRACE_OPT_OUTPUT:
		o->output = optarg;
		return EXIT_OK;
	case TRACE_OPT_RUNS:
		o->runs = true;
		return EXIT_OK;
	case TRACE_OPT_SUGGEST:
		o->suggest = true;
		return EXIT_OK;
	case TRACE_OPT_LIMIT:
		if (number_parse_count(optarg, &o->limit, &err))
			return cli_usage(cmd, "%s", err.msg);
		return o->limit ? EXIT_OK : cli_usage(cmd, "--limit needs a number above 0");
	case TRACE_OPT_SIZE:
		if (number_parse_size(optarg, &o->size, &err))
			return cli_usage(cmd, "%s", err.msg);
		return EXIT_OK;
	default:
		return cli_unknown(cmd, opt, argv);
	}
}

/* The one argument, and what fits together; an exit status. */
static int take_file(const struct command *cmd, bool has_output, int argc, char **argv,
		     struct trace_options *o)
{
	struct err err = ERR_INIT;
	uint64_t large;

	/* "--large 64k FILE" is what people write. */
	if (o->large_alone && optind + 2 == argc &&
	    !number_parse_size(argv[optind], &large, &err) && large) {
		o->filter.large = large;
		optind++;
	}
	if (optind >= argc)
		return cli_usage(cmd, "which file?");
	if (optind + 1 < argc)
		return cli_usage(cmd, "one file at a time; what is '%s'?", argv[optind + 1]);
	o->file = argv[optind];
	if (o->filter.from > o->filter.to)
		return cli_usage(cmd, "--from %" PRIu64 " is after --to %" PRIu64, o->filter.from,
				 o->filter.to);
	if (has_output && !o->output)
		return cli_usage(cmd, "where to? Say -o FILE");
	if (has_output && o->json && streq(o->output, "-"))
		return cli_usage(cmd, "--json and -o - both want standard output");
	return EXIT_OK;
}

int trace_parse(const struct command *cmd, const struct option *longs, int argc, char **argv,
		struct trace_options *o)
{
	bool has_output = false;
	int opt, status;

	for (const struct option *l = longs; l->name; l++)
		has_output |= l->val == TRACE_OPT_OUTPUT;
	*o = (struct trace_options){ .filter.to = UINT64_MAX };
	optind = 0; /* start over, whoever parsed before */
	opterr = 0;
	while ((opt = getopt_long(argc, argv, has_output ? ":ho:" : ":h", longs, NULL)) != -1) {
		status = take_option(cmd, opt, argv, o);
		if (status)
			return status;
		if (o->help)
			return EXIT_OK;
	}
	return take_file(cmd, has_output, argc, argv, o);
}

/* ---- output ---- */

void trace_json_info(struct json *j, const struct trace_info *info)
{
	json_key(j, "info");
	json_object(j);
	json_kv_string(j, "target", info->target);
	json_kv_uint(j, "size", info->size);
	json_kv_uint(j, "sector_size", info->sector_size);
	json_kv_bool(j, "completions", info->completions);
	json_end(j);
}

void trace_json_damage(struct json *j, const struct trace_damage *d)
{
	json_kv_bool(j, "complete", !d->found);
	json_key(j, "damage");
	if (!d->found) {
		json_null(j);
		return;
	}
	json_object(j);
	json_kv_string(j, "text", d->text);
	json_kv_bool(j, "cut_off", d->cut_off);
	json_kv_uint(j, "frame", d->frame);
	json_kv_uint(j, "offset", d->offset);
	json_kv_uint(j, "readable_events", d->events);
	json_end(j);
}

bool trace_drain(struct strbuf *out)
{
	if (out->len)
		fwrite(out->buf, 1, out->len, stdout);
	strbuf_clear(out);
	return !ferror(stdout);
}

int trace_finish(const struct trace_options *o, const struct trace_damage *d)
{
	int status = cli_flush();

	if (status || !d->found)
		return status;
	return cli_failf("%s is %s: %s", o->file, d->cut_off ? "cut off" : "damaged", d->text);
}

int trace_read_calls(const struct trace_options *o, struct trace_reader *r, struct posix_log *log,
		     struct err *err)
{
	int rc;

	log->keep_data = o->data;
	rc = posix_log_read(log, r, err);
	if (rc)
		return err_context(err, "%s", o->file);
	if (!log->calls.n && !trace_reader_damage(r)->found)
		return err_set(err, -EINVAL,
			       "%s holds no calls of an application, as 'outage mount --trace' "
			       "records them",
			       o->file);
	return 0;
}

/* ---- the command ---- */

static int run_trace(int argc, char **argv)
{
	if (argc < 2)
		return cli_usage(&cmd_trace, "show, info, graph, import or export?");
	if (streq(argv[1], "--help") || streq(argv[1], "-h"))
		return trace_print_usage(&cmd_trace);
	for (size_t i = 0; i < ARRAY_SIZE(subcommands); i++)
		if (streq(argv[1], strchr(subcommands[i]->name, ' ') + 1))
			return subcommands[i]->run(argc - 1, argv + 1);
	return cli_usage(&cmd_trace,
			 "there is no '%s'; there are show, info, graph, import and export",
			 argv[1]);
}

const struct command cmd_trace = {
	.name = "trace",
	.summary = "show, draw, import and export traces",
	.usage = "usage: outage trace show   [--kind K,...] [--from N] [--to N] [--data] [--json] "
		 "FILE\n"
		 "       outage trace show   [--file GLOB] [--op CALL,...] [--pid N] [--large "
		 "[SIZE]]\n"
		 "                           [--runs | --suggest] [--json] FILE\n"
		 "       outage trace info   [--json] FILE\n"
		 "       outage trace graph  [--file GLOB] [--op CALL,...] [--json] FILE -o SVG\n"
		 "       outage trace import [--size BYTES] [--json] LOG -o FILE\n"
		 "       outage trace export [--json] FILE -o LOG\n"
		 "\n"
		 "A trace is what a target sent to its storage, or what an application asked of "
		 "its\n"
		 "file system. show prints its events, info counts them, graph draws an "
		 "application's\n"
		 "calls; import and export exchange it with the kernel's dm-log-writes target.\n"
		 "Each has its own --help.\n",
	.run = run_trace,
};
