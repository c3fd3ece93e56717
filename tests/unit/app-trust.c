/* SPDX-License-Identifier: MIT */
/* A run of outage app always has commands: it is one's own, with each byte of it, or is refused. */
#include "tap.h"

#include <errno.h>
#include <sys/stat.h>

#include "app/app_keep.h"
#include "keys.h"

static const struct trust_key of_plan[] = {
	{ "dir", TRUST_FILE },
	{ "run", TRUST_HARMLESS },
	{ "check", TRUST_COMMAND },
	{ "restart", TRUST_COMMAND },
	{ "query", TRUST_COMMAND },
	{ "stop", TRUST_HARMLESS },
	{ "kill", TRUST_HARMLESS },
	{ "profile", TRUST_HARMLESS },
	{ "ack-file", TRUST_HARMLESS },
	{ "unit", TRUST_HARMLESS },
	{ "max-subset", TRUST_HARMLESS },
	{ "budget", TRUST_HARMLESS },
	{ "seed", TRUST_HARMLESS },
	{ "timeout-ms", TRUST_HARMLESS },
	{ "stacks", TRUST_HARMLESS },
	{ "crash", TRUST_HARMLESS },
	{ "recoveries", TRUST_HARMLESS },
	{ "findings", TRUST_HARMLESS },
	{ "note", TRUST_HARMLESS },
	{ "suppress", TRUST_HARMLESS },
	{ "root-ino", TRUST_HARMLESS },
	{ "outer-state", TRUST_HARMLESS },
	{ "outer-point", TRUST_HARMLESS },
	{ "first-point", TRUST_HARMLESS },
};

static const struct trust_key of_case[] = {
	{ "state", TRUST_HARMLESS },	   { "point", TRUST_HARMLESS },
	{ "acks", TRUST_HARMLESS },	   { "states", TRUST_HARMLESS },
	{ "harm", TRUST_HARMLESS },	   { "title", TRUST_HARMLESS },
	{ "fix", TRUST_HARMLESS },	   { "verified", TRUST_HARMLESS },
	{ "unexplained", TRUST_HARMLESS }, { "cause", TRUST_HARMLESS },
	{ "lost", TRUST_HARMLESS },	   { "after", TRUST_HARMLESS },
	{ "seen", TRUST_HARMLESS },	   { "shown", TRUST_HARMLESS },
	{ "asked", TRUST_HARMLESS },
};

static void make_run(const char *run, struct app_plan *p)
{
	auto_free char *base = xasprintf("%s/base", run);
	struct err err = ERR_INIT;

	mkdir(base, 0755);
	write_below(run, "base/data", "data");
	write_below(run, "trace", "trace");
	write_below(run, "stacks", "stacks");
	write_below(run, "shown", "shown");
	ok(!record_save(app_kind.plan, run, CASE_RUN, p, &err) &&
		   !case_run_mark(&app_kind, run, &err),
	   "a run: %s", err.msg);
}

static void make(struct app_plan *p, const char *state)
{
	struct app_case c = { .state = xstrdup(state), .title = xstrdup("it fails") };
	auto_free char *nested = case_nested(dir, state);
	struct err err = ERR_INIT;

	make_run(dir, p);
	if (nested)
		make_run(nested, p);
	strbuf_adds(&c.said, "said");
	ok(!case_put_number(&app_kind, dir, 0, &c, &err), "with a finding: %s", err.msg);
	case_finding_release(&app_kind, &c);
}

/* What the mark of a finding covers, by the id of its state. */
static void test_files(struct app_plan *p, const char *state, const char *const *files, size_t n)
{
	auto_free char *where = xasprintf("%s/findings/0", dir), *id = xstrdup(state);
	const struct app_case one = { .dir = where, .state = id };
	struct err err = ERR_INIT;

	for (size_t i = 0; i < n; i++) {
		make(p, state);
		ok(!case_trust(&app_kind, dir, &one, p, false, &p->ours, &err) && p->ours,
		   "is one's own: %s", err.msg);
		change_file(dir, files[i]);
		ok(case_trust(&app_kind, dir, &one, p, false, &p->ours, &err) == -EPERM &&
			   !p->ours && strstr(err.msg, "run '/check' (check)") &&
			   strstr(err.msg, "--trust"),
		   "not with another %s: %s", files[i], err.msg);
		err_clear(&err);
		ok(!case_trust(&app_kind, dir, &one, p, true, &p->ours, &err) && p->ours,
		   "unless it is trusted");
	}
}

int main(void)
{
	static const char *const files[] = {
		"run",	"trace",	   "stacks",	      "shown",		"base/data",
		"mark", "findings/0/case", "findings/0/said", "findings/0/mark"
	};
	static const char *const of_restart[] = { "run",
						  "trace",
						  "recovery/0/run",
						  "recovery/0/trace",
						  "recovery/0/stacks",
						  "recovery/0/base/data",
						  "recovery/0/mark",
						  "findings/0/case" };
	struct app_plan p = { .dir = xstrdup("/data"),
			      .run = xstrdup("/run"),
			      .check = xstrdup("/check"),
			      .profile = xstrdup("ext4-ordered") };
	if (!begin_trust())
		return 1;
	auto_free char *above = xasprintf("%s/recovery", dir);
	auto_free char *nested = xasprintf("%s/0", above);
	check_record(app_kind.plan, of_plan, ARRAY_SIZE(of_plan));
	check_record(app_kind.finding, of_case, ARRAY_SIZE(of_case));
	test_files(&p, "1.2", files, ARRAY_SIZE(files));
	ok(!mkdir(above, 0755) && !mkdir(nested, 0755), "a restart");
	test_files(&p, "r0:1.2", of_restart, ARRAY_SIZE(of_restart));
	app_plan_release(&p);
	return done_testing();
}
