/* SPDX-License-Identifier: MIT */
/*
 * explain.c - has the check try smaller losses and earlier crashes until the cause of a failure is
 * left.
 */
#include "app/explain.h"

#include <errno.h>

#include "app/case.h"
#include "base/hash.h"

enum { CHECKS_MAX = 80, UNTIL_MAX = 8, MEND_LOST_MAX = 3 };

struct answer {
	struct hash128 tree;
	uint64_t acked;
	int fails;
	enum app_harm harm;
};

struct work {
	const struct explain_opts *o;
	enum app_harm harm;
	unsigned checks, checks_max;
	bool cut;
	struct vec_of(struct answer) answers;
	struct crash_points points;
};

void explained_release(struct explained *e)
{
	free(e->id);
	free(e->cause);
	free(e->cut_by);
	vec_release(&e->lost);
	vec_release(&e->roles);
	*e = (struct explained){ 0 };
}

static void keep_survivors(struct case_at *c, const struct survivors *s)
{
	size_t k = 0;

	for (size_t i = 0; i < c->n; i++) {
		while (k < s->v.n && s->v.v[k].change < c->v[i].change)
			k++;
		if (k == s->v.n || s->v.v[k].change != c->v[i].change)
			continue;
		c->v[i].keep = s->v.v[k].units ? KEEP_SOME : KEEP_ALL;
		c->v[i].units = s->v.v[k].units;
	}
}

static void copy_keeps(struct case_at *to, const struct case_at *from)
{
	for (size_t i = 0; i < from->n; i++) {
		to->v[i].keep = from->v[i].keep;
		to->v[i].units = from->v[i].units;
	}
}

/* ---- checks ---- */

static int ask(struct work *w, const struct case_at *c, enum app_harm *harm, struct err *err)
{
	struct history *h = w->o->h;
	auto_vec struct case_survivors kept = { 0 };
	struct answer a = { .acked = states_acked(h->trace, c->point) };

	case_kept(c, &kept);
	a.tree = case_tree(h, c->point, &kept);
	const struct answer *known =
		vec_find(i, &w->answers,
			 w->answers.v[i].acked == a.acked && hash_eq(w->answers.v[i].tree, a.tree));
	if (known) {
		*harm = known->harm;
		return known->fails;
	}
	w->checks++;
	auto_free char *id = case_id(h, c);
	a.fails = w->o->check(w->o->ctx, id, &a.harm, err);
	if (a.fails >= 0)
		vec_push(&w->answers, a);
	*harm = a.harm;
	return a.fails;
}

/* Returns 1 if the state fails with the same harm. After the limit, sets `cut` and returns 0. */
static int fails(struct work *w, const struct case_at *c, struct err *err)
{
	enum app_harm harm = APP_FAILED;

	if (w->checks >= w->checks_max) {
		w->cut = true;
		return 0;
	}
	int rc = ask(w, c, &harm, err);
	return rc == 1 ? harm == w->harm : rc;
}

/* ---- the fewest losses ---- */

struct indexes vec_of(size_t);

static void find_lost(const struct case_at *c, struct indexes *out)
{
	vec_clear(out);
	for (size_t i = 0; i < c->n; i++)
		if (c->v[i].keep != KEEP_ALL)
			vec_push(out, i);
}

/* Restores the lost changes [from, to); returns 1, and keeps that, if the state still fails. */
static int try_giving(struct work *w, struct case_at *c, const struct indexes *lost, size_t from,
		      size_t to, struct err *err)
{
	auto_case old = { .n = c->n, .v = xcalloc(c->n + 1, sizeof(*c->v)) };

	copy_keeps(&old, c);
	for (size_t i = from; i < to; i++)
		case_give_back(c, lost->v[i]);
	int rc = fails(w, c, err);
	if (rc != 1)
		copy_keeps(c, &old);
	return rc;
}

