/* SPDX-License-Identifier: MIT */
/* A run of outage pm always has commands: it is one's own, with each byte of it, or is refused. */
#include "tap.h"

#include <errno.h>
#include <sys/stat.h>

#include "keys.h"
#include "pm/pm_keep.h"

static const struct trust_key of_plan[] = {
	{ "file", TRUST_FILE },
	{ "dir", TRUST_FILE },
	{ "program", TRUST_HARMLESS },
	{ "check", TRUST_COMMAND },
	{ "dump", TRUST_COMMAND },
	{ "recover", TRUST_COMMAND },
	{ "granularity", TRUST_HARMLESS },
	{ "max-subset", TRUST_HARMLESS },
	{ "budget", TRUST_HARMLESS },
	{ "seed", TRUST_HARMLESS },
	{ "timeout-ms", TRUST_HARMLESS },
	{ "model", TRUST_HARMLESS },
	{ "split", TRUST_HARMLESS },
	{ "first-point", TRUST_HARMLESS },
	{ "media", TRUST_HARMLESS },
	{ "media-max", TRUST_HARMLESS },
	{ "prune", TRUST_HARMLESS },
	{ "preload", TRUST_HARMLESS },
	{ "promises", TRUST_HARMLESS },
	{ "enough", TRUST_HARMLESS },
	{ "crash", TRUST_HARMLESS },
	{ "recoveries", TRUST_HARMLESS },
	{ "trace-limit", TRUST_HARMLESS },
	{ "qemu", TRUST_COMMAND },
	{ "stacks", TRUST_HARMLESS },
	{ "made", TRUST_HARMLESS },
	{ "suppress", TRUST_HARMLESS },
};

static const struct trust_key of_case[] = {
	{ "state", TRUST_HARMLESS },  { "title", TRUST_HARMLESS },  { "cause", TRUST_HARMLESS },
	{ "seen", TRUST_HARMLESS },   { "detail", TRUST_HARMLESS }, { "point", TRUST_HARMLESS },
	{ "states", TRUST_HARMLESS },
};

/* A run, and the one of a recovery in it; its finding is of the latter. */
static void make(struct pm_plan *p)
{
	static const char *const names[] = { "base.img", "trace", "places" };
	auto_free char *all = xasprintf("%s/recovery", dir), *nested = xasprintf("%s/3", all);
	struct pm_case c = { .state = xstrdup("r3:1.2"), .title = xstrdup("it fails") };
	struct err err = ERR_INIT;

	mkdir(all, 0755);
	mkdir(nested, 0755);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		auto_free char *below = xasprintf("recovery/3/%s", names[i]);

		write_below(dir, names[i], names[i]);
		write_below(dir, below, names[i]);
	}
	strbuf_adds(&c.said, "said");
	ok(!record_save(pm_kind.plan, dir, CASE_RUN, p, &err) &&
		   !case_run_mark(&pm_kind, dir, &err) &&
		   !record_save(pm_kind.plan, nested, CASE_RUN, p, &err) &&
		   !case_run_mark(&pm_kind, nested, &err) &&
		   !case_put_number(&pm_kind, dir, 0, &c, &err),
	   "a run with a finding: %s", err.msg);
	case_finding_release(&pm_kind, &c);
}

int main(void)
{
	static const char *const files[] = { "run",
					     "base.img",
					     "trace",
					     "places",
					     "mark",
					     "recovery/3/run",
					     "recovery/3/base.img",
					     "recovery/3/trace",
					     "recovery/3/mark",
					     "findings/0/case",
					     "findings/0/said",
					     "findings/0/mark" };
	struct pm_plan p = { .file = xstrdup("/pool"),
			     .dir = xstrdup("/"),
			     .program = xstrdup("/run"),
			     .check = xstrdup("/check") };
	struct err err = ERR_INIT;

	if (!begin_trust())
		return 1;
	auto_free char *one = xasprintf("%s/findings/0", dir);
	check_record(pm_kind.plan, of_plan, ARRAY_SIZE(of_plan));
	check_record(pm_kind.finding, of_case, ARRAY_SIZE(of_case));
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		struct pm_case c;

		make(&p);
		ok(!case_get(&pm_kind, one, &c, &err) &&
			   !case_trust(&pm_kind, dir, &c, &p, false, &p.ours, &err) && p.ours,
		   "is one's own: %s", err.msg);
		change_file(dir, files[i]);
		ok(case_trust(&pm_kind, dir, &c, &p, false, &p.ours, &err) == -EPERM && !p.ours &&
			   strstr(err.msg, "run '/check' (check)") && strstr(err.msg, "--trust"),
		   "not with another %s: %s", files[i], err.msg);
		err_clear(&err);
		ok(!case_trust(&pm_kind, dir, &c, &p, true, &p.ours, &err) && p.ours,
		   "unless it is trusted");
		case_finding_release(&pm_kind, &c);
	}
	pm_plan_release(&p);
	return done_testing();
}
