/* SPDX-License-Identifier: MIT */
/* Searching: all orders find the same states, and a search can be stopped and go on. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "explore/pickle.h"
#include "explore/reproduce.h"
#include "explore/search.h"
#include "tap.h"

static unsigned found;

static int on_found(void *ctx, struct search *s, const struct script *script,
		    struct step_result *result, struct err *err)
{
	(void)ctx;
	(void)s;
	(void)err;
	found++;
	printf("# found %s after %zu operations\n", result->findings.v[0].words, script->w.ops.n);
	return 0;
}

struct outcome {
	uint64_t states, operations;
	bool done;
};

/* Searches reffs against itself, in a world small enough to be seen whole. */
static struct outcome search(enum search_order order, uint64_t until, const char *pickle_path,
			     bool resume, struct visited *visited)
{
	const char *specs[] = { "reffs", "reffs" };
	struct search_opts opts = { .order = order, .seed = 3, .depth = 30, .alphabet = 14 };
	struct side_opts sides = { 0 };
	struct search_progress *progress = xcalloc(1, sizeof(*progress));
	struct stepper st;
	struct inputs in;
	struct pickle pickle = { 0 };
	struct err err = ERR_INIT;
	struct outcome out;
	const char *text = "names files 1\nnames dirs 1\nnames depth 1\nmax size 2\n"
			   "only creat mkdir rmdir unlink link rename write";

	inputs_init(&in);
	ok(!inputs_parse(&in, text, strlen(text), "text", &err) && !inputs_finish(&in, &err),
	   "a small world: %s", err.msg);
	ok(!stepper_open(&st, &sides, specs, 2, &err), "two sides: %s", err.msg);
	struct search s = { .opts = &opts,
			    .in = &in,
			    .stepper = &st,
			    .visited = visited,
			    .progress = progress,
			    .found = on_found,
			    .pickle_path = pickle_path,
			    .until = until };
	if (resume) {
		ok(!pickle_load(pickle_path, search_inputs_hash(&opts, &in), &pickle, visited, 0,
				&err),
		   "goes on from where it was: %s", err.msg);
		s.resumed = &pickle;
	}
	search_init(&s);
	ok(!search_run(&s, &err), "runs: %s", err.msg);
	search_release(&s);
	pickle_release(&pickle);
	out = (struct outcome){ progress->states, st.counts.operations, progress->done };
	stepper_close(&st);
	inputs_release(&in);
	free(progress);
	return out;
}

static struct visited *fresh(void)
{
	struct visited *v;
	struct err err = ERR_INIT;

	ok(!visited_open(1 << 20, &v, &err), "memory: %s", err.msg);
	return v;
}

static void test_orders(void)
{
	struct visited *a = fresh(), *b = fresh(), *c = fresh();
	struct outcome depth = search(SEARCH_DEPTH, 0, NULL, false, a);
	struct outcome breadth = search(SEARCH_BREADTH, 0, NULL, false, b);

	ok(depth.done && breadth.done, "both end when all was seen");
	ok(depth.states > 20, "there is something to see: %llu states",
	   (unsigned long long)depth.states);
	is_u(breadth.states, depth.states, "breadth first sees as many as depth first");
	search(SEARCH_WALK, 5000, NULL, false, c);
	ok(visited_count(c) > 5, "a walk sees some");
	visited_close(a);
	visited_close(b);
	visited_close(c);
}

static void test_resume(enum search_order order, const char *name)
{
	char path[] = "/tmp/outage-test-pickle-XXXXXX";
	int fd = mkstemp(path);
	struct visited *whole = fresh(), *parts = fresh();
	struct outcome all = search(order, 0, NULL, false, whole);
	struct outcome one = search(order, 60, path, false, parts);

	ok(!one.done && one.states < all.states, "%s: stopped in the middle", name);
	visited_close(parts);
	parts = fresh();
	struct outcome two = search(order, 0, path, true, parts);
	ok(two.done, "%s: goes on to the end", name);
	is_u(visited_count(parts), visited_count(whole), "%s: and has seen the same", name);
	close(fd);
	unlink(path);
	visited_close(whole);
	visited_close(parts);
}

