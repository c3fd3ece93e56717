/* SPDX-License-Identifier: MIT */
/* trial.c - puts a state in place, runs the commands on it, and reports their end and output. */
#include "pm/trial.h"

#include <errno.h>

#include "pm/file.h"
#include "pm/state.h"
#include "sandbox/in_child.h"
#include "search/subject.h"

int pm_trial_init(struct pm_trial *t, const struct pm_run *r, const struct pm_run *of,
		  struct err *err)
{
	*t = (struct pm_trial){ .plan = &r->plan,
				.trace = &of->trace,
				.answers = of->answers,
				.marks_point = UINT64_MAX };
	int rc = pm_file_new(r->plan.file, of->base.size, &t->file, err);
	if (rc)
		return rc;
	t->check = (struct sandbox_opts){ .command = r->plan.check ? r->plan.check : r->plan.dump,
					  .dir = r->plan.dir,
					  .argument = r->plan.file,
					  .notes = PM_FILE_NOTES,
					  .timeout_ms = r->plan.timeout_ms,
					  .output_limit = r->plan.dump ? CHECK_OUTPUT_MAX : 0 };
	return 0;
}

/* ---- a state, as a subject ---- */

static int put(void *subject, struct err *err)
{
	const struct pm_trial *t = subject;

	return pm_file_put(t->file, t->img, err);
}

static int run_command(struct pm_trial *t, const char *command, struct err *err)
{
	struct sandbox_opts o = t->check;

	o.command = command;
	return check_run(&o, t->point, strbuf_str(&t->marks), t->marks.len, &t->r, err);
}

/* Recovery is part of the check: its failure is the result. */
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

/* The file stays as it is until put() makes all of it new for the next state (T1). */
static const struct subject_ops file_subject = { .put = put, .recover = recover, .check = check };

/* ---- changes by the commands ---- */

/* Adds the words that changed, with their new values. */
static int add_changed(void *ctx, uint64_t page, const unsigned char *a, const unsigned char *b)
{
	struct pm_trial *t = ctx;

	for (size_t i = 0; i < IMAGE_PAGE; i += 8) {
		uint64_t word[2] = { page * IMAGE_PAGE + i, 0 };

		if (memcmp(a + i, b + i, 8) == 0)
			continue;
		memcpy(&word[1], b + i, 8);
		t->change = hash_add(t->change, hash_bytes(word, sizeof(word)));
		t->changed = true;
	}
	return 0;
}

/*
 * Finds out how the commands changed the file: their way to recover. The model knows no sizes: a
 * state whose file has another size has no hash.
 */
static void find_change(struct pm_trial *t)
{
	auto_image now = IMAGE_INIT;

	if (image_load_file(t->plan->file, &now, NULL))
		return;
	t->resized = now.size != t->img->size;
	if (!t->resized)
		(void)!image_diff(t->img, &now, add_changed, t);
}

/* ---- answers ---- */

/* The result of the check follows. */
struct trial_answer {
	bool changed, resized;
	struct hash128 change;
};

/* Hashes all input of the commands. */
static struct hash128 question_of(const struct pm_trial *t, const char *bad)
{
	const struct hash128 parts[] = { image_hash(t->img),
					 { t->point, (uint64_t)t->watch << 1 | (bad != NULL) },
					 hash_bytes(strbuf_str(&t->marks), t->marks.len),
					 hash_bytes(bad ? bad : "", bad ? strlen(bad) : 0) };

	return hash_bytes(parts, sizeof(parts));
}

/* Takes the answer of an earlier process, if there is one. */
static bool take_known(struct pm_trial *t, struct hash128 question)
{
	auto_strbuf text = STRBUF_INIT;
	struct trial_answer head;

	if (!answers_find(t->answers, question, &text) || text.len < sizeof(head))
		return false;
	memcpy(&head, text.buf, sizeof(head));
	if (!check_result_read(text.buf + sizeof(head), text.len - sizeof(head), &t->r) ||
	    !check_result_is_final(&t->r))
		return false;
	t->changed = head.changed;
	t->resized = head.resized;
	t->change = head.change;
	return true;
}

static void keep_answer(const struct pm_trial *t, struct hash128 question)
{
	struct trial_answer head;
	auto_strbuf text = STRBUF_INIT;

	if (!check_result_is_final(&t->r))
		return;
	memset(&head, 0, sizeof(head));
	head.changed = t->changed;
	head.resized = t->resized;
	head.change = t->change;
	strbuf_add(&text, &head, sizeof(head));
	check_result_add(&t->r, &text);
	answers_add(t->answers, question, text.buf, text.len);
}

static void find_marks(struct pm_trial *t)
{
	if (t->point == t->marks_point)
		return;
	strbuf_clear(&t->marks);
	pm_marks(t->trace, t->point, &t->marks);
	t->marks_point = t->point;
}

int pm_trial_check(struct pm_trial *t, const struct image *img, uint64_t point, const char *bad,
		   struct err *err)
{
	t->img = img;
	t->point = point;
	t->changed = t->resized = false;
	t->change = (struct hash128){ 0, 0 };
	find_marks(t);
	struct hash128 question = question_of(t, bad);
	if (take_known(t, question))
		return 0;
	if (bad)
		setenv("OUTAGE_MEDIA", bad, 1);
	int rc = subject_try(&file_subject, t, err);
	unsetenv("OUTAGE_MEDIA");
	if (rc)
		return rc;
	if (t->watch && !bad && t->r.end == CHECK_PASSED)
		find_change(t);
	keep_answer(t, question);
	return 0;
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
	auto_call(pm_state_release) struct pm_state state;
	struct pm_trial t;

	pool_at(w, 0, "state %s", o->id);
	int rc = pm_state_load(o->run, o->id, &state, err);

	if (rc)
		return rc;
	/* The commands are those of the run, even for the trace of a recovery. */
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
	return rc;
}

int pm_search_one(const struct pm_run *r, const char *id, struct pm_failure *f, struct err *err)
{
	struct one_trial o = { r, id };
	auto_free struct one_end *end = xcalloc(1, sizeof(*end));
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
	return rc;
}
