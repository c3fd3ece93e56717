/* SPDX-License-Identifier: MIT */
/*
 * pool.c - the parent of a pool: starts workers, gives out units, reads results, and watches and
 * replaces workers.
 *
 * P1: a frame counts when all of it has come. The rest of a frame whose sender died is dropped.
 * P2: a unit is in one place: a worker's, or the list of units that came back.
 * P3: each unit ends once: with a result, given up, or dropped as the run was stopped.
 * P4: a worker does its units in the order in which it got them; results come in that order.
 * P5: with `ordered`, results are told in the order in which units were given out.
 * P6: all that a worker told is heard before its end is.
 * P7: a worker dies with its parent (PR_SET_PDEATHSIG), and is in a process group of its own:
 *     Ctrl-C goes to the parent. After pool_free() no worker is left, no descriptor, no zombie.
 *
 * The pool uses one thread; callbacks are called from pool_run() only.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/pool_impl.h"
#include "base/proc.h"
#include "base/reap.h"
#include "base/signals.h"

enum {
	TICK_MS = 100,
	END_MS = 2,	   /* the interval at which a worker that is about to end is looked at */
	LINGER_MS = 10000, /* a worker's mounts go after its socket, and before it */
	EARLY_MAX = 1000,  /* at most so many results wait for an earlier one */
	READ_MAX = 1 << 20,
};

/* ---- workers come ---- */

static _Noreturn void be_worker(struct pool *p, unsigned number, int fd, pid_t parent)
{
	struct pool_worker w = {
		.number = number, .fd = fd, .shared = p->shared, .beat = &p->shared->beat[number]
	};

	proc_tie(parent);
	setpgid(0, 0);
	signals_in_child(true);
	for (unsigned i = 0; i < p->opts.jobs; i++)
		if (p->slot[i].pid)
			util_close(p->slot[i].fd);
	_exit(p->opts.work(p->opts.ctx, &w));
}

