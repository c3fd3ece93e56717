/* SPDX-License-Identifier: MIT */
/*
 * app_recovery.c - chooses states on which the restart is recorded, and has the crash states of
 * each restart searched.
 */
#include "app/app_recovery.h"

#include <errno.h>
#include <inttypes.h>

#include "app/app_record.h"
#include "app/app_words.h"
#include "core/trace_file.h"
#include "search/nested.h"

struct app_restarts {
	const struct app_recovery_opts *o;
	struct app_recovered *out;
	struct nested nested;
	/* The restart being recorded. */
	uint64_t point, root_ino, first;
};

/* Hashes the restart's changes to the directory, in order; all names are below that directory. */
static int hash_of(const struct trace *t, struct hash128 *out, struct err *err)
{
	auto_posix_log log;

	posix_log_init(&log);
	*out = (struct hash128){ 0, 0 };
	int rc = app_log(t, &log, err);
	for (size_t i = 0; !rc && i < log.calls.n; i++) {
		const struct posix_call *c = &log.calls.v[i];
		auto_strbuf text = STRBUF_INIT;
		struct posix_event e;

		if (c->result < 0 || (!posix_op_changes(c->op) && !posix_op_persists(c->op)))
			continue;
		rc = posix_decode(&t->events.v[c->event], &e, err);
		if (rc)
			break;
		strbuf_add(&text, out, sizeof(*out));
		strbuf_addf(&text, "%s %llu %llu %s\n%s\n", posix_op_name(c->op), llu(c->offset),
			    llu(c->len), c->path ? c->path : "", c->path2 ? c->path2 : "");
		strbuf_add(&text, e.payload, e.payload ? e.payload_len : 0);
		*out = hash_bytes(text.buf, text.len);
	}
	return rc;
}

/* Runs the restart once more on the state, in front of a recording mount. */
static int record_restart(const struct app_run *run, const struct app_state *s, const char *dir,
			  uint64_t *root_ino, struct err *err)
{
	const struct place_opts place = { .base = run->base,
					  .before = run->history.before,
					  .at = run->plan.dir };
	auto_strbuf acked = STRBUF_INIT;
	auto_words notes = { 0 }; /* notes about a command that was run many times: nothing new */

	for (uint64_t i = 0; i < s->acked && i < run->acks.n; i++)
		strbuf_addf(&acked, "%s\n", run->acks.v[i]);
	const struct app_restart again = { .place = &place,
					   .state = s->tree,
					   .outer = &run->trace,
					   .point = s->point,
					   .acked = &acked };
	const struct app_record_opts o = { .run = dir, .plan = &run->plan, .again = &again };
	return app_record(&o, root_ino, &notes, err);
}

/* Hashes the changes of a restart; returns 1 if there are none. */
static int look_at(struct app_restarts *x, const char *dir, struct hash128 *what, struct err *err)
{
	auto_trace t;

	trace_init(&t);
	int rc = trace_load_below(dir, "trace", &t, err);
	if (!rc)
		rc = hash_of(&t, what, err);
	x->first = states_first(&t);
	return rc ? rc : x->first >= t.events.n;
}

static int record(void *ctx, const char *state, const char *dir, struct hash128 *what,
		  struct err *err)
{
	struct app_restarts *x = ctx;
	struct app_run *run = x->o->run;
	auto_call(app_state_release) struct app_state s = { 0 };
	int rc = states_replay(&run->history, state, &s, err);

	if (rc)
		return rc;
	x->point = s.point;
	rc = record_restart(run, &s, dir, &x->root_ino, err);
	return rc ? rc : look_at(x, dir, what, err);
}

/* The restart's plan is that of the run, except for its state and its budget. */
static int adopt(void *ctx, const char *state, const char *dir, uint64_t budget, struct err *err)
{
	const struct app_restarts *x = ctx;
	struct app_run *run = x->o->run, *made;
	auto_free char *id = xasprintf("r%" PRIu64 ":", x->nested.next);
	auto_free char *outer = xstrdup(state);
	struct app_plan plan = run->plan;

	plan.root_ino = x->root_ino;
	plan.budget = budget;
	plan.outer_state = outer;
	plan.outer_point = x->point;
	plan.first_point = x->first;
	int rc = record_save(app_kind.plan, dir, CASE_RUN, &plan, err);
	if (!rc)
		rc = case_run_mark(&app_kind, dir, err);
	return rc ? rc : app_run_of(run, id, &made, err);
}

static const struct nested_ops nested_ops = { .record = record, .adopt = adopt };

static int add_one(struct app_restarts *x, const char *state, struct err *err)
{
	struct err why = ERR_INIT;
	uint64_t states = 0;
	int rc = nested_record(&x->nested, state, &why);

	x->out->recorded++;
	x->out->by_signal |= rc == -EINTR;
	/* Other restarts may still be recorded. */
	if (rc < 0 && rc != -EINTR && !x->out->failed++)
		x->out->why = why;
	if (rc <= 0)
		return 0;
	x->out->different++;
	rc = x->o->search(x->o->ctx, vec_last(&x->o->run->nested), &states, err);
	x->nested.spent += states;
	return rc;
}

int app_recoveries(const struct app_recovery_opts *o, struct second_ways *all,
		   struct app_recovered *out, struct err *err)
{
	struct app_restarts x = { .o = o, .out = out };
	int rc = 0;

	*out = (struct app_recovered){ .ways = second_ways_choose(all, o->count) };
	x.nested = (struct nested){ .ops = &nested_ops,
				    .ctx = &x,
				    .run = o->run->dir,
				    .budget = o->budget,
				    .spent = o->spent,
				    .max = all->n };
	for (size_t i = 0;
	     !rc && i < all->n && !out->by_signal && !o->stop(o->ctx) && !nested_is_over(&x.nested);
	     i++)
		rc = add_one(&x, all->v[i].state, err);
	out->left = x.nested.left;
	out->why_left = x.nested.why;
	nested_release(&x.nested);
	return rc;
}
