/* SPDX-License-Identifier: MIT */
/* pm_keep.c - the records of outage pm, and which files its marks cover. */
#include "pm/pm_keep.h"

#include <errno.h>

#include "base/below.h"
#include "case/answers.h"

#define FIELD(...) RECORD_FIELD(struct pm_plan, __VA_ARGS__)
static const struct record_field plan_fields[] = {
	FIELD("file", TRUST_FILE, PROSE, file, .required = true),
	FIELD("dir", TRUST_FILE, PROSE, dir, .option = "", .required = true),
	FIELD("program", TRUST_HARMLESS, PROSE, program, .option = "",
	      .required = true), /* printed, and not run again */
	FIELD("check", TRUST_COMMAND, PROSE, check),
	FIELD("dump", TRUST_COMMAND, PROSE, dump),
	FIELD("recover", TRUST_COMMAND, PROSE, recover),
	FIELD("model", TRUST_HARMLESS, PROSE, model),
	FIELD("granularity", TRUST_HARMLESS, NUMBER, granularity),
	FIELD("max-subset", TRUST_HARMLESS, NUMBER, max_subset),
	FIELD("budget", TRUST_HARMLESS, NUMBER, budget),
	FIELD("seed", TRUST_HARMLESS, NUMBER, seed),
	FIELD("timeout-ms", TRUST_HARMLESS, NUMBER, timeout_ms, .option = "timeout"),
	FIELD("split", TRUST_HARMLESS, NUMBER, split),
	FIELD("first-point", TRUST_HARMLESS, NUMBER, first_point, .option = ""),
	FIELD("media", TRUST_HARMLESS, NUMBER, media),
	FIELD("media-max", TRUST_HARMLESS, NUMBER, media_max),
	FIELD("prune", TRUST_HARMLESS, NUMBER, prune),
	FIELD("preload", TRUST_HARMLESS, NUMBER, preload, .option = "tracer"),
	FIELD("promises", TRUST_HARMLESS, NUMBER, promises, .option = "promise"),
	FIELD("enough", TRUST_HARMLESS, NUMBER, enough),
	FIELD("crash", TRUST_HARMLESS, SET, crash, .words = "reorder recovery",
	      .otherwise = PM_CRASH_REORDER),
	FIELD("recoveries", TRUST_HARMLESS, NUMBER, recoveries, .otherwise = 16),
	FIELD("trace-limit", TRUST_HARMLESS, NUMBER, trace_limit),
	FIELD("qemu", TRUST_COMMAND, PROSE, qemu),
	FIELD("stacks", TRUST_HARMLESS, FLAG, stacks),
	FIELD("made", TRUST_HARMLESS, FLAG, made, .option = ""),
};
#undef FIELD

#define FIELD(...) RECORD_FIELD(struct pm_case, __VA_ARGS__)
static const struct record_field case_fields[] = {
	FIELD("state", TRUST_HARMLESS, PROSE, state, .required = true),
	FIELD("title", TRUST_HARMLESS, PROSE, title, .required = true),
	FIELD("cause", TRUST_HARMLESS, PROSE, cause),
	FIELD("seen", TRUST_HARMLESS, PROSE, seen),
	FIELD("detail", TRUST_HARMLESS, PROSE, detail),
	FIELD("point", TRUST_HARMLESS, NUMBER, point),
	FIELD("states", TRUST_HARMLESS, NUMBER, states),
};
#undef FIELD

#define FIELD(...) RECORD_FIELD(struct pm_summary, __VA_ARGS__)
static const struct record_field summary_fields[] = {
	FIELD("operations", TRUST_HARMLESS, NUMBER, operations),
	FIELD("stores", TRUST_HARMLESS, NUMBER, stores),
	FIELD("flushes", TRUST_HARMLESS, NUMBER, flushes),
	FIELD("fences", TRUST_HARMLESS, NUMBER, fences),
	FIELD("marks", TRUST_HARMLESS, NUMBER, marks),
	FIELD("cpus", TRUST_HARMLESS, NUMBER, cpus),
	FIELD("crash-states", TRUST_HARMLESS, NUMBER, crash_states),
	FIELD("unique-states", TRUST_HARMLESS, NUMBER, unique_states),
	FIELD("checked", TRUST_HARMLESS, NUMBER, checked),
	FIELD("failing", TRUST_HARMLESS, NUMBER, failing),
	FIELD("findings", TRUST_HARMLESS, NUMBER, findings),
	FIELD("errors", TRUST_HARMLESS, NUMBER, errors),
	FIELD("left-out", TRUST_HARMLESS, NUMBER, left_out),
	FIELD("elapsed-ms", TRUST_HARMLESS, NUMBER, elapsed_ms),
	FIELD("budget-hit", TRUST_HARMLESS, NUMBER, budget_hit),
	FIELD("media-states", TRUST_HARMLESS, NUMBER, media_states),
	FIELD("recoveries", TRUST_HARMLESS, NUMBER, recoveries),
	FIELD("recoveries-tried", TRUST_HARMLESS, NUMBER, recoveries_tried),
	FIELD("recovery-states", TRUST_HARMLESS, NUMBER, recovery_states),
	FIELD("pruned", TRUST_HARMLESS, NUMBER, pruned),
	FIELD("reads-traced", TRUST_HARMLESS, NUMBER, reads_traced),
	FIELD("reads-whole", TRUST_HARMLESS, NUMBER, reads_whole),
	FIELD("known", TRUST_HARMLESS, NUMBER, known),
	FIELD("copies", TRUST_HARMLESS, NUMBER, copies),
	FIELD("dropped", TRUST_HARMLESS, NUMBER, dropped),
};
#undef FIELD

