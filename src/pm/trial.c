/* SPDX-License-Identifier: MIT */
/* trial.c - puts a state in place, runs the commands on it, and tells what they said. */
#include "pm/trial.h"

#include <errno.h>

#include "base/below.h"
#include "pm/file.h"
#include "pm/pm_record.h"

int pm_trial_init(struct pm_trial *t, const struct pm_run *r, struct err *err)
{
	*t = (struct pm_trial){ .run = r, .marks_point = UINT64_MAX };
	int rc = pm_file_new(r->plan.file, r->base.size, &t->file, err);
	if (rc)
		return rc;
	t->check = (struct check_opts){ .command = r->plan.check ? r->plan.check : r->plan.dump,
					.dir = r->plan.dir,
					.file = r->plan.file,
					.notes = pm_file_notes(t->file),
					.timeout_ms = r->plan.timeout_ms,
					.output_limit = r->plan.dump ? CHECK_OUTPUT_MAX : 0 };
	return 0;
}

/* Recovery is part of the check: if it fails, that is what is told. */
static int run_commands(struct pm_trial *t, uint64_t point, struct err *err)
{
	struct check_opts recover = t->check;
	int rc = 0;

	if (t->run->plan.recover) {
		recover.command = t->run->plan.recover;
		rc = check_run(&recover, point, strbuf_str(&t->marks), t->marks.len, &t->r, err);
		if (rc || t->r.end != CHECK_PASSED)
			return rc;
	}
	return check_run(&t->check, point, strbuf_str(&t->marks), t->marks.len, &t->r, err);
}

int pm_trial_check(struct pm_trial *t, const struct image *img, uint64_t point, struct err *err)
{
	int rc = pm_file_put(t->file, img, err);

	if (rc)
		return rc;
	if (point != t->marks_point) {
		strbuf_clear(&t->marks);
		pm_marks(&t->run->trace, point, &t->marks);
		t->marks_point = point;
	}
	return run_commands(t, point, err);
}

int pm_trial_check_bad(struct pm_trial *t, const struct image *img, uint64_t point,
		       const struct media_faults *faults, const struct image *old, struct err *err)
{
	auto_strbuf words = STRBUF_INIT;
	auto_image bad = IMAGE_INIT;

	image_snapshot(img, &bad);
	media_apply(faults, old, &bad);
	media_format(faults, &words);
	setenv("OUTAGE_MEDIA", strbuf_str(&words), 1);
	int rc = pm_trial_check(t, &bad, point, err);
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

static int replay_fault(struct pm_trial *t, const struct crash_state *s, const char *text,
			struct err *err)
{
	auto_media_faults faults = { 0 };
	auto_image old = IMAGE_INIT;
	int rc = media_parse(text, t->run->base.size, &faults, err);

	if (rc)
		return rc;
	pm_image_before(t->run, s->point, &old);
	return pm_trial_check_bad(t, &s->image, s->point, &faults, &old, err);
}

static int check_one(void *ctx, void *out, struct err *err)
{
	const struct one_trial *o = ctx;
	struct one_end *end = out;
	struct crash_opts opts = pm_run_crash(o->run);
	auto_crash_state s = CRASH_STATE_INIT;
	auto_free char *id = xstrdup(o->id);
	char *fault = strchr(id, '/');
	struct pm_trial t;

	if (fault)
		*fault++ = 0;
	int rc = crash_replay(&o->run->trace, &opts, id, &s, err);
	if (!rc)
		rc = pm_trial_init(&t, o->run, err);
	if (!rc)
		rc = fault ? replay_fault(&t, &s, fault, err)
			   : pm_trial_check(&t, &s.image, s.point, err);
	if (rc)
		return rc;
	*end = (struct one_end){
		.end = t.r.end, .exit_code = t.r.exit_code, .signal = t.r.signal, .point = s.point
	};
	snprintf(end->said, sizeof(end->said), "%s", strbuf_str(&t.r.output));
	return 0;
}

static void replace(char **text, const char *by)
{
	free(*text);
	*text = by ? xstrdup(by) : NULL;
}

/* "r3:ID": the state ID of what was done to recover the third time. */
static int search_nested(const struct pm_run *r, const char *id, struct pm_failure *f,
			 struct err *err)
{
	char *rest;
	unsigned long long number = strtoull(id + 1, &rest, 10);
	auto_free char *dir = xasprintf("%s" BELOW_MARK "recovery/%llu", r->dir, number);
	struct pm_run nested;

	if (*rest != ':' || rest[1] == 'r')
		return err_set(err, -EINVAL, "'%.80s' is not the id of a crash state", id);
	int rc = pm_run_load(dir, &nested, err);
	if (rc)
		return rc;
	/* What is run is what the run says, wherever the trace comes from. */
	replace(&nested.plan.file, r->plan.file);
	replace(&nested.plan.dir, r->plan.dir);
	replace(&nested.plan.check, r->plan.check);
	replace(&nested.plan.dump, r->plan.dump);
	replace(&nested.plan.recover, r->plan.recover);
	rc = pm_search_one(&nested, rest + 1, f, err);
	pm_run_release(&nested);
	return rc;
}

int pm_search_one(const struct pm_run *r, const char *id, struct pm_failure *f, struct err *err)
{
	if (id[0] == 'r')
		return search_nested(r, id, f, err);
	struct one_trial o = { r, id };
	struct one_end *end = xcalloc(1, sizeof(*end));
	int rc = pm_in_child(check_one, &o, end, sizeof(*end), r->stop, err);

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
