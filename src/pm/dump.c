/* SPDX-License-Identifier: MIT */
/*
 * dump.c - what each crash state shows, when a command prints it: the table of semantic states, and
 * what is wrong with it as cases.
 *
 * The operations are those that the program marks. What is stored between two of them, or before
 * the first, belongs to an operation of its own that promises nothing.
 *
 * A crash during recovery is one of the operation in which the first crash was. Its stores are
 * numbered from RECOVERY_BASE times the number of the recovery on.
 */
#include <errno.h>
#include <inttypes.h>

#include "check/semantic.h"
#include "pm/search.h"

#define RECOVERY_BASE ((uint64_t)1 << 40)

/* An operation, as points of the trace: begun at the first, ended at the last. */
struct span {
	uint64_t from, to;
	uint64_t number;
	bool marked;
};

struct spans vec_of(struct span);

static void add_between(struct spans *s, uint64_t from, uint64_t to)
{
	if (to > from)
		vec_push(s, (struct span){ .from = from, .to = to });
}

/* Operations that overlap, of several threads, are one: the last that began names it. */
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
			vec_push(out, (struct span){ begun, i + 1, number, true });
			last = i + 1;
		}
	}
	if (depth) /* the program ended in the middle of it */
		vec_push(out, (struct span){ begun, t->events.n, number, true });
	else
		add_between(out, last, t->events.n);
}

static bool is_in(const struct span *s, uint64_t point)
{
	return point >= s->from && point <= s->to;
}

/* Where in the whole run. */
static uint64_t point_of(const struct pm_run *r, const struct pm_failure *f)
{
	return f->recovery ? r->nested[f->recovery - 1].outer.point : f->point;
}

struct numbers vec_of(uint64_t);

/* Events of the run, and behind them those of a recovery. */
static void put_numbers(struct numbers *out, const uint64_t *outer, size_t n_outer,
			const uint64_t *own, uint64_t n_own, uint64_t recovery)
{
	for (size_t i = 0; i < n_outer; i++)
		vec_push(out, outer[i]);
	for (size_t i = 0; i < min(n_own, (uint64_t)PM_LIST_MAX); i++)
		vec_push(out, own[i] + recovery * RECOVERY_BASE);
}

static void add_state(const struct pm_run *r, struct semantic_table *table, size_t op,
		      const struct span *s, const struct pm_failure *f)
{
	bool failed = f->end != CHECK_PASSED;
	const struct pm_run *in = pm_failure_run(r, f);
	uint64_t point = point_of(r, f);
	struct numbers survived = { 0 }, lost = { 0 };
	struct hash128 hash = hash_bytes(f->said, strlen(f->said));
	struct semantic_seen seen = { .failed = failed, .text = f->said };

	put_numbers(&survived, in->outer.survived, in->outer.n_survived, f->survived, f->n_survived,
		    f->recovery);
	put_numbers(&lost, in->outer.lost, in->outer.n_lost, f->lost, f->n_lost, f->recovery);
	struct semantic_origin origin = { .where = point == s->from ? SEMANTIC_BEGIN
						   : point == s->to ? SEMANTIC_END
								    : SEMANTIC_DURING,
					  .point = point,
					  .id = f->state,
					  .survived = survived.v,
					  .n_survived = survived.n,
					  .lost = lost.v,
					  .n_lost = lost.n };

	if (!failed)
		seen.state = seen.timed = hash;
	semantic_add(table, op, &seen, &origin);
	vec_release(&survived);
	vec_release(&lost);
}

static int compare_order(const void *a, const void *b)
{
	const struct pm_failure *x = *(const struct pm_failure *const *)a;
	const struct pm_failure *y = *(const struct pm_failure *const *)b;

	if (x->recovery != y->recovery)
		return x->recovery < y->recovery ? -1 : 1;
	if (x->point != y->point)
		return x->point < y->point ? -1 : 1;
	if (x->n_lost != y->n_lost)
		return x->n_lost < y->n_lost ? -1 : 1;
	return strcmp(x->state, y->state);
}

