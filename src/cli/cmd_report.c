/* SPDX-License-Identifier: MIT */
/* cmd_report.c - outage report: what a run found, as text, JSON or a page. */

#include "base/io.h"
#include "cli/cli.h"
#include "cli/groups.h"
#include "cli/kind.h"

struct report_command {
	bool text, json, suppressions;
	const char *html;
};

/* Nothing is written of a report that cannot be made. */
static int make(const struct case_ops *ops, const char *dir, enum report_form form, const char *to,
		struct err *err)
{
	auto_strbuf out = STRBUF_INIT;
	int rc = ops->report(dir, form, &out, err);

	if (rc)
		return rc;
	if (to)
		return io_write_file(NULL, to, strbuf_str(&out), out.len, 0, err);
	fwrite(strbuf_str(&out), 1, out.len, stdout);
	return 0;
}

#define AT(member) OPT_AT(struct report_command, member)
static const struct opt options[] = {
	{ OPT_ARGUMENT, .arg = "RUN", .hint = HINT_DIR,
	  .help = "the directory of a run, or of one finding: RUN/findings/NAME" },
	{ OPT_FLAG, "text", 0, NULL, AT(text), .help = "on standard output; the default" },
	OPTION_JSON(AT(json)),
	{ OPT_FLAG, "suppressions", 0, NULL, AT(suppressions),
	  .help = "rules that hide all of it, for --suppress of the command that made it" },
	{ OPT_TEXT, "html", 0, "FILE", AT(html), .hint = HINT_FILE,
	  .help = "a page that needs no other file; - for standard output" },
	OPT_END
};

static int run(void *given, struct args *args)
{
	struct report_command *o = given;
	const struct case_ops *ops;
	const char *dir = args->v[0];
	struct err err = ERR_INIT;

	if (args->n != 1)
		return cli_usage(&cmd_report, "give the directory of one run");
	if (o->text + o->json + o->suppressions > 1)
		return cli_usage(&cmd_report,
				 "only one of --text, --json and --suppressions can have standard "
				 "output");
	if (!o->json && !o->html && !o->suppressions)
		o->text = true;
	if (kind_find(dir, &ops, &err))
		return cli_fail(&err);
	int rc = o->html ? make(ops, dir, REPORT_HTML, o->html, &err) : 0;
	if (!rc && (o->text || o->json || o->suppressions))
		rc = make(ops, dir,
			  o->json	    ? REPORT_JSON
			  : o->suppressions ? REPORT_SUPPRESSIONS
					    : REPORT_TEXT,
			  NULL, &err);
	return rc ? cli_fail(&err) : EXIT_OK;
}

const struct command cmd_report = {
	.name = "report",
	.summary = "tells what a run found, as text, JSON or one HTML page",
	.usage = "RUN [--text | --json | --suppressions] [--html FILE]",
	.about = "Tells what a run found: clusters of findings that are alike, and the first of "
		 "each.",
	.status = "0 the report was made, 2 it could not be",
	.example = "outage report outage-runs/ext4-0001 --html report.html",
	.options = options,
	.size = sizeof(struct report_command),
	.run = run,
};
