/* SPDX-License-Identifier: MIT */
/*
 * explore.c
 *
 * X1: a message is one write() of at most PIPE_BUF bytes, so messages do not mix.
 * X2: a task dies with its parent, and with it its mounts and its disks.
 */
#include "explore/explore.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/signals.h"
#include "core/hashset.h"
#include "explore/keep.h"
#include "explore/pickle.h"
#include "run/reap.h"
#include "run/store.h"

enum { CASES_MAX = 10, HANG_MS = 60000, SHRINK_RUNS = 2000, SAME_MAX = 2, ROOM_EVERY = 16 };

enum message_kind { MSG_FOUND, MSG_ERROR, MSG_NOTE, MSG_FATAL };

struct message {
	enum message_kind kind;
	uint64_t ops;
	char words[600], dir[300];
};
static_assert(sizeof(struct message) <= PIPE_BUF, "X1");

/* In memory that parent and task share. */
struct shared {
	struct search_progress progress;
	struct coverage coverage;
};

/* ---- in the task ---- */

struct task {
	const struct explore_opts *opts;
	unsigned number; /* on this machine */
	struct shared *shared;
	struct visited *visited;
	int out;
	struct stepper stepper;
	struct run *run; /* for crashes; opened when needed */
	struct run_opts run_opts;
	unsigned base; /* the number of its base image */
	bool base_kept;
	uint64_t cases, transitions;
	struct hashset seen;		  /* scripts that were kept */
	struct vec_of(char *) signatures; /* of what was found, each time */
};

static void tell(struct task *t, enum message_kind kind, const char *words, const char *dir,
		 uint64_t ops)
{
	struct message m = { .kind = kind, .ops = ops };

	snprintf(m.words, sizeof(m.words), "%s", words);
	snprintf(m.dir, sizeof(m.dir), "%s", dir ? dir : "");
	while (write(t->out, &m, sizeof(m)) < 0 && errno == EINTR)
		;
}

static unsigned times_seen(struct task *t, const char *signature)
{
	unsigned n = 0;

	for (size_t i = 0; i < t->signatures.n; i++)
		n += streq(t->signatures.v[i], signature);
	vec_push(&t->signatures, xstrdup(signature));
	return n;
}

static struct hash128 script_hash(const struct script *s)
{
	auto_strbuf text = STRBUF_INIT;

	script_print(s, &text);
	return hash_bytes(strbuf_str(&text), text.len);
}

/* Does it once more, for log, trees and words; then keeps it. */
static int keep(struct task *t, struct script *script, const struct shrunk *shrunk, uint64_t before,
		struct step_result *first, struct err *err)
{
	auto_strbuf log = STRBUF_INIT;
	struct step_result again = { 0 }, *result = &again;
	auto_free char *dir = NULL;
	size_t at;
	int rc = script_run(script, &t->stepper, &again, &at, &log, err);

	if (!rc && again.verdict != STEP_DIFFERENT)
		result = first; /* what was seen the first time is all there is */
	struct err ignored = ERR_INIT;
	if (!rc && stepper_show(&t->stepper, &ignored))
		log.len = log.len; /* a file system that cannot be walked has no tree */
	struct kept k = { .run = t->opts->dir,
			  .worker = t->number,
			  .number = ++t->cases,
			  .script = script,
			  .stepper = &t->stepper,
			  .result = result,
			  .log = &log,
			  .shown = shrunk->shown,
			  .tries = shrunk->tries,
			  .ops_before = before };
	if (!rc)
		rc = keep_case(&k, &dir, err);
	if (!rc) {
		auto_free char *words = xasprintf(
			"%s (shown %llu of %llu times)", result->findings.v[0].words,
			(unsigned long long)shrunk->shown, (unsigned long long)shrunk->tries);

		tell(t, MSG_FOUND, words, dir, script->w.ops.n);
	}
	step_result_release(&again);
	return rc;
}

