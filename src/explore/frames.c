/* SPDX-License-Identifier: MIT */
/*
 * frames.c - depth first and breadth first. A frame is a state with the steps that are still to be
 * taken from it: a stack of them, or a queue.
 *
 * F1: a frame can be reached: it was saved, or one on the way to it was, and the steps between them
 *     are in its path. The lowest is the empty file system, and always saved.
 */
#include <errno.h>

#include "explore/search_impl.h"

enum { SAVE_EVERY = 8 };

struct frame {
	struct hash128 hash;
	struct point point; /* if saved */
	bool saved;
	bool unknown; /* from an earlier run: its hash is unknown until it is reached */
	uint32_t id;  /* of the saved state, in the log */
	struct script_path path;
	struct script_path todo; /* steps, the next one last */
};

struct frames vec_of(struct frame *);

static struct frame *frame_new(struct search *s)
{
	struct frame *f = xcalloc(1, sizeof(*f));

	f->hash = s->at;
	f->path = script_path_of(s->log.path.v, s->log.path.n);
	return f;
}

static void frame_free(struct search *s, struct frame *f)
{
	if (f->saved)
		stepper_drop(s->stepper, &f->point);
	vec_release(&f->path);
	vec_release(&f->todo);
	free(f);
}

static int frame_save(struct search *s, struct frame *f, struct err *err)
{
	if (f->saved)
		return 0;
	assert(hash_eq(f->hash, s->at));
	int rc = stepper_save(s->stepper, &f->point, err);
	if (!rc) {
		f->saved = true;
		f->id = ++s->saves;
		script_log_save(&s->log, f->id);
	}
	return rc;
}

/* From a state that was met farther from the start: does the step lead to one that is near now? */
static bool leads_nearer(struct search *s, const struct frame *f, struct hash128 to)
{
	uint32_t depth = visited_claimed(s->claims, to, s->task, s->walk);

	return depth == UINT32_MAX || depth > f->path.n + 1;
}

/*
 * Which steps to take from here: those that change something, in an order of their own for each
 * seed, and on top of them those that do not. Where that is unknown, all of them. If they were
 * taken before, only those that lead to where the way was longer then.
 */
