/* SPDX-License-Identifier: MIT */
/*
 * base-pool.c - workers that die, hang, say half of something, or a lot, or nonsense: all work is
 * done once, results come in order, and nothing is left.
 */
#include "tap.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/pool_impl.h"
#include "base/proc.h"
#include "base/vec.h"

/* What hangs is given hang_ms; where nothing does, whoever is slow is waited for. */
enum { UNITS = 40, HANG_MS = 2000, SLOW_MS = 300000, LARGE = 5 << 20, STATUS_BAD = 7 };
static unsigned hang_ms = HANG_MS;
enum { TEXT = 1, BYTES, GRANDCHILD };

/* What a worker does with units that are not done as others are. */
enum trick {
	NONE,
	DIE_ONCE, /* a worker is killed at the unit, the first time */
	DIE_ALWAYS,
	HANG,	    /* it stops itself */
	HALF,	    /* it dies in the middle of a frame, once */
	NONSENSE,   /* it sends what is no frame, once */
	EARLY,	    /* it ends with status 0, once */
	STATUS,	    /* and with another one */
	WITH_CHILD, /* it hangs, and has started a process that sleeps */
	SLOW,	    /* units of odd numbers take longer than others */
	FLOOD,	    /* it tells a lot */
	NOT_BEGUN,  /* it ends before it takes a unit */
	GO_AWAY,    /* it ends after each unit, with status 0 */
	STEPS,	    /* a unit has steps; some of them are deadly */
};

struct test {
	enum trick trick;
	uint64_t at; /* the unit of the trick */
	struct pool *pool;
	_Atomic uint64_t *shared; /* tricks that were done, and units that were begun */
	uint64_t given, done[UNITS], lost, order_wrong, last, messages, bytes, wrong_bytes;
	unsigned ended, times_max, deaths_max;
	struct pool_end end; /* the last */
	char words[128];
	enum pool_then then;
	unsigned again; /* so many times a unit is done again */
	uint64_t stop_after, units;
	uint64_t step; /* STEPS: where the next worker begins */
	bool kill;
	pid_t child;
};

/* ---- in the worker ---- */

static bool first_time(struct test *t)
{
	return atomic_fetch_add(&t->shared[0], 1) == 0;
}

static void die(void)
{
	kill(getpid(), SIGKILL);
}

static void tell_pid_of_child(struct pool_worker *w)
{
	pid_t pid = fork();

	if (!pid) {
		execlp("sleep", "sleep", "1000", NULL);
		_exit(1);
	}
	pool_tell(w, GRANDCHILD, &pid, sizeof(pid));
}

static int do_steps(struct test *t, struct pool_worker *w)
{
	for (uint64_t i = t->step; i < 10; i++) {
		pool_at(w, i, "step %d", (int)i);
		if (i == 3 || (i == 7 && first_time(t)))
			die();
		pool_tell(w, TEXT, &i, sizeof(i));
	}
	return 0;
}

static void flood(struct pool_worker *w)
{
	auto_free unsigned char *large = xmalloc(LARGE);

	for (size_t i = 0; i < LARGE; i++)
		large[i] = (unsigned char)(i * 7);
	pool_tell(w, BYTES, large, LARGE);
	for (int i = 0; i < 1000; i++)
		pool_tell(w, BYTES, large, (size_t)i);
}

/* What is special about a unit; a status to end with, or -1. */
static int do_trick(struct test *t, struct pool_worker *w, uint64_t unit)
{
	struct pool_frame f = { .kind = TEXT, .magic = POOL_MAGIC, .len = 1000 };

	if (t->trick == SLOW && unit % 2)
		util_sleep_ms(20);
	if (t->trick == STEPS && unit == t->at)
		return do_steps(t, w) - 1;
	if (unit != t->at)
		return -1;
	if (t->trick == DIE_ALWAYS || (t->trick == DIE_ONCE && first_time(t)))
		die();
	if (t->trick == WITH_CHILD && first_time(t))
		tell_pid_of_child(w);
	if (t->trick == HANG || (t->trick == WITH_CHILD && atomic_load(&t->shared[0]) == 1))
		kill(getpid(), SIGSTOP);
	if (t->trick == FLOOD)
		flood(w);
	if (t->trick == HALF && first_time(t)) {
		(void)!send(w->fd, &f, sizeof(f), MSG_NOSIGNAL);
		(void)!send(w->fd, "half", 4, MSG_NOSIGNAL);
		die();
	}
	if (t->trick == NONSENSE && first_time(t)) {
		char nonsense[100] = "no frame";

		(void)!send(w->fd, nonsense, sizeof(nonsense), MSG_NOSIGNAL);
		pause();
	}
	if (t->trick == EARLY && first_time(t))
		return 0;
	return t->trick == STATUS && first_time(t) ? STATUS_BAD : -1;
}

