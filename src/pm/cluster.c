/* SPDX-License-Identifier: MIT */
/*
 * cluster.c - makes one finding of the failures that lose the same stores.
 *
 * A store is known by its place in the program. Failures are taken by how little they lose; one
 * that loses all that an earlier one lost, and perhaps more, is explained by it. A failure without
 * a loss has findings of its own, as no flush or fence would help; so has one where a write
 * survived in part (cause.h), a crash during recovery, and a bad line, which is known by the last
 * store to it.
 */
#include <errno.h>
#include <inttypes.h>

#include "pm/pm_record.h"
#include "pm/pm_search.h"

enum { DETAIL_MAX = 8, REASONS_MAX = 4096 };

/* ---- keys ---- */

/* Returns the last store to a line before a point; UINT64_MAX if there is none. */
static uint64_t last_store(const struct trace *t, uint64_t line, uint64_t point)
{
	for (uint64_t i = min(point, (uint64_t)t->events.n); i-- > 0;) {
		const struct event *ev = &t->events.v[i];

		if (ev->kind == EV_STORE && ev->addr < line + PM_LINE && ev->addr + ev->len > line)
			return i;
	}
	return UINT64_MAX;
}

/* Returns the next store from a place on; UINT64_MAX if there is none. */
static uint64_t next_store(const struct trace *t, uint64_t from)
{
	while (from < t->events.n && t->events.v[from].kind != EV_STORE)
		from++;
	return from < t->events.n ? from : UINT64_MAX;
}

/* Returns the first store since the last mark: it stands for a mistake shown by many stores. */
static uint64_t first_since_mark(const struct trace *t, uint64_t point)
{
	point = min(point, (uint64_t)t->events.n);
	while (point > 0 && !pm_is_mark(&t->events.v[point - 1]))
		point--;
	return next_store(t, point);
}

struct pm_key pm_failure_key(const struct pm_run *r, const struct pm_failure *f)
{
	const struct pm_run *in = pm_failure_run(r, f);
	const struct trace *t = &in->trace;
	struct pm_key k = { .cause = f->cause, .recovery = f->recovery, .media = f->media };

	if (f->media) {
		k.cause = SEMANTIC_ORDERING;
		k.kind = f->fault.kind;
		pm_key_add(&k, pm_place(t, &in->where, last_store(t, f->fault.line, f->point)));
	} else if (f->cause == SEMANTIC_LOGIC) {
		pm_key_add(&k, pm_place(t, &in->where, first_since_mark(t, f->prefix)));
	} else {
		for (size_t i = 0; i < pm_listed(f->n_lost); i++)
			pm_key_add(&k, pm_place(t, &in->where, f->lost[i].event));
	}
	pm_key_sort(&k);
	return k;
}

/* ---- words ---- */

void pm_cause_words(const struct trace *t, const struct pm_failure *f, struct strbuf *out)
{
	strbuf_addf(out, "%s: ", semantic_cause_name(f->cause));
	if (f->cause == SEMANTIC_LOGIC)
		strbuf_adds(out, "no flush or fence would help, as it shows where nothing is lost");
	else if (f->cause == SEMANTIC_TEARING)
		strbuf_adds(out, "no flush or fence would help, as what is written by one "
				 "instruction or copy is there in part");
	else
		strbuf_adds(out,
			    pm_missing_words(!f->n_lost ? 0
							: pm_loss_of(t, f->lost[0].event, f->point,
								     f->lost, pm_listed(f->n_lost))
								  .missing));
}

char *pm_failure_example(const struct pm_failure *f, uint64_t *point)
{
	bool logic = f->cause == SEMANTIC_LOGIC && !f->media;

	*point = logic ? f->prefix : f->point;
	if (!logic)
		return xstrdup(f->state);
	return f->recovery ? xasprintf("r%" PRIu64 ":1.%" PRIu64, f->recovery - 1, f->prefix)
			   : xasprintf("1.%" PRIu64, f->prefix);
}

