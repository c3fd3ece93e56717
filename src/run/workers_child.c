/* SPDX-License-Identifier: MIT */
/* workers_child.c - a process that runs workloads, and tells its parent what it finds. */
#include <errno.h>

#include "base/hash.h"
#include "run/store.h"
#include "run/workers_impl.h"

/* ---- how many are kept ---- */

struct workers_kept *workers_find_kept(struct workers_shared *s, const char *cluster)
{
	uint64_t hash = hash64(cluster, strlen(cluster));

	hash += !hash;
	for (size_t i = 0; i < KEPT_SLOTS; i++) {
		struct workers_kept *k = &s->kept[(hash + i) % KEPT_SLOTS];
		uint64_t there = 0;

		if (atomic_compare_exchange_strong(&k->hash, &there, hash) || there == hash)
			return k;
	}
	return NULL;
}

bool workers_take_place(struct workers_shared *s, const char *cluster, uint64_t limit)
{
	if (limit == UINT64_MAX)
		return true;
	struct workers_kept *k = limit ? workers_find_kept(s, cluster) : NULL;
	uint64_t n = k ? atomic_load(&k->count) : limit;

	while (n < limit)
		if (atomic_compare_exchange_weak(&k->count, &n, n + 1))
			return true;
	return false;
}

struct worker_finding workers_finding(uint64_t workload, enum finding_kind kind, uint32_t kinds,
				      const char *cluster, const char *words)
{
	struct worker_finding f = { .workload = workload,
				    .kind = kind,
				    .what = { .kinds = kinds, .count = 1 } };

	snprintf(f.what.name, sizeof(f.what.name), "%s", cluster);
	snprintf(f.what.words, sizeof(f.what.words), "%s", words);
	return f;
}

/* ---- in the worker ---- */

static void tell_words(struct worker *w, enum message_kind kind, const char *words)
{
	pool_tell(w->pool, kind, words, strlen(words));
}

static void on_phase(void *ctx, const char *what, const char *on)
{
	const struct worker *w = ctx;

	pool_at(w->pool, 0, "%s%s%s", what, *on ? " " : "", on);
}

static void on_starting(void *ctx)
{
	pool_beat_slow(ctx);
}

static bool is_cut(void *ctx)
{
	const struct worker *w = ctx;

	return atomic_load(&w->shared->cut);
}

static int on_finding(void *ctx, const struct run_case *c, struct err *err)
{
	struct worker *w = ctx;
	const struct finding *first = &c->findings->v[0];
	auto_free char *cluster = store_cluster(first->kind, c->workload, c->operation);
	auto_free char *id = store_id_of(c);
	uint32_t kinds = 0;
	bool same;

	if (store_suppressed(w->opts->suppress, w->opts->run.target.spec, c->findings, c->workload,
			     c->operation)) {
		w->suppressed++;
		return 0;
	}
	vec_each(x, c->findings)
		kinds |= 1U << x->kind;
	struct worker_finding f = workers_finding(w->at, first->kind, kinds, cluster, first->words);
	f.number = earlier_number(w->opts->earlier, w->at, cluster, id, &w->next_case, &same);
	f.what.kept = same || workers_take_place(w->shared, cluster, w->opts->keep);
	if (f.what.kept) {
		struct store_place at = { .run = w->dir,
					  .base = w->base,
					  .base_kept = &w->base_kept,
					  .workload = w->at,
					  .number = f.number };
		int rc = store_case(&at, c, &w->opts->run, err);

		if (rc == -ENOSPC)
			err_context(err, "the finding cannot be kept; give it a place with "
					 "--output");
		if (rc)
			return rc;
	}
	pool_tell(w->pool, MSG_FINDING, &f, sizeof(f));
	return 0;
}

/* -ENODEV: the target is good for nothing more. */
static int do_workload(struct worker *w, struct run *run, struct workload *scratch)
{
	struct worker_done m = { .number = w->at };
	struct run_reporter reporter = {
		.found = on_finding, .ctx = w, .phase = on_phase, .stopped = is_cut
	};
	struct err err = ERR_INIT;

	on_phase(w, "making the workload", "");
	int rc = supply_get(w->opts->source, w->at, scratch, &err);

	w->next_case = w->suppressed = 0;
	if (!rc)
		rc = run_workload(run, scratch, &reporter, &m.totals, &err);
	if (rc && rc != -ECANCELED) {
		err_context(&err, "workload %s", scratch->named ? scratch->name : "without a name");
		tell_words(w, MSG_ERROR, err.msg);
	}
	m.failed = rc != 0;
	m.totals.suppressed = rc ? 0 : w->suppressed;
	m.totals.findings -= min(m.totals.findings, w->suppressed);
	pool_tell(w->pool, MSG_DONE, &m, sizeof(m));
	return rc;
}

enum worker_end workers_child(struct worker *w)
{
	struct run_opts opts = w->opts->run;
	auto_workload scratch;
	struct err err = ERR_INIT;
	struct run *run = NULL;

	workload_init(&scratch);
	opts.target.worker = pool_number(w->pool);
	opts.target.kmsg = &w->shared->kmsg;
	opts.target.starting = on_starting;
	opts.target.starting_ctx = w->pool;
	on_phase(w, "making a file system", "");
	if (run_open(&opts, &run, &err)) {
		tell_words(w, MSG_FATAL, err.msg);
		return WORKER_NOT_BEGUN;
	}
	pool_ready(w->pool);
	while (pool_next(w->pool, &w->at, NULL)) {
		/* To close what cannot be unmounted may take for ever; it goes with this process.
		 */
		if (do_workload(w, run, &scratch) == -ENODEV)
			return WORKER_LOST;
		pool_done(w->pool, NULL, 0);
	}
	on_phase(w, "closing the file system", "");
	run_close(run);
	return WORKER_DONE;
}
