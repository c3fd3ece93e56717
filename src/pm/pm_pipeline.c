/* SPDX-License-Identifier: MIT */
/*
 * pm_pipeline.c - records the program, verifies its file, searches its crash states, and keeps the
 * findings.
 */
#include "pm/pm_pipeline.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/below.h"
#include "base/log.h"
#include "case/given.h"
#include "case/suppress.h"
#include "pm/file.h"
#include "pm/pm_record.h"
#include "pm/reads.h"
#include "pm/recovery.h"
#include "search/nested.h"

enum { KEEP_MAX = 64 }; /* findings */

struct pm_whole {
	struct pm_asked *o;
	struct pm_outcome *out;
	struct pm_run run;
	struct pm_counts counts;
	bool loaded, made;
	struct pm_reasons told; /* reasons of failures that were reported at once */
	uint64_t first; /* number of the first finding of this process; earlier ones are others' */
	uint64_t early; /* the number after the findings that were kept early */
	uint64_t to;	/* number of the first final finding */
	struct case_keeper keeper;
	struct answers *answers;
};

static bool recovers(const struct pm_whole *p)
{
	return p->o->plan.crash & PM_CRASH_RECOVERY;
}

/* Keeps a failure that was reported, so that it can be replayed even if the run is killed. */
static void keep_early(struct pm_whole *p, const struct pm_failure *f)
{
	struct err err = ERR_INIT;
	struct pm_case c;

	if (p->early - p->first >= KEEP_MAX)
		return;
	pm_failure_case(&p->run, f, &c);
	p->out->kept = true;
	int rc = case_keep(&p->keeper, p->run.n_nested, p->early, &c, &err);
	/* The failure may still be kept at the end. */
	if (rc)
		log_warn("a failure is not kept yet: %s", err.msg);
	else
		p->early++;
	case_finding_release(&pm_kind, &c);
}

/* Reports and keeps a failure with a new reason; final findings are made at the end. */
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

static int load(struct pm_whole *p, struct err *err)
{
	int rc = pm_run_load(p->out->dir, &p->run, err);

	p->loaded = !rc;
	p->run.stop = p->o->stop;
	return rc;
}

/* Returns the inode number of a file; 0 if there is none. */
static uint64_t number_of(const char *path)
{
	struct stat st;

	return lstat(path, &st) < 0 ? 0 : st.st_ino;
}

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

	p->o->plan.made = p->made ? number_of(p->o->plan.file) : 0;
	if (!rc)
		rc = record_save(pm_kind.plan, p->out->dir, CASE_RUN, &p->o->plan, err);
	if (!rc)
		rc = case_run_mark(&pm_kind, p->out->dir, err);
	if (!rc)
		rc = load(p, err);
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
	auto_call(pm_failure_release) struct pm_failure f = { 0 };
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
	return rc;
}

/* ---- findings ---- */

/*
 * Replaces the findings that were kept early, and those of earlier processes, by the final ones,
 * whose numbers begin after them. If this process ended early, those of earlier ones stay.
 */
static int replace_early(struct pm_whole *p, size_t n, struct err *err)
{
	int rc = 0;

	p->to = p->out->stopped ? p->first : 0;
	for (size_t i = 0; !rc && p->early > p->to && i < n; i++)
		rc = case_move_number(p->out->dir, p->early + i, p->to + i, err);
	return rc ? rc : case_remove_from(p->out->dir, p->to + n, err);
}

/* Keeps the cases. If one cannot be kept, the others are, and those kept early stay. */
static int save_cases(struct pm_whole *p, const struct pm_cases *cases, struct err *err)
{
	size_t n = min(cases->n, (size_t)KEEP_MAX);

	p->out->kept |= n;
	int rc = 0;
	for (size_t i = 0; i < n; i++) {
		int saved = case_keep(&p->keeper, p->run.n_nested, p->early + i, &cases->v[i], err);

		rc = rc ? rc : saved;
	}
	return rc ? rc : replace_early(p, n, err);
}

/* Removes cases that a rule names; these are counted apart. */
static int leave_out_known(struct pm_whole *p, struct pm_cases *cases, struct err *err)
{
	auto_call(suppress_release) struct suppress known = { 0 };
	int rc = suppress_of_plan(p->o->plan.suppress, &known, err);
	size_t n = 0;

	for (size_t i = 0; i < cases->n; i++) {
		auto_free char *cluster = pm_case_cluster(&cases->v[i]);

		if (suppress_names(&known, p->o->plan.program, cluster))
			case_finding_release(&pm_kind, &cases->v[i]);
		else
			cases->v[n++] = cases->v[i];
	}
	p->out->summary.suppressed = cases->n - n;
	cases->n = n;
	return rc;
}

