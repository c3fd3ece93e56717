/* SPDX-License-Identifier: MIT */
/*
 * checkers.c - the pool of processes that check states, and their messages.
 *
 * A unit of the pool is a state: a head, the survivors, and the units of torn survivors. Its result
 * is a head and a text.
 *
 * K1: `given` has each state that was given out and not reported yet, once.
 * K2: a result that has arrived is reported, even if the run ends early.
 */
#include "app/checkers.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "base/pool.h"
#include "core/hashset.h"
#include "search/subject.h"

enum {
	DEPTH = 2,
	TRIES = 2,	  /* tries of one state */
	DEATHS_MAX = 6,	  /* deaths of one worker in a row, without a result */
	SLACK_MS = 60000, /* after the time limit of a check */
	CHECK_MS = 10000,
};

enum { TELL_FATAL = 1 }; /* a worker cannot start: an error text */

struct job_head {
	uint64_t point, acked, n, words;
	struct hash128 question; /* for the kept answers */
};

struct job_survivor {
	uint32_t change, torn;
};

/* The result of the check follows. */
struct answer_head {
	struct app_change change;
	uint64_t unlike;
};

/* ---- the worker ---- */

struct check_worker {
	struct history *h;
	const struct checkers_opts *opts;
	struct sandbox_opts check;
	struct sandbox_keeper keeper;
	struct place *place;
	struct pool_worker *w;
	int helper;	     /* starts the checks; -1: this process */
	struct strbuf acked; /* the lines of the first `n_acked` */
	size_t n_acked;
	/* The current state: */
	struct job_head head;
	struct survivors v;
	struct reffs_state *tree;
	struct check_result r;
	struct tree before, after; /* the layer over the state */
	struct app_change change;
};

/* Takes `n` bytes of a job. */
static void take(const struct strbuf *job, size_t *at, void *to, size_t n)
{
	assert(job->len - *at >= n);
	memcpy(to, strbuf_str(job) + *at, n);
	*at += n;
}

static void read_job(struct check_worker *w, const struct strbuf *job)
{
	struct job_head *head = &w->head;
	size_t at = 0, units = 0;

	take(job, &at, head, sizeof(*head));
	vec_clear(&w->v.v);
	vec_clear(&w->v.units);
	auto_free struct job_survivor *list = xmalloc((head->n + 1) * sizeof(*list));
	vec_reserve(&w->v.units, head->words + 1);
	take(job, &at, list, head->n * sizeof(*list));
	take(job, &at, w->v.units.v, head->words * sizeof(uint64_t));
	w->v.units.n = head->words;
	for (uint64_t i = 0; i < head->n; i++) {
		struct job_survivor s = list[i];

		vec_push(&w->v.v,
			 (struct survivor){ s.change, s.torn ? w->v.units.v + units : NULL });
		units += s.torn ? change_words(&w->h->changes.v[s.change]) : 0;
	}
}

static void lines_of(struct check_worker *w, uint64_t n)
{
	if (n < w->n_acked) {
		strbuf_clear(&w->acked);
		w->n_acked = 0;
	}
	for (; w->n_acked < n; w->n_acked++)
		if (w->n_acked < w->opts->n_acks)
			strbuf_addf(&w->acked, "%s\n", w->opts->acks[w->n_acked]);
}

static int do_check(struct check_worker *w, struct err *err)
{
	lines_of(w, w->head.acked);
	int rc = w->helper < 0 ? check_run(&w->check, w->head.point, strbuf_str(&w->acked),
					   w->acked.len, &w->r, err)
			       : launch_check(w->helper, w->head.point, strbuf_str(&w->acked),
					      w->acked.len, &w->r, err);

	if (!rc)
		w->r.filled = place_is_full(w->place);
	return rc;
}

/* ---- a state, as a subject ---- */

static int put(void *subject, struct err *err)
{
	const struct check_worker *w = subject;
	int rc = place_put(w->place, w->tree, err);

	if (rc)
		(void)!place_clear(w->place, err);
	return rc;
}

static int look(void *subject, struct err *err)
{
	struct check_worker *w = subject;

	return w->opts->changed ? place_look(w->place, &w->before, err) : 0;
}

