/* SPDX-License-Identifier: MIT */
/* pm_findings.c - what report, replay, shrink and export do with a run of outage pm. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/below.h"
#include "base/io.h"
#include "base/json.h"
#include "cli/pm.h"
#include "pm/state.h"
#include "report/pm_report.h"

static void release_cases(struct pm_cases *cases)
{
	for (size_t i = 0; i < cases->n; i++)
		pm_case_release(&cases->v[i]);
	vec_release(cases);
}

/* ---- report ---- */

static void case_json(struct json *j, const struct pm_case *c)
{
	json_object(j);
	json_kv_string(j, "case", c->dir);
	json_kv_string(j, "title", c->title);
	if (c->cause) {
		auto_free char *class = xmemdupz(c->cause, strcspn(c->cause, ":"));

		json_kv_string(j, "class", class);
		json_kv_string(j, "cause", c->cause);
	}
	json_kv_string(j, "state", c->state);
	json_kv_uint(j, "point", c->point);
	json_kv_uint(j, "states", c->states);
	json_kv_string(j, "seen", c->seen ? c->seen : "");
	json_kv_string(j, "detail", c->detail ? c->detail : "");
	json_key(j, "said");
	json_string_len(j, strbuf_str(&c->said), c->said.len);
	json_end(j);
}

/* `s` is NULL if the run did not come to its end. */
static void report_json(const struct pm_plan *p, const struct pm_summary *s,
			const struct pm_cases *cases)
{
	auto_strbuf text = STRBUF_INIT;
	struct json j;

	json_init(&j, &text, true);
	json_object(&j);
	json_kv_string(&j, "file", p->file);
	json_kv_string(&j, "program", p->program);
	json_kv_string(&j, "check", p->check ? p->check : p->dump);
	json_kv_bool(&j, "ended", s);
	if (s) {
		json_kv_uint(&j, "operations", s->operations);
		json_kv_uint(&j, "crash_states", s->crash_states);
		json_kv_uint(&j, "unique_states", s->unique_states);
		json_kv_uint(&j, "checked", s->checked);
	}
	json_key(&j, "findings");
	json_array(&j);
	for (size_t i = 0; i < cases->n; i++)
		case_json(&j, &cases->v[i]);
	json_end(&j);
	json_end(&j);
	fputs(strbuf_str(&text), stdout);
}

static void report_text(const struct pm_plan *p, const struct pm_summary *s,
			const struct pm_cases *cases)
{
	printf("program  %s\nfile     %s\ncheck    %s\n", p->program, p->file,
	       p->check ? p->check : p->dump);
	if (!s)
		printf("not finished: it was killed, or is still running; what failed until then "
		       "(some of it may be one finding):\n");
	else
		printf("%llu %s, %llu %s, %llu %s, %llu %s; %llu %s checked, %llu of them %s\n",
		       (unsigned long long)s->stores, plural(s->stores, "store", "stores"),
		       (unsigned long long)s->flushes, plural(s->flushes, "flush", "flushes"),
		       (unsigned long long)s->fences, plural(s->fences, "fence", "fences"),
		       (unsigned long long)s->marks, plural(s->marks, "mark", "marks"),
		       (unsigned long long)s->checked, plural(s->checked, "state", "states"),
		       (unsigned long long)s->failing, plural(s->failing, "fails", "fail"));
	for (size_t i = 0; i < cases->n; i++) {
		const struct pm_case *c = &cases->v[i];

		printf("\nproblem  %s\n", c->title);
		if (c->cause)
			printf("cause    %s\n", c->cause);
		printf("         %s\n         %s: state %s at event %llu, and %llu "
		       "more like it\n%s",
		       c->seen ? c->seen : "", c->dir, c->state, (unsigned long long)c->point,
		       (unsigned long long)(c->states - 1), c->detail ? c->detail : "");
		if (c->said.len)
			printf("said     %s%s", strbuf_str(&c->said),
			       c->said.buf[c->said.len - 1] == '\n' ? "" : "\n");
	}
}

static int write_html(const char *run, const struct pm_summary *s, const struct pm_cases *cases,
		      const char *path, struct err *err)
{
	auto_strbuf page = STRBUF_INIT;
	struct pm_run r;
	int rc = pm_run_load(run, &r, err);

	if (rc)
		return rc;
	rc = pm_report_html(&r, s, cases, &page, err);
	pm_run_release(&r);
	return rc ? rc : io_write_file(NULL, path, strbuf_str(&page), page.len, 0, err);
}

