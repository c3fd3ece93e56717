/* SPDX-License-Identifier: MIT */
/* task.c - one task: a process that searches. */
#include "explore/task.h"

#include "base/below.h"
#include "explore/finding_dir.h"
#include "explore/explore_pickle.h"
#include "explore/explore_plan.h"

enum { ROOM_EVERY = 16, ROOM_STEPS = 1000, WALK_DEPTH = 400 };
#define SEED_STEP 0x632be59bd9b4e019ULL

void task_tell(struct task *t, enum message_kind kind, const char *words, const char *dir,
	       uint64_t ops)
{
	struct message m = { .kind = kind, .task = t->o.number, .ops = ops };

	*t->o.found += kind == MSG_FOUND || kind == MSG_CUT_SHORT;
	snprintf(m.words, sizeof(m.words), "%s", words);
	snprintf(m.dir, sizeof(m.dir), "%s", dir ? dir : "");
	pool_tell(t->o.pool, kind, &m, sizeof(m));
}

bool task_has_enough(struct task *t, const char *signature, unsigned most)
{
	unsigned n = 0;

	for (size_t i = 0; i < t->signatures.n; i++)
		n += streq(t->signatures.v[i], signature);
	vec_push(&t->signatures, xstrdup(signature));
	t->o.shared->not_kept += n >= most;
	return n >= most;
}

void task_count_cases(const struct task *t, struct search *s)
{
	if (t->opts->max_cases ? *t->o.found >= t->opts->max_cases
			       : t->o.shared->cases >= CASES_MAX)
		s->progress->stop = true;
}

bool task_cut(const struct task *t)
{
	return t->o.shared->cut;
}

uint64_t task_next_case(struct task *t)
{
	return finding_dir_free(t->opts->dir, ++t->o.shared->cases, t->o.number);
}

/* ---- room ---- */

static int report_path(struct task *t, struct search *s, struct step_result *result,
		       struct err *err)
{
	auto_call(script_release) struct script path;

	script_init(&path);
	search_path(s, &path);
	return task_found(t, s, &path, result, err);
}

/*
 * Walks ask for their room themselves. Other orders are asked now and then, where they are, and
 * when they end; they go on from there.
 */
static int check_room(struct task *t, struct search *s, struct err *err)
{
	auto_call(step_result_release) struct step_result result = { 0 };
	int rc = stepper_check_room(&t->stepper, &result, err);

	if (!rc && result.verdict == STEP_DIFFERENT)
		rc = report_path(t, s, &result, err);
	return rc;
}

/* To where it was. If that does not work, it is found as well, and there is nowhere to go on. */
static int go_back(struct task *t, struct search *s, const struct point *here, struct err *err)
{
	auto_call(step_result_release) struct step_result result = { 0 };
	size_t n = s->log.path.n;
	auto_free uint32_t *path = xmalloc(n * sizeof(*path) + 1);

	memcpy(path, s->log.path.v, n * sizeof(*path));
	script_log_restore(&s->log, s->saves, path, n);
	int rc = stepper_restore(&t->stepper, here, &result, err);
	if (!rc && result.verdict == STEP_DIFFERENT) {
		s->progress->stop = true;
		rc = report_path(t, s, &result, err);
	}
	return rc;
}

static int check_room_and_return(struct task *t, struct search *s, struct err *err)
{
	struct point here = { 0 };
	int rc = stepper_save(&t->stepper, &here, err);

	if (rc)
		return rc;
	script_log_save(&s->log, ++s->saves);
	rc = check_room(t, s, err);
	if (!rc)
		rc = go_back(t, s, &here, err);
	stepper_drop(&t->stepper, &here);
	return rc;
}

static bool asks_for_room(const struct task *t, const struct search *s)
{
	return s->opts->order != SEARCH_WALK && t->stepper.sides[0]->ops->empty;
}

static int after_step(void *ctx, struct search *s, struct err *err)
{
	struct task *t = ctx;
	int rc = t->opts->crash_every ? task_after_step(ctx, s, err) : 0;

	if (rc || !s->log.path.n || !asks_for_room(t, s) || ++t->since_room < ROOM_STEPS)
		return rc;
	t->since_room = 0;
	return check_room_and_return(t, s, err);
}

/* ---- the task itself ---- */

void task_vary(const struct explore_opts *o, unsigned number, bool walks,
	       struct search_opts *search, struct inputs *in)
{
	uint64_t first = o->swarm_i ? o->swarm_i - 1 : 0;
	uint64_t global = first + (uint64_t)number * (o->swarm_n ? o->swarm_n : 1);

	*search = o->search;
	search->seed += global * SEED_STEP;
	if (o->vary && global) {
		search->order = (enum search_order)((search->order + global) % 3);
		if (search->order != SEARCH_WALK)
			search->depth = min(search->depth, 12u);
		in->paths = in->flags = in->sizes = (enum dist)(global % DIST_END);
	}
	if (walks && search->order != SEARCH_WALK) {
		search->order = SEARCH_WALK;
		search->depth = WALK_DEPTH;
	}
	search->apart = o->share && o->vary;
	/* Tasks that share visited states take the same steps, each in an order of its own. */
	if (o->share && !o->vary && search->order != SEARCH_WALK) {
		search->seed = o->search.seed + first * SEED_STEP;
		search->shuffle = number;
	}
}

