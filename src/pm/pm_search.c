/* SPDX-License-Identifier: MIT */
/* pm_search.c - starts the workers that check states, and groups their failures. */
#include "pm/pm_search.h"

#include <inttypes.h>

#include "pm/worker.h"

enum { FAILURES_MAX = 4096, CHECK_MS = 10000 };

const struct pm_run *pm_failure_run(const struct pm_run *r, const struct pm_failure *f)
{
	return f->recovery ? &r->nested[f->recovery - 1] : r;
}

void pm_failure_release(struct pm_failure *f)
{
	free(f->state);
	free(f->lost);
	free(f->survived);
	free(f->said);
	*f = (struct pm_failure){ 0 };
}

void pm_found_release(struct pm_found *f)
{
	for (size_t i = 0; i < f->failures.n; i++)
		pm_failure_release(&f->failures.v[i]);
	vec_release(&f->failures);
	pm_reasons_release(&f->reasons);
	second_ways_release(&f->changes);
}

bool pm_found_add(struct pm_found *found, const struct pm_run *r, struct pm_failure *f)
{
	/* The first failure for a reason is kept even if thousands came before it. */
	bool first = pm_reasons_add(&found->reasons, r, f);

	if (first || found->failures.n < FAILURES_MAX) {
		vec_push(&found->failures, *f);
		*f = (struct pm_failure){ 0 };
	} else {
		assert(!first); /* W1 */
		pm_failure_release(f);
		found->dropped++;
	}
	return first;
}

/* ---- messages of workers ---- */

struct pm_search {
	const struct pm_search_opts *o;
	struct pm_found *found;
	struct pm_worker *common;
	unsigned jobs;
	struct pm_tally share[POOL_JOBS_MAX];
};

static void first_error(struct pm_found *f, const char *text)
{
	if (!f->error[0])
		snprintf(f->error, sizeof(f->error), "%s", text);
}

static void add_failure(struct pm_search *x, struct pm_failure *f)
{
	const struct pm_search_opts *o = x->o;

	if (o->recovery) {
		char *id = xasprintf("r%" PRIu64 ":%s", o->recovery - 1, f->state);

		free(f->state);
		f->state = id;
		f->recovery = o->recovery;
	}
	if (o->run->plan.dump)
		vec_push(&x->found->failures, *f);
	else if (pm_found_add(x->found, o->whole ? o->whole : o->run, f) && o->failed)
		o->failed(o->ctx, &vec_last(&x->found->failures));
}

/* Takes the next part of a message. */
static void *part(const char **at, const char *end, size_t len)
{
	assert((size_t)(end - *at) >= len);
	*at += len;
	return xmemdupz(*at - len, len);
}

static void take_failure(struct pm_search *x, const struct pm_message *m, const char *at,
			 const char *end)
{
	struct pm_failure f = m->f;

	f.state = part(&at, end, m->id_len);
	f.lost = part(&at, end, pm_listed(f.n_lost) * sizeof(*f.lost));
	f.survived = part(&at, end, pm_listed(f.n_survived) * sizeof(*f.survived));
	f.said = part(&at, end, m->said_len);
	add_failure(x, &f);
}

static int on_told(void *ctx, unsigned share, const void *data, size_t len)
{
	struct pm_search *x = ctx;
	struct pm_message m;
	const char *at = data, *end = at + len;

	assert(len >= sizeof(m));
	memcpy(&m, data, sizeof(m));
	at += sizeof(m);
	if (m.error) {
		auto_free char *text = part(&at, end, m.said_len);

		first_error(x->found, text);
	}
	if (m.failure)
		take_failure(x, &m, at, end);
	if (m.changed)
		vec_push(
			&x->found->changes,
			(struct second_way){ .what = m.change, .state = part(&at, end, m.id_len) });
	x->share[share] = m.tally;
	return 0;
}

/* ---- workers ---- */

static void work(void *ctx, struct share *s)
{
	const struct pm_search *x = ctx;

	pm_work(x->common, s, &x->share[s->number], x->o->until_ns);
}

static void on_lost(void *ctx, unsigned share, bool whole, const char *words)
{
	struct pm_search *x = ctx;
	auto_free char *text =
		xasprintf("%s%s", words, whole ? "; the rest of its share is not tried" : "");

	x->share[share].errors++;
	first_error(x->found, text);
}

static void add_up(struct pm_search *x)
{
	struct pm_tally all = { .stopped = x->found->all.stopped, .stats = x->found->all.stats };

	for (unsigned i = 0; i < x->jobs; i++) {
		const struct pm_tally *m = &x->share[i];

		all.checked += m->checked;
		all.failing += m->failing;
		all.errors += m->errors;
		all.known += m->known;
		all.media_states += m->media_states;
		all.resized += m->resized;
		all.media_left_out += m->media_left_out;
		all.stopped |= m->stopped;
		/* All workers go through the same states; the last of them uses up the budget. */
		bool budget_hit = all.stats.budget_hit || m->stats.budget_hit;
		if (m->stats.tried > all.stats.tried)
			all.stats = m->stats;
		all.stats.budget_hit = budget_hit;
	}
	x->found->all = all;
}

static void on_tick(void *ctx)
{
	struct pm_search *x = ctx;

	add_up(x);
	if (x->o->progress)
		x->o->progress(x->o->ctx, x->found->all.checked, x->found->all.failing);
}

uint64_t pm_patience_ms(const struct pm_plan *p)
{
	return 2 * (p->timeout_ms ? p->timeout_ms : CHECK_MS) + SHARES_SLACK_MS;
}

int pm_search(const struct pm_search_opts *o, struct pm_found *out, struct err *err)
{
	struct pm_search *x = xcalloc(1, sizeof(*x));
	struct shares shares = { .n = min(max(o->jobs, 1u), (unsigned)POOL_JOBS_MAX),
				 .patience_ms = pm_patience_ms(&o->run->plan),
				 .stop = o->stop,
				 .ctx = x,
				 .work = work,
				 .told = on_told,
				 .lost = on_lost,
				 .tick = on_tick };

	*out = (struct pm_found){ 0 };
	x->o = o;
	x->found = out;
	x->jobs = shares.n;
	int rc = pm_worker_new(o, &x->common, err);
	if (!rc)
		rc = shares_run(&shares, err);
	pm_worker_free(x->common);
	add_up(x);
	out->all.stopped |= o->stop && *o->stop;
	free(x);
	return rc;
}
