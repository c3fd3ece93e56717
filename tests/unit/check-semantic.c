/* SPDX-License-Identifier: MIT */
/*
 * check-semantic.c - the table of semantic states: what is a violation, what is not, and what is
 * said about its cause.
 */
#include "tap.h"

#include "check/semantic.h"

enum { SYNC = SEMANTIC_SYNCHRONOUS, ATOMIC = SEMANTIC_ATOMIC };

static size_t parse_events(const char *text, uint64_t *v)
{
	size_t n = 0;

	for (char *end; *text && *text != '/'; text = end + (*end == ' '))
		v[n++] = strtoul(text, &end, 10);
	return n;
}

/*
 * One crash. The state is a word; what follows a slash is its times, "!" is a recovery that failed,
 * and what follows a star is what another checker complains of.
 * Events that survived and that were lost are lists such as "3 7"; in "3 /" something is torn.
 */
static void crash(struct semantic_table *t, size_t op, enum semantic_where where, uint64_t point,
		  const char *state, const char *survived, const char *lost)
{
	const char *star = strchr(state, '*');
	struct semantic_seen seen = { .state = hash_bytes(state, strcspn(state, "/*")),
				      .timed = hash_bytes(state, strlen(state)),
				      .failed = streq(state, "!"),
				      .wrong = star,
				      .text = state };
	uint64_t s[16], l[16];
	char id[64];

	if (star)
		seen.why = hash_bytes(star, strlen(star));
	struct semantic_origin o = { .where = where,
				     .point = point,
				     .survived = s,
				     .lost = l,
				     .torn = strchr(survived, '/') };

	snprintf(id, sizeof(id), "%s@%" PRIu64, survived, point);
	o.id = id;
	o.n_survived = parse_events(survived, s);
	o.n_lost = parse_events(lost, l);
	semantic_add(t, op, &seen, &o);
}

#define BEGIN  SEMANTIC_BEGIN
#define DURING SEMANTIC_DURING
#define END    SEMANTIC_END

/* "0 not-atomic c ordering -4 +3; ...": operation, kind, state, cause, decisive events. */
static void judged(const struct semantic_table *t, const char *want, const char *name)
{
	auto_strbuf got = STRBUF_INIT;
	struct semantic_violations v = { 0 };

	semantic_judge(t, &v);
	for (size_t i = 0; i < v.n; i++) {
		const struct semantic_violation *x = &v.v[i];

		strbuf_addf(&got, "%s%zu %s %s %s", i ? "; " : "", x->op,
			    semantic_kind_name(x->kind),
			    t->ops.v[x->op].states.v[x->state].seen.text,
			    semantic_cause_name(x->cause));
		for (size_t k = 0; k < x->decisive.n; k++)
			strbuf_addf(&got, " %c%" PRIu64, x->decisive.v[k].survived ? '+' : '-',
				    x->decisive.v[k].event);
	}
	is_s(strbuf_str(&got), want, "%s", name);
	semantic_violations_release(&v);
}

/* An atomic, synchronous operation as it should be: stores 2 and 4, fenced, then 7 commits. */
static size_t healthy(struct semantic_table *t, unsigned promises)
{
	size_t op = semantic_op(t, "creat a", promises);

	crash(t, op, BEGIN, 1, "a", "", "");
	crash(t, op, DURING, 6, "a", "", "2 4");
	crash(t, op, DURING, 6, "a", "2 4", "");
	crash(t, op, DURING, 6, "a", "4", "2");
	crash(t, op, DURING, 9, "a", "", "7");
	crash(t, op, DURING, 9, "b", "7", "");
	crash(t, op, END, 11, "b", "", "");
	return op;
}

static void test_healthy(void)
{
	auto_semantic t, none;

	semantic_init(&t, false);
	size_t op = healthy(&t, SYNC | ATOMIC);
	judged(&t, "", "before, after and nothing else");
	is_u(t.ops.v[op].states.n, 2, "two states in the table");
	is_u(t.ops.v[op].states.v[0].origins.n, 5, "one of them from five crashes");
	is_s(t.ops.v[op].states.v[1].origins.v[0].id, "7@9", "with their ids");
	semantic_init(&none, false);
	judged(&none, "", "nothing at all");
}