/* Checks the state, which also recovers it, and looks for changes to a good state. */
static int check(void *subject, struct err *err)
{
	struct check_worker *w = subject;
	int rc = do_check(w, err);

	if (rc || !w->opts->changed || w->r.end != CHECK_PASSED || w->r.filled)
		return rc;
	rc = place_look(w->place, &w->after, err);
	if (!rc)
		app_change_find(w->tree, &w->before, &w->after, &w->change);
	return rc;
}

static int clear(void *subject, struct err *err)
{
	const struct check_worker *w = subject;

	return place_clear(w->place, err);
}

static const struct subject_ops directory_subject = {
	.put = put, .look = look, .check = check, .clear = clear
};

static int do_job(struct check_worker *w, struct err *err)
{
	w->tree = history_build(w->h, w->head.point, w->v.v.v, w->v.v.n);
	w->change = (struct app_change){ 0 };
	int rc = subject_try(&directory_subject, w, err);
	reffs_state_unref(w->tree);
	return rc;
}

static void answer(struct check_worker *w, struct hash128 question, const char *wrong)
{
	struct answer_head head;
	auto_strbuf text = STRBUF_INIT;

	memset(&head, 0, sizeof(head)); /* clears the padding, too: it may be kept */
	head.change = w->change;
	head.unlike = place_unlike(w->place);
	if (wrong) {
		check_result_release(&w->r);
		w->r.end = CHECK_ERROR;
		strbuf_adds(&w->r.output, wrong);
	}
	strbuf_add(&text, &head, sizeof(head));
	check_result_add(&w->r, &text);
	if (check_result_is_final(&w->r))
		answers_add(w->opts->answers, question, text.buf, text.len);
	pool_done(w->w, text.buf, text.len);
}

/* Reuses the answer of an earlier process, if there is one. */
static bool answer_known(struct check_worker *w, struct hash128 question)
{
	const size_t head = sizeof(struct answer_head);
	auto_strbuf text = STRBUF_INIT;

	if (!answers_find(w->opts->answers, question, &text) || text.len < head ||
	    !check_result_read(text.buf + head, text.len - head, &w->r) ||
	    !check_result_is_final(&w->r))
		return false;
	pool_done(w->w, text.buf, text.len);
	return true;
}

static int begin(struct check_worker *w)
{
	struct err err = ERR_INIT;

	signal(SIGPIPE, SIG_IGN);
	if (place_new(&w->opts->place, &w->place, &err)) {
		pool_tell(w->w, TELL_FATAL, err.msg, strlen(err.msg));
		return 1;
	}
	w->check = w->opts->check;
	w->check.dir = w->opts->place.at;
	w->check.notes = place_notes(w->place);
	w->check.shared = place_is_shared(w->place);
	w->check.keeper = &w->keeper;
	w->helper = w->opts->launcher ? launcher_open(w->opts->launcher) : -1;
	if (w->helper >= 0 && launch_enter(w->helper, &w->check))
		util_close(steal_fd(&w->helper)); /* slower, but it works */
	return 0;
}

struct checkers {
	struct history *h;
	const struct checkers_opts *opts;
	struct pool *pool;
	struct checkers_stats *stats;
	struct err *err;
	int rc;
	/* Gives the next state; false at the end. */
	bool (*next)(void *ctx, struct app_state *out);
	void *from;
	bool again;	      /* single states are checked on request */
	struct hashset asked; /* questions about these states */
	uint64_t n, told;     /* states given out, and states reported or skipped */
	struct vec_of(struct app_state) given; /* states from number `told` on */
};

static int work(void *ctx, struct pool_worker *pool)
{
	const struct checkers *c = ctx;
	struct check_worker w = { .h = c->h, .opts = c->opts, .w = pool, .helper = -1 };
	auto_strbuf job = STRBUF_INIT;
	uint64_t number;
	int rc = begin(&w);

	if (rc)
		return rc;
	while (!rc && pool_next(pool, &number, &job)) {
		struct err err = ERR_INIT;

		read_job(&w, &job);
		if (answer_known(&w, w.head.question))
			continue;
		rc = do_job(&w, &err);
		answer(&w, w.head.question, rc ? err.msg : NULL);
		/* After an error the worker's place may not be clean: a new worker is better. */
	}
	sandbox_keeper_end(&w.keeper);
	tree_release(&w.before);
	tree_release(&w.after);
	return 0;
}

/* ---- the parent ---- */

/*
 * Hashes all that the check is given, not the id: a restart that is recorded again may have other
 * events, and so other ids. If a state is checked several times, each time is another question.
 */
