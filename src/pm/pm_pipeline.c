/* SPDX-License-Identifier: MIT */
/*
 * pm_pipeline.c - records the program, verifies what it left, searches its crash states, and keeps
 * what was found.
 */
#include "pm/pm_pipeline.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/log.h"
#include "pm/pm_record.h"
#include "pm/reads.h"
#include "pm/recovery.h"

enum { KEEP_MAX = 64 }; /* findings */

struct pm_whole {
	struct pm_asked *o;
	struct pm_outcome *out;
	struct pm_run run;
	struct pm_counts counts;
	bool loaded, made;
	struct pm_reasons told; /* why states fail that were told as they came */
	uint64_t early;		/* findings, from number 0 on, that were kept then */
	size_t synced;		/* 1 + the recoveries that are on disk; 0: nothing is */
};

/* Writes to disk what findings need besides themselves, and each recovery traced since then. */
static int sync_run(struct pm_whole *p, struct err *err)
{
	int rc = p->synced > p->run.n_nested ? 0 : case_run_sync(&pm_kind, p->out->dir, err);

	if (!rc)
		p->synced = 1 + p->run.n_nested;
	return rc;
}

/* Keeps a failure that was told, so that it can be replayed whatever happens later. */
static void keep_early(struct pm_whole *p, const struct pm_failure *f)
{
	struct err err = ERR_INIT;
	struct pm_case c;

	if (p->early >= KEEP_MAX)
		return;
	pm_failure_case(&p->run, f, &c);
	p->out->kept = true;
	int rc = sync_run(p, &err);
	if (!rc)
		rc = pm_case_save(p->out->dir, p->early, &c, &err);
	/* The end may do better. */
	if (rc)
		log_warn("a failure is not kept yet: %s", err.msg);
	else
		p->early++;
	pm_case_release(&c);
}

/* A failure is told when it is first seen; which failures are one finding is known in the end. */
static void on_failed(void *ctx, const struct pm_failure *f)
{
	struct pm_whole *p = ctx;

	if (!pm_reasons_add(&p->told, &p->run, f))
		return;
	keep_early(p, f);
	p->o->failed(p->o->ctx, f, p->told.n);
}

static void on_progress(void *ctx, uint64_t checked, uint64_t failing)
{
	const struct pm_whole *p = ctx;

	p->o->progress(p->o->ctx, checked, failing);
}

/* ---- the run, and the state at its end ---- */

static int record(struct pm_whole *p, struct err *err)
{
	struct pm_record_opts o = { .tracer = &p->o->tracer,
				    .run = p->out->dir,
				    .file = p->o->plan.file,
				    .argv = p->o->argv,
				    .size = p->o->size,
				    .stop = p->o->stop,
				    .timeout_ms = p->o->plan.timeout_ms };
	int rc = pm_record(&o, &p->counts, &p->made, err);

	if (!rc)
		rc = record_save(pm_kind.plan, p->out->dir, CASE_RUN, &p->o->plan, err);
	if (!rc)
		rc = case_run_mark(&pm_kind, p->out->dir, err);
	if (!rc)
		rc = pm_run_load(p->out->dir, &p->run, err);
	p->loaded = !rc;
	p->run.stop = p->o->stop;
	if (!rc && p->o->tracer.preload && !p->counts.flushes && !p->counts.fences)
		log_warn("no flush and no fence was seen: if the program has its own (clwb, "
			 "sfence), what follows is wrong; leave out --tracer preload, so that an "
			 "emulator sees them");
	return rc;
}

static int verify_end(struct pm_whole *p, struct err *err)
{
	auto_free char *id = xasprintf("1.%zu", p->run.trace.events.n);
	auto_strbuf said = STRBUF_INIT, seen = STRBUF_INIT;
	struct pm_failure f = { 0 };
	int rc = pm_search_one(&p->run, id, &f, err);

	if (!rc && p->o->plan.dump && !p->counts.marks)
		rc = err_set(
			err, -EINVAL,
			"the program has no marks, so --dump cannot tell its operations apart: "
			"put outage_mark_begin(n) and outage_mark_end(n) of <outage/mark.h> "
			"around each, or use --check");
	if (!rc && f.end != CHECK_PASSED) {
		pm_failure_end(&f, &seen);
		strbuf_add_flat(&said, f.said);
		rc = err_set(err, -EINVAL,
			     "the check fails on the file as the program left it, without any "
			     "crash: mend that first (the check %s: %.300s)",
			     strbuf_str(&seen), strbuf_str(&said));
	}
	pm_failure_release(&f);
	return rc;
}

