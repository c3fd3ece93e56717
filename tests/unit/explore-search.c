/* SPDX-License-Identifier: MIT */
/* Searching: all orders find the same states, and a search can be stopped and go on. */
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "explore/explore_pickle.h"
#include "explore/reproduce.h"
#include "explore/explore_search.h"
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

/* A search of reffs against itself, in a world small enough to be seen whole. */
struct plan {
	const char *world;
	struct search_opts opts;
	uint64_t until;	       /* operations */
	unsigned killed_after; /* transitions; 0: never */
	const char *pickle_path;
	bool resume;
};

static const char small_world[] = "names files 1\nnames dirs 1\nnames depth 1\nmax size 2\n"
				  "only creat mkdir rmdir unlink link rename write";
/* All operations there are, with three names. */
static const char three_names[] = "names files 1\nnames dirs 1\nnames depth 1\n";
/* Three directories with one name each, and one more name: (1 + 2)^3 * 2 = 54 states. */
static const char mkdir_world[] = "names files 1\nnames dirs 3\nnames depth 1\n"
				  "only mkdir rmdir\ncombination mkdir MODE 0755 1\n";

/* The search ends with an error, and keeps nothing more: as if it had been killed. */
static int on_step(void *ctx, struct search *s, struct err *err)
{
	unsigned *left = ctx;

	(void)s;
	return --*left ? 0 : err_set(err, -EINTR, "killed");
}

static int run_plan(const struct plan *plan, struct visited *visited, struct outcome *out,
		    struct err *err)
{
	const char *specs[] = { "reffs", "reffs" };
	struct side_opts sides = { 0 };
	struct search_progress *progress = xcalloc(1, sizeof(*progress));
	struct stepper st;
	struct inputs in;
	struct pickle pickle = { 0 };
	unsigned left = plan->killed_after;

	inputs_init(&in);
	ok(!inputs_parse(&in, plan->world, strlen(plan->world), "text", err) &&
		   !inputs_finish(&in, err),
	   "a small world: %s", err->msg);
	ok(!stepper_open(&st, &sides, specs, 2, err), "two sides: %s", err->msg);
	st.compare_every = 1;
	struct search s = { .opts = &plan->opts,
			    .in = &in,
			    .stepper = &st,
			    .visited = visited,
			    .progress = progress,
			    .found = on_found,
			    .after = left ? on_step : NULL,
			    .ctx = &left,
			    .pickle_path = plan->pickle_path,
			    .until = plan->until };
	int rc = plan->resume ? search_resume(&s, &pickle, err) : 0;
	search_init(&s);
	if (!rc)
		rc = search_run(&s, err);
	search_release(&s);
	pickle_release(&pickle);
	*out = (struct outcome){ progress->states, st.counts.operations, progress->done };
	stepper_close(&st);
	inputs_release(&in);
	free(progress);
	return rc;
}

static struct outcome run_well(const struct plan *plan, struct visited *visited)
{
	struct outcome out;
	struct err err = ERR_INIT;

	ok(!run_plan(plan, visited, &out, &err), "runs: %s", err.msg);
	return out;
}

static struct visited *fresh_of(uint64_t bytes)
{
	struct visited *v;
	struct err err = ERR_INIT;

	ok(!visited_open(bytes, &v, &err), "memory: %s", err.msg);
	return v;
}

static struct visited *fresh(void)
{
	return fresh_of(256 << 10);
}

/* How many states of `a` are not in `b`. */
static uint64_t missing(const struct visited *a, struct visited *b)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < a->places; i++)
		if (a->slots[i].lo)
			n += !visited_has(b, (struct hash128){ a->slots[i].lo, a->slots[i].hi });
	return n;
}

static void are_same(const struct visited *a, struct visited *b, const char *what)
{
	is_u(visited_count(a), visited_count(b), "%s: as many states", what);
	is_u(missing(a, b), 0, "%s: the same", what);
}