static struct hash128 question_of(struct checkers *c, const struct app_state *a)
{
	uint64_t key[] = { a->hash.lo, a->hash.hi, a->point, a->acked, c->opts->restart, 0 };
	struct hash128 q;

	do
		q = hash_bytes_seeded(key, sizeof(key), c->again);
	while (c->again && !hashset_insert(&c->asked, q) && ++key[5]);
	return q;
}

static void write_job(const struct history *h, const struct app_state *a, struct hash128 question,
		      struct strbuf *out)
{
	const struct survivors *v = &a->survivors;
	struct job_head head = { a->point, a->acked, v->v.n, 0, question };

	strbuf_add(out, &head, sizeof(head));
	vec_each(x, &v->v) {
		struct job_survivor j = { x->change, x->units != NULL };

		strbuf_add(out, &j, sizeof(j));
		head.words += x->units ? change_words(&h->changes.v[x->change]) : 0;
	}
	vec_each(x, &v->v)
		if (x->units)
			strbuf_add(out, x->units,
				   change_words(&h->changes.v[x->change]) * sizeof(*x->units));
	memcpy(out->buf, &head, sizeof(head));
}

static bool next(void *ctx, uint64_t *number, struct strbuf *job)
{
	struct checkers *c = ctx;
	struct app_state a = { 0 };

	if (!c->next(c->from, &a))
		return false;
	*number = c->n++;
	vec_push(&c->given, a);
	write_job(c->h, &a, question_of(c, &a), job);
	return true;
}

static void count(struct checkers *c, const struct check_result *r)
{
	struct checkers_stats *t = c->stats;

	if (r->end == CHECK_ERROR) {
		t->errors++;
		return;
	}
	t->checked++;
	t->passed += r->end == CHECK_PASSED;
	t->failed += r->end != CHECK_PASSED;
}

static void read_answer(struct checkers *c, const void *data, size_t len, struct check_result *r,
			struct app_change *change)
{
	struct answer_head head;

	assert(len >= sizeof(head));
	memcpy(&head, data, sizeof(head));
	bool whole = check_result_read((const char *)data + sizeof(head), len - sizeof(head), r);
	assert(whole);
	*change = head.change;
	c->stats->unlike = max(c->stats->unlike, head.unlike);
}

/* Takes a state. Earlier states that were not reported never will be: the run was stopped (K1). */
static struct app_state take_given(struct checkers *c, uint64_t number)
{
	size_t skipped = (size_t)(number - c->told);

	assert(number >= c->told && skipped < c->given.n); /* K1 */
	for (size_t i = 0; i < skipped; i++)
		app_state_release(&c->given.v[i]);
	struct app_state a = c->given.v[skipped];
	vec_remove(&c->given, 0, skipped + 1);
	c->told = number + 1;
	return a;
}

static int on_done(void *ctx, uint64_t number, const void *data, size_t len,
		   const struct pool_end *lost)
{
	struct checkers *c = ctx;
	struct app_state a = take_given(c, number);
	struct check_result r = { .end = CHECK_ERROR };
	struct app_change change = { 0 };

	if (lost) {
		strbuf_adds(&r.output, "the process that checked it ");
		pool_end_words(lost, &r.output);
	} else {
		read_answer(c, data, len, &r, &change);
	}
	count(c, &r);
	int rc = c->opts->done ? c->opts->done(c->opts->ctx, &a, &r) : 0;
	if (!rc && change.any && c->opts->changed)
		c->opts->changed(c->opts->ctx, &a, &change);
	app_state_release(&a);
	check_result_release(&r);
	return rc;
}

static void on_message(void *ctx, unsigned worker, uint32_t kind, const void *data, size_t len)
{
	struct checkers *c = ctx;

	(void)worker;
	(void)kind;
	if (!c->rc)
		c->rc = err_set(c->err, -ECHILD, "%.*s", (int)len, (const char *)data);
	pool_kill(c->pool);
}

static enum pool_then on_ended(void *ctx, const struct pool_end *e)
{
	struct checkers *c = ctx;
	auto_strbuf words = STRBUF_INIT;

	c->stats->replaced++;
	pool_end_words(e, &words);
	if (e->deaths >= DEATHS_MAX && !c->rc) {
		c->rc = err_set(c->err, -ECHILD,
				"a process that checks crash states %s, %u times in a row",
				strbuf_str(&words), e->deaths);
		pool_kill(c->pool);
	}
	return e->how == POOL_HUNG || e->times >= TRIES ? POOL_SKIP : POOL_AGAIN;
}