static void test_bad_pickles(void)
{
	char path[] = "/tmp/outage-test-pickle-XXXXXX";
	int fd = mkstemp(path);
	struct visited *v = fresh();
	struct pickle p = { .inputs = { 1, 2 }, .walk = 9 }, back;
	struct err err = ERR_INIT;
	uint32_t steps[] = { 1, 2, 3 };
	bool refused = true;

	visited_add(v, (struct hash128){ 5, 6 }, 0);
	pickle_add(&p, steps, 3, steps, 2);
	ok(!pickle_save(&p, v, path, &err), "kept: %s", err.msg);
	close(fd);
	fd = open(path, O_RDWR); /* it took the place of the file we had open */
	visited_close(v);
	v = fresh();
	ok(!pickle_load(path, p.inputs, &back, v, 0, &err), "read back: %s", err.msg);
	ok(back.walk == 9 && back.frames.n == 1 && back.frames.v[0].path.n == 3 &&
		   back.frames.v[0].todo.v[1] == 2,
	   "as it was");
	ok(visited_has(v, (struct hash128){ 5, 6 }), "with what was visited");
	pickle_release(&back);
	ok(pickle_load(path, (struct hash128){ 1, 3 }, &back, v, 0, &err) == -EINVAL &&
		   strstr(err.msg, "other inputs"),
	   "of other inputs: %s", err.msg);
	off_t size = lseek(fd, 0, SEEK_END);
	ok(size > 100, "there are bytes to flip");
	for (off_t at = 0; at < size; at += 3) {
		char c;

		refused &= pread(fd, &c, 1, at) == 1;
		c ^= 4;
		refused &= pwrite(fd, &c, 1, at) == 1;
		err_clear(&err);
		refused &= pickle_load(path, p.inputs, &back, v, 0, &err) == -EINVAL && *err.msg;
		c ^= 4;
		refused &= pwrite(fd, &c, 1, at) == 1;
	}
	ok(refused, "a flipped byte anywhere is noticed");
	refused = ftruncate(fd, size - 5) == 0;
	err_clear(&err);
	ok(refused && pickle_load(path, p.inputs, &back, v, 0, &err) == -EINVAL, "cut short: %s",
	   err.msg);
	close(fd);
	unlink(path);
	pickle_release(&p);
	visited_close(v);
}

static void test_visited(void)
{
	struct visited *v = fresh();
	uint64_t missed = 0, n = 300000;

	ok(visited_add(v, (struct hash128){ 0, 0 }, 0) == VISIT_NEW &&
		   visited_add(v, (struct hash128){ 0, 0 }, 0) == VISIT_OLD,
	   "the hash of zeros is a state like others");
	for (uint64_t i = 0; i < 10000; i++)
		missed += visited_add(v, hash_bytes(&i, sizeof(i)), 0) != VISIT_NEW;
	is_u(missed, 0, "exact while there is room");
	ok(visited_omission(v) == 0, "and says so");
	for (uint64_t i = 10000; i < n; i++)
		missed += visited_add(v, hash_bytes(&i, sizeof(i)), 0) != VISIT_NEW;
	ok(missed > 0 && missed < n / 4, "past it, some are taken for old: %llu",
	   (unsigned long long)missed);
	double odds = visited_omission(v);
	ok(odds > 0.0005 && odds < 0.7, "with odds that are told: %g", odds);
	uint64_t fresh_missed = 0;
	for (uint64_t i = n; i < n + 20000; i++)
		fresh_missed += visited_has(v, hash_bytes(&i, sizeof(i)));
	double seen = (double)fresh_missed / 20000;
	ok(seen > odds / 2 && seen < odds * 2 + 0.01, "and these are the odds: %g, told %g", seen,
	   odds);
	for (uint64_t i = 0, lost = 0; i < n; i += 1000) {
		lost += !visited_has(v, hash_bytes(&i, sizeof(i)));
		if (i + 1000 >= n)
			is_u(lost, 0, "an old state is never taken for new");
	}
	visited_close(v);
	struct err err = ERR_INIT;
	ok(visited_open(100, &v, &err) == -EINVAL, "too little memory: %s", err.msg);
}

static void test_tasks(void)
{
	struct visited *v = fresh();
	struct hash128 a = { 1, 2 }, b = { 3, 4 };

	ok(visited_add(v, a, 0) == VISIT_NEW && visited_add(v, a, 0) == VISIT_OLD,
	   "where a task was itself is no overlap");
	ok(visited_add(v, a, 5) == VISIT_SECOND, "another comes there");
	ok(visited_add(v, a, 5) == VISIT_OLD && visited_add(v, a, 3) == VISIT_OLD &&
		   visited_add(v, a, 0) == VISIT_OLD,
	   "which counts once");
	ok(visited_add(v, b, 5) == VISIT_NEW && visited_add(v, b, 0) == VISIT_SECOND,
	   "whoever is first");
	is_u(visited_count(v), 2, "two states");
	visited_close(v);
}

/*
 * A side with something in its disk that nobody sees, which makes mkdir f1 fail. The seventh
 * operation of its life puts it there, or, if it is `healthy` in that, creat f0 does.
 */
static struct side_ops haunted;
static bool healthy, ghost;
static unsigned lived;
static const struct workload *played;

struct haunted_state {
	struct side_state *real;
	bool ghost;
};

static void haunted_begin(struct side *s, const struct workload *w)
{
	played = w;
	side_reffs.begin(s, w);
}

static int64_t haunted_op(struct side *s, size_t i)
{
	int64_t result = side_reffs.op(s, i);
	const char *name = played->ops.v[i].def->name;

	lived++;
	ghost |= healthy ? result == 0 && streq(name, "creat") : lived == 7;
	return ghost && result == 0 && streq(name, "mkdir") ? -EIO : result;
}

