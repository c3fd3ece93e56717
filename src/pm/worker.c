/* SPDX-License-Identifier: MIT */
/* worker.c - puts each state of its share into the file, and runs recovery and check. */
#include "pm/worker.h"

#include "core/hashset.h"
#include "pm/trial.h"
#include "search/search.h"

enum { SAID_MAX = 4096 };

/* Returns how much output to keep: all of a dump, the beginning of a check. */
static size_t said_max(const struct pm_run *r)
{
	return r->plan.dump ? CHECK_OUTPUT_MAX : SAID_MAX;
}

/* A loss that made states of a point fail, with how many failed, and were left out for it. */
struct reason {
	uint64_t point;
	struct pm_key key;
	uint64_t failed, skipped;
};

struct pm_worker {
	const struct pm_search_opts *o;
	struct share *share;
	uint64_t until_ns;
	struct pm_trial trial;
	struct pm_tally tally;
	/*
	 * Between two marks a state comes once, with the fewest survivors; if it is one of these
	 * prefixes, it needs no loss. A state after another mark does need the loss.
	 */
	struct pm_prefixes prefixes;
	struct vec_of(struct reason) reasons;
	struct crash_search search; /* opened, before its first state */
	struct hashset changes;	    /* already reported */
	struct bad_lines bad;
	uint64_t faults; /* faults of the current state so far */
};

/* ---- messages ---- */

static void tell(struct pm_worker *w, uint64_t next, const struct pm_message *m,
		 const struct crash_state *s, const char *id, const char *said)
{
	auto_strbuf text = STRBUF_INIT;

	strbuf_add(&text, m, sizeof(*m));
	strbuf_add(&text, id, m->id_len);
	if (m->failure) {
		strbuf_add(&text, s->gone.v, pm_listed(m->f.n_lost) * sizeof(*s->gone.v));
		strbuf_add(&text, s->survived.v, pm_listed(m->f.n_survived) * sizeof(uint64_t));
	}
	strbuf_add(&text, said, m->said_len);
	share_tell(w->share, next, text.buf, text.len);
}

static void describe_failure(struct pm_worker *w, const struct crash_state *s,
			     const struct media_fault *fault, struct pm_message *m)
{
	const struct check_result *r = &w->trial.r;

	m->failure = true;
	m->said_len = min(r->output.len, said_max(w->o->run));
	m->f = (struct pm_failure){ .point = s->point,
				    .layer = s->layer,
				    .end = r->end,
				    .exit_code = r->exit_code,
				    .signal = r->signal,
				    .n_lost = s->gone.n,
				    .n_survived = s->survived.n,
				    .media = fault };
	m->f.cause = pm_cause_of(&w->prefixes, s, &m->f.prefix);
	if (fault)
		m->f.fault = *fault;
}

/* Reports a step with its result and all counts so far. */
static void tell_step(struct pm_worker *w, uint64_t step, const struct crash_state *s,
		      const struct media_fault *fault, struct pm_message *m)
{
	auto_strbuf id = STRBUF_INIT;
	auto_media_faults one = { 0 };

	strbuf_adds(&id, strbuf_str(&s->id));
	if (fault) {
		vec_push(&one, *fault);
		strbuf_addch(&id, '/');
		media_format(&one, &id);
	}
	m->id_len = m->failure || m->changed ? id.len : 0;
	tell(w, step + 1, m, s, strbuf_str(&id), strbuf_str(&w->trial.r.output));
}

static void tell_tally(struct pm_worker *w, uint64_t next)
{
	struct pm_message m = { .tally = w->tally };

	tell(w, next, &m, NULL, "", "");
}

static void tell_error(struct pm_worker *w, uint64_t step, const char *text)
{
	w->tally.errors++;
	struct pm_message m = { .tally = w->tally };

	m.error = true;
	m.said_len = strlen(text);
	tell(w, step + 1, &m, NULL, "", text);
}

static void describe_change(struct pm_worker *w, struct pm_message *m)
{
	if (w->trial.resized)
		m->tally.resized = ++w->tally.resized;
	m->changed = w->trial.changed && hashset_insert(&w->changes, w->trial.change);
	m->change = w->trial.change;
}

/* ---- reasons ---- */

enum { SAMPLE_EVERY = 16 };

