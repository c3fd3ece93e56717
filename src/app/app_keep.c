/* SPDX-License-Identifier: MIT */
/* app_keep.c - the records of outage app, and which files its marks cover. */
#include "app/app_keep.h"

#include <errno.h>

#include "case/answers.h"

/* ---- harm ---- */

static const struct {
	const char *name, *words;
} harms[APP_HARM_END] = {
	[APP_UNAVAILABLE] = { "unavailable", "the application does not come up again" },
	[APP_ROLLED_BACK] = { "rolled-back", "acknowledged data is gone" },
	[APP_SILENT_LOSS] = { "silent-loss", "data is gone, and nothing says so" },
	[APP_CORRUPT] = { "corruption", "the data was never written like that" },
	[APP_HANG] = { "hang", "it does not come to an end" },
	[APP_FAILED] = { "failed", "the check fails" },
};

const char *app_harm_name(enum app_harm h)
{
	return harms[h].name;
}

const char *app_harm_words(enum app_harm h)
{
	return harms[h].words;
}

enum app_harm app_harm_find(const char *name, size_t len)
{
	for (unsigned i = 0; i < APP_HARM_END; i++)
		if (strlen(harms[i].name) == len && strncmp(harms[i].name, name, len) == 0)
			return (enum app_harm)i;
	return APP_HARM_END;
}

bool app_harm_known(const char *name)
{
	return app_harm_find(name, strlen(name)) != APP_HARM_END;
}

static int set_harm(void *member, const char *value, struct err *err)
{
	enum app_harm h = app_harm_find(value, strlen(value));

	if (h == APP_HARM_END)
		return err_set(err, -EINVAL, "there is no such harm as '%.40s'", value);
	*(enum app_harm *)member = h;
	return 0;
}

static void put_harm(const void *member, struct strbuf *out)
{
	strbuf_adds(out, app_harm_name(*(const enum app_harm *)member));
}

/* ---- records ---- */

#define FIELD(...) RECORD_FIELD(struct app_plan, __VA_ARGS__)
static const struct record_field plan_fields[] = {
#define PLAN_AS FIELD
#include "app/app_options.def"
};
#undef FIELD

#define FIELD(...) RECORD_FIELD(struct app_case, __VA_ARGS__)
static const struct record_field case_fields[] = {
	FIELD("state", TRUST_HARMLESS, PROSE, state, .required = true),
	FIELD("point", TRUST_HARMLESS, NUMBER, point),
	FIELD("acks", TRUST_HARMLESS, NUMBER, acks),
	FIELD("states", TRUST_HARMLESS, NUMBER, states),
	FIELD("harm", TRUST_HARMLESS, OTHER, harm, .set = set_harm, .put = put_harm),
	FIELD("title", TRUST_HARMLESS, PROSE, title, .required = true),
	FIELD("fix", TRUST_HARMLESS, PROSE, fix),
	FIELD("verified", TRUST_HARMLESS, FLAG, verified),
	FIELD("cause", TRUST_HARMLESS, PROSE, cause),
	FIELD("lost", TRUST_HARMLESS, LIST, lost),
	FIELD("after", TRUST_HARMLESS, LIST, after),
	FIELD("seen", TRUST_HARMLESS, PROSE, seen),
	FIELD("shown", TRUST_HARMLESS, NUMBER, shown),
	FIELD("asked", TRUST_HARMLESS, NUMBER, asked),
	FIELD("unexplained", TRUST_HARMLESS, FLAG, unexplained),
};
#undef FIELD

