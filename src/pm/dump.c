/* SPDX-License-Identifier: MIT */
/*
 * dump.c - makes the table of semantic states from the output of a command for each crash state,
 * and cases of its violations.
 *
 * The operations are those that the program marks. The stores between two of them, or before the
 * first, are an operation of their own that promises nothing.
 *
 * A crash during recovery counts for the operation of the first crash. The stores of a recovery are
 * numbered from RECOVERY_BASE times the number of the recovery on.
 */
#include <errno.h>
#include <inttypes.h>

#include "check/semantic.h"
#include "pm/pm_search.h"

#define RECOVERY_BASE ((uint64_t)1 << 40)

/* An operation, as points of the trace: the first after its begin, and the one after its end. */
struct op_span {
	uint64_t from, to;
	uint64_t number;
	bool marked;
};

struct spans vec_of(struct op_span);

static void add_between(struct spans *s, uint64_t from, uint64_t to)
{
	if (to > from)
		vec_push(s, (struct op_span){ .from = from, .to = to });
}

/* Finds the operations; several threads' that overlap are one, named by the last that began. */
static void find_spans(const struct trace *t, struct spans *out)
{
	uint64_t last = 0, begun = 0, depth = 0, number = 0;

	for (uint64_t i = 0; i < t->events.n; i++) {
		const struct event *ev = &t->events.v[i];

		if (ev->kind == EV_OP_BEGIN) {
			if (!depth++) {
				begun = i + 1;
				add_between(out, last, i);
			}
			number = ev->ref;
		}
		if (ev->kind == EV_OP_END && depth && !--depth) {
			vec_push(out, (struct op_span){ begun, i + 1, number, true });
			last = i + 1;
		}
	}
	if (depth) /* the program ended during it */
		vec_push(out, (struct op_span){ begun, t->events.n, number, true });
	else
		add_between(out, last, t->events.n);
}

static bool is_in(const struct op_span *s, uint64_t point)
{
	return point >= s->from && point <= s->to;
}

/* Returns the crash point in the whole run. */
static uint64_t point_of(const struct pm_run *r, const struct pm_failure *f)
{
	return f->recovery ? r->nested[f->recovery - 1].outer.point : f->point;
}

struct op_numbers vec_of(uint64_t);

/* Adds a store's number, which is distinct for a recovery: only the loss in it does harm. */
static void put_number(struct op_numbers *out, uint64_t event, uint64_t recovery)
{
	event += recovery * RECOVERY_BASE;
	if (!out->n || vec_last(out) < event)
		vec_push(out, event);
}

/*
 * True if nothing is lost. A state that the memory has only later, with nothing lost, is not the
 * state at the end of the operation.
 */
static bool is_complete(const struct pm_failure *f, const struct op_span *s)
{
	return f->cause == SEMANTIC_LOGIC && (f->recovery || f->prefix <= s->to);
}

static enum semantic_where where_is(const struct pm_failure *f, const struct op_span *s,
				    uint64_t point)
{
	if (point == s->to)
		return SEMANTIC_END;
	/* The memory has this state after some of the stores, but not before the first. */
	if (!f->recovery && f->cause == SEMANTIC_LOGIC && f->prefix > s->from)
		return SEMANTIC_DURING;
	return point == s->from ? SEMANTIC_BEGIN : SEMANTIC_DURING;
}

static void add_state(const struct pm_run *r, struct semantic_table *table, size_t op,
		      const struct op_span *s, const struct pm_failure *f)
{
	bool failed = f->end != CHECK_PASSED;
	uint64_t point = point_of(r, f);
	auto_vec struct op_numbers survived = { 0 };
	auto_vec struct op_numbers lost = { 0 };
	struct hash128 hash = hash_bytes(f->said, strlen(f->said));
	struct semantic_seen seen = { .failed = failed, .text = f->said };

	for (size_t i = 0; i < pm_listed(f->n_survived); i++)
		put_number(&survived, f->survived[i], f->recovery);
	for (size_t i = 0; !is_complete(f, s) && i < pm_listed(f->n_lost); i++)
		put_number(&lost, f->lost[i].event, f->recovery);
	struct semantic_origin origin = { .where = where_is(f, s, point),
					  .point = point,
					  .id = f->state,
					  .survived = survived.v,
					  .n_survived = survived.n,
					  .lost = lost.v,
					  .n_lost = lost.n,
					  .torn = f->cause == SEMANTIC_TEARING };

	if (!failed)
		seen.state = seen.timed = hash;
	semantic_add(table, op, &seen, &origin);
}

