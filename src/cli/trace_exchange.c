/* SPDX-License-Identifier: MIT */
/* trace_exchange.c - "outage trace import" and "export": traces and logs of dm-log-writes. */
#include <errno.h>
#include <inttypes.h>

#include "base/log.h"
#include "cli/cmd_trace.h"
#include "core/dmlog.h"

static const struct opt import_options[] = {
	TRACE_OPTION_FILE("the log: a file, a device, or - for standard input"),
	TRACE_OPTION_OUTPUT("TRACE", "where the trace goes; - is standard output"),
	{ OPT_SIZE, "size", 0, "BYTES", TRACE_AT(size),
	  .help = "size of the logged device, which a log does not tell" },
	OPTION_JSON(TRACE_AT(json)),
	OPT_END
};

static const struct opt export_options[] = {
	TRACE_OPTION_FILE("the trace; - is standard input"),
	TRACE_OPTION_OUTPUT("LOG", "where the log goes; - is standard output"),
	OPTION_JSON(TRACE_AT(json)), OPT_END
};

static int run_import(void *given, struct args *args)
{
	auto_trace t = { 0 };
	struct trace_options *o = given;
	struct err err = ERR_INIT;
	struct json j;
	int status = cmd_trace_check(&cmd_trace_import, true, args, o);

	if (status)
		return status;
	if (dmlog_import(o->file, &t, &err))
		return cli_fail(&err);
	if (o->size)
		t.info.size = o->size;
	if (trace_validate(&t, &err)) {
		err_context(&err, "%s", o->file);
		return cli_fail(&err);
	}
	if (trace_save(o->output, &t, &err))
		return cli_fail(&err);
	if (o->json) {
		cli_json_begin(&j);
		json_kvs(&j, KV("trace", o->output), KV("events", t.events.n));
		cmd_trace_json_info(&j, &t.info);
		cli_json_end(&j);
	}
	return EXIT_OK;
}

const struct command cmd_trace_import = {
	.name = "trace import",
	.summary = "turn a dm-log-writes log into a trace",
	.usage = "[--size BYTES] [--json] FILE -o TRACE",
	.about = "Turns a log of the kernel's dm-log-writes target into a trace.",
	.options = import_options,
	.size = sizeof(struct trace_options),
	.run = run_import,
};

static void warn_left_out(const struct dmlog_report *rep)
{
	auto_strbuf what = STRBUF_INIT;
	const struct {
		uint64_t n;
		const char *text;
	} parts[] = {
		{ rep->reads, "reads" },
		{ rep->pm, "persistent-memory events" },
		{ rep->posix, "calls of an application" },
		{ rep->incomplete, "requests that never completed" },
		{ rep->failed, "requests that failed" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (parts[i].n)
			strbuf_addf(&what, "%s%s: %" PRIu64, what.len ? ", " : "", parts[i].text,
				    parts[i].n);
	if (what.len)
		log_warn("left out, as a dm-log-writes log cannot hold them; %s",
			 strbuf_str(&what));
}

static void export_json(const char *log, const struct dmlog_report *rep)
{
	struct json j;

	cli_json_begin(&j);
	json_kvs(&j, KV("log", log), KV("entries", rep->entries));
	json_kv_object(&j, "left_out");
	json_kvs(&j, KV("reads", rep->reads), KV("pm", rep->pm), KV("posix", rep->posix),
		 KV("incomplete", rep->incomplete), KV("failed", rep->failed));
	json_end(&j);
	cli_json_end(&j);
}

static int run_export(void *given, struct args *args)
{
	auto_trace t = { 0 };
	struct trace_options *o = given;
	struct dmlog_report rep;
	struct err err = ERR_INIT;
	int status = cmd_trace_check(&cmd_trace_export, true, args, o);

	if (status)
		return status;
	if (trace_load(o->file, &t, NULL, &err))
		return cli_fail(&err);
	if (dmlog_export(&t, o->output, &rep, &err)) {
		if (err.code == -EINVAL) /* the trace's fault, not the log's */
			err_context(&err, "%s", o->file);
		return cli_fail(&err);
	}
	warn_left_out(&rep);
	if (o->json)
		export_json(o->output, &rep);
	return EXIT_OK;
}

const struct command cmd_trace_export = {
	.name = "trace export",
	.summary = "turn a trace into a dm-log-writes log",
	.usage = "[--json] FILE -o LOG",
	.about = "Turns a trace into a log of the kernel's dm-log-writes target, for other tools. "
		 "Reads, persistent-memory events, calls of an application and requests that did "
		 "not complete are left out, with a warning.",
	.options = export_options,
	.size = sizeof(struct trace_options),
	.run = run_export,
};