/* The path first; what shows only after states were put back needs more of what happened. */
static int reproduce(struct task *t, struct search *s, struct script *script, const char *signature,
		     struct shrunk *shrunk, struct err *err)
{
	struct script lately;
	int rc = script_shrink(script, &t->stepper, signature, SHRINK_RUNS, shrunk, err);

	if (rc <= 0)
		return rc;
	script_init(&lately);
	script_from_log(&s->log, &s->alphabet, &lately);
	rc = script_shrink(&lately, &t->stepper, signature, SHRINK_RUNS, shrunk, err);
	if (!rc)
		script_copy(script, &lately);
	script_release(&lately);
	return min(rc, 0);
}

static int on_found(void *ctx, struct search *s, const struct script *script,
		    struct step_result *result, struct err *err)
{
	struct task *t = ctx;
	uint64_t limit = t->opts->max_cases ? t->opts->max_cases : CASES_MAX;
	struct shrunk shrunk = { 0 };
	struct script small;
	int rc = 0;

	if (times_seen(t, result->signature) >= SAME_MAX)
		return 0; /* one of many of its kind */
	script_init(&small);
	script_copy(&small, script);
	/* Room is looked at after everything was removed, which is not an operation. */
	if (!streq(result->signature, "room"))
		rc = reproduce(t, s, &small, result->signature, &shrunk, err);
	if (!rc && hashset_insert(&t->seen, script_hash(&small)))
		rc = keep(t, &small, &shrunk, script->w.ops.n, result, err);
	script_release(&small);
	if (t->cases >= limit)
		s->progress->stop = true;
	return rc;
}

/* ---- crashes ---- */

static int on_crash_found(void *ctx, const struct run_case *c, struct err *err)
{
	struct task *t = ctx;
	struct store_place at = { .run = t->opts->dir,
				  .base = t->base,
				  .base_kept = &t->base_kept,
				  .workload = ++t->cases,
				  .number = t->number };

	/* Before any crash it is ours to compare; and what it would be judged by is not known. */
	if (!c->state)
		return -ECANCELED;
	int rc = store_case(&at, c, &t->run_opts, err);
	auto_free char *name = store_name(&at);
	auto_free char *dir = xasprintf("%s/findings/%s", t->opts->dir, name);

	if (!rc)
		tell(t, MSG_FOUND, c->findings->v[0].words, dir, c->workload->ops.n);
	/* The same path has many crash states; one that is wrong tells enough. */
	return rc ? rc : -ECANCELED;
}

static int open_run(struct task *t, struct err *err)
{
	struct run_opts opts = { .target = t->opts->sides.target,
				 .guarantee = t->opts->crash_guarantee
						      ? guarantee_find(t->opts->crash_guarantee)
						      : NULL,
				 .modes = t->opts->crash_modes,
				 .budget = 50,
				 .seed = t->opts->search.seed };

	opts.target.spec = t->opts->specs[0];
	opts.target.worker = t->number;
	t->run_opts = opts;
	/* Beyond those of earlier runs, and never that of another task. */
	if (!t->run)
		t->base = (store_next_base(t->opts->dir) / TASKS_MAX + 1) * TASKS_MAX + t->number;
	return t->run ? 0 : run_open(&opts, &t->run, err);
}

/* The operations that led here, without those that fail after having made a file. */
static void path_for_crash(struct search *s, struct script *out)
{
	bool no_reflink = differences_find(s->stepper->sides[0]->differences, DIFFER_NO_REFLINK);
	struct script all;

	script_init(&all);
	search_path(s, &all);
	for (size_t i = 0; i < all.w.ops.n; i++)
		if (!no_reflink || !streq(all.w.ops.v[i].def->name, "reflink"))
			script_add_op(out, &all.w.ops.v[i]);
	script_release(&all);
}

/* Whether the last step promised something: before that, a crash may lose it anyway. */
static bool makes_durable(const struct search *s)
{
	const struct step *st;

	if (s->last == UINT32_MAX)
		return false;
	st = &s->alphabet.steps.v[s->last];
	for (uint32_t k = 0; k < st->n; k++)
		if (workload_persists(&s->alphabet.w, st->first + k))
			return true;
	return false;
}

