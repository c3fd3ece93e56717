/* SPDX-License-Identifier: MIT */
/* The loop over crash states: turns, what is tried of a good state, the budget, and what is
 * counted. */
#include <errno.h>

#include "core/model_pm.h"
#include "search/search.h"
#include "search/subject.h"
#include "tap.h"

enum { STORES = 3, SIZE = 4096 };

/* Notes what it is asked. */
struct noted {
	struct crash_search search;
	struct trace trace;
	struct image base;
	struct reads reads;
	struct bad_lines bad;
	struct strbuf words;
	const char *wrong;     /* a state that is */
	const char *fails;     /* a state that cannot be tried */
	const char *stop;      /* a state at whose turn the search ends */
	uint64_t pass, limit;  /* a state that is passed over; after so many it is stopped */
	uint64_t tried, spend; /* of each budget, so many second crashes are tried */
};

static void note(struct noted *x, const char *what, const struct crash_state *s)
{
	strbuf_addf(&x->words, "%s%s%s", x->words.len ? " " : "", what, strbuf_str(&s->id));
}

static bool stopped(void *ctx)
{
	const struct noted *x = ctx;

	return x->tried == x->limit;
}

static enum search_turn turn(void *ctx, uint64_t n, const struct crash_state *s)
{
	const struct noted *x = ctx;

	if (x->stop && streq(x->stop, strbuf_str(&s->id)))
		return SEARCH_STOP;
	return n == x->pass ? SEARCH_PASS : SEARCH_TRY;
}

/* Only the first line is read. */
static int attempt(void *ctx, const struct crash_state *s, struct reads_of *reads, struct err *err)
{
	struct noted *x = ctx;

	note(x, reads ? "learn:" : "", s);
	x->tried++;
	if (reads)
		vec_push(&reads->where, (struct reads_span){ 0, PM_LINE });
	if (x->fails && streq(x->fails, strbuf_str(&s->id)))
		return err_set(err, -EIO, "it cannot be tried");
	return x->wrong && streq(x->wrong, strbuf_str(&s->id));
}

static int attempt_second(void *ctx, const struct crash_state *s, struct reads_of *reads,
			  struct err *err)
{
	(void)reads;
	(void)err;
	note(ctx, "second:", s);
	return 0;
}

static const struct search_ops second_ops = { .attempt = attempt_second };

/* Recovery is the same record again. */
static int again(void *ctx, const struct crash_state *s, uint64_t budget, struct err *err)
{
	struct noted *x = ctx;
	struct crash_search second = { .ops = &second_ops,
				       .ctx = x,
				       .trace = &x->trace,
				       .states = x->search.states,
				       .within = &x->search };

	(void)s;
	strbuf_addf(&x->words, " budget:%llu", (unsigned long long)budget);
	second.states.vary = NULL;
	second.states.budget = min(budget, x->spend);
	vec_push(&second.points, STORES);
	int rc = x->spend ? search_go(&second, err) : 0;
	search_close(&second);
	return rc;
}

static uint64_t since(void *ctx, uint64_t point)
{
	(void)ctx;
	return point - 1;
}

static void lines_done(void *ctx, uint64_t left_out)
{
	struct noted *x = ctx;

	strbuf_addf(&x->words, " left:%llu", (unsigned long long)left_out);
}

static int check_bad(void *ctx, const struct crash_state *s, const struct image *bad,
		     const struct media_faults *one, struct err *err)
{
	(void)bad;
	(void)one;
	(void)err;
	note(ctx, "bad:", s);
	return 0;
}

static const struct search_ops ops = { .stopped = stopped,
				       .turn = turn,
				       .attempt = attempt,
				       .again = again,
				       .since = since,
				       .lines_done = lines_done };

/* Three stores to three lines, none of them flushed; the power fails after the last. */
static struct noted *make(uint64_t budget)
{
	struct noted *x = xcalloc(1, sizeof(*x));

	trace_init(&x->trace);
	x->trace.info.size = SIZE;
	image_init(&x->base, SIZE);
	for (uint64_t i = 0; i < STORES; i++)
		trace_append(&x->trace, &(struct event){ .kind = EV_STORE,
							 .addr = i * PM_LINE,
							 .len = 4,
							 .data = (const unsigned char *)"news" });
	x->bad = (struct bad_lines){ .trace = &x->trace,
				     .base = &x->base,
				     .kinds = 1u << MEDIA_POISON,
				     .max = 1,
				     .check = check_bad,
				     .ctx = x };
	x->search = (struct crash_search){
		.ops = &ops,
		.ctx = x,
		.trace = &x->trace,
		.states = { .model = &model_pm,
			    .base = &x->base,
			    .layers = CRASH_WITH_WHOLE,
			    .max_subset = 1,
			    .budget = budget },
	};
	vec_push(&x->search.points, STORES);
	x->pass = x->limit = UINT64_MAX;
	return x;
}

static void is_gone_through(struct noted *x, const char *expected, const char *what)
{
	struct err err = ERR_INIT;
	int rc = search_go(&x->search, &err);

	ok(x->fails ? rc == -EIO : !rc, "%s: %s", what, rc ? err.msg : "no error");
	is_s(strbuf_str(&x->words), expected, "%s", what);
}

