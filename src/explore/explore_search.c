/* SPDX-License-Identifier: MIT */
/*
 * explore_search.c - walks at random through states; the other orders, in frames.c, share what is
 * here.
 *
 * S1: `at` is the hash of the state that all sides are in, and the log's path leads there.
 */
#include "explore/explore_search.h"

#include <errno.h>

#include "explore/search_impl.h"

enum { ALPHABET_WALK = 4096, ALPHABET_SMALL = 96, WALKS_PER_ALPHABET = 64, ANCHOR_EVERY = 64 };
enum { KEEP_MIN_STEPS = 64, KEEP_SHARE = 20 };
#define KEEP_NS ((uint64_t)60000000000)

void search_init(struct search *s)
{
	alphabet_init(&s->alphabet);
	rng_init(&s->rng, s->opts->seed ^ s->opts->shuffle * 0x9e3779b97f4a7c15ULL);
	/* In this process trying costs no more than asking. */
	s->eager = !side_in_process(s->stepper->sides[0]);
}

/* Forgets what a walk saved. */
static void weigh_anchors(struct search *s)
{
	for (size_t i = 0; i < s->anchors.n; i++) {
		stepper_drop(s->stepper, s->anchors.v[i].point);
		free(s->anchors.v[i].point);
	}
	vec_clear(&s->anchors);
}

void search_release(struct search *s)
{
	weigh_anchors(s);
	vec_release(&s->anchors);
	alphabet_release(&s->alphabet);
	script_log_release(&s->log);
	step_result_release(&s->result);
	vec_release(&s->hints);
	if (s->claims != s->visited)
		visited_close(s->claims);
	s->claims = NULL;
}

void search_path(const struct search *s, struct script *out)
{
	script_from_path(&s->log, &s->alphabet, out);
}

/* ---- telling others ---- */

static void tell_progress(struct search *s)
{
	struct search_progress *p = s->progress;
	const struct side_counts *c = &s->stepper->sides[0]->counts;

	p->operations = s->stepper->counts.operations;
	p->steps = s->stepper->counts.steps;
	p->adopted = s->stepper->counts.adopted;
	p->abandoned = s->stepper->counts.abandoned;
	p->compared = s->stepper->counts.compared;
	p->saves = c->saves;
	p->restores = c->restores;
	p->mounts = c->mounts;
	p->undone = s->undone;
	p->walks = s->walk;
	p->depth = s->log.path.n;
	p->beat++;
}

void search_tell_path(struct search *s)
{
	struct search_progress *p = s->progress;
	uint32_t n = (uint32_t)min(s->log.path.n, (size_t)SCRIPT_MAX);

	p->path_n = 0;
	if (n)
		memcpy(p->path, s->log.path.v, n * sizeof(*p->path));
	p->path_n = n;
}

bool search_stopped(struct search *s)
{
	return s->progress->stop || (s->until && s->stepper->counts.operations >= s->until);
}

void search_draw(const struct search_opts *opts, const struct inputs *in, uint64_t seed,
		 struct alphabet *out)
{
	bool walks = opts->order == SEARCH_WALK;
	size_t usual = walks ? ALPHABET_WALK : ALPHABET_SMALL;

	alphabet_draw(out, in, seed, opts->alphabet ? opts->alphabet : usual, !walks);
}

static void draw(struct search *s, uint64_t seed)
{
	s->progress->alphabet_seed = seed;
	search_draw(s->opts, s->in, seed, &s->alphabet);
	vec_clear(&s->hints);
	for (size_t i = 0; i < s->alphabet.steps.n; i++)
		vec_push(&s->hints, UINT32_MAX);
	stepper_begin(s->stepper, &s->alphabet);
}

/* ---- moving ---- */

int search_report(struct search *s, struct err *err)
{
	auto_call(script_release) struct script script;

	script_init(&script);
	search_path(s, &script);
	return s->found(s->ctx, s, &script, &s->result, err);
}

static void count_visit(struct search *s, enum visit visit)
{
	s->progress->overlapped += visit == VISIT_SECOND;
	s->progress->states += visit == VISIT_NEW;
	s->progress->revisits += visit != VISIT_NEW;
	if (s->log.path.n > s->progress->depth_max)
		s->progress->depth_max = s->log.path.n;
}

/* Counts where all sides are as visited. */
static void visit_only(struct search *s)
{
	count_visit(s, visited_add(s->visited, s->at, s->task));
}

bool search_claim(struct search *s, bool *again)
{
	struct visited_claim c = { s->task, s->walk, (uint32_t)s->log.path.n };
	bool apart = s->claims != s->visited;
	enum visit visit;

	if (apart)
		visit_only(s);
	bool mine = visited_claim(s->claims, s->at, c, s->opts->depth, &visit, again);
	if (!apart)
		count_visit(s, visit);
	return mine;
}

