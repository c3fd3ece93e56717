/* SPDX-License-Identifier: MIT */
/* explore_kept.c - the commands on what outage explore has kept. */
#include "cli/explore_kept.h"

#include <stdio.h>

#include "cli/test_findings.h"
#include "explore/explore_again.h"
#include "explore/explore_plan.h"
#include "explore/overlap.h"

/* ---- a finding ---- */

enum { TRIES = 3 };

static void print_again(const struct test_replay *o, const struct step_result *seen, unsigned shown,
			const struct strbuf *log)
{
	struct replay_result r = { .shown = shown };

	if (o->r.json) {
		replay_add_findings(&seen->findings, &r.problems);
		strbuf_adds(&r.state, "live");
		test_replay_print(o, &r);
		replay_result_release(&r);
		return;
	}
	fputs(strbuf_str(log), stdout);
	for (size_t i = 0; i < seen->findings.n; i++)
		printf("found  %s\n", seen->findings.v[i].words);
	if (o->other_kernel.len)
		printf("%s\n", strbuf_str(&o->other_kernel));
	printf("shown %u of %d times\n", shown, TRIES);
}

static int again(void *ctx)
{
	const struct test_replay *o = ctx;
	struct step_result seen = { 0 };
	auto_strbuf log = STRBUF_INIT;
	struct err err = ERR_INIT;
	unsigned shown = 0;
	int rc = explore_replay(o->more, TRIES, &shown, &seen, &log, &err);

	if (!rc)
		print_again(o, &seen, shown, &log);
	bool other = !rc && !shown && seen.findings.n;
	step_result_release(&seen);
	if (rc || other)
		return rc ? cli_fail(&err) : test_replay_other();
	return shown ? EXIT_FINDINGS : EXIT_OK;
}

static int explore_again(const struct replay_request *r)
{
	struct kept_case c;
	struct test_replay o = { .r = *r, .c = &c.c, .more = &c };
	struct err err = ERR_INIT;

	if (kept_load(r->dir, &c, &err))
		return cli_fail(&err);
	o.r.rerun = true; /* there is no other way */
	int status = test_replay_ready(&o, &c.script.w, &err) ? cli_fail(&err)
							      : test_replay_watched(&o, again);
	strbuf_release(&o.other_kernel);
	kept_release(&c);
	return status;
}

static int shrink_script(const void *c, const struct shrink_opts *opts, const char *dir,
			 struct shrink_result *out, struct err *err)
{
	return explore_shrink(c, opts, dir, out, err);
}

static int shrink(const struct shrink_request *r)
{
	struct kept_case c;
	struct err err = ERR_INIT;

	if (kept_load(r->dir, &c, &err))
		return cli_fail(&err);
	int status = test_shrink_by(r, &c.c, &c.script.w, shrink_script, &c);
	kept_release(&c);
	return status;
}

/* With the plan, as the run has it: what could be searched now does not matter. */
static int report(const char *dir, enum report_form form, struct strbuf *out, struct err *err)
{
	struct explore_plan p = { 0 };
	struct run_view r;
	int rc = run_view_load(dir, &r, err);

	if (rc)
		return rc;
	if (!case_is_one(dir))
		rc = record_load(&explore_record, dir, CASE_RUN, &p, err);
	if (!rc && !case_is_one(dir))
		run_view_add_plan(&r, &explore_record, &p);
	if (!rc)
		rc = test_report_view(&r, form, out, err);
	explore_plan_release(&p);
	run_view_release(&r);
	return rc;
}

const struct case_ops kind_explore = {
	.name = "explore",
	.on_target = true,
	.title = test_title,
	.report = report,
	.replay = explore_again,
	.shrink = shrink,
	.export = test_export,
};

/* ---- runs ---- */

static void show_overlap(char *const *runs, size_t n, const uint64_t *states,
			 const struct overlap *o)
{
	for (size_t i = 0; i < n; i++)
		printf("%s: %llu states\n", runs[i], llu(states[i]));
	printf("%llu distinct states, %llu of them (%.1f %%) visited by more than one run\n",
	       llu(o->distinct), llu(o->overlapped),
	       o->distinct ? 100.0 * (double)o->overlapped / (double)o->distinct : 0);
	if (o->by_bits)
		printf("%llu more are known by bits only, and not compared; see --memory\n",
		       llu(o->by_bits));
}

static void show_overlap_json(char *const *runs, size_t n, const uint64_t *states,
			      const struct overlap *o)
{
	struct json j;

	cli_json_begin(&j);
	json_kv_array(&j, "runs");
	for (size_t i = 0; i < n; i++) {
		json_object_of(&j, KV("run", runs[i]), KV("states", states[i]));
	}
	json_end(&j);
	json_kvs(&j, KV("distinct_states", o->distinct), KV("overlap_states", o->overlapped),
		 KV("overlap", o->distinct ? (double)o->overlapped / (double)o->distinct : 0),
		 KV("not_compared", o->by_bits));
	cli_json_end(&j);
	putchar('\n');
}

int explore_overlap(char *const *runs, bool json)
{
	struct err err = ERR_INIT;
	struct overlap o;
	size_t n = 0;

	while (runs[n])
		n++;
	auto_free uint64_t *states = xcalloc(n, sizeof(*states));
	if (overlap_of_runs(runs, n, states, &o, &err))
		return cli_fail(&err);
	if (json)
		show_overlap_json(runs, n, states, &o);
	else
		show_overlap(runs, n, states, &o);
	return EXIT_OK;
}
