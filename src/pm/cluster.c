/* SPDX-License-Identifier: MIT */
/*
 * cluster.c - failures that lose the same become one finding.
 *
 * A store is known by where the program made it. Failures are taken by how little they lose; one
 * that loses all that an earlier one lost, and perhaps more, is explained by it. A state where
 * nothing is lost and that fails all the same is another matter: no flush or fence would help. So
 * are crashes during recovery, and bad lines: these are known by who stored to them last.
 */
#include <errno.h>
#include <inttypes.h>

#include "pm/search.h"

enum { DETAIL_MAX = 8 };

struct key {
	bool nothing_lost, recovery, media;
	enum media_kind kind;
	struct vec_of(uint64_t) places; /* ascending, each once */
};

struct keys vec_of(struct key);

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static uint64_t place_of(const struct trace *t, uint64_t event)
{
	const struct event *ev = event < t->events.n ? &t->events.v[event] : NULL;

	return !ev ? 0 : ev->pc ? ev->pc : ev->addr;
}

/* Who stored to a line last, before a point; UINT64_MAX: nobody. */
static uint64_t last_store(const struct trace *t, uint64_t line, uint64_t point)
{
	for (uint64_t i = min(point, (uint64_t)t->events.n); i-- > 0;) {
		const struct event *ev = &t->events.v[i];

		if (ev->kind == EV_STORE && ev->addr < line + PM_LINE && ev->addr + ev->len > line)
			return i;
	}
	return UINT64_MAX;
}

static struct key media_key(const struct trace *t, const struct pm_failure *f)
{
	struct key k = { .media = true, .kind = f->fault.kind, .recovery = f->recovery };

	vec_push(&k.places, place_of(t, last_store(t, f->fault.line, f->point)));
	return k;
}

static struct key key_of(const struct pm_run *r, const struct pm_failure *f)
{
	const struct trace *t = &pm_failure_run(r, f)->trace;

	if (f->media)
		return media_key(t, f);
	size_t n = (size_t)min(f->n_lost, (uint64_t)PM_LIST_MAX), kept = 0;
	struct key k = { .nothing_lost = f->n_lost == 0, .recovery = f->recovery };

	for (size_t i = 0; i < n; i++)
		vec_push(&k.places, place_of(t, f->lost[i]));
	if (k.places.n)
		qsort(k.places.v, k.places.n, sizeof(*k.places.v), compare_u64);
	for (size_t i = 0; i < k.places.n; i++)
		if (!kept || k.places.v[kept - 1] != k.places.v[i])
			k.places.v[kept++] = k.places.v[i];
	k.places.n = kept;
	return k;
}

static bool contains(const struct key *all, const struct key *part)
{
	size_t i = 0;

	if (all->recovery != part->recovery || all->media != part->media || all->kind != part->kind)
		return false;
	if (all->nothing_lost || part->nothing_lost)
		return all->nothing_lost && part->nothing_lost;
	for (size_t j = 0; j < part->places.n; j++) {
		while (i < all->places.n && all->places.v[i] < part->places.v[j])
			i++;
		if (i == all->places.n || all->places.v[i] != part->places.v[j])
			return false;
	}
	return true;
}

static int fewer_lost(const void *a, const void *b)
{
	const struct pm_failure *x = *(const struct pm_failure *const *)a;
	const struct pm_failure *y = *(const struct pm_failure *const *)b;

	if (!x->media != !y->media)
		return x->media ? 1 : -1;
	if (!x->recovery != !y->recovery)
		return x->recovery ? 1 : -1;
	if (x->n_lost != y->n_lost)
		return x->n_lost < y->n_lost ? -1 : 1;
	if (x->point != y->point)
		return x->point < y->point ? -1 : 1;
	return strcmp(x->state, y->state);
}

/* The operation that the crash is in, or after. */
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
	uint64_t store = last_store(&r->trace, f->fault.line, f->point);

	strbuf_addf(title, "fails if the line at %#" PRIx64 " %s", f->fault.line,
		    f->fault.kind == MEDIA_POISON ? "cannot be read (poison)"
						  : "is as it was before (stale)");
	if (store != UINT64_MAX)
		pm_store_words(&r->trace, &r->where, store, f->point, false, detail);
}

static void describe_lost(const struct pm_run *r, const struct pm_failure *f, struct strbuf *title,
			  struct strbuf *detail)
{
	size_t n = (size_t)min(f->n_lost, (uint64_t)DETAIL_MAX);

	if (!f->n_lost)
		strbuf_adds(title, "fails although nothing is lost: no flush or fence would help");
	else
		strbuf_addf(title, "fails if %" PRIu64 " %s lost", f->n_lost,
			    plural(f->n_lost, "store is", "stores are"));
	for (size_t i = 0; i < n; i++)
		pm_store_words(&r->trace, &r->where, f->lost[i], f->point, true, detail);
	if (f->n_lost > n)
		strbuf_addf(detail, "         and %" PRIu64 " more\n", f->n_lost - n);
}

static void describe(const struct pm_run *all, const struct pm_failure *f, struct pm_case *c)
{
	const struct pm_run *r = pm_failure_run(all, f);
	auto_strbuf title = STRBUF_INIT, detail = STRBUF_INIT;

	if (f->media)
		describe_fault(r, f, &title, &detail);
	else
		describe_lost(r, f, &title, &detail);
	if (f->recovery) {
		strbuf_adds(&title, ", by a crash during the recovery from another");
		strbuf_addf(&detail, "the first crash: state %s at event %" PRIu64 "\n",
			    r->outer.state, r->outer.point);
	}
	add_when(&r->trace, f->point, &title);
	c->title = strbuf_detach(&title);
	c->detail = detail.len ? strbuf_detach(&detail) : xstrdup("");
}

static void make_case(const struct pm_run *r, const struct pm_failure *f, struct pm_case *c)
{
	struct check_result end = { .end = f->end, .exit_code = f->exit_code, .signal = f->signal };
	auto_strbuf seen = STRBUF_INIT;

	*c = (struct pm_case){ .state = xstrdup(f->state), .point = f->point, .states = 1 };
	strbuf_adds(&seen, "the check ");
	check_describe(&end, &seen);
	c->seen = strbuf_detach(&seen);
	strbuf_adds(&c->said, f->said);
	describe(r, f, c);
}

void pm_cluster(const struct pm_run *r, const struct pm_failures *f, struct pm_cases *out)
{
	auto_free const struct pm_failure **order = xcalloc(f->n + 1, sizeof(*order));
	struct keys keys = { 0 };

	for (size_t i = 0; i < f->n; i++)
		order[i] = &f->v[i];
	qsort(order, f->n, sizeof(*order), fewer_lost);
	for (size_t i = 0; i < f->n; i++) {
		struct key k = key_of(r, order[i]);
		struct pm_case c;
		size_t j = 0;

		while (j < keys.n && !contains(&k, &keys.v[j]))
			j++;
		if (j < keys.n) {
			out->v[j].states++;
			vec_release(&k.places);
			continue;
		}
		make_case(r, order[i], &c);
		vec_push(&keys, k);
		vec_push(out, c);
	}
	for (size_t j = 0; j < keys.n; j++)
		vec_release(&keys.v[j].places);
	vec_release(&keys);
}