static int haunted_save(struct side *s, struct side_state **out, struct err *err)
{
	struct haunted_state *state = xcalloc(1, sizeof(*state));

	state->ghost = ghost;
	*out = (struct side_state *)state;
	return side_reffs.save(s, &state->real, err);
}

static int haunted_restore(struct side *s, struct side_state *from, struct strbuf *said,
			   struct err *err)
{
	struct haunted_state *state = (struct haunted_state *)from;

	ghost = state->ghost;
	return side_reffs.restore(s, state->real, said, err);
}

static void haunted_drop(struct side *s, struct side_state *from)
{
	side_reffs.drop(s, ((struct haunted_state *)from)->real);
	free(from);
}

/* Steps of the alphabet 0: creat f0, 1: unlink f0, 2: mkdir f1; saved after the eighth. */
static void test_reproduce(bool from_empty)
{
	const char *specs[] = { "haunted", "reffs" };
	struct search_opts opts = { .order = SEARCH_WALK, .seed = 3, .depth = 30 };
	struct search_progress *progress = xcalloc(1, sizeof(*progress));
	struct side_opts sides = { 0 };
	struct stepper st;
	struct script script;
	struct reproduced how;
	struct err err = ERR_INIT;
	struct point point = { 0 };

	healthy = from_empty;
	ghost = false;
	lived = 0;
	ok(!stepper_open(&st, &sides, specs, 2, &err), "a side that is haunted: %s", err.msg);
	struct search s = { .opts = &opts, .stepper = &st, .progress = progress };
	search_init(&s);
	ok(!workload_add_line(&s.alphabet.w, "creat f0", &err) &&
		   !workload_add_line(&s.alphabet.w, "unlink f0", &err) &&
		   !workload_add_line(&s.alphabet.w, "mkdir f1", &err),
	   "an alphabet");
	for (uint32_t i = 0; i < 3; i++) {
		vec_push(&s.alphabet.steps, (struct step){ i, 1 });
		vec_push(&s.alphabet.made_only, UINT32_MAX);
	}
	stepper_begin(&st, &s.alphabet);
	for (uint32_t i = 0; i < 11; i++) {
		uint32_t step = i == 10 ? 2 : i % 2;

		script_log_step(&s.log, step);
		ok(!stepper_step(&st, step, &s.result, &err), "a step");
		if (i == 7) {
			ok(!stepper_save(&st, &point, &err), "saved");
			vec_push(&s.anchors, (struct anchor){ &point, 8 });
		}
	}
	ok(s.result.verdict == STEP_DIFFERENT, "the last one differs");
	script_init(&script);
	search_path(&s, &script);
	is_u(script.w.ops.n, 11, "after eleven operations");
	ok(!reproduce(&s, &script, "result mkdir", &how, &err), "it is done again: %s", err.msg);
	is_u(how.shrunk.shown, 3, "and shows each time");
	if (from_empty) {
		ok(!how.start, "from the empty file system");
		is_u(script.w.ops.n, 2, "with two operations");
	} else {
		ok(how.start == &point, "but only from the state that was saved");
		is_u(script.w.ops.n, 1, "with one operation");
		ok(streq(script.w.ops.v[0].def->name, "mkdir"), "which is the one");
	}
	script_release(&script);
	vec_clear(&s.anchors);
	stepper_drop(&st, &point);
	search_release(&s);
	stepper_close(&st);
	free(progress);
}

static void test_script(void)
{
	const char *text = "mkdir A 0755\n#@ save 1\ncreat A/f 0644\n#@ restore 1\n#@ base 0\n";
	struct script s, less;
	struct err err = ERR_INIT;
	auto_strbuf back = STRBUF_INIT;
	bool keep[] = { false, true, true, true, true };

	script_init(&s);
	script_init(&less);
	ok(!script_parse(text, strlen(text), "script", &s, &err), "a script is read: %s", err.msg);
	script_print(&s, &back);
	ok(streq(strbuf_str(&back), text), "and printed as it was");
	ok(!script_is_workload(&s), "one that saves is more than a workload");
	script_select(&s, keep, &less);
	is_u(less.items.n, 4, "without its first line");
	is_u(less.w.ops.n, 1, "there is one operation");
	ok(script_parse("#@ fly 1\n", 9, "script", &s, &err) == -EINVAL, "a wrong mark: %s",
	   err.msg);
	script_release(&s);
	script_release(&less);
}

int main(void)
{
	test_visited();
	test_tasks();
	haunted = side_reffs;
	haunted.name = "haunted";
	haunted.op = haunted_op;
	haunted.begin = haunted_begin;
	haunted.save = haunted_save;
	haunted.restore = haunted_restore;
	haunted.drop = haunted_drop;
	side_register(&haunted);
	test_reproduce(false);
	test_reproduce(true);
	test_script();
	test_orders();
	test_resume(SEARCH_DEPTH, "depth first");
	test_resume(SEARCH_BREADTH, "breadth first");
	test_bad_pickles();
	is_u(found, 0, "nothing differs from itself");
	return done_testing();
}