static int lose_less(struct work *w, struct case_at *c, struct err *err)
{
	auto_vec struct indexes lost = { 0 };
	int rc = 0;

	find_lost(c, &lost);
	for (size_t chunk = lost.n; rc >= 0 && chunk && lost.n;
	     chunk = chunk > 1 ? (chunk + 1) / 2 : 0) {
		/* The last ones first: late changes are rarely the reason. */
		for (size_t to = lost.n; rc >= 0 && to;) {
			size_t from = to > chunk ? to - chunk : 0;

			rc = try_giving(w, c, &lost, from, to, err);
			to = from;
		}
		find_lost(c, &lost);
	}
	return min(rc, 0);
}

/* Makes a torn change a lost one if the state then still fails. */
static int tear_less(struct work *w, struct case_at *c, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; rc >= 0 && i < c->n; i++) {
		if (c->v[i].keep != KEEP_SOME)
			continue;
		auto_case old = { .n = c->n, .v = xcalloc(c->n + 1, sizeof(*c->v)) };
		copy_keeps(&old, c);
		c->v[i].keep = KEEP_NONE;
		case_close(c);
		rc = fails(w, c, err);
		if (rc != 1)
			copy_keeps(c, &old);
	}
	return min(rc, 0);
}

/* ---- the earliest point ---- */

/* Makes the state at another point that loses the same changes, as far as they have happened. */
static int move_case(struct work *w, const struct case_at *c, uint64_t point, struct case_at *out,
		     struct err *err)
{
	int rc = case_load(w->o->h, point, out, err);

	if (rc)
		return rc;
	case_keep_all(out);
	for (size_t i = 0, k = 0; i < out->n; i++) {
		while (k < c->n && c->v[k].change < out->v[i].change)
			k++;
		if (k < c->n && c->v[k].change == out->v[i].change) {
			out->v[i].keep = c->v[k].keep;
			out->v[i].units = c->v[k].units;
		}
	}
	case_close(out);
	return 0;
}

static int move_to(struct work *w, struct case_at *c, uint64_t point, struct err *err)
{
	struct case_at there = { 0 };
	int rc = move_case(w, c, point, &there, err);

	if (rc)
		return rc;
	case_release(c);
	*c = there;
	return 0;
}

static int fails_at(struct work *w, const struct case_at *c, uint64_t point, struct err *err)
{
	auto_case there = { 0 };
	int rc = move_case(w, c, point, &there, err);

	return rc ? rc : fails(w, &there, err);
}

static size_t place_of(const struct work *w, uint64_t point)
{
	return first_where(i, w->points.n, w->points.v[i] >= point);
}

/* Finds a point that fails right after one that passes, by bisection, and crashes there. */
static int crash_sooner(struct work *w, struct case_at *c, size_t low, struct err *err)
{
	size_t high = place_of(w, c->point);
	int rc = 0;

	while (low + 1 < high) {
		size_t mid = low + (high - low) / 2;

		rc = fails_at(w, c, w->points.v[mid], err);
		if (rc < 0)
			return rc;
		if (rc)
			high = mid;
		else
			low = mid;
	}
	if (high < w->points.n && w->points.v[high] < c->point)
		return move_to(w, c, w->points.v[high], err);
	return 0;
}

static uint64_t first_lost(const struct work *w, const struct case_at *c)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->v[i].keep != KEEP_ALL)
			return w->o->h->changes.v[c->v[i].change].event;
	return UINT64_MAX;
}

/*
 * The check fails before the lost operations, too, without losing them. If something was
 * acknowledged since, losing them still breaks that promise: finds the first acknowledgement after
 * which the state fails. Returns 1 if there is one.
 */
static int find_promise(struct work *w, struct case_at *c, uint64_t first, struct err *err)
{
	const struct trace *t = w->o->h->trace;

	for (uint64_t i = first + 1; i < c->point; i++) {
		if (t->events.v[i].kind != EV_PERSIST)
			continue;
		int rc = fails_at(w, c, i + 1, err);

		if (rc < 0)
			return rc;
		if (rc)
			return move_to(w, c, i + 1, err) ? err->code : 1;
	}
	return 0;
}