static void frame_plan(struct search *s, struct frame *f, bool again)
{
	auto_vec struct script_path idle = { 0 };
	struct hash128 h;
	int64_t ignored;

	for (uint32_t i = 0; i < s->alphabet.steps.n; i++) {
		bool known = stepper_predict(s->stepper, i, &h, &ignored);

		if (known && again && !leads_nearer(s, f, h))
			continue;
		struct script_path *to = known && hash_eq(h, f->hash) ? &idle : &f->todo;
		vec_push(to, i);
	}
	for (size_t i = f->todo.n; i > 1; i--) {
		size_t k = rng_below(&s->rng, i);
		uint32_t other = f->todo.v[k];

		f->todo.v[k] = f->todo.v[i - 1];
		f->todo.v[i - 1] = other;
	}
	vec_each(step, &idle)
		vec_push(&f->todo, *step);
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

		if (x && x->saved && x->path.n <= f->path.n &&
		    (!x->path.n ||
		     memcmp(x->path.v, f->path.v, x->path.n * sizeof(uint32_t)) == 0) &&
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
	script_log_restore(&s->log, from->id, from->path.v, from->path.n);
	search_tell_path(s);
	int rc = stepper_restore(s->stepper, &from->point, &s->result, err);
	s->at = from->hash;
	for (size_t i = from->path.n; i < f->path.n && !rc && s->result.verdict == STEP_SAME; i++)
		rc = search_take(s, f->path.v[i], err);
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
static void short_path(struct search *s, const struct frame *f)
{
	vec_clear(&s->log.path);
	for (size_t i = 0; i < f->path.n; i++)
		vec_push(&s->log.path, f->path.v[i]);
	search_tell_path(s);
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
	if (!lost && hash_eq(s->at, f->hash)) {
		if (s->log.path.n != f->path.n)
			short_path(s, f);
		return 0;
	}
	back = lost ? UINT32_MAX : find_step_to(s, f->hash, last);
	if (back == UINT32_MAX)
		return mount_back(s, stack, f, out, err);
	rc = search_take(s, back, err);
	if (!rc && s->result.verdict == STEP_SAME)
		rc = stepper_hash(s->stepper, &s->at, err);
	if (rc)
		return rc;
	if (s->result.verdict == STEP_DIFFERENT)
		*out = MOVED_DIFFERENT;
	else if (s->result.verdict == STEP_ABANDONED || !hash_eq(s->at, f->hash))
		return mount_back(s, stack, f, out, err);
	else {
		s->undone++;
		short_path(s, f);
	}
	return 0;
}

DEFINE_ORDER(by_length, struct anchor, order(a->n, b->n))

/* The states on the way here that were saved; the empty file system is none of them. */
static void find_anchors(struct search *s, const struct frames *stack)
{
	vec_clear(&s->anchors);
	for (size_t i = 0; i < stack->n; i++) {
		struct frame *x = stack->v[i];

		if (x && x->saved && x->path.n && x->path.n < s->log.path.n &&
		    memcmp(x->path.v, s->log.path.v, x->path.n * sizeof(uint32_t)) == 0)
			vec_push(&s->anchors, (struct anchor){ &x->point, x->path.n });
	}
	vec_sort(&s->anchors, by_length);
}

/* After something was found the sides are anywhere. */
static int recover(struct search *s, const struct frames *stack, struct frame *f, struct err *err)
{
	enum moved moved;

	find_anchors(s, stack);
	int rc = search_report(s, err);
	vec_clear(&s->anchors);
	if (rc || search_stopped(s))
		return rc;
	rc = move_to(s, stack, f, true, &moved, err);
	if (!rc && moved != MOVED)
		rc = err_set(err, -EIO,
			     "after a difference, %s cannot be put back to a state "
			     "that was saved",
			     s->stepper->sides[0]->spec);
	return rc;
}

/* One step from the state of `f`. 1 if all sides are in a state then that is to be searched. */
static int try_step(struct search *s, const struct frames *stack, struct frame *f, bool *lost,
		    bool *again, struct err *err)
{
	enum moved moved;
	bool mine = false;
	int rc = move_to(s, stack, f, *lost, &moved, err);

	*lost = false;
	if (rc)
		return rc;
	if (moved == MOVED_DIFFERENT)
		return recover(s, stack, f, err);
	if (moved == MOVED_LOST) {
		vec_clear(&f->todo); /* out of reach; the rest of its steps is left out */
		s->left_out++;
		*lost = true;
		return 0;
	}
	rc = search_take(s, f->todo.v[--f->todo.n], err);
	if (rc)
		return rc;
	if (s->result.verdict == STEP_DIFFERENT)
		return recover(s, stack, f, err);
	*lost = s->result.verdict == STEP_ABANDONED;
	if (*lost)
		return 0;
	rc = stepper_hash(s->stepper, &s->at, err);
	if (!rc)
		mine = search_claim(s, again);
	/* A step that changes nothing leaves the path as it was. */
	if (!rc && hash_eq(s->at, f->hash) && s->log.path.n == f->path.n + 1)
		s->log.path.n--;
	if (!rc && s->after)
		rc = s->after(s->ctx, s, err);
	return rc ? rc : mine;
}

static bool known_steps(const struct search *s, const struct script_path *steps)
{
	return !any_of(i, steps->n, steps->v[i] >= s->alphabet.steps.n);
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
		vec_release(&f->todo);
		f->todo = script_path_of(from->todo.v, from->todo.n);
		if (!i)
			continue;
		f->unknown = true;
		f->path = script_path_of(from->path.v, from->path.n);
		vec_push(list, f);
	}
	return 0;
}

static int keep_frames(struct search *s, const struct frames *list, struct err *err)
{
	struct pickle p = { 0 };

	vec_each(f, list)
		if (*f)
			vec_push(&p.frames, (struct pickle_frame){
						    script_path_of((*f)->path.v, (*f)->path.n),
						    script_path_of((*f)->todo.v, (*f)->todo.n) });
	return search_keep(s, &p, err);
}

/* The lowest frame: the empty file system, saved. */
static int plant(struct search *s, struct frames *list, struct err *err)
{
	bool ignored;
	int rc = search_go_home(s, err);

	if (rc)
		return rc;
	search_claim(s, &ignored);
	vec_push(list, frame_new(s));
	rc = frame_save(s, list->v[0], err);
	frame_plan(s, list->v[0], false);
	return !rc && s->resumed ? resume_frames(s, list, err) : rc;
}

/* A frame of which nothing is left to do. The lowest is kept: it is the way to all others. */
static void discard(struct search *s, struct frames *list, size_t *head)
{
	if (s->opts->order == SEARCH_DEPTH) {
		list->n--;
		if (list->n)
			frame_free(s, list->v[list->n]);
		else
			*head = list->n = 1;
		return;
	}
	if (*head) {
		frame_free(s, list->v[*head]);
		list->v[*head] = NULL;
	}
	++*head;
}

/* A state whose steps are to be done as well. */
static int grow(struct search *s, struct frames *list, bool again, struct err *err)
{
	uint32_t every = s->opts->save_every ? s->opts->save_every : SAVE_EVERY;
	struct frame *child;

	if (s->log.path.n >= s->opts->depth)
		return 0;
	child = frame_new(s);
	vec_push(list, child);
	frame_plan(s, child, again);
	if (s->opts->order == SEARCH_DEPTH && child->path.n % every)
		return 0;
	return frame_save(s, child, err);
}

/* For us, or for another task that searches the same. */
static bool round_is_over(const struct search *s)
{
	return s->opts->round && (s->stepper->counts.operations >= s->round_ends ||
				  atomic_load(&s->claims->round) != s->walk);
}

int search_frames(struct search *s, bool *done, struct err *err)
{
	auto_vec struct frames list = { 0 };
	size_t head = 0; /* breadth first: the frame at hand */
	bool lost = false, again = false;
	int rc = plant(s, &list, err);

	while (!rc && head < list.n && !search_stopped(s) && !round_is_over(s)) {
		struct frame *f = s->opts->order == SEARCH_DEPTH ? vec_last(&list) : list.v[head];

		if (!f->todo.n) {
			discard(s, &list, &head);
			continue;
		}
		rc = try_step(s, &list, f, &lost, &again, err);
		if (rc > 0)
			rc = grow(s, &list, again, err);
		if (!rc && search_is_time_to_keep(s))
			rc = keep_frames(s, &list, err);
	}
	*done = !rc && head >= list.n;
	/* Between rounds it is kept now and then, and at the end always. */
	if (!rc && (!s->opts->round || search_stopped(s) || search_is_time_to_keep(s)))
		rc = keep_frames(s, &list, err);
	for (size_t i = 0; i < list.n; i++)
		if (list.v[i])
			frame_free(s, list.v[i]);
	return rc;
}
