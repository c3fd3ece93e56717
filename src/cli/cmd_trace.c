/* SPDX-License-Identifier: MIT */
/*
 * cmd_trace.c - "outage trace": look into traces, draw them, and exchange them with dm-log-writes.
 * Here is what the subcommands share; each has a file of its own, trace_*.c.
 */
#include <errno.h>
#include <inttypes.h>

#include "base/log.h"
#include "base/number.h"
#include "cli/cmd_trace.h"

static const struct command *const subcommands[] = { &cmd_trace_show,	&cmd_trace_info,
						     &cmd_trace_graph,	&cmd_trace_import,
						     &cmd_trace_export, NULL };

/* ---- options ---- */

static void list_ops(struct strbuf *out)
{
	for (int i = 0; i < POSIX_OP_END; i++)
		strbuf_addf(out, "%s%s", i ? " " : "", posix_op_name((enum posix_op)i));
}

static int parse_large(void *into, const char *arg, struct err *err)
{
	struct trace_options *o = into;

	o->filter.large = POSIX_PAGE_SIZE;
	o->large_alone = !arg;
	if (arg && number_parse_size(arg, &o->filter.large, err))
		return -EINVAL;
	return o->filter.large ? 0 : err_set(err, -EINVAL, "--large is at least 1, not %s", arg);
}

const struct opt cmd_trace_filter_options[] = {
	{ OPT_NUMBER, "from", 0, "N", TRACE_AT(filter.from), .help = "from event N on" },
	{ OPT_NUMBER, "to", 0, "N", TRACE_AT(filter.to),
	  .help = "up to event N, which is included" },
	{ OPT_SECTION, .help = "Calls of an application, as outage mount --trace records them" },
	{ OPT_TEXT, "file", 0, "GLOB", TRACE_AT(filter.file),
	  .help = "only files that have or had such a name, with all their history" },
	{ OPT_SET, "op", 0, "CALL,...", TRACE_AT(filter.ops), .list = list_ops,
	  .help = "only these calls: write, fsync, rename, ..." },
	{ OPT_NUMBER, "pid", 0, "N", TRACE_AT(filter.pid), .least = 1,
	  .help = "only those of process or thread N" },
	{ OPT_CALL, "large", 0, "[SIZE]", .call = parse_large,
	  .help = "only writes of more than a page, or than SIZE" },
	OPT_END
};

int cmd_trace_check(const struct command *cmd, bool has_output, struct args *args,
		    struct trace_options *o)
{
	struct err err = ERR_INIT;
	char **v = args->v;
	uint64_t large;

	if (!args_given(args, "to"))
		o->filter.to = UINT64_MAX;
	/* "--large 64k FILE" is what people write. */
	if (o->large_alone && args->n == 2 && !number_parse_size(v[0], &large, &err) && large) {
		o->filter.large = large;
		v++;
	}
	if (!v[0])
		return cli_usage(cmd, "which file?");
	if (v[1])
		return cli_usage(cmd, "one file at a time; what is '%s'?", v[1]);
	o->file = v[0];
	if (o->filter.from > o->filter.to)
		return cli_usage(cmd, "--from %" PRIu64 " is after --to %" PRIu64, o->filter.from,
				 o->filter.to);
	if (has_output && !o->output)
		return cli_usage(cmd, "where to? Say -o FILE");
	if (has_output && o->json && streq(o->output, "-"))
		return cli_usage(cmd, "--json and -o - both want standard output");
	return EXIT_OK;
}

/* ---- output ---- */

void cmd_trace_json_info(struct json *j, const struct trace_info *info)
{
	json_kv_object(j, "info");
	json_kvs(j, KV("target", info->target), KV("size", info->size),
		 KV("sector_size", info->sector_size), KV("completions", info->completions));
	json_end(j);
}

void cmd_trace_json_damage(struct json *j, const struct trace_damage *d)
{
	json_kvs(j, KV("complete", (bool)!d->found));
	json_key(j, "damage");
	if (!d->found) {
		json_null(j);
		return;
	}
	json_object_of(j, KV("text", d->text), KV("cut_off", d->cut_off), KV("frame", d->frame),
		       KV("offset", d->offset), KV("readable_events", d->events));
}

bool cmd_trace_drain(struct strbuf *out)
{
	if (out->len)
		fwrite(out->buf, 1, out->len, stdout);
	strbuf_clear(out);
	return !ferror(stdout);
}

/* ---- reading ---- */

int cmd_trace_read(struct trace_options *o, trace_read_fn *read)
{
	auto_call(cleanup_trace_reader) struct trace_reader *r = NULL;
	struct err err = ERR_INIT;
	int rc = trace_reader_open(o->file, &r, &err);

	if (!rc)
		rc = read(o, r, &err);
	int status = cli_flush();
	if (rc)
		return cli_fail(&err);
	const struct trace_damage *d = trace_reader_damage(r);
	if (status || !d->found)
		return status;
	return cli_failf("%s is %s: %s", o->file, d->cut_off ? "cut off" : "damaged", d->text);
}

/* A filter that leaves nothing is easily a typing error. */
static void warn_empty(const struct trace_options *o)
{
	const char *file = o->filter.file;

	if (file)
		log_warn("%s: no call on a file that is or was named '%s' is among those chosen; "
			 "'outage trace show' lists them all",
			 o->file, file);
	else
		log_warn("%s: no call is as the options say; 'outage trace show' lists them all",
			 o->file);
}

int cmd_trace_read_calls(const struct trace_options *o, struct trace_reader *r,
			 struct posix_log *log, struct posix_selection *sel, struct err *err)
{
	log->keep_data = o->data;
	if (posix_log_read(log, r, err))
		return err_context(err, "%s", o->file);
	if (!log->calls.n && !trace_reader_damage(r)->found)
		return err_set(err, -EINVAL,
			       "%s holds no calls of an application, as 'outage mount --trace' "
			       "records them",
			       o->file);
	posix_select(log, &o->filter, sel);
	if (!sel->n)
		warn_empty(o);
	return 0;
}

static const struct opt none[] = { OPT_END };

const struct command cmd_trace = {
	.name = "trace",
	.summary = "show, draw, import and export traces",
	.usage = "show | info | graph | import | export [OPTIONS] FILE",
	.about = "A trace is what a target sent to its storage, or what an application asked of "
		 "its file system.",
	.options = none,
	.order = OPT_BEFORE,
	.sub = subcommands,
};
