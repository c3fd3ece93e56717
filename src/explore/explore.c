/* SPDX-License-Identifier: MIT */
/*
 * explore.c - the parent of tasks, each of which is a unit of a pool.
 *
 * X1: a task dies with its parent, and with it its mounts and its disks.
 * X2: a finding that a task has kept is told, however the task ends.
 */
#include "explore/explore.h"

#include <errno.h>
#include <signal.h>

#include "base/signals.h"
#include "core/hashset.h"
#include "explore/explore_impl.h"
#include "explore/explore_keep.h"
#include "explore/task.h"
#include "run/workers.h"

enum { HANG_MS = 60000, DEATHS_MAX = 3 };

struct task_slot {
	struct shared *shared;
	struct visited *visited;
	uint64_t died_in;    /* 1 + the walk in which its process died; 0: none has */
	bool found;	     /* something, at any time */
	bool shrinks;	     /* a kept finding is being made smaller */
	struct message kept; /* its message about that */
};

struct tasks_parent {
	const struct explore_opts *opts;
	struct explore_result *result;
	struct pool *pool;
	unsigned given; /* tasks */
	struct task_slot slot[TASKS_MAX];
	struct kmsg kmsg;
	struct kmsg_shared *kmsg_shared;
	_Atomic uint64_t *found; /* findings of all tasks, but for those being made smaller */
	char fatal[600];
	bool killed; /* a task that may have left a disk behind */
	bool stopping;
};

static volatile sig_atomic_t signalled;

static void on_signal(int sig)
{
	signalled = sig;
}

static int open_visited(struct tasks_parent *p, unsigned i, struct err *err)
{
	if (!p->opts->share || !i)
		return visited_open(p->opts->memory, &p->slot[i].visited, err);
	p->slot[i].visited = p->slot[0].visited;
	return 0;
}

static int share_memory(struct tasks_parent *p, unsigned i, struct err *err)
{
	if (!i)
		p->found = pool_share(sizeof(*p->found), err);
	if (!p->found)
		return err->code;
	p->slot[i].shared = pool_share(sizeof(*p->slot[i].shared), err);
	return p->slot[i].shared ? open_visited(p, i, err) : err->code;
}

/* A task's data are in this copy of the parent, so each task is done by a new copy. */
static int work(void *ctx, struct pool_worker *w)
{
	struct tasks_parent *p = ctx;
	uint64_t i;

	if (!pool_next(w, &i, NULL))
		return 0;
	task_main(&(struct task_opts){ .opts = p->opts,
				       .number = (unsigned)i,
				       .shared = p->slot[i].shared,
				       .visited = p->slot[i].visited,
				       .kmsg = p->kmsg_shared,
				       .found = p->found,
				       .pool = w });
	pool_done(w, NULL, 0);
	return 0;
}

static bool next_task(void *ctx, uint64_t *unit, struct strbuf *data)
{
	struct tasks_parent *p = ctx;

	(void)data;
	*unit = p->given;
	return p->given < p->opts->jobs && ++p->given;
}

static uint64_t beats_of(void *ctx, uint64_t unit)
{
	const struct tasks_parent *p = ctx;

	return p->slot[unit].shared->progress.beat;
}

/* ---- what tasks tell ---- */

static void stop_at_limit(struct tasks_parent *p)
{
	for (unsigned i = 0; i < p->opts->jobs; i++)
		if (p->opts->max_cases && *p->found >= p->opts->max_cases)
			p->slot[i].shared->progress.stop = true;
}

/* Counts a finding that no task has counted. */
static void count_found(struct tasks_parent *p)
{
	++*p->found;
	stop_at_limit(p);
}

static void failed(struct tasks_parent *p, const char *words)
{
	p->result->errors++;
	p->opts->failed(p->opts->ctx, words);
}

static void take_kept(struct tasks_parent *p, struct task_slot *s, const struct message *m)
{
	p->result->findings += !s->shrinks;
	s->shrinks = s->found = true;
	s->kept = *m;
}

/* The finding that was kept last, or one that could not be kept, will not change any more. */
static void take_found(struct tasks_parent *p, struct task_slot *s, const struct message *m)
{
	p->result->findings += !s->shrinks;
	p->result->cut_short += m->kind == MSG_CUT_SHORT;
	s->shrinks = false;
	s->found = true;
	p->opts->found(p->opts->ctx, m->words, m->dir, m->ops);
}

