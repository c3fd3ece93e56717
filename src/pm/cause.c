/* SPDX-License-Identifier: MIT */
/* cause.c - finds the class of a failure, and the flush, fence or store that is missing. */
#include "pm/cause.h"

#include <errno.h>

#include "core/model_pm.h"

/* ---- prefixes ---- */

void pm_prefixes_find(const struct trace *t, const struct image *base, bool noticed,
		      struct pm_prefixes *out)
{
	auto_call(crash_points_release) struct crash_points points = { 0 };

	*out = (struct pm_prefixes){ .t = t, .noticed = noticed };
	vec_push(&points, 0);
	for (uint64_t i = 0; i < t->events.n; i++) {
		const struct event *ev = &t->events.v[i];
		/* The order of stores that were noticed together is unknown. */
		bool more = noticed && i + 1 < t->events.n && ev[1].kind == EV_STORE;

		if ((ev->kind == EV_STORE && !more) || event_marks(ev->kind))
			vec_push(&points, i + 1);
	}
	prefixes_find(t, base, &points, &out->all);
}

/* ---- classes ---- */

static bool overlaps(const struct event *ev, uint64_t addr, uint64_t len)
{
	return ev->kind == EV_STORE && ev->addr < addr + len && ev->addr + ev->len > addr;
}

static bool is_gone(const struct event *ev, const struct crash_part *gone, size_t n)
{
	return any_of(i, n, overlaps(ev, gone[i].addr, gone[i].len));
}

static bool follows(const struct event *a, const struct event *b)
{
	return a->kind == EV_STORE && b->kind == EV_STORE && a->pc && a->pc == b->pc &&
	       a->cpu == b->cpu && a->addr + a->len == b->addr;
}

/*
 * Finds the stores of one instruction: an emulator splits a store that is wider than 8 bytes. A
 * loop with the same stores counts as one instruction: it is not one write either.
 */
static void find_instruction(const struct pm_prefixes *p, uint64_t event, uint64_t *from,
			     uint64_t *to)
{
	const struct event *v = p->t->events.v;
	uint64_t first = event, last = event;

	*from = *to = event;
	if (p->noticed)
		return;
	while (first > 0 && follows(&v[first - 1], &v[first]) && event - first < 8)
		first--;
	while (last + 1 < p->t->events.n && follows(&v[last], &v[last + 1]) && last - event < 8)
		last++;
	uint64_t len = v[last].addr + v[last].len - v[first].addr;
	if (len == 16 || len == 32 || len == 64) {
		*from = first;
		*to = last;
	}
}

/* The instruction or copy of which a part is lost. */
struct whole {
	uint64_t event, from, to; /* events of the instruction */
	uint64_t addr, len;	  /* of the copy; len is 0 if it is none */
};

static struct whole whole_of(const struct pm_prefixes *p, const struct crash_state *s,
			     uint64_t event)
{
	struct whole w = { .event = event };

	find_instruction(p, event, &w.from, &w.to);
	for (size_t k = 0; k < s->torn.n; k++)
		if (s->torn.v[k].event == event) {
			w.addr = s->torn.v[k].addr;
			w.len = s->torn.v[k].bytes;
		}
	return w;
}

static bool is_part_of(const struct whole *w, uint64_t i, const struct event *ev)
{
	return (i >= w->from && i <= w->to) || (w->len && overlaps(ev, w->addr, w->len));
}

/* True if the rest of the instruction or copy survived, and no later store, or end, did. */
static bool is_cut(const struct pm_prefixes *p, const struct crash_state *s, uint64_t event)
{
	struct whole w = whole_of(p, s, event);
	bool rest = w.len || any_of(i, s->survived.n, s->survived.v[i] == event);

	for (uint64_t i = w.from; i < s->point; i++) {
		const struct event *ev = &p->t->events.v[i];
		bool there = ev->kind == EV_STORE && !is_gone(ev, s->gone.v, s->gone.n);

		if (is_part_of(&w, i, ev))
			rest |= there;
		else if (ev->kind == EV_OP_END || (there && i > event))
			return false;
	}
	return rest;
}

static bool is_torn(const struct pm_prefixes *p, const struct crash_state *s)
{
	return s->gone.n > 0 && !any_of(i, s->gone.n, !is_cut(p, s, s->gone.v[i].event));
}