/* Goes to the empty file system. 1 if that fails, too. */
int search_go_home(struct search *s, struct err *err)
{
	int rc = stepper_reset(s->stepper, &s->result, err);

	script_log_reset(&s->log);
	if (!rc && s->result.verdict == STEP_SAME)
		rc = stepper_hash(s->stepper, &s->at, err);
	if (!rc && s->result.verdict == STEP_DIFFERENT)
		rc = err_set(err, -EIO, "%s cannot be put back to an empty file system: %.300s",
			     s->stepper->sides[0]->spec, s->result.findings.v[0].words);
	return rc;
}

int search_take(struct search *s, uint32_t step, struct err *err)
{
	script_log_step(&s->log, step);
	s->last = step;
	uint32_t n = (uint32_t)s->log.path.n;
	if (n <= SCRIPT_MAX) {
		s->progress->path[n - 1] = step;
		s->progress->path_n = n;
	}
	int rc = stepper_step(s->stepper, step, &s->result, err);
	tell_progress(s);
	return rc;
}

/* ---- to go on another time ---- */

static struct pickle_states states_of(const struct search *s)
{
	return (struct pickle_states){ s->visited, s->claims, s->task };
}

/* Tasks with other steps than those they share with search on their own. */
static int open_claims(struct search *s, struct err *err)
{
	if (s->claims)
		return 0;
	if (s->opts->apart)
		return visited_open(s->visited->bytes, &s->claims, err);
	s->claims = s->visited;
	return 0;
}

int search_resume(struct search *s, struct pickle *out, struct err *err)
{
	int rc = open_claims(s, err);

	if (rc)
		return rc;
	struct pickle_states states = states_of(s);
	rc = pickle_load(s->pickle_path, out, &states, err);
	if (rc)
		return rc;
	s->resumed = out;
	s->left_out = out->left_out;
	return 0;
}

/* The next time comes later if it takes long. */
static void wind_up(struct search *s, uint64_t began)
{
	uint64_t now = util_now_ns(), usual = max(KEEP_NS, (now - began) * KEEP_SHARE);

	s->keep_at_ns = now + (s->opts->keep_ns ? s->opts->keep_ns : usual);
}

bool search_is_time_to_keep(const struct search *s)
{
	return s->pickle_path && util_now_ns() >= s->keep_at_ns;
}

int search_keep(struct search *s, struct pickle *p, struct err *err)
{
	struct pickle_states states = states_of(s);
	uint64_t began = util_now_ns();
	int rc = 0;

	p->walk = s->walk;
	p->left_out = s->left_out;
	if (s->pickle_path)
		rc = pickle_save(p, &states, s->pickle_path, err);
	pickle_release(p);
	wind_up(s, began);
	s->progress->beat++;
	return rc;
}

/* ---- at random ---- */

/*
 * Most steps that are drawn blindly fail: something is not there. Asking the reference costs a
 * hundredth of trying, so of those that change nothing only one in four is taken; what makes
 * something durable changes nothing that can be seen, and is taken.
 */
static bool makes_durable(const struct search *s, uint32_t step)
{
	return op_persists(&s->alphabet.w.ops.v[s->alphabet.steps.v[step].first]);
}

static uint32_t choose(struct search *s)
{
	uint32_t step = 0;
	struct hash128 h;
	int64_t result;

	for (unsigned tries = 0; tries < 8; tries++) {
		step = (uint32_t)rng_below(&s->rng, s->alphabet.steps.n);
		if (!s->eager || !stepper_predict(s->stepper, step, &h, &result) ||
		    !hash_eq(h, s->at) || (result >= 0 && makes_durable(s, step)) ||
		    !rng_below(&s->rng, 4))
			break;
	}
	return step;
}

static bool saves_cheaply(const struct search *s)
{
	return !any_of(i, s->stepper->n, s->stepper->sides[i]->saving != SAVING_CHEAP);
}

/* Saves where we are: what is found later can be done again from here. */
static int drop_anchor(struct search *s, struct err *err)
{
	auto_free struct point *point = xcalloc(1, sizeof(*point));
	int rc = stepper_save(s->stepper, point, err);

	if (rc)
		return rc;
	vec_push(&s->anchors, (struct anchor){ steal(point), s->log.path.n });
	script_log_save(&s->log, ++s->saves);
	return 0;
}

/* A walk that is under way is done again from its beginning. */
static int keep_walk(struct search *s, struct err *err)
{
	struct pickle p = { 0 };

	return search_is_time_to_keep(s) ? search_keep(s, &p, err) : 0;
}