/* A task has ended, or is ended: what it was making smaller stays as it is. */
static void take_unfinished(struct tasks_parent *p, struct task_slot *s)
{
	auto_free char *words =
		xasprintf("%s (the task ended while this was made smaller)", s->kept.words);

	if (!s->shrinks)
		return;
	s->shrinks = false;
	p->result->cut_short++;
	p->opts->found(p->opts->ctx, words, s->kept.dir, s->kept.ops);
}

static void take_message(struct tasks_parent *p, struct task_slot *s, const struct message *m)
{
	switch (m->kind) {
	case MSG_KEPT:
		take_kept(p, s, m);
		break;
	case MSG_SUPPRESSED:
		p->result->suppressed++;
		/* fall through */
	case MSG_DUPLICATE:
		p->result->findings -= s->shrinks;
		s->shrinks = false;
		break;
	case MSG_FOUND:
	case MSG_CUT_SHORT:
		take_found(p, s, m);
		break;
	case MSG_ERROR:
		failed(p, m->words);
		break;
	case MSG_NOTE:
		p->opts->noted(p->opts->ctx, m->words);
		break;
	case MSG_WARNING:
		p->opts->warned(p->opts->ctx, m->words);
		break;
	case MSG_FATAL:
		p->result->errors++;
		if (!*p->fatal)
			snprintf(p->fatal, sizeof(p->fatal), "%s", m->words);
		break;
	}
}

/* A task that makes a finding smaller does that to its end. */
static void on_message(void *ctx, unsigned worker, uint32_t kind, const void *data, size_t len)
{
	struct tasks_parent *p = ctx;
	struct message m;

	(void)worker;
	(void)kind;
	assert(len == sizeof(m));
	memcpy(&m, data, len);
	assert(m.task < p->opts->jobs);
	take_message(p, &p->slot[m.task], &m);
	stop_at_limit(p);
}

/*
 * Adds what a task was doing to make a finding smaller, up to the operation that does not return.
 * False if that is unknown.
 */
static bool add_try(const struct script_note *note, struct script *out)
{
	struct err ignored = ERR_INIT;
	auto_call(script_release) struct script all;

	script_init(&all);
	bool good = !script_parse(note->text, min(note->len, (uint32_t)SCRIPT_NOTE_MAX), "script",
				  &all, &ignored);
	for (size_t i = 0; good && i < min(all.items.n, (size_t)note->at); i++) {
		const struct script_item *item = &all.items.v[i];

		if (item->kind == SCRIPT_OP)
			script_add_op(out, &all.w.ops.v[item->n]);
		else
			script_add(out, item->kind, item->n);
	}
	return good;
}

/* Adds the first steps of the path that a task was on. */
static void add_path(const struct tasks_parent *p, unsigned i, uint32_t n, struct script *out)
{
	const struct search_progress *progress = &p->slot[i].shared->progress;
	struct inputs in = *p->opts->inputs;
	struct search_opts how;
	auto_call(alphabet_release) struct alphabet a;

	task_vary(p->opts, i, p->slot[i].shared->walks, &how, &in);
	alphabet_init(&a);
	search_draw(&how, &in, progress->alphabet_seed, &a);
	for (uint32_t k = 0; k < min(n, (uint32_t)progress->path_n); k++)
		if (progress->path[k] < a.steps.n)
			script_add_step(out, &a, progress->path[k]);
}

/* The script to where a task stopped answering. False if the last operation is unknown. */
static bool script_of_task(const struct tasks_parent *p, unsigned i, struct script *out)
{
	const struct task_slot *s = &p->slot[i];
	const struct script_note *note = &s->shared->note;

	add_path(p, i, note->len ? note->before : UINT32_MAX, out);
	return note->len ? add_try(note, out) : !s->shrinks;
}

static bool is_known_hang(const struct explore_opts *o, const struct workload *w)
{
	auto_findings problems = { 0 };

	findings_add(&problems, FINDING_HANG, NULL, xstrdup("hang"), NULL);
	return store_suppressed(o->suppress, o->specs[0], &problems, w, RUN_NO_OPERATION);
}

