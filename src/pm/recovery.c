/* SPDX-License-Identifier: MIT */
/*
 * recovery.c - chooses states whose recovery is traced, and searches the crashes of each.
 */
#include "pm/recovery.h"

#include "core/trace_file.h"
#include "pm/pm_command.h"
#include "pm/pm_record.h"
#include "search/nested.h"

struct recovery {
	const struct pm_recovery_opts *o;
	struct pm_found *found;
	struct pm_recovered *out;
	struct words argv;
	struct nested nested;
	uint64_t point; /* of the state whose recovery is being recorded */
};

static bool stopped(struct recovery *x)
{
	const struct pm_search_opts *o = x->o->search;

	x->found->all.stopped |= o->until_ns && util_now_ns() > o->until_ns;
	return x->found->all.stopped || (o->stop && *o->stop);
}

/* Hashes the stores, flushes and fences of a recovery, in their order. */
static struct hash128 hash_of(const struct trace *t)
{
	struct hash128 all = { 0, 0 };

	vec_each(ev, &t->events) {
		struct hash128 part[3] = { all, { ev->addr, ev->len }, { ev->kind, ev->flags } };

		if (ev->kind == EV_STORE)
			part[1] = hash_add(part[1], hash_bytes(ev->data, ev->len));
		if (ev->kind == EV_STORE || ev->kind == EV_LINEFLUSH || ev->kind == EV_FENCE)
			all = hash_bytes(part, sizeof(part));
	}
	return all;
}

/* Counts the events before the recovery's own. */
static uint64_t marks_before(const struct trace *t, uint64_t point)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < point; i++)
		n += pm_is_mark(&t->events.v[i]);
	return n;
}

/* Traces recovery on a state. */
static int record(void *ctx, const char *state, const char *dir, struct hash128 *what,
		  struct err *err)
{
	struct recovery *x = ctx;
	const struct pm_run *run = x->o->run;
	struct crash_opts opts = pm_run_crash(run);
	auto_crash_state s = CRASH_STATE_INIT;
	struct pm_counts counts = { 0 };
	bool file_made = false;
	auto_trace t;

	trace_init(&t);
	int rc = crash_replay(&run->trace, &opts, state, &s, err);
	if (rc)
		return rc;
	const struct pm_record_opts o = { .tracer = x->o->tracer,
					  .run = dir,
					  .file = run->plan.file,
					  .argv = (const char *const *)x->argv.v,
					  .timeout_ms = run->plan.timeout_ms,
					  .stop = x->o->search->stop,
					  .base = &s.image,
					  .outer = &run->trace,
					  .outer_point = s.point };
	rc = pm_record(&o, &counts, &file_made, err);
	if (rc)
		return rc;
	x->out->traced++;
	if (!counts.stores)
		return 1;
	rc = trace_load_below(dir, "trace", &t, err);
	*what = hash_of(&t);
	x->point = s.point;
	return rc;
}

static int adopt(void *ctx, const char *state, const char *dir, uint64_t budget, struct err *err)
{
	struct recovery *x = ctx;
	struct pm_run *run = x->o->run, made;
	struct pm_plan plan = run->plan;

	plan.first_point = marks_before(&run->trace, x->point) + 1;
	plan.budget = budget;
	plan.media = 0;
	int rc = record_save(pm_kind.plan, dir, CASE_RUN, &plan, err);
	if (!rc)
		rc = case_run_mark(&pm_kind, dir, err);
	if (!rc)
		rc = pm_run_load(dir, &made, err);
	if (rc)
		return rc;
	made.outer.state = xstrdup(state);
	made.outer.point = x->point;
	made.answers = run->answers;
	run->nested = xrealloc(run->nested, (run->n_nested + 1) * sizeof(*run->nested));
	run->nested[run->n_nested++] = made;
	return 0;
}

static const struct nested_ops nested_ops = { .record = record, .adopt = adopt };

/* Searches the crash states of one recovery; failures are reported as states of the whole run. */
static int search_one(struct recovery *x, size_t number, struct err *err)
{
	struct pm_search_opts o = *x->o->search;
	auto_call(pm_found_release) struct pm_found found;

	o.run = &x->o->run->nested[number];
	o.budget = o.run->plan.budget;
	o.whole = x->o->run;
	o.recovery = number + 1;
	int rc = pm_search(&o, &found, err);
	for (size_t i = 0; !rc && i < found.failures.n; i++) {
		vec_push(&x->found->failures, found.failures.v[i]);
		found.failures.v[i] = (struct pm_failure){ 0 };
	}
	const struct pm_tally *m = &found.all;
	struct pm_tally *all = &x->found->all;
	x->nested.spent += m->stats.unique;
	x->out->budget_hit |= m->stats.budget_hit;
	x->out->states += m->checked;
	x->out->left_out += m->stats.left_out;
	all->failing += m->failing;
	all->known += m->known;
	all->errors += m->errors;
	all->stopped |= m->stopped;
	x->found->dropped += found.dropped;
	if (found.error[0] && !x->found->error[0])
		memcpy(x->found->error, found.error, sizeof(found.error));
	return rc;
}

/* Traces recovery on the chosen states, one of each way, and searches its crashes. */
static int choose(struct recovery *x, struct err *err)
{
	struct second_ways *ways = &x->found->changes;
	int rc = 0;

	x->out->ways = second_ways_choose(ways, x->o->count);
	x->nested.max = ways->n;
	for (size_t i = 0; rc >= 0 && i < ways->n && !stopped(x) && !nested_is_over(&x->nested);
	     i++) {
		rc = nested_record(&x->nested, ways->v[i].state, err);
		x->out->different += rc > 0;
		if (rc > 0)
			rc = search_one(x, x->o->run->n_nested - 1, err);
		/* The number of a run must be that of its directory. */
		else if (!rc && x->nested.left)
			rc = err_set(err, x->nested.why.code, "%s", x->nested.why.msg);
	}
	return rc;
}

int pm_recoveries(const struct pm_recovery_opts *o, struct pm_found *found,
		  struct pm_recovered *out, struct err *err)
{
	const struct pm_plan *p = &o->run->plan;
	const char *command = p->recover ? p->recover : p->check ? p->check : p->dump;
	struct recovery x = { .o = o, .found = found, .out = out };

	x.nested = (struct nested){ .ops = &nested_ops,
				    .ctx = &x,
				    .run = o->run->dir,
				    .budget = p->budget,
				    .spent = found->all.stats.unique,
				    .next = o->run->n_nested };
	*out = (struct pm_recovered){ 0 };
	int rc = pm_command_traced(o->tracer, command, p->file, &x.argv, err);
	if (!rc)
		rc = choose(&x, err);
	words_release(&x.argv);
	nested_release(&x.nested);
	return rc;
}