static int work(void *ctx, struct pool_worker *w)
{
	struct test *t = ctx;
	auto_strbuf data = STRBUF_INIT;
	uint64_t unit;

	if (t->trick == NOT_BEGUN && first_time(t))
		return STATUS_BAD;
	pool_ready(w);
	while (pool_next(w, &unit, &data)) {
		atomic_fetch_add(&t->shared[1 + unit], 1);
		pool_at(w, 0, "unit %llu", (unsigned long long)unit);
		int status = do_trick(t, w, unit);
		if (status >= 0)
			return status;
		strbuf_addf(&data, "!");
		pool_done(w, strbuf_str(&data), data.len);
		if (t->trick == GO_AWAY)
			return 0;
	}
	return 0;
}

/* ---- in the parent ---- */

static bool next(void *ctx, uint64_t *unit, struct strbuf *data)
{
	struct test *t = ctx;

	if (t->given == t->units)
		return false;
	*unit = t->given++;
	strbuf_addf(data, "do %llu", (unsigned long long)*unit);
	return true;
}

static int on_done(void *ctx, uint64_t unit, const void *data, size_t len,
		   const struct pool_end *lost)
{
	struct test *t = ctx;
	auto_free char *want = xasprintf("do %llu!", (unsigned long long)unit);

	t->order_wrong += unit < t->last;
	t->last = unit + 1;
	t->lost += lost != NULL;
	if (lost)
		t->end = *lost;
	t->done[unit]++;
	t->wrong_bytes += !lost && (len != strlen(want) || memcmp(data, want, len) != 0);
	if (t->kill && unit == t->stop_after)
		return -EXDEV;
	return 0;
}

static void on_message(void *ctx, unsigned worker, uint32_t kind, const void *data, size_t len)
{
	struct test *t = ctx;
	const unsigned char *bytes = data;

	(void)worker;
	t->messages++;
	t->bytes += len;
	if (kind == GRANDCHILD)
		memcpy(&t->child, data, sizeof(t->child));
	if (kind == TEXT && t->trick == STEPS) {
		uint64_t step;

		memcpy(&step, data, sizeof(step));
		t->wrong_bytes += step != t->step;
		t->step = step + 1;
	}
	for (size_t i = 0; kind == BYTES && i < len; i++)
		t->wrong_bytes += bytes[i] != (unsigned char)(i * 7);
}

static enum pool_then on_ended(void *ctx, const struct pool_end *e)
{
	struct test *t = ctx;

	t->ended++;
	t->end = *e;
	snprintf(t->words, sizeof(t->words), "%s", e->at);
	t->times_max = max(t->times_max, e->times);
	t->deaths_max = max(t->deaths_max, e->deaths);
	if (t->trick == STEPS && e->times == 3)
		t->step = e->step + 1;
	if (t->trick == STEPS)
		return POOL_AGAIN;
	return e->times <= t->again && e->how != POOL_HUNG ? POOL_AGAIN : t->then;
}

static void on_tick(void *ctx)
{
	struct test *t = ctx;

	if (!t->kill && t->stop_after && t->last >= t->stop_after)
		pool_stop(t->pool, 0);
}

static unsigned open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static bool no_child(void)
{
	return waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD;
}

static struct test make(enum trick trick, uint64_t at)
{
	struct err err = ERR_INIT;

	return (struct test){ .trick = trick,
			      .at = at,
			      .units = UNITS,
			      .then = POOL_SKIP,
			      .again = 2,
			      .shared = pool_share((UNITS + 1) * sizeof(uint64_t), &err) };
}

static struct pool_opts options(struct test *t)
{
	bool hangs = t->trick == HANG || t->trick == WITH_CHILD;

