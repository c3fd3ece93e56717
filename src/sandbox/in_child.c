/* SPDX-License-Identifier: MIT */
/* in_child.c - makes the call as the one unit of a pool with one worker. */
#include "sandbox/in_child.h"

#include <errno.h>
#include <sys/prctl.h>

#include "base/reap.h"
#include "base/signals.h"

struct child_end {
	int rc;
	struct err err;
};

struct child_call {
	const struct in_child *c;
	struct pool *pool;
	bool given, told;
	struct child_end end;
};

static int work(void *ctx, struct pool_worker *w)
{
	const struct child_call *x = ctx;
	const struct in_child *c = x->c;
	struct child_end end = { 0 };
	auto_strbuf text = STRBUF_INIT;
	uint64_t unit;

	signals_in_child(false); /* default signals for the programs that it runs */
	if (!pool_next(w, &unit, NULL))
		return 0;
	end.rc = c->fn(c->ctx, w, c->out, &end.err);
	strbuf_add(&text, &end, sizeof(end));
	if (c->out_size)
		strbuf_add(&text, c->out, c->out_size);
	pool_done(w, text.buf, text.len);
	return 0;
}

static bool next(void *ctx, uint64_t *unit, struct strbuf *data)
{
	struct child_call *x = ctx;

	(void)data;
	*unit = 0;
	return !x->given && (x->given = true);
}

static int done(void *ctx, uint64_t unit, const void *data, size_t len, const struct pool_end *lost)
{
	struct child_call *x = ctx;

	(void)unit;
	if (lost)
		return 0;
	assert(len == sizeof(x->end) + x->c->out_size);
	memcpy(&x->end, data, sizeof(x->end));
	if (x->c->out_size)
		memcpy(x->c->out, (const char *)data + sizeof(x->end), x->c->out_size);
	x->told = true;
	return 0;
}

static enum pool_then ended(void *ctx, const struct pool_end *e)
{
	struct child_call *x = ctx;
	auto_strbuf words = STRBUF_INIT;

	pool_end_words(e, &words);
	if (*e->at)
		strbuf_addf(&words, " at %s", e->at);
	if (e->stopped)
		strbuf_addf(&words, "; %s was stopped from outside", e->stopped);
	if (!x->told)
		x->end.rc = err_set(&x->end.err, e->how == POOL_HUNG ? -ETIMEDOUT : -ECHILD,
				    "a process of ours %s", strbuf_str(&words));
	return POOL_SKIP;
}

static void tick(void *ctx)
{
	struct child_call *x = ctx;

	if (x->c->stop && *x->c->stop)
		pool_kill(x->pool);
}

int in_child(const struct in_child *c, struct err *err)
{
	struct child_call x = { .c = c };
	struct pool_opts opts = { .jobs = 1,
				  .patience_ms = c->patience_ms,
				  .ctx = &x,
				  .work = work,
				  .next = next,
				  .done = done,
				  .ended = ended,
				  .tick = tick };
	int orphans = 0;

	prctl(PR_GET_CHILD_SUBREAPER, &orphans);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	int rc = pool_new(&opts, &x.pool, err);
	if (!rc)
		rc = pool_run(x.pool, err);
	pool_free(x.pool);
	(void)reap_below();
	prctl(PR_SET_CHILD_SUBREAPER, orphans);
	if (rc)
		return rc;
	if (!x.told && !x.end.rc)
		return err_set(err, -EINTR, "stopped by a signal");
	if (x.end.rc && err && !err->code)
		*err = x.end.err;
	return x.end.rc;
}
