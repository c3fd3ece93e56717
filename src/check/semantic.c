/* SPDX-License-Identifier: MIT */
/*
 * semantic.c - keeps the table of semantic states, and finds the violations in it.
 *
 * S1: an operation has each state once; failures are one state.
 * S2: a state is judged in the order of operations, so that only the first operation in which it is
 *     wrong is blamed.
 */
#include "check/semantic.h"

#include <inttypes.h>

enum {
	BAD_MAX = 64,	/* crashes of one state that are compared; the first are the nearest */
	GOOD_MAX = 512, /* with at most so many good ones */
};

void semantic_init(struct semantic_table *t, bool times)
{
	*t = (struct semantic_table){ .times = times };
}

void semantic_release(struct semantic_table *t)
{
	vec_each(op, &t->ops) {
		vec_release_each(p, &op->states, vec_release(&p->origins));
	}
	vec_release(&t->ops);
	arena_release(&t->arena);
}

size_t semantic_op(struct semantic_table *t, const char *text, unsigned promises)
{
	vec_push(&t->ops, (struct semantic_op){ .text = arena_strdup(&t->arena, text),
						.promises = promises,
						.before = SEMANTIC_NONE,
						.after = SEMANTIC_NONE });
	return t->ops.n - 1;
}

/* True if a user sees the same state, whatever checkers say of it. */
static bool looks_same(const struct semantic_table *t, const struct semantic_seen *a,
		       const struct semantic_seen *b)
{
	if (a->failed || b->failed)
		return a->failed && b->failed;
	return t->times ? hash_eq(a->timed, b->timed) : hash_eq(a->state, b->state);
}

static bool same(const struct semantic_table *t, const struct semantic_seen *a,
		 const struct semantic_seen *b)
{
	if (!looks_same(t, a, b) || a->wrong != b->wrong)
		return false;
	return a->failed || !a->wrong || hash_eq(a->why, b->why);
}

static size_t get_state(struct semantic_table *t, struct semantic_op *op,
			const struct semantic_seen *seen)
{
	struct semantic_state s = { .seen = *seen };

	for (size_t i = 0; i < op->states.n; i++)
		if (same(t, &op->states.v[i].seen, seen))
			return i;
	s.seen.text = seen->text ? arena_strdup(&t->arena, seen->text) : NULL;
	vec_push(&op->states, s);
	return op->states.n - 1;
}

static const uint64_t *copy_events(struct arena *a, const uint64_t *v, size_t n)
{
	return n ? memcpy(arena_alloc(a, n * sizeof(*v)), v, n * sizeof(*v)) : NULL;
}

void semantic_add(struct semantic_table *t, size_t index, const struct semantic_seen *seen,
		  const struct semantic_origin *origin)
{
	assert(index < t->ops.n);
	struct semantic_op *op = &t->ops.v[index];
	size_t state = get_state(t, op, seen);
	assert(state < op->states.n && same(t, &op->states.v[state].seen, seen)); /* S1 */
	struct semantic_origin o = *origin;

	o.id = arena_strdup(&t->arena, origin->id);
	o.survived = copy_events(&t->arena, origin->survived, origin->n_survived);
	o.lost = copy_events(&t->arena, origin->lost, origin->n_lost);
	vec_push(&op->states.v[state].origins, o);
	if (seen->failed || seen->wrong || !semantic_is_complete(origin))
		return;
	/* The latest one counts: a replay that recovers differently is another state. */
	if (origin->where == SEMANTIC_BEGIN)
		op->before = state;
	else if (origin->where == SEMANTIC_END)
		op->after = state;
}

/* Judging. */

/* A state that earlier operations left possible. */
struct carried {
	const struct semantic_seen *seen;
	bool blamed; /* an operation was blamed for it */
};

struct semantic_judge {
	const struct semantic_table *t;
	const struct semantic_op *op;
	const struct semantic_seen *before, *after; /* NULL: not known */
	struct vec_of(struct carried) carry, next;
	struct vec_of(bool) bad; /* by index of the operation's states */
};

static const struct carried *find_carried(const struct semantic_judge *j,
					  const struct semantic_seen *s)
{
	return vec_find(i, &j->carry, same(j->t, j->carry.v[i].seen, s));
}