/* Returns the key that the state has if it fails. */
static struct pm_key key_of_state(struct pm_worker *w, const struct crash_state *s)
{
	struct pm_failure f = { .point = s->point, .n_lost = s->gone.n, .lost = s->gone.v };

	f.cause = pm_cause_of(&w->prefixes, s, &f.prefix);
	return pm_failure_key(w->o->run, &f);
}

static void note_reason(struct pm_worker *w, const struct crash_state *s)
{
	struct pm_key k = key_of_state(w, s);

	struct reason *known = vec_find(i, &w->reasons,
					w->reasons.v[i].point == s->point &&
						pm_key_explains(&k, &w->reasons.v[i].key));

	if (!known) {
		vec_push(&w->reasons, (struct reason){ s->point, k, 1, 0 });
		return;
	}
	known->failed++;
	pm_key_release(&k);
}

static bool is_enough(const struct pm_worker *w, const struct reason *r, uint64_t point)
{
	return r->point == point && r->failed >= w->o->run->plan.enough;
}

/*
 * True if a state would tell nothing new: its loss includes one that failed often enough at the
 * same point. One in SAMPLE_EVERY such states is tried nevertheless.
 */
static bool is_known(struct pm_worker *w, const struct crash_state *s)
{
	if (!w->o->run->plan.enough || w->o->run->plan.dump ||
	    !any_of(i, w->reasons.n, is_enough(w, &w->reasons.v[i], s->point)))
		return false;
	struct pm_key k = key_of_state(w, s);
	struct reason *known = vec_find(i, &w->reasons,
					is_enough(w, &w->reasons.v[i], s->point) &&
						pm_key_explains(&k, &w->reasons.v[i].key));
	pm_key_release(&k);
	bool skip = known && ++known->skipped % SAMPLE_EVERY;
	w->tally.known += skip;
	return skip;
}

/* ---- checks ---- */

/* The step of a state, or of one of its faults. */
enum { STEP_BITS = 24 };

static uint64_t step_of(uint64_t state, uint64_t fault)
{
	return state << STEP_BITS | min(fault, ((uint64_t)1 << STEP_BITS) - 1);
}

/* Counts the result of a trial; false if the state could not be checked, which is reported. */
static bool count_state(struct pm_worker *w, uint64_t step, int rc, const struct err *err)
{
	const struct check_result *r = &w->trial.r;

	if (rc || r->end == CHECK_ERROR) {
		tell_error(w, step, rc ? err->msg : strbuf_str(&r->output));
		return false;
	}
	w->tally.checked++;
	w->tally.failing += r->end != CHECK_PASSED;
	return true;
}

/* Checks a state. Its bad lines may be left to do even if the state is done. */
static int do_state(void *ctx, const struct crash_state *s, struct reads_of *unused,
		    struct err *never)
{
	struct pm_worker *w = ctx;
	uint64_t step = step_of(w->search.n, 0);
	struct err err = ERR_INIT;
	const struct pm_plan *plan = &w->o->run->plan;

	(void)unused;
	(void)never; /* an error of a state is reported, and the search goes on */
	w->faults = 0;
	if (step < w->share->from)
		return 0;
	pool_at(w->share->w, step, "state %s", strbuf_str(&s->id));
	int rc = pm_trial_check(&w->trial, &s->image, s->point, NULL, &err);
	if (!count_state(w, step, rc, &err))
		return 0;
	bool passed = w->trial.r.end == CHECK_PASSED;
	if (plan->dump && w->trial.r.output_cut) {
		tell_error(w, step,
			   "the dump prints more than 64 KiB; let it print a checksum of "
			   "what is large");
		return 0;
	}
	struct pm_message m = { .tally = w->tally };
	if (!passed && plan->enough && !plan->dump)
		note_reason(w, s);
	if (!passed || plan->dump)
		describe_failure(w, s, NULL, &m);
	if (w->o->changes && passed)
		describe_change(w, &m);
	tell_step(w, step, s, NULL, &m);
	return 0;
}

static bool is_late(struct pm_worker *w)
{
	w->tally.stopped |= w->until_ns && util_now_ns() > w->until_ns;
	return w->tally.stopped;
}