/* Adds one store. */
static void add_store(const struct pm_run *r, const char *fate, uint64_t event, struct strbuf *out)
{
	const struct event *ev = event < r->trace.events.n ? &r->trace.events.v[event] : NULL;

	if (ev && ev->kind == EV_STORE)
		pm_store_words(&r->trace, &r->where, fate,
			       &(struct pm_extent){ event, event, 1, ev->addr, ev->len }, NULL,
			       out);
}

static void add_lost(const struct pm_run *r, const struct pm_failure *f, struct strbuf *out)
{
	auto_vec struct pm_extents all = { 0 };
	size_t n = f->n_decisive ? f->n_decisive : pm_listed(f->n_lost);
	uint64_t stores = pm_extents_of(&r->trace, f->lost, n, &all), shown = 0;
	const char *fate = f->cause == SEMANTIC_TEARING ? "in part" : "lost";

	for (size_t i = 0; i < min(all.n, (size_t)DETAIL_MAX); i++) {
		struct pm_loss loss = pm_loss_of(&r->trace, all.v[i].event, f->point, f->lost,
						 pm_listed(f->n_lost));

		pm_store_words(&r->trace, &r->where, fate, &all.v[i],
			       f->cause == SEMANTIC_ORDERING ? &loss : NULL, out);
		shown += all.v[i].stores;
	}
	if (stores > shown)
		strbuf_addf(out, "         and %" PRIu64 " more\n", stores - shown);
}

void pm_failure_detail(const struct pm_run *r, const struct pm_failure *f, struct strbuf *out)
{
	if (f->cause != SEMANTIC_LOGIC) {
		add_lost(r, f, out);
		return;
	}
	for (uint64_t i = min(f->prefix, (uint64_t)r->trace.events.n); i-- > 0;)
		if (r->trace.events.v[i].kind == EV_STORE) {
			add_store(r, "the last", i, out);
			break;
		}
	add_store(r, "to come", next_store(&r->trace, f->prefix), out);
}

/* Adds the operation during or after which the crash is. */
static void add_when(const struct trace *t, uint64_t point, struct strbuf *sb)
{
	for (uint64_t i = min(point, (uint64_t)t->events.n); i-- > 0;) {
		const struct event *ev = &t->events.v[i];

		if (ev->kind != EV_OP_BEGIN && ev->kind != EV_OP_END)
			continue;
		strbuf_addf(sb, ", %s operation %" PRIu64,
			    ev->kind == EV_OP_BEGIN ? "during" : "after", ev->ref);
		return;
	}
}

static void describe_fault(const struct pm_run *r, const struct pm_failure *f, struct strbuf *title,
			   struct strbuf *detail)
{
	strbuf_addf(title, "fails if the line at %#" PRIx64 " %s", f->fault.line,
		    f->fault.kind == MEDIA_POISON ? "cannot be read (poison)"
						  : "is as it was before (stale)");
	add_store(r, "survived", last_store(&r->trace, f->fault.line, f->point), detail);
}

static void describe_lost(const struct pm_run *r, const struct pm_failure *f, struct strbuf *title,
			  struct strbuf *detail)
{
	auto_vec struct pm_extents all = { 0 };
	uint64_t n = pm_extents_of(&r->trace, f->lost, pm_listed(f->n_lost), &all);

	if (f->cause == SEMANTIC_LOGIC)
		strbuf_adds(title, "fails although nothing is lost: no flush or fence would help");
	else if (f->cause == SEMANTIC_TEARING)
		strbuf_adds(title, "fails if what is written by one instruction or copy survives "
				   "in part");
	else
		strbuf_addf(title, "fails if %s%" PRIu64 " %s lost",
			    f->n_lost > PM_LIST_MAX ? "more than " : "", n,
			    plural(n, "store is", "stores are"));
	pm_failure_detail(r, f, detail);
}

