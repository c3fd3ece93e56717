/* SPDX-License-Identifier: MIT */
/*
 * explore.c
 *
 * X1: a message is one write() of at most PIPE_BUF bytes, so messages do not mix.
 * X2: a task dies with its parent, and with it its mounts and its disks.
 * X3: a finding that a task has kept is told, however the task ends.
 */
#include "explore/explore.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/patience.h"
#include "base/signals.h"
#include "core/hashset.h"
#include "explore/explore_impl.h"
#include "explore/keep.h"
#include "base/reap.h"

enum { HANG_MS = 60000 };

struct slot {
	pid_t pid; /* 0: none */
	int in;
	uint64_t beat, starts;
	struct patience patience;
	struct shared *shared;
	struct visited *visited;
	bool shrinks;	     /* it has kept a finding, and makes it smaller */
	struct message kept; /* what it told of that */
};

struct parent {
	const struct explore_opts *opts;
	struct explore_result *result;
	struct slot slot[TASKS_MAX];
	struct kmsg kmsg;
	struct kmsg_shared *kmsg_shared;
	char fatal[600];
	bool killed;	/* a task that may have left a disk behind */
	uint64_t up_ns; /* when all tasks were up; 0: they are not */
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
		struct task_opts t = { .opts = p->opts,
				       .number = i,
				       .shared = s->shared,
				       .visited = s->visited,
				       .kmsg = p->kmsg_shared,
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
	patience_renew(&s->patience);
	return 0;
}

/* ---- what tasks tell ---- */

static void take_kept(struct parent *p, struct slot *s, const struct message *m)
{
	p->result->findings += !s->shrinks;
	s->shrinks = true;
	s->kept = *m;
}

/* The finding that was kept last, or one that could not be kept, will not change any more. */
static void take_found(struct parent *p, struct slot *s, const struct message *m)
{
	p->result->findings += !s->shrinks;
	p->result->cut_short += m->kind == MSG_CUT_SHORT;
	s->shrinks = false;
	p->opts->found(p->opts->ctx, m->words, m->dir, m->ops);
}

/* A task has ended, or is ended: what it was making smaller stays as it is. */
static void take_unfinished(struct parent *p, struct slot *s)
{
	auto_free char *words =
		xasprintf("%s (the task ended while this was made smaller)", s->kept.words);

	if (!s->shrinks)
		return;
	s->shrinks = false;
	p->result->cut_short++;
	p->opts->found(p->opts->ctx, words, s->kept.dir, s->kept.ops);
}

static void take_message(struct parent *p, struct slot *s, const struct message *m)
{
	switch (m->kind) {
	case MSG_KEPT:
		take_kept(p, s, m);
		break;
	case MSG_DUPLICATE:
		p->result->findings -= s->shrinks;
		s->shrinks = false;
		break;
	case MSG_FOUND:
	case MSG_CUT_SHORT:
		take_found(p, s, m);
		break;
	case MSG_ERROR:
		p->result->errors++;
		p->opts->failed(p->opts->ctx, m->words);
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

/* Takes what there is to hear; false once the task has closed its end. */
static bool hear(struct parent *p, struct slot *s)
{
	struct message m;
	ssize_t n;

	while ((n = read(s->in, &m, sizeof(m))) == (ssize_t)sizeof(m))
		take_message(p, s, &m);
	return n < 0;
}

static void listen_to(struct parent *p, unsigned i)
{
	struct slot *s = &p->slot[i];
	int status = 0;

	if (hear(p, s))
		return; /* nothing more for now */
	close(s->in);
	waitpid(s->pid, &status, 0);
	s->pid = 0;
	take_unfinished(p, s);
	if (WIFSIGNALED(status)) {
		char words[128];

		p->killed = true; /* it took nothing along */
		snprintf(words, sizeof(words), "a task was ended by signal %d (%s)",
			 WTERMSIG(status), strsignal(WTERMSIG(status)));
		p->result->errors++;
		p->opts->failed(p->opts->ctx, words);
	}
}

/*
 * Adds what a task was doing to make a finding smaller, up to the operation that does not return.
 * False if nobody knows.
 */
static bool add_try(const struct script_note *note, struct script *out)
{
	struct err ignored = ERR_INIT;
	struct script all;

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
	script_release(&all);
	return good;
}

/* Adds the first steps of the path that a task was on. */
static void add_path(const struct parent *p, unsigned i, uint32_t n, struct script *out)
{
	const struct search_progress *progress = &p->slot[i].shared->progress;
	struct inputs in = *p->opts->inputs;
	struct search_opts how;
	struct alphabet a;

	task_vary(p->opts, i, p->slot[i].shared->walks, &how, &in);
	alphabet_init(&a);
	search_draw(&how, &in, progress->alphabet_seed, &a);
	for (uint32_t k = 0; k < min(n, (uint32_t)progress->path_n); k++)
		if (progress->path[k] < a.steps.n)
			script_add_step(out, &a, progress->path[k]);
	alphabet_release(&a);
}

/* What led to where a task stopped answering. False if nobody knows the last operation. */
static bool script_of_task(const struct parent *p, unsigned i, struct script *out)
{
	const struct slot *s = &p->slot[i];
	const struct script_note *note = &s->shared->note;

	add_path(p, i, note->len ? note->before : UINT32_MAX, out);
	return note->len ? add_try(note, out) : !s->shrinks;
}

static void report_hang(struct parent *p, unsigned i, double silence)
{
	struct script script;
	auto_free char *dir = NULL;
	auto_strbuf words = STRBUF_INIT;
	struct err err = ERR_INIT;
	struct target_opts target = p->opts->sides.target;

	target.spec = p->opts->specs[0];
	script_init(&script);
	bool known = script_of_task(p, i, &script);
	strbuf_addf(&words, "%s did not answer for %g s%s", p->opts->specs[0], silence,
		    p->slot[i].shrinks ? " while a finding was made smaller" : "");
	if (script.w.ops.n && known) {
		strbuf_adds(&words, "; the last operation begun was ");
		op_print(&vec_last(&script.w.ops), &words);
	}
	int rc = keep_hang(p->opts->dir, i, &target, p->opts->specs[1], &script, strbuf_str(&words),
			   &dir, &err);
	p->result->findings++;
	p->opts->found(p->opts->ctx, strbuf_str(&words), rc ? "" : dir, script.w.ops.n);
	if (rc)
		p->opts->failed(p->opts->ctx, err.msg);
	script_release(&script);
}

static bool is_guest(const char *spec)
{
	struct err ignored = ERR_INIT;
	const struct target_ops *target = target_find(spec, &ignored);

	return target && target->far;
}

static void watch(struct parent *p, unsigned i)
{
	uint64_t limit_ms = p->opts->hang_ms ? p->opts->hang_ms : HANG_MS;
	struct slot *s = &p->slot[i];

	if (!s->pid)
		return;
	/* A guest that starts has a limit of its own, which may be longer than this one. */
	if (s->shared->progress.beat != s->beat || s->shared->starts != s->starts) {
		s->beat = s->shared->progress.beat;
		s->starts = s->shared->starts;
		patience_renew(&s->patience);
	}
	if (!patience_ends(&s->patience, s->pid, limit_ms * 1000000))
		return;
	double silence = patience_silence(&s->patience);
	auto_strbuf who = STRBUF_INIT;
	if (is_guest(p->opts->specs[0]) && reap_stopped(s->pid, &who)) {
		auto_free char *words = xasprintf("the guest was stopped from outside: %s; let it "
						  "go on (kill -CONT), or leave it alone",
						  strbuf_str(&who));

		p->opts->failed(p->opts->ctx, words);
		p->result->errors++;
	} else if (s->beat) {
		report_hang(p, i, silence);
	} else {
		char words[200];

		snprintf(words, sizeof(words),
			 "%.80s did not answer for %g s while it was made and mounted",
			 p->opts->specs[0], silence);
		p->result->errors++;
		p->opts->failed(p->opts->ctx, words);
	}
	int status;

	p->killed = true;
	hear(p, s); /* nothing that it has told is lost */
	take_unfinished(p, s);
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
	r->depth_max = r->overlapped = r->shrinking = 0;
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
		r->overlapped += s->overlapped;
		r->shrinking += p->slot[i].shrinks;
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
static void count_distinct(const struct parent *p, struct explore_result *r)
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

/* What the kernel said, and no task took for its own: a finding of the run, without a script. */
static void take_unclaimed(void *ctx, const struct kmsg_block *b)
{
	struct parent *p = ctx;
	struct err err = ERR_INIT;
	auto_free char *path = xasprintf("%s/kernel-log", p->opts->dir);
	auto_free char *words =
		xasprintf("the kernel says: %.*s", (int)strcspn(b->text, "\n"), b->text);
	int rc = kmsg_block_append(b, p->opts->dir, "kernel-log", &err);

	if (rc) {
		p->result->errors++;
		p->opts->failed(p->opts->ctx, err.msg);
	}
	p->result->findings++;
	p->opts->found(p->opts->ctx, words, rc ? "" : path, 0);
}

/* ---- all of it ---- */

static unsigned running(const struct parent *p)
{
	unsigned n = 0;

	for (unsigned i = 0; i < p->opts->jobs; i++)
		n += p->slot[i].pid != 0;
	return n;
}

/* The clock begins once all tasks that are left are up; a guest has its own limit for that. */
static void watch_clock(struct parent *p)
{
	uint64_t now = util_now_ns();
	bool all = true;

	for (unsigned i = 0; i < p->opts->jobs; i++)
		all &= !p->slot[i].pid || p->slot[i].shared->up;
	if (!p->up_ns && all)
		p->up_ns = now;
	p->result->searching_ns = p->up_ns ? now - p->up_ns : 0;
	if (p->opts->time_ns && p->result->searching_ns > p->opts->time_ns)
		p->result->stopped = true;
}

static void stop_all(struct parent *p)
{
	p->result->shrinking = 0;
	for (unsigned i = 0; i < p->opts->jobs; i++) {
		struct slot *s = &p->slot[i];

		s->shared->progress.stop = s->shared->cut = true;
		p->result->shrinking += s->shrinks;
	}
	if (p->opts->stopping)
		p->opts->stopping(p->opts->ctx, p->result);
}

static void supervise(struct parent *p)
{
	bool stopping = false;

	while (running(p)) {
		struct pollfd fds[TASKS_MAX];

		for (unsigned i = 0; i < p->opts->jobs; i++)
			fds[i] = (struct pollfd){ p->slot[i].pid ? p->slot[i].in : -1, POLLIN, 0 };
		poll(fds, p->opts->jobs, 100);
		kmsg_watch(&p->kmsg);
		for (unsigned i = 0; i < p->opts->jobs; i++) {
			if (p->slot[i].pid && fds[i].revents)
				listen_to(p, i);
			watch(p, i);
		}
		watch_clock(p);
		if (signalled)
			p->result->stopped = p->result->signalled = true;
		if (p->result->stopped && !stopping)
			stop_all(p);
		stopping = p->result->stopped;
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
	if (p->kmsg_shared)
		munmap(p->kmsg_shared, sizeof(*p->kmsg_shared));
}

/* Of a file system that is not its own, this machine's kernel has nothing to say. */
static bool uses_this_kernel(const struct explore_opts *opts)
{
	for (unsigned i = 0; i < opts->n_specs; i++)
		if (!is_guest(opts->specs[i]) && !streq(opts->specs[i], "reffs"))
			return true;
	return false;
}

static int share_kernel_log(struct parent *p, struct err *err)
{
	p->kmsg_shared = mmap(NULL, sizeof(*p->kmsg_shared), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p->kmsg_shared == MAP_FAILED) {
		p->kmsg_shared = NULL;
		return err_set(err, -errno, "cannot share memory with tasks: %m");
	}
	if (uses_this_kernel(p->opts))
		kmsg_open(&p->kmsg, p->kmsg_shared);
	else
		p->kmsg.fd = -1;
	return 0;
}

static uint64_t count_adopted(const struct coverage *c)
{
	struct coverage_adopted_list list = { 0 };
	uint64_t n = coverage_adopted(c, &list);

	vec_release(&list);
	return n;
}

int explore_run(const struct explore_opts *opts, struct explore_result *out, struct err *err)
{
	struct parent p = { .opts = opts, .result = out };
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
		/* Of the search; what was done again to see more is not counted. */
		out->adopted = count_adopted(&out->coverage);
	}
	if (p.killed)
		clean_up();
	kmsg_finish(&p.kmsg, take_unclaimed, &p);
	release(&p);
	if (!rc && *p.fatal)
		rc = err_set(err, -EIO, "%s", p.fatal);
	return rc;
}

int explore_replay(const struct explore_opts *opts, const struct script *script,
		   const struct image *const *start, const char *signature, unsigned tries,
		   unsigned *shown, struct step_result *result, struct strbuf *log, struct err *err)
{
	struct stepper st;
	struct point point = { 0 };
	size_t at;
	int rc = stepper_open(&st, &opts->sides, opts->specs, opts->n_specs, err);

	*shown = 0;
	if (rc)
		return rc;
	if (start[0])
		rc = stepper_from_images(&st, start, &point, err);
	st.start = start[0] ? &point : NULL;
	st.room_after = streq(signature, SIGNATURE_ROOM);
	for (unsigned i = 0; i < tries && !rc; i++) {
		strbuf_clear(log);
		rc = script_run(script, &st, result, &at, log, err);
		*shown += !rc && result->verdict == STEP_DIFFERENT &&
			  streq(result->signature, signature);
	}
	stepper_drop(&st, &point);
	stepper_close(&st);
	return rc;
}
