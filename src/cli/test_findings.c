/* SPDX-License-Identifier: MIT */
/* test_findings.c - report and shrink of a run of outage test. */
#include "cli/test_findings.h"

#include "run/guest_opts.h"
#include "report/report.h"

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
	const struct stored_case *c;
	test_shrink_fn *fn;
	const void *from;
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

	cli_json(KV("case", o->c->dir), KV("output", o->r->output),
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
	int rc = o->fn(o->from, &o->opts, o->r->output, &result, &err);

	if (rc < 0)
		return cli_fail(&err);
	if (rc > 0)
		return cli_failf("%s does not show any more: there is nothing to shrink",
				 o->c->dir);
	if (o->r->json)
		print_json(o, &result);
	else
		print_text(o, &result);
	cli_tell_unmarked(&o->unmarked);
	return EXIT_OK;
}

int test_shrink_by(const struct shrink_request *r, struct stored_case *c,
		   const struct workload *script, test_shrink_fn *fn, const void *from)
{
	struct shrinking o = { .r = r, .c = c, .fn = fn, .from = from };
	struct err err = ERR_INIT;
	int rc = store_trust(c, script, r->trust, &err);

	o.opts = (struct shrink_opts){ .max_runs = r->max_runs, .step = on_step, .ctx = &o };
	if (!rc)
		rc = guest_opts_apply(&r->guest, c, &err);
	if (!rc && c->ours)
		cli_ready_to_mark(&o.unmarked);
	if (!rc)
		rc = case_place(r->output, NULL, r->force, &err);
	return rc ? cli_fail(&err) : cli_watch(shrink, &o, r->time_ns, NULL);
}

static int shrink_workload(const void *c, const struct shrink_opts *opts, const char *dir,
			   struct shrink_result *out, struct err *err)
{
	return shrink_case(c, opts, dir, out, err);
}

static int shrink_test(const struct shrink_request *r)
{
	struct stored_case c;
	struct err err = ERR_INIT;

	if (store_load(r->dir, &c, &err))
		return cli_fail(&err);
	int status = test_shrink_by(r, &c, NULL, shrink_workload, &c);
	stored_case_release(&c);
	return status;
}

const struct case_ops kind_test = {
	.name = "test",
	.on_target = true,
	.title = test_title,
	.report = report,
	.replay = test_replay,
	.shrink = shrink_test,
	.export = test_export,
};