DEFINE_ORDER(by_point, const struct pm_failure *,
	     order((*a)->recovery, (*b)->recovery) ?: order((*a)->point, (*b)->point)
	     ?: order((*a)->n_lost, (*b)->n_lost) ?: strcmp((*a)->state, (*b)->state))

static void fill(const struct pm_run *r, const struct spans *spans,
		 const struct pm_failures_sorted *all, struct semantic_table *table)
{
	vec_each(s, spans) {
		auto_free char *name = s->marked ? xasprintf("operation %" PRIu64, s->number)
						 : xstrdup("stores outside of operations");
		size_t op = semantic_op(table, name, s->marked ? (unsigned)r->plan.promises : 0);

		vec_each(f, all)
			if (is_in(s, point_of(r, *f)))
				add_state(r, table, op, s, *f);
	}
}

/* ---- cases ---- */

/* A violation, its example, and its keys. */
struct told_violation {
	const struct semantic_violation *v;
	const struct pm_failure *f;
	struct pm_key key;  /* the stores that make the difference */
	struct pm_key lost; /* all lost stores, if a part of them is known to be enough */
	size_t number;
};

static const struct pm_failure *find_failure(const struct pm_failures *all, const char *id)
{
	return vec_find(i, all, streq(all->v[i].state, id));
}

/* Returns the key of the stores that differ from those of a good crash, if these are known. */
static struct pm_key key_of(const struct pm_run *r, const struct semantic_violation *v,
			    const struct pm_failure *f)
{
	struct pm_failure like = *f;
	struct pm_key k = { .cause = v->cause, .recovery = f->recovery };

	like.cause = v->cause;
	if (v->cause != SEMANTIC_ORDERING || !any_of(i, v->decisive.n, !v->decisive.v[i].survived))
		return pm_failure_key(r, &like);
	vec_each(d, &v->decisive) {
		uint64_t recovery = d->event / RECOVERY_BASE;
		const struct pm_run *in = recovery ? &r->nested[recovery - 1] : r;

		if (!d->survived)
			pm_key_add(&k, pm_place(&in->trace, &in->where, d->event % RECOVERY_BASE));
	}
	pm_key_sort(&k);
	return k;
}

static bool is_decisive(const struct semantic_violation *v, uint64_t event)
{
	return any_of(k, v->decisive.n,
		      !v->decisive.v[k].survived &&
			      v->decisive.v[k].event % RECOVERY_BASE == event);
}

/* Copies the losses of the failure; the decisive ones come first. */
static void decisive_first(const struct semantic_violation *v, const struct pm_failure *f,
			   struct pm_failure *out)
{
	size_t n = pm_listed(f->n_lost), at = 0;

	for (int other = 0; other < 2; other++) {
		for (size_t i = 0; i < n; i++)
			if (is_decisive(v, f->lost[i].event) == !other)
				out->lost[at++] = f->lost[i];
		if (!other)
			out->n_decisive = at;
	}
}

/* Adds the survivors that should not be there. */
static void add_survived(const struct pm_run *r, const struct semantic_violation *v,
			 struct strbuf *sb)
{
	for (size_t i = 0; i < min(v->decisive.n, (size_t)8); i++) {
		const struct semantic_store *d = &v->decisive.v[i];
		uint64_t recovery = d->event / RECOVERY_BASE, event = d->event % RECOVERY_BASE;
		const struct pm_run *in = recovery ? &r->nested[recovery - 1] : r;
		const struct event *ev = &in->trace.events.v[event];

		if (!d->survived)
			continue;
		if (recovery)
			strbuf_adds(sb, "in recovery: ");
		pm_store_words(&in->trace, &in->where, "survived",
			       &(struct pm_extent){ event, event, 1, ev->addr, ev->len }, NULL, sb);
	}
}

/* Replaces some words of a title, where they come first. */
static void replace(struct strbuf *title, const char *old, const char *new)
{
	auto_free char *text = strbuf_detach(title);
	char *at = strstr(text, old);

	strbuf_add(title, text, at ? (size_t)(at - text) : strlen(text));
	if (at) {
		strbuf_adds(title, new);
		strbuf_adds(title, at + strlen(old));
	}
}

