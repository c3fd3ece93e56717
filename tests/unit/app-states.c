/* SPDX-License-Identifier: MIT */
/* app-states.c - which states are given out, in what order, and what is said of the rest. */
#include "calls.h"
#include "tap.h"

#include "app/roles.h"
#include "app/states.h"
#include "core/hashset.h"

/* Some logs, a table that replaces another, and two acknowledgements. */
static void make_run(struct trace *t)
{
	char name[16];

	trace_init(t);
	for (uint64_t i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "%06u.log", (unsigned)i);
		calls_create(t, 200 + i, name);
		calls_fill(t, 200 + i, 0, 5000, 'a' + (int)i);
		if (i == 1) {
			calls_sync(t, POSIX_FSYNC, 201);
			trace_persist(t, 0);
		}
	}
	calls_add(t, (struct posix_event){ .op = POSIX_OPEN, .ino = 200 });
	calls_add(t, (struct posix_event){ .op = POSIX_UNLINK,
					   .ino = 200,
					   .dir = CALLS_ROOT,
					   .name = "no",
					   .result = -2 });
	calls_create(t, 300, "tmp");
	calls_fill(t, 300, 0, 20000, 'T');
	calls_rename(t, 300, "tmp", "TABLE");
	trace_persist(t, 1);
}

static int make_history(const struct trace *t, const char *profile, struct history *h)
{
	struct history_opts opts = { .profile = profile_find(profile),
				     .base = -1,
				     .root_ino = CALLS_ROOT };

	return history_new(t, &opts, h, NULL);
}

static void test_points(const struct trace *t)
{
	struct crash_points p = { 0 };

	states_points(t, 0, &p);
	is_u(p.n, t->events.n - 1, "a point after each event but an open and a call that failed");
	is_u(p.v[0], 0, "the first one before the first event");
	is_u(p.v[1], 1, "then after it");
	is_u(states_acked(t, 0), 0, "nothing is acknowledged at first");
	is_u(states_acked(t, t->events.n - 1), 1, "one before the last event");
	is_u(states_acked(t, t->events.n), 2, "two at the end");
	crash_points_release(&p);
}

static void test_roles(struct history *h)
{
	struct roles r;

	roles_init(&r, h);
	is_s(role_of(&r, 0), "make #.log", "numbers are one kind");
	ok(role_of(&r, 0) == role_of(&r, 3), "of all logs");
	is_s(role_of(&r, 1), "size #.log", "a size that a write gave");
	is_s(role_of(&r, 2), "write #.log", "a write by the name of its file");
	is_s(role_of(&r, (uint32_t)h->changes.n - 1), "rename tmp TABLE", "a rename by both names");
	roles_release(&r);
}

struct seen {
	uint64_t given, repeated, late, unreplayed, representatives;
	bool acked[3], torn;
	struct hash128 order;
};

static void go_through(struct history *h, const struct states_opts *opts, struct seen *out,
		       struct states_stats *stats)
{
	struct app_state a = { 0 }, again = { 0 };
	auto_hashset trees = HASHSET_INIT, patterns = HASHSET_INIT;
	struct states *s = NULL;
	bool rest = false;

	*out = (struct seen){ 0 };
	if (states_new(h, opts, &s, NULL))
		return;
	while (states_next(s, &a)) {
		struct hash128 key = hash_add(a.hash, hash_bytes(&a.acked, sizeof(a.acked)));

		out->repeated += !hashset_insert(&trees, key);
		rest |= !a.representative;
		out->late += a.representative && rest;
		out->late += a.representative != hashset_insert(&patterns, a.pattern);
		out->representatives += a.representative;
		out->acked[a.acked] = true;
		for (size_t i = 0; i < a.survivors.v.n; i++)
			out->torn |= a.survivors.v.v[i].units != NULL;
		out->unreplayed += states_replay(h, a.id, &again, NULL) ||
				   !hash_eq(again.hash, a.hash) || again.acked != a.acked ||
				   again.survivors.v.n != a.survivors.v.n;
		out->order = hash_bytes_seeded(&a.hash, sizeof(a.hash), out->order.lo);
		out->given++;
	}
	states_stats(s, stats);
	app_state_release(&a);
	app_state_release(&again);
	states_free(s);
}