int pm_report(const char *dir, bool json, const char *html)
{
	bool one = case_is_finding(dir, pm_kind.finding->name);
	auto_free char *run = one ? below_run_of(dir) : xstrdup(dir);
	struct err err = ERR_INIT;
	struct pm_plan plan = { 0 };
	struct pm_summary totals = { 0 }, *s = case_has_ended(run) ? &totals : NULL;
	struct pm_cases cases = { 0 };
	int rc = pm_plan_load(run, &plan, &err);

	if (!rc && s)
		rc = record_load(pm_kind.summary, run, CASE_SUMMARY, s, &err);
	if (!rc && one) {
		struct pm_case c;

		rc = pm_case_load(dir, &c, &err);
		if (!rc)
			vec_push(&cases, c);
	} else if (!rc) {
		rc = pm_cases_load(run, &cases, &err);
	}
	if (!rc && html)
		rc = write_html(run, s, &cases, html, &err);
	if (!rc && json)
		report_json(&plan, s, &cases);
	else if (!rc && !html)
		report_text(&plan, s, &cases);
	release_cases(&cases);
	pm_plan_release(&plan);
	return rc ? cli_fail(&err) : EXIT_OK;
}

/* ---- replay ---- */

static void print_replay(const struct pm_case *c, const struct pm_failure *f, bool shown, bool json)
{
	struct check_result r = { .end = f->end, .exit_code = f->exit_code, .signal = f->signal };
	auto_strbuf seen = STRBUF_INIT, text = STRBUF_INIT;
	struct json j;

	check_describe(&r, &seen);
	if (!json) {
		printf("%s %s: %s\n  the check %s\n%s", c->dir,
		       shown ? "shows again" : "does not show any more", c->title,
		       strbuf_str(&seen), f->said);
		return;
	}
	json_init(&j, &text, true);
	json_object(&j);
	json_kv_string(&j, "case", c->dir);
	json_kv_string(&j, "state", c->state);
	json_kv_bool(&j, "shown", shown);
	json_kv_string(&j, "title", c->title);
	json_kv_string(&j, "seen", strbuf_str(&seen));
	json_kv_string(&j, "said", f->said);
	json_end(&j);
	fputs(strbuf_str(&text), stdout);
}

/* The state is mounted over a file, so that there has to be one; `made`: it is ours to remove. */
static int make_place(const char *path, bool *made, struct err *err)
{
	auto_fd fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	*made = fd >= 0;
	if (fd < 0 && errno != EEXIST)
		return err_set(err, -errno,
			       "the state is shown at %s, and no file can be there: %m", path);
	return 0;
}

int pm_replay(const char *dir, bool json, bool trust)
{
	auto_free char *run_dir = below_run_of(dir);
	struct err err = ERR_INIT;
	struct pm_run run;
	struct pm_case c = { 0 };
	struct pm_failure f = { 0 };
	int status = EXIT_FAILED;
	bool made = false;

	if (pm_run_load(run_dir, &run, &err))
		return cli_fail(&err);
	int rc = pm_case_load(dir, &c, &err);
	if (!rc)
		rc = pm_trust(run_dir, &c, &run.plan, trust, &err);
	if (!rc)
		rc = make_place(run.plan.file, &made, &err);
	if (!rc)
		rc = pm_search_one(&run, c.state, &f, &err);
	if (made)
		unlink(run.plan.file);
	if (!rc) {
		bool shown = pm_shows(&run, &c, &f);

		print_replay(&c, &f, shown, json);
		status = shown ? EXIT_FINDINGS : EXIT_OK;
	}
	pm_failure_release(&f);
	pm_case_release(&c);
	pm_run_release(&run);
	return rc ? cli_fail(&err) : status;
}

/* ---- export ---- */

