/* SPDX-License-Identifier: MIT */
/* trial.c - puts a state in place, runs the commands on it, and tells what they said. */
#include "pm/trial.h"

#include <errno.h>

#include "pm/file.h"
#include "pm/state.h"
#include "sandbox/in_child.h"
#include "search/subject.h"

int pm_trial_init(struct pm_trial *t, const struct pm_run *r, const struct pm_run *of,
		  struct err *err)
{
	*t = (struct pm_trial){ .plan = &r->plan, .trace = &of->trace, .marks_point = UINT64_MAX };
	int rc = pm_file_new(r->plan.file, of->base.size, &t->file, err);
	if (rc)
		return rc;
	t->check = (struct sandbox_opts){ .command = r->plan.check ? r->plan.check : r->plan.dump,
					  .dir = r->plan.dir,
					  .argument = r->plan.file,
					  .notes = pm_file_notes(t->file),
					  .timeout_ms = r->plan.timeout_ms,
					  .output_limit = r->plan.dump ? CHECK_OUTPUT_MAX : 0 };
	return 0;
}

/* ---- a state, as a subject ---- */

static int put(void *subject, struct err *err)
{
	struct pm_trial *t = subject;
	int rc = pm_file_put(t->file, t->img, err);

	if (!rc && t->point != t->marks_point) {
		strbuf_clear(&t->marks);
		pm_marks(t->trace, t->point, &t->marks);
		t->marks_point = t->point;
	}
	return rc;
}

static int run_command(struct pm_trial *t, const char *command, struct err *err)
{
	struct sandbox_opts o = t->check;

	o.command = command;
	return check_run(&o, t->point, strbuf_str(&t->marks), t->marks.len, &t->r, err);
}

/* Recovery is part of the check: if it fails, that is what is told. */
static int recover(void *subject, struct err *err)
{
	struct pm_trial *t = subject;
	int rc = t->plan->recover ? run_command(t, t->plan->recover, err) : 0;

	return rc ? rc : t->plan->recover && t->r.end != CHECK_PASSED;
}

static int check(void *subject, struct err *err)
{
	struct pm_trial *t = subject;

	return run_command(t, t->check.command, err);
}

/* The file stays as it is until the next state is put there. */
static const struct subject_ops file_subject = { .put = put, .recover = recover, .check = check };

int pm_trial_check(struct pm_trial *t, const struct image *img, uint64_t point, const char *bad,
		   struct err *err)
{
	t->img = img;
	t->point = point;
	if (bad)
		setenv("OUTAGE_MEDIA", bad, 1);
	int rc = subject_try(&file_subject, t, err);
	unsetenv("OUTAGE_MEDIA");
	return rc;
}

/* ---- one state, by its id ---- */

struct one_trial {
	const struct pm_run *run;
	const char *id;
};

struct one_end {
	enum check_end end;
	int exit_code, signal;
	uint64_t point;
	char said[CHECK_OUTPUT_MAX + 1];
};

static int check_one(void *ctx, struct pool_worker *w, void *out, struct err *err)
{
	const struct one_trial *o = ctx;
	struct one_end *end = out;
	struct pm_state state;
	struct pm_trial t;

	pool_at(w, 0, "state %s", o->id);
	int rc = pm_state_load(o->run, o->id, &state, err);

	if (rc)
		return rc;
	/* The commands are those of the run, wherever the trace comes from. */
	rc = pm_trial_init(&t, o->run, state.run, err);
	if (!rc)
		rc = pm_trial_check(&t, &state.s.image, state.s.point,
				    *state.fault ? state.fault : NULL, err);
	if (!rc) {
		*end = (struct one_end){ .end = t.r.end,
					 .exit_code = t.r.exit_code,
					 .signal = t.r.signal,
					 .point = state.s.point };
		snprintf(end->said, sizeof(end->said), "%s", strbuf_str(&t.r.output));
	}
	pm_state_release(&state);
	return rc;
}

int pm_search_one(const struct pm_run *r, const char *id, struct pm_failure *f, struct err *err)
{
	struct one_trial o = { r, id };
	struct one_end *end = xcalloc(1, sizeof(*end));
	struct in_child child = { .fn = check_one,
				  .ctx = &o,
				  .out = end,
				  .out_size = sizeof(*end),
				  .patience_ms = pm_patience_ms(&r->plan),
				  .stop = r->stop };
	int rc = in_child(&child, err);

	if (!rc && end->end == CHECK_ERROR)
		rc = err_set(err, -ECHILD, "the check could not be run: %.300s", end->said);
	if (!rc)
		*f = (struct pm_failure){ .state = xstrdup(id),
					  .point = end->point,
					  .end = end->end,
					  .exit_code = end->exit_code,
					  .signal = end->signal,
					  .said = xstrdup(end->said) };
	free(end);
	return rc;
}