	return (struct pool_opts){ .jobs = 3,
				   .depth = 2,
				   .ordered = true,
				   .patience_ms = hangs && !t->kill ? hang_ms : SLOW_MS,
				   .ctx = t,
				   .work = work,
				   .next = next,
				   .done = on_done,
				   .message = on_message,
				   .ended = on_ended,
				   .tick = on_tick };
}

static int run_as(struct test *t, const struct pool_opts *o)
{
	unsigned files = open_files();
	struct err err = ERR_INIT;

	int rc = pool_new(o, &t->pool, &err);
	if (!rc)
		rc = pool_run(t->pool, &err);
	ok(rc <= 0 && (rc == 0 || rc == -EXDEV || err.code == rc), "it runs: %d %s", rc, err.msg);
	pool_free(t->pool);
	is_u(open_files(), files, "no descriptor is left");
	ok(no_child(), "and no process");
	return rc;
}

static int run(struct test *t)
{
	struct pool_opts o = options(t);

	return run_as(t, &o);
}

/* Every unit came back once, all but `lost` done; unit `at` was begun `begun` times. */
static void all_done(struct test *t, const char *what, uint64_t lost, uint64_t begun)
{
	uint64_t once = 0;

	for (uint64_t i = 0; i < UNITS; i++)
		once += t->done[i] == 1;
	is_u(once, UNITS, "%s: each unit ends once", what);
	is_u(t->lost, lost, "%s: given up", what);
	is_u(t->order_wrong, 0, "%s: results come in order", what);
	is_u(t->wrong_bytes, 0, "%s: and are right", what);
	is_u(atomic_load(&t->shared[1 + t->at]), begun, "%s: so often it was tried", what);
	pool_unshare((void *)(uintptr_t)t->shared, (UNITS + 1) * sizeof(uint64_t));
}

/* ---- tests ---- */

static void test_well(void)
{
	struct test t = make(NONE, 0);

	run(&t);
	is_u(t.ended, 0, "who ends well is not told");
	all_done(&t, "all is well", 0, 1);
	t = make(SLOW, 0);
	run(&t);
	all_done(&t, "some are slow", 0, 1);
	t = make(FLOOD, 4);
	run(&t);
	is_u(t.messages, 1001, "many messages");
	is_u(t.bytes, LARGE + 999 * 500, "all of them, whole");
	all_done(&t, "a flood", 0, 1);
	t = make(GO_AWAY, 0);
	run(&t);
	is_u(t.ended, 0, "who ends after a unit has ended well");
	all_done(&t, "a process for each", 0, 1);
}

static void test_ends(void)
{
	static const struct {
		enum trick trick;
		const char *name;
		enum pool_how how;
		int code;
	} v[] = {
		{ DIE_ONCE, "killed", POOL_KILLED, SIGKILL },
		{ HALF, "half a frame", POOL_KILLED, SIGKILL },
		{ NONSENSE, "nonsense", POOL_NONSENSE, 0 },
		{ EARLY, "ends early", POOL_EXITED, 0 },
		{ STATUS, "ends with a status", POOL_EXITED, STATUS_BAD },
	};

	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		struct test t = make(v[i].trick, 0);

		run(&t);
		is_u(t.ended, 1, "%s: is told", v[i].name);
		is_u(t.end.how, v[i].how, "%s: as what it is", v[i].name);
		is_i(t.end.code, v[i].code, "%s: with its status", v[i].name);
		ok(t.end.unit == 0 && t.end.open && t.end.times == 1, "%s: and its unit",
		   v[i].name);
		is_s(t.words, "unit 0", "%s: in words", v[i].name);
		all_done(&t, v[i].name, 0, 2);
	}
	struct test t = make(NOT_BEGUN, 5);
	run(&t);
	ok(t.ended == 1 && t.end.unit == POOL_NONE && !t.end.open && !t.end.times,
	   "who took no unit is not said to have had one");
	all_done(&t, "not begun", 0, 1);
}