/*
 * Cuts the power after this transition: the path that led here is run on a disk that records, and
 * each crash state recovered and checked, while the sides stay as they are.
 */
static int after_step(void *ctx, struct search *s, struct err *err)
{
	struct task *t = ctx;
	struct run_reporter reporter = { .found = on_crash_found, .ctx = t };
	struct run_totals totals = { 0 };
	struct script path;

	if (!makes_durable(s) || ++t->transitions % t->opts->crash_every)
		return 0;
	int rc = open_run(t, err);
	if (rc)
		return rc;
	script_init(&path);
	path_for_crash(s, &path);
	struct err why = ERR_INIT;
	if (path.w.ops.n)
		rc = run_workload(t->run, &path.w, &reporter, &totals, &why);
	if (rc && rc != -ECANCELED)
		tell(t, MSG_ERROR, why.msg, NULL, 0);
	s->progress->crash_states += totals.unique_states;
	script_release(&path);
	uint64_t limit = t->opts->max_cases ? t->opts->max_cases : CASES_MAX;
	if (t->cases >= limit)
		s->progress->stop = true;
	return 0;
}

/* ---- the task itself ---- */

/* How a task differs from the others. */
static void vary(const struct explore_opts *o, unsigned number, struct search_opts *search,
		 struct inputs *in)
{
	uint64_t global = (o->swarm_i ? o->swarm_i - 1 : 0) +
			  (uint64_t)number * (o->swarm_n ? o->swarm_n : 1);

	*search = o->search;
	search->seed += global * 0x632be59bd9b4e019ULL;
	if (!o->vary || !global)
		return;
	search->order = (enum search_order)((search->order + global) % 3);
	if (search->order != SEARCH_WALK)
		search->depth = min(search->depth, 12u);
	in->paths = in->flags = in->sizes = (enum dist)(global % DIST_END);
}

static void note_sides(struct task *t)
{
	for (unsigned i = 0; i < t->stepper.n; i++) {
		const struct side *s = t->stepper.sides[i];

		if (s->note) {
			auto_free char *words = xasprintf("%s: %s", s->spec, s->note);

			tell(t, MSG_NOTE, words, NULL, 0);
		}
	}
}

static int task_search(struct task *t, struct err *err)
{
	struct inputs in = *t->opts->inputs;
	struct search_opts how;
	struct pickle pickle = { 0 };
	auto_free char *path = xasprintf("%s/task-%u.pickle", t->opts->dir, t->number);
	struct search s = { .opts = &how,
			    .in = &in,
			    .stepper = &t->stepper,
			    .visited = t->visited,
			    .progress = &t->shared->progress,
			    .found = on_found,
			    .after = t->opts->crash_every ? after_step : NULL,
			    .ctx = t,
			    .pickle_path = path };
	int rc = 0;

	vary(t->opts, t->number, &how, &in);
	if (!how.room_every)
		how.room_every = ROOM_EVERY;
	if (t->opts->operations)
		s.until = max(t->opts->operations / t->opts->jobs, (uint64_t)1);
	if (t->opts->resume) {
		rc = pickle_load(path, search_inputs_hash(&how, &in), &pickle, t->visited, err);
		s.resumed = rc ? NULL : &pickle;
	}
	search_init(&s);
	if (!rc)
		rc = search_run(&s, err);
	search_release(&s);
	pickle_release(&pickle);
	return rc;
}

static int task_main(struct task *t)
{
	struct side_opts sides = t->opts->sides;
	struct err err = ERR_INIT;

	sides.target.worker = t->number;
	int rc = stepper_open(&t->stepper, &sides, t->opts->specs, t->opts->n_specs, &err);
	if (!rc) {
		note_sides(t);
		t->stepper.coverage = &t->shared->coverage;
		t->stepper.beat = &t->shared->progress.beat;
		t->stepper.compare_every = t->opts->compare_every ? t->opts->compare_every : 1;
		rc = task_search(t, &err);
		stepper_close(&t->stepper);
	}
	run_close(t->run);
	if (rc)
		tell(t, MSG_FATAL, err.msg, NULL, 0);
	return rc ? 2 : 0;
}

