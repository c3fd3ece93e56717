/* SPDX-License-Identifier: MIT */
/* test_replay.c - does a finding of outage test, or of outage explore, show again? */
#include "cli/test_findings.h"

#include "run/guest_opts.h"

static void print_json(const struct test_replay *o, const struct replay_result *r)
{
	struct json j;

	cli_json_begin(&j);
	json_kvs(&j, KV("case", o->c->dir), KV("target", o->c->target),
		 KV("kind", finding_kind_name(stored_case_first(o->c)->kind)),
		 KV("rerun", o->r.rerun), KV("shown", r->shown), KV("state", strbuf_str(&r->state)),
		 KV("same_kernel", (bool)!o->other_kernel.len),
		 KV("crash_states", r->totals.crash_states),
		 KV("unique_states", r->totals.unique_states));
	json_kv_array(&j, "problems");
	for (size_t i = 0; i < r->problems.n; i++) {
		json_object_of(&j, KV("kind", finding_kind_name(r->problems.v[i].kind)),
			       KV("path", r->problems.v[i].path),
			       KV("words", r->problems.v[i].words),
			       KV("promise", r->problems.v[i].promise));
	}
	json_end(&j);
	cli_json_end(&j);
}

/* Words of programs may have many lines, and more than letters. */
static void print_line(const char *before, const char *words)
{
	fputs(before, stdout);
	for (; *words; words++)
		putchar((unsigned char)*words < 0x20 || *words == 0x7f ? ' ' : *words);
	putchar('\n');
}

static void print_text(const struct test_replay *o, const struct replay_result *r)
{
	printf("%s %s: %s\n", o->c->dir, r->shown ? "shows again" : "does not show any more",
	       finding_kind_words(stored_case_first(o->c)->kind));
	for (size_t i = 0; i < r->problems.n; i++) {
		print_line("  ", r->problems.v[i].words);
		const char *why = finding_kind_why(r->problems.v[i].kind);

		if (*r->problems.v[i].promise)
			print_line("    although ", r->problems.v[i].promise);
		else if (*why)
			print_line("    because ", why);
	}
	if (o->other_kernel.len)
		printf("%s\n", strbuf_str(&o->other_kernel));
	if (o->r.rerun)
		printf("ran the workload, and recovered from %llu %s\n",
		       COUNT(r->totals.unique_states, "crash", "crashes"));
}

void test_replay_print(const struct test_replay *o, const struct replay_result *r)
{
	if (o->r.json)
		print_json(o, r);
	else
		print_text(o, r);
}

int test_replay_other(void)
{
	return cli_failf("there is something wrong, but not what was found then: this is another "
			 "finding, or the same one in other words");
}

static int replay_status(const struct test_replay *o, const struct replay_result *r)
{
	/* A kernel that never came to a crash point has not mended what is lost there. */
	bool tried = !o->r.rerun || stored_case_live(o->c) || r->totals.crash_states;

	if (!r->shown && !tried)
		return cli_failf("nothing was tried: the workload of %s ran to no crash point; "
				 "outage report %s tells what it needs",
				 o->c->dir, o->c->dir);
	test_replay_print(o, r);
	if (!r->shown && r->problems.n)
		return test_replay_other();
	return r->shown ? EXIT_FINDINGS : EXIT_OK;
}

/* Nothing is left of the process that could tell more. */
static void print_hung(const struct test_replay *o)
{
	struct replay_result r = { .shown = true };

	findings_add(&r.problems, FINDING_HANG, NULL,
		     xasprintf("it did not come to an end within %llu s",
			       llu(o->r.time_ns) / 1000000000),
		     NULL);
	strbuf_adds(&r.state, "live");
	test_replay_print(o, &r);
	replay_result_release(&r);
}

int test_replay_ready(struct test_replay *o, const struct workload *script, struct err *err)
{
	/* In this order: a guest's kernel is asked for its version, and so is run. */
	int rc = store_trust(o->c, script, o->r.trust, err);

	if (!rc)
		rc = guest_opts_apply(&o->r.guest, o->c, err);
	if (!rc)
		rc = guest_opts_compare(o->c, &o->other_kernel, err);
	return rc;
}

int test_replay_watched(struct test_replay *o, int (*fn)(void *ctx))
{
	bool hang = stored_case_first(o->c)->kind == FINDING_HANG, hung = false;

	if (!o->r.time_ns)
		o->r.time_ns = hang && o->c->hang_after_ms
				       ? min(o->c->hang_after_ms, (uint64_t)3600000) * 2 * 1000000
				       : REPLAY_TIME_NS;
	int status = cli_watch(fn, o, o->r.time_ns, hang ? &hung : NULL);
	if (hung)
		print_hung(o);
	return status;
}

static int replay(void *ctx)
{
	struct test_replay *o = ctx;
	struct replay_result result = { 0 };
	struct err err = ERR_INIT;

	if (replay_case(o->c, o->r.rerun, &result, &err))
		return cli_fail(&err);
	int status = replay_status(o, &result);
	replay_result_release(&result);
	return status;
}

int test_replay(const struct replay_request *r)
{
	struct stored_case c;
	struct test_replay o = { .r = *r, .c = &c };
	struct err err = ERR_INIT;
	int status;

	if (store_load(r->dir, &c, &err))
		return cli_fail(&err);
	if (test_replay_ready(&o, NULL, &err)) {
		status = cli_fail(&err);
	} else {
		if (!o.r.rerun && !replay_from_trace(&c)) {
			fprintf(stderr, "outage: the trace does not tell enough to show this; "
					"running the workload again\n");
			o.r.rerun = true;
		}
		status = test_replay_watched(&o, replay);
	}
	strbuf_release(&o.other_kernel);
	stored_case_release(&c);
	return status;
}