static void on_tick(void *ctx)
{
	const struct checkers *c = ctx;

	if (c->opts->stop && c->opts->stop(c->opts->ctx))
		pool_kill(c->pool);
}

static int checkers_init(struct checkers *c, bool keep, struct err *err)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	const struct checkers_opts *o = c->opts;
	struct pool_opts opts = {
		.jobs = keep	  ? 1
			: o->jobs ? o->jobs
				  : (unsigned)max(cpus, 1L),
		.depth = DEPTH,
		.ordered = true,
		.keep = keep,
		.patience_ms = (o->check.timeout_ms ? o->check.timeout_ms : CHECK_MS) +
			       (o->slack_ms ? o->slack_ms : SLACK_MS),
		.ctx = c,
		.work = work,
		.next = next,
		.done = on_done,
		.message = on_message,
		.ended = on_ended,
		.tick = on_tick,
	};

	return pool_new(&opts, &c->pool, err);
}

static int go_on(struct checkers *c, struct checkers_stats *stats, struct err *err)
{
	*stats = (struct checkers_stats){ 0 };
	c->stats = stats;
	c->err = err;
	c->rc = 0;
	int rc = pool_run(c->pool, err);
	for (size_t i = 0; i < c->given.n; i++)
		app_state_release(&c->given.v[i]);
	vec_release(&c->given);
	c->told = c->n;
	return c->rc ? c->rc : rc;
}

static bool next_of_states(void *ctx, struct app_state *out)
{
	return states_next(ctx, out);
}

int checkers_run(struct history *h, struct states *s, const struct checkers_opts *opts,
		 struct checkers_stats *stats, struct err *err)
{
	struct checkers c = { .h = h, .opts = opts, .next = next_of_states, .from = s };
	int rc = checkers_init(&c, false, err);

	*stats = (struct checkers_stats){ 0 };
	if (!rc)
		rc = go_on(&c, stats, err);
	pool_free(c.pool);
	return rc;
}

/* ---- single states ---- */

struct checker {
	struct checkers_opts opts;
	struct checkers c;
	bool (*stop)(void *ctx); /* the caller's, with the caller's context */
	void *stop_ctx;
};

struct one {
	const struct checker *k;
	const char *id;
	bool given, told;
	struct check_result *r;
};

static bool next_of_one(void *ctx, struct app_state *out)
{
	struct one *o = ctx;

	if (o->given || states_replay(o->k->c.h, o->id, out, NULL))
		return false;
	o->given = true;
	return true;
}

static int keep_result(void *ctx, const struct app_state *s, const struct check_result *r)
{
	struct one *o = ctx;

	(void)s;
	check_result_release(o->r);
	*o->r = *r;
	o->r->output = (struct strbuf)STRBUF_INIT;
	strbuf_add(&o->r->output, strbuf_str(&r->output), r->output.len);
	o->told = true;
	return 0;
}

static bool stop_one(void *ctx)
{
	const struct one *o = ctx;

	return o->k->stop && o->k->stop(o->k->stop_ctx);
}

struct checker *checker_new(struct history *h, const struct checkers_opts *opts)
{
	struct checker *k = xcalloc(1, sizeof(*k));

	k->opts = *opts;
	k->opts.done = keep_result;
	k->opts.changed = NULL;
	k->opts.stop = stop_one;
	k->stop = opts->stop;
	k->stop_ctx = opts->ctx;
	k->c = (struct checkers){ .h = h, .opts = &k->opts, .next = next_of_one, .again = true };
	return k;
}

void checker_free(struct checker *k)
{
	if (!k)
		return;
	pool_free(k->c.pool);
	hashset_release(&k->c.asked);
	free(k);
}

int checker_ask(struct checker *k, const char *id, struct check_result *r, struct err *err)
{
	struct one o = { .k = k, .id = id, .r = r };
	struct checkers_stats stats;

	k->opts.ctx = &o;
	k->c.from = &o;
	int rc = k->c.pool ? 0 : checkers_init(&k->c, true, err);
	if (!rc)
		rc = go_on(&k->c, &stats, err);
	if (!rc && !o.told && stop_one(&o))
		rc = -EINTR;
	if (!rc && !o.given)
		rc = err_set(err, -EINVAL, "the crash state %s is not one of this run", id);
	return rc;
}
