/* SPDX-License-Identifier: MIT */
/*
 * state.c - builds one crash state with its media fault, checks it again, and leaves out what is
 * not needed.
 */
#include "pm/state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/below.h"
#include "pm/cause.h"

/* ---- building ---- */

/* "r3:ID" is the state ID of what was done to recover the third time. */
static int find_run(const struct pm_run *r, const char **id, struct pm_state *out, struct err *err)
{
	char *rest;

	out->run = r;
	out->prefix = xstrdup("");
	if (**id != 'r')
		return 0;
	unsigned long long number = strtoull(*id + 1, &rest, 10);
	auto_free char *dir = xasprintf("%s" BELOW_MARK "recovery/%llu", r->dir, number);

	if (*rest != ':')
		return err_set(err, -EINVAL, "'%.80s' is not the id of a crash state", *id);
	free(out->prefix);
	out->prefix = xasprintf("r%llu:", number);
	*id = rest + 1;
	out->nested = xcalloc(1, sizeof(*out->nested));
	out->run = out->nested;
	return pm_run_load(dir, out->nested, err);
}

static int put_fault(struct pm_state *out, struct err *err)
{
	auto_media_faults faults = { 0 };
	auto_image old = IMAGE_INIT;
	int rc = *out->fault ? media_parse(out->fault, out->run->base.size, &faults, err) : 0;

	if (rc || !*out->fault)
		return rc;
	pm_image_before(out->run, out->s.point, &old);
	media_apply(&faults, &old, &out->s.image);
	return 0;
}

int pm_state_load(const struct pm_run *r, const char *id, struct pm_state *out, struct err *err)
{
	*out = (struct pm_state){ 0 };
	int rc = find_run(r, &id, out, err);
	auto_free char *alone = xstrdup(id);
	char *slash = strchr(alone, '/');

	out->fault = xstrdup(slash ? slash + 1 : "");
	if (slash)
		*slash = '\0';
	if (!rc) {
		struct crash_opts opts = pm_run_crash(out->run);

		rc = crash_replay(&out->run->trace, &opts, alone, &out->s, err);
	}
	if (!rc)
		rc = put_fault(out, err);
	if (rc)
		pm_state_release(out);
	return rc;
}

void pm_state_release(struct pm_state *s)
{
	if (s->nested)
		pm_run_release(s->nested);
	free(s->nested);
	crash_state_release(&s->s);
	free(s->prefix);
	free(s->fault);
	*s = (struct pm_state){ 0 };
}

bool pm_shows(const struct pm_run *r, const struct pm_case *c, const struct pm_failure *f)
{
	return f->end != CHECK_PASSED || (r->plan.dump && streq(strbuf_str(&c->said), f->said));
}

/* ---- making it smaller ---- */

struct pieces vec_of(struct piece {
	uint64_t event;
	bool kept;
});

static int by_event(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	return (x->event > y->event) - (x->event < y->event);
}

/* What is in flight, in the order in which ids count it. */
static void list_pieces(const struct crash_state *s, struct pieces *out)
{
	for (size_t i = 0; i < s->survived.n; i++)
		vec_push(out, (struct piece){ s->survived.v[i], true });
	for (size_t i = 0; i < s->lost.n; i++)
		vec_push(out, (struct piece){ s->lost.v[i], false });
	if (out->n)
		qsort(out->v, out->n, sizeof(*out->v), by_event);
}

/* "2.point.words": any set of pieces; see crash.h. */
static char *set_id(const struct pm_state *s, const struct pieces *p)
{
	struct strbuf id = STRBUF_INIT;

	strbuf_addf(&id, "%s2.%" PRIu64, s->prefix, s->s.point);
	for (size_t i = 0; i < p->n; i += 32) {
		uint32_t word = 0;

		for (size_t k = i; k < min(i + 32, p->n); k++)
			word |= (uint32_t)p->v[k].kept << (k - i);
		strbuf_addf(&id, ".%" PRIu32, word);
	}
	if (*s->fault)
		strbuf_addf(&id, "/%s", s->fault);
	return strbuf_detach(&id);
}

struct state_shrinking {
	const struct pm_run *run;
	struct pm_case *c;
	struct pm_state now; /* the smallest that shows */
	struct pm_shrunk *out;
};

static int shows_at(struct state_shrinking *x, const char *id, bool *shown, struct err *err)
{
	struct pm_failure f = { 0 };
	int rc = pm_search_one(x->run, id, &f, err);

	x->out->tried++;
	if (!rc)
		*shown = pm_shows(x->run, x->c, &f);
	pm_failure_release(&f);
	return rc;
}

/* With `at` given back. A set that cannot be, as the store needs another one, is none to try. */
static int try_without(struct state_shrinking *x, struct pieces *p, size_t at, struct err *err)
{
	struct err cannot = ERR_INIT;
	struct pm_state next;
	bool shown = false;

	p->v[at].kept = true;
	auto_free char *id = set_id(&x->now, p);
	int rc = 0;
	if (!pm_state_load(x->run, id, &next, &cannot)) {
		if (next.s.lost.n < x->now.s.lost.n)
			rc = shows_at(x, id, &shown, err);
		if (!rc && shown) {
			pm_state_release(&x->now);
			x->now = next;
			free(x->c->state);
			x->c->state = steal(id);
		} else {
			pm_state_release(&next);
		}
	}
	p->v[at].kept = shown;
	return rc;
}

/* The words of what is still lost. */
static void describe(struct state_shrinking *x)
{
	auto_strbuf detail = STRBUF_INIT;
	const struct crash_state *s = &x->now.s;
	const struct pm_run *r = x->now.run;
	struct pm_extents all = { 0 };

	pm_extents_of(&r->trace, s->gone.v, s->gone.n, &all);
	for (size_t i = 0; i < all.n; i++) {
		struct pm_loss loss =
			pm_loss_of(&r->trace, all.v[i].event, s->point, s->gone.v, s->gone.n);

		pm_store_words(&r->trace, &r->where, "lost", &all.v[i], &loss, &detail);
	}
	vec_release(&all);
	free(x->c->detail);
	x->c->detail = xstrdup(strbuf_str(&detail));
	x->c->states = 1;
	if (strncmp(x->c->title, "fails if ", 9) != 0 || *x->now.fault)
		return;
	const char *rest = strstr(x->c->title, " lost");
	char *title = xasprintf("fails if %zu %s%s", s->lost.n,
				plural(s->lost.n, "store is", "stores are"), rest ? rest : " lost");

	free(x->c->title);
	x->c->title = title;
}

int pm_shrink(const struct pm_run *r, struct pm_case *c, uint64_t max_tries, struct pm_shrunk *out,
	      struct err *err)
{
	struct state_shrinking x = { .run = r, .c = c, .out = out };
	struct pieces pieces = { 0 };
	bool shown = false;

	*out = (struct pm_shrunk){ 0 };
	int rc = pm_state_load(r, c->state, &x.now, err);
	if (rc)
		return rc;
	out->lost_before = x.now.s.lost.n;
	rc = shows_at(&x, c->state, &shown, err);
	list_pieces(&x.now.s, &pieces);
	/* Stores to a line need those before them, so that the first is given back first. */
	for (size_t i = 0; !rc && shown && i < pieces.n && out->tried < max_tries; i++)
		if (!pieces.v[i].kept)
			rc = try_without(&x, &pieces, i, err);
	out->lost_after = x.now.s.lost.n;
	if (!rc && shown && out->lost_after < out->lost_before)
		describe(&x);
	vec_release(&pieces);
	pm_state_release(&x.now);
	return rc ? rc : !shown;
}