static void test_not_atomic(void)
{
	auto_semantic order, logic, allowed, blind;

	semantic_init(&order, false);
	size_t op = healthy(&order, SYNC | ATOMIC);
	crash(&order, op, DURING, 8, "a", "", "3 5 6");
	crash(&order, op, DURING, 8, "c", "3 6", "5");
	crash(&order, op, DURING, 8, "b", "3 5 6", "");
	judged(&order, "0 not-atomic c ordering -5", "a third state that a lost store makes");

	semantic_init(&logic, false);
	op = healthy(&logic, SYNC | ATOMIC);
	crash(&logic, op, DURING, 8, "a", "", "3 5");
	crash(&logic, op, DURING, 8, "c", "3", "5");
	crash(&logic, op, DURING, 8, "c", "3 5", "");
	crash(&logic, op, DURING, 8, "b", "5", "3");
	judged(&logic, "0 not-atomic c logic +3", "one that a complete prefix makes");

	semantic_init(&allowed, false);
	op = healthy(&allowed, SYNC);
	crash(&allowed, op, DURING, 8, "c", "3", "5");
	judged(&allowed, "", "a data write need not be atomic");

	semantic_init(&blind, false);
	op = semantic_op(&blind, "creat a", ATOMIC);
	crash(&blind, op, DURING, 8, "c", "3", "5");
	crash(&blind, op, DURING, 8, "d", "5", "3");
	judged(&blind, "", "nothing is said where before and after are not known");
}

static void test_not_single(void)
{
	auto_semantic lost, allowed, third, torn;

	semantic_init(&lost, false);
	size_t op = healthy(&lost, SYNC | ATOMIC);
	crash(&lost, op, END, 12, "a", "", "8");
	crash(&lost, op, END, 12, "b", "8", "");
	judged(&lost, "0 not-single a ordering -8", "at the end, what is not durable");

	semantic_init(&allowed, false);
	op = healthy(&allowed, ATOMIC);
	crash(&allowed, op, END, 12, "a", "", "8 9");
	judged(&allowed, "", "which need not be where nothing is synchronous");
	crash(&allowed, op, END, 12, "c", "9", "8");
	judged(&allowed, "0 not-atomic c ordering +9", "but all or nothing");

	semantic_init(&third, false);
	op = healthy(&third, SYNC);
	crash(&third, op, END, 12, "c", "8", "9 10");
	crash(&third, op, END, 12, "b", "8 9 10", "");
	crash(&third, op, END, 12, "b", "8 9", "10");
	judged(&third, "0 not-single c ordering -9", "the nearest of several that are right");

	semantic_init(&torn, false);
	op = healthy(&torn, SYNC);
	semantic_add(
		&torn, op, &(struct semantic_seen){ .state = hash_bytes("c", 1), .text = "c" },
		&(struct semantic_origin){ .where = END, .point = 11, .id = "3.11", .torn = true });
	judged(&torn, "0 not-single c ordering", "a torn store is no complete prefix");
}

static void test_failed(void)
{
	auto_semantic t, late;

	semantic_init(&t, false);
	size_t op = healthy(&t, 0);
	crash(&t, op, DURING, 6, "!", "2", "4");
	judged(&t, "0 failed ! ordering -4", "a failed recovery is wrong whatever is promised");

	semantic_init(&late, false);
	op = healthy(&late, SYNC | ATOMIC);
	crash(&late, op, END, 11, "!", "", "");
	judged(&late, "0 failed ! logic", "also with nothing lost");
	op = semantic_op(&late, "stat a", SYNC | ATOMIC);
	crash(&late, op, BEGIN, 12, "!", "", "");
	crash(&late, op, END, 13, "!", "", "");
	judged(&late, "0 failed ! logic", "and the next operation is not blamed for it");
}

