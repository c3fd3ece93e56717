/* SPDX-License-Identifier: MIT */
/* cmd_report.c - outage report: what a run found, as text, JSON or a page. */

#include "base/io.h"
#include "cli/app.h"
#include "cli/cli.h"
#include "cli/groups.h"
#include "cli/pm.h"
#include "pm/keep.h"
#include "report/report.h"

struct report_command {
	bool text, json, suppressions;
	const char *html;
};

static int write_html(const struct run_view *r, const char *path, struct err *err)
{
	auto_strbuf page = STRBUF_INIT;
	int rc = report_html_run(r, &page, err);

	return rc ? rc : io_write_file(NULL, path, strbuf_str(&page), page.len, 0, err);
}

static int print_json(const struct run_view *r, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;
	struct json j;

	json_init(&j, &text, true);
	int rc = report_json_run(r, &j, err);
	if (rc)
		return rc;
	fwrite(text.buf, 1, text.len, stdout);
	return 0;
}

static int print_text(const struct run_view *r, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;
	int rc = report_text_run(r, &text, err);

	if (!rc)
		fwrite(strbuf_str(&text), 1, text.len, stdout);
	return rc;
}

static void print_suppressions(const struct run_view *r)
{
	auto_strbuf text = STRBUF_INIT;

	report_suppressions(r, &text);
	fputs(strbuf_str(&text), stdout);
}

static int make_report(const struct report_command *o, const char *dir)
{
	struct run_view r;
	struct err err = ERR_INIT;
	int rc = run_view_load(dir, &r, &err);

	if (rc)
		return cli_fail(&err);
	if (o->html)
		rc = write_html(&r, o->html, &err);
	if (!rc && o->json)
		rc = print_json(&r, &err);
	if (!rc && o->text)
		rc = print_text(&r, &err);
	if (!rc && o->suppressions)
		print_suppressions(&r);
	run_view_release(&r);
	return rc ? cli_fail(&err) : EXIT_OK;
}

#define AT(member) OPT_AT(struct report_command, member)
static const struct opt options[] = {
	{ OPT_ARGUMENT, .arg = "RUN", .hint = HINT_DIR,
	  .help = "the directory of a run, or of one finding: RUN/findings/NAME" },
	{ OPT_FLAG, "text", 0, NULL, AT(text), .help = "on standard output; the default" },
	OPTION_JSON(AT(json)),
	{ OPT_FLAG, "suppressions", 0, NULL, AT(suppressions),
	  .help = "rules that hide all of it, for outage test --suppress" },
	{ OPT_TEXT, "html", 0, "FILE", AT(html), .hint = HINT_FILE,
	  .help = "a page that needs no other file; - for standard output" },
	OPT_END
};

static int run(void *given, struct args *args)
{
	struct report_command *o = given;
	const char *dir = args->v[0];

	if (args->n != 1)
		return cli_usage(&cmd_report, "give the directory of one run");
	if (o->text + o->json + o->suppressions > 1)
		return cli_usage(&cmd_report,
				 "only one of --text, --json and --suppressions can have standard "
				 "output");
	if (!o->json && !o->html && !o->suppressions)
		o->text = true;
	if (case_is_run(dir, app_kind.plan->name) || case_is_finding(dir, app_kind.finding->name)) {
		if (o->suppressions)
			return cli_usage(&cmd_report, "a run of outage app has no suppressions");
		return app_report(dir, o->json, o->html);
	}
	if (case_is_run(dir, pm_kind.plan->name) || case_is_finding(dir, pm_kind.finding->name)) {
		if (o->suppressions)
			return cli_usage(&cmd_report, "a run of outage pm has no suppressions");
		return pm_report(dir, o->json, o->html);
	}
	return make_report(o, dir);
}

const struct command cmd_report = {
	.name = "report",
	.summary = "tells what a run found, as text, JSON or one HTML page",
	.usage = "usage: outage report RUN [--text | --json | --suppressions] [--html FILE]\n"
		 "\n"
		 "Tells what a run found: clusters of findings that are alike, and the first of "
		 "each.\n",
	.notes = "Exit status: 0 the report was made, 2 it could not be.\n"
		 "\n"
		 "example: outage report outage-runs/ext4-0001 --html report.html\n",
	.options = options,
	.size = sizeof(struct report_command),
	.run = run,
};