static void test_orders(void)
{
	struct visited *a = fresh(), *b = fresh(), *c = fresh();
	struct plan plan = { .world = small_world,
			     .opts = { .seed = 3, .depth = 30, .alphabet = 14 } };

	plan.opts.order = SEARCH_DEPTH;
	struct outcome depth = run_well(&plan, a);
	plan.opts.order = SEARCH_BREADTH;
	struct outcome breadth = run_well(&plan, b);
	ok(depth.done && breadth.done, "both end when all was seen");
	ok(depth.states > 20, "there is something to see: %llu states",
	   (unsigned long long)depth.states);
	are_same(a, b, "depth first and breadth first");
	plan.opts.order = SEARCH_WALK;
	plan.until = 5000;
	struct outcome walk = run_well(&plan, c);
	ok(visited_count(c) > 5 && !walk.done, "a walk sees some, and never all");
	visited_close(a);
	visited_close(b);
	visited_close(c);
}

/* Most states are met at the bound first, and are near the start all the same. */
static void test_bound(uint32_t depth, uint64_t states)
{
	struct visited *a = fresh(), *b = fresh();
	struct plan plan = { .world = three_names,
			     .opts = { .seed = 3, .depth = depth, .alphabet = 30 } };

	plan.opts.order = SEARCH_BREADTH;
	ok(run_well(&plan, a).done, "all within %u steps", depth);
	is_u(visited_count(a), states, "which are so many");
	plan.opts.order = SEARCH_DEPTH;
	ok(run_well(&plan, b).done, "depth first as well");
	are_same(a, b, "depth first");
	visited_close(a);
	visited_close(b);
}

static void test_resume(enum search_order order, uint64_t until, bool kill)
{
	char path[] = "/tmp/outage-test-pickle-XXXXXX";
	int fd = mkstemp(path);
	struct visited *whole = fresh(), *parts = fresh();
	struct plan plan = { .world = three_names,
			     .opts = { .order = order, .seed = 3, .depth = 4, .alphabet = 30 } };
	struct outcome all = run_well(&plan, whole), one;
	struct err err = ERR_INIT;

	plan.pickle_path = path;
	if (kill) {
		plan.killed_after = (unsigned)until;
		plan.opts.keep_ns = 1;
		ok(run_plan(&plan, parts, &one, &err) == -EINTR, "it is killed");
		plan.killed_after = 0;
	} else {
		plan.until = until;
		one = run_well(&plan, parts);
		plan.until = 0;
	}
	ok(!one.done && one.states < all.states, "in the middle: %llu states",
	   (unsigned long long)one.states);
	visited_close(parts);
	parts = fresh();
	plan.resume = true;
	struct outcome two = run_well(&plan, parts);
	ok(two.done && two.states < all.states, "goes on to the end, not anew");
	are_same(whole, parts, "in two parts");
	close(fd);
	unlink(path);
	visited_close(whole);
	visited_close(parts);
}

static void test_killed_walk(void)
{
	char path[] = "/tmp/outage-test-pickle-XXXXXX";
	int fd = mkstemp(path);
	struct visited *v = fresh(), *back = fresh();
	struct plan plan = {
		.world = three_names,
		.opts = { .order = SEARCH_WALK, .seed = 3, .depth = 100, .keep_ns = 1 },
		.pickle_path = path,
		.killed_after = 1000
	};
	struct outcome out;
	struct err err = ERR_INIT;

	ok(run_plan(&plan, v, &out, &err) == -EINTR, "a walk is killed");
	plan.killed_after = 0;
	plan.resume = true;
	plan.until = 1;
	err_clear(&err);
	ok(!run_plan(&plan, back, &out, &err), "and goes on: %s", err.msg);
	ok(visited_count(back) > visited_count(v) / 2, "with most of what it had visited");
	is_u(missing(back, v), 0, "and nothing else");
	visited_close(back);
	back = fresh();
	unlink(path);
	plan.resume = false;
	plan.opts.keep_ns = 0;
	plan.until = 0;
	plan.killed_after = 1000;
	ok(run_plan(&plan, back, &out, &err) == -EINTR && access(path, F_OK) < 0,
	   "within the first minute there is nothing");
	plan.resume = true;
	err_clear(&err);
	ok(run_plan(&plan, back, &out, &err) == -ENOENT && strstr(err.msg, "each minute"),
	   "which is said: %s", err.msg);
	close(fd);
	visited_close(v);
	visited_close(back);
}

static void test_rounds(enum search_order order)
{
	struct visited *one = fresh(), *many = fresh();
	struct plan plan = { .world = mkdir_world,
			     .opts = { .order = order, .seed = 3, .depth = 20, .alphabet = 10 } };

	ok(run_well(&plan, one).done, "all that one alphabet leads to");
	ok(visited_count(one) < 54, "is not all: %llu", (unsigned long long)visited_count(one));
	plan.opts.round = 1000;
	plan.until = 100000;
	ok(!run_well(&plan, many).done, "there is always another alphabet");
	is_u(visited_count(many), 54, "and together they lead everywhere");
	visited_close(one);
	visited_close(many);
}

