/* SPDX-License-Identifier: MIT */
/* app_findings.c - report, replay and export of a run of outage app. */
#include <errno.h>
#include <unistd.h>

#include "app/app_run.h"
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
	for (size_t i = 0; i < l->logs.n; i++) {
		posix_log_release(l->logs.v[i]);
		free(l->logs.v[i]);
	}
	vec_release(&l->logs);
	posix_log_release(&l->log);
	app_run_release(&l->run);
	free(l->dir);
	free(l->version);
}

/* Of a restart, which is loaded; else the run's. */
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

enum { REPLAYS_MAX = 6 }; /* even if a case says more */

/* The same harm; any other is another failure. */
static bool shows(const struct app_case *c, const struct verdict *v)
{
	return v->fails && v->harm == c->harm;
}

static void print_replay(const struct app_case *c, const struct verdict *v, bool json)
{
	if (!json) {
		printf("%s %s: %s\n  %s\n", c->dir,
		       shows(c, v) ? "shows again" : "does not show any more",
		       app_harm_words(c->harm), c->title);
		if (c->shown < c->asked)
			printf("  when it was found, it showed %llu of %llu times\n", llu(c->shown),
			       llu(c->asked));
		if (v->fails && !shows(c, v))
			printf("  another failure shows, %s: %s\n", app_harm_name(v->harm),
			       app_harm_words(v->harm));
		if (v->fails)
			printf("  %s\n%s", v->seen, strbuf_str(&v->said));
		return;
	}
	cli_json(KV("case", c->dir), KV("state", c->state), KV("shown", shows(c, v)),
		 KV("fails", v->fails), KV("harm", app_harm_name(v->fails ? v->harm : c->harm)),
		 KV("title", c->title), KV("seen", v->seen ? v->seen : ""), KV("said", &v->said));
}

/* A check that fails without any crash says nothing about a state. */
static int check_end(struct loaded *l, const struct app_search_opts *o, struct err *err)
{
	auto_free char *id = xasprintf("1.%zu", l->run.trace.events.n);
	auto_strbuf said = STRBUF_INIT;
	struct verdict v = { 0 };
	int rc = search_one(o, id, &v, err);

	strbuf_add_flat(&said, strbuf_str(&v.said));
	if (!rc && v.fails)
		rc = err_set(
			err, -EINVAL,
			"the %s fails on the directory as the run left it, without any crash, so "
			"that nothing can be said of the finding: mend that first (%.100s: %.300s)",
			app_plan_asks(&l->run.plan), v.seen, strbuf_str(&said));
	verdict_release(&v);
	return rc;
}

static int try_again(struct loaded *l, bool trust, struct verdict *v, struct err *err)
{
	const struct app_case *c = &l->view.cases.v[0];
	struct app_search_opts whole = app_run_search(&l->run);
	struct app_run *at = &l->run;
	/* One that did not always show is asked for as often as when it was found. */
	uint64_t most = c->shown < c->asked ? min(c->asked, (uint64_t)REPLAYS_MAX) : 1;
	int rc = case_trust(&app_kind, l->dir, c, &l->run.plan, trust, &l->run.plan.ours, err);

	if (!rc)
		rc = app_run_of(&l->run, c->state, &at, err);
	if (rc)
		return rc;
	struct app_search_opts o = app_run_search(at);

	/* The directory may be gone: then the state is shown where the kept copy of it is. */
	if (access(o.place.at, F_OK)) {
		whole.place.at = l->run.base;
		o.place.at = at->base;
	}
	rc = check_end(l, &whole, err);
	for (uint64_t i = 0; !rc && i < most && !shows(c, v); i++)
		rc = search_one(&o, case_state_within(c->state), v, err);
	return rc;
}

static int replay(const struct replay_request *r)
{
	struct err err = ERR_INIT;
	struct verdict v = { 0 };
	struct loaded l = { 0 };

	if (r->rerun)
		return cli_usage(&cmd_replay, "--rerun: run 'outage app' again instead");
	int rc = load(&l, r->dir, &err);
	if (!rc)
		rc = try_again(&l, r->trust, &v, &err);
	if (!rc)
		print_replay(&l.view.cases.v[0], &v, r->json);
	int status = rc ? cli_fail(&err) : shows(l.view.cases.v, &v) ? EXIT_FINDINGS : EXIT_OK;
	verdict_release(&v);
	loaded_release(&l);
	return status;
}

static int shrink(const struct shrink_request *r)
{
	return cli_failf("%s is small already: outage app shrinks what it finds", r->dir);
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