enum semantic_cause pm_cause_of(const struct pm_prefixes *p, const struct crash_state *s,
				uint64_t *prefix)
{
	*prefix = PM_NO_PREFIX;
	if (is_torn(p, s))
		return SEMANTIC_TEARING;
	uint32_t at = prefixes_like(&p->all, s);
	if (at == U64MAP_NONE)
		return SEMANTIC_ORDERING;
	*prefix = at;
	return SEMANTIC_LOGIC;
}

/* ---- losses ---- */

/* Returns the extent of one part's stores, which follow each other. */
static struct pm_extent extent_of(const struct trace *t, const struct crash_part *p)
{
	struct pm_extent x = { .event = UINT64_MAX, .addr = p->addr, .len = p->len };
	uint64_t covered = 0;

	for (uint64_t i = p->event; i < t->events.n && covered < p->len; i++) {
		const struct event *ev = &t->events.v[i];

		if (ev->cpu != t->events.v[p->event].cpu || !overlaps(ev, p->addr, p->len))
			continue;
		covered += min(ev->addr + ev->len, p->addr + p->len) - max(ev->addr, p->addr);
		x.event = min(x.event, i);
		x.last = i;
		x.stores++;
	}
	if (x.event == UINT64_MAX)
		x.event = x.last = p->event;
	return x;
}

/* True if a part begins where the last one ended, by the same code. */
static bool goes_on(const struct trace *t, const struct pm_extent *x, const struct pm_extent *next)
{
	const struct event *a = &t->events.v[x->last], *b = &t->events.v[next->event];

	return x->addr + x->len == next->addr && next->event >= x->last && a->cpu == b->cpu &&
	       a->flags == b->flags && a->pc == b->pc;
}

uint64_t pm_extents_of(const struct trace *t, const struct crash_part *gone, size_t n,
		       struct pm_extents *out)
{
	uint64_t stores = 0;

	for (size_t i = 0; i < n; i++) {
		struct pm_extent x = extent_of(t, &gone[i]);
		struct pm_extent *last = out->n ? &vec_last(out) : NULL;

		/* A store across a line is two parts, and one store. */
		bool same = last && last->last == x.event;

		stores += x.stores - same;
		if (!last || !goes_on(t, last, &x)) {
			vec_push(out, x);
			continue;
		}
		last->len += x.len;
		last->stores += x.stores - same;
		last->last = x.last;
	}
	return stores;
}

/* Stores of one CPU, each of which begins where the one before ended. */
struct copy {
	uint32_t cpu;
	bool open;
	uint64_t from, to, pc;
	uint32_t flags;
};

static bool is_next(const struct copy *c, const struct event *ev)
{
	uint64_t apart = c->pc > ev->pc ? c->pc - ev->pc : ev->pc - c->pc;

	return c->open && c->flags == ev->flags && apart <= PM_COPY_SPAN &&
	       (ev->addr == c->to || ev->addr + ev->len == c->from);
}

/* Takes one more event of its CPU; true if the copy has just become longer than `join_min`. */
static bool copy_take(struct copy *c, const struct event *ev, uint64_t join_min)
{
	uint64_t before = c->to - c->from;

	if (ev->kind == EV_FENCE)
		c->open = false;
	if (ev->kind != EV_STORE)
		return false;
	if (!is_next(c, ev)) {
		*c = (struct copy){ ev->cpu, true, ev->addr, ev->addr, ev->pc, ev->flags };
		before = 0;
	}
	c->from = min(c->from, ev->addr);
	c->to = max(c->to, ev->addr + ev->len);
	return before <= join_min && c->to - c->from > join_min;
}

uint64_t pm_count_copies(const struct trace *t, uint64_t join_min)
{
	auto_vec struct vec_of(struct copy) cpus = { 0 };
	uint64_t n = 0;

	vec_each(ev, &t->events) {
		for (size_t j = 0; event_marks(ev->kind) && j < cpus.n; j++)
			cpus.v[j].open = false;
		struct copy *c = vec_find(k, &cpus, cpus.v[k].cpu == ev->cpu);
		if (!c) {
			vec_push(&cpus, (struct copy){ .cpu = ev->cpu });
			c = &vec_last(&cpus);
		}
		n += copy_take(c, ev, join_min);
	}
	return n;
}

/* ---- missing steps ---- */