static void test_bad_pickles(void)
{
	char path[] = "/tmp/outage-test-pickle-XXXXXX";
	int fd = mkstemp(path);
	struct visited *v = fresh();
	struct pickle p = { .walk = 9, .left_out = 7 };
	struct pickle back;
	struct pickle_states states = { v, v, 0 };
	struct visited_claim claim = { 0, 9, 12 };
	struct err err = ERR_INIT;
	uint32_t steps[] = { 1, 2, 3 };
	bool refused = true, ignored;

	visited_add(v, (struct hash128){ 5, 6 }, 0);
	visited_claim(v, (struct hash128){ 7, 8 }, claim, 20, NULL, &ignored);
	vec_push(&p.frames,
		 (struct pickle_frame){ script_path_of(steps, 3), script_path_of(steps, 2) });
	ok(!pickle_save(&p, &states, path, &err), "kept: %s", err.msg);
	close(fd);
	fd = open(path, O_RDWR); /* it took the place of the file we had open */
	visited_close(v);
	v = fresh();
	states.visited = states.claims = v;
	ok(!pickle_load(path, &back, &states, &err), "read back: %s", err.msg);
	ok(back.walk == 9 && back.left_out == 7 && back.frames.n == 1 &&
		   back.frames.v[0].path.n == 3 && back.frames.v[0].todo.v[1] == 2,
	   "as it was");
	ok(visited_has(v, (struct hash128){ 5, 6 }), "with what was visited");
	is_u(visited_claimed(v, (struct hash128){ 7, 8 }, 0, 9), 12,
	     "and how near what is searched");
	is_u(visited_claimed(v, (struct hash128){ 5, 6 }, 0, 9), UINT32_MAX, "which that is not");
	pickle_release(&back);
	off_t size = lseek(fd, 0, SEEK_END);
	ok(size > 100, "there are bytes to flip");
	for (off_t at = 0; at < size; at += 3) {
		char c;

		refused &= pread(fd, &c, 1, at) == 1;
		c ^= 4;
		refused &= pwrite(fd, &c, 1, at) == 1;
		err_clear(&err);
		refused &= pickle_load(path, &back, &states, &err) == -EINVAL && *err.msg;
		c ^= 4;
		refused &= pwrite(fd, &c, 1, at) == 1;
	}
	ok(refused, "a flipped byte anywhere is noticed");
	refused = ftruncate(fd, size - 5) == 0;
	err_clear(&err);
	ok(refused && pickle_load(path, &back, &states, &err) == -EINVAL, "cut short: %s", err.msg);
	close(fd);
	unlink(path);
	pickle_release(&p);
	visited_close(v);
}