#define FIELD(...) RECORD_FIELD(struct app_summary, __VA_ARGS__)
static const struct record_field summary_fields[] = {
	FIELD("operations", TRUST_HARMLESS, NUMBER, operations),
	FIELD("acks", TRUST_HARMLESS, NUMBER, acks),
	FIELD("crash-states", TRUST_HARMLESS, NUMBER, crash_states),
	FIELD("unique-states", TRUST_HARMLESS, NUMBER, unique_states),
	FIELD("checked", TRUST_HARMLESS, NUMBER, checked),
	FIELD("findings", TRUST_HARMLESS, NUMBER, findings),
	FIELD("suppressed", TRUST_HARMLESS, NUMBER, suppressed),
	FIELD("unexplained", TRUST_HARMLESS, NUMBER, unexplained),
	FIELD("failing", TRUST_HARMLESS, NUMBER, failing),
	FIELD("patterns", TRUST_HARMLESS, NUMBER, patterns),
	FIELD("patterns-covered", TRUST_HARMLESS, NUMBER, covered),
	FIELD("errors", TRUST_HARMLESS, NUMBER, errors),
	FIELD("elapsed", TRUST_HARMLESS, REAL, elapsed_s),
	FIELD("left-out", TRUST_HARMLESS, REAL, left_out),
	FIELD("budget-hit", TRUST_HARMLESS, FLAG, budget_hit),
	FIELD("recovery-ways", TRUST_HARMLESS, NUMBER, recovery_ways),
	FIELD("recoveries", TRUST_HARMLESS, NUMBER, recoveries),
	FIELD("recoveries-tried", TRUST_HARMLESS, NUMBER, recoveries_tried),
	FIELD("recovery-states", TRUST_HARMLESS, NUMBER, recovery_states),
	FIELD("recovery-left-out", TRUST_HARMLESS, REAL, recovery_left_out),
	FIELD("note", TRUST_HARMLESS, LIST, notes),
};
#undef FIELD

static const struct record_type plan_type = RECORD_TYPE("app-run", plan_fields, struct app_plan);
static const struct record_type finding_type =
	RECORD_TYPE("app-case", case_fields, struct app_case);
static const struct record_type summary_type =
	RECORD_TYPE("app-summary", summary_fields, struct app_summary);

static const struct trust_file run_files[] = {
	{ .name = CASE_RUN }, { .name = "trace" }, { .name = "stacks" }, { .name = "shown" }
};
static const char *const made[] = { "trace",	  "base",      "shown",	    "stacks",
				    "work",	  CASE_NESTED, CASE_BEFORE, CASE_ANSWERS,
				    CASE_SUMMARY, TRUST_MARK,  NULL };
static const char *const synced[] = { CASE_RUN, "base",	     "trace", "stacks",
				      "shown",	CASE_NESTED, NULL };

const struct case_kind app_kind = {
	.plan = &plan_type,
	.finding = &finding_type,
	.summary = &summary_type,
	.run = { .kind = "app-run",
		 .files = run_files,
		 .n = ARRAY_SIZE(run_files),
		 .tree = "base",
		 .keep = true },
	.synced = synced,
	.made = made,
	.finding_mark = "app-case",
	.links_trace = true,
};

char *app_case_cluster(const struct app_case *c)
{
	struct strbuf out = STRBUF_INIT;

	strbuf_addf(&out, "%s: ", app_harm_name(c->harm));
	for (const char *at = c->title; *at; at++) {
		size_t digits = at == c->title || at[-1] == ' ' ? strspn(at, "0123456789") : 0;

		if (digits && strchr(" ,:;", at[digits])) {
			strbuf_addch(&out, 'N');
			at += digits - 1;
		} else {
			strbuf_addch(&out, *at);
		}
	}
	return strbuf_detach(&out);
}

void app_plan_release(struct app_plan *p)
{
	record_release(&plan_type, p);
}

const char *app_plan_asks(const struct app_plan *p)
{
	return p->check ? "check" : p->query ? "query" : "restart";
}

const char *app_plan_command(const struct app_plan *p)
{
	return p->check ? p->check : p->query ? p->query : p->restart;
}

const char *app_plan_restarts(const struct app_plan *p)
{
	return p->restart ? p->restart : app_plan_command(p);
}

static int check_plan(const void *plan, struct err *err)
{
	const struct app_plan *p = plan;

	if (!p->check && !p->restart && !p->query)
		return err_set(err, -EINVAL, "it has none of check, restart and query");
	if (p->check && p->query)
		return err_set(err, -EINVAL, "it has both check and query");
	return 0;
}

int app_plan_load(const char *run, struct app_plan *out, struct err *err)
{
	static const struct case_plan kept = { .type = &plan_type, .check = check_plan };

	return case_plan_load(&kept, run, out, err);
}
