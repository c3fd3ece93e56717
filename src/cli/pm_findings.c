/* SPDX-License-Identifier: MIT */
/* pm_findings.c - what report and replay do with a run of outage pm. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/pm.h"
#include "pm/search.h"

static int load_cases(const char *run, struct pm_cases *out, struct err *err)
{
	int rc = 0;

	for (uint64_t i = 0; !rc; i++) {
		auto_free char *dir = xasprintf("%s/findings/%llu", run, (unsigned long long)i);
		struct stat st;
		struct pm_case c;

		if (stat(dir, &st))
			break;
		rc = pm_case_load(dir, &c, err);
		if (!rc)
			vec_push(out, c);
	}
	return rc;
}

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
	json_kv_uint(&j, "operations", s->operations);
	json_kv_uint(&j, "crash_states", s->crash_states);
	json_kv_uint(&j, "unique_states", s->unique_states);
	json_kv_uint(&j, "checked", s->checked);
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

int pm_report(const char *dir, bool json)
{
	bool one = pm_is_case(dir);
	auto_free char *run = one ? pm_run_of(dir) : xstrdup(dir);
	struct err err = ERR_INIT;
	struct pm_plan plan = { 0 };
	struct pm_summary s = { 0 };
	struct pm_cases cases = { 0 };
	int rc = pm_plan_load(run, &plan, &err);

	if (!rc)
		rc = pm_summary_load(run, &s, &err);
	if (!rc && one) {
		struct pm_case c;

		rc = pm_case_load(dir, &c, &err);
		if (!rc)
			vec_push(&cases, c);
	} else if (!rc) {
		rc = load_cases(run, &cases, &err);
	}
	if (!rc && json)
		report_json(&plan, &s, &cases);
	else if (!rc)
		report_text(&plan, &s, &cases);
	release_cases(&cases);
	pm_plan_release(&plan);
	return rc ? cli_fail(&err) : EXIT_OK;
}

/* ---- replay ---- */

/* Of a dump, a state shows again if the same is printed. */
static bool shows(const struct pm_run *r, const struct pm_case *c, const struct pm_failure *f)
{
	return f->end != CHECK_PASSED || (r->plan.dump && streq(strbuf_str(&c->said), f->said));
}

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

/* It runs a command that is kept with the run. */
static int allowed(const struct pm_run *r, bool trust, struct err *err)
{
	if (!r->plan.ours && !trust)
		return err_set(
			err, -EPERM,
			"%s runs the command '%.200s', and others could have written it: look "
			"at it, then give --trust",
			r->dir, r->plan.check ? r->plan.check : r->plan.dump);
	return 0;
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
	auto_free char *run_dir = pm_run_of(dir);
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
		rc = allowed(&run, trust, &err);
	if (!rc)
		rc = make_place(run.plan.file, &made, &err);
	if (!rc)
		rc = pm_search_one(&run, c.state, &f, &err);
	if (made)
		unlink(run.plan.file);
	if (!rc) {
		bool shown = shows(&run, &c, &f);

		print_replay(&c, &f, shown, json);
		status = shown ? EXIT_FINDINGS : EXIT_OK;
	}
	pm_failure_release(&f);
	pm_case_release(&c);
	pm_run_release(&run);
	return rc ? cli_fail(&err) : status;
}