/*
 * Finds the kind. Right before the first lost operation nothing is lost; if the check fails even
 * there, the loss is not the cause, unless it was acknowledged since.
 */
static int find_kind(struct work *w, struct case_at *c, enum explain_kind *kind, struct err *err)
{
	uint64_t first = first_lost(w, c);
	int rc;

	*kind = EXPLAIN_ORDER;
	if (first != UINT64_MAX) {
		size_t low = place_of(w, first + 1); /* not 0: the first is before all */

		rc = fails_at(w, c, w->points.v[low - 1], err);
		if (rc < 0)
			return rc;
		if (!rc)
			return crash_sooner(w, c, low - 1, err);
		rc = find_promise(w, c, first, err);
		if (rc)
			return min(rc, 0);
		rc = move_to(w, c, w->points.v[low - 1], err);
		if (rc)
			return rc;
	}
	case_keep_all(c);
	rc = fails_at(w, c, w->points.v[0], err);
	*kind = rc == 1 ? EXPLAIN_START : EXPLAIN_WINDOW;
	if (rc)
		return rc < 0 ? rc : move_to(w, c, w->points.v[0], err);
	return crash_sooner(w, c, 0, err);
}

/* ---- results ---- */

static uint32_t count_units(const uint64_t *units, uint32_t n)
{
	uint32_t there = 0;

	for (uint32_t i = 0; i < n; i++)
		there += units[i / 64] >> i % 64 & 1;
	return there;
}

static bool has_role(const struct explained *e, uint32_t role)
{
	return any_of(i, e->roles.n, e->roles.v[i] == role);
}

static void tell_lost(const struct work *w, const struct case_at *c, struct explained *e)
{
	const struct history *h = w->o->h;

	vec_each(p, c) {
		struct explain_lost l = { .change = p->change,
					  .event = h->changes.v[p->change].event };

		if (p->keep == KEEP_ALL)
			continue;
		if (p->keep == KEEP_SOME) {
			l.units = h->changes.v[p->change].units;
			l.kept = count_units(p->units, l.units);
		}
		if (!has_role(e, w->o->roles->of[p->change]))
			vec_push(&e->roles, w->o->roles->of[p->change]);
		vec_push(&e->lost, l);
	}
}

/* Adds the kind of call at an event, and the kind of its file if that is known. */
static void add_event_role(const struct work *w, uint64_t event, struct strbuf *out)
{
	const struct history *h = w->o->h;
	struct posix_event e;

	if (event >= h->trace->events.n)
		return;
	if (h->trace->events.v[event].kind == EV_PERSIST) {
		strbuf_adds(out, "acknowledged");
		return;
	}
	const struct change *c = vec_find(i, &h->changes, h->changes.v[i].event == event);
	if (c)
		strbuf_adds(out, role_of(w->o->roles, (uint32_t)(c - h->changes.v)));
	else if (h->trace->events.v[event].kind == EV_POSIX &&
		 !posix_decode(&h->trace->events.v[event], &e, NULL))
		strbuf_adds(out, posix_op_name(e.op));
}

DEFINE_ORDER(by_role, uint32_t, order(*a, *b))

static void tell_cause(const struct work *w, struct explained *e)
{
	struct strbuf cause = STRBUF_INIT;

	strbuf_adds(&cause, app_harm_name(e->harm));
	vec_sort(&e->roles, by_role);
	for (size_t i = 0; i < e->roles.n; i++)
		strbuf_addf(&cause, "%s%s", i ? ", " : ": lost ",
			    w->o->roles->texts.v[e->roles.v[i]]);
	strbuf_adds(&cause, e->lost.n ? "; not " : ": after ");
	add_event_role(w, e->after, &cause);
	e->cause = strbuf_detach(&cause);
}