static void keep_unless_known(struct tasks_parent *p, unsigned i, const struct script *script,
			      const char *words)
{
	auto_free char *dir = NULL;
	struct err err = ERR_INIT;
	struct target_opts target = p->opts->sides.target;

	if (p->opts->suppress && is_known_hang(p->opts, &script->w)) {
		p->result->suppressed++;
		return;
	}
	target.spec = p->opts->specs[0];
	int rc = keep_hang(p->opts->dir, i, &target, p->opts->specs[1], script, words,
			   p->opts->strange, &dir, &err);
	p->result->findings++;
	p->slot[i].shared->cases++;
	count_found(p);
	p->opts->found(p->opts->ctx, words, rc ? "" : dir, script->w.ops.n);
	if (rc)
		p->opts->failed(p->opts->ctx, err.msg);
}

static void report_hang(struct tasks_parent *p, unsigned i, double silence)
{
	auto_call(script_release) struct script script;
	auto_strbuf words = STRBUF_INIT;

	script_init(&script);
	bool known = script_of_task(p, i, &script);
	strbuf_addf(&words, "%s did not answer for %g s%s", p->opts->specs[0], silence,
		    p->slot[i].shrinks ? " while a finding was made smaller" : "");
	if (script.w.ops.n && known) {
		strbuf_adds(&words, "; the last operation begun was ");
		op_print(&vec_last(&script.w.ops), &words);
	}
	keep_unless_known(p, i, &script, strbuf_str(&words));
}

/* False if nothing is known of the file system: that is an error. */
static bool take_hang(struct tasks_parent *p, unsigned i, const struct pool_end *e)
{
	auto_free char *words = NULL;

	if (target_is_guest(p->opts->specs[0]) && e->stopped)
		words = xasprintf("the guest was stopped from outside: %s; let it go on (kill "
				  "-CONT), or leave it alone",
				  e->stopped);
	else if (p->slot[i].shared->progress.beat)
		report_hang(p, i, e->silence);
	else
		words = xasprintf("%.80s did not answer for %g s while it was made and mounted",
				  p->opts->specs[0], e->silence);
	if (words)
		failed(p, words);
	return !words;
}

static bool is_walk(const struct tasks_parent *p, unsigned i)
{
	struct inputs in = *p->opts->inputs;
	struct search_opts how;

	task_vary(p->opts, i, p->slot[i].shared->walks, &how, &in);
	return how.order == SEARCH_WALK;
}

/*
 * Whether another process can do what is left of a task that hung. Only walks can: they go on with
 * the next, as the same one would hang again.
 */
static bool can_walk_on(struct tasks_parent *p, unsigned i)
{
	struct shared *s = p->slot[i].shared;
	uint64_t max = p->opts->max_cases;

	if (!is_walk(p, i) || (max ? *p->found >= max : s->cases >= CASES_MAX))
		return false;
	s->walk_from = s->progress.walks + 1;
	s->progress.beat = 0; /* until then, no operation has begun */
	s->note.len = 0;
	return true;
}

/*
 * Whether another process can do the task of one that died. A walk is done once more from its
 * beginning; if that dies in it, too, the next one is. Other searches begin anew, if nothing was
 * found that would be found again; where tasks share what was visited, it is unknown which states
 * the dead one had taken upon itself.
 */
static bool can_go_on(struct tasks_parent *p, unsigned i)
{
	struct task_slot *s = &p->slot[i];
	struct search_progress *progress = &s->shared->progress;
	struct err err = ERR_INIT;

	if (is_walk(p, i)) {
		s->shared->walk_from = progress->walks + (s->died_in == progress->walks + 1);
		s->died_in = progress->walks + 1;
		return true;
	}
	if (s->found || p->opts->share)
		return false;
	visited_close(steal(s->visited));
	memset(s->shared, 0, sizeof(*s->shared));
	if (!open_visited(p, i, &err))
		return true;
	failed(p, err.msg);
	return false;
}

static enum pool_then on_ended(void *ctx, const struct pool_end *e)
{
	struct tasks_parent *p = ctx;
	unsigned i = (unsigned)e->unit;
	auto_strbuf words = STRBUF_INIT;