/* What one operation leaves undecided is seen in the next ones. */
static void test_sequence(void)
{
	auto_semantic t, lazy, twice;
	size_t op;

	/* Not synchronous: the first may still be lost while the second runs. */
	semantic_init(&lazy, false);
	op = semantic_op(&lazy, "creat a", ATOMIC);
	crash(&lazy, op, BEGIN, 1, "0", "", "");
	crash(&lazy, op, END, 3, "0", "", "2");
	crash(&lazy, op, END, 3, "1", "2", "");
	op = semantic_op(&lazy, "creat b", ATOMIC);
	crash(&lazy, op, END, 5, "0", "", "2 4");
	crash(&lazy, op, END, 5, "1", "2", "4");
	crash(&lazy, op, END, 5, "2", "2 4", "");
	judged(&lazy, "", "states of two operations that are not durable");
	op = semantic_op(&lazy, "fsync a", SYNC);
	crash(&lazy, op, DURING, 6, "0", "", "2 4");
	crash(&lazy, op, END, 9, "2", "", "");
	judged(&lazy, "", "until something is synced");
	op = semantic_op(&lazy, "creat c", ATOMIC);
	crash(&lazy, op, DURING, 10, "1", "", "10");
	crash(&lazy, op, END, 11, "3", "", "");
	judged(&lazy, "3 not-atomic 1 ordering", "then an old state is wrong");

	semantic_init(&t, false);
	op = semantic_op(&t, "creat a", ATOMIC);
	crash(&t, op, BEGIN, 1, "0", "", "");
	crash(&t, op, END, 3, "0", "", "2");
	crash(&t, op, END, 3, "1", "2", "");
	op = semantic_op(&t, "fsync a", SYNC);
	crash(&t, op, END, 6, "0", "", "2");
	crash(&t, op, END, 6, "1", "2", "");
	judged(&t, "1 not-single 0 ordering -2", "an fsync that does not sync");

	/* Whoever was wrong first is blamed. */
	semantic_init(&twice, false);
	op = healthy(&twice, SYNC | ATOMIC);
	crash(&twice, op, END, 12, "a", "", "8");
	op = semantic_op(&twice, "stat a", SYNC | ATOMIC);
	crash(&twice, op, BEGIN, 12, "b", "8", "");
	crash(&twice, op, BEGIN, 12, "a", "", "8");
	crash(&twice, op, END, 13, "b", "8", "");
	crash(&twice, op, END, 13, "a", "", "8");
	judged(&twice, "0 not-single a ordering", "one that changes nothing is not blamed");
	op = semantic_op(&twice, "creat c", SYNC | ATOMIC);
	crash(&twice, op, END, 15, "a", "", "8 14");
	crash(&twice, op, END, 15, "d", "8 14", "");
	judged(&twice, "0 not-single a ordering; 2 not-single a ordering -8 -14",
	       "one that loses its own change is");
}

static void test_times(void)
{
	auto_semantic without, with;

	for (unsigned times = 0; times < 2; times++) {
		struct semantic_table *t = times ? &with : &without;

		semantic_init(t, times);
		size_t op = semantic_op(t, "unlink a", SYNC | ATOMIC);
		crash(t, op, BEGIN, 1, "a/5", "", "");
		crash(t, op, DURING, 3, "a/6", "2", "");
		crash(t, op, END, 5, "b/6", "", "");
	}
	judged(&without, "", "times make no state of their own");
	judged(&with, "0 not-atomic a/6 logic", "unless asked");
}

/* What only a torn write shows is another matter than one that is lost. */
static void test_torn(void)
{
	auto_semantic torn, whole;

	semantic_init(&torn, false);
	size_t op = healthy(&torn, SYNC | ATOMIC);
	crash(&torn, op, DURING, 8, "b", "3", "");
	crash(&torn, op, DURING, 8, "a", "", "3");
	crash(&torn, op, DURING, 8, "c", "/", "");
	judged(&torn, "0 not-atomic c tearing", "a state of a torn write");

	semantic_init(&whole, false);
	op = healthy(&whole, SYNC | ATOMIC);
	crash(&whole, op, DURING, 8, "c", "/", "");
	crash(&whole, op, DURING, 8, "c", "", "3");
	crash(&whole, op, DURING, 8, "b", "3", "");
	judged(&whole, "0 not-atomic c ordering -3", "one that a lost write makes as well");
}

