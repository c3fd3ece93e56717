/* SPDX-License-Identifier: MIT */
/*
 * app_recovery.c - chooses states on which the restart is recorded, and has the crashes of each
 * restart searched.
 */
#include "app/app_recovery.h"

#include <errno.h>
#include <inttypes.h>

#include "app/app_record.h"
#include "app/app_words.h"
#include "base/below.h"
#include "core/hashset.h"
#include "core/trace_file.h"

#define TRACE_BYTES_MAX ((uint64_t)2 << 30)

/* ---- the record of a restart ---- */

struct app_restarts {
	const struct app_recovery_opts *o;
	struct app_recovered *out;
	uint64_t share; /* of the budget */
	struct hashset seen;
	uint64_t next; /* the number of the next one's directory */
};

/* Hashes the restart's changes to the directory, in order; names are below it. */
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
		strbuf_addf(&text, "%s %llu %llu %s\n%s\n", posix_op_name(c->op),
			    (unsigned long long)c->offset, (unsigned long long)c->len,
			    c->path ? c->path : "", c->path2 ? c->path2 : "");
		strbuf_add(&text, e.payload, e.payload ? e.payload_len : 0);
		*out = hash_bytes(text.buf, text.len);
	}
	return rc;
}

/* Where its directory is below the run: to be freed. */
static char *name_of_next(const struct app_restarts *x)
{
	return xasprintf(CASE_NESTED "/%" PRIu64, x->next);
}

/* Removes the record of a useless restart. One that stays keeps its number, and is told. */
static void drop_dir(struct app_restarts *x)
{
	auto_free char *name = name_of_next(x);
	struct err why = ERR_INIT;

	if (!below_remove(x->o->run->dir, name, &why))
		return;
	x->next++;
	if (!x->out->left++)
		x->out->why_left = why;
}

static int make_dir(struct app_restarts *x, char **out, struct err *err)
{
	const struct app_run *run = x->o->run;
	auto_free char *name = name_of_next(x);
	auto_free char *id = xasprintf("r%" PRIu64 ":", x->next);
	int rc = below_make_dir(run->dir, CASE_NESTED, err);

	*out = case_nested(run->dir, id);
	return rc ? rc : below_make_dir(run->dir, name, err);
}

/* Runs it once more on the state, in front of a recording mount. */
static int record_restart(const struct app_run *run, const struct app_state *s, const char *dir,
			  uint64_t *root_ino, struct err *err)
{
	const struct place_opts place = { .base = run->base,
					  .before = run->history.before,
					  .at = run->plan.dir };
	auto_strbuf acked = STRBUF_INIT;
	struct words notes = { 0 }; /* of the check, which is run often: they say nothing new */

	for (uint64_t i = 0; i < s->acked && i < run->acks.n; i++)
		strbuf_addf(&acked, "%s\n", run->acks.v[i]);
	const struct app_restart again = { .place = &place,
					   .state = s->tree,
					   .outer = &run->trace,
					   .point = s->point,
					   .acked = &acked };
	const struct app_record_opts o = { .dir = run->plan.dir,
					   .run = dir,
					   .plan = &run->plan,
					   .timeout_ms = run->plan.timeout_ms,
					   .trace_max = TRACE_BYTES_MAX,
					   .again = &again };
	int rc = app_record(&o, root_ino, &notes, err);
	words_release(&notes);
	return rc;
}

/* Saves its plan: that of the run, but for the state it comes from and its budget. */
static int save_plan(struct app_restarts *x, const struct app_state *s, const char *dir,
		     uint64_t root_ino, uint64_t first, struct err *err)
{
	struct app_plan plan = x->o->run->plan;

	plan.root_ino = root_ino;
	plan.budget = x->share;
	plan.outer_state = s->id;
	plan.outer_point = s->point;
	plan.first_point = first;
	int rc = record_save(app_kind.plan, dir, CASE_RUN, &plan, err);
	return rc ? rc : case_run_mark(&app_kind, dir, err);
}

/* Whether its crashes are worth trying: it did something, and not what another one did. */
static int is_worth(struct app_restarts *x, const char *dir, bool *worth, uint64_t *first,
		    struct err *err)
{
	struct hash128 hash;
	auto_trace t;

	trace_init(&t);
	*worth = false;
	int rc = trace_load_below(dir, "trace", &t, err);
	if (!rc)
		rc = hash_of(&t, &hash, err);
	if (rc)
		return rc;
	*first = states_first(&t);
	*worth = *first < t.events.n && hashset_insert(&x->seen, hash);
	return 0;
}

/* Adds the run that it is to the others. */
static int record_one(struct app_restarts *x, const struct app_state *s, bool *worth,
		      struct err *err)
{
	struct app_run *run = x->o->run, *made;
	auto_free char *dir = NULL;
	uint64_t root_ino = 0, first = 0;
	int rc = make_dir(x, &dir, err);

	*worth = false;
	if (!rc)
		rc = record_restart(run, s, dir, &root_ino, err);
	if (!rc)
		rc = is_worth(x, dir, worth, &first, err);
	if (!rc && *worth)
		rc = save_plan(x, s, dir, root_ino, first, err);
	if (rc || !*worth) {
		drop_dir(x);
		return rc;
	}
	auto_free char *id = xasprintf("r%" PRIu64 ":", x->next++);
	return app_run_of(run, id, &made, err);
}

static int add_one(struct app_restarts *x, const char *id, struct err *err)
{
	struct app_run *run = x->o->run;
	struct app_state s = { 0 };
	struct err why = ERR_INIT;
	bool worth = false;
	int rc = states_replay(&run->history, id, &s, err);

	if (rc)
		return rc;
	rc = record_one(x, &s, &worth, &why);
	app_state_release(&s);
	x->out->recorded++;
	if (rc == -EINTR) {
		x->out->by_signal = true;
		return 0;
	}
	if (rc) { /* others may do better */
		if (!x->out->failed++)
			x->out->why = why;
		return 0;
	}
	if (!worth)
		return 0;
	x->out->different++;
	return x->o->search(x->o->ctx, vec_last(&run->nested), err);
}

int app_recoveries(const struct app_recovery_opts *o, struct app_changed *all,
		   struct app_recovered *out, struct err *err)
{
	struct app_restarts x = { .o = o, .out = out };
	struct app_chosen chosen = { 0 };
	int rc = 0;

	*out = (struct app_recovered){ .ways = app_changed_choose(all, o->count, &chosen) };
	if (o->budget && chosen.n)
		x.share = max(o->budget / chosen.n, (uint64_t)1);
	for (size_t i = 0; !rc && i < chosen.n && !out->by_signal && !o->stop(o->ctx); i++)
		rc = add_one(&x, all->v[chosen.v[i]].state, err);
	vec_release(&chosen);
	hashset_release(&x.seen);
	return rc;
}