static void describe(const struct pm_run *all, const struct pm_failure *f, struct pm_case *c)
{
	const struct pm_run *r = pm_failure_run(all, f);
	auto_strbuf title = STRBUF_INIT, detail = STRBUF_INIT, cause = STRBUF_INIT;

	if (f->media)
		describe_fault(r, f, &title, &detail);
	else
		describe_lost(r, f, &title, &detail);
	if (f->recovery) {
		strbuf_adds(&title, ", by a crash during the recovery from another");
		strbuf_addf(&detail, "the first crash: state %s at event %" PRIu64 "\n",
			    r->outer.state, r->outer.point);
	}
	add_when(&r->trace, c->point, &title);
	c->title = strbuf_detach(&title);
	c->detail = detail.len ? strbuf_detach(&detail) : xstrdup("");
	if (f->media)
		return;
	pm_cause_words(&r->trace, f, &cause);
	c->cause = strbuf_detach(&cause);
}

void pm_failure_end(const struct pm_failure *f, struct strbuf *out)
{
	struct check_result r = { .end = f->end, .exit_code = f->exit_code, .signal = f->signal };

	check_describe(&r, out);
}

void pm_failure_case(const struct pm_run *r, const struct pm_failure *f, struct pm_case *c)
{
	auto_strbuf seen = STRBUF_INIT;

	*c = (struct pm_case){ .states = 1 };
	c->state = pm_failure_example(f, &c->point);
	strbuf_adds(&seen, "the check ");
	pm_failure_end(f, &seen);
	c->seen = strbuf_detach(&seen);
	strbuf_adds(&c->said, f->said);
	describe(r, f, c);
}

/* ---- reasons ---- */

size_t pm_reasons_find(const struct pm_reasons *all, const struct pm_key *k)
{
	size_t i = 0;

	while (i < all->n && !pm_key_explains(k, &all->v[i]))
		i++;
	return i;
}

bool pm_reasons_add(struct pm_reasons *all, const struct pm_run *r, const struct pm_failure *f)
{
	struct pm_key k = pm_failure_key(r, f);

	if (all->n >= REASONS_MAX || pm_reasons_find(all, &k) < all->n) {
		pm_key_release(&k);
		return false;
	}
	vec_push(all, k);
	return true;
}

void pm_reasons_release(struct pm_reasons *all)
{
	for (size_t i = 0; i < all->n; i++)
		pm_key_release(&all->v[i]);
	vec_release(all);
}

/* ---- clusters ---- */

/* Failures that can explain others come first. */
static int fewer_lost(const struct pm_failure *a, const struct pm_failure *b)
{
	static const int rank[] = {
		[SEMANTIC_LOGIC] = 0, [SEMANTIC_ORDERING] = 1, [SEMANTIC_TEARING] = 2
	};
	bool causes = !a->media; /* then neither has a fault */

	return order(a->media, b->media) ?: order(!!a->recovery, !!b->recovery)
	       ?: (causes ? rank[a->cause] - rank[b->cause] : 0)
	       ?: (a->cause == SEMANTIC_LOGIC ? order(a->prefix, b->prefix) : 0)
	       ?: order(a->n_lost, b->n_lost) ?: order(a->point, b->point)
	       ?: strcmp(a->state, b->state);
}

DEFINE_ORDER(by_lost, const struct pm_failure *, fewer_lost(*a, *b))

void pm_failures_sort(const struct pm_failures *f, int (*by)(const void *, const void *),
		      struct pm_failures_sorted *out)
{
	vec_each(x, f)
		vec_push(out, x);
	vec_sort(out, by);
}

void pm_cluster(const struct pm_run *r, const struct pm_failures *f, struct pm_cases *out)
{
	auto_vec struct pm_failures_sorted sorted = { 0 };
	struct pm_reasons keys = { 0 };

	pm_failures_sort(f, by_lost, &sorted);
	vec_each(x, &sorted) {
		struct pm_key k = pm_failure_key(r, *x);
		struct pm_case c;
		size_t j = pm_reasons_find(&keys, &k);

		if (j < keys.n) {
			out->v[j].states++;
			pm_key_release(&k);
			continue;
		}
		pm_failure_case(r, *x, &c);
		vec_push(&keys, k);
		vec_push(out, c);
	}
	pm_reasons_release(&keys);
}