int pm_export(const char *dir, const char *to, bool trust)
{
	auto_free char *run_dir = below_run_of(dir);
	auto_strbuf text = STRBUF_INIT;
	struct err err = ERR_INIT, strange = ERR_INIT;
	struct pm_run run;
	struct pm_case c = { 0 };

	if (!case_is_finding(dir, pm_kind.finding->name))
		return cli_failf("%s is a run: give a finding, such as %s/findings/0", dir, dir);
	if (pm_run_load(run_dir, &run, &err))
		return cli_fail(&err);
	int rc = pm_case_load(dir, &c, &err);
	if (!rc && pm_trust(run_dir, &c, &run.plan, trust, &strange))
		cli_tell_strange(dir);
	if (!rc)
		rc = pm_export_script(&run, &c, &text, &err);
	if (!rc && mkdir(to, 0777) && errno != EEXIST)
		rc = err_set(&err, -errno, "cannot make the directory %s: %m", to);
	if (!rc)
		rc = io_write_file(to, "reproduce.sh", strbuf_str(&text), text.len, 0755, &err);
	pm_case_release(&c);
	pm_run_release(&run);
	return rc ? cli_fail(&err) : EXIT_OK;
}

/* ---- shrink ---- */

static void print_shrunk(const struct pm_shrink_command *o, const struct pm_shrunk *r)
{
	auto_strbuf text = STRBUF_INIT;
	struct json j;

	if (!o->json) {
		printf("%s: %llu of %llu lost %s, after %llu %s\n", o->output,
		       (unsigned long long)r->lost_after, (unsigned long long)r->lost_before,
		       plural(r->lost_before, "store", "stores"), (unsigned long long)r->tried,
		       plural(r->tried, "state", "states"));
		return;
	}
	json_init(&j, &text, true);
	json_object(&j);
	json_kv_string(&j, "case", o->dir);
	json_kv_string(&j, "output", o->output);
	json_kv_uint(&j, "lost_before", r->lost_before);
	json_kv_uint(&j, "lost", r->lost_after);
	json_kv_uint(&j, "states", r->tried);
	json_end(&j);
	fputs(strbuf_str(&text), stdout);
}

static int shrink_loaded(const struct pm_shrink_command *o, struct pm_run *run, struct pm_case *c,
			 struct pm_shrunk *r, struct err *err)
{
	bool made = false;
	int rc = pm_trust(run->dir, c, &run->plan, o->trust, err);

	if (!rc)
		rc = make_place(run->plan.file, &made, err);
	if (!rc)
		rc = pm_shrink(run, c, o->max_tries, r, err);
	if (made)
		unlink(run->plan.file);
	if (rc > 0)
		rc = err_set(err, -ENOENT, "%s does not show any more: there is nothing to shrink",
			     o->dir);
	auto_free char *dir = NULL, *name = NULL;
	below_split(o->output, &dir, &name);
	return rc ? rc : pm_case_put(dir, name, c, err);
}

/* The small one needs the run as well, its trace and the file before it: it must lie in one. */
static int check_place(const struct pm_shrink_command *o, struct err *err)
{
	auto_free char *run = below_run_of(o->dir), *at = below_case(o->output);
	auto_free char *dir = NULL, *name = NULL;
	bool in_run = below_split(o->output, &dir, &name);
	auto_free char *above = in_run ? xstrdup(dir) : xasprintf("%s/..", dir);
	struct stat st;

	if (!o->force && below_exists(at, "case"))
		return err_set(err, -EEXIST,
			       "%s holds a finding already: give --force to replace it", o->output);
	/* It would be replaced with all it holds. */
	if (!in_run && lstat(o->output, &st) == 0)
		return err_set(err, -EEXIST, "%s is there already: leave out -o", o->output);
	if (!case_is_run(above, pm_kind.plan->name))
		return err_set(err, -EINVAL,
			       "%s cannot be the place of a finding of outage pm, which needs "
			       "its run: leave out -o",
			       o->output);
	int rc = below_make_dir(run, "shrunk", err);
	return rc ? rc : below_sweep(run, "shrunk", err);
}

int pm_shrink_case(const struct pm_shrink_command *o)
{
	auto_free char *run_dir = below_run_of(o->dir);
	struct err err = ERR_INIT;
	struct pm_shrunk result = { 0 };
	struct pm_run run;
	struct pm_case c = { 0 };

	if (check_place(o, &err))
		return cli_fail(&err);
	if (pm_run_load(run_dir, &run, &err))
		return cli_fail(&err);
	int rc = pm_case_load(o->dir, &c, &err);
	if (!rc)
		rc = shrink_loaded(o, &run, &c, &result, &err);
	pm_case_release(&c);
	pm_run_release(&run);
	if (rc)
		return cli_fail(&err);
	print_shrunk(o, &result);
	return EXIT_OK;
}
