/* SPDX-License-Identifier: MIT */
/* app_finding.c - makes a finding of a failure; checks a finding again, and explains it again. */
#include "app/app_finding.h"

#include <unistd.h>

#include "app/app_words.h"
#include "base/below.h"

enum { AGAIN_MAX = 6 }; /* checks of one state, even if a case says more */

int app_finding_load(const char *dir, struct app_finding *out, struct err *err)
{
	auto_free char *run = below_run_of(dir);

	*out = (struct app_finding){ 0 };
	posix_log_init(&out->log);
	int rc = app_run_load(run, &out->run, err);
	if (!rc)
		rc = app_log(&out->run.trace, &out->log, err);
	return rc ? rc : case_get(&app_kind, dir, &out->c, err);
}

void app_finding_release(struct app_finding *f)
{
	case_finding_release(&app_kind, &f->c);
	posix_log_release(&f->log);
	app_run_release(&f->run);
}

/* ---- a case ---- */

/* Adds the first crash to the title: its state is good, the explanation is about the second. */
static void tell_first_crash(const struct app_run *run, const struct posix_log *log,
			     const struct app_run *at, struct app_case *c)
{
	auto_free char *title = steal(c->title), *state = steal(c->state);
	uint64_t point = at->plan.outer_point;
	auto_strbuf where = STRBUF_INIT;

	if (point)
		app_words_event(&run->trace, log, point - 1, &where);
	c->title = xasprintf("the power failed again while it came up after a crash %s%s: %s",
			     point ? "after " : "before the first operation", strbuf_str(&where),
			     title);
	/* The number of a restart is the name of its directory. */
	c->state = xasprintf("r%s:%s", strrchr(at->dir, '/') + 1, state);
}

void app_finding_case(struct app_run *run, const struct posix_log *log, const struct app_run *at,
		      const struct posix_log *at_log, const struct search_found *found,
		      struct app_case *out)
{
	const struct explained *why = &found->why;

	*out = (struct app_case){ .state = xstrdup(why->id),
				  .point = why->point,
				  .acks = why->acked,
				  .states = found->states,
				  .shown = found->shown,
				  .asked = found->asked,
				  .harm = why->harm,
				  .cause = why->cause ? xstrdup(why->cause) : NULL,
				  .seen = xstrdup(found->verdict.seen ? found->verdict.seen : "") };
	app_words_case(&at->history, at_log, &at->stacks, &run->plan, why, out);
	if (at != run)
		tell_first_crash(run, log, at, out);
	strbuf_add(&out->said, strbuf_str(&found->verdict.said), found->verdict.said.len);
}

/* ---- again ---- */

bool app_finding_shows(const struct app_case *c, const struct verdict *v)
{
	return v->fails && v->harm == c->harm;
}

/* Finds the state's run or restart, and how it is checked. The check must pass at the run's end. */
static int open_at(struct app_finding *f, struct app_run **at, struct app_search_opts *o,
		   struct err *err)
{
	struct app_search_opts whole = app_run_search(&f->run);
	int rc = app_run_of(&f->run, f->c.state, at, err);

	if (rc)
		return rc;
	*o = app_run_search(*at);
	/* If the directory is gone, the state is put at the path of the kept copy of it. */
	if (access(o->checkers.place.at, F_OK)) {
		whole.checkers.place.at = f->run.base;
		o->checkers.place.at = (*at)->base;
	}
	/* If the check fails without a crash, too, its failure would not show the finding. */
	return search_end(&whole, NULL, err);
}

static bool is_steady(const struct app_case *c)
{
	return c->shown >= c->asked;
}

/* Checks the state; if its checks have differed, as often as when the finding was made. */
static int show(const struct app_case *c, const struct app_search_opts *o, struct verdict *v,
		uint64_t *asked, struct err *err)
{
	uint64_t most = is_steady(c) ? 1 : min(c->asked, (uint64_t)AGAIN_MAX);
	int rc = 0;

	for (*asked = 0; !rc && *asked < most && !app_finding_shows(c, v); ++*asked)
		rc = search_one(o, case_state_within(c->state), v, err);
	return rc;
}

int app_finding_again(struct app_finding *f, struct verdict *v, struct err *err)
{
	struct app_search_opts o;
	struct app_run *at;
	uint64_t asked;
	int rc = open_at(f, &at, &o, err);

	return rc ? rc : show(&f->c, &o, v, &asked, err);
}

/* ---- small ---- */

/* Takes the new explanation, unless the old one loses fewer operations. */
static int take(struct app_finding *f, const struct app_run *at, const struct search_found *found,
		struct err *err)
{
	auto_posix_log log;
	struct app_case c;

	posix_log_init(&log);
	int rc = app_log(&at->trace, &log, err);
	if (rc)
		return rc;
	app_finding_case(&f->run, &f->log, at, &log, found, &c);
	c.states = f->c.states;
	if (c.lost.n <= f->c.lost.n) {
		struct app_case old = f->c;

		f->c = c;
		c = old;
	}
	case_finding_release(&app_kind, &c);
	return 0;
}

static int explain_again(struct app_finding *f, const struct app_run *at,
			 const struct app_search_opts *o, uint64_t checks_max, uint64_t *checks,
			 struct err *err)
{
	auto_call(search_found_release) struct search_found found = { 0 };
	int rc = search_again(o, case_state_within(f->c.state), f->c.harm,
			      (unsigned)min(checks_max, (uint64_t)UINT32_MAX), &found, err);

	*checks = 1 + found.why.checks + found.asked;
	return rc ? rc : take(f, at, &found, err);
}

int app_finding_shrink(struct app_finding *f, uint64_t checks_max, struct case_shrunk *out,
		       struct err *err)
{
	auto_call(verdict_release) struct verdict v = { 0 };
	struct app_search_opts o;
	struct app_run *at;
	int rc = open_at(f, &at, &o, err);

	*out = (struct case_shrunk){ .lost_before = f->c.lost.n };
	if (!rc && is_steady(&f->c)) {
		rc = explain_again(f, at, &o, checks_max, &out->tried, err);
	} else if (!rc) {
		rc = show(&f->c, &o, &v, &out->tried, err);
		rc = rc ? rc : !app_finding_shows(&f->c, &v);
	}
	out->lost_after = f->c.lost.n;
	return rc;
}
