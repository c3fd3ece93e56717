/* SPDX-License-Identifier: MIT */
/*
 * search.c
 *
 * S1: `at` is the hash of the state that all sides are in, and the log's path leads there.
 * S2: a frame of the stack can be reached: it was saved, or one below it was and the steps between
 *     them are in their paths.
 */
#include "explore/search.h"

#include <errno.h>

#include "explore/pickle.h"

enum { ALPHABET_WALK = 4096, ALPHABET_SMALL = 96, WALKS_PER_ALPHABET = 64, SAVE_EVERY = 8 };

void search_init(struct search *s)
{
	alphabet_init(&s->alphabet);
	rng_init(&s->rng, s->opts->seed);
	/* In this process trying costs no more than asking. */
	s->eager = !side_in_process(s->stepper->sides[0]);
}

void search_release(struct search *s)
{
	alphabet_release(&s->alphabet);
	script_log_release(&s->log);
	step_result_release(&s->result);
	vec_release(&s->hints);
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

static void tell_path(struct search *s)
{
	struct search_progress *p = s->progress;
	uint32_t n = (uint32_t)min(s->log.path.n, (size_t)SCRIPT_MAX);

	p->path_n = 0;
	if (n)
		memcpy(p->path, s->log.path.v, n * sizeof(*p->path));
	p->path_n = n;
}

static bool stopped(struct search *s)
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

static int report(struct search *s, struct err *err)
{
	struct script script;

	script_init(&script);
	search_path(s, &script);
	int rc = s->found(s->ctx, s, &script, &s->result, err);
	script_release(&script);
	return rc;
}

/* Where all sides are now. Counts it as visited. */
static int arrive(struct search *s, bool *fresh, struct err *err)
{
	int rc = stepper_hash(s->stepper, &s->at, err);

	if (rc)
		return rc;
	*fresh = visited_add(s->visited, s->at) == VISIT_NEW;
	if (s->log.path.n > s->progress->depth_max)
		s->progress->depth_max = s->log.path.n;
	s->progress->states += *fresh;
	s->progress->revisits += !*fresh;
	return 0;
}

/* To the empty file system. 1 if not even that works. */
static int go_home(struct search *s, struct err *err)
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

static int take(struct search *s, uint32_t step, struct err *err)
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

static int one_walk(struct search *s, uint32_t depth, struct err *err)
{
	bool fresh;
	int rc = go_home(s, err);

	tell_path(s);
	for (uint32_t d = 0; d < depth && !rc && !stopped(s); d++) {
		rc = take(s, choose(s), err);
		if (rc || s->result.verdict != STEP_SAME)
			break;
		rc = arrive(s, &fresh, err);
		if (!rc && s->after)
			rc = s->after(s->ctx, s, err);
	}
	if (!rc && s->result.verdict == STEP_SAME && s->stepper->since)
		rc = stepper_compare(s->stepper, &s->result, err);
	if (!rc && s->result.verdict == STEP_DIFFERENT)
		rc = report(s, err);
	return rc;
}

/* Everything is removed: can it be, and does its room come back? */
static int check_room(struct search *s, struct err *err)
{
	if (s->result.verdict != STEP_SAME)
		return 0;
	int rc = stepper_check_room(s->stepper, &s->result, err);
	return !rc && s->result.verdict == STEP_DIFFERENT ? report(s, err) : rc;
}

/* Of the alphabet of the walk at hand. */
static uint64_t walk_seed(const struct search *s)
{
	return s->opts->seed + s->walk / WALKS_PER_ALPHABET * 0x9e3779b9u;
}

static int keep_pickle(struct search *s, struct pickle *p, struct err *err)
{
	p->inputs = search_inputs_hash(s->opts, s->in);
	p->walk = s->walk;
	int rc = s->pickle_path ? pickle_save(p, s->visited, s->pickle_path, err) : 0;
	pickle_release(p);
	return rc;
}

static int walk(struct search *s, struct err *err)
{
	struct pickle pickle = { 0 };
	int rc = 0;

	if (s->resumed) {
		s->walk = s->resumed->walk;
		draw(s, walk_seed(s));
	}
	for (; !rc && !stopped(s); s->walk++) {
		struct rng r;

		if (s->walk % WALKS_PER_ALPHABET == 0)
			draw(s, walk_seed(s));
		/* Each walk has numbers of its own: it can be begun in the middle of a run. */
		rng_init(&r, s->opts->seed ^ (s->walk + 1) * 0x2545f4914f6cdd1dULL);
		s->rng = r;
		rc = one_walk(s, s->opts->depth, err);
		if (!rc && s->opts->room_every && s->walk % s->opts->room_every == 0 && !stopped(s))
			rc = check_room(s, err);
	}
	return rc ? rc : keep_pickle(s, &pickle, err);
}

/* ---- depth first and breadth first ---- */

struct frame {
	struct hash128 hash;
	struct point point; /* if saved */
	bool saved;
	bool unknown; /* of an earlier run: the hash is not known before we were there */
	uint32_t id;  /* of the saved state, in the log */
	struct script_path path;
	uint32_t *todo; /* steps, the next one last */
	size_t n;
};

struct frames vec_of(struct frame *);

static struct frame *frame_new(struct search *s)
{
	struct frame *f = xcalloc(1, sizeof(*f));

	f->hash = s->at;
	f->path.n = s->log.path.n;
	f->path.steps = xmalloc(f->path.n * sizeof(uint32_t) + 1);
	if (f->path.n)
		memcpy(f->path.steps, s->log.path.v, f->path.n * sizeof(uint32_t));
	return f;
}

static void frame_free(struct search *s, struct frame *f)
{
	if (f->saved)
		stepper_drop(s->stepper, &f->point);
	free(f->path.steps);
	free(f->todo);
	free(f);
}

static int frame_save(struct search *s, struct frame *f, struct err *err)
{
	static uint32_t ids;

	if (f->saved)
		return 0;
	assert(hash_eq(f->hash, s->at));
	int rc = stepper_save(s->stepper, &f->point, err);
	if (!rc) {
		f->saved = true;
		f->id = ++ids;
		script_log_save(&s->log, f->id);
	}
	return rc;
}

/*
 * Which steps to take from here: those that change something, in an order of their own for each
 * seed, and on top of them those that do not. Where nobody can tell, all of them.
 */
static void frame_plan(struct search *s, struct frame *f)
{
	size_t n = s->alphabet.steps.n, changing = 0;
	auto_free uint32_t *idle = xmalloc(n * sizeof(*idle) + 1);
	size_t idles = 0;
	struct hash128 h;
	int64_t ignored;

	f->todo = xmalloc(n * sizeof(*f->todo) + 1);
	for (uint32_t i = 0; i < n; i++) {
		if (stepper_predict(s->stepper, i, &h, &ignored) && hash_eq(h, f->hash))
			idle[idles++] = i;
		else
			f->todo[changing++] = i;
	}
	for (size_t i = changing; i > 1; i--) {
		size_t k = rng_below(&s->rng, i);
		uint32_t other = f->todo[k];

		f->todo[k] = f->todo[i - 1];
		f->todo[i - 1] = other;
	}
	for (size_t i = 0; i < idles; i++)
		f->todo[changing + i] = idle[i];
	f->n = n;
}

/* A step that leads to `to`, as the reference says: UINT32_MAX if there is none. */
static uint32_t find_step_to(struct search *s, struct hash128 to, uint32_t last)
{
	struct hash128 h;
	int64_t ignored;
	uint32_t hint = last != UINT32_MAX ? s->hints.v[last] : UINT32_MAX;

	if (hint != UINT32_MAX && stepper_predict(s->stepper, hint, &h, &ignored) && hash_eq(h, to))
		return hint;
	for (uint32_t i = 0; i < s->alphabet.steps.n; i++)
		if (stepper_predict(s->stepper, i, &h, &ignored) && hash_eq(h, to)) {
			if (last != UINT32_MAX)
				s->hints.v[last] = i;
			return i;
		}
	return UINT32_MAX;
}

/* The nearest frame on the way to `f` that was saved; the lowest always is. */
static struct frame *nearest_saved(const struct frames *stack, const struct frame *f)
{
	struct frame *best = NULL;

	if (f->saved)
		return (struct frame *)(uintptr_t)f;
	for (size_t i = 0; i < stack->n; i++) {
		struct frame *x = stack->v[i];

		if (x->saved && x->path.n <= f->path.n &&
		    (!x->path.n ||
		     memcmp(x->path.steps, f->path.steps, x->path.n * sizeof(uint32_t)) == 0) &&
		    (!best || x->path.n > best->path.n))
			best = x;
	}
	return best;
}

enum moved { MOVED, MOVED_DIFFERENT, MOVED_LOST };

/* Puts a saved state back and does the steps again that led from there to `f`. */
static int mount_back(struct search *s, const struct frames *stack, struct frame *f,
		      enum moved *out, struct err *err)
{
	struct frame *from = nearest_saved(stack, f);

	assert(from);
	script_log_restore(&s->log, from->id, from->path.steps, from->path.n);
	tell_path(s);
	int rc = stepper_restore(s->stepper, &from->point, &s->result, err);
	s->at = from->hash;
	for (size_t i = from->path.n; i < f->path.n && !rc && s->result.verdict == STEP_SAME; i++)
		rc = take(s, f->path.steps[i], err);
	if (!rc && s->result.verdict == STEP_SAME)
		rc = stepper_hash(s->stepper, &s->at, err);
	if (f->unknown && s->result.verdict == STEP_SAME) {
		f->hash = s->at;
		f->unknown = false;
	}
	*out = s->result.verdict == STEP_DIFFERENT   ? MOVED_DIFFERENT
	       : s->result.verdict == STEP_ABANDONED ? MOVED_LOST
	       : hash_eq(s->at, f->hash)	     ? MOVED
						     : MOVED_LOST;
	return rc;
}

/* The short way to where we are now is that of the frame; the log still has what happened. */
static void undo_path(struct search *s, const struct frame *f)
{
	s->undone++;
	vec_clear(&s->log.path);
	for (size_t i = 0; i < f->path.n; i++)
		vec_push(&s->log.path, f->path.steps[i]);
	tell_path(s);
}

/* Makes all sides be in the state of `f`, if they are not. */
static int move_to(struct search *s, const struct frames *stack, struct frame *f, bool lost,
		   enum moved *out, struct err *err)
{
	uint32_t last = s->log.path.n ? vec_last(&s->log.path) : UINT32_MAX;
	uint32_t back;
	int rc;

	*out = MOVED;
	if (f->unknown)
		return mount_back(s, stack, f, out, err);
	if (!lost && hash_eq(s->at, f->hash))
		return 0;
	back = lost ? UINT32_MAX : find_step_to(s, f->hash, last);
	if (back == UINT32_MAX)
		return mount_back(s, stack, f, out, err);
	rc = take(s, back, err);
	if (!rc && s->result.verdict == STEP_SAME)
		rc = stepper_hash(s->stepper, &s->at, err);
	if (rc)
		return rc;
	if (s->result.verdict == STEP_DIFFERENT)
		*out = MOVED_DIFFERENT;
	else if (s->result.verdict == STEP_ABANDONED || !hash_eq(s->at, f->hash))
		return mount_back(s, stack, f, out, err);
	else
		undo_path(s, f);
	return 0;
}

/* After something was found the sides are anywhere. */
static int recover(struct search *s, const struct frames *stack, struct frame *f, struct err *err)
{
	enum moved moved;
	int rc = report(s, err);

	if (rc)
		return rc;
	rc = move_to(s, stack, f, true, &moved, err);
	if (!rc && moved != MOVED)
		rc = err_set(err, -EIO,
			     "after a difference, %s cannot be put back to a state "
			     "that was saved",
			     s->stepper->sides[0]->spec);
	return rc;
}

/* One step from the state of `f`. 1 if it led to a new state, which all sides are in. */
static int try_step(struct search *s, const struct frames *stack, struct frame *f, bool *lost,
		    struct err *err)
{
	enum moved moved;
	bool fresh = false;
	int rc = move_to(s, stack, f, *lost, &moved, err);

	*lost = false;
	if (rc)
		return rc;
	if (moved == MOVED_DIFFERENT)
		return recover(s, stack, f, err);
	if (moved == MOVED_LOST) {
		f->n = 0; /* it cannot be reached again; what is left of it is left out */
		*lost = true;
		return 0;
	}
	rc = take(s, f->todo[--f->n], err);
	if (rc)
		return rc;
	if (s->result.verdict == STEP_DIFFERENT)
		return recover(s, stack, f, err);
	*lost = s->result.verdict == STEP_ABANDONED;
	if (*lost)
		return 0;
	rc = arrive(s, &fresh, err);
	/* A step that changes nothing leaves the path as it was. */
	if (!rc && hash_eq(s->at, f->hash) && s->log.path.n == f->path.n + 1)
		s->log.path.n--;
	if (!rc && s->after)
		rc = s->after(s->ctx, s, err);
	return rc ? rc : fresh;
}

static bool known_steps(const struct search *s, const struct pickle_steps *steps)
{
	for (size_t i = 0; i < steps->n; i++)
		if (steps->v[i] >= s->alphabet.steps.n)
			return false;
	return true;
}

/* The frames of an earlier run. The lowest is saved, so all can be reached. */
static int resume_frames(struct search *s, struct frames *list, struct err *err)
{
	const struct pickle *p = s->resumed;

	for (size_t i = 0; i < p->frames.n; i++) {
		const struct pickle_frame *from = &p->frames.v[i];
		struct frame *f = i ? xcalloc(1, sizeof(*f)) : list->v[0];

		if (!known_steps(s, &from->path) || !known_steps(s, &from->todo))
			return err_set(err, -EINVAL, "the state to go on from is of another run");
		free(f->todo);
		f->n = from->todo.n;
		f->todo = xmalloc(f->n * sizeof(uint32_t) + 1);
		memcpy(f->todo, from->todo.v, f->n * sizeof(uint32_t));
		if (!i)
			continue;
		f->unknown = true;
		f->path.n = from->path.n;
		f->path.steps = xmalloc(f->path.n * sizeof(uint32_t) + 1);
		memcpy(f->path.steps, from->path.v, f->path.n * sizeof(uint32_t));
		vec_push(list, f);
	}
	return 0;
}

static int keep_frames(struct search *s, const struct frames *list, size_t head, struct err *err)
{
	struct pickle p = { 0 };

	for (size_t i = 0; i < list->n; i++) {
		const struct frame *f = list->v[i];

		/* The lowest has to be there, whatever is left to do of it. */
		if (i == 0 || i >= head)
			pickle_add(&p, f->path.steps, f->path.n, f->todo, f->n);
	}
	return keep_pickle(s, &p, err);
}

static int search_frames(struct search *s, struct err *err)
{
	bool depth_first = s->opts->order == SEARCH_DEPTH;
	uint32_t every = s->opts->save_every ? s->opts->save_every : SAVE_EVERY;
	struct frames list = { 0 };
	size_t head = 0;
	bool lost = false, fresh;
	int rc = go_home(s, err);

	if (!rc)
		rc = arrive(s, &fresh, err);
	if (!rc) {
		vec_push(&list, frame_new(s));
		rc = frame_save(s, list.v[0], err);
		frame_plan(s, list.v[0]);
	}
	if (!rc && s->resumed)
		rc = resume_frames(s, &list, err);
	while (!rc && head < list.n && !stopped(s)) {
		struct frame *f = depth_first ? list.v[list.n - 1] : list.v[head];

		if (!f->n) {
			/* The lowest is kept: it is the way to all others. */
			if (depth_first && list.n == 1)
				break;
			if (depth_first) {
				frame_free(s, list.v[--list.n]);
			} else {
				if (head)
					frame_free(s, list.v[head]);
				head++;
			}
			continue;
		}
		rc = try_step(s, &list, f, &lost, err);
		if (rc <= 0 || s->log.path.n >= s->opts->depth)
			rc = min(rc, 0);
		else {
			struct frame *child = frame_new(s);

			rc = 0;
			vec_push(&list, child);
			frame_plan(s, child);
			if (!depth_first || (child->path.n % every) == 0)
				rc = frame_save(s, child, err);
		}
	}
	s->progress->done = !rc && !stopped(s);
	if (!rc)
		rc = keep_frames(s, &list, depth_first ? 0 : head, err);
	for (size_t i = depth_first || !head ? 0 : head; i < list.n; i++)
		frame_free(s, list.v[i]);
	if (!depth_first && head)
		frame_free(s, list.v[0]);
	vec_release(&list);
	return rc;
}

struct hash128 search_inputs_hash(const struct search_opts *opts, const struct inputs *in)
{
	auto_strbuf text = STRBUF_INIT;
	struct alphabet a;

	/* What is drawn tells what it is drawn from. */
	alphabet_init(&a);
	alphabet_draw(&a, in, opts->seed, 500, false);
	workload_print(&a.w, &text);
	strbuf_addf(&text, "order %d depth %u alphabet %u\n", (int)opts->order, opts->depth,
		    opts->alphabet);
	alphabet_release(&a);
	return hash_bytes(text.buf, text.len);
}

int search_run(struct search *s, struct err *err)
{
	assert(s->opts->depth && s->opts->depth <= SCRIPT_MAX);
	if (s->opts->order == SEARCH_WALK)
		return walk(s, err);
	draw(s, s->opts->seed);
	if (!s->alphabet.steps.n)
		return err_set(err, -EINVAL, "no step could be drawn");
	return search_frames(s, err);
}