static bool is(const struct semantic_judge *j, const struct semantic_seen *a,
	       const struct semantic_seen *b)
{
	return a && looks_same(j->t, a, b);
}

static bool has_origin(const struct semantic_state *s, enum semantic_where where)
{
	return any_of(i, s->origins.n, s->origins.v[i].where == where);
}

/*
 * True if a state is wrong at the end of a synchronous operation. An operation that changes nothing
 * is not blamed for a state for which another one was blamed; but an fsync is blamed for a state
 * that it should end.
 */
static bool is_wrong_end(const struct semantic_judge *j, const struct semantic_state *s)
{
	const struct carried *c = find_carried(j, &s->seen);
	bool changes = !j->before || !same(j->t, j->before, j->after);

	return has_origin(s, SEMANTIC_END) && (changes || !c || !c->blamed);
}

static bool breaks_atomicity(const struct semantic_judge *j, const struct semantic_state *s)
{
	return (j->op->promises & SEMANTIC_ATOMIC) && j->before && j->after &&
	       !is(j, j->before, &s->seen) && !is(j, j->after, &s->seen);
}

/* Names another checker's complaint after the promise that it breaks, if there is one. */
static enum semantic_kind name_complaint(const struct semantic_judge *j,
					 const struct semantic_state *s)
{
	if (breaks_atomicity(j, s))
		return SEMANTIC_NOT_ATOMIC;
	if ((j->op->promises & SEMANTIC_SYNCHRONOUS) && j->after && !is(j, j->after, &s->seen) &&
	    has_origin(s, SEMANTIC_END))
		return SEMANTIC_NOT_SINGLE;
	return SEMANTIC_WRONG;
}

/* Whether a state should not be there. */
static bool is_wrong(const struct semantic_judge *j, const struct semantic_state *s,
		     enum semantic_kind *kind)
{
	if (s->seen.failed || s->seen.wrong) {
		*kind = s->seen.failed ? SEMANTIC_FAILED : name_complaint(j, s);
		return !find_carried(j, &s->seen);
	}
	if (is(j, j->after, &s->seen))
		return false;
	if (breaks_atomicity(j, s) && !find_carried(j, &s->seen)) {
		*kind = SEMANTIC_NOT_ATOMIC;
		return true;
	}
	if ((j->op->promises & SEMANTIC_SYNCHRONOUS) && j->after && is_wrong_end(j, s)) {
		*kind = SEMANTIC_NOT_SINGLE;
		return true;
	}
	return false;
}

/* True if a crash shows the violation: for a wrong final state, only crashes at the end do. */
static bool tells(const struct semantic_origin *o, enum semantic_kind kind)
{
	return kind != SEMANTIC_NOT_SINGLE || o->where == SEMANTIC_END;
}

static enum semantic_cause cause_of(const struct semantic_state *s, enum semantic_kind kind)
{
	enum semantic_cause cause = SEMANTIC_TEARING;

	vec_each(o, &s->origins) {
		if (!tells(o, kind))
			continue;
		if (semantic_is_complete(o))
			return SEMANTIC_LOGIC;
		/* A store that can still be torn when the operation is over was not flushed. */
		if (!o->torn || o->where == SEMANTIC_END)
			cause = SEMANTIC_ORDERING;
	}
	return cause;
}

/*
 * The number of stores in which two crashes of one point differ, at most `limit`. A store in only
 * one of the lists survived in only one of the crashes.
 */
static size_t distance(const struct semantic_origin *a, const struct semantic_origin *b,
		       size_t limit)
{
	size_t i = 0, k = 0, n = 0;

	while (n < limit && (i < a->n_survived || k < b->n_survived)) {
		uint64_t x = i < a->n_survived ? a->survived[i] : UINT64_MAX;
		uint64_t y = k < b->n_survived ? b->survived[k] : UINT64_MAX;

		n += x != y;
		i += x <= y;
		k += y <= x;
	}
	return min(n, limit);
}

static void list_difference(const struct semantic_origin *bad, const struct semantic_origin *good,
			    struct semantic_violation *v)
{
	size_t i = 0, k = 0;

	while (i < bad->n_survived || k < good->n_survived) {
		uint64_t x = i < bad->n_survived ? bad->survived[i] : UINT64_MAX;
		uint64_t y = k < good->n_survived ? good->survived[k] : UINT64_MAX;

		if (x != y)
			vec_push(&v->decisive, (struct semantic_store){ min(x, y), x < y });
		i += x <= y;
		k += y <= x;
	}
}