static void test_order(struct history *h)
{
	struct states_stats all, some;
	struct seen x, y, z;

	go_through(h,
		   &(struct states_opts){ .layers = CRASH_WITH_WHOLE | CRASH_WITH_TORN,
					  .max_subset = 3 },
		   &x, &all);
	ok(x.given > 100 && x.given == all.given && x.given == all.unique,
	   "all that differ are given");
	is_u(x.repeated, 0, "none twice");
	is_u(x.late, 0, "the first of each pattern comes before the rest");
	is_u(x.representatives, all.patterns, "one of each");
	ok(all.patterns > 5 && all.patterns < x.given / 2,
	   "patterns are few (%" PRIu64 " of %" PRIu64 ")", all.patterns, x.given);
	is_u(x.unreplayed, 0, "each is found again by its id");
	ok(x.acked[0] && x.acked[1] && x.acked[2] && x.torn, "at all times, and torn");
	ok(!all.waiting, "nothing waits");

	go_through(h, &(struct states_opts){ .budget = 50 }, &y, &some);
	is_u(y.given, 50, "a budget holds");
	ok(some.budget_hit && some.waiting + 50 == some.unique, "and what waits is counted");
	ok(y.repeated + y.late + y.unreplayed == 0 &&
		   y.representatives == min(some.patterns, 50ull),
	   "representative ones first");
	go_through(h, &(struct states_opts){ .budget = 50 }, &z, &some);
	ok(hash_eq(y.order, z.order), "again the same");
	go_through(h, &(struct states_opts){ .tries = 40, .sample = 30, .seed = 7 }, &z, &some);
	ok(some.budget_hit && some.left_out > 0 && some.tried >= 40 && some.tried <= 80,
	   "what was not tried is said");
}

/* The same tree before and after an acknowledgement is two states. */
static void test_acknowledged(void)
{
	struct states_stats stats;
	struct history h;
	struct seen x;
	auto_trace t;

	trace_init(&t);
	calls_create(&t, 200, "a");
	trace_persist(&t, 0);
	if (make_history(&t, "minimal", &h)) {
		ok(false, "a history");
		return;
	}
	go_through(&h, &(struct states_opts){ 0 }, &x, &stats);
	is_u(x.given, 4, "with the file and without, before and after");
	history_release(&h);
	trace_clear(&t);
	if (make_history(&t, "minimal", &h)) {
		ok(false, "an empty history");
		return;
	}
	go_through(&h, &(struct states_opts){ 0 }, &x, &stats);
	is_u(x.given, 0, "no calls, no states");
	struct app_state a = { 0 };
	struct err err = ERR_INIT;
	ok(states_replay(&h, "0.5", &a, &err) < 0 && err.msg[0], "an id that cannot be: %s",
	   err.msg);
	history_release(&h);
}

/* Files of one name in two directories are not of one kind. */
static void test_paths(void)
{
	struct history h;
	struct roles r;
	auto_trace t;

	trace_init(&t);
	for (uint64_t i = 0; i < 2; i++) {
		calls_add(&t, (struct posix_event){ .op = POSIX_MKDIR,
						    .ino = 400 + i,
						    .dir = CALLS_ROOT,
						    .name = i ? "b7" : "a",
						    .arg = 0755 });
		calls_add(&t, (struct posix_event){ .op = POSIX_CREATE,
						    .ino = 500 + i,
						    .dir = 400 + i,
						    .name = "log",
						    .arg = 0644 });
	}
	calls_add(&t, (struct posix_event){ .op = POSIX_RENAME,
					    .ino = 500,
					    .dir = 400,
					    .dir2 = CALLS_ROOT,
					    .name = "log",
					    .name2 = "out" });
	calls_add(&t, (struct posix_event){ .op = POSIX_CHMOD, .ino = 500, .arg = 0600 });
	if (make_history(&t, "minimal", &h)) {
		ok(false, "a history");
		return;
	}
	roles_init(&r, &h);
	is_s(role_of(&r, 1), "make a/log", "a file with its directory");
	is_s(role_of(&r, 3), "make b#/log", "and one of the same name in another");
	is_s(role_of(&r, 4), "rename a/log out", "a rename out of it");
	is_s(role_of(&r, 5), "attributes out", "and then by its new name");
	roles_release(&r);
	history_release(&h);
}

