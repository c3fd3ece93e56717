/* SPDX-License-Identifier: MIT */
/* cmd_replay.c - outage replay: does a finding show again? */
#include <errno.h>

#include "base/json.h"
#include "cli/app.h"
#include "cli/cli.h"
#include "cli/guest_opts.h"
#include "cli/pm.h"
#include "pm/keep.h"
#include "run/replay.h"

struct replay {
	struct stored_case c;
	bool rerun, json, trust;
	uint64_t time_ns;
	struct target_opts guest;
	struct strbuf other_kernel; /* what differs, in words */
};

static void print_json(const struct replay *o, const struct replay_result *r)
{
	auto_strbuf text = STRBUF_INIT;
	struct json j;

	json_init(&j, &text, true);
	json_object(&j);
	json_kv_string(&j, "case", o->c.dir);
	json_kv_string(&j, "target", o->c.target);
	json_kv_string(&j, "kind", finding_kind_name(stored_case_first(&o->c)->kind));
	json_kv_bool(&j, "rerun", o->rerun);
	json_kv_bool(&j, "shown", r->shown);
	json_kv_string(&j, "state", strbuf_str(&r->state));
	json_kv_bool(&j, "same_kernel", !o->other_kernel.len);
	json_kv_uint(&j, "crash_states", r->totals.crash_states);
	json_kv_uint(&j, "unique_states", r->totals.unique_states);
	json_key(&j, "problems");
	json_array(&j);
	for (size_t i = 0; i < r->problems.n; i++) {
		json_object(&j);
		json_kv_string(&j, "kind", finding_kind_name(r->problems.v[i].kind));
		json_kv_string(&j, "path", r->problems.v[i].path);
		json_kv_string(&j, "words", r->problems.v[i].words);
		json_kv_string(&j, "promise", r->problems.v[i].promise);
		json_end(&j);
	}
	json_end(&j);
	json_end(&j);
	fputs(strbuf_str(&text), stdout);
}

/* What programs said may have many lines, and more than letters. */
static void print_line(const char *before, const char *words)
{
	fputs(before, stdout);
	for (; *words; words++)
		putchar((unsigned char)*words < 0x20 || *words == 0x7f ? ' ' : *words);
	putchar('\n');
}

static void print_text(const struct replay *o, const struct replay_result *r)
{
	printf("%s %s: %s\n", o->c.dir, r->shown ? "shows again" : "does not show any more",
	       finding_kind_words(stored_case_first(&o->c)->kind));
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
	if (o->rerun)
		printf("ran the workload, and recovered from %llu %s\n",
		       (unsigned long long)r->totals.unique_states,
		       plural(r->totals.unique_states, "crash", "crashes"));
	if (!r->shown && r->problems.n)
		printf("there is something wrong, but not what was found then\n");
}

/* Nothing is left of the process that could tell more. */
static void print_hung(const struct replay *o)
{
	struct replay_result r = { .shown = true };

	findings_add(&r.problems, FINDING_HANG, NULL,
		     xasprintf("it did not come to an end within %llu s",
			       (unsigned long long)o->time_ns / 1000000000),
		     NULL);
	strbuf_adds(&r.state, "live");
	if (o->json)
		print_json(o, &r);
	else
		print_text(o, &r);
	replay_result_release(&r);
}

static int replay(void *ctx)
{
	struct replay *o = ctx;
	struct replay_result result = { 0 };
	struct err err = ERR_INIT;

	if (replay_case(&o->c, o->rerun, &result, &err))
		return cli_fail(&err);
	if (o->json)
		print_json(o, &result);
	else
		print_text(o, &result);
	int status = result.shown ? EXIT_FINDINGS : EXIT_OK;
	replay_result_release(&result);
	return status;
}

static int load(struct replay *o, const char *dir, struct err *err)
{
	int rc = store_load(dir, &o->c, err);

	if (rc)
		return rc;
	/* In this order: a guest's kernel is asked for its version, and so is run. */
	rc = store_trust(&o->c, NULL, o->trust, err);
	if (!rc)
		rc = guest_opts_apply(&o->guest, &o->c, err);
	if (!rc)
		rc = guest_opts_compare(&o->c, &o->other_kernel, err);
	return rc;
}

static int watched_replay(struct replay *o)
{
	bool hang = stored_case_first(&o->c)->kind == FINDING_HANG, hung = false;

	if (!o->rerun && !replay_from_trace(&o->c)) {
		fprintf(stderr, "outage: the trace does not tell enough to show this; "
				"running the workload again\n");
		o->rerun = true;
	}
	if (!o->time_ns)
		o->time_ns = hang && o->c.hang_after_ms
				     ? min(o->c.hang_after_ms, (uint64_t)3600000) * 2 * 1000000
				     : 600ULL * 1000000000;
	int status =
		cli_watch(replay, o, (unsigned)(o->time_ns / 1000000000) + 1, hang ? &hung : NULL);
	if (hung)
		print_hung(o);
	return status;
}

#define AT(member) OPT_AT(struct replay, member)
static const struct opt options[] = {
	OPTION_FINDING,
	{ OPT_FLAG, "rerun", 0, NULL, AT(rerun),
	  .help = "run the workload anew, and try its crash states until one shows it" },
	{ OPT_DURATION, "time", 0, "DURATION", AT(time_ns),
	  .help = "give up after that; default: 10m" },
	OPTION_TRUST(AT(trust)),
	OPTION_JSON(AT(json)),
	{ OPT_GROUP, .group = guest_options, AT(guest) },
	OPT_END
};

static int run(void *given, struct args *args)
{
	struct replay *o = given;
	const char *dir = args->v[0];
	struct err err = ERR_INIT;

	if (args->n != 1)
		return cli_usage(&cmd_replay, "give the directory of one finding");
	if (case_is_finding(dir, app_kind.finding->name) || case_is_run(dir, app_kind.plan->name))
		return o->rerun ? cli_usage(&cmd_replay, "--rerun: run 'outage app' again instead")
				: app_replay(dir, o->json, o->trust);
	if (case_is_finding(dir, pm_kind.finding->name))
		return o->rerun ? cli_usage(&cmd_replay, "--rerun: run 'outage pm' again instead")
				: pm_replay(dir, o->json, o->trust);
	return load(o, dir, &err) ? cli_fail(&err) : watched_replay(o);
}

static void release(void *given)
{
	struct replay *o = given;

	stored_case_release(&o->c);
	strbuf_release(&o->other_kernel);
}

const struct command cmd_replay = {
	.name = "replay",
	.summary = "shows a finding again, from its trace or by running its workload",
	.usage = "usage: outage replay FINDING [OPTIONS]\n"
		 "\n"
		 "Shows a finding again: rebuilds the disk as the crash left it, from the trace "
		 "and\n"
		 "the image that are kept with it, lets the target recover, and checks it. With\n"
		 "another --kernel: is it gone?\n",
	.notes = "Exit status: 1 the finding shows again, 0 it does not, 2 it could not be tried.\n"
		 "\n"
		 "example: outage replay outage-runs/ext4-0001/findings/0-0\n",
	.options = options,
	.size = sizeof(struct replay),
	.release = release,
	.run = run,
};