static void test_deadly(void)
{
	struct test t = make(DIE_ALWAYS, 6);

	run(&t);
	is_u(t.ended, 3, "a deadly unit kills three workers");
	is_u(t.times_max, 3, "which are counted");
	ok(t.end.how == POOL_KILLED && t.end.unit == 6, "and it is given up for that");
	all_done(&t, "deadly", 1, 3);

	t = make(DIE_ALWAYS, 6);
	t.again = 0;
	t.then = POOL_DROP;
	run(&t);
	is_u(t.ended, 1, "a place that is not filled again");
	all_done(&t, "others do the rest", 1, 1);

	/* Of one unit, deadly at one of its steps always, and at another once. */
	t = make(STEPS, 0);
	t.units = 1;
	run(&t);
	is_u(t.ended, 4, "deadly steps");
	is_u(t.messages, 9, "all steps but one are done, once");
	is_u(t.step, 10, "to the end");
	is_u(t.done[0], 1, "and so is the unit");
	is_u(t.wrong_bytes, 0, "in order");
}

/* On a busy machine others are silent for long, too: then all get more time. */
static void run_hanging(struct test *t, enum trick trick)
{
	for (hang_ms = HANG_MS;; hang_ms *= 4) {
		*t = make(trick, 3);
		run(t);
		if (t->ended <= 1 || 4 * hang_ms > SLOW_MS)
			return;
		pool_unshare((void *)(uintptr_t)t->shared, (UNITS + 1) * sizeof(uint64_t));
	}
}

static void test_hang(void)
{
	struct test t;

	run_hanging(&t, HANG);
	is_u(t.ended, 1, "one that is stopped hangs");
	ok(t.end.how == POOL_HUNG && t.end.silence > 0, "that is told");
	all_done(&t, "hung", 1, 1);
	run_hanging(&t, WITH_CHILD);
	ok(t.child > 0 && t.end.how == POOL_HUNG, "one that hangs, and has a child");
	struct proc_stat p;
	for (int i = 0; i < SLOW_MS / 10 && proc_stat(t.child, &p) && p.state != 'Z'; i++)
		util_sleep_ms(10);
	ok(!proc_stat(t.child, &p) || p.state == 'Z', "is killed with it");
	all_done(&t, "a tree", 1, 1);
}

static void test_stop(void)
{
	struct test t = make(SLOW, 0);
	uint64_t n = 0;

	t.stop_after = 5;
	is_i(run(&t), 0, "a run that is stopped");
	for (uint64_t i = 0; i < UNITS; i++)
		n += t.done[i];
	ok(n >= 5 && n < UNITS && !t.ended, "ends early, and well");
	pool_unshare((void *)(uintptr_t)t.shared, (UNITS + 1) * sizeof(uint64_t));

	t = make(HANG, 6);
	t.kill = true;
	t.stop_after = 5;
	is_i(run(&t), -EXDEV, "a run that its user ends");
	ok(!t.done[6] && !t.ended, "what runs then is killed, and not told");
	is_u(t.order_wrong, 0, "and there is order until then");
	pool_unshare((void *)(uintptr_t)t.shared, (UNITS + 1) * sizeof(uint64_t));
}

/* Workers stay from one run to the next. */
static void test_keep(void)
{
	struct test t = make(NONE, 0);
	struct pool_opts o = options(&t);
	struct err err = ERR_INIT;
	unsigned files = open_files();

	o.keep = true;
	o.jobs = 1;
	t.units = 1;
	ok(!pool_new(&o, &t.pool, &err) && !pool_run(t.pool, &err), "a first unit");
	struct proc_list before = { 0 }, after = { 0 };
	proc_tree(getpid(), &before);
	for (t.units = 2; t.units <= UNITS; t.units++)
		ok(!pool_run(t.pool, &err), "another");
	proc_tree(getpid(), &after);
	ok(before.n == 2 && after.n == 2 && before.v[1] == after.v[1], "by the same process");
	kill(after.v[1], SIGKILL);
	vec_release(&before);
	vec_release(&after);
	t.given--;
	t.done[UNITS - 1] = 0;
	t.last--;
	t.units = UNITS;
	ok(!pool_run(t.pool, &err), "and by another if that is dead");
	pool_free(t.pool);
	is_u(open_files(), files, "no descriptor is left");
	ok(no_child(), "and no process");
	all_done(&t, "one by one", 0, 1);
}

/* The points of the parent are meant. */
static int work_well(void *ctx, struct pool_worker *w)
{
	fault_pause();
	return work(ctx, w);
}

