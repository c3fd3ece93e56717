/* SPDX-License-Identifier: MIT */
/*
 * task_crash.c - crashes: the path that led to a state is run on a disk that records, and each
 * crash state is recovered and checked, while the sides stay as they are. What is found is made
 * small.
 */
#include <errno.h>
#include <sys/stat.h>

#include "explore/task.h"
#include "run/shrink.h"

enum { SHRINK_RUNS = 200, KIND_MAX = 5 };

/* One that was kept, to be made small when the run that found it is over. */
struct crash {
	struct task *t;
	struct store_place at;
	char *dir;   /* NULL: nothing was found */
	char *words; /* what it is */
	size_t ops;
};

/* ---- finding ---- */

static int on_crash_found(void *ctx, const struct run_case *c, struct err *err)
{
	struct crash *found = ctx;
	struct task *t = found->t;
	auto_free char *signature = NULL;

	/* Before any crash it is ours to compare; and what it would be judged by is not known. */
	if (!c->state)
		return -ECANCELED;
	signature = xasprintf("crash %s", finding_kind_name(c->findings->v[0].kind));
	if (task_times_seen(t, signature) >= KIND_MAX)
		return -ECANCELED; /* one of many of its kind */
	found->at = (struct store_place){ .run = t->opts->dir,
					  .base = t->base,
					  .base_kept = &t->base_kept,
					  .workload = ++t->cases,
					  .number = t->o.number };
	int rc = store_case(&found->at, c, &t->run_opts, err);
	if (!rc) {
		auto_free char *name = store_name(&found->at);

		found->dir = xasprintf("%s/findings/%s", t->opts->dir, name);
		found->words = xstrdup(c->findings->v[0].words);
		found->ops = c->workload->ops.n;
	}
	/* The same path has many crash states; one that is wrong tells enough. */
	return rc ? rc : -ECANCELED;
}

/* ---- making it small ---- */

static void on_try(void *ctx, const char *words)
{
	struct task *t = ctx;

	(void)words;
	++t->o.shared->progress.beat; /* it is long, and it does not hang */
}

static int make_dir(const char *dir, struct err *err)
{
	return mkdir(dir, 0777) < 0 && errno != EEXIST
		       ? err_set(err, -errno, "cannot make the directory %s: %m", dir)
		       : 0;
}

static int move(const char *from, const char *to, struct err *err)
{
	return rename(from, to) < 0 ? err_set(err, -errno, "cannot rename %s to %s: %m", from, to)
				    : 0;
}

/* The small one takes the place of the other, which is kept below RUN/whole. */
static int take_place(struct crash *c, const char *small, struct err *err)
{
	auto_free char *whole = xasprintf("%s/whole", c->t->opts->dir);
	auto_free char *name = store_name(&c->at);
	auto_free char *to = xasprintf("%s/%s", whole, name);
	int rc = make_dir(whole, err);

	if (!rc)
		rc = move(c->dir, to, err);
	return rc ? rc : move(small, c->dir, err);
}

/* Leaves the case as it was found if it does not show again; that is no failure. */
static int make_small(struct crash *c, struct err *err)
{
	struct shrink_opts how = { .max_runs = SHRINK_RUNS, .ctx = c->t, .step = on_try };
	struct shrink_result result = { 0 };
	auto_free char *small = xasprintf("%s.small", c->dir);
	struct stored_case stored;
	struct err why = ERR_INIT;
	int rc = store_load(c->dir, &stored, err);

	if (rc)
		return rc;
	rc = shrink_case(&stored, &how, small, &result, &why);
	stored_case_release(&stored);
	if (rc == 0 && result.ops_after) {
		c->ops = result.ops_after;
		return take_place(c, small, err);
	}
	if (rc < 0 && rc != -EAGAIN)
		task_tell(c->t, MSG_NOTE, why.msg, NULL, 0);
	return 0;
}

/* ---- cutting the power ---- */

static int open_run(struct task *t, struct err *err)
{
	struct run_opts opts = { .target = t->opts->sides.target,
				 .guarantee = t->opts->crash_guarantee
						      ? guarantee_find(t->opts->crash_guarantee)
						      : NULL,
				 .modes = t->opts->crash_modes,
				 .budget = 50,
				 .seed = t->opts->search.seed };

	opts.target.spec = t->opts->specs[0];
	opts.target.worker = t->o.number;
	opts.target.kmsg = t->o.kmsg;
	t->run_opts = opts;
	/* Beyond those of earlier runs, and never that of another task. */
	if (!t->run)
		t->base = (store_next_base(t->opts->dir) / TASKS_MAX + 1) * TASKS_MAX + t->o.number;
	return t->run ? 0 : run_open(&opts, &t->run, err);
}

/* The operations that led here, without those that fail after having made a file. */
static void path_for_crash(struct search *s, struct script *out)
{
	bool no_reflink = differences_find(s->stepper->sides[0]->differences, DIFFER_NO_REFLINK);
	struct script all;

	script_init(&all);
	search_path(s, &all);
	for (size_t i = 0; i < all.w.ops.n; i++)
		if (!no_reflink || !streq(all.w.ops.v[i].def->name, "reflink"))
			script_add_op(out, &all.w.ops.v[i]);
	script_release(&all);
}

/* Whether the last step promised something: before that, a crash may lose it anyway. */
static bool makes_durable(const struct search *s)
{
	const struct step *st;

	if (s->last == UINT32_MAX)
		return false;
	st = &s->alphabet.steps.v[s->last];
	for (uint32_t k = 0; k < st->n; k++)
		if (workload_persists(&s->alphabet.w, st->first + k))
			return true;
	return false;
}

static int crash_path(struct task *t, const struct script *path, struct search *s, struct err *err)
{
	struct crash crash = { .t = t };
	struct run_reporter reporter = { .found = on_crash_found, .ctx = &crash };
	struct run_totals totals = { 0 };
	struct err why = ERR_INIT;
	int rc = run_workload(t->run, &path->w, &reporter, &totals, &why);

	if (rc && rc != -ECANCELED)
		task_tell(t, MSG_ERROR, why.msg, NULL, 0);
	s->progress->crash_states += totals.unique_states;
	rc = crash.dir ? make_small(&crash, err) : 0;
	if (crash.dir && !rc)
		task_tell(t, MSG_FOUND, crash.words, crash.dir, crash.ops);
	free(crash.dir);
	free(crash.words);
	return rc;
}

int task_after_step(void *ctx, struct search *s, struct err *err)
{
	struct task *t = ctx;
	struct script path;

	if (!makes_durable(s) || ++t->transitions % t->opts->crash_every)
		return 0;
	int rc = open_run(t, err);
	if (rc)
		return rc;
	script_init(&path);
	path_for_crash(s, &path);
	if (path.w.ops.n)
		rc = crash_path(t, &path, s, err);
	script_release(&path);
	task_count_cases(t, s);
	return rc;
}