static int keep_cases(struct pm_whole *p, const struct pm_found *found, struct err *err)
{
	auto_vec struct pm_cases cases = { 0 };

	if (p->o->plan.dump)
		pm_judge_dumps(&p->run, &found->failures, &cases, &p->out->summary.failing);
	else
		pm_cluster(&p->run, &found->failures, &cases);
	auto_words there = { 0 };
	int rc = leave_out_known(p, &cases, err);
	p->out->summary.findings = cases.n;
	p->out->summary.not_kept = cases.n - min(cases.n, (size_t)KEEP_MAX);
	if (!rc)
		rc = save_cases(p, &cases, err);
	/* Findings of earlier processes count if they stay. */
	if (!rc && p->to)
		rc = case_list(p->out->dir, &there, err);
	p->out->summary.findings = max(p->out->summary.findings, (uint64_t)there.n);
	for (size_t i = 0; i < cases.n; i++) {
		p->o->found(p->o->ctx, &cases.v[i], p->to + i, !rc && i < KEEP_MAX);
		case_finding_release(&pm_kind, &cases.v[i]);
	}
	return rc;
}

/* Converts a number, which may be too large: then to the largest. */
static uint64_t saturated(double n)
{
	return n < 18446744073709551615.0 ? (uint64_t)n : UINT64_MAX;
}

static void summarise(struct pm_whole *p, const struct pm_found *f)
{
	struct pm_summary *s = &p->out->summary;
	const struct pm_counts *c = &p->counts;
	const struct pm_tally *m = &f->all;

	s->stores = c->stores;
	s->flushes = c->flushes;
	s->fences = c->fences;
	s->marks = c->marks;
	s->cpus = c->cpus;
	s->operations = c->stores + c->flushes + c->fences;
	s->crash_states = m->stats.tried;
	s->unique_states = m->stats.unique;
	s->checked = m->checked;
	s->failing = m->failing;
	s->errors = m->errors;
	s->left_out = saturated(m->stats.left_out);
	s->known = m->known;
	s->dropped = f->dropped;
	s->copies = pm_run_copies(&p->run);
	s->media_states = m->media_states;
	p->out->media_left_out = m->media_left_out;
	s->pruned = saturated(m->stats.pruned);
	p->out->cut = m->stats.budget_hit || m->stopped;
	s->budget_hit |= p->out->cut;
	p->out->stopped = m->stopped;
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
	found->all.errors += n;
	if (n && !found->error[0])
		snprintf(found->error, sizeof(found->error), "%.500s", words);
}

static void recover_again(struct pm_whole *p, const struct pm_search_opts *search,
			  struct pm_found *found)
{
	struct pm_search_opts each = *search;
	struct pm_recovery_opts o = { .run = &p->run,
				      .tracer = &p->o->tracer,
				      .count = p->o->plan.recoveries,
				      .search = &each };
	struct pm_recovered r;

	each.reads = NULL; /* the reads belong to another trace */
	each.changes = false;
	found->all.stopped |= *p->o->stop;
	if (!recovers(p) || *p->o->stop)
		return;
	struct err why = ERR_INIT;
	/* Earlier findings are reported even if this fails. */
	if (pm_recoveries(&o, found, &r, &why))
		add_error(found, 1, why.msg);
	found->all.stopped |= *p->o->stop;
	p->out->summary.budget_hit = r.budget_hit;
	p->out->recovery_ways = r.ways;
	p->out->recovery_resized = found->all.resized;
	p->out->summary.recoveries = r.traced;
	p->out->summary.recoveries_tried = r.different;
	p->out->summary.recovery_states = r.states;
	p->out->recovery_left_out = r.left_out;
}

/* A run that checked no state ends with an error: it must not look like one without findings. */
static void check_tried(struct pm_whole *p)
{
	p->out->untried = !p->out->summary.checked && !p->out->summary.findings &&
			  !p->out->summary.suppressed && !p->out->summary.errors;
	p->out->summary.errors += p->out->untried;
}