static void note_sides(struct task *t)
{
	/* Two disks of their own, and yet there is little to find. */
	for (unsigned i = 1; i < t->stepper.n && !t->o.number; i++)
		if (!side_in_process(t->stepper.sides[0]) &&
		    streq(t->stepper.sides[i]->spec, t->stepper.sides[0]->spec)) {
			auto_free char *words = xasprintf(
				"%.200s is compared with itself: only what differs from one time "
				"to the next can be found",
				t->stepper.sides[0]->spec);

			task_tell(t, MSG_WARNING, words, NULL, 0);
		}
	for (unsigned i = 0; i < t->stepper.n; i++) {
		const struct side *s = t->stepper.sides[i];

		if (s->note) {
			auto_free char *words = xasprintf("%s: %s", s->spec, s->note);

			task_tell(t, MSG_NOTE, words, NULL, 0);
		}
	}
}

/* A side that cannot go back to a state it was in can only walk. */
static void choose_walks(struct task *t)
{
	struct inputs in = *t->opts->inputs;
	struct search_opts how;

	task_vary(t->opts, t->o.number, false, &how, &in);
	for (unsigned i = 0; i < t->stepper.n && how.order != SEARCH_WALK; i++) {
		const struct side *s = t->stepper.sides[i];

		if (s->saving != SAVING_NEVER)
			continue;
		auto_free char *words =
			xasprintf("states of %.200s cannot be saved: it is searched by walks, as "
				  "with --order walk",
				  s->spec);
		t->o.shared->walks = true;
		task_tell(t, MSG_WARNING, words, NULL, 0);
		return;
	}
}

/* A task that was killed before it first wrote where it was begins anew, if others did write. */
static bool goes_on(const struct task *t)
{
	auto_free char *own = xasprintf("task-%u.pickle", t->o.number);
	auto_free char *any = case_find(t->opts->dir, EXPLORE_PICKLES);

	return t->opts->resume && (!any || below_exists(t->opts->dir, own));
}

static int task_search(struct task *t, struct err *err)
{
	struct inputs in = *t->opts->inputs;
	struct search_opts how;
	auto_call(pickle_release) struct pickle pickle = { 0 };
	auto_free char *path = xasprintf("%s/task-%u.pickle", t->opts->dir, t->o.number);
	auto_call(search_release) struct search s = { .opts = &how,
						      .in = &in,
						      .stepper = &t->stepper,
						      .visited = t->o.visited,
						      .task = t->o.number,
						      .progress = &t->o.shared->progress,
						      .found = task_found,
						      .after = after_step,
						      .ctx = t,
						      .walk = t->o.shared->walk_from,
						      .pickle_path = path };
	int rc = 0;

	choose_walks(t);
	task_vary(t->opts, t->o.number, t->o.shared->walks, &how, &in);
	if (!how.room_every)
		how.room_every = ROOM_EVERY;
	if (t->opts->operations)
		s.until = max(t->opts->operations / t->opts->jobs, (uint64_t)1);
	if (goes_on(t))
		rc = search_resume(&s, &pickle, err);
	search_init(&s);
	if (!rc)
		rc = search_run(&s, err);
	if (!rc && asks_for_room(t, &s) && s.result.verdict == STEP_SAME && s.log.path.n)
		rc = check_room(t, &s, err);
	return rc;
}

static void on_starting(void *ctx)
{
	pool_beat_slow(ctx);
}

void task_watch_starts(struct task *t, struct target_opts *target)
{
	target->starting = on_starting;
	target->starting_ctx = t->o.pool;
}

/* Steps that another process did of the task count. */
static void go_on_counting(struct task *t)
{
	const struct search_progress *p = &t->o.shared->progress;
	struct stepper_counts *c = &t->stepper.counts;
	struct side_counts *side = &t->stepper.sides[0]->counts;

	c->operations += p->operations;
	c->steps += p->steps;
	c->adopted += p->adopted;
	c->abandoned += p->abandoned;
	c->compared += p->compared;
	side->saves += p->saves;
	side->restores += p->restores;
	side->mounts += p->mounts;
}

void task_main(const struct task_opts *opts)
{
	struct task t = { .o = *opts, .opts = opts->opts };
	struct side_opts sides = t.opts->sides;
	struct err err = ERR_INIT;

	sides.target.worker = opts->number;
	sides.target.kmsg = opts->kmsg;
	task_watch_starts(&t, &sides.target);
	int rc = stepper_open(&t.stepper, &sides, t.opts->specs, t.opts->n_specs, &err);
	bool opened = !rc;
	if (!rc && t.opts->crash_every)
		rc = task_open_crashes(&t, &err);
	if (!rc) {
		pool_ready(opts->pool);
		note_sides(&t);
		go_on_counting(&t);
		t.stepper.coverage = &opts->shared->coverage;
		t.stepper.beat = &opts->shared->progress.beat;
		t.stepper.cut = &opts->shared->cut;
		t.stepper.note = &opts->shared->note;
		t.stepper.compare_every = t.opts->compare_every ? t.opts->compare_every : 1;
		rc = task_search(&t, &err);
	}
	if (opened)
		stepper_close(&t.stepper);
	run_close(t.run);
	if (rc)
		task_tell(&t, MSG_FATAL, err.msg, NULL, 0);
}
