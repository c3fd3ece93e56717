/* SPDX-License-Identifier: MIT */
/*
 * shares.c - divides steps among the workers of a pool, and replaces workers that died.
 *
 * H1: a unit of the pool is a share. Each message tells the step from which on the rest of the
 *     share is to be done; that step never decreases.
 */
#include "pm/shares.h"

#include "base/log.h"

struct shares_run {
	const struct shares *o;
	struct pool *pool;
	unsigned given; /* shares given to workers */
	int rc;
	struct {
		uint64_t from;
		unsigned lost; /* steps given up in a row */
	} share[POOL_JOBS_MAX];
};

/* A message is the step from which on the rest is to be done, and the user's data. */
void share_tell(struct share *s, uint64_t next, const void *data, size_t len)
{
	auto_strbuf text = STRBUF_INIT;

	strbuf_add(&text, &next, sizeof(next));
	strbuf_add(&text, data, len);
	pool_tell(s->w, s->number, text.buf, text.len);
}

/* Does one share: this copy of the parent knows its progress, so each share needs a new copy. */
static int work(void *ctx, struct pool_worker *w)
{
	const struct shares_run *r = ctx;
	uint64_t unit;

	if (!pool_next(w, &unit, NULL))
		return 0;
	struct share s = { w, (unsigned)unit, r->o->n, r->share[unit].from };
	r->o->work(r->o->ctx, &s);
	pool_done(w, NULL, 0);
	return 0;
}

static bool next(void *ctx, uint64_t *unit, struct strbuf *data)
{
	struct shares_run *r = ctx;

	(void)data;
	*unit = r->given;
	return r->given < r->o->n && ++r->given;
}

static void take(void *ctx, unsigned worker, uint32_t share, const void *data, size_t len)
{
	struct shares_run *r = ctx;
	uint64_t from;

	(void)worker;
	assert(share < r->o->n && len >= sizeof(from));
	memcpy(&from, data, sizeof(from));
	assert(from >= r->share[share].from); /* H1 */
	r->share[share].from = from;
	r->share[share].lost = 0;
	int rc =
		r->o->told(r->o->ctx, share, (const char *)data + sizeof(from), len - sizeof(from));
	if (!rc)
		return;
	r->rc = r->rc ? r->rc : rc;
	pool_kill(r->pool);
}

static enum pool_then ended(void *ctx, const struct pool_end *e)
{
	struct shares_run *r = ctx;
	auto_strbuf words = STRBUF_INIT;

	if (!e->open)
		return POOL_AGAIN;
	strbuf_adds(&words, "a process that checks crash states ");
	pool_end_words(e, &words);
	strbuf_addf(&words, "%s%s", *e->at ? " at " : "", e->at);
	if (e->stopped)
		strbuf_addf(&words, "; %s was stopped from outside", e->stopped);
	if (e->how != POOL_HUNG && e->times < SHARES_TRIES) {
		log_warn("%s; another one goes on", strbuf_str(&words));
		return POOL_AGAIN;
	}
	/* Without a step, the place to go on is unknown. */
	bool whole = e->step == POOL_NONE || ++r->share[e->unit].lost >= SHARES_LOST_MAX;
	if (!whole)
		r->share[e->unit].from = e->step + 1;
	r->o->lost(r->o->ctx, (unsigned)e->unit, whole, strbuf_str(&words));
	return whole ? POOL_SKIP : POOL_AGAIN;
}

static void tick(void *ctx)
{
	struct shares_run *r = ctx;

	if (r->o->stop && *r->o->stop)
		pool_kill(r->pool);
	if (r->o->tick)
		r->o->tick(r->o->ctx);
}

int shares_run(const struct shares *o, struct err *err)
{
	struct shares_run r = { .o = o };
	struct pool_opts opts = { .jobs = o->n,
				  .patience_ms = o->patience_ms,
				  .ctx = &r,
				  .work = work,
				  .next = next,
				  .message = take,
				  .ended = ended,
				  .tick = tick };

	assert(o->n >= 1 && o->n <= POOL_JOBS_MAX);
	int rc = pool_new(&opts, &r.pool, err);
	if (!rc)
		rc = pool_run(r.pool, err);
	pool_free(r.pool);
	return r.rc ? r.rc : rc;
}