/* What other checkers say: it counts whatever was promised, and gets a diagnosis. */
static void test_wrong(void)
{
	auto_semantic none, order, logic, sync, part, next;

	semantic_init(&none, false);
	size_t op = healthy(&none, 0);
	crash(&none, op, DURING, 8, "c", "3", "5");
	judged(&none, "", "without promises nobody minds");

	semantic_init(&order, false);
	op = healthy(&order, 0);
	crash(&order, op, DURING, 8, "b", "3 5", "");
	crash(&order, op, DURING, 8, "a*foo", "3", "5");
	judged(&order, "0 wrong a*foo ordering -5", "a complaint about a state that looks fine");

	semantic_init(&logic, false);
	op = healthy(&logic, 0);
	crash(&logic, op, END, 12, "c*foo", "", "");
	crash(&logic, op, END, 12, "c*bar", "", "");
	judged(&logic, "0 wrong c*foo logic; 0 wrong c*bar logic", "two complaints are two");

	semantic_init(&sync, false);
	op = healthy(&sync, SYNC);
	crash(&sync, op, END, 12, "b", "3 5", "");
	crash(&sync, op, END, 12, "a*foo", "3", "5");
	judged(&sync, "0 not-single a*foo ordering -5", "its name is that of the broken promise");

	semantic_init(&part, false);
	op = healthy(&part, SYNC | ATOMIC);
	crash(&part, op, DURING, 8, "b", "3 5", "");
	crash(&part, op, DURING, 8, "c*foo", "3", "5");
	judged(&part, "0 not-atomic c*foo ordering -5", "so in the middle");

	semantic_init(&next, false);
	op = healthy(&next, 0);
	crash(&next, op, END, 12, "a*foo", "", "5");
	op = semantic_op(&next, "creat b", 0);
	crash(&next, op, DURING, 15, "a*foo", "", "5");
	crash(&next, op, DURING, 15, "a*bar", "", "5");
	judged(&next, "0 wrong a*foo ordering; 1 wrong a*bar ordering",
	       "one operation is blamed for a complaint, and no other");
}

static void test_words(void)
{
	struct semantic_violations v = { 0 };
	auto_strbuf words = STRBUF_INIT;
	auto_semantic t;

	semantic_init(&t, false);
	size_t op = healthy(&t, SYNC | ATOMIC);
	crash(&t, op, DURING, 8, "a", "", "3 5 6");
	crash(&t, op, DURING, 8, "c", "3 6", "5");
	crash(&t, op, DURING, 8, "b", "3 5 6", "");
	crash(&t, op, DURING, 10, "a", "", "9");
	crash(&t, op, DURING, 10, "!", "9", "");
	semantic_judge(&t, &v);
	is_u(v.n, 2, "two violations");
	semantic_words(&t, &v.v[0], &words);
	is_s(strbuf_str(&words),
	     "a crash during 'creat a' leaves neither the state before it nor the one after it; "
	     "event 5 got lost; a flush or fence is missing",
	     "ordering, in words");
	ok(v.v[0].good && streq(v.v[0].good->id, "3 5 6@8") && streq(v.v[0].origin->id, "3 6@8"),
	   "the crash, and the one beside it that is right");
	strbuf_clear(&words);
	semantic_words(&t, &v.v[1], &words);
	is_s(strbuf_str(&words),
	     "a crash during 'creat a' cannot be recovered from; event 9 survived; no flush or "
	     "fence would help: it shows as well where nothing got lost",
	     "logic, in words");
	semantic_violations_release(&v);
}

static void test_difference(void)
{
	auto_strbuf out = STRBUF_INIT;

	semantic_difference("a\nb\n", "a\nb\n", "before", &out);
	is_s(strbuf_str(&out), "", "equal texts do not differ");
	semantic_difference("a\nb\n", "a\nc\n", "before", &out);
	is_s(strbuf_str(&out), "; unlike before: line 2 is 'c', was 'b'", "another line");
	strbuf_clear(&out);
	semantic_difference("a\nb\n", "a\n", "after", &out);
	is_s(strbuf_str(&out), "; unlike after: line 2 is not there, was 'b'", "one less");
	strbuf_clear(&out);
	semantic_difference("", "a", "it was", &out);
	is_s(strbuf_str(&out), "; unlike it was: line 1 is 'a', was not there", "one more");
	strbuf_clear(&out);
	semantic_difference("a", "a\n", "before", &out);
	is_s(strbuf_str(&out), "; unlike before: line 1 is 'a', was 'a'", "a line end");
}

int main(void)
{
	test_healthy();
	test_not_atomic();
	test_not_single();
	test_failed();
	test_sequence();
	test_times();
	test_torn();
	test_wrong();
	test_words();
	test_difference();
	return done_testing();
}