static int one_walk(struct search *s, uint32_t depth, struct err *err)
{
	uint32_t every = s->opts->save_every ? s->opts->save_every : ANCHOR_EVERY;
	bool cheap = saves_cheaply(s);
	int rc = search_go_home(s, err);

	weigh_anchors(s);
	search_tell_path(s);
	for (uint32_t d = 0; d < depth && !rc && !search_stopped(s); d++) {
		rc = search_take(s, choose(s), err);
		if (rc || s->result.verdict != STEP_SAME)
			break;
		rc = stepper_hash(s->stepper, &s->at, err);
		if (!rc)
			visit_only(s);
		if (!rc && s->after)
			rc = s->after(s->ctx, s, err);
		if (!rc && d % KEEP_MIN_STEPS == KEEP_MIN_STEPS - 1)
			rc = keep_walk(s, err);
		/* A state that was not compared is nothing to begin with. */
		if (!rc && cheap && d % every == every - 1 && !s->stepper->since)
			rc = drop_anchor(s, err);
	}
	if (!rc && s->result.verdict == STEP_SAME && s->stepper->since)
		rc = stepper_compare(s->stepper, &s->result, err);
	if (!rc && s->result.verdict == STEP_DIFFERENT)
		rc = search_report(s, err);
	return rc;
}

/* Everything is removed: can it be, and does its room come back? */
static int check_room(struct search *s, struct err *err)
{
	if (s->result.verdict != STEP_SAME)
		return 0;
	int rc = stepper_check_room(s->stepper, &s->result, err);
	return !rc && s->result.verdict == STEP_DIFFERENT ? search_report(s, err) : rc;
}

/* Of the alphabet of the walk at hand. */
static uint64_t walk_seed(const struct search *s)
{
	return s->opts->seed + s->walk / WALKS_PER_ALPHABET * 0x9e3779b9u;
}

static int walk(struct search *s, struct err *err)
{
	struct pickle pickle = { 0 };
	int rc = 0;

	if (s->resumed)
		s->walk = max(s->walk, s->resumed->walk);
	if (s->walk)
		draw(s, walk_seed(s));
	for (; !rc && !search_stopped(s); s->walk++) {
		struct rng r;

		if (s->walk % WALKS_PER_ALPHABET == 0)
			draw(s, walk_seed(s));
		/* Each walk has numbers of its own: it can be begun in the middle of a run. */
		rng_init(&r, s->opts->seed ^ (s->walk + 1) * 0x2545f4914f6cdd1dULL);
		s->rng = r;
		rc = one_walk(s, s->opts->depth, err);
		if (!rc && s->opts->room_every && s->walk % s->opts->room_every == 0 &&
		    !search_stopped(s))
			rc = check_room(s, err);
	}
	return rc ? rc : search_keep(s, &pickle, err);
}

/* Which round is searched: tasks with the same steps search the same. */
static void begin_round(struct search *s)
{
	uint64_t want = s->resumed ? s->resumed->walk : 0, now = atomic_load(&s->claims->round);

	while (now < want && !atomic_compare_exchange_weak(&s->claims->round, &now, want))
		;
	s->walk = max(now, want);
	if (s->resumed && s->walk != want)
		s->resumed = NULL; /* another task is ahead; what was to be done is no more */
}

/*
 * One alphabet after the other: each is searched until all was visited, or for the operations of a
 * round, so that all inputs get their turn. There is always another one: that never is all.
 */
static int rounds(struct search *s, struct err *err)
{
	bool done = false;
	int rc = 0;

	do {
		begin_round(s);
		draw(s, s->opts->seed + s->walk * 0x9e3779b9u);
		if (!s->alphabet.steps.n)
			return err_set(err, -EINVAL, "no step could be drawn");
		if (s->opts->round)
			s->round_ends = s->stepper->counts.operations + s->opts->round;
		rc = search_frames(s, &done, err);
		s->resumed = NULL;
		if (s->opts->round && !search_stopped(s)) {
			uint64_t was = s->walk;

			atomic_compare_exchange_strong(&s->claims->round, &was, was + 1);
		}
	} while (!rc && s->opts->round && !search_stopped(s));
	s->progress->done = !rc && done && !s->opts->round && !s->left_out;
	return rc;
}

int search_run(struct search *s, struct err *err)
{
	assert(s->opts->depth && s->opts->depth <= SCRIPT_MAX);
	int rc = open_claims(s, err);

	if (rc)
		return rc;
	wind_up(s, util_now_ns());
	if (s->opts->order == SEARCH_WALK)
		return walk(s, err);
	return rounds(s, err);
}