static void test_visited(void)
{
	struct visited *v = fresh_of(1 << 20);
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

static void test_claims(void)
{
	struct visited *v = fresh();
	struct hash128 a = { 1, 2 }, b = { 3, 4 };
	struct visited_claim c = { 0, 0, 9 };
	enum visit visit;
	bool again;

	ok(visited_claim(v, a, c, 9, &visit, &again) && visit == VISIT_NEW && !again,
	   "a new state is to be searched");
	ok(!visited_claim(v, a, c, 9, &visit, &again) && visit == VISIT_OLD, "once");
	c.depth = 5;
	ok(visited_claim(v, a, c, 9, NULL, &again) && !again,
	   "met nearer, again: at the bound no step was taken");
	c.depth = 7;
	ok(!visited_claim(v, a, c, 9, NULL, &again), "met farther, not");
	c.depth = 3;
	ok(visited_claim(v, a, c, 9, NULL, &again) && again,
	   "met nearer still, the steps are known");
	is_u(visited_claimed(v, a, 0, 0), 3, "the nearest counts");
	c = (struct visited_claim){ 1, 0, 2 };
	ok(visited_claim(v, a, c, 9, &visit, &again) && visit == VISIT_SECOND && !again,
	   "the steps of another task may not be done yet");
	ok(visited_claimed(v, a, 0, 0) == UINT32_MAX && visited_claimed(v, a, 1, 0) == 2,
	   "it is the other's now");
	c = (struct visited_claim){ 1, 1, 8 };
	ok(visited_claim(v, a, c, 9, &visit, &again) && visit == VISIT_OLD && !again,
	   "with another alphabet it is searched anew, and visited all the same");
	c.round = 0;
	c.depth = 0;
	ok(!visited_claim(v, a, c, 9, NULL, &again), "an old round takes nothing from a new one");
	visited_add(v, b, 0);
	ok(visited_claim(v, b, c, 9, &visit, &again) && visit == VISIT_SECOND,
	   "visited is not searched");
	is_u(visited_count(v), 2, "two states");
	visited_close(v);
}

/* Two processes come to the same states in another order: the nearest has to be left. */
static void test_claims_together(void)
{
	enum { STATES = 20000 };
	struct visited *v = fresh_of(1 << 20);
	uint64_t wrong = 0;
	bool ignored;
	pid_t pid = fork();
	unsigned task = pid == 0;

	for (uint64_t k = 0; k < 2 * STATES; k++) {
		uint64_t i = (task ? 2 * STATES - 1 - k : k) % STATES;
		uint32_t depth = (uint32_t)((i * 7 + k * 5 + task * 13) % 50) + 1;

		visited_claim(v, hash_bytes(&i, sizeof(i)),
			      (struct visited_claim){ task, 3, depth }, 60, NULL, &ignored);
	}
	if (pid == 0)
		_exit(0);
	ok(pid > 0 && waitpid(pid, NULL, 0) == pid, "another process did the same");
	for (uint64_t i = 0; i < STATES; i++) {
		struct hash128 h = hash_bytes(&i, sizeof(i));
		uint32_t want = UINT32_MAX;

		for (uint64_t n = 0; n < 4; n++) {
			uint64_t k = n < 2 ? i + n * STATES : (n - 1) * STATES - 1 - i;
			uint32_t depth = (uint32_t)((i * 7 + k * 5 + (n / 2) * 13) % 50) + 1;

			want = min(want, depth);
		}
		wrong += min(visited_claimed(v, h, 0, 3), visited_claimed(v, h, 1, 3)) != want;
	}
	is_u(wrong, 0, "of all depths the smallest is left");
	visited_close(v);
}

/* What the manual page says of --memory. */
static void test_memory(void)
{
	struct visited *v;
	struct err err = ERR_INIT;
	uint64_t n = 0;
	bool again;
	struct visited_claim c = { 0, 0, 4 };

	ok(!visited_open(64 << 10, &v, &err), "little memory: %s", err.msg);
	for (; !v->hashed; n++)
		visited_add(v, hash_bytes(&n, sizeof(n)), 0);
	ok(v->exact == n - 1 && v->bytes / v->exact == 30, "%llu states, 30 bytes each",
	   (unsigned long long)v->exact);
	struct hash128 h = hash_bytes(&n, sizeof(n));
	ok(visited_claim(v, h, c, 9, NULL, &again), "by bits only a state is searched");
	c.depth = 1;
	ok(!visited_claim(v, h, c, 9, NULL, &again), "from where it was met first");
	c.round = 1;
	ok(visited_claim(v, h, c, 9, NULL, &again) && !visited_claim(v, h, c, 9, NULL, &again),
	   "in each round");
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
	ok(!reproduce(&s, &script, &(struct shrink_how){ .signature = "result mkdir" }, &how, &err),
	   "it is done again: %s", err.msg);
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
	ok(any_of(i, s.items.n, s.items.v[i].kind != SCRIPT_OP),
	   "one that saves is more than a workload");
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
	test_claims();
	test_claims_together();
	test_memory();
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
	test_bound(3, 172);
	test_bound(4, 850);
	test_bound(5, 4359);
	test_resume(SEARCH_DEPTH, 60, false);
	test_resume(SEARCH_DEPTH, 1000, false);
	test_resume(SEARCH_BREADTH, 60, false);
	test_resume(SEARCH_BREADTH, 1000, false);
	test_resume(SEARCH_DEPTH, 30, true);
	test_resume(SEARCH_DEPTH, 250, true);
	test_resume(SEARCH_BREADTH, 150, true);
	test_killed_walk();
	test_rounds(SEARCH_BREADTH);
	test_rounds(SEARCH_DEPTH);
	test_bad_pickles();
	is_u(found, 0, "nothing differs from itself");
	return done_testing();
}