/* ---- in the parent ---- */

struct slot {
	pid_t pid; /* 0: none */
	int in;
	uint64_t beat, heard_ns;
	struct shared *shared;
	struct visited *visited;
};

struct parent {
	const struct explore_opts *opts;
	struct explore_result *result;
	struct slot slot[TASKS_MAX];
	char fatal[600];
	bool killed; /* a task that may have left a disk behind */
};

static volatile sig_atomic_t signalled;

static void on_signal(int sig)
{
	signalled = sig;
}

static int share_memory(struct parent *p, unsigned i, struct err *err)
{
	struct slot *s = &p->slot[i];

	s->shared = mmap(NULL, sizeof(*s->shared), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s->shared == MAP_FAILED) {
		s->shared = NULL;
		return err_set(err, -errno, "cannot share memory with tasks: %m");
	}
	if (p->opts->share && i) {
		s->visited = p->slot[0].visited;
		return 0;
	}
	return visited_open(p->opts->memory, &s->visited, err);
}

static int start_task(struct parent *p, unsigned i, struct err *err)
{
	struct slot *s = &p->slot[i];
	int fds[2];
	pid_t parent = getpid();

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_set(err, -errno, "cannot create a pipe: %m");
	pid_t pid = fork();
	if (pid < 0) {
		int rc = err_set(err, -errno, "cannot start a task: %m");
		close(fds[0]);
		close(fds[1]);
		return rc;
	}
	if (pid == 0) {
		struct task t = { .opts = p->opts,
				  .number = i,
				  .shared = s->shared,
				  .visited = s->visited,
				  .out = fds[1] };

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(2);
		setpgid(0, 0); /* Ctrl-C goes to the parent, which tells us to stop */
		signals_in_child(true);
		_exit(task_main(&t));
	}
	close(fds[1]);
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	s->pid = pid;
	s->in = fds[0];
	s->heard_ns = util_now_ns();
	return 0;
}

static void take_message(struct parent *p, const struct message *m)
{
	switch (m->kind) {
	case MSG_FOUND:
		p->result->findings++;
		p->opts->found(p->opts->ctx, m->words, m->dir, m->ops);
		break;
	case MSG_ERROR:
		p->result->errors++;
		p->opts->failed(p->opts->ctx, m->words);
		break;
	case MSG_NOTE:
		p->opts->noted(p->opts->ctx, m->words);
		break;
	case MSG_FATAL:
		p->result->errors++;
		if (!*p->fatal)
			snprintf(p->fatal, sizeof(p->fatal), "%s", m->words);
		break;
	}
}

static void listen_to(struct parent *p, unsigned i)
{
	struct slot *s = &p->slot[i];
	struct message m;
	ssize_t n;

	while ((n = read(s->in, &m, sizeof(m))) == (ssize_t)sizeof(m))
		take_message(p, &m);
	if (n < 0)
		return; /* nothing more for now */
	int status = 0;
	close(s->in);
	waitpid(s->pid, &status, 0);
	s->pid = 0;
	if (WIFSIGNALED(status)) {
		char words[128];

		snprintf(words, sizeof(words), "a task was ended by signal %d (%s)",
			 WTERMSIG(status), strsignal(WTERMSIG(status)));
		p->result->errors++;
		p->opts->failed(p->opts->ctx, words);
	}
}

/* The steps that led to where a task stopped answering. */
static void script_of_task(const struct parent *p, unsigned i, struct script *out)
{
	const struct search_progress *progress = &p->slot[i].shared->progress;
	struct inputs in = *p->opts->inputs;
	struct search_opts how;
	struct alphabet a;

	vary(p->opts, i, &how, &in);
	alphabet_init(&a);
	search_draw(&how, &in, progress->alphabet_seed, &a);
	for (uint32_t k = 0; k < progress->path_n; k++)
		if (progress->path[k] < a.steps.n)
			script_add_step(out, &a, progress->path[k]);
	alphabet_release(&a);
}

