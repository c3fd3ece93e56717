/* SPDX-License-Identifier: MIT */
/* pm_findings.c - report, replay, shrink and export of a run of outage pm. */
#include "base/below.h"
#include "base/io.h"
#include "case/suppress.h"
#include "cli/kind.h"
#include "pm/pm_finding.h"
#include "pm/state.h"
#include "report/pm_report.h"

static void release_cases(struct pm_cases *cases)
{
	vec_release_each(p, cases, case_finding_release(&pm_kind, p));
}

/* ---- report ---- */

static int report_html(const char *run, const char *version, const struct pm_summary *s,
		       const struct pm_cases *cases, struct strbuf *out, struct err *err)
{
	struct pm_run r;
	int rc = pm_run_load(run, &r, err);

	if (rc)
		return rc;
	rc = pm_report_html(&r, version, s, cases, out, err);
	pm_run_release(&r);
	return rc;
}

/* All findings of a run, or one. */
static int load_cases(const char *dir, struct pm_cases *out, struct err *err)
{
	struct pm_case c;

	if (!case_is_one(dir))
		return pm_cases_load(dir, out, err);
	int rc = case_get(&pm_kind, dir, &c, err);
	if (!rc)
		vec_push(out, c);
	return rc;
}

static void add_rules(const struct pm_plan *plan, const struct pm_cases *cases, struct strbuf *out)
{
	for (size_t i = 0; i < cases->n; i++) {
		auto_free char *cluster = pm_case_cluster(&cases->v[i]);
		auto_free char *why = xasprintf("%llu %s", COUNT_S(cases->v[i].states, "state"));

		suppress_add_rule(cluster, plan->program, why, out);
	}
}

static int report(const char *dir, enum report_form form, struct strbuf *out, struct err *err)
{
	auto_free char *run = case_is_one(dir) ? below_run_of(dir) : xstrdup(dir);
	auto_free char *version = NULL;
	struct pm_plan plan = { 0 };
	struct pm_summary totals = { 0 }, *s = case_has_ended(run) ? &totals : NULL;
	struct pm_cases cases = { 0 };
	int rc = pm_plan_load(run, &plan, err);

	if (!rc)
		rc = case_version_of(dir, &version, err);
	if (!rc && s)
		rc = record_load(pm_kind.summary, run, CASE_SUMMARY, s, err);
	if (!rc)
		rc = load_cases(dir, &cases, err);
	if (!rc && form == REPORT_HTML)
		rc = report_html(run, version, s, &cases, out, err);
	else if (!rc && form == REPORT_SUPPRESSIONS)
		add_rules(&plan, &cases, out);
	else if (!rc && form == REPORT_JSON)
		pm_report_json(&plan, version, s, &cases, out);
	else if (!rc)
		pm_report_text(&plan, version, s, &cases, out);
	release_cases(&cases);
	pm_plan_release(&plan);
	return rc;
}

static int title(const char *dir, struct strbuf *out, struct err *err)
{
	struct pm_case c;
	int rc = case_get(&pm_kind, dir, &c, err);

	if (rc)
		return rc;
	strbuf_adds(out, c.title);
	case_finding_release(&pm_kind, &c);
	return 0;
}

/* ---- replay ---- */

static void print_replay(const struct pm_case *c, const struct pm_failure *f, bool shown, bool json)
{
	auto_strbuf seen = STRBUF_INIT;

	pm_failure_end(f, &seen);
	if (!json) {
		printf("%s %s: %s\n  the check %s\n%s", c->dir,
		       shown ? "shows again" : "does not show any more", c->title,
		       strbuf_str(&seen), f->said);
		return;
	}
	cli_json(KV("case", c->dir), KV("state", c->state), KV("shown", shown),
		 KV("title", c->title), KV("seen", strbuf_str(&seen)), KV("said", f->said));
}

struct replaying {
	const struct replay_request *r;
	struct pm_finding f;
};

static int look_again(void *ctx)
{
	const struct replaying *o = ctx;
	struct pm_failure seen = { 0 };
	struct err err = ERR_INIT;
	int rc = pm_search_one(&o->f.run, o->f.c.state, &seen, &err);
	bool shown = !rc && pm_shows(&o->f.run, &o->f.c, &seen);

	if (!rc)
		print_replay(&o->f.c, &seen, shown, o->r->json);
	pm_failure_release(&seen);
	return rc ? cli_fail(&err) : shown ? EXIT_FINDINGS : EXIT_OK;
}

static int replay(const struct replay_request *r)
{
	struct replaying o = { .r = r };
	struct err err = ERR_INIT;

	if (pm_finding_load(r->dir, &o.f, &err))
		return cli_fail(&err);
	int status =
		pm_finding_ready(&o.f, r->trust, &err)
			? cli_fail(&err)
			: cli_watch(look_again, &o, r->time_ns ? r->time_ns : REPLAY_TIME_NS, NULL);
	pm_finding_release(&o.f);
	return status;
}

/* ---- export ---- */

static int export(const struct export_request *r)
{
	auto_strbuf text = STRBUF_INIT;
	struct err err = ERR_INIT, strange = ERR_INIT;
	struct pm_finding l;

	if (pm_finding_load(r->dir, &l, &err))
		return cli_fail(&err);
	if (case_trust(&pm_kind, l.run.dir, &l.c, &l.run.plan, r->trust, &l.run.plan.ours,
		       &strange))
		cli_tell_strange(r->dir);
	int rc = pm_export_script(&l.run, &l.c, &text, &err);
	auto_free char *to = NULL;
	if (!rc)
		rc = below_make_named(r->output, &to, &err);
	if (!rc)
		rc = io_write_file(to, "reproduce.sh", strbuf_str(&text), text.len, 0755, &err);
	pm_finding_release(&l);
	return rc ? cli_fail(&err) : EXIT_OK;
}

/* ---- shrink ---- */

/* The program is not run again: only what its crash lost can become less. */
enum { SHRINK_TRIES = 500 };

struct shrinking {
	const struct shrink_request *r;
	struct pm_finding f;
};

static int lose_less(void *ctx)
{
	struct shrinking *o = ctx;
	struct case_shrunk small;
	struct err err = ERR_INIT;
	int rc = pm_shrink(&o->f.run, &o->f.c, o->r->max_runs ? o->r->max_runs : SHRINK_TRIES,
			   &small, &err);

	if (rc > 0)
		return cli_failf("%s does not show any more: there is nothing to shrink",
				 o->r->dir);
	if (!rc)
		rc = case_put_at(&pm_kind, o->r->output, &o->f.c, &err);
	if (rc)
		return cli_fail(&err);
	kind_print_shrunk(o->r, &small, "store", "stores");
	return EXIT_OK;
}

static int shrink(const struct shrink_request *r)
{
	struct shrinking o = { .r = r };
	struct err err = ERR_INIT;

	if (case_place(r->output, r->dir, r->force, &err) || pm_finding_load(r->dir, &o.f, &err))
		return cli_fail(&err);
	int status = pm_finding_ready(&o.f, r->trust, &err)
			     ? cli_fail(&err)
			     : cli_watch(lose_less, &o, r->time_ns, NULL);
	pm_finding_release(&o.f);
	return status;
}

const struct case_ops kind_pm = {
	.name = "pm",
	.title = title,
	.report = report,
	.replay = replay,
	.shrink = shrink,
	.export = export,
};