/* Replaces "event 1099511627781", a store of a recovery, by its number in that recovery. */
static void name_recovery(const struct semantic_violation *v, struct strbuf *title)
{
	vec_each(d, &v->decisive) {
		auto_free char *is = xasprintf("event %" PRIu64, d->event);
		auto_free char *named =
			xasprintf("event %" PRIu64 " of its recovery", d->event % RECOVERY_BASE);

		if (d->event >= RECOVERY_BASE)
			replace(title, is, named);
	}
}

static void make_case(const struct pm_run *r, const struct semantic_table *t,
		      const struct told_violation *x, struct pm_case *c)
{
	const struct semantic_state *s = &t->ops.v[x->v->op].states.v[x->v->state];
	auto_strbuf title = STRBUF_INIT, detail = STRBUF_INIT, cause = STRBUF_INIT;
	struct semantic_violation words = *x->v;
	struct pm_failure f = *x->f;
	const struct pm_run *in = pm_failure_run(r, &f);
	auto_free struct crash_part *lost = xcalloc(f.n_lost + 1, sizeof(*lost));

	f.lost = lost;
	f.cause = words.cause;
	decisive_first(x->v, x->f, &f);
	if (words.cause == SEMANTIC_LOGIC) /* no lost store is the cause */
		words.decisive.n = 0;
	semantic_words(t, &words, &title);
	name_recovery(&words, &title);
	pm_cause_words(&in->trace, &f, &cause);
	replace(&title, pm_missing_words(0), strstr(strbuf_str(&cause), ": ") + 2);
	if (f.recovery)
		strbuf_adds(&detail, "in recovery: ");
	pm_failure_detail(in, &f, &detail);
	add_survived(r, &words, &detail);
	*c = (struct pm_case){ .states = s->origins.n,
			       .title = strbuf_detach(&title),
			       .cause = strbuf_detach(&cause),
			       .seen = xstrdup(semantic_kind_name(words.kind)),
			       .detail = xstrdup(strbuf_str(&detail)) };
	c->state = pm_failure_example(&f, &c->point);
	strbuf_adds(&c->said, s->seen.text ? s->seen.text : "");
}

/* Violations that differ least from a good crash come first: they explain the others. */
DEFINE_ORDER(by_difference, struct told_violation, /* in the order of the classes, tearing last */
	     order(a->key.cause, b->key.cause) ?: order(a->key.places.n, b->key.places.n)
	     ?: order(a->number, b->number))

struct all_told vec_of(struct told_violation);

static void tell_all(const struct pm_run *r, const struct semantic_table *t, struct all_told *all,
		     struct pm_cases *out, uint64_t *failing)
{
	auto_vec struct pm_reasons keys = { 0 }; /* borrowed from `all` */

	vec_sort(all, by_difference);
	vec_each(x, all) {
		uint64_t states = t->ops.v[x->v->op].states.v[x->v->state].origins.n;
		struct pm_case c;
		size_t j = min(pm_reasons_find(&keys, &x->key), pm_reasons_find(&keys, &x->lost));

		*failing += states;
		if (j < keys.n) {
			out->v[j].states += states;
			continue;
		}
		make_case(r, t, x, &c);
		vec_push(&keys, x->key);
		vec_push(out, c);
	}
}

void pm_judge_dumps(const struct pm_run *r, const struct pm_failures *f, struct pm_cases *out,
		    uint64_t *failing)
{
	auto_vec struct pm_failures_sorted sorted = { 0 };
	auto_call(semantic_violations_release) struct semantic_violations bad = { 0 };
	auto_vec struct spans spans = { 0 };
	auto_vec struct all_told all = { 0 };
	auto_semantic table;

	semantic_init(&table, false);
	pm_failures_sort(f, by_point, &sorted);
	find_spans(&r->trace, &spans);
	fill(r, &spans, &sorted, &table);
	semantic_judge(&table, &bad);
	*failing = 0;
	for (size_t i = 0; i < bad.n; i++) {
		const struct pm_failure *like = find_failure(f, bad.v[i].origin->id);

		if (!like)
			continue;
		struct pm_failure lost = *like;

		lost.cause = bad.v[i].cause;
		vec_push(&all, (struct told_violation){ &bad.v[i], like, key_of(r, &bad.v[i], like),
							pm_failure_key(r, &lost), i });
	}
	tell_all(r, &table, &all, out, failing);
	for (size_t i = 0; i < all.n; i++)
		pm_key_release(&all.v[i].key), pm_key_release(&all.v[i].lost);
}
