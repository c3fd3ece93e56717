/* SPDX-License-Identifier: MIT */
/*
 * workers.c
 *
 * W1: a message is one write() of at most PIPE_BUF bytes, so messages do not mix.
 * W2: `next` is the only thing that is shared; a number is taken by one worker.
 * W3: a worker dies with its parent (PR_SET_PDEATHSIG), and with it its mounts and its disk.
 */
#include "run/workers.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "run/store.h"

enum message_kind { MSG_PROGRESS, MSG_FINDING, MSG_ERROR, MSG_FATAL };

struct message {
	enum message_kind kind;
	struct run_totals totals; /* since the last message */
	union {
		struct worker_finding finding;
		char words[1024];
	};
};
static_assert(sizeof(struct message) <= PIPE_BUF, "W1");

/* In memory that all processes share. */
struct shared {
	_Atomic uint64_t next;
	_Atomic bool stop;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* ---- in the worker ---- */

struct worker {
	const struct workers_opts *opts;
	struct shared *shared;
	unsigned number;
	int out;
	uint64_t at; /* the workload at hand */
	uint64_t cases;
};

static void tell(struct worker *w, const struct message *m)
{
	while (write(w->out, m, sizeof(*m)) < 0 && errno == EINTR)
		;
}

static void tell_words(struct worker *w, enum message_kind kind, const char *words)
{
	struct message m = { .kind = kind };

	snprintf(m.words, sizeof(m.words), "%s", words);
	tell(w, &m);
}

static int on_finding(void *ctx, const struct run_case *c, struct err *err)
{
	struct worker *w = ctx;
	struct message m = { .kind = MSG_FINDING };
	const struct finding *first = &c->findings->v[0];
	auto_free char *dir = NULL;
	auto_free char *cluster = store_cluster(first->kind, c->workload);
	uint64_t number = w->at * 1000 + w->cases++ % 1000;
	int rc = store_case(w->opts->dir, w->number, number, c, &dir, err);

	if (rc == -ENOSPC)
		err_context(err, "what was found cannot be kept; give it a place with --output");
	if (rc)
		return rc;
	m.finding.workload = w->at;
	m.finding.kind = first->kind;
	snprintf(m.finding.cluster, sizeof(m.finding.cluster), "%s", cluster);
	snprintf(m.finding.words, sizeof(m.finding.words), "%s", first->words);
	snprintf(m.finding.dir, sizeof(m.finding.dir), "%s", dir);
	tell(w, &m);
	return 0;
}

static void do_workload(struct worker *w, struct run *run, struct workload *scratch)
{
	struct message m = { .kind = MSG_PROGRESS };
	struct run_reporter reporter = { on_finding, w };
	struct err err = ERR_INIT;
	int rc = supply_get(w->opts->source, w->at, scratch, &err);

	w->cases = 0;
	if (!rc)
		rc = run_workload(run, scratch, &reporter, &m.totals, &err);
	if (rc) {
		err_context(&err, "workload %s", scratch->named ? scratch->name : "without a name");
		tell_words(w, MSG_ERROR, err.msg);
	}
	tell(w, &m);
}

static int worker_main(struct worker *w)
{
	struct run_opts opts = w->opts->run;
	auto_workload scratch;
	struct err err = ERR_INIT;
	struct run *run = NULL;
	uint64_t total = supply_count(w->opts->source);

	workload_init(&scratch);
	opts.target.worker = w->number;
	if (run_open(&opts, &run, &err)) {
		tell_words(w, MSG_FATAL, err.msg);
		return 2;
	}
	while (!atomic_load(&w->shared->stop)) {
		w->at = atomic_fetch_add(&w->shared->next, 1);
		if (w->at >= total)
			break;
		do_workload(w, run, &scratch);
	}
	run_close(run);
	return 0;
}

/* ---- in the parent ---- */

struct slot {
	pid_t pid; /* 0: none */
	int in;
	uint64_t heard_ns;
};

struct parent {
	const struct workers_opts *opts;
	struct workers_result *result;
	struct shared *shared;
	struct slot slot[WORKERS_MAX];
	uint64_t done;
	char fatal[1024];
};

static volatile sig_atomic_t signalled;

static void on_signal(int sig)
{
	signalled = sig;
}

static int start_worker(struct parent *p, unsigned i, struct err *err)
{
	int fds[2];
	pid_t parent = getpid();

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_set(err, -errno, "cannot create a pipe: %m");
	pid_t pid = fork();
	if (pid < 0) {
		int rc = err_set(err, -errno, "cannot start a worker: %m");
		close(fds[0]);
		close(fds[1]);
		return rc;
	}
	if (pid == 0) {
		struct worker w = { p->opts, p->shared, i, fds[1], 0, 0 };

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(2);
		setpgid(0, 0); /* Ctrl-C goes to the parent, which tells us to stop */
		signal(SIGINT, SIG_IGN);
		signal(SIGTERM, SIG_DFL);
		for (unsigned k = 0; k < p->opts->jobs; k++)
			if (p->slot[k].pid && k != i)
				util_close(p->slot[k].in);
		_exit(worker_main(&w));
	}
	close(fds[1]);
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	p->slot[i] = (struct slot){ pid, fds[0], now_ns() };
	return 0;
}

static void add_totals(struct run_totals *to, const struct run_totals *t)
{
	to->workloads += t->workloads;
	to->crash_states += t->crash_states;
	to->unique_states += t->unique_states;
	to->findings += t->findings;
	to->verified += t->verified;
	to->repeated += t->repeated;
	to->left_out += t->left_out;
	to->budget_hit |= t->budget_hit;
}

static void take_message(struct parent *p, const struct message *m)
{
	switch (m->kind) {
	case MSG_PROGRESS:
		add_totals(&p->result->totals, &m->totals);
		p->done++;
		break;
	case MSG_FINDING:
		p->opts->found(p->opts->ctx, &m->finding);
		break;
	case MSG_ERROR:
		p->result->errors++;
		p->opts->failed(p->opts->ctx, m->words);
		break;
	case MSG_FATAL:
		if (!*p->fatal)
			snprintf(p->fatal, sizeof(p->fatal), "%s", m->words);
		break;
	}
}

/* Reads what there is; reaps the worker when its pipe is closed. */
static void listen_to(struct parent *p, unsigned i)
{
	struct slot *s = &p->slot[i];
	struct message m;
	ssize_t n;

	while ((n = read(s->in, &m, sizeof(m))) == (ssize_t)sizeof(m)) {
		s->heard_ns = now_ns();
		take_message(p, &m);
	}
	if (n < 0)
		return; /* nothing more for now */
	int status = 0;
	close(s->in);
	waitpid(s->pid, &status, 0);
	s->pid = 0;
	if (WIFSIGNALED(status) && !atomic_load(&p->shared->stop)) {
		char words[192];

		snprintf(words, sizeof(words), "a worker was killed by signal %d (%s)%s",
			 WTERMSIG(status), strsignal(WTERMSIG(status)),
			 WTERMSIG(status) != SIGKILL ? ""
						     : ", by a person or for lack of memory (see "
						       "dmesg; -j 1 needs less)");
		p->result->errors++;
		p->opts->failed(p->opts->ctx, words);
	}
}

static void watch(struct parent *p, unsigned i, struct err *err)
{
	uint64_t limit_ms = p->opts->silent_ms ? p->opts->silent_ms : 120000;
	struct slot *s = &p->slot[i];

	if (!s->pid || now_ns() - s->heard_ns < limit_ms * 1000000)
		return;
	char words[160];
	snprintf(words, sizeof(words), "a worker did not answer for %llu s; it was killed",
		 (unsigned long long)limit_ms / 1000);
	kill(s->pid, SIGKILL);
	p->result->errors++;
	p->opts->failed(p->opts->ctx, words);
	close(s->in);
	/* Stuck in the kernel it may never end: it is not waited for. */
	waitpid(s->pid, NULL, WNOHANG);
	s->pid = 0;
	if (!atomic_load(&p->shared->stop) && start_worker(p, i, err))
		s->pid = 0;
}

static unsigned running(const struct parent *p)
{
	unsigned n = 0;

	for (unsigned i = 0; i < p->opts->jobs; i++)
		n += p->slot[i].pid != 0;
	return n;
}

static void supervise(struct parent *p, struct err *err)
{
	uint64_t start = now_ns();
	uint64_t total = supply_count(p->opts->source);

	while (running(p)) {
		struct pollfd fds[WORKERS_MAX];

		for (unsigned i = 0; i < p->opts->jobs; i++)
			fds[i] = (struct pollfd){ p->slot[i].pid ? p->slot[i].in : -1, POLLIN, 0 };
		poll(fds, p->opts->jobs, 200);
		for (unsigned i = 0; i < p->opts->jobs; i++) {
			if (p->slot[i].pid && fds[i].revents)
				listen_to(p, i);
			watch(p, i, err);
		}
		if (p->opts->time_ns && now_ns() - start > p->opts->time_ns)
			p->result->stopped = true;
		if (signalled)
			p->result->stopped = p->result->signalled = true;
		if (p->result->stopped)
			atomic_store(&p->shared->stop, true);
		if (p->opts->progress)
			p->opts->progress(p->opts->ctx, &p->result->totals, p->done, total);
	}
}

int workers_run(const struct workers_opts *opts, struct workers_result *out, struct err *err)
{
	struct parent p = { .opts = opts, .result = out };
	struct sigaction act = { .sa_handler = on_signal }, old_int, old_term;
	int rc = 0;

	assert(opts->jobs >= 1 && opts->jobs <= WORKERS_MAX);
	*out = (struct workers_result){ 0 };
	p.shared = mmap(NULL, sizeof(*p.shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	if (p.shared == MAP_FAILED)
		return err_set(err, -errno, "cannot share memory with workers: %m");
	signalled = 0;
	sigaction(SIGINT, &act, &old_int);
	sigaction(SIGTERM, &act, &old_term);
	for (unsigned i = 0; i < opts->jobs && !rc; i++)
		rc = start_worker(&p, i, err);
	if (rc)
		atomic_store(&p.shared->stop, true);
	supervise(&p, err);
	sigaction(SIGINT, &old_int, NULL);
	sigaction(SIGTERM, &old_term, NULL);
	munmap(p.shared, sizeof(*p.shared));
	if (!rc && *p.fatal && !out->totals.workloads)
		rc = err_set(err, -EIO, "%s", p.fatal);
	return rc;
}