/* True if a crash recovers to a state that is allowed at its place. */
static bool is_good(const struct semantic_judge *j, size_t state, const struct semantic_origin *o,
		    enum semantic_kind kind)
{
	if (o->torn)
		return false; /* the difference is not one of whole stores */
	if (kind == SEMANTIC_NOT_SINGLE)
		return o->where == SEMANTIC_END && !j->bad.v[state] &&
		       is(j, j->after, &j->op->states.v[state].seen);
	return !j->bad.v[state];
}

/*
 * Compares a crash with the good ones of its point. If several are equally near, the one with the
 * most survivors shows which stores should not have been lost.
 */
static void nearest_to(const struct semantic_judge *j, const struct semantic_origin *bad,
		       size_t *best, struct semantic_violation *v)
{
	size_t compared = 0;

	for (size_t s = 0; s < j->op->states.n; s++) {
		const struct semantic_state *other = &j->op->states.v[s];

		for (size_t i = 0; i < other->origins.n && compared < GOOD_MAX; i++) {
			const struct semantic_origin *o = &other->origins.v[i];

			if (s == v->state || o->point != bad->point || !is_good(j, s, o, v->kind))
				continue;
			size_t d = distance(bad, o, *best + 1);
			compared++;
			if (d < *best || (d == *best && o->n_survived > v->good->n_survived)) {
				*best = d;
				v->origin = bad;
				v->good = o;
			}
		}
	}
}

static void diagnose(const struct semantic_judge *j, struct semantic_violation *v)
{
	const struct semantic_state *s = &j->op->states.v[v->state];
	size_t best = SIZE_MAX - 1, compared = 0;

	v->cause = cause_of(s, v->kind);
	for (size_t i = 0; i < s->origins.n && compared < BAD_MAX; i++) {
		const struct semantic_origin *o = &s->origins.v[i];

		/* If a complete prefix shows the violation, other crashes explain nothing. */
		if (!tells(o, v->kind) || (v->cause == SEMANTIC_LOGIC && !semantic_is_complete(o)))
			continue;
		if (!v->origin)
			v->origin = o;
		if (!o->torn)
			nearest_to(j, o, &best, v);
		compared++;
	}
	assert(v->origin);
	if (v->good)
		list_difference(v->origin, v->good, v);
}

static bool was_blamed(const struct semantic_judge *j, const struct semantic_seen *s)
{
	const struct carried *c = find_carried(j, s);

	return c && c->blamed;
}

/* States that are possible at the end of an operation may be seen in the next ones. */
static void carry_on(struct semantic_judge *j)
{
	bool synchronous = j->op->promises & SEMANTIC_SYNCHRONOUS;

	vec_clear(&j->next);
	for (size_t i = 0; i < j->op->states.n; i++) {
		const struct semantic_state *s = &j->op->states.v[i];

		if (!synchronous || has_origin(s, SEMANTIC_END))
			vec_push(&j->next,
				 (struct carried){ &s->seen,
						   j->bad.v[i] || was_blamed(j, &s->seen) });
	}
	for (size_t i = 0; !synchronous && i < j->carry.n; i++)
		vec_push(&j->next, j->carry.v[i]);
	if (!synchronous && j->before)
		vec_push(&j->next, (struct carried){ j->before, false });
	vec_clear(&j->carry);
	for (size_t i = 0; i < j->next.n; i++)
		if (!find_carried(j, j->next.v[i].seen))
			vec_push(&j->carry, j->next.v[i]);
}

static void judge_op(struct semantic_judge *j, size_t index, struct semantic_violations *out)
{
	const struct semantic_op *op = j->op = &j->t->ops.v[index];
	enum semantic_kind kind = SEMANTIC_FAILED;

	j->before = op->before != SEMANTIC_NONE ? &op->states.v[op->before].seen : j->after;
	j->after = op->after != SEMANTIC_NONE ? &op->states.v[op->after].seen : NULL;
	vec_clear(&j->bad);
	for (size_t i = 0; i < op->states.n; i++)
		vec_push(&j->bad, is_wrong(j, &op->states.v[i], &kind));
	for (size_t i = 0; i < op->states.n; i++) {
		struct semantic_violation v = { .op = index, .state = i };

		if (!is_wrong(j, &op->states.v[i], &v.kind))
			continue;
		diagnose(j, &v);
		vec_push(out, v);
	}
	carry_on(j);
}

