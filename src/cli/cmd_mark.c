/* SPDX-License-Identifier: MIT */
/* cmd_mark.c - outage mark: a mark in the trace, from a shell in a guest that is traced. */
#include <outage/mark.h>

#include "base/number.h"
#include "base/strbuf.h"
#include "cli/cli.h"
#include "core/trace.h"

static const char usage[] =
	"usage: outage mark begin N | end N | text TEXT...\n"
	"\n"
	"Says to whoever traces this machine's persistent memory where a script is: an operation\n"
	"begins, or has ended, or anything a person should read. Where nothing is traced, it does\n"
	"nothing. A program uses <outage/mark.h> instead.\n"
	"\n"
	"Exit status: 0, or 2 if the command line is wrong.\n"
	"\n"
	"example: outage mark begin 1; mv a b; outage mark end 1\n";

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

static int mark_text(int argc, char **argv)
{
	auto_strbuf text = STRBUF_INIT;

	for (int i = 2; i < argc; i++) {
		if (i > 2)
			strbuf_addch(&text, ' ');
		strbuf_adds(&text, argv[i]);
	}
	if (text.len > OUTAGE_MARK_TEXT_MAX)
		return cli_usage(&cmd_mark, "a text has at most %d bytes", OUTAGE_MARK_TEXT_MAX);
	outage_mark_text(strbuf_str(&text), text.len);
	return EXIT_OK;
}

static int run(int argc, char **argv)
{
	if (argc == 3 && (streq(argv[1], "begin") || streq(argv[1], "end")))
		return mark_number(argv[1], argv[2]);
	if (argc >= 3 && streq(argv[1], "text"))
		return mark_text(argc, argv);
	return cli_usage(&cmd_mark, "give begin or end with a number, or text with a text");
}

const struct command cmd_mark = {
	.name = "mark",
	.summary = "a mark in the trace of persistent memory",
	.usage = usage,
	.run = run,
};
