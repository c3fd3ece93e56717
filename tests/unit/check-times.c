/* SPDX-License-Identifier: MIT */
/*
 * Times of files: the value at the promise, or one of an operation since, is allowed, and nothing
 * else. The target of this test sets both times of a file in each operation on it, to the second of
 * that operation.
 */
#include "check/check.h"
#include "check/times.h"
#include "tap.h"

enum { CLOCK = 1000 };

static const char text[] = "creat foo\n"
			   "fsync foo\n"
			   "write foo 0 10\n"
			   "utimens foo 5 7\n"
			   "fsync foo\n"
			   "write foo 0 20\n";

struct world {
	struct workload w;
	struct op_history h;
	struct check_times_list had;
	struct tree seen;
};

static void put(struct world *x, size_t state, int64_t mtime, int64_t ctime)
{
	uint64_t ino = op_history_ino(&x->h, state, "foo");

	vec_push(&x->had, (struct check_times){ state, ino, { mtime, 1 }, { ctime, 2 } });
}

static void build(struct world *x)
{
	struct err err = ERR_INIT;
	auto_findings live = { 0 };
	struct tree_opts opts;

	*x = (struct world){ 0 };
	workload_init(&x->w);
	op_history_init(&x->h);
	ok(workload_parse(text, strlen(text), "test", &x->w, &err) == 0, "a workload");
	op_history_start(&x->h, &x->w);
	for (size_t i = 0; i < x->w.ops.n; i++) {
		struct reffs_state *before = reffs_save(x->h.ref);
		int64_t result = reffs_op(x->h.ref, &x->w, i);

		reffs_restore(x->h.ref, before);
		reffs_state_unref(before);
		op_history_op(&x->h, i, result, &live);
	}
	put(x, 1, CLOCK + 1, CLOCK + 1);
	put(x, 2, CLOCK + 1, CLOCK + 1);
	put(x, 3, CLOCK + 3, CLOCK + 3);
	put(x, 4, 7, CLOCK + 4);
	put(x, 5, 7, CLOCK + 4);
	put(x, 6, CLOCK + 6, CLOCK + 6);
	check_tree_opts(&opts, NULL);
	reffs_tree(x->h.states.v[1], &opts, &x->seen);
}

static void release(struct world *x)
{
	tree_release(&x->seen);
	vec_release(&x->had);
	op_history_release(&x->h);
	workload_release(&x->w);
}

/* How many problems there are if foo has these times after so many operations. */
static size_t judge(struct world *x, size_t done, bool under_way, struct check_stamp foo,
		    char **words)
{
	struct promises p = { 0 };
	struct check_stamp stamps[2] = { { false }, foo };
	auto_findings out = { 0 };

	assert(x->seen.entries.n == 2);
	promises_make(&p, &x->h, guarantee_find("linux"), done, under_way);
	check_times(&p, &x->seen, stamps, &x->had, CLOCK, &out);
	promises_release(&p);
	if (words)
		*words = xstrdup(out.n ? out.v[0].words : "");
	return out.n;
}

static struct check_stamp at(int64_t mtime, uint32_t mnsec, int64_t ctime, uint32_t cnsec)
{
	return (struct check_stamp){ true, { mtime, mnsec }, { ctime, cnsec } };
}

static void test_allowed(struct world *x)
{
	is_u(judge(x, 1, false, at(3, 3, 3, 3), NULL), 0, "without a promise, anything");
	is_u(judge(x, 2, false, at(CLOCK + 1, 1, CLOCK + 1, 2), NULL), 0, "what was synced");
	is_u(judge(x, 3, false, at(CLOCK + 1, 1, CLOCK + 1, 2), NULL), 0, "and later, too");
	is_u(judge(x, 3, false, at(CLOCK + 3, 1, CLOCK + 3, 2), NULL), 0, "what came since");
	is_u(judge(x, 2, true, at(CLOCK + 3, 99, CLOCK + 3, 98), NULL), 0,
	     "a moment within an operation");
	is_u(judge(x, 4, false, at(7, 1, CLOCK + 4, 2), NULL), 0, "a time that was set");
	is_u(judge(x, 3, false, at(CLOCK, 50, CLOCK, 50), NULL), 0,
	     "recovery finishes what was begun");
	is_u(judge(x, 5, false, (struct check_stamp){ 0 }, NULL), 0, "what is not known");
}

static void test_wrong(struct world *x)
{
	char *words;

	is_u(judge(x, 5, false, at(CLOCK + 3, 1, CLOCK + 4, 2), &words), 1,
	     "a modification time that was lost");
	is_s(words, "foo: mtime is 1003.000000001, was 7.000000001", "in words");
	free(words);
	is_u(judge(x, 5, false, at(7, 1, CLOCK + 3, 2), &words), 1, "a change time that was lost");
	is_s(words, "foo: ctime is 1003.000000002, was 1004.000000002", "in words");
	free(words);
	is_u(judge(x, 6, false, at(CLOCK + 3, 1, CLOCK + 3, 2), NULL), 2, "both");
	is_u(judge(x, 5, false, at(7, 2, CLOCK + 4, 2), NULL), 1, "by a nanosecond");
	is_u(judge(x, 5, false, at(CLOCK, 50, CLOCK + 4, 2), NULL), 1,
	     "recovery has nothing to finish after what was synced");
	is_u(judge(x, 3, false, at(CLOCK + 100000, 1, CLOCK + 3, 2), NULL), 1,
	     "a time that has not come");
}

static void test_hash(struct world *x)
{
	struct hash128 state = hash_bytes("x", 1);
	struct check_stamp a[2] = { { false }, at(7, 1, CLOCK, 5) };
	struct check_stamp b[2] = { { false }, at(7, 1, CLOCK, 6) };
	struct check_stamp c[2] = { { false }, at(7, 2, CLOCK, 5) };

	ok(hash_eq(check_times_hash(state, &x->seen, a, CLOCK),
		   check_times_hash(state, &x->seen, b, CLOCK)),
	   "when recovery came to it does not count");
	ok(!hash_eq(check_times_hash(state, &x->seen, a, CLOCK),
		    check_times_hash(state, &x->seen, c, CLOCK)),
	   "another time does");
	ok(!hash_eq(check_times_hash(state, &x->seen, a, CLOCK),
		    check_times_hash(hash_bytes("y", 1), &x->seen, a, CLOCK)),
	   "and what is there");
}

static void test_difference(struct world *x)
{
	struct check_stamp same[2] = { { false }, at(7, 1, CLOCK + 4, 2) };
	struct check_stamp other[2] = { { false }, at(7, 1, CLOCK + 3, 2) };
	auto_strbuf out = STRBUF_INIT;

	check_times_difference(&x->h, 5, &x->seen, same, &x->had, "after", &out);
	is_s(strbuf_str(&out), "", "no difference");
	check_times_difference(&x->h, 5, &x->seen, other, &x->had, "after", &out);
	is_s(strbuf_str(&out), "; unlike after: foo: ctime is 1003.000000002, was 1004.000000002",
	     "one, in words");
}

int main(void)
{
	struct world x;

	build(&x);
	test_allowed(&x);
	test_wrong(&x);
	test_hash(&x);
	test_difference(&x);
	release(&x);
	return done_testing();
}