static const struct record_type plan_type = RECORD_TYPE("pm-run", plan_fields, struct pm_plan);
static const struct record_type finding_type = RECORD_TYPE("pm-case", case_fields, struct pm_case);
static const struct record_type summary_type =
	RECORD_TYPE("pm-summary", summary_fields, struct pm_summary);

static const struct trust_file run_files[] = {
	{ .name = CASE_RUN }, { .name = "base.img" }, { .name = "trace" }, { .name = "places" }
};
static const char *const made[] = { "trace",	  "places",	"base.img", CASE_NESTED,
				    CASE_ANSWERS, CASE_SUMMARY, TRUST_MARK, NULL };
static const char *const synced[] = { CASE_RUN, "base.img", "trace", "places", CASE_NESTED, NULL };

const struct case_kind pm_kind = {
	.plan = &plan_type,
	.finding = &finding_type,
	.summary = &summary_type,
	.run = { .kind = "pm-run", .files = run_files, .n = ARRAY_SIZE(run_files), .keep = true },
	.synced = synced,
	.made = made,
	.finding_mark = "pm-case",
};

void pm_plan_release(struct pm_plan *p)
{
	record_release(&plan_type, p);
}

int pm_plan_load(const char *run, struct pm_plan *out, struct err *err)
{
	struct pm_plan p = { 0 };
	auto_free char *shown = below_shown(run, CASE_RUN);
	int rc = record_load(&plan_type, run, CASE_RUN, &p, err);

	if (!rc && !p.check == !p.dump)
		rc = err_set(err, -EINVAL, "%s must have either check or dump", shown);
	if (rc)
		pm_plan_release(&p);
	else
		*out = p;
	return rc;
}

void pm_case_release(struct pm_case *c)
{
	record_release(&finding_type, c);
	strbuf_release(&c->said);
	free(c->dir);
	c->dir = NULL;
}

char *pm_nested_dir(const char *run, const char *id, const char **rest)
{
	char *end = NULL;
	unsigned long long n = *id == 'r' ? strtoull(id + 1, &end, 10) : 0;

	bool nested = end && *end == ':';

	if (rest)
		*rest = nested ? end + 1 : id;
	return nested ? xasprintf("%s" BELOW_MARK "recovery/%llu", run, n) : NULL;
}

int pm_trust(const char *run, const struct pm_case *c, struct pm_plan *p, bool trust,
	     struct err *err)
{
	auto_free char *nested = pm_nested_dir(run, c->state, NULL);
	const struct case_place at = { &pm_kind, run, nested };

	return case_trust(&at, c->dir, p, trust, &p->ours, err);
}

int pm_case_put(const char *run, const char *name, const struct pm_case *c, struct err *err)
{
	auto_free char *nested = pm_nested_dir(run, c->state, NULL);
	const struct case_place at = { &pm_kind, run, nested };

	return case_put(&at, name, c, &c->said, true, err);
}

int pm_case_save(const char *run, uint64_t n, const struct pm_case *c, struct err *err)
{
	auto_free char *nested = pm_nested_dir(run, c->state, NULL);
	const struct case_place at = { &pm_kind, run, nested };

	return case_put_number(&at, n, c, &c->said, true, err);
}

int pm_case_load(const char *dir, struct pm_case *out, struct err *err)
{
	struct pm_case c = { 0 };
	int rc = case_get(&pm_kind, dir, &c, &c.said, err);

	if (rc)
		return rc;
	c.dir = xstrdup(dir);
	*out = c;
	return 0;
}

int pm_cases_load(const char *run, struct pm_cases *out, struct err *err)
{
	auto_words dirs = { 0 };
	int rc = case_list(run, &dirs, err);

	for (size_t i = 0; !rc && i < dirs.n; i++) {
		struct pm_case c;

		rc = pm_case_load(dirs.v[i], &c, err);
		if (!rc)
			vec_push(out, c);
	}
	return rc;
}
