/* SPDX-License-Identifier: MIT */
/* pm_keep.c - the records of outage pm, and which files its marks cover. */
#include "pm/pm_keep.h"

#include <errno.h>

#include "case/answers.h"
#include "check/semantic.h"

#define FIELD(...) RECORD_FIELD(struct pm_plan, __VA_ARGS__)
static const struct record_field plan_fields[] = {
#define PLAN_AS FIELD
#include "pm/pm_options.def"
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
	FIELD("suppressed", TRUST_HARMLESS, NUMBER, suppressed),
	FIELD("not-kept", TRUST_HARMLESS, NUMBER, not_kept),
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

/* A finding without a cause is of bad lines. */
char *pm_case_cluster(const struct pm_case *c)
{
	const char *cause = c->cause ? c->cause : "media";

	return xasprintf("%.*s: %s", (int)strcspn(cause, ":"), cause, c->title);
}

bool pm_cause_known(const char *name)
{
	return streq(name, "media") || streq(name, semantic_cause_name(SEMANTIC_ORDERING)) ||
	       streq(name, semantic_cause_name(SEMANTIC_LOGIC)) ||
	       streq(name, semantic_cause_name(SEMANTIC_TEARING));
}

void pm_plan_release(struct pm_plan *p)
{
	record_release(&plan_type, p);
}

static int check_plan(const void *plan, struct err *err)
{
	const struct pm_plan *p = plan;

	return !p->check == !p->dump ? err_set(err, -EINVAL, "it must have either check or dump")
				     : 0;
}

int pm_plan_load(const char *run, struct pm_plan *out, struct err *err)
{
	static const struct case_plan kept = { .type = &plan_type, .check = check_plan };

	return case_plan_load(&kept, run, out, err);
}

int pm_cases_load(const char *run, struct pm_cases *out, struct err *err)
{
	auto_words dirs = { 0 };
	int rc = case_list(run, &dirs, err);

	for (size_t i = 0; !rc && i < dirs.n; i++) {
		struct pm_case c = { 0 };

		rc = case_get(&pm_kind, dirs.v[i], &c, err);
		if (!rc)
			vec_push(out, c);
	}
	return rc;
}