static void report_hang(struct parent *p, unsigned i, uint64_t limit_ms)
{
	struct script script;
	auto_free char *dir = NULL;
	auto_strbuf words = STRBUF_INIT;
	struct err err = ERR_INIT;

	script_init(&script);
	script_of_task(p, i, &script);
	strbuf_addf(&words, "%s did not answer for %llu ms", p->opts->specs[0],
		    (unsigned long long)limit_ms);
	if (script.w.ops.n) {
		strbuf_adds(&words, "; the last operation begun was ");
		op_print(&vec_last(&script.w.ops), &words);
	}
	int rc = keep_hang(p->opts->dir, i, p->opts->specs[0], p->opts->specs[1], &script,
			   strbuf_str(&words), &dir, &err);
	p->result->findings++;
	p->opts->found(p->opts->ctx, strbuf_str(&words), rc ? "" : dir, script.w.ops.n);
	if (rc)
		p->opts->failed(p->opts->ctx, err.msg);
	script_release(&script);
}

static void watch(struct parent *p, unsigned i)
{
	uint64_t limit_ms = p->opts->hang_ms ? p->opts->hang_ms : HANG_MS;
	struct slot *s = &p->slot[i];

	if (!s->pid)
		return;
	if (s->shared->progress.beat != s->beat) {
		s->beat = s->shared->progress.beat;
		s->heard_ns = util_now_ns();
	}
	if (util_now_ns() - s->heard_ns < limit_ms * 1000000)
		return;
	if (s->beat) {
		report_hang(p, i, limit_ms);
	} else {
		char words[200];

		snprintf(words, sizeof(words),
			 "%.80s did not answer for %llu ms while it was made and mounted",
			 p->opts->specs[0], (unsigned long long)limit_ms);
		p->result->errors++;
		p->opts->failed(p->opts->ctx, words);
	}
	int status;

	p->killed = true;
	/* With the programs it started: a server that is stopped would keep it from ending. */
	close(s->in);
	reap_tree(s->pid, &status);
	s->pid = 0;
}

static void add_up(const struct parent *p, struct explore_result *r)
{
	bool all = true;

	r->operations = r->steps = r->states = r->revisits = r->restores = r->saves = 0;
	r->mounts = r->undone = r->adopted = r->abandoned = r->compared = r->crash_states = 0;
	r->depth_max = 0;
	for (unsigned i = 0; i < p->opts->jobs; i++) {
		const struct search_progress *s = &p->slot[i].shared->progress;

		r->operations += s->operations;
		r->steps += s->steps;
		r->states += s->states;
		r->revisits += s->revisits;
		r->restores += s->restores;
		r->saves += s->saves;
		r->mounts += s->mounts;
		r->undone += s->undone;
		r->adopted += s->adopted;
		r->abandoned += s->abandoned;
		r->compared += s->compared;
		r->crash_states += s->crash_states;
		r->depth_max = max(r->depth_max, (uint64_t)s->depth_max);
		all &= s->done;
	}
	r->exhausted = all;
}

/* States that several tasks visited count once; how many did not is how much they overlapped. */
static void count_distinct(const struct parent *p, struct explore_result *r)
{
	auto_hashset all = HASHSET_INIT;
	uint64_t bytes = 0, states = 0;

	for (unsigned i = 0; i < p->opts->jobs; i++) {
		const struct visited *v = p->slot[i].visited;

		if (p->opts->share && i)
			break;
		r->omission = max(r->omission, visited_omission(v));
		states += visited_count(v);
		bytes += visited_count(v) * sizeof(struct visited_slot);
		for (uint64_t k = 0; p->opts->jobs > 1 && k < v->places; k++)
			if (v->slots[k].lo)
				hashset_insert(&all,
					       (struct hash128){ v->slots[k].lo, v->slots[k].hi });
	}
	r->distinct = p->opts->jobs > 1 && !p->opts->share ? all.n : states;
	r->bytes_per_state = states ? (double)bytes / (double)states : 0;
}

