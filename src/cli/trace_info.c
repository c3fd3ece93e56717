/* SPDX-License-Identifier: MIT */
/* trace_info.c - "outage trace info": what a trace holds, counted, one event at a time. */
#include <inttypes.h>

#include "cli/cmd_trace.h"

struct counts {
	uint64_t events;
	uint64_t by_kind[EV_KIND_END];
	uint64_t by_call[POSIX_OP_END]; /* calls of an application */
	uint64_t bytes_written;		/* the data of writes and stores */
	uint64_t unfinished;		/* requests without a completion */
};

static void count_posix(struct counts *c, const struct event *ev)
{
	struct posix_event p = cmd_trace_decoded(ev);

	c->by_call[p.op]++;
	if (p.op == POSIX_WRITE && p.result > 0)
		c->bytes_written += (uint64_t)p.result;
}

static int count(struct trace_reader *r, struct counts *c, struct err *err)
{
	struct event ev;
	int rc;

	while ((rc = trace_reader_next(r, &ev, err)) > 0) {
		c->events++;
		c->by_kind[ev.kind]++;
		if (ev.kind == EV_WRITE || ev.kind == EV_STORE)
			c->bytes_written += ev.len;
		if (ev.kind == EV_POSIX)
			count_posix(c, &ev);
		c->unfinished += event_is_request(ev.kind);
		c->unfinished -= ev.kind == EV_COMPLETE;
	}
	return rc;
}

static void info_text(const struct trace_info *info, const struct counts *c,
		      const struct trace_damage *d)
{
	auto_strbuf target = STRBUF_INIT;

	posix_add_safe(&target, info->target, strlen(info->target));
	printf("target       %s\n", target.len ? target.buf : "unknown");
	if (info->size)
		printf("size         %" PRIu64 " bytes\n", info->size);
	else
		printf("size         unknown\n");
	printf("sector size  %" PRIu32 " bytes\n", info->sector_size);
	printf("completions  %s\n", info->completions ? "recorded" : "not recorded");
	printf("complete     %s\n", !d->found ? "yes" : d->cut_off ? "no, cut off" : "no, damaged");
	printf("events       %" PRIu64 "\n", c->events);
	for (int k = 1; k < EV_KIND_END; k++)
		if (c->by_kind[k])
			printf("  %-10s %" PRIu64 "\n", event_kind_name((enum event_kind)k),
			       c->by_kind[k]);
	for (int op = 0; op < POSIX_OP_END; op++)
		if (c->by_call[op])
			printf("    %-15s %" PRIu64 "\n", posix_op_name((enum posix_op)op),
			       c->by_call[op]);
	printf("written      %" PRIu64 " bytes\n", c->bytes_written);
	printf("in flight    %" PRIu64 " requests never completed\n", c->unfinished);
}

static void info_json(const struct trace_info *info, const struct counts *c,
		      const struct trace_damage *d)
{
	struct json j;

	cli_json_begin(&j);
	cmd_trace_json_info(&j, info);
	json_kvs(&j, KV("events", c->events));
	json_kv_object(&j, "kinds");
	for (int k = 1; k < EV_KIND_END; k++)
		json_kvs(&j, KV(event_kind_name((enum event_kind)k), c->by_kind[k]));
	json_end(&j);
	json_kv_object(&j, "calls");
	for (int op = 0; op < POSIX_OP_END; op++)
		if (c->by_call[op])
			json_kvs(&j, KV(posix_op_name((enum posix_op)op), c->by_call[op]));
	json_end(&j);
	json_kvs(&j, KV("bytes_written", c->bytes_written), KV("unfinished", c->unfinished));
	cmd_trace_json_damage(&j, d);
	cli_json_end(&j);
}

static int tell(struct trace_options *o, struct trace_reader *r, struct err *err)
{
	struct counts c = { 0 };
	int rc = count(r, &c, err);

	if (!rc)
		(o->json ? info_json : info_text)(trace_reader_info(r), &c, trace_reader_damage(r));
	return rc;
}

static const struct opt options[] = { TRACE_OPTION_FILE("the trace; - is standard input"),
				      OPTION_JSON(TRACE_AT(json)), OPT_END };

static int run(void *given, struct args *args)
{
	int status = cmd_trace_check(&cmd_trace_info, false, args, given);

	return status ? status : cmd_trace_read(given, tell);
}

const struct command cmd_trace_info = {
	.name = "trace info",
	.summary = "count the events of a trace",
	.usage = "[--json] FILE",
	.about = "Prints what was recorded, how many events of each kind there are, and whether "
		 "the trace is complete.",
	.options = options,
	.size = sizeof(struct trace_options),
	.run = run,
};