/* ---- what was found ---- */

/* Findings whose numbers begin after those that were kept early take the place of these. */
static int replace_early(struct pm_whole *p, size_t n, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && p->early && i < n; i++)
		rc = case_move_number(p->out->dir, p->early + i, i, err);
	for (uint64_t i = n; !rc && i < p->early; i++)
		rc = case_remove_number(p->out->dir, i, err);
	return rc;
}

/* Of an error, the others are kept all the same, and so is what was kept early. */
static int save_cases(struct pm_whole *p, const struct pm_cases *cases, struct err *err)
{
	size_t n = min(cases->n, (size_t)KEEP_MAX);

	if (!n)
		return 0;
	p->out->kept = true;
	int rc = sync_run(p, err);
	for (size_t i = 0; i < n; i++) {
		int saved = pm_case_save(p->out->dir, p->early + i, &cases->v[i], err);

		rc = rc ? rc : saved;
	}
	return rc ? rc : replace_early(p, n, err);
}

static int keep_cases(struct pm_whole *p, const struct pm_found *found, struct err *err)
{
	struct pm_cases cases = { 0 };

	if (p->o->plan.dump)
		pm_judge_dumps(&p->run, &found->failures, &cases, &p->out->summary.failing);
	else
		pm_cluster(&p->run, &found->failures, &cases);
	p->out->summary.findings = cases.n;
	int rc = save_cases(p, &cases, err);
	for (size_t i = 0; i < cases.n; i++) {
		if (i < KEEP_MAX)
			p->o->found(p->o->ctx, &cases.v[i], i, !rc);
		pm_case_release(&cases.v[i]);
	}
	vec_release(&cases);
	return rc;
}

/* More than can be counted is as much as can be. */
static uint64_t saturated(double n)
{
	return n < 18446744073709551615.0 ? (uint64_t)n : UINT64_MAX;
}

static void summarise(struct pm_whole *p, const struct pm_found *f)
{
	struct pm_summary *s = &p->out->summary;
	const struct pm_counts *c = &p->counts;

	s->stores = c->stores;
	s->flushes = c->flushes;
	s->fences = c->fences;
	s->marks = c->marks;
	s->cpus = c->cpus;
	s->operations = c->stores + c->flushes + c->fences;
	s->crash_states = f->stats.tried;
	s->unique_states = f->stats.unique;
	s->checked = f->checked;
	s->failing = f->failing;
	s->errors = f->errors;
	s->left_out = saturated(f->stats.left_out);
	s->known = f->known;
	s->dropped = f->dropped;
	s->copies = pm_run_copies(&p->run);
	s->media_states = f->media;
	p->out->media_left_out = f->media_left_out;
	s->pruned = saturated(f->stats.pruned);
	s->budget_hit = f->stats.budget_hit || f->stopped;
	s->elapsed_ms = (util_now_ns() - p->o->start_ns) / 1000000;
	memcpy(p->out->error, f->error, sizeof(p->out->error));
}

static int find_reads(struct pm_whole *p, struct reads *out, struct pm_reads_count *n,
		      struct err *err)
{
	int rc = p->o->plan.prune ? pm_reads_find(&p->run, &p->o->tracer, (unsigned)p->o->jobs,
						  p->o->stop, out, n, err)
				  : 0;

	p->out->summary.reads_traced = n->traced;
	p->out->summary.reads_whole = n->whole;
	return rc;
}

static void add_error(struct pm_found *found, uint64_t n, const char *words)
{
	found->errors += n;
	if (n && !found->error[0])
		snprintf(found->error, sizeof(found->error), "%.500s", words);
}