const char *pm_missing_words(unsigned missing)
{
	static const char *const words[] = { "a flush or fence is missing", "a flush is missing",
					     "a fence is missing",
					     "a flush and a fence are missing" };

	return words[missing & 3];
}

/* Returns the first event that should not have come before the store was durable. */
static uint64_t too_early(const struct trace *t, uint64_t event, uint64_t point,
			  const struct crash_part *gone, size_t n)
{
	for (uint64_t i = event + 1; i < point; i++) {
		const struct event *ev = &t->events.v[i];

		if (ev->kind == EV_OP_END || (ev->kind == EV_STORE && !is_gone(ev, gone, n)))
			return i;
	}
	return UINT64_MAX;
}

static bool flushes(const struct event *ev, const struct event *store)
{
	return ev->kind == EV_LINEFLUSH && ev->addr / PM_LINE >= store->addr / PM_LINE &&
	       ev->addr / PM_LINE <= (store->addr + store->len - 1) / PM_LINE;
}

static uint64_t next_fence(const struct trace *t, uint64_t from, uint32_t cpu)
{
	for (uint64_t i = from; i < t->events.n; i++)
		if (t->events.v[i].kind == EV_FENCE && t->events.v[i].cpu == cpu)
			return i;
	return UINT64_MAX;
}

struct pm_loss pm_loss_of(const struct trace *t, uint64_t event, uint64_t point,
			  const struct crash_part *gone, size_t n)
{
	const struct event *store = &t->events.v[event];
	struct pm_loss l = { .by = too_early(t, event, point, gone, n),
			     .flush = UINT64_MAX,
			     .fence = UINT64_MAX };
	uint64_t until = min(l.by, point);

	if (store->flags & EV_NONTEMPORAL) {
		l.fence = next_fence(t, event + 1, store->cpu);
		l.missing = PM_MISSING_FENCE;
		return l;
	}
	for (uint64_t i = event + 1; i < t->events.n && l.flush == UINT64_MAX; i++)
		if (flushes(&t->events.v[i], store))
			l.flush = i;
	if (l.flush != UINT64_MAX && t->events.v[l.flush].flags & EV_CLFLUSH)
		l.fence = l.flush;
	else if (l.flush != UINT64_MAX)
		l.fence = next_fence(t, l.flush + 1, t->events.v[l.flush].cpu);
	if (l.flush < until)
		l.missing = PM_MISSING_FENCE;
	else if (next_fence(t, event + 1, store->cpu) < until)
		l.missing = PM_MISSING_FLUSH;
	else
		l.missing = PM_MISSING_FLUSH | PM_MISSING_FENCE;
	return l;
}

/* ---- keys ---- */

uint64_t pm_place(const struct trace *t, const struct pm_where *w, uint64_t event)
{
	const struct event *ev = event < t->events.n ? &t->events.v[event] : NULL;
	const char *words = ev && ev->pc ? pm_where_of(w, ev->pc) : NULL;

	if (!words)
		return !ev ? 0 : ev->pc ? ev->pc : ev->addr;
	/* "append (liblog.so+0x1234)": the line is unknown, the function is enough. */
	return hash_bytes(words, (size_t)(strstr(words, " (") ? strstr(words, " (") - words
							      : (ptrdiff_t)strlen(words)))
		.lo;
}

void pm_key_add(struct pm_key *k, uint64_t place)
{
	if (!k->places.n || vec_last(&k->places) != place)
		vec_push(&k->places, place);
}

void pm_key_sort(struct pm_key *k)
{
	vec_sort_unique(&k->places, by_u64);
}

void pm_key_release(struct pm_key *k)
{
	vec_release(&k->places);
}

bool pm_key_explains(const struct pm_key *all, const struct pm_key *part)
{
	size_t i = 0;

	if (all->recovery != part->recovery || all->media != part->media || all->kind != part->kind)
		return false;
	/* The same places with half of a write lost: a flush for the one helps the other, too. */
	if (all->cause != part->cause &&
	    !(all->cause == SEMANTIC_TEARING && part->cause == SEMANTIC_ORDERING))
		return false;
	for (size_t j = 0; j < part->places.n; j++) {
		while (i < all->places.n && all->places.v[i] < part->places.v[j])
			i++;
		if (i == all->places.n || all->places.v[i] != part->places.v[j])
			return false;
	}
	return true;
}
