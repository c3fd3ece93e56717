/* SPDX-License-Identifier: MIT */
/*
 * recovery.c - chooses states whose recovery is traced, and searches the crashes of each of those.
 */
#include "pm/recovery.h"

#include <errno.h>
#include <inttypes.h>

#include "base/below.h"
#include "core/hashset.h"
#include "core/trace_file.h"
#include "pm/pm_command.h"
#include "pm/pm_record.h"

struct recovery {
	const struct pm_recovery_opts *o;
	struct pm_found *found;
	struct pm_recovered *out;
	struct words argv;
	struct hashset seen; /* hashes of what recoveries stored */
};

static bool stopped(struct recovery *x)
{
	const struct pm_search_opts *o = x->o->search;

	x->found->stopped |= o->until_ns && util_now_ns() > o->until_ns;
	return x->found->stopped || (o->stop && *o->stop);
}

/* The hash of what a recovery did to the memory, in its order. */
static struct hash128 hash_of(const struct trace *t)
{
	struct hash128 all = { 0, 0 };

	for (size_t i = 0; i < t->events.n; i++) {
		const struct event *ev = &t->events.v[i];
		struct hash128 part[3] = { all, { ev->addr, ev->len }, { ev->kind, ev->flags } };

		if (ev->kind == EV_STORE)
			part[1] = hash_add(part[1], hash_bytes(ev->data, ev->len));
		if (ev->kind == EV_STORE || ev->kind == EV_LINEFLUSH || ev->kind == EV_FENCE)
			all = hash_bytes(part, sizeof(part));
	}
	return all;
}

/* How many events stand before what recovery did. */
static uint64_t marks_before(const struct trace *t, uint64_t point)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < point; i++)
		n += pm_is_mark(&t->events.v[i]);
	return n;
}

static int make_dir(const struct recovery *x, char **out, struct err *err)
{
	const char *run = x->o->run->dir;
	auto_free char *name = xasprintf("recovery/%zu", x->o->run->n_nested);
	int rc = below_make_dir(run, "recovery", err);

	*out = xasprintf("%s" BELOW_MARK "%s", run, name);
	return rc ? rc : below_make_dir(run, name, err);
}

/* Removes the directory of a recovery: the files in it are of no use. */
static void drop_dir(const struct recovery *x)
{
	auto_free char *name = xasprintf("recovery/%zu", x->o->run->n_nested);
	struct err ignored = ERR_INIT;

	if (below_remove(x->o->run->dir, name, &ignored))
		errno = 0;
}

/* Traces recovery on a state; `made` if it is a run whose crashes are worth trying. */
static int trace_one(struct recovery *x, const struct crash_state *s, struct pm_run *made,
		     bool *worth, struct err *err)
{
	struct pm_run *run = x->o->run;
	auto_free char *dir = NULL;
	struct pm_counts counts = { 0 };
	bool file_made = false;
	struct pm_plan plan = run->plan;
	int rc = make_dir(x, &dir, err);
	struct pm_record_opts o = { .tracer = x->o->tracer,
				    .run = dir,
				    .file = run->plan.file,
				    .argv = (const char *const *)x->argv.v,
				    .timeout_ms = run->plan.timeout_ms,
				    .stop = x->o->search->stop,
				    .base = &s->image,
				    .outer = &run->trace,
				    .outer_point = s->point };

	*worth = false;
	if (!rc)
		rc = pm_record(&o, &counts, &file_made, err);
	if (rc || !counts.stores) {
		drop_dir(x);
		return rc;
	}
	plan.first_point = marks_before(&run->trace, s->point) + 1;
	plan.budget = plan.budget ? second_share(plan.budget, x->o->count) : 0;
	plan.media = 0;
	rc = record_save(pm_kind.plan, dir, CASE_RUN, &plan, err);
	if (!rc)
		rc = case_run_mark(&pm_kind, dir, err);
	if (!rc)
		rc = pm_run_load(dir, made, err);
	if (rc)
		return rc;
	*worth = hashset_insert(&x->seen, hash_of(&made->trace));
	made->outer.state = xstrdup(strbuf_str(&s->id));
	made->outer.point = s->point;
	made->answers = run->answers;
	if (!*worth) {
		pm_run_release(made);
		drop_dir(x);
	}
	return 0;
}

/* Crash states of one recovery; what they show is told as states of the whole run. */
static int search_one(struct recovery *x, size_t number, struct err *err)
{
	struct pm_search_opts o = *x->o->search;
	struct pm_found found;

	o.run = &x->o->run->nested[number];
	o.whole = x->o->run;
	o.recovery = number + 1;
	int rc = pm_search(&o, &found, err);
	for (size_t i = 0; !rc && i < found.failures.n; i++) {
		vec_push(&x->found->failures, found.failures.v[i]);
		found.failures.v[i] = (struct pm_failure){ 0 };
	}
	x->out->states += found.checked;
	x->out->left_out += found.stats.left_out;
	x->found->failing += found.failing;
	x->found->dropped += found.dropped;
	x->found->known += found.known;
	x->found->errors += found.errors;
	x->found->stopped |= found.stopped;
	if (found.error[0] && !x->found->error[0])
		memcpy(x->found->error, found.error, sizeof(found.error));
	pm_found_release(&found);
	return rc;
}

static int add_nested(struct recovery *x, const struct crash_state *s, struct err *err)
{
	struct pm_run *run = x->o->run, made;
	bool worth;
	int rc = trace_one(x, s, &made, &worth, err);

	if (rc)
		return rc;
	x->out->traced++;
	if (!worth)
		return 0;
	run->nested = xrealloc(run->nested, (run->n_nested + 1) * sizeof(*run->nested));
	run->nested[run->n_nested++] = made;
	x->out->different++;
	return search_one(x, run->n_nested - 1, err);
}

/* States that recovery changes, each in another way; if there are too many, some of them. */
static int choose(struct recovery *x, struct err *err)
{
	const struct pm_run *run = x->o->run;
	struct second_ways *ways = &x->found->changes;
	struct crash_opts opts = pm_run_crash(run);
	int rc = 0;

	x->out->ways = second_ways_choose(ways, x->o->count);
	for (size_t i = 0; !rc && i < ways->n && !stopped(x); i++) {
		auto_crash_state s = CRASH_STATE_INIT;

		rc = crash_replay(&run->trace, &opts, ways->v[i].state, &s, err);
		if (!rc)
			rc = add_nested(x, &s, err);
	}
	return rc;
}

int pm_recoveries(const struct pm_recovery_opts *o, struct pm_found *found,
		  struct pm_recovered *out, struct err *err)
{
	const struct pm_plan *p = &o->run->plan;
	const char *command = p->recover ? p->recover : p->check ? p->check : p->dump;
	struct recovery x = { .o = o, .found = found, .out = out };

	*out = (struct pm_recovered){ 0 };
	int rc = command_traced(o->tracer, command, p->file, &x.argv, err);
	if (!rc)
		rc = choose(&x, err);
	words_release(&x.argv);
	hashset_release(&x.seen);
	return rc;
}