static unsigned running(const struct parent *p)
{
	unsigned n = 0;

	for (unsigned i = 0; i < p->opts->jobs; i++)
		n += p->slot[i].pid != 0;
	return n;
}

static void supervise(struct parent *p)
{
	uint64_t start = util_now_ns();

	while (running(p)) {
		struct pollfd fds[TASKS_MAX];

		for (unsigned i = 0; i < p->opts->jobs; i++)
			fds[i] = (struct pollfd){ p->slot[i].pid ? p->slot[i].in : -1, POLLIN, 0 };
		poll(fds, p->opts->jobs, 100);
		for (unsigned i = 0; i < p->opts->jobs; i++) {
			if (p->slot[i].pid && fds[i].revents)
				listen_to(p, i);
			watch(p, i);
		}
		if (p->opts->time_ns && util_now_ns() - start > p->opts->time_ns)
			p->result->stopped = true;
		if (signalled)
			p->result->stopped = p->result->signalled = true;
		for (unsigned i = 0; i < p->opts->jobs && p->result->stopped; i++)
			p->slot[i].shared->progress.stop = true;
		add_up(p, p->result);
		if (p->opts->progress)
			p->opts->progress(p->opts->ctx, p->result);
	}
}

/* A killed task is gone a moment later, and its disk can be taken away then. */
static void clean_up(void)
{
	const struct timespec nap = { .tv_nsec = 50000000 };
	struct err ignored = ERR_INIT;
	unsigned removed = 0;

	for (unsigned i = 0; i < 20 && !removed; i++) {
		if (disk_clean_up(&removed, &ignored))
			break;
		nanosleep(&nap, NULL);
	}
}

static void release(struct parent *p)
{
	for (unsigned i = 0; i < p->opts->jobs; i++) {
		struct slot *s = &p->slot[i];

		if (s->shared)
			munmap(s->shared, sizeof(*s->shared));
		if (!p->opts->share || !i)
			visited_close(s->visited);
	}
}

int explore_run(const struct explore_opts *opts, struct explore_result *out, struct err *err)
{
	struct parent p = { .opts = opts, .result = out };
	struct signals signals;
	int rc = 0;

	assert(opts->jobs >= 1 && opts->jobs <= TASKS_MAX);
	*out = (struct explore_result){ 0 };
	signalled = 0;
	signals_catch(&signals, on_signal);
	for (unsigned i = 0; i < opts->jobs && !rc; i++)
		rc = share_memory(&p, i, err);
	for (unsigned i = 0; i < opts->jobs && !rc; i++)
		rc = start_task(&p, i, err);
	for (unsigned i = 0; i < opts->jobs && rc; i++)
		if (p.slot[i].shared)
			p.slot[i].shared->progress.stop = true;
	if (!rc || running(&p))
		supervise(&p);
	signals_restore(&signals);
	if (!rc) {
		add_up(&p, out);
		count_distinct(&p, out);
		for (unsigned i = 0; i < opts->jobs; i++)
			coverage_add(&out->coverage, &p.slot[i].shared->coverage);
	}
	if (p.killed)
		clean_up();
	release(&p);
	if (!rc && *p.fatal)
		rc = err_set(err, -EIO, "%s", p.fatal);
	return rc;
}

int explore_replay(const struct explore_opts *opts, const struct script *script,
		   const char *signature, unsigned tries, unsigned *shown,
		   struct step_result *result, struct strbuf *log, struct err *err)
{
	struct stepper st;
	size_t at;
	int rc = stepper_open(&st, &opts->sides, opts->specs, opts->n_specs, err);

	*shown = 0;
	if (rc)
		return rc;
	for (unsigned i = 0; i < tries && !rc; i++) {
		strbuf_clear(log);
		rc = script_run(script, &st, result, &at, log, err);
		*shown += !rc && result->verdict == STEP_DIFFERENT &&
			  streq(result->signature, signature);
	}
	stepper_close(&st);
	return rc;
}