static int explore(struct pm_whole *p, struct err *err)
{
	auto_call(reads_release) struct reads reads = { 0 };
	struct pm_reads_count traced = { 0 };
	int rc = find_reads(p, &reads, &traced, err);

	if (rc)
		return rc;
	uint64_t budget = p->o->plan.budget;
	struct pm_search_opts o = { .run = &p->run,
				    .budget = recovers(p) ? nested_firsts(budget) : budget,
				    .changes = recovers(p),
				    .reads = p->o->plan.prune ? &reads : NULL,
				    .jobs = (unsigned)p->o->jobs,
				    .until_ns = p->o->time_ns ? util_now_ns() + p->o->time_ns : 0,
				    .stop = p->o->stop,
				    .progress = on_progress,
				    .failed = on_failed,
				    .ctx = p };
	auto_call(pm_found_release) struct pm_found found;
	rc = pm_search(&o, &found, err);
	if (!rc)
		recover_again(p, &o, &found);
	if (!rc) {
		add_error(&found, traced.lost, traced.error);
		summarise(p, &found);
		rc = keep_cases(p, &found, err);
		check_tried(p);
	}
	return rc ? rc : case_summary_save(&pm_kind, p->out->dir, &p->out->summary, err);
}

/* ---- the whole pipeline ---- */

static int use_dir(struct pm_whole *p, const char *dir, struct err *err)
{
	p->out->dir = below_real(dir);
	return p->out->dir ? 0 : err_set(err, -errno, "cannot use %s: %m", dir);
}

static int make_run(struct pm_whole *p, struct err *err)
{
	auto_free char *dir = NULL;

	if (p->o->output && case_is(p->o->output, "pm"))
		return err_set(err, -EEXIST,
			       "%s holds a run already: go on with it by --resume, or give "
			       "another -o",
			       p->o->output);
	int rc = case_create(p->o->output, "pm", pm_kind.made, &dir, err);
	if (rc)
		return rc;
	return use_dir(p, dir, err);
}

static int open_tracer(struct pm_whole *p, struct err *err)
{
	const struct pm_plan *plan = &p->o->plan;

	p->o->tracer.preload = plan->preload;
	p->o->tracer.stacks = plan->stacks;
	p->o->tracer.limit = plan->trace_limit;
	return tracer_open(&p->o->tracer, plan->qemu, err);
}

static int begin(struct pm_whole *p, struct err *err)
{
	int rc = open_tracer(p, err);

	if (!rc)
		rc = make_run(p, err);
	if (rc)
		return rc;
	rc = record(p, err);
	return rc ? rc : verify_end(p, err);
}

/* Checks that the options agree with the plan of the run, and takes that plan. */
static int take_plan(struct pm_whole *p, struct err *err)
{
	struct pm_plan *plan = &p->o->plan;
	int rc = given_agree(pm_kind.plan, &p->run.plan, plan, p->o->given, err);

	if (rc)
		return rc;
	pm_plan_release(plan);
	rc = pm_plan_load(p->out->dir, plan, err);
	return rc ? rc : case_trust_run(&pm_kind, p->out->dir, plan, p->o->trust, &plan->ours, err);
}

/* Resumes an interrupted run, as it was recorded. */
static int go_on(struct pm_whole *p, struct err *err)
{
	auto_words findings = { 0 };
	int rc = case_hold(p->o->resume, err);

	if (!rc)
		rc = use_dir(p, p->o->resume, err);
	if (!rc)
		rc = load(p, err);
	if (!rc)
		rc = take_plan(p, err);
	if (!rc)
		rc = open_tracer(p, err);
	if (!rc)
		rc = answers_open(p->out->dir, &p->answers, err);
	if (!rc)
		rc = case_sweep(p->out->dir, err);
	if (!rc && case_has_ended(p->out->dir))
		rc = below_remove(p->out->dir, CASE_SUMMARY, err);
	if (!rc)
		rc = case_list(p->out->dir, &findings, err);
	if (!rc)
		rc = pm_file_place(p->o->plan.file, &p->made, err);
	if (rc)
		return rc;
	/* The file may be another one by now; and another user's plan must not have it removed. */
	p->made |= !p->o->trust && p->o->plan.made && p->o->plan.made == number_of(p->o->plan.file);
	for (size_t i = 0; i < p->run.trace.events.n; i++)
		pm_count(&p->counts, &p->run.trace.events.v[i]);
	setenv("PMEM_IS_PMEM_FORCE", "1", 0); /* for checks, as during the recording */
	p->first = p->early = case_next_number(&findings);
	p->out->kept = findings.n;
	return verify_end(p, err);
}

static int run_all(struct pm_whole *p, struct err *err)
{
	int rc = p->o->resume ? go_on(p, err) : begin(p, err);

	if (!rc && !p->answers)
		rc = answers_open(p->out->dir, &p->answers, err);
	p->run.answers = p->answers; /* only now: the first check is always run */
	p->keeper = (struct case_keeper){ .kind = &pm_kind, .run = p->out->dir };
	if (!rc)
		rc = explore(p, err);
	if (rc && p->out->dir && !p->o->resume && !p->out->kept)
		case_discard(p->out->dir, pm_kind.made);
	answers_close(p->answers);
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