static int fork_worker(struct pool *p, struct pool_slot *s)
{
	unsigned number = (unsigned)(s - p->slot);
	pid_t parent = getpid();
	int pair[2];

	if (fault_fails("pool.socket") || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return err_set(&p->why, -errno, "cannot make a pair of sockets: %m");
	pid_t pid = fault_fails("pool.fork") ? -1 : fork();
	if (!pid) {
		util_close(pair[0]);
		be_worker(p, number, pair[1], parent);
	}
	int rc = pid > 0 ? 0 : -errno;
	util_close(pair[1]);
	if (rc) {
		util_close(pair[0]);
		errno = -rc;
		return err_set(&p->why, rc, "cannot start a process: %m");
	}
	setpgid(pid, pid); /* in parent and child: either may run first */
	s->pid = pid;
	s->fd = pair[0];
	return 0;
}

/* Starts a worker in a place, which may have units. On failure the place is used no more. */
static void start(struct pool *p, struct pool_slot *s)
{
	struct pool_beat *beat = &p->shared->beat[s - p->slot];

	assert(!s->pid && !s->in.len && !s->out.len); /* P7 */
	s->closed = s->eof = s->wrong = s->deaf = s->did = false;
	beat->at[0] = 0;
	atomic_store(&beat->seq, POOL_NONE);
	atomic_store(&beat->unit, POOL_NONE);
	atomic_store(&beat->step, POOL_NONE);
	atomic_store(&beat->ready, false);
	patience_renew(&s->patience);
	int rc = fork_worker(p, s);
	s->off = rc != 0;
	for (unsigned i = 0; !rc && i < s->n; i++)
		pool_send_job(s, &s->job[i]);
}

/* ---- workers go ---- */

static void give_back(struct pool *p, struct pool_slot *s)
{
	for (unsigned i = 0; i < s->n; i++) {
		vec_push(&p->back, s->job[i]);
		s->job[i] = (struct pool_job){ 0 };
	}
	s->turns_over += s->n;
	s->n = 0;
	assert(s->turns_over == s->turns); /* P2 */
}

static void drop_jobs(struct pool *p, struct pool_slot *s)
{
	give_back(p, s);
	for (size_t i = 0; i < p->back.n; i++)
		pool_job_release(&p->back.v[i]);
	p->over += p->back.n;
	vec_clear(&p->back);
	assert(p->over <= p->given); /* P3 */
}

/* Clears the place of a process that is gone, or that cannot be killed. */
static void forget(struct pool_slot *s)
{
	util_close(steal_fd(&s->fd));
	strbuf_release(&s->in);
	strbuf_release(&s->out);
	s->pid = 0;
}

/* True if a worker ended as it should; another worker then goes on with its units. */
static bool ended_well(const struct pool *p, const struct pool_slot *s, const struct pool_end *e)
{
	return e->how == POOL_EXITED && !e->code && (s->did || s->closed || p->stopping);
}

static void note_times(struct pool_slot *s, struct pool_end *e)
{
	struct pool_job *j = &s->job[0];

	s->deaths++;
	e->deaths = s->deaths;
	if (!e->open)
		return;
	j->times = j->step == e->step ? j->times + 1 : 1;
	j->step = e->step;
	e->times = j->times;
}

/* Handles the end of a worker, whose messages were heard (P6). */
static void take_end(struct pool *p, struct pool_slot *s, struct pool_end *e)
{
	struct pool_beat *beat = &p->shared->beat[s - p->slot];
	enum pool_then then = POOL_AGAIN;

	assert(s->heard || s->wrong); /* P6 */
	e->worker = (unsigned)(s - p->slot);
	e->unit = atomic_load(&beat->unit);
	e->step = atomic_load(&beat->step);
	e->open = s->n && atomic_load(&beat->seq) == s->job[0].seq;
	e->at = beat->at;
	beat->at[POOL_AT_MAX - 1] = 0;
	forget(s);
	if (!ended_well(p, s, e)) {
		note_times(s, e);
		then = p->opts.ended(p->opts.ctx, e);
	}
	if (p->stopping || p->killing) {
		drop_jobs(p, s);
		return;
	}
	if (then != POOL_AGAIN && e->open)
		pool_finish(p, s, NULL, 0, e);
	s->off |= then == POOL_DROP;
	if (!s->off && s->n && !p->killing)
		start(p, s);
	if (s->off)
		give_back(p, s);
}

static void end_by(struct pool *p, struct pool_slot *s, enum pool_how how)
{
	struct pool_end e = { .how = how, .silence = patience_silence(&s->patience) };
	auto_strbuf kernel = STRBUF_INIT, who = STRBUF_INIT;
	int status;

	if (how == POOL_HUNG) {
		e.stopped = reap_stopped(s->pid, &who) ? strbuf_str(&who) : NULL;
		reap_describe(s->pid, &kernel);
	}
	e.stuck = !reap_tree(s->pid, &status);
	if (e.stuck) {
		strbuf_adds(&kernel, "it was killed, and did not end:\n");
		reap_describe(s->pid, &kernel);
	}
	e.kernel = strbuf_str(&kernel);
	s->heard = false;
	pool_hear(p, s, SIZE_MAX);
	take_end(p, s, &e);
}

static bool is_over(struct pool *p, struct pool_slot *s)
{
	struct pool_beat *beat = &p->shared->beat[s - p->slot];
	uint64_t beats = atomic_load(&beat->beats), slow = atomic_load(&beat->slow);
	uint64_t limit_ms = p->opts.patience_ms;

	if (p->opts.beats && s->n)
		beats += p->opts.beats(p->opts.ctx, s->job[0].unit);
	if ((!s->n && !s->closed) || beats != s->beats || (slow != s->slow && !p->stop_ms)) {
		s->beats = beats;
		s->slow = slow;
		patience_renew(&s->patience);
	}
	/* The clock alone counts here: the user does not want to wait. */
	if (p->stop_ms)
		return util_now_ns() - s->patience.since_ns >=
		       min(limit_ms ? limit_ms : UINT64_MAX, p->stop_ms) * 1000000;
	return limit_ms && patience_ends(&s->patience, s->pid, limit_ms * 1000000);
}

/* Reads a worker's messages, and checks whether it has ended or hangs. */
static void look_at(struct pool *p, struct pool_slot *s)
{
	int status = 0;
	pid_t got = waitpid(s->pid, &status, WNOHANG);

	s->heard = false; /* more may have come since */

	if (got == s->pid || (got < 0 && errno == ECHILD)) {
		struct pool_end e = { .how = WIFSIGNALED(status) ? POOL_KILLED : POOL_EXITED,
				      .code = WIFSIGNALED(status) ? WTERMSIG(status)
								  : WEXITSTATUS(status) };

		pool_hear(p, s, SIZE_MAX);
		if (s->wrong)
			e.how = POOL_NONSENSE;
		take_end(p, s, &e);
		return;
	}
	pool_send(s);
	pool_hear(p, s, READ_MAX);
	if (s->wrong)
		end_by(p, s, POOL_NONSENSE);
	else if (s->deaf)
		end_by(p, s, POOL_DEAF);
	else if (s->eof && util_now_ns() - s->eof_ns > LINGER_MS * 1000000ULL)
		end_by(p, s, POOL_LINGERED);
	else if (!s->eof && is_over(p, s))
		end_by(p, s, POOL_HUNG);
}

/* ---- all of it ---- */

static bool running(const struct pool *p)
{
	return any_of(i, p->opts.jobs, p->slot[i].pid);
}

static bool busy(const struct pool *p)
{
	return any_of(i, p->opts.jobs, p->slot[i].n);
}

/* The worker with the fewest units; NULL if all have enough. */
static struct pool_slot *idlest(struct pool *p)
{
	struct pool_slot *best = NULL;

	for (unsigned i = 0; i < p->opts.jobs; i++) {
		struct pool_slot *s = &p->slot[i];

		if (!s->off && !(s->pid && (s->closed || s->eof)) && s->n < p->opts.depth &&
		    (!best || s->n < best->n))
			best = s;
	}
	return best;
}

static bool next_job(struct pool *p, struct pool_job *j)
{
	if (p->back.n) {
		*j = p->back.v[0];
		vec_remove(&p->back, 0, 1);
		return true;
	}
	p->more = p->more && p->opts.next(p->opts.ctx, &j->unit, &j->data);
	if (p->more)
		j->seq = p->given++;
	return p->more;
}

static void give_out(struct pool *p)
{
	struct pool_slot *s;

	/* Results that wait for one slow unit must not fill the memory. */
	while (!p->stopping && !p->killing && (p->early.n < EARLY_MAX || p->back.n) &&
	       (s = idlest(p))) {
		struct pool_job j = { 0 };

		if (!next_job(p, &j)) {
			pool_job_release(&j);
			break;
		}
		if (!s->n)
			patience_renew(&s->patience);
		assert(s->n < POOL_DEPTH_MAX && j.seq < p->given); /* P2 */
		j.turn = s->turns++;
		s->job[s->n++] = j;
		if (s->pid)
			pool_send_job(s, &j);
		else
			start(p, s);
		if (s->off)
			give_back(p, s);
	}
	for (unsigned i = 0; i < p->opts.jobs; i++)
		if (p->slot[i].pid && (p->stopping || (!p->opts.keep && !p->slot[i].n)))
			pool_tell_end(&p->slot[i]);
}

static void watch_ready(struct pool *p)
{
	bool all = atomic_load(&p->shared->begun) && !p->ready_ns;

	for (unsigned i = 0; all && i < p->opts.jobs; i++)
		all = !p->slot[i].pid || atomic_load(&p->shared->beat[i].ready);
	if (all)
		p->ready_ns = util_now_ns();
}

static void listen_all(struct pool *p)
{
	struct pollfd fds[POOL_JOBS_MAX];
	int wait_ms = TICK_MS;

	for (unsigned i = 0; i < p->opts.jobs; i++) {
		const struct pool_slot *s = &p->slot[i];
		short events = (short)(POLLIN | (s->out.len ? POLLOUT : 0));

		fds[i] = (struct pollfd){ s->pid && !s->eof ? s->fd : -1, events, 0 };
		wait_ms = s->pid && s->eof ? END_MS : wait_ms;
	}
	poll(fds, p->opts.jobs, wait_ms);
	/* Reads the workers that have sent something, and at each tick all of them. */
	bool tick = util_now_ns() - p->looked_ns >= TICK_MS * 1000000ULL;
	if (tick)
		p->looked_ns = util_now_ns();
	for (unsigned i = 0; i < p->opts.jobs; i++)
		if (p->slot[i].pid && (tick || p->slot[i].eof || fds[i].revents))
			look_at(p, &p->slot[i]);
}

static void kill_all(struct pool *p)
{
	int status;

	p->killing = true;
	for (unsigned i = 0; i < p->opts.jobs; i++)
		if (p->slot[i].pid)
			reap_kill(p->slot[i].pid);
	for (unsigned i = 0; i < p->opts.jobs; i++) {
		struct pool_slot *s = &p->slot[i];

		if (s->pid) {
			reap_wait(s->pid, &status);
			s->heard = false;
			pool_hear(p, s, SIZE_MAX);
			assert(s->heard || s->wrong); /* P6 */
			forget(s);
		}
		drop_jobs(p, s);
	}
}

int pool_new(const struct pool_opts *opts, struct pool **out, struct err *err)
{
	struct sigaction old;
	struct pool *p = xcalloc(1, sizeof(*p));

	p->opts = *opts;
	p->opts.jobs = min(max(opts->jobs, 1u), (unsigned)POOL_JOBS_MAX);
	p->opts.depth = min(max(opts->depth, 1u), (unsigned)POOL_DEPTH_MAX);
	for (unsigned i = 0; i < POOL_JOBS_MAX; i++)
		p->slot[i].fd = -1;
	p->shared = pool_share(sizeof(*p->shared), err);
	if (!p->shared) {
		free(p);
		return err->code;
	}
	/*
	 * If the program that starts us has left SIGCHLD ignored, waitpid() returns no status.
	 */
	if (sigaction(SIGCHLD, NULL, &old) == 0 && old.sa_handler == SIG_IGN)
		signal(SIGCHLD, SIG_DFL);
	*out = p;
	return 0;
}

static void begin(struct pool *p)
{
	p->rc = 0;
	p->why = (struct err)ERR_INIT;
	p->more = true;
	p->stopping = p->killing = false;
	p->stop_ms = 0;
	atomic_store(&p->shared->stop, false);
	for (unsigned i = 0; i < p->opts.jobs; i++) {
		p->slot[i].off = false;
		p->slot[i].deaths = 0;
	}
}

int pool_run(struct pool *p, struct err *err)
{
	begin(p);
	for (;;) {
		watch_ready(p);
		if (p->opts.tick)
			p->opts.tick(p->opts.ctx);
		give_out(p);
		if (p->killing || !running(p) || (p->opts.keep && !p->more && !busy(p)))
			break;
		listen_all(p);
	}
	if (p->killing)
		kill_all(p);
	pool_tell_early(p, true);
	assert(p->killing || p->opts.keep || !running(p)); /* P7 */
	bool left = p->back.n;
	for (unsigned i = 0; i < p->opts.jobs; i++)
		drop_jobs(p, &p->slot[i]);
	assert(p->over == p->given && !p->early.n); /* P2, P3 */
	/* A worker that could not be started matters only if others have not done the work. */
	if (!p->rc && left && p->why.code)
		return err_set(err, p->why.code, "%s", p->why.msg);
	return p->rc;
}

void pool_stop(struct pool *p, uint64_t limit_ms)
{
	p->stopping = true;
	p->stop_ms = limit_ms;
	atomic_store(&p->shared->stop, true);
}

void pool_kill(struct pool *p)
{
	p->killing = true;
}

void pool_free(struct pool *p)
{
	if (!p)
		return;
	for (unsigned i = 0; i < p->opts.jobs; i++)
		if (p->slot[i].pid)
			pool_tell_end(&p->slot[i]);
	/* Workers without units end by themselves; a worker that does not is killed. */
	for (unsigned i = 0; i < p->opts.jobs; i++) {
		struct pool_slot *s = &p->slot[i];
		int status;

		if (s->pid && !reap_wait(s->pid, &status))
			reap_tree(s->pid, &status);
		forget(s);
		assert(s->fd == -1 && !s->n); /* P7, P2 */
	}
	vec_release(&p->back);
	vec_release(&p->early);
	pool_unshare(p->shared, sizeof(*p->shared));
	free(p);
}

bool pool_has_begun(const struct pool *p)
{
	return atomic_load(&p->shared->begun);
}

uint64_t pool_ready_ns(const struct pool *p)
{
	return p->ready_ns ? util_now_ns() - p->ready_ns : 0;
}

void pool_end_words(const struct pool_end *e, struct strbuf *out)
{
	if (e->how == POOL_KILLED)
		strbuf_addf(out, "was ended by signal %d (%s)", e->code, strsignal(e->code));
	else if (e->how == POOL_EXITED)
		strbuf_addf(out, "ended with status %d", e->code);
	else if (e->how == POOL_HUNG)
		strbuf_addf(out, "did not answer for %g s", e->silence);
	else
		strbuf_adds(out, e->how == POOL_LINGERED ? "did not end"
				 : e->how == POOL_DEAF	 ? "could not be talked to"
							 : "said nonsense");
}
