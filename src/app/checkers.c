/* SPDX-License-Identifier: MIT */
/*
 * checkers.c - see checkers.h.
 *
 * Parent and worker speak over a pair of sockets: a job is a head, the survivors, and the units of
 * those that are torn; an answer is a head and a text. A worker has at most DEPTH jobs, so that
 * its answers fit into the socket while the parent writes the next job.
 *
 * K1: a worker does one job after the other, in order; answers come in that order.
 * K2: an answer that has come is told, whatever ends the run.
 * K3: a worker ends when its socket is closed, and is killed by the kernel if the parent dies.
 */
#include "app/checkers.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"

enum {
	DEPTH = 2,
	JOBS_MAX = 256,
	DEATHS_MAX = 3,	    /* of one worker in a row, without an answer between them */
	SILENCE_MS = 60000, /* beyond the time of the checks that it has */
	POLL_MS = 200,
	EARLY_MAX = 1000, /* checks that ended before an earlier one */
};

struct job_head {
	uint64_t point, acked, n, words;
};

struct job_survivor {
	uint32_t change, torn;
};

struct answer_head {
	enum check_end end;
	int exit_code, signal;
	bool left, filled, cut, overlay, fatal;
	uint64_t took_ns, unlike;
	size_t len;
};

/* ---- the worker ---- */

struct worker {
	struct history *h;
	const struct checkers_opts *opts;
	struct check_opts check;
	struct check_keeper keeper;
	struct place *place;
	int fd;
	int helper;	     /* who starts the checks; -1: we */
	struct strbuf acked; /* the lines of the first `n_acked` */
	size_t n_acked;
	struct survivors v;
	struct check_result r;
};

static int read_job(struct worker *w, struct job_head *head)
{
	ssize_t got = io_read_full(w->fd, head, sizeof(*head));
	struct job_survivor s;
	uint64_t at = 0;

	if (got != (ssize_t)sizeof(*head))
		return -EPIPE;
	vec_clear(&w->v.v);
	vec_clear(&w->v.units);
	auto_free struct job_survivor *list = xmalloc((head->n + 1) * sizeof(*list));
	vec_reserve(&w->v.units, head->words);
	if (io_read_full(w->fd, list, head->n * sizeof(*list)) < 0 ||
	    io_read_full(w->fd, w->v.units.v, head->words * sizeof(uint64_t)) < 0)
		return -EPIPE;
	w->v.units.n = head->words;
	for (uint64_t i = 0; i < head->n; i++) {
		s = list[i];
		vec_push(&w->v.v, (struct survivor){ s.change, s.torn ? w->v.units.v + at : NULL });
		at += s.torn ? (w->h->changes.v[s.change].units + 63) / 64 : 0;
	}
	return 0;
}

static void lines_of(struct worker *w, uint64_t n)
{
	if (n < w->n_acked) {
		strbuf_clear(&w->acked);
		w->n_acked = 0;
	}
	for (; w->n_acked < n; w->n_acked++)
		if (w->n_acked < w->opts->n_acks)
			strbuf_addf(&w->acked, "%s\n", w->opts->acks[w->n_acked]);
}

static int do_job(struct worker *w, const struct job_head *head, struct err *err)
{
	struct reffs_state *tree = history_build(w->h, head->point, w->v.v.v, w->v.v.n);
	int rc = place_put(w->place, tree, err);

	reffs_state_unref(tree);
	lines_of(w, head->acked);
	if (!rc && w->helper >= 0)
		rc = launch_check(w->helper, head->point, strbuf_str(&w->acked), w->acked.len,
				  &w->r, err);
	else if (!rc)
		rc = check_run(&w->check, head->point, strbuf_str(&w->acked), w->acked.len, &w->r,
			       err);
	if (!rc)
		w->r.filled = place_is_full(w->place);
	int cleared = place_clear(w->place, err);
	return rc ? rc : cleared;
}