/* Whatever fails, it says so, or does all. */
static void test_faults(void)
{
	struct fault_loop loop = { .error = EMFILE };
	unsigned files = open_files(), failed = 0, rounds = 0, deaf = 0, lost = 0;

	while (fault_loop_next(&loop)) {
		struct test t = { .units = 3, .then = POOL_SKIP, .again = 3 };
		struct err err = ERR_INIT;
		struct pool_opts o = options(&t);

		o.work = work_well;
		t.shared = xcalloc(UNITS + 1, sizeof(*t.shared));
		o.jobs = 1 + rounds % 2;
		rounds++;
		int rc = pool_new(&o, &t.pool, &err);
		rc = rc ? rc : pool_run(t.pool, &err);
		pool_free(t.pool);
		failed += rc != 0;
		deaf += t.ended && t.end.how == POOL_DEAF;
		lost += !rc && t.lost;
		if (rc ? rc != -EMFILE || !*err.msg : t.done[0] + t.done[1] + t.done[2] != 3)
			ok(false, "round %u: %d %s", rounds, rc, err.msg);
		free((void *)(uintptr_t)t.shared);
	}
	ok(rounds > 10 && failed > 0, "faults: %u of %u rounds fail", failed, rounds);
	ok(deaf > 2 && !lost, "faults: %u calls on a socket fail, and no unit is lost", deaf);
	is_u(open_files(), files, "faults: no descriptor is left");
	ok(no_child(), "faults: and no process");
}

/* The worker whose n-th point fails; the last of `shared` says that it came to its end first. */
static int work_badly(void *ctx, struct pool_worker *w)
{
	struct test *t = ctx;

	if (!first_time(t))
		return work_well(ctx, w);
	fault_arm((int)t->step, EIO);
	int status = work(ctx, w);
	t->shared[1 + UNITS] = !fault_disarm(NULL);
	return status;
}

static void test_worker_faults(void)
{
	unsigned files = open_files(), n = 0, wrong = 0, seen = 0;
	bool end = false;

	while (!end && n < 100) {
		struct test t = { .units = 3, .then = POOL_SKIP, .again = 3, .step = ++n };
		struct err err = ERR_INIT;
		struct pool_opts o = options(&t);

		o.jobs = 1;
		o.work = work_badly;
		t.shared = pool_share((UNITS + 2) * sizeof(*t.shared), &err);
		int rc = pool_new(&o, &t.pool, &err);
		rc = rc ? rc : pool_run(t.pool, &err);
		pool_free(t.pool);
		wrong += rc || t.lost || t.wrong_bytes || t.done[0] + t.done[1] + t.done[2] != 3;
		seen += t.ended > 0;
		end = t.shared[1 + UNITS];
		pool_unshare((void *)(uintptr_t)t.shared, (UNITS + 2) * sizeof(*t.shared));
	}
	ok(end && n > 6 && !wrong, "faults of a worker: at %u points, another does its units",
	   n - 1);
	ok(seen > 2, "faults of a worker: %u of them are told", seen);
	is_u(open_files(), files, "faults of a worker: no descriptor is left");
	ok(no_child(), "faults of a worker: and no process");
}

/* The parent is killed: so are workers, and what they do. */
static void test_orphans(void)
{
	int fds[2];
	pid_t pid, worker;
	struct proc_stat p;

	if (pipe(fds))
		return;
	pid = fork();
	if (!pid) {
		struct test t = make(HANG, 0);
		struct pool_opts o = options(&t);
		struct err err = ERR_INIT;

		o.jobs = 1;
		o.patience_ms = 0;
		if (pool_new(&o, &t.pool, &err))
			_exit(1);
		dup2(fds[1], 100); /* the worker holds it as long as it lives */
		_exit(pool_run(t.pool, &err) != 0);
	}
	struct proc_list list = { 0 };
	while (list.n < 2) {
		vec_clear(&list);
		proc_tree(pid, &list);
	}
	worker = list.v[1];
	vec_release(&list);
	while (!proc_stat(worker, &p) || p.state != 'T')
		util_sleep_ms(5);
	kill(pid, SIGTERM);
	waitpid(pid, NULL, 0);
	close(fds[1]);
	char c;
	is_i(read(fds[0], &c, 1), 0, "a parent that gets a signal takes its workers along");
	close(fds[0]);
}

int main(void)
{
	alarm(1200); /* a pool that waits for ever fails */
	test_well();
	test_ends();
	test_deadly();
	test_hang();
	test_stop();
	test_keep();
	test_faults();
	test_worker_faults();
	test_orphans();
	return done_testing();
}