/* Whether some state has exactly this text: a letter for each page of the one file. */
static bool reaches(struct history *h, const struct states_opts *opts, const char *want)
{
	struct app_state a = { 0 };
	struct states *s = NULL;
	bool found = false;

	if (states_new(h, opts, &s, NULL))
		return false;
	while (!found && states_next(s, &a)) {
		uint64_t ino = reffs_lookup(reffs_inode(a.tree, REFFS_ROOT_INO), "f");
		const struct reffs_inode *f = ino ? reffs_inode(a.tree, ino) : NULL;
		char text[64] = "";
		struct reffs_attr attr;

		if (!f)
			continue;
		reffs_attr(f, &attr);
		for (uint64_t i = 0; i * REFFS_PAGE < attr.size; i++)
			text[i] = reffs_page(f, i) && *reffs_page(f, i) ? (char)*reffs_page(f, i)
									: '.';
		found = streq(text, want);
	}
	app_state_release(&a);
	states_free(s);
	return found;
}

static bool at_once(void *ctx)
{
	return ++*(unsigned *)ctx > 1;
}

/* What a write over several pages may leave, and how far the budget reaches. */
static void test_reach(void)
{
	struct states_opts all = { .budget = 20000 };
	struct states_stats stats;
	struct history h;
	struct seen x;
	auto_trace t;

	trace_init(&t);
	calls_create(&t, 200, "f");
	calls_fill(&t, 200, 0, (size_t)6 * 4096, 'o');
	calls_add(&t, (struct posix_event){ .op = POSIX_SYNCFS });
	calls_fill(&t, 200, 0, (size_t)6 * 4096, 'n');
	if (make_history(&t, "minimal", &h)) {
		ok(false, "a history");
		return;
	}
	ok(reaches(&h, &all, "nnnooo"), "the first pages of a write");
	ok(reaches(&h, &all, "ooonnn"), "the last ones");
	ok(reaches(&h, &all, "oonooo"), "one alone");
	ok(reaches(&h, &all, "nnonnn"), "all but one");
	ok(reaches(&h, &all, "nonono"), "any set");
	ok(!reaches(&h, &all, "nnnxxx"), "and nothing else");
	go_through(&h, &all, &x, &stats);
	ok(!stats.budget_hit && stats.left_out == 0, "within the budget, nothing is left out");
	all.max_subset = 1;
	history_release(&h);

	trace_clear(&t);
	calls_create(&t, 200, "f");
	calls_fill(&t, 200, 0, (size_t)8 * 4096, 'o');
	calls_add(&t, (struct posix_event){ .op = POSIX_SYNCFS });
	for (uint64_t i = 0; i < 8; i++)
		calls_fill(&t, 200, i * 4096, 4096, 'n');
	if (make_history(&t, "minimal", &h)) {
		ok(false, "a history");
		return;
	}
	ok(!reaches(&h, &all, "nononono"), "a bound on subsets holds");
	go_through(&h, &all, &x, &stats);
	ok(stats.left_out > 0, "and what it leaves out is counted");
	all.max_subset = 0;
	ok(reaches(&h, &all, "nononono"), "without one, larger subsets are tried");
	go_through(&h, &all, &x, &stats);
	ok(x.given > 256 && stats.left_out == 0, "all of them");
	go_through(&h, &(struct states_opts){ .budget = 60 }, &x, &stats);
	ok(stats.budget_hit && x.given == 60, "as far as the budget goes");
	unsigned asked = 0;
	all.stop = at_once;
	all.stop_ctx = &asked;
	go_through(&h, &all, &x, &stats);
	ok(stats.budget_hit && x.given < 100, "and until somebody says stop");
	history_release(&h);

	/* Far too many to go through: each point has its share of a sample. */
	trace_clear(&t);
	calls_create(&t, 200, "f");
	for (uint64_t i = 0; i < 24; i++)
		calls_fill(&t, 200, i * 8 * 4096, (size_t)8 * 4096, 'x');
	trace_persist(&t, 0);
	if (make_history(&t, "xfs", &h)) {
		ok(false, "a history");
		return;
	}
	go_through(&h, &(struct states_opts){ .budget = 3000 }, &x, &stats);
	ok(x.given == 3000 && stats.left_out > 1e15 && x.acked[1], "a budget in a large space");
	history_release(&h);
}