static void end(struct noted *x)
{
	search_close(&x->search);
	reads_release(&x->reads);
	bad_lines_release(&x->bad);
	image_release(&x->base);
	trace_release(&x->trace);
	strbuf_release(&x->words);
	free(x);
}

#define ALL "0.3 1.3 4.3.0 4.3.1 4.3.2 5.3.0 5.3.1 5.3.2"

static void test_turns(void)
{
	struct noted *x = make(0);
	struct search_tally t;

	is_gone_through(x, ALL, "all, in their order");
	search_count(&x->search, &t);
	ok(t.states.tried == 8 && !t.budget_hit && t.left_out == 0, "nothing is left out");
	ok(x->search.n == 8 && !x->search.stopped, "each had its turn");
	end(x);

	x = make(0);
	x->pass = 1;
	x->stop = "4.3.2";
	is_gone_through(x, "0.3 4.3.0 4.3.1", "one is passed over, and one ends it");
	ok(x->search.n == 4 && x->search.stopped, "the one that ends it has no turn");
	search_count(&x->search, &t);
	ok(!t.budget_hit && t.left_out == 0, "what it ends is not left out by the budget");
	end(x);

	x = make(0);
	x->limit = 2;
	is_gone_through(x, "0.3 1.3", "it is stopped between two");
	ok(x->search.stopped, "and says so");
	end(x);

	x = make(0);
	x->fails = "1.3";
	is_gone_through(x, "0.3 1.3", "an error ends it");
	end(x);
}

static void test_reads(void)
{
	struct noted *x = make(0);
	struct search_tally t;

	x->search.reads = &x->reads;
	x->search.learn = true;
	is_gone_through(x, "learn:0.3 learn:1.3 5.3.0", "only what is read is varied");
	search_count(&x->search, &t);
	ok(t.states.pruned > 0, "and the others are counted");
	end(x);
}

static void test_worse(void)
{
	struct noted *x = make(0);
	struct search_tally t;

	x->search.states.layers = CRASH_WITH_NONE | CRASH_WITH_ALL;
	x->search.again = true;
	x->search.bad = &x->bad;
	x->bad.max = 0;
	x->wrong = "0.3";
	is_gone_through(x, "0.3 1.3 budget:0 left:1", "worse is tried of what is good alone");
	search_count(&x->search, &t);
	ok(t.budget_hit && t.left_out == 1, "a line that is not tried is counted");
	end(x);

	x = make(0);
	x->search.states.layers = CRASH_WITH_ALL;
	x->search.bad = &x->bad;
	is_gone_through(x, "1.3 bad:1.3 left:0", "a line of the last store is bad");
	end(x);
}

/* The first crashes and the second ones share it. */
static void test_budget(void)
{
	struct noted *x = make(5);
	struct search_tally t;

	x->search.again = true;
	is_gone_through(x, "0.3 budget:4 1.3 budget:3 4.3.0 budget:2 4.3.1 budget:1 4.3.2",
			"what is left is for second crashes");
	search_count(&x->search, &t);
	ok(t.budget_hit, "it is used up");
	end(x);

	x = make(5);
	x->search.again = true;
	x->spend = 1;
	is_gone_through(x, "0.3 budget:4 second:0.3 1.3 budget:2 second:0.3 4.3.0",
			"and second crashes use it up");
	search_count(&x->search, &t);
	ok(t.budget_hit && !t.states.budget_hit && t.states.tried == 3, "not the first alone");
	end(x);
}

/* ---- a subject ---- */

struct steps {
	struct strbuf words;
	const char *at; /* the step that says `rc` */
	int rc;
};

static int step(void *subject, const char *name, struct err *err)
{
	struct steps *x = subject;

	strbuf_addf(&x->words, "%s%s", x->words.len ? " " : "", name);
	if (!streq(x->at, name) && !streq(x->at, "all"))
		return 0;
	return x->rc < 0 ? err_set(err, x->rc, "%s", name) : x->rc;
}

#define STEP(name)                                                                                 \
	static int name(void *subject, struct err *err)                                            \
	{                                                                                          \
		return step(subject, #name, err);                                                  \
	}
STEP(put)
STEP(recover)
STEP(look)
STEP(check)
STEP(clear)

static void is_tried(const char *at, int rc, const char *expected, int result, const char *said)
{
	static const struct subject_ops all = { put, recover, look, check, clear };
	struct steps x = { .at = at, .rc = rc };
	struct err err = ERR_INIT;

	is_i(subject_try(&all, &x, &err), result, "%s says %d", at, rc);
	is_s(strbuf_str(&x.words), expected, "these steps are done");
	is_s(err.msg, said, "the first error is told");
	strbuf_release(&x.words);
}

static void test_subject(void)
{
	static const struct subject_ops only = { .put = put };
	struct steps x = { .at = "" };
	struct err err = ERR_INIT;

	is_tried("", 0, "put recover look check clear", 0, "");
	is_tried("recover", 1, "put recover clear", 0, "");
	is_tried("look", -EIO, "put recover look clear", -EIO, "look");
	is_tried("clear", -EBUSY, "put recover look check clear", -EBUSY, "clear");
	is_tried("put", -EIO, "put", -EIO, "put");
	ok(!subject_try(&only, &x, &err), "a step may be missing");
	strbuf_release(&x.words);
}

int main(void)
{
	test_turns();
	test_reads();
	test_worse();
	test_budget();
	test_subject();
	return done_testing();
}
