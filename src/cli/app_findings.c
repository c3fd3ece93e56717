/* SPDX-License-Identifier: MIT */
/* app_findings.c - report, replay, shrink and export of a run of outage app. */
#include <errno.h>

#include "app/app_finding.h"
#include "app/app_words.h"
#include "base/below.h"
#include "base/io.h"
#include "case/suppress.h"
#include "cli/kind.h"
#include "report/app_report.h"

struct loaded {
	char *dir; /* of the run */
	char *version;
	struct app_run run;
	struct posix_log log;
	struct vec_of(struct posix_log *) logs; /* by restart */
	struct app_view view;
};

static void loaded_release(struct loaded *l)
{
	app_view_release(&l->view);
	vec_release_each(p, &l->logs, posix_log_release(*p), free(*p));
	posix_log_release(&l->log);
	app_run_release(&l->run);
	free(l->dir);
	free(l->version);
}

/* Gives the log of a restart, which is loaded; or the run's. */
static int log_of(struct loaded *l, const struct app_run *at, const struct posix_log **out,
		  struct err *err)
{
	*out = &l->log;
	for (size_t i = 0; i < l->run.nested.n; i++) {
		if (l->run.nested.v[i] != at)
			continue;
		if (i == l->logs.n) {
			vec_push(&l->logs, xcalloc(1, sizeof(**l->logs.v)));
			posix_log_init(vec_last(&l->logs));
			int rc = app_log(&at->trace, vec_last(&l->logs), err);
			if (rc)
				return rc;
		}
		*out = l->logs.v[i];
	}
	return 0;
}

/* Which record each finding is about. */
static int find_records(struct loaded *l, struct err *err)
{
	for (size_t i = 0; i < l->view.cases.n; i++) {
		const struct posix_log *log;
		struct app_run *at;
		int rc = app_run_of(&l->run, l->view.cases.v[i].state, &at, err);

		if (!rc)
			rc = log_of(l, at, &log, err);
		if (rc)
			return rc;
		vec_push(&l->view.at, (struct app_view_at){ .plan = &at->plan,
							    .h = &at->history,
							    .log = log,
							    .stacks = &at->stacks });
	}
	return 0;
}

/* A run, or one finding of it. */
static int load(struct loaded *l, const char *dir, struct err *err)
{
	bool one = case_is_one(dir);
	auto_free char *run = one ? below_run_of(dir) : xstrdup(dir);

	*l = (struct loaded){ 0 };
	posix_log_init(&l->log);
	l->dir = below_real(run);
	if (!l->dir)
		return err_set(err, -errno, "cannot use %s: %m", run);
	int rc = app_run_load(l->dir, &l->run, err);
	if (!rc)
		rc = case_version_of(dir, &l->version, err);
	if (!rc)
		rc = app_log(&l->run.trace, &l->log, err);
	if (rc)
		return rc;
	l->view = (struct app_view){ .run = l->dir,
				     .version = l->version,
				     .plan = &l->run.plan,
				     .acks = &l->run.acks,
				     .shown = l->run.shown.n ? &l->run.shown : NULL,
				     .h = &l->run.history,
				     .log = &l->log,
				     .stacks = &l->run.stacks };
	rc = app_view_load(&l->view, one ? dir : NULL, err);
	return rc ? rc : find_records(l, err);
}

static int title(const char *dir, struct strbuf *out, struct err *err)
{
	struct app_case c;
	int rc = case_get(&app_kind, dir, &c, err);

	if (rc)
		return rc;
	strbuf_adds(out, c.title);
	case_finding_release(&app_kind, &c);
	return 0;
}

static void add_rules(const struct app_view *v, struct strbuf *out)
{
	for (size_t i = 0; i < v->cases.n; i++) {
		auto_free char *cluster = app_case_cluster(&v->cases.v[i]);
		auto_free char *why = xasprintf("%llu %s", COUNT_S(v->cases.v[i].states, "state"));

		suppress_add_rule(cluster, v->plan->profile, why, out);
	}
}

static int report(const char *dir, enum report_form form, struct strbuf *out, struct err *err)
{
	struct loaded l;
	struct json j;
	int rc = load(&l, dir, err);

	json_init(&j, out, true);
	if (!rc && form == REPORT_SUPPRESSIONS)
		add_rules(&l.view, out);
	else if (!rc)
		rc = form == REPORT_HTML   ? app_report_html(&l.view, out, err)
		     : form == REPORT_JSON ? app_report_json(&l.view, &j, err)
					   : app_report_text(&l.view, out, err);
	loaded_release(&l);
	return rc;
}

/* ---- replay ---- */

