/* SPDX-License-Identifier: MIT */
/*
 * task_crash.c - crashes: the path that led to a state is run on a disk that records, and each
 * crash state is recovered and checked, while the sides stay as they are. A finding is kept
 * first and made small then; each smaller one takes the place of the one before.
 */
#include <errno.h>

#include "explore/finding_dir.h"
#include "explore/task.h"
#include "run/shrink.h"

enum { SHRINK_RUNS = 200, KIND_MAX = 5 };

/* One that was kept, to be made small when the run that found it is over. */
struct task_crash {
	struct task *t;
	char *name, *dir; /* NULL: nothing was found */
	char *words;	  /* its description */
	char *next;	  /* where a smaller one goes, below the run; and its path */
	char *next_path;
	size_t ops;
};

static void crash_release(struct task_crash *c)
{
	free(c->name);
	free(c->dir);
	free(c->words);
	free(c->next);
	free(c->next_path);
}

static void on_phase(void *ctx, const char *what, const char *on)
{
	const struct task_crash *c = ctx;

	(void)what;
	(void)on;
	++c->t->o.shared->progress.beat; /* a long phase does not hang */
}

static bool on_stopped(void *ctx)
{
	const struct task_crash *c = ctx;

	return task_cut(c->t);
}

/* ---- finding ---- */

static struct finding *of_kernel(const struct findings *list)
{
	return vec_find(i, list, list->v[i].kind == FINDING_KERNEL_LOG);
}

static int keep_found(struct task_crash *found, const struct run_case *c, struct err *err)
{
	struct task *t = found->t;
	auto_free char *signature = xasprintf("%s %s", c->state ? "crash" : "live",
					      finding_kind_name(c->findings->v[0].kind));

	if (task_has_enough(t, signature, KIND_MAX))
		return -ECANCELED; /* one of many of its kind */
	struct store_place at = { .run = t->opts->dir,
				  .base = t->base,
				  .base_kept = &t->base_kept,
				  .workload = task_next_case(t),
				  .number = t->o.number };
	found->name = store_name(&at);
	found->words = xstrdup(c->findings->v[0].words);
	found->ops = c->workload->ops.n;
	int rc = store_case(&at, c, &t->run_opts, err);
	if (!rc)
		found->dir = xasprintf("%s/findings/%s", t->opts->dir, found->name);
	/* A finding that cannot be kept is told all the same. */
	task_tell(t, rc ? MSG_FOUND : MSG_KEPT, found->words, found->dir, found->ops);
	/* The same path has many crash states; one that is wrong tells enough. */
	return rc ? rc : -ECANCELED;
}

/*
 * Before any crash it is ours to compare, with what is known of the target: differences are dropped
 * here. But only this run sees what this file system's kernel complains or dies of.
 */
static int on_crash_found(void *ctx, const struct run_case *c, struct err *err)
{
	struct finding *kernel = of_kernel(c->findings);
	struct findings alone = { .v = kernel, .n = 1 };
	struct run_case live = *c;

	if (c->state)
		return keep_found(ctx, c, err);
	if (!kernel)
		return -ECANCELED;
	live.findings = &alone;
	return keep_found(ctx, &live, err);
}

/* ---- making it small ---- */

static void on_try(void *ctx, const char *words)
{
	on_phase(ctx, words, "");
}

static int choose_next(struct task_crash *c, const char **path, struct err *err)
{
	auto_free char *next = NULL;
	int rc = finding_dir_next(c->t->opts->dir, c->name, &next, err);

	if (rc)
		return rc;
	free(c->next);
	free(c->next_path);
	c->next_path = xasprintf("%s/%s", c->t->opts->dir, next);
	c->next = steal(next);
	*path = c->next_path;
	return 0;
}

static int on_smaller(void *ctx, size_t ops, const char **dir, struct err *err)
{
	struct task_crash *c = ctx;
	int rc = finding_dir_take(c->t->opts->dir, c->name, c->next, err);

	if (rc)
		return rc;
	c->ops = ops;
	task_tell(c->t, MSG_KEPT, c->words, c->dir, ops);
	return choose_next(c, dir, err);
}

