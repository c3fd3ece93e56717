/* SPDX-License-Identifier: MIT */
/* cmd_mark.c - outage mark: a mark in the trace, from a shell in a guest that is traced. */
#include <outage/mark.h>

#include "base/number.h"
#include "base/strbuf.h"
#include "cli/cli.h"
#include "core/trace.h"

static int mark_number(const char *what, const char *number)
{
	uint64_t n;

	if (number_parse(number, &n) || n >= TRACE_OP_MAX)
		return cli_usage(&cmd_mark, "'%.60s' is no number of an operation", number);
	if (streq(what, "begin"))
		outage_mark_begin(n);
	else
		outage_mark_end(n);
	return EXIT_OK;
}

static int mark_text(const struct args *args)
{
	auto_strbuf text = STRBUF_INIT;

	for (int i = 1; i < args->n; i++)
		strbuf_addf(&text, "%s%s", i > 1 ? " " : "", args->v[i]);
	if (text.len > OUTAGE_MARK_TEXT_MAX)
		return cli_usage(&cmd_mark, "a text has at most %d bytes", OUTAGE_MARK_TEXT_MAX);
	outage_mark_text(strbuf_str(&text), text.len);
	return EXIT_OK;
}

static const struct opt options[] = {
	{ OPT_ARGUMENT, .arg = "begin N", .words = "begin", .help = "operation number N begins" },
	{ OPT_ARGUMENT, .arg = "end N", .words = "end", .help = "it has ended" },
	{ OPT_ARGUMENT, .arg = "text TEXT...", .words = "text", .help = "a text for people" },
	OPT_END
};

static int run(void *unused, struct args *args)
{
	char **v = args->v;

	(void)unused;
	if (args->n == 2 && (streq(v[0], "begin") || streq(v[0], "end")))
		return mark_number(v[0], v[1]);
	if (args->n >= 2 && streq(v[0], "text"))
		return mark_text(args);
	return cli_usage(&cmd_mark, "give begin or end with a number, or text with a text");
}

const struct command cmd_mark = {
	.name = "mark",
	.summary = "a mark in the trace of persistent memory",
	.usage = "begin N | end N | text TEXT...",
	.about = "Tells the tracer of this machine's persistent memory where a script is. Where "
		 "nothing is traced, it does nothing. A program uses <outage/mark.h> instead.",
	.status = "0, or 2 if the command line is wrong",
	.example = "outage mark begin 1; mv a b; outage mark end 1",
	.options = options,
	.order = OPT_NOWHERE,
	.run = run,
};