void semantic_judge(const struct semantic_table *t, struct semantic_violations *out)
{
	struct semantic_judge j = { .t = t };

	for (size_t i = 0; i < t->ops.n; i++)
		judge_op(&j, i, out);
	vec_release(&j.carry);
	vec_release(&j.next);
	vec_release(&j.bad);
}

void semantic_violations_release(struct semantic_violations *v)
{
	vec_release_each(p, v, vec_release(&p->decisive));
}

/* Words. */

const char *semantic_kind_name(enum semantic_kind kind)
{
	static const char *const names[] = {
		[SEMANTIC_FAILED] = "failed",
		[SEMANTIC_NOT_ATOMIC] = "not-atomic",
		[SEMANTIC_NOT_SINGLE] = "not-single",
		[SEMANTIC_WRONG] = "wrong",
	};

	return names[kind];
}

const char *semantic_cause_name(enum semantic_cause cause)
{
	static const char *const names[] = {
		[SEMANTIC_ORDERING] = "ordering",
		[SEMANTIC_LOGIC] = "logic",
		[SEMANTIC_TEARING] = "tearing",
	};

	return names[cause];
}

static void add_stores(struct strbuf *out, const struct semantic_violation *v, bool survived,
		       const char *words)
{
	enum { SHOWN = 4 };
	size_t n = 0;

	for (size_t i = 0; i < v->decisive.n; i++) {
		if (v->decisive.v[i].survived != survived)
			continue;
		if (n < SHOWN)
			strbuf_addf(out, "%s%" PRIu64, n ? ", " : "; event ",
				    v->decisive.v[i].event);
		n++;
	}
	if (n > SHOWN)
		strbuf_addf(out, " and %zu more", n - SHOWN);
	if (n)
		strbuf_addf(out, " %s", words);
}

static void add_line(struct strbuf *out, const char *line, size_t len)
{
	enum { SHOWN = 60 };

	if (!*line)
		strbuf_adds(out, "not there");
	else
		strbuf_addf(out, "'%.*s'%s", (int)min(len, (size_t)SHOWN), line,
			    len > SHOWN ? "..." : "");
}

void semantic_difference(const char *was, const char *is, const char *word, struct strbuf *out)
{
	for (size_t line = 1; *was || *is; line++) {
		size_t n = strcspn(was, "\n"), k = strcspn(is, "\n");

		if (n != k || memcmp(was, is, n) != 0 || was[n] != is[k]) {
			strbuf_addf(out, "; unlike %s: line %zu is ", word, line);
			add_line(out, is, k);
			strbuf_adds(out, ", was ");
			add_line(out, was, n);
			return;
		}
		was += n + (was[n] == '\n');
		is += k + (is[k] == '\n');
	}
}

void semantic_words(const struct semantic_table *t, const struct semantic_violation *v,
		    struct strbuf *out)
{
	static const char *const what[] = {
		[SEMANTIC_FAILED] = "a crash during '%s' cannot be recovered from",
		[SEMANTIC_NOT_ATOMIC] = "a crash during '%s' leaves neither the state before it "
					"nor the one after it",
		[SEMANTIC_NOT_SINGLE] = "a crash after '%s' has returned leaves another state than "
					"the one after it",
		[SEMANTIC_WRONG] = "a crash during '%s' leaves a state that is not allowed",
	};
	static const char *const mend[] = {
		[SEMANTIC_ORDERING] = "; a flush or fence is missing",
		[SEMANTIC_LOGIC] =
			"; no flush or fence would help: it shows as well where nothing got lost",
		[SEMANTIC_TEARING] =
			"; no flush or fence would help: only what survived in part shows it",
	};
	bool returned = v->kind == SEMANTIC_WRONG && v->origin->where == SEMANTIC_END;

	strbuf_addf(out,
		    returned ? "a crash after '%s' has returned leaves a state that is not allowed"
			     : what[v->kind],
		    t->ops.v[v->op].text);
	add_stores(out, v, false, "got lost");
	add_stores(out, v, true, "survived");
	strbuf_adds(out, mend[v->cause]);
}
