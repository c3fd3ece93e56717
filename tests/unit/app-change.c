/* SPDX-License-Identifier: MIT */
/* app-change.c - what a command did to a crash state, and which of such states are chosen. */
#include "calls.h"
#include "tap.h"

#include "app/app_change.h"

/* ---- what it did ---- */

static struct reffs_state *make_state(void)
{
	static const char text[] = "mkdir A\nwrite A/foo 0 5000\nwrite bar 0 100\n"
				   "write b.lock-b 0 100\n";
	auto_workload w;
	struct reffs *r = reffs_new(NULL);
	struct err err = ERR_INIT;

	workload_init(&w);
	if (workload_parse(text, strlen(text), "test", &w, &err))
		ok(false, "a workload: %s", err.msg);
	for (size_t i = 0; i < w.ops.n; i++)
		(void)reffs_op(r, &w, i);
	struct reffs_state *s = reffs_save(r);
	reffs_free(r);
	return s;
}

/* The root alone, or with one thing in it, or in A. */
static void make_layer(const struct tree_entry *e, struct tree *out)
{
	struct tree_opts opts = { 0 };

	tree_clear(out);
	tree_add(out, &(struct tree_entry){ .path = "", .type = TREE_DIR, .mode = 0755 }, &opts);
	if (e && strchr(e->path, '/'))
		tree_add(out, &(struct tree_entry){ .path = "A", .type = TREE_DIR, .mode = 0755 },
			 &opts);
	if (e)
		tree_add(out, e, &opts);
	tree_finish(out);
}

static struct app_change change_to(const struct reffs_state *s, const struct tree_entry *e)
{
	auto_tree before = TREE_INIT, after = TREE_INIT;
	struct app_change c;

	make_layer(NULL, &before);
	make_layer(e, &after);
	app_change_find(s, &before, &after, &c);
	return c;
}

static void test_changes(void)
{
	struct reffs_state *s = make_state();
	struct tree_opts opts = { 0 };
	auto_tree all = TREE_INIT;

	reffs_tree(s, &opts, &all);
	const struct tree_entry *foo = tree_find(&all, "A/foo"), *dir = tree_find(&all, "A");
	struct tree_entry other = *foo, longer = *foo,
			  gone = { .path = "A/foo", .type = TREE_CHAR };
	struct tree_entry made = *foo, mode = *foo, never = { .path = "no", .type = TREE_CHAR };
	other.hash.lo++;
	other.content = NULL;
	longer.size++;
	longer.content = NULL;
	made.path = "A/new";
	mode.mode ^= 0111;

	ok(!change_to(s, NULL).any, "nothing written is no change");
	ok(!change_to(s, dir).any, "nor is a directory that is there as it was");
	ok(!change_to(s, &never).any, "nor that something is gone that never was");
	struct app_change same = change_to(s, foo);
	ok(same.any && !same.net, "a file that is written as it was is one, of nothing");
	struct app_change x = change_to(s, &other);
	ok(x.any && x.net, "with other content it is one");
	ok(change_to(s, &mode).net && change_to(s, &made).net && change_to(s, &gone).net,
	   "as is another mode, a new file, and one that is gone");
	struct app_change y = change_to(s, &longer), again = x;
	ok(!hash_eq(x.kind, y.kind), "to make it longer is of another kind");
	other.hash.lo++;
	again = change_to(s, &other);
	ok(hash_eq(x.kind, again.kind) && !hash_eq(x.what, again.what),
	   "yet other content is of the same kind, and another change");
	ok(!hash_eq(same.kind, x.kind) && !hash_eq(change_to(s, &gone).kind, x.kind),
	   "what becomes of it is the kind");
	struct tree_entry lock = *foo, unlocked = { .path = "b.lock-b", .type = TREE_CHAR };
	lock.path = "c.lock-c";
	ok(!hash_eq(change_to(s, &lock).kind, change_to(s, &unlocked).kind),
	   "and so is its name, however like they are");
	reffs_state_unref(s);
}

/* ---- where a restart begins ---- */

static void test_points(void)
{
	struct history_opts opts = { .profile = profile_find("minimal"),
				     .base = -1,
				     .root_ino = CALLS_ROOT };
	struct states_stats stats;
	struct states *states = NULL;
	struct crash_points p = { 0 };
	struct app_state s = { 0 };
	struct history h;
	auto_trace t;

	trace_init(&t);
	calls_add(&t, (struct posix_event){ .op = POSIX_LOOKUP, .ino = CALLS_ROOT, .name = "." });
	trace_persist(&t, 0);
	trace_persist(&t, 1);
	calls_add(&t, (struct posix_event){ .op = POSIX_OPEN, .ino = CALLS_ROOT });
	is_u(states_first(&t), t.events.n, "what changes nothing has no first change");
	opts.first_point = t.events.n;
	calls_create(&t, 200, "f");
	calls_sync(&t, POSIX_FSYNC, 200);
	is_u(states_first(&t), opts.first_point, "else it comes after the acknowledgements");
	states_points(&t, opts.first_point, &p);
	ok(p.n == 3 && p.v[0] == opts.first_point && p.v[2] == t.events.n,
	   "no crash comes before it");
	crash_points_release(&p);
	ok(!history_new(&t, &opts, &h, NULL) &&
		   !states_new(&h, &(struct states_opts){ .cover = true }, &states, NULL),
	   "its states");
	while (states_next(states, &s))
		ok(s.point >= opts.first_point && s.acked == 2,
		   "%s has all that was acknowledged before the first crash", s.id);
	states_stats(states, &stats);
	is_u(stats.unique, 2, "without the file, and with it");
	app_state_release(&s);
	states_free(states);
	history_release(&h);
}

int main(void)
{
	test_changes();
	test_points();
	return done_testing();
}