static int answer(struct worker *w, const char *wrong, bool fatal)
{
	struct answer_head head = { .end = wrong ? CHECK_ERROR : w->r.end,
				    .exit_code = w->r.exit_code,
				    .signal = w->r.signal,
				    .left = w->r.left_processes,
				    .filled = w->r.filled,
				    .cut = w->r.output_cut,
				    .took_ns = w->r.took_ns,
				    .fatal = fatal,
				    .overlay = w->place && place_is_overlay(w->place),
				    .unlike = w->place ? place_unlike(w->place) : 0,
				    .len = wrong ? strlen(wrong) : w->r.output.len };
	int rc = io_write_full(w->fd, &head, sizeof(head));

	return rc ? rc : io_write_full(w->fd, wrong ? wrong : strbuf_str(&w->r.output), head.len);
}

static void work(struct worker *w, pid_t parent)
{
	struct err err = ERR_INIT;
	struct job_head head;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	signal(SIGINT, SIG_IGN); /* a terminal sends it to all; the parent decides */
	signal(SIGPIPE, SIG_IGN);
	if (place_new(&w->opts->place, &w->place, &err)) {
		(void)!answer(w, err.msg, true);
		_exit(1);
	}
	w->check = w->opts->check;
	w->check.dir = w->opts->place.at;
	w->check.notes = place_notes(w->place);
	w->check.shared = place_is_shared(w->place);
	w->check.keeper = &w->keeper;
	if (w->helper >= 0 && launch_enter(w->helper, &w->check))
		util_close(steal_fd(&w->helper)); /* slower, but it does */
	while (!read_job(w, &head)) {
		err = (struct err)ERR_INIT;
		int rc = do_job(w, &head, &err);

		if (answer(w, rc ? err.msg : NULL, false))
			break;
		if (rc)
			break; /* its place may not be clean: a new one is better */
	}
	check_keeper_end(&w->keeper);
	_exit(0);
}

/* ---- the parent ---- */

struct slot {
	pid_t pid; /* 0: none */
	int fd;
	unsigned n; /* jobs it has */
	struct app_state state[DEPTH];
	uint64_t order[DEPTH]; /* of these: which one that was given out it is */
	uint64_t since_ms;     /* when it was last heard, or got its first job */
	unsigned deaths;
};

struct checkers {
	struct history *h;
	const struct checkers_opts *opts;
	struct slot slot[JOBS_MAX];
	unsigned jobs;
	struct checkers_stats *stats;
	struct err *err;
	uint64_t patience_ms;
	struct strbuf text;
	uint64_t given, told; /* states */
	bool ending;	      /* no worker is started any more */
	/* Checks that ended before others that were given out earlier. */
	struct vec_of(struct early {
		uint64_t order;
		struct app_state state;
		struct check_result result;
	}) early;
};

static uint64_t now_ms(void)
{
	return util_now_ns() / 1000000;
}

/* A socket that another worker holds as well would not be closed when the parent closes it (K3). */
static void close_others(int one, int other)
{
	unsigned low = (unsigned)(other < 0 ? one : min(one, other));
	unsigned high = (unsigned)max(one, other);

	if (low > 3)
		close_range(3, low - 1, 0);
	if (high > low + 1)
		close_range(low + 1, high - 1, 0);
	close_range(high + 1, ~0U, 0);
}

static int start_worker(struct checkers *c, struct slot *s)
{
	int pair[2];
	pid_t parent = getpid();

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return err_set(c->err, -errno, "cannot make a pair of sockets: %m");
	auto_fd helper = c->opts->launcher ? launcher_open(c->opts->launcher) : -1;
	pid_t pid = fork();
	if (pid < 0) {
		util_close(pair[0]);
		util_close(pair[1]);
		return err_set(c->err, -errno, "cannot start a process: %m");
	}
	if (!pid) {
		struct worker w = { .h = c->h, .opts = c->opts, .fd = pair[1], .helper = helper };

		close_others(pair[1], helper);
		work(&w, parent);
	}
	util_close(pair[1]);
	s->pid = pid;
	s->fd = pair[0];
	s->since_ms = now_ms();
	return 0;
}

static void end_worker(struct slot *s, bool kill_it)
{
	if (!s->pid)
		return;
	if (kill_it)
		kill(s->pid, SIGKILL);
	util_close(steal_fd(&s->fd));
	while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
		;
	s->pid = 0;
}

