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
	{ "root-ino", TRUST_HARMLESS },
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

static void make(struct app_plan *p)
{
	struct app_case c = { .state = xstrdup("1.2"), .title = xstrdup("it fails") };
	auto_free char *base = xasprintf("%s/base", dir);
	struct err err = ERR_INIT;

	mkdir(base, 0755);
	write_below(dir, "base/data", "data");
	write_below(dir, "trace", "trace");
	write_below(dir, "stacks", "stacks");
	write_below(dir, "shown", "shown");
	strbuf_adds(&c.said, "said");
	ok(!record_save(app_kind.plan, dir, CASE_RUN, p, &err) &&
		   !case_run_mark(&app_kind, dir, &err) && !app_case_save(dir, 0, &c, true, &err),
	   "a run with a finding: %s", err.msg);
	app_case_release(&c);
}

int main(void)
{
	static const char *const files[] = {
		"run",	"trace",	   "stacks",	      "shown",		"base/data",
		"mark", "findings/0/case", "findings/0/said", "findings/0/mark"
	};
	struct app_plan p = { .dir = xstrdup("/data"),
			      .run = xstrdup("/run"),
			      .check = xstrdup("/check"),
			      .profile = xstrdup("ext4-ordered") };
	struct err err = ERR_INIT;

	if (!begin_trust())
		return 1;
	auto_free char *one = xasprintf("%s/findings/0", dir);
	check_record(app_kind.plan, of_plan, ARRAY_SIZE(of_plan));
	check_record(app_kind.finding, of_case, ARRAY_SIZE(of_case));
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		make(&p);
		ok(!app_trust(dir, one, &p, false, &err) && p.ours, "is one's own: %s", err.msg);
		change_file(dir, files[i]);
		ok(app_trust(dir, one, &p, false, &err) == -EPERM && !p.ours &&
			   strstr(err.msg, "run '/check' (check)") && strstr(err.msg, "--trust"),
		   "not with another %s: %s", files[i], err.msg);
		err_clear(&err);
		ok(!app_trust(dir, one, &p, true, &err) && p.ours, "unless it is trusted");
	}
	app_plan_release(&p);
	return done_testing();
}