	p->killed = true; /* a disk may be left behind */
	if (e->how == POOL_LINGERED)
		return POOL_SKIP; /* the task was done */
	strbuf_adds(&words, "a task ");
	pool_end_words(e, &words);
	bool bound = e->deaths > DEATHS_MAX || p->result->stopped;
	if (!e->open) {
		failed(p, strbuf_str(&words));
		return bound ? POOL_DROP : POOL_AGAIN;
	}
	bool shrank = p->slot[i].shrinks;
	bool hung = e->how == POOL_HUNG, told = hung && take_hang(p, i, e);
	take_unfinished(p, &p->slot[i]);
	if (hung && (!told || e->stuck || p->result->stopped || !can_walk_on(p, i)))
		return POOL_SKIP;
	if (hung) {
		p->opts->warned(p->opts->ctx, "another process goes on with the next walk");
		return POOL_AGAIN;
	}
	if (!bound && !shrank && can_go_on(p, i)) {
		strbuf_adds(&words, "; another process goes on with it");
		p->opts->warned(p->opts->ctx, strbuf_str(&words));
		return POOL_AGAIN;
	}
	failed(p, strbuf_str(&words));
	return POOL_SKIP;
}

static void add_up(const struct tasks_parent *p, struct explore_result *r)
{
	bool all = true;

/* clang-format off */
#define EACH_SUM(sum) \
	sum(operations) sum(steps) sum(states) sum(revisits) sum(restores) sum(saves) sum(mounts) \
	sum(undone) sum(adopted) sum(abandoned) sum(compared) sum(crash_states) sum(overlapped)
/* clang-format on */
#define BEGIN(member) r->member = 0;
#define ADD(member)   r->member += s->member;

	EACH_SUM(BEGIN)
	r->depth_max = r->shrinking = r->not_kept = 0;
	for (unsigned i = 0; i < p->opts->jobs; i++) {
		const struct search_progress *s = &p->slot[i].shared->progress;

		EACH_SUM(ADD)
		r->shrinking += p->slot[i].shrinks;
		r->not_kept += p->slot[i].shared->not_kept;
		r->depth_max = max(r->depth_max, (uint64_t)s->depth_max);
		/* By bits only, some may have been left out. */
		all &= s->done && !p->slot[i].visited->hashed;
	}
	r->exhausted = all;
}

/* Adds the states of one task to those of all, and to `more` what another had visited, too. */
static void compare_visited(const struct visited *v, struct hashset *all, struct hashset *more)
{
	for (uint64_t k = 0; k < v->places; k++) {
		struct hash128 h = { v->slots[k].lo, v->slots[k].hi };

		if (h.lo && !hashset_insert(all, h))
			hashset_insert(more, h);
	}
}

/*
 * States count once, however many tasks were there; and how many were visited by more than one is
 * how much they overlap. Where they share what was visited, they counted that themselves.
 */
static void count_distinct(const struct tasks_parent *p, struct explore_result *r)
{
	auto_hashset all = HASHSET_INIT, more = HASHSET_INIT;
	bool apart = p->opts->jobs > 1 && !p->opts->share;
	uint64_t bytes = 0, states = 0;

	for (unsigned i = 0; i < (p->opts->share ? 1 : p->opts->jobs); i++) {
		const struct visited *v = p->slot[i].visited;

		r->omission = max(r->omission, visited_omission(v));
		states += visited_count(v);
		bytes += v->bytes;
		if (apart)
			compare_visited(v, &all, &more);
	}
	r->distinct = apart ? all.n : states;
	if (apart)
		r->overlapped = more.n;
	r->overlap = r->distinct ? (double)r->overlapped / (double)r->distinct : 0;
	r->bytes_per_state = states ? (double)bytes / (double)states : 0;
}

/* ---- the kernel's log ---- */

/* A message of the kernel that no task took for its own: a finding without a script. */
static void take_unclaimed(void *ctx, const struct kmsg_block *b)
{
	struct tasks_parent *p = ctx;
	struct err err = ERR_INIT;
	auto_free char *path = xasprintf("%s/kernel-log", p->opts->dir);
	auto_free char *words =
		xasprintf("the kernel says: %.*s", (int)strcspn(b->text, "\n"), b->text);
	int rc = kmsg_block_append(b, p->opts->dir, "kernel-log", &err);

	if (rc)
		failed(p, err.msg);
	p->result->findings++;
	p->opts->found(p->opts->ctx, words, rc ? "" : path, 0);
}

