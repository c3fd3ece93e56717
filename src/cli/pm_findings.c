/* SPDX-License-Identifier: MIT */
/* pm_findings.c - report, replay, shrink and export of a run of outage pm. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/below.h"
#include "base/io.h"
#include "case/suppress.h"
#include "cli/kind.h"
#include "pm/file.h"
#include "pm/pm_keep.h"
#include "pm/state.h"
#include "report/pm_report.h"

static void release_cases(struct pm_cases *cases)
{
	for (size_t i = 0; i < cases->n; i++)
		case_finding_release(&pm_kind, &cases->v[i]);
	vec_release(cases);
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

/* A finding, with its run. */
struct loaded {
	struct pm_run run;
	struct pm_case c;
};

static int load(const char *dir, struct loaded *l, struct err *err)
{
	auto_free char *run = below_run_of(dir);
	int rc = pm_run_load(run, &l->run, err);

	if (rc)
		return rc;
	rc = case_get(&pm_kind, dir, &l->c, err);
	if (rc)
		pm_run_release(&l->run);
	return rc;
}

static void loaded_release(struct loaded *l)
{
	case_finding_release(&pm_kind, &l->c);
	pm_run_release(&l->run);
}

static int replay(const struct replay_request *r)
{
	struct err err = ERR_INIT;
	struct loaded l;
	struct pm_failure f = { 0 };
	int status = EXIT_FAILED;
	bool made = false;

	if (r->rerun)
		return cli_usage(&cmd_replay, "--rerun: run 'outage pm' again instead");
	if (load(r->dir, &l, &err))
		return cli_fail(&err);
	int rc = case_trust(&pm_kind, l.run.dir, &l.c, &l.run.plan, r->trust, &l.run.plan.ours,
			    &err);
	if (!rc)
		rc = pm_file_place(l.run.plan.file, &made, &err);
	if (!rc)
		rc = pm_search_one(&l.run, l.c.state, &f, &err);
	if (made)
		unlink(l.run.plan.file);
	if (!rc) {
		bool shown = pm_shows(&l.run, &l.c, &f);

		print_replay(&l.c, &f, shown, r->json);
		status = shown ? EXIT_FINDINGS : EXIT_OK;
	}
	pm_failure_release(&f);
	loaded_release(&l);
	return rc ? cli_fail(&err) : status;
}

/* ---- export ---- */

static int export(const struct export_request *r)
{
	auto_strbuf text = STRBUF_INIT;
	struct err err = ERR_INIT, strange = ERR_INIT;
	struct loaded l;

	if (load(r->dir, &l, &err))
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
	loaded_release(&l);
	return rc ? cli_fail(&err) : EXIT_OK;
}

/* ---- shrink ---- */

/* The program is not run again: only what its crash lost can become less. */
enum { SHRINK_TRIES = 500 };

static void print_shrunk(const struct shrink_request *o, const struct pm_shrunk *r)
{
	if (!o->json) {
		printf("%s: %llu of %llu lost %s, after %llu %s\n", o->output, llu(r->lost_after),
		       COUNT_S(r->lost_before, "store"), COUNT_S(r->tried, "state"));
		return;
	}
	cli_json(KV("case", o->dir), KV("output", o->output), KV("lost_before", r->lost_before),
		 KV("lost", r->lost_after), KV("states", r->tried));
}

static int shrink_loaded(const struct shrink_request *o, struct pm_run *run, struct pm_case *c,
			 struct pm_shrunk *r, struct err *err)
{
	bool made = false;
	int rc = case_trust(&pm_kind, run->dir, c, &run->plan, o->trust, &run->plan.ours, err);

	if (!rc)
		rc = pm_file_place(run->plan.file, &made, err);
	if (!rc)
		rc = pm_shrink(run, c, o->max_runs ? o->max_runs : SHRINK_TRIES, r, err);
	if (made)
		unlink(run->plan.file);
	if (rc > 0)
		rc = err_set(err, -ENOENT, "%s does not show any more: there is nothing to shrink",
			     o->dir);
	auto_free char *dir = NULL, *name = NULL;
	below_split(o->output, &dir, &name);
	return rc ? rc : case_put(&pm_kind, dir, name, c, err);
}

/* The small one needs the run as well, its trace and the file before it: it must lie in one. */
static int check_place(const struct shrink_request *o, struct err *err)
{
	auto_free char *run = below_run_of(o->dir), *at = below_case(o->output);
	auto_free char *dir = NULL, *name = NULL;
	bool in_run = below_split(o->output, &dir, &name);
	auto_free char *above = in_run ? xstrdup(dir) : xasprintf("%s/..", dir);
	struct stat st;

	if (!o->force && below_exists(at, "case"))
		return err_set(err, -EEXIST,
			       "%s holds a finding already: give --force to replace it", o->output);
	/* The place would be replaced with all it holds. */
	if (!in_run && lstat(o->output, &st) == 0)
		return err_set(err, -EEXIST, "%s is there already: leave out -o", o->output);
	if (!case_is(above, "pm"))
		return err_set(err, -EINVAL,
			       "%s cannot be the place of a finding of outage pm, which needs "
			       "its run: leave out -o",
			       o->output);
	int rc = below_make_dir(run, "shrunk", err);
	return rc ? rc : below_sweep(run, "shrunk", err);
}

static int shrink(const struct shrink_request *o)
{
	struct err err = ERR_INIT;
	struct pm_shrunk result = { 0 };
	struct loaded l;

	if (check_place(o, &err) || load(o->dir, &l, &err))
		return cli_fail(&err);
	int rc = shrink_loaded(o, &l.run, &l.c, &result, &err);
	loaded_release(&l);
	if (rc)
		return cli_fail(&err);
	print_shrunk(o, &result);
	return EXIT_OK;
}

const struct case_ops kind_pm = {
	.name = "pm",
	.title = title,
	.report = report,
	.replay = replay,
	.shrink = shrink,
	.export = export,
};
