/* SPDX-License-Identifier: MIT */
/* test_findings.c - report and shrink of a run of outage test. */
#include "cli/test_findings.h"

#include "run/guest_opts.h"
#include "report/report.h"
#include "run/shrink.h"

int test_title(const char *dir, struct strbuf *out, struct err *err)
{
	struct stored_case c;
	int rc = store_load(dir, &c, err);

	if (rc)
		return rc;
	strbuf_adds(out, stored_case_first(&c)->words);
	stored_case_release(&c);
	return 0;
}

/* ---- report ---- */

int test_report_view(const struct run_view *r, enum report_form form, struct strbuf *out,
		     struct err *err)
{
	struct json j;

	switch (form) {
	case REPORT_TEXT:
		return report_text_run(r, out, err);
	case REPORT_JSON:
		json_init(&j, out, true);
		return report_json_run(r, &j, err);
	case REPORT_HTML:
		return report_html_run(r, out, err);
	case REPORT_SUPPRESSIONS:
		report_suppressions(r, out);
	}
	return 0;
}

static int report(const char *dir, enum report_form form, struct strbuf *out, struct err *err)
{
	struct run_view r;
	int rc = run_view_load(dir, &r, err);

	if (rc)
		return rc;
	rc = test_report_view(&r, form, out, err);
	run_view_release(&r);
	return rc;
}

/* ---- shrink ---- */

struct shrinking {
	const struct shrink_request *r;
	struct stored_case c;
	struct shrink_opts opts;
	struct err unmarked; /* why the small one does not get this user's mark */
};

static void on_step(void *ctx, const char *words)
{
	const struct shrinking *o = ctx;

	if (!o->r->json) {
		printf("  %s\n", words);
		fflush(stdout);
	}
}

static void print_json(const struct shrinking *o, const struct shrink_result *r)
{

	cli_json(KV("case", o->c.dir), KV("output", o->r->output),
		 KV("operations_before", r->ops_before), KV("operations", r->ops_after),
		 KV("lost_before", r->lost_before), KV("lost", r->lost_after), KV("runs", r->runs),
		 KV("states", r->states), KV("budget_hit", r->budget_hit));
}

static void print_text(const struct shrinking *o, const struct shrink_result *r)
{
	printf("%s: %zu of %zu %s, %zu of %zu lost %s, after %llu %s and %llu %s\n", o->r->output,
	       r->ops_after, r->ops_before, plural(r->ops_before, "operation", "operations"),
	       r->lost_after, r->lost_before, plural(r->lost_before, "write", "writes"),
	       COUNT_S(r->runs, "run"), COUNT_S(r->states, "state"));
	if (r->budget_hit)
		printf("more --runs may make it smaller\n");
}

static int shrink(void *ctx)
{
	struct shrinking *o = ctx;
	struct shrink_result result;
	struct err err = ERR_INIT;
	int rc = shrink_case(&o->c, &o->opts, o->r->output, &result, &err);

	if (rc < 0)
		return cli_fail(&err);
	if (rc > 0)
		return cli_failf("%s does not show any more: there is nothing to shrink", o->c.dir);
	if (o->r->json)
		print_json(o, &result);
	else
		print_text(o, &result);
	cli_tell_unmarked(&o->unmarked);
	return EXIT_OK;
}

int test_shrink(const struct shrink_request *r)
{
	struct shrinking o = { .r = r, .opts = { .max_runs = r->max_runs, .step = on_step } };
	struct err err = ERR_INIT;

	if (store_load(r->dir, &o.c, &err))
		return cli_fail(&err);
	o.opts.ctx = &o;
	int rc = store_trust(&o.c, NULL, r->trust, &err);
	if (!rc)
		rc = guest_opts_apply(&r->guest, &o.c, &err);
	if (!rc && o.c.ours)
		cli_ready_to_mark(&o.unmarked);
	if (!rc)
		rc = case_place(r->output, NULL, r->force, &err);
	int status = rc ? cli_fail(&err) : cli_watch(shrink, &o, r->time_ns, NULL);
	stored_case_release(&o.c);
	return status;
}

const struct case_ops kind_test = {
	.name = "test",
	.on_target = true,
	.title = test_title,
	.report = report,
	.replay = test_replay,
	.shrink = test_shrink,
	.export = test_export,
};