/* Finds the next operation after which the state, with nothing lost, passes again. */
static int find_until(struct work *w, const struct case_at *c, struct explained *e, struct err *err)
{
	size_t at = place_of(w, c->point + 1);

	for (size_t i = at; i < w->points.n && i < at + UNTIL_MAX; i++) {
		enum app_harm harm;
		auto_case later = { 0 };
		int rc = w->checks < w->checks_max ? case_load(w->o->h, w->points.v[i], &later, err)
						   : 1;
		if (rc)
			return min(rc, 0);
		case_keep_all(&later);
		rc = ask(w, &later, &harm, err);
		if (rc < 0)
			return rc;
		if (rc == 0) {
			e->until = w->points.v[i] - 1;
			return 0;
		}
	}
	return 0;
}

/* ---- the missing call ---- */

/* Restores the changes that the call makes durable one event after the crash; returns how many. */
static unsigned give_durable(const struct history *mended, struct case_at *c)
{
	unsigned n = 0;

	for (size_t i = 0; i < c->n; i++)
		if (c->v[i].keep != KEEP_ALL &&
		    change_is_durable(&mended->changes.v[c->v[i].change], c->point + 1)) {
			case_give_back(c, i);
			n++;
		}
	return n;
}

/* Returns 2 if the call makes all losses durable, 1 if some, and the check then passes; else 0. */
static int try_mend(struct work *w, const struct case_at *c, const struct explained *e,
		    enum mend_what what, uint32_t lost, struct err *err)
{
	auto_case with = { .n = c->n, .v = xcalloc(c->n + 1, sizeof(*c->v)) };
	struct history *h = w->o->h;
	enum app_harm harm;
	struct mended m;
	int rc = mend(h, w->o->made, e->lost.v[lost].change, what, vec_last(&e->lost).event, &m,
		      err);

	if (rc)
		return rc == -ENOENT ? 0 : rc;
	assert(m.h.changes.n == h->changes.n);
	with.point = c->point;
	memcpy(with.v, c->v, c->n * sizeof(*c->v));
	with.needs = c->needs; /* borrowed */
	unsigned n = give_durable(&m.h, &with);
	rc = n ? ask(w, &with, &harm, err) : 1;
	with.needs = NULL;
	mended_release(&m);
	if (rc)
		return rc < 0 ? rc : 0;
	return n >= e->lost.n ? 2 : 1;
}

/* Tries the nearest mend first; one that makes all losses durable is better than one for a part. */
static int find_mend(struct work *w, const struct case_at *c, struct explained *e, struct err *err)
{
	static const enum mend_what order[2][3] = { { MEND_FILE, MEND_DIR, MEND_OLD_DIR },
						    { MEND_DIR, MEND_OLD_DIR, MEND_FILE } };

	if (!w->o->made || !e->lost.n || e->after == UINT64_MAX ||
	    vec_last(&e->lost).event >= e->after)
		return 0;
	for (uint32_t i = 0; i < 3 * min(e->lost.n, (size_t)MEND_LOST_MAX); i++) {
		uint32_t lost = i % (uint32_t)min(e->lost.n, (size_t)MEND_LOST_MAX);
		enum change_kind kind = w->o->h->changes.v[e->lost.v[lost].change].kind;
		enum mend_what what =
			order[kind <= CHANGE_SWAP][i / min(e->lost.n, (size_t)MEND_LOST_MAX)];
		int rc = try_mend(w, c, e, what, lost, err);

		if (rc < 0)
			return rc;
		if (rc && !e->mend.found)
			e->mend = (struct explain_mend){ true, what, lost };
		if (rc == 2) {
			e->mend = (struct explain_mend){ true, what, lost };
			return 0;
		}
	}
	return 0;
}