static void print_replay(const struct app_case *c, const struct verdict *v, bool shown, bool json)
{
	if (!json) {
		printf("%s %s: %s\n  %s\n", c->dir,
		       shown ? "shows again" : "does not show any more", app_harm_words(c->harm),
		       c->title);
		if (c->shown < c->asked)
			printf("  when it was found, it showed %llu of %llu times\n", llu(c->shown),
			       llu(c->asked));
		if (v->fails && !shown)
			printf("  another failure shows, %s: %s\n", app_harm_name(v->harm),
			       app_harm_words(v->harm));
		if (v->fails)
			printf("  %s\n%s", v->seen, strbuf_str(&v->said));
		return;
	}
	cli_json(KV("case", c->dir), KV("state", c->state), KV("shown", shown),
		 KV("fails", v->fails), KV("harm", app_harm_name(v->fails ? v->harm : c->harm)),
		 KV("title", c->title), KV("seen", v->seen ? v->seen : ""), KV("said", &v->said));
}

struct replaying {
	const struct replay_request *r;
	struct app_finding f;
};

static int check_again(void *ctx)
{
	struct replaying *o = ctx;
	struct verdict v = { 0 };
	struct err err = ERR_INIT;
	int rc = app_finding_again(&o->f, &v, &err);
	bool shown = !rc && app_finding_shows(&o->f.c, &v);

	if (!rc)
		print_replay(&o->f.c, &v, shown, o->r->json);
	verdict_release(&v);
	return rc ? cli_fail(&err) : shown ? EXIT_FINDINGS : EXIT_OK;
}

static int ready(struct app_finding *f, const char *dir, bool trust, struct err *err)
{
	struct app_plan *plan = &f->run.plan;
	int rc = app_finding_load(dir, f, err);

	return rc ? rc : case_trust(&app_kind, f->run.dir, &f->c, plan, trust, &plan->ours, err);
}

static int replay(const struct replay_request *r)
{
	struct replaying o = { .r = r };
	struct err err = ERR_INIT;
	int status = ready(&o.f, r->dir, r->trust, &err)
			     ? cli_fail(&err)
			     : cli_watch(check_again, &o, r->time_ns ? r->time_ns : REPLAY_TIME_NS,
					 NULL);

	app_finding_release(&o.f);
	return status;
}

/* ---- shrink ---- */

enum { SHRINK_CHECKS = 500 };

struct shrinking {
	const struct shrink_request *r;
	struct app_finding f;
};

static int explain_again(void *ctx)
{
	struct shrinking *o = ctx;
	struct case_shrunk small;
	struct err err = ERR_INIT;
	int rc = app_finding_shrink(&o->f, o->r->max_runs ? o->r->max_runs : SHRINK_CHECKS, &small,
				    &err);

	if (rc > 0)
		return cli_failf("%s does not show any more: there is nothing to shrink",
				 o->r->dir);
	if (!rc)
		rc = case_put_at(&app_kind, o->r->output, &o->f.c, &err);
	if (rc)
		return cli_fail(&err);
	kind_print_shrunk(o->r, &small, "operation", "operations");
	return EXIT_OK;
}

static int shrink(const struct shrink_request *r)
{
	struct shrinking o = { .r = r };
	struct err err = ERR_INIT;
	int rc = case_place(r->output, r->dir, r->force, &err);

	if (!rc)
		rc = ready(&o.f, r->dir, r->trust, &err);
	int status = rc ? cli_fail(&err) : cli_watch(explain_again, &o, r->time_ns, NULL);
	app_finding_release(&o.f);
	return status;
}

/* ---- export ---- */

static int export_all(const struct loaded *l, const char *output, struct err *err)
{
	const struct app_case *c = &l->view.cases.v[0];
	auto_strbuf text = STRBUF_INIT;
	auto_free char *to = NULL;
	int rc = below_make_named(output, &to, err);

	struct app_view one = app_view_of(&l->view, 0);
	if (!rc)
		rc = app_export_script(&one, c, &text, err);
	if (!rc)
		rc = io_write_file(to, "reproduce.sh", strbuf_str(&text), text.len, 0755, err);
	strbuf_clear(&text);
	if (!rc && app_export_lazyfs(&one, c, &text))
		return io_write_file(to, "lazyfs.toml", strbuf_str(&text), text.len, 0644, err);
	if (!rc)
		printf("lazyfs.toml is not written: this takes more than losing unsynced data at "
		       "an operation\n");
	return rc;
}

static int export(const struct export_request *r)
{
	struct err err = ERR_INIT, strange = ERR_INIT;
	struct loaded l = { 0 };
	int rc = load(&l, r->dir, &err);

	if (!rc && case_trust(&app_kind, l.dir, l.view.cases.v, &l.run.plan, r->trust,
			      &l.run.plan.ours, &strange))
		cli_tell_strange(r->dir);
	if (!rc)
		rc = export_all(&l, r->output, &err);
	loaded_release(&l);
	return rc ? cli_fail(&err) : EXIT_OK;
}

const struct case_ops kind_app = {
	.name = "app",
	.title = title,
	.report = report,
	.replay = replay,
	.shrink = shrink,
	.export = export,
};