/* Leaves the case as it is if it does not show again; that is no failure. */
static int make_small(struct task_crash *c, struct err *err)
{
	struct shrink_opts how = { .max_runs = SHRINK_RUNS,
				   .ctx = c,
				   .step = on_try,
				   .smaller = on_smaller,
				   .phase = on_phase,
				   .stopped = on_stopped };
	struct shrink_result result = { 0 };
	struct stored_case stored;
	struct err why = ERR_INIT;
	const char *to;
	int rc = choose_next(c, &to, err);

	if (!rc)
		rc = store_load(c->dir, &stored, err);
	if (rc)
		return rc;
	stored.ours = !c->t->opts->strange; /* this run kept it a moment ago */
	rc = task_cut(c->t) ? -ECANCELED : shrink_case(&stored, &how, to, &result, &why);
	stored_case_release(&stored);
	if (rc < 0 && rc != -EAGAIN && rc != -ECANCELED)
		task_tell(c->t, MSG_NOTE, why.msg, NULL, 0);
	return 0;
}

/* ---- cutting the power ---- */

int task_open_crashes(struct task *t, struct err *err)
{
	struct run_opts opts = t->opts->crash;

	opts.ours = !t->opts->strange;
	opts.target = t->opts->sides.target;
	opts.target.eadr = opts.pm.eadr;
	opts.target.spec = t->opts->specs[0];
	opts.target.worker = t->o.number;
	opts.target.kmsg = t->o.kmsg;
	task_watch_starts(t, &opts.target);
	t->run_opts = opts;
	/* Beyond those of earlier runs, and never that of another task. */
	t->base = (store_next_base(t->opts->dir) / TASKS_MAX + 1) * TASKS_MAX + t->o.number;
	return run_open(&opts, &t->run, err);
}

/* The operations that led here, without those that fail after having made a file. */
static void path_for_crash(struct search *s, struct script *out)
{
	bool no_reflink = differences_find(s->stepper->sides[0]->differences, DIFFER_NO_REFLINK);
	auto_call(script_release) struct script all;

	script_init(&all);
	search_path(s, &all);
	for (size_t i = 0; i < all.w.ops.n; i++)
		if (!no_reflink || !(all.w.ops.v[i].def->flags & OP_SHARES))
			script_add_op(out, &all.w.ops.v[i]);
}

/* Whether the last step promised something: before that, a crash may lose it anyway. */
static bool makes_durable(const struct search *s)
{
	const struct step *st;

	if (s->last == UINT32_MAX)
		return false;
	st = &s->alphabet.steps.v[s->last];
	return any_of(k, st->n, workload_persists(&s->alphabet.w, st->first + k));
}

static void tell_end(const struct task_crash *c)
{
	auto_free char *cut = xasprintf("%s (shrinking was cut short)", c->words);

	if (task_cut(c->t))
		task_tell(c->t, MSG_CUT_SHORT, cut, c->dir, c->ops);
	else
		task_tell(c->t, MSG_FOUND, c->words, c->dir, c->ops);
}

static int crash_path(struct task *t, const struct script *path, struct search *s, struct err *err)
{
	auto_call(crash_release) struct task_crash crash = { .t = t };
	struct run_reporter reporter = {
		.found = on_crash_found, .ctx = &crash, .phase = on_phase, .stopped = on_stopped
	};
	struct run_totals totals = { 0 };
	struct err why = ERR_INIT;
	int rc = run_workload(t->run, &path->w, &reporter, &totals, &why);

	if (rc && rc != -ECANCELED)
		task_tell(t, MSG_ERROR, why.msg, NULL, 0);
	s->progress->crash_states += totals.unique_states;
	rc = crash.dir ? make_small(&crash, err) : 0;
	if (crash.dir)
		tell_end(&crash);
	return rc;
}

int task_after_step(void *ctx, struct search *s, struct err *err)
{
	struct task *t = ctx;
	struct script path;
	int rc = 0;

	if (!makes_durable(s) || ++t->transitions % t->opts->crash_every)
		return 0;
	script_init(&path);
	path_for_crash(s, &path);
	if (path.w.ops.n)
		rc = crash_path(t, &path, s, err);
	script_release(&path);
	task_count_cases(t, s);
	return rc;
}