static void tell_state(const struct work *w, const struct case_at *c, struct explained *e)
{
	e->harm = w->harm;
	e->point = c->point;
	e->acked = states_acked(w->o->h->trace, c->point);
	e->id = case_id(w->o->h, c);
	e->after = c->point > w->o->h->first_point ? c->point - 1 : UINT64_MAX;
	e->until = UINT64_MAX;
	tell_lost(w, c, e);
}

static int tell(struct work *w, struct case_at *c, struct explained *e, struct err *err)
{
	const struct trace *t = w->o->h->trace;
	int rc = 0;

	tell_state(w, c, e);
	if (e->kind == EXPLAIN_ORDER && e->after != UINT64_MAX &&
	    t->events.v[e->after].kind == EV_PERSIST)
		e->kind = EXPLAIN_ACK;
	if (e->kind == EXPLAIN_WINDOW)
		rc = find_until(w, c, e, err);
	else
		rc = find_mend(w, c, e, err);
	tell_cause(w, e);
	e->checks = w->checks;
	e->cut = w->cut;
	return rc;
}

static void work_release(struct work *w)
{
	vec_release(&w->answers);
	crash_points_release(&w->points);
}
#define auto_work __attribute__((cleanup(work_release))) struct work

static void work_init(struct work *w, const struct explain_opts *o, enum app_harm harm)
{
	*w = (struct work){ .o = o,
			    .harm = harm,
			    .checks_max = o->checks_max ? o->checks_max : CHECKS_MAX };
	states_points(o->h->trace, o->h->first_point, &w->points);
}

int explain(const struct explain_opts *o, const struct app_state *s, enum app_harm harm,
	    struct explained *out, struct err *err)
{
	struct explained e = { 0 };
	auto_case c = { 0 };
	auto_work w;
	int rc;

	work_init(&w, o, harm);
	rc = case_load(o->h, s->point, &c, err);
	if (!rc) {
		keep_survivors(&c, &s->survivors);
		rc = lose_less(&w, &c, err);
	}
	if (!rc)
		rc = tear_less(&w, &c, err);
	if (!rc)
		rc = find_kind(&w, &c, &e.kind, err);
	if (!rc)
		rc = tell(&w, &c, &e, err);
	if (rc)
		explained_release(&e);
	else
		*out = e;
	return rc;
}

int explain_not(const struct explain_opts *o, const struct app_state *s, enum app_harm harm,
		struct explained *out, struct err *err)
{
	struct work w = { .o = o, .harm = harm };
	auto_case c = { 0 };
	int rc = case_load(o->h, s->point, &c, err);

	if (rc)
		return rc;
	keep_survivors(&c, &s->survivors);
	*out = (struct explained){ .kind = EXPLAIN_NOT };
	tell_state(&w, &c, out);
	free(out->id);
	out->id = xstrdup(s->id); /* the state that was checked */
	return 0;
}

/* Returns 1 if the state, with nothing lost, fails in the same way in the same window. */
static int same_window(struct work *w, struct case_at *c, const struct explained *e,
		       struct err *err)
{
	if (e->kind != EXPLAIN_WINDOW || c->point <= e->after || c->point > e->until)
		return 0;
	case_keep_all(c);
	return fails(w, c, err);
}

int explain_same(const struct explain_opts *o, const struct app_state *s, const struct explained *e,
		 struct err *err)
{
	auto_case c = { 0 };
	auto_work w;
	enum app_harm harm;
	bool any = false;

	work_init(&w, o, e->harm);
	int rc = case_load(o->h, s->point, &c, err);
	if (rc)
		return rc;
	if (!e->lost.n)
		return same_window(&w, &c, e, err);
	keep_survivors(&c, &s->survivors);
	for (size_t i = 0; i < c.n; i++)
		if (c.v[i].keep != KEEP_ALL && has_role(e, o->roles->of[c.v[i].change])) {
			case_give_back(&c, i);
			any = true;
		}
	if (!any)
		return 0;
	rc = ask(&w, &c, &harm, err);
	return rc < 0 ? rc : !rc;
}