static int send_job(struct slot *s, const struct history *h, const struct app_state *a)
{
	const struct survivors *v = &a->survivors;
	struct job_head head = { a->point, a->acked, v->v.n, 0 };
	auto_strbuf buf = STRBUF_INIT;

	strbuf_add(&buf, &head, sizeof(head));
	for (size_t i = 0; i < v->v.n; i++) {
		struct job_survivor j = { v->v.v[i].change, v->v.v[i].units != NULL };

		strbuf_add(&buf, &j, sizeof(j));
	}
	for (size_t i = 0; i < v->v.n; i++)
		if (v->v.v[i].units) {
			uint64_t n = (h->changes.v[v->v.v[i].change].units + 63) / 64;

			strbuf_add(&buf, v->v.v[i].units, n * sizeof(uint64_t));
			head.words += n;
		}
	memcpy(buf.buf, &head, sizeof(head));
	/* If it is dead, that is found out where answers are read. */
	for (size_t done = 0; done < buf.len;) {
		ssize_t n = send(s->fd, buf.buf + done, buf.len - done, MSG_NOSIGNAL);

		if (n < 0 && errno != EINTR)
			return -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static void count(struct checkers *c, const struct check_result *r)
{
	struct checkers_stats *t = c->stats;

	if (r->end == CHECK_ERROR) {
		t->errors++;
		return;
	}
	t->checked++;
	t->passed += r->end == CHECK_PASSED;
	t->failed += r->end != CHECK_PASSED;
	t->hung += r->end == CHECK_HUNG;
	t->filled += r->filled;
	t->left += r->left_processes;
}

static int tell(struct checkers *c, struct early *e)
{
	int rc = c->opts->done ? c->opts->done(c->opts->ctx, &e->state, &e->result) : 0;

	c->told = e->order + 1;
	app_state_release(&e->state);
	check_result_release(&e->result);
	return rc;
}

/* The first of those that wait, which are few: a check takes about as long as another. */
static size_t first_early(const struct checkers *c)
{
	size_t first = 0;

	for (size_t i = 1; i < c->early.n; i++)
		if (c->early.v[i].order < c->early.v[first].order)
			first = i;
	return first;
}

/* Tells what comes next, in the order in which states were given out; or all that has come. */
static int tell_early(struct checkers *c, bool all)
{
	int rc = 0;

	while ((!rc || all) && c->early.n) {
		size_t i = first_early(c);
		struct early e = c->early.v[i];

		if (!all && e.order != c->told)
			break;
		c->early.v[i] = vec_last(&c->early);
		c->early.n--;
		int told = tell(c, &e);
		rc = rc ? rc : told;
	}
	return rc;
}

/* The oldest job of a worker is done; takes the result. */
static int report(struct checkers *c, struct slot *s, struct check_result *r)
{
	struct early e = { s->order[0], s->state[0], *r };

	*r = (struct check_result){ 0 };
	count(c, &e.result);
	s->n--;
	memmove(&s->state[0], &s->state[1], (DEPTH - 1) * sizeof(s->state[0]));
	memmove(&s->order[0], &s->order[1], (DEPTH - 1) * sizeof(s->order[0]));
	s->state[DEPTH - 1] = (struct app_state){ 0 };
	vec_push(&c->early, e);
	return tell_early(c, false);
}

/* Somebody who goes on with the jobs of a worker that has ended. */
static int start_successor(struct checkers *c, struct slot *s)
{
	int rc = c->ending ? 0 : start_worker(c, s);

	for (unsigned i = 0; !rc && s->pid && i < s->n; i++)
		(void)send_job(s, c->h, &s->state[i]);
	return rc;
}

/* A worker is gone: its oldest job is to blame, the others go to its successor. */
static int replace(struct checkers *c, struct slot *s, const char *why)
{
	int rc = 0;

	end_worker(s, true);
	c->stats->replaced++;
	if (++s->deaths >= DEATHS_MAX)
		return err_set(c->err, -ECHILD, "a process that checks crash states %s %d times",
			       why, DEATHS_MAX);
	if (s->n) {
		struct check_result r = { .end = CHECK_ERROR };

		strbuf_addf(&r.output, "the process that checked it %s", why);
		rc = report(c, s, &r);
		check_result_release(&r);
	}
	return rc ? rc : start_successor(c, s);
}

static int hear(struct checkers *c, struct slot *s)
{
	struct answer_head head;

	if (io_read_full(s->fd, &head, sizeof(head)) != (ssize_t)sizeof(head))
		return replace(c, s, "died");
	if (head.len > CHECK_OUTPUT_MAX)
		return replace(c, s, "said nonsense");
	auto_free char *text = xcalloc(1, head.len + 1);
	if (io_read_full(s->fd, text, head.len) != (ssize_t)head.len)
		return replace(c, s, "died");
	if (head.fatal)
		return err_set(c->err, -ECHILD, "%s", text);
	if (!s->n)
		return replace(c, s, "said nonsense");
	struct check_result r = { .end = head.end,
				  .exit_code = head.exit_code,
				  .signal = head.signal,
				  .left_processes = head.left,
				  .filled = head.filled,
				  .output_cut = head.cut,
				  .took_ns = head.took_ns };
	strbuf_add(&r.output, text, head.len);
	s->since_ms = now_ms();
	s->deaths = 0;
	c->stats->overlay |= head.overlay;
	c->stats->unlike = max(c->stats->unlike, head.unlike);
	int rc = report(c, s, &r);
	check_result_release(&r);
	if (!rc && head.end == CHECK_ERROR) { /* it ends by itself */
		end_worker(s, false);
		rc = start_successor(c, s);
	}
	return rc;
}

static bool busy(const struct checkers *c)
{
	for (unsigned i = 0; i < c->jobs; i++)
		if (c->slot[i].n)
			return true;
	return false;
}

static int listen_all(struct checkers *c, int wait_ms)
{
	struct pollfd fds[JOBS_MAX];
	int rc = 0;

	for (unsigned i = 0; i < c->jobs; i++)
		fds[i] = (struct pollfd){ c->slot[i].pid ? c->slot[i].fd : -1, POLLIN, 0 };
	if (poll(fds, c->jobs, wait_ms) < 0)
		return errno == EINTR ? 0
				      : err_set(c->err, -errno, "cannot wait for processes: %m");
	for (unsigned i = 0; i < c->jobs && (!rc || c->ending); i++) {
		struct slot *s = &c->slot[i];
		int heard = 0;

		if (fds[i].revents)
			heard = hear(c, s);
		else if (s->n && now_ms() > s->since_ms + c->patience_ms)
			heard = replace(c, s, "hung");
		rc = rc ? rc : heard;
	}
	return rc;
}

/*
 * If the run was stopped, or a worker cannot be made to work: the checks of all workers that had
 * ended by then count (K2); the others are killed. The first of what went wrong is the result.
 */
static int hear_the_rest(struct checkers *c, int rc)
{
	c->ending = true;
	for (unsigned i = 0; busy(c) && i < DEPTH; i++) {
		int heard = listen_all(c, 0);

		rc = rc ? rc : heard;
	}
	int told = tell_early(c, true);
	c->ending = false;
	return rc ? rc : told;
}

/* Who has the fewest jobs; NULL if all have enough. */
static struct slot *idlest(struct checkers *c)
{
	struct slot *best = NULL;

	for (unsigned i = 0; i < c->jobs; i++)
		if (c->slot[i].n < DEPTH && (!best || c->slot[i].n < best->n))
			best = &c->slot[i];
	return best;
}

/* Where states come from: false at the end. */
typedef bool next_fn(void *ctx, struct app_state *out);

static int give_out(struct checkers *c, next_fn *next, void *from, bool *more)
{
	struct slot *s;

	/* What waits for one check that takes long shall not fill the memory. */
	while (*more && c->early.n < EARLY_MAX && (s = idlest(c))) {
		struct app_state a = { 0 };

		*more = next(from, &a);
		if (!*more)
			break;
		if (!s->pid) {
			int rc = start_worker(c, s);
			if (rc) {
				app_state_release(&a);
				return rc;
			}
		}
		if (!s->n)
			s->since_ms = now_ms();
		s->order[s->n] = c->given++;
		s->state[s->n++] = a;
		(void)send_job(s, c->h, &a);
	}
	return 0;
}

static struct checkers *checkers_make(struct history *h, const struct checkers_opts *opts,
				      unsigned jobs)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct checkers *c = xcalloc(1, sizeof(*c));
	uint64_t each = opts->check.timeout_ms ? opts->check.timeout_ms : 10000;

	c->h = h;
	c->opts = opts;
	c->patience_ms = each + SILENCE_MS;
	c->jobs = min(jobs ? jobs : (unsigned)max(cpus, 1L), (unsigned)JOBS_MAX);
	for (unsigned i = 0; i < c->jobs; i++)
		c->slot[i].fd = -1;
	return c;
}

static int go_on(struct checkers *c, next_fn *next, void *from, struct checkers_stats *stats,
		 struct err *err)
{
	const struct checkers_opts *opts = c->opts;
	bool more = true;
	int rc = 0;

	*stats = (struct checkers_stats){ 0 };
	c->stats = stats;
	c->err = err;
	while (!rc && (more || busy(c)) && !(opts->stop && opts->stop(opts->ctx))) {
		rc = give_out(c, next, from, &more);
		if (!rc && busy(c))
			rc = listen_all(c, POLL_MS);
	}
	return hear_the_rest(c, rc);
}

/* Those that have nothing to do end by themselves. */
static void end_all(struct checkers *c)
{
	for (size_t i = 0; i < c->early.n; i++) {
		app_state_release(&c->early.v[i].state);
		check_result_release(&c->early.v[i].result);
	}
	vec_release(&c->early);
	c->told = c->given;
	for (unsigned i = 0; i < c->jobs; i++) {
		end_worker(&c->slot[i], c->slot[i].n > 0);
		for (unsigned j = 0; j < c->slot[i].n; j++)
			app_state_release(&c->slot[i].state[j]);
		c->slot[i].n = 0;
		c->slot[i].deaths = 0;
	}
}

static bool next_of_states(void *ctx, struct app_state *out)
{
	return states_next(ctx, out);
}

int checkers_run(struct history *h, struct states *s, const struct checkers_opts *opts,
		 struct checkers_stats *stats, struct err *err)
{
	struct checkers *c = checkers_make(h, opts, opts->jobs);
	int rc = go_on(c, next_of_states, s, stats, err);

	end_all(c);
	free(c);
	return rc;
}

/* ---- one after the other ---- */

struct checker {
	struct checkers_opts opts;
	struct checkers *c;
	bool (*stop)(void *ctx); /* as it was given, with its own context */
	void *stop_ctx;
};

struct one {
	const struct checker *k;
	const char *id;
	bool given, told;
	struct check_result *r;
};

static bool next_of_one(void *ctx, struct app_state *out)
{
	struct one *o = ctx;

	if (o->given || states_replay(o->k->c->h, o->id, out, NULL))
		return false;
	o->given = true;
	return true;
}

static int keep_result(void *ctx, const struct app_state *s, const struct check_result *r)
{
	struct one *o = ctx;

	(void)s;
	check_result_release(o->r);
	*o->r = *r;
	o->r->output = (struct strbuf)STRBUF_INIT;
	strbuf_add(&o->r->output, strbuf_str(&r->output), r->output.len);
	o->told = true;
	return 0;
}

static bool stop_one(void *ctx)
{
	const struct one *o = ctx;

	return o->k->stop && o->k->stop(o->k->stop_ctx);
}

struct checker *checker_new(struct history *h, const struct checkers_opts *opts)
{
	struct checker *k = xcalloc(1, sizeof(*k));

	k->opts = *opts;
	k->opts.done = keep_result;
	k->opts.stop = stop_one;
	k->stop = opts->stop;
	k->stop_ctx = opts->ctx;
	k->c = checkers_make(h, &k->opts, 1);
	return k;
}

void checker_free(struct checker *k)
{
	if (!k)
		return;
	end_all(k->c);
	free(k->c);
	free(k);
}

int checker_ask(struct checker *k, const char *id, struct check_result *r, struct err *err)
{
	struct one o = { .k = k, .id = id, .r = r };
	struct checkers_stats stats;

	k->opts.ctx = &o;
	int rc = go_on(k->c, next_of_one, &o, &stats, err);
	if (!rc && !o.told && stop_one(&o))
		rc = -EINTR;
	if (rc)
		end_all(k->c);
	if (!rc && !o.given)
		rc = err_set(err, -EINVAL, "the crash state %s is not one of this run", id);
	return rc;
}

int checkers_one(struct history *h, const struct app_state *s, const struct checkers_opts *opts,
		 struct check_result *r, struct err *err)
{
	struct checker *k = checker_new(h, opts);
	int rc = checker_ask(k, s->id, r, err);

	checker_free(k);
	return rc;
}