static void fill(const struct pm_run *r, const struct spans *spans,
		 const struct pm_failure *const *order, size_t n, struct semantic_table *table)
{
	for (size_t i = 0; i < spans->n; i++) {
		const struct span *s = &spans->v[i];
		auto_free char *name = s->marked ? xasprintf("operation %" PRIu64, s->number)
						 : xstrdup("what is stored outside of operations");
		size_t op = semantic_op(table, name, s->marked ? (unsigned)r->plan.promises : 0);

		for (size_t j = 0; j < n; j++)
			if (is_in(s, point_of(r, order[j])))
				add_state(r, table, op, s, order[j]);
	}
}

static void add_stores(const struct pm_run *r, const struct semantic_violation *v,
		       struct strbuf *sb)
{
	for (size_t i = 0; i < min(v->decisive.n, (size_t)8); i++) {
		const struct semantic_store *d = &v->decisive.v[i];

		uint64_t recovery = d->event / RECOVERY_BASE, event = d->event % RECOVERY_BASE;
		const struct pm_run *in = recovery ? &r->nested[recovery - 1] : r;

		if (recovery)
			strbuf_adds(sb, "in recovery: ");
		pm_store_words(&in->trace, &in->where, event,
			       recovery ? in->trace.events.n : v->origin->point, !d->survived, sb);
	}
}

/* "event 1099511627781" is one of a recovery, and has its own number there. */
static void name_recovery(const struct semantic_violation *v, struct strbuf *title)
{
	for (size_t i = 0; i < v->decisive.n; i++) {
		uint64_t event = v->decisive.v[i].event;
		auto_free char *is = xasprintf("event %" PRIu64, event);
		auto_strbuf out = STRBUF_INIT;
		const char *at = strstr(strbuf_str(title), is);

		if (event < RECOVERY_BASE || !at)
			continue;
		strbuf_add(&out, strbuf_str(title), (size_t)(at - strbuf_str(title)));
		strbuf_addf(&out, "event %" PRIu64 " of its recovery", event % RECOVERY_BASE);
		strbuf_adds(&out, at + strlen(is));
		strbuf_clear(title);
		strbuf_adds(title, strbuf_str(&out));
	}
}

static void make_case(const struct pm_run *r, const struct semantic_table *t,
		      const struct semantic_violation *v, struct pm_case *c)
{
	const struct semantic_state *s = &t->ops.v[v->op].states.v[v->state];
	auto_strbuf title = STRBUF_INIT, detail = STRBUF_INIT;

	semantic_words(t, v, &title);
	name_recovery(v, &title);
	add_stores(r, v, &detail);
	*c = (struct pm_case){ .state = xstrdup(v->origin->id),
			       .point = v->origin->point,
			       .states = s->origins.n,
			       .title = strbuf_detach(&title),
			       .seen = xstrdup(semantic_kind_name(v->kind)),
			       .detail = xstrdup(strbuf_str(&detail)) };
	strbuf_adds(&c->said, s->seen.text ? s->seen.text : "");
}

void pm_judge_dumps(const struct pm_run *r, const struct pm_failures *f, struct pm_cases *out,
		    uint64_t *failing)
{
	auto_free const struct pm_failure **order = xcalloc(f->n + 1, sizeof(*order));
	struct semantic_violations bad = { 0 };
	struct spans spans = { 0 };
	auto_semantic table;

	semantic_init(&table, false);
	for (size_t i = 0; i < f->n; i++)
		order[i] = &f->v[i];
	qsort(order, f->n, sizeof(*order), compare_order);
	find_spans(&r->trace, &spans);
	fill(r, &spans, order, f->n, &table);
	semantic_judge(&table, &bad);
	*failing = 0;
	for (size_t i = 0; i < bad.n; i++) {
		struct pm_case c;

		make_case(r, &table, &bad.v[i], &c);
		*failing += c.states;
		vec_push(out, c);
	}
	semantic_violations_release(&bad);
	vec_release(&spans);
}