static int do_fault(void *ctx, const struct crash_state *s, const struct image *bad,
		    const struct media_faults *one, struct err *unused)
{
	struct pm_worker *w = ctx;
	uint64_t step = step_of(w->search.n, ++w->faults);
	auto_strbuf words = STRBUF_INIT;
	struct err err = ERR_INIT;

	(void)unused; /* an error of a state is reported, and the search goes on */
	if (step < w->share->from)
		return 0;
	if (is_late(w))
		return 1;
	pool_at(w->share->w, step, "state %s with a bad line", strbuf_str(&s->id));
	media_format(one, &words);
	int rc = pm_trial_check(&w->trial, bad, s->point, strbuf_str(&words), &err);
	if (!count_state(w, step, rc, &err))
		return 0;
	w->tally.media_states++;
	struct pm_message m = { .tally = w->tally };
	if (w->trial.r.end != CHECK_PASSED)
		describe_failure(w, s, one->v, &m);
	tell_step(w, step, s, one->v, &m);
	return 0;
}

/* ---- the search ---- */

/* Decides about a state: every worker goes through all states, and tries its share of them. */
static enum search_turn turn(void *ctx, uint64_t n, const struct crash_state *s)
{
	struct pm_worker *w = ctx;
	bool begun = step_of(n, 0) < w->share->from;

	pool_beat(w->share->w);
	if (n % w->share->of != w->share->number)
		return SEARCH_PASS;
	if (is_late(w))
		return SEARCH_STOP;
	if (!begun && is_known(w, s))
		return SEARCH_PASS;
	crash_stats(w->search.crash, &w->tally.stats);
	return SEARCH_TRY;
}

static uint64_t written_since(void *ctx, uint64_t point)
{
	const struct pm_worker *w = ctx;

	return pm_point_before(&w->search.points, point);
}

static void on_lines_done(void *ctx, uint64_t left_out)
{
	struct pm_worker *w = ctx;
	uint64_t next = step_of(w->search.n + 1, 0);

	if (next <= w->share->from)
		return;
	w->tally.media_left_out += (double)left_out;
	tell_tally(w, next);
}

static const struct search_ops ops = {
	.turn = turn, .attempt = do_state, .since = written_since, .lines_done = on_lines_done
};

/* ---- life ---- */

int pm_worker_new(const struct pm_search_opts *o, struct pm_worker **out, struct err *err)
{
	const struct pm_run *run = o->run;
	struct pm_worker *w = xcalloc(1, sizeof(*w));

	w->o = o;
	w->bad = (struct bad_lines){ .trace = &run->trace,
				     .base = &run->base,
				     .kinds = (unsigned)run->plan.media,
				     .max = run->plan.media_max,
				     .check = do_fault,
				     .ctx = w };
	w->search = (struct crash_search){ .ops = &ops,
					   .ctx = w,
					   .trace = &run->trace,
					   .states = pm_run_crash(run),
					   .reads = o->reads,
					   .bad = run->plan.media ? &w->bad : NULL };
	w->search.states.stop = o->stop;
	w->search.states.budget = o->budget;
	pm_run_points(run, &w->search.points);
	pm_prefixes_find(&run->trace, &run->base, run->where.noticed, &w->prefixes);
	int rc = search_open(&w->search, err);
	if (rc)
		pm_worker_free(w);
	else
		*out = w;
	return rc;
}

void pm_worker_free(struct pm_worker *w)
{
	if (!w)
		return;
	search_close(&w->search);
	prefixes_release(&w->prefixes.all);
	free(w);
}

static void search_share(struct pm_worker *w)
{
	struct err never = ERR_INIT;

	(void)!search_go(&w->search, &never);
	crash_stats(w->search.crash, &w->tally.stats);
	tell_tally(w, max(step_of(w->search.n, 0), w->share->from));
}

void pm_work(struct pm_worker *w, struct share *share, const struct pm_tally *tally,
	     uint64_t until_ns)
{
	struct err err = ERR_INIT;

	signal(SIGPIPE, SIG_IGN);
	w->share = share;
	w->until_ns = until_ns;
	w->tally = *tally;
	if (pm_trial_init(&w->trial, w->o->run, w->o->run, &err)) {
		tell_error(w, share->from, err.msg);
		return;
	}
	w->trial.watch = w->o->changes;
	search_share(w);
}