/* ---- all of it ---- */

static void stop_all(struct tasks_parent *p)
{
	p->result->shrinking = 0;
	for (unsigned i = 0; i < p->opts->jobs; i++) {
		struct task_slot *s = &p->slot[i];

		s->shared->progress.stop = s->shared->cut = true;
		p->result->shrinking += s->shrinks;
	}
	if (p->opts->stopping)
		p->opts->stopping(p->opts->ctx, p->result);
	pool_stop(p->pool, 0);
}

static void on_tick(void *ctx)
{
	struct tasks_parent *p = ctx;

	kmsg_watch(&p->kmsg);
	p->result->searching_ns = pool_ready_ns(p->pool);
	if (p->opts->time_ns && p->result->searching_ns > p->opts->time_ns)
		p->result->stopped = true;
	if (signalled)
		p->result->stopped = p->result->signalled = true;
	if (p->result->stopped && !p->stopping)
		stop_all(p);
	p->stopping = p->result->stopped;
	add_up(p, p->result);
	if (p->opts->progress)
		p->opts->progress(p->opts->ctx, p->result);
}

static void release(struct tasks_parent *p)
{
	for (unsigned i = 0; i < p->opts->jobs; i++) {
		struct task_slot *s = &p->slot[i];

		pool_unshare(s->shared, sizeof(*s->shared));
		if (!p->opts->share || !i)
			visited_close(s->visited);
	}
	pool_unshare(p->kmsg_shared, sizeof(*p->kmsg_shared));
	pool_unshare(p->found, sizeof(*p->found));
}

/* True if a side is a file system of this machine's kernel, whose log matters then. */
static bool uses_this_kernel(const struct explore_opts *opts)
{
	return any_of(i, opts->n_specs,
		      !target_is_guest(opts->specs[i]) && !streq(opts->specs[i], "reffs"));
}

static int share_kernel_log(struct tasks_parent *p, struct err *err)
{
	p->kmsg_shared = pool_share(sizeof(*p->kmsg_shared), err);
	if (!p->kmsg_shared)
		return err->code;
	if (uses_this_kernel(p->opts))
		kmsg_open(&p->kmsg, p->kmsg_shared);
	else
		p->kmsg.fd = -1;
	return 0;
}

static int run_tasks(struct tasks_parent *p, struct err *err)
{
	struct pool_opts opts = { .jobs = p->opts->jobs,
				  .patience_ms = p->opts->hang_ms ? p->opts->hang_ms : HANG_MS,
				  .ctx = p,
				  .work = work,
				  .next = next_task,
				  .message = on_message,
				  .ended = on_ended,
				  .tick = on_tick,
				  .beats = beats_of };
	int rc = pool_new(&opts, &p->pool, err);

	if (!rc)
		rc = pool_run(p->pool, err);
	pool_free(p->pool);
	return rc;
}

int explore_run(const struct explore_opts *opts, struct explore_result *out, struct err *err)
{
	struct tasks_parent p = { .opts = opts, .result = out };
	struct signals signals;

	assert(opts->jobs >= 1 && opts->jobs <= TASKS_MAX);
	*out = (struct explore_result){ 0 };
	int rc = share_kernel_log(&p, err);
	if (rc)
		return rc;
	signalled = 0;
	signals_catch(&signals, on_signal);
	for (unsigned i = 0; i < opts->jobs && !rc; i++)
		rc = share_memory(&p, i, err);
	if (!rc)
		rc = run_tasks(&p, err);
	signals_restore(&signals);
	if (!rc) {
		add_up(&p, out);
		count_distinct(&p, out);
		for (unsigned i = 0; i < opts->jobs; i++)
			coverage_add(&out->coverage, &p.slot[i].shared->coverage);
		/* Of the search; what was done again to see more is not counted. */
		out->adopted = coverage_adopted(&out->coverage, NULL);
	}
	if (p.killed)
		workers_clean_up();
	kmsg_finish(&p.kmsg, take_unclaimed, &p);
	release(&p);
	if (!rc && *p.fatal)
		rc = err_set(err, -EIO, "%s", p.fatal);
	return rc;
}