static void recover_again(struct pm_whole *p, const struct pm_search_opts *search,
			  struct pm_found *found)
{
	struct pm_recovery_opts o = {
		.run = &p->run, .tracer = &p->o->tracer, .count = p->o->recoveries, .search = search
	};
	struct pm_search_opts all = *search;
	struct pm_recovered r;

	all.reads = NULL; /* of another trace */
	all.changes = false;
	o.search = &all;
	if (!p->o->crash_recovery || *p->o->stop)
		return;
	struct err why = ERR_INIT;
	/* The findings made before are told all the same. */
	if (pm_recoveries(&o, found, &r, &why))
		add_error(found, 1, why.msg);
	p->out->recovery_ways = r.ways;
	p->out->recovery_resized = found->resized;
	p->out->summary.recoveries = r.traced;
	p->out->summary.recoveries_tried = r.different;
	p->out->summary.recovery_states = r.states;
	p->out->recovery_left_out = r.left_out;
}

/* A search that checked nothing must not look like one that found nothing. */
static void check_tried(struct pm_whole *p)
{
	p->out->untried = !p->out->summary.checked && !p->out->summary.findings &&
			  !p->out->summary.errors;
	p->out->summary.errors += p->out->untried;
}

static int explore(struct pm_whole *p, struct err *err)
{
	struct reads reads = { 0 };
	struct pm_reads_count traced = { 0 };
	int rc = find_reads(p, &reads, &traced, err);

	if (rc) {
		reads_release(&reads);
		return rc;
	}
	struct pm_search_opts o = { .run = &p->run,
				    .changes = p->o->crash_recovery,
				    .reads = p->o->plan.prune ? &reads : NULL,
				    .jobs = (unsigned)p->o->jobs,
				    .until_ns = p->o->time_ns ? util_now_ns() + p->o->time_ns : 0,
				    .stop = p->o->stop,
				    .progress = on_progress,
				    .failed = on_failed,
				    .ctx = p };
	struct pm_found found;
	rc = pm_search(&o, &found, err);
	if (!rc)
		recover_again(p, &o, &found);
	if (!rc) {
		add_error(&found, traced.lost, traced.error);
		summarise(p, &found);
		rc = keep_cases(p, &found, err);
		check_tried(p);
	}
	pm_found_release(&found);
	reads_release(&reads);
	if (!rc)
		rc = case_summary_save(&pm_kind, p->out->dir, &p->out->summary, err);
	return rc;
}

/* ---- all of it ---- */

static int make_run(struct pm_whole *p, struct err *err)
{
	auto_free char *dir = NULL;

	if (p->o->output && case_is(p->o->output, "pm"))
		return err_set(err, -EEXIST, "%s holds a run already: give another -o",
			       p->o->output);
	int rc = case_create(p->o->output, "pm", pm_kind.made, &dir, err);
	if (rc)
		return rc;
	p->out->dir = realpath(dir, NULL);
	return p->out->dir ? 0 : err_set(err, -errno, "cannot use %s: %m", dir);
}

/* Of a run that was none, nothing is worth keeping. */
static void discard(const struct pm_whole *p)
{
	auto_fd dir = open(p->out->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	unlinkat(dir, CASE_RUN, 0);
	for (const char *const *name = pm_kind.made; *name; name++)
		unlinkat(dir, *name, 0);
	unlinkat(dir, "findings", AT_REMOVEDIR); /* if it is empty */
	rmdir(p->out->dir);
}

static int run_all(struct pm_whole *p, struct err *err)
{
	int rc = tracer_open(&p->o->tracer, p->o->qemu, err);

	if (!rc)
		rc = make_run(p, err);
	if (rc)
		return rc;
	rc = record(p, err);
	if (!rc)
		rc = verify_end(p, err);
	if (!rc)
		rc = explore(p, err);
	if (rc && !p->out->kept)
		discard(p);
	return rc;
}

int pm_pipeline(struct pm_asked *asked, struct pm_outcome *out, struct err *err)
{
	struct pm_whole p = { .o = asked, .out = out };
	int rc = run_all(&p, err);

	if (p.made) /* the run made the file */
		unlink(asked->plan.file);
	if (p.loaded)
		pm_run_release(&p.run);
	pm_reasons_release(&p.told);
	return rc;
}
