/* SPDX-License-Identifier: MIT */
/* recovery.c - see recovery.h. */
#include "pm/recovery.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/hashset.h"
#include "core/trace_file.h"
#include "pm/command.h"
#include "pm/record.h"

struct recovery {
	const struct pm_recovery_opts *o;
	struct pm_found *found;
	struct pm_recovered *out;
	struct words argv;
	struct hashset seen;	/* what recoveries stored */
	struct hashset failing; /* ids of states that fail anyway */
};

static bool stopped(const struct recovery *x)
{
	return x->o->search->stop && *x->o->search->stop;
}

/* What it did to the memory, in its order. */
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

static uint64_t *copy_list(const uint64_t *v, size_t n)
{
	uint64_t *copy = xcalloc(n + 1, sizeof(*copy));

	if (n)
		memcpy(copy, v, n * sizeof(*copy));
	return copy;
}

static void take_outer(struct pm_run *n, const struct crash_state *s)
{
	n->outer.state = xstrdup(strbuf_str(&s->id));
	n->outer.point = s->point;
	n->outer.n_lost = min(s->lost.n, (size_t)PM_LIST_MAX);
	n->outer.n_survived = min(s->survived.n, (size_t)PM_LIST_MAX);
	n->outer.lost = copy_list(s->lost.v, n->outer.n_lost);
	n->outer.survived = copy_list(s->survived.v, n->outer.n_survived);
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
	auto_free char *all = xasprintf("%s/recovery", x->o->run->dir);

	*out = xasprintf("%s/%zu", all, x->o->run->n_nested);
	if ((mkdir(all, 0777) && errno != EEXIST) || (mkdir(*out, 0777) && errno != EEXIST))
		return err_set(err, -errno, "cannot make the directory %s: %m", *out);
	return 0;
}

/* What was written there is of no use. */
static void drop_dir(const char *dir)
{
	static const char *const names[] = { "pm", "trace", "places", "base.img" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		auto_free char *path = xasprintf("%s/%s", dir, names[i]);

		unlink(path);
	}
	rmdir(dir);
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
				    .base = &s->image,
				    .outer = &run->trace,
				    .outer_point = s->point };

	*worth = false;
	if (!rc)
		rc = pm_record(&o, &counts, &file_made, err);
	if (rc || !counts.stores) {
		drop_dir(dir);
		return rc;
	}
	plan.first_point = marks_before(&run->trace, s->point) + 1;
	plan.budget = plan.budget ? max(plan.budget / x->o->count, (uint64_t)1) : 0;
	plan.media = 0;
	rc = pm_plan_save(dir, &plan, err);
	if (!rc)
		rc = pm_run_load(dir, made, err);
	if (rc)
		return rc;
	*worth = hashset_insert(&x->seen, hash_of(&made->trace));
	if (*worth)
		take_outer(made, s);
	if (!*worth) {
		pm_run_release(made);
		drop_dir(dir);
	}
	return 0;
}

/* Crash states of one recovery; what they show is told as states of the whole run. */
static int search_one(struct recovery *x, size_t number, struct err *err)
{
	struct pm_search_opts o = *x->o->search;
	struct pm_found found;

	o.run = &x->o->run->nested[number];
	int rc = pm_search(&o, &found, err);
	for (size_t i = 0; !rc && i < found.failures.n; i++) {
		struct pm_failure f = found.failures.v[i];
		char *id = xasprintf("r%zu:%s", number, f.state);

		free(f.state);
		f.state = id;
		f.recovery = number + 1;
		vec_push(&x->found->failures, f);
		found.failures.v[i] = (struct pm_failure){ 0 };
	}
	x->out->states += found.checked;
	x->out->left_out += found.stats.left_out;
	x->found->failing += found.failing;
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

static void know_failing(struct recovery *x)
{
	for (size_t i = 0; !x->o->run->plan.dump && i < x->found->failures.n; i++) {
		const char *id = x->found->failures.v[i].state;

		hashset_insert(&x->failing, hash_bytes(id, strlen(id)));
	}
}

static int choose(struct recovery *x, struct err *err)
{
	const struct pm_run *run = x->o->run;
	struct crash_opts opts = pm_run_crash(run);
	auto_crash_state s = CRASH_STATE_INIT;
	struct crash_points points = { 0 };
	auto_crash e = NULL;
	uint64_t total = max(x->found->stats.unique, (uint64_t)1), next = 0;

	pm_run_points(run, &points);
	opts.points = points.v;
	opts.n_points = points.n;
	int rc = crash_new(&run->trace, &opts, &e, err);
	for (uint64_t n = 0, taken = 0;
	     !rc && taken < x->o->count && !stopped(x) && crash_next(e, &s); n++) {
		if (n < next || hashset_has(&x->failing, hash_bytes(strbuf_str(&s.id), s.id.len)))
			continue;
		taken++;
		next = taken * total / x->o->count;
		rc = add_nested(x, &s, err);
	}
	crash_points_release(&points);
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
	if (!rc) {
		know_failing(&x);
		rc = choose(&x, err);
	}
	words_release(&x.argv);
	hashset_release(&x.seen);
	hashset_release(&x.failing);
	return rc;
}