/* The states that cover patterns: how many, for how many; false if one is none of the run. */
static bool go_through_cover(struct history *h, const struct states_opts *opts, uint64_t *n,
			     uint64_t *covered, struct states_stats *stats)
{
	struct app_state a = { 0 }, again = { 0 };
	struct states *s = NULL;
	bool fine = true;

	*n = *covered = 0;
	if (states_new(h, opts, &s, NULL))
		return false;
	while (states_next(s, &a)) {
		if (a.covers && a.number != *n) /* before all others */
			fine = false;
		*n += a.covers > 0;
		*covered += a.covers;
		if (states_replay(h, a.id, &again, NULL) || !hash_eq(again.hash, a.hash) ||
		    again.acked != a.acked)
			fine = false;
	}
	states_stats(s, stats);
	app_state_release(&a);
	app_state_release(&again);
	states_free(s);
	return fine;
}

static void test_cover(struct history *big)
{
	struct states_opts all = { .max_subset = 100 }, cover = all;
	struct states_stats with, without;
	uint64_t n, covered;
	struct history h;
	auto_trace t;

	cover.cover = true;
	trace_init(&t);
	calls_create(&t, 200, "a");
	calls_fill(&t, 200, 0, 3 * 4096, 'a');
	if (make_history(&t, "minimal", &h)) {
		ok(false, "a history");
		return;
	}
	ok(go_through_cover(&h, &cover, &n, &covered, &with), "each is a state of the run");
	/*
	 * Right after the file, its size and its data: all, nothing. Size and data are lost alone,
	 * and survive alone; the data is torn. Nothing else can be.
	 */
	is_u(with.operations, 11, "the patterns of a create and a write");
	is_u(covered, 11, "all are covered");
	is_u(n, 5, "by the states that differ: no file, empty, zeros, in part, and whole");
	go_through_cover(&h, &all, &n, &covered, &without);
	is_u(with.unique, without.unique, "with them there are as many states as without");
	is_u(covered + without.operations, 0, "if they are not asked for, there are none");
	history_release(&h);

	ok(go_through_cover(big, &(struct states_opts){ .cover = true, .budget = 200 }, &n,
			    &covered, &with),
	   "of a longer run, too");
	ok(n > 10 && covered == with.operations && covered > n, "all patterns are covered");
	go_through_cover(big, &(struct states_opts){ .cover = true, .budget = 5 }, &n, &covered,
			 &with);
	ok(n == 5 && covered < with.operations && with.budget_hit,
	   "what a budget leaves out is not said to be covered");
}

int main(void)
{
	struct history h;
	auto_trace t;

	make_run(&t);
	test_points(&t);
	if (make_history(&t, "minimal", &h)) {
		ok(false, "a history");
		return done_testing();
	}
	test_roles(&h);
	test_order(&h);
	test_cover(&h);
	history_release(&h);
	test_acknowledged();
	test_paths();
	test_reach();
	return done_testing();
}
