/* SPDX-License-Identifier: MIT */
/*
 * workers.c
 *
 * W1: a message is one write() of at most PIPE_BUF bytes, so messages do not mix.
 * W2: a number is taken by one worker; the parent alone writes down that it is done.
 * W3: a worker dies with its parent (PR_SET_PDEATHSIG), and with it its mounts and its disk.
 * W4: what a worker notes about itself is read by the parent only when it has stopped to move.
 */
#include "run/workers.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/patience.h"
#include "base/signals.h"
#include "base/reap.h"
#include "run/store.h"

enum {
	KEPT_SLOTS = 1 << 14, /* clusters that are counted; more are not kept */
	STOP_MS = 10000,      /* how long a worker may be silent once all shall stop */
	DEATHS_MAX = 3,	      /* of a worker in a row, without a workload done between them */
	CLEAN_MS = 5000,
};

/* How a worker ends, but for a signal. */
enum worker_end {
	WORKER_DONE,
	WORKER_NOT_BEGUN = 2, /* it told MSG_FATAL */
	WORKER_LOST = 3,      /* its target is good for nothing more; it told MSG_ERROR */
};

enum message_kind { MSG_DONE, MSG_FINDING, MSG_ERROR, MSG_FATAL };

struct message {
	enum message_kind kind;
	bool failed;		  /* MSG_DONE: it could not be done */
	uint64_t number;	  /* MSG_DONE: of the workload */
	uint64_t suppressed;	  /* MSG_DONE */
	struct run_totals totals; /* MSG_DONE */
	union {
		struct worker_finding finding;
		char words[1024];
	};
};
static_assert(sizeof(struct message) <= PIPE_BUF, "W1");

/* What a worker is doing. */
struct note {
	_Atomic uint64_t beats;
	_Atomic uint64_t starts;   /* the same while a guest starts */
	_Atomic bool up;	   /* its target is ready */
	_Atomic uint64_t workload; /* its number and one; 0: none yet */
	char what[64], on[512];
};

/* How many cases of a cluster are kept. */
struct kept {
	_Atomic uint64_t hash; /* of its name; 0: free */
	_Atomic uint64_t count;
};

/* In memory that all processes share. */
struct shared {
	_Atomic uint64_t next;
	_Atomic bool stop;
	_Atomic bool cut;   /* a signal came: not even the workload at hand is ended */
	_Atomic bool begun; /* some worker could begin */
	struct note note[WORKERS_MAX];
	struct kmsg_shared kmsg;
	struct kept kept[KEPT_SLOTS];
};

/* ---- how many are kept ---- */

static struct kept *find_kept(struct shared *s, const char *cluster)
{
	uint64_t hash = hash64(cluster, strlen(cluster));

	hash += !hash;
	for (size_t i = 0; i < KEPT_SLOTS; i++) {
		struct kept *k = &s->kept[(hash + i) % KEPT_SLOTS];
		uint64_t there = 0;

		if (atomic_compare_exchange_strong(&k->hash, &there, hash) || there == hash)
			return k;
	}
	return NULL;
}

/* Takes a place among those of the cluster that are kept; false if there is none left. */
static bool take_place(struct shared *s, const char *cluster, uint64_t limit)
{
	if (limit == UINT64_MAX)
		return true;
	struct kept *k = limit ? find_kept(s, cluster) : NULL;
	uint64_t n = k ? atomic_load(&k->count) : limit;

	while (n < limit)
		if (atomic_compare_exchange_weak(&k->count, &n, n + 1))
			return true;
	return false;
}

/* ---- in the worker ---- */

struct worker {
	const struct workers_opts *opts;
	struct shared *shared;
	struct note *note;
	const char *dir; /* the run's directory, as it is reached from here */
	unsigned slot, base;
	bool base_kept;
	int out;
	uint64_t at; /* the workload at hand */
	uint64_t next_case, suppressed;
};

static void tell(struct worker *w, const struct message *m)
{
	atomic_fetch_add(&w->note->beats, 1);
	while (write(w->out, m, sizeof(*m)) < 0 && errno == EINTR)
		;
}

static void tell_words(struct worker *w, enum message_kind kind, const char *words)
{
	struct message m = { .kind = kind };

	snprintf(m.words, sizeof(m.words), "%s", words);
	tell(w, &m);
}

static void on_phase(void *ctx, const char *what, const char *on)
{
	struct worker *w = ctx;

	snprintf(w->note->what, sizeof(w->note->what), "%s", what);
	snprintf(w->note->on, sizeof(w->note->on), "%s", on);
	atomic_fetch_add(&w->note->beats, 1);
}

static void on_starting(void *ctx)
{
	struct worker *w = ctx;

	atomic_fetch_add(&w->note->starts, 1);
}

static bool is_cut(void *ctx)
{
	const struct worker *w = ctx;

	return atomic_load(&w->shared->cut);
}

/* All that is wrong must be named: a rule hides nothing else. */
static bool is_suppressed(const struct workers_opts *opts, const struct run_case *c)
{
	for (size_t i = 0; i < c->findings->n; i++) {
		auto_free char *cluster =
			store_cluster(c->findings->v[i].kind, c->workload, c->operation);

		if (!suppress_names(opts->suppress, opts->run.target.spec, cluster))
			return false;
	}
	return true;
}

static int on_finding(void *ctx, const struct run_case *c, struct err *err)
{
	struct worker *w = ctx;
	struct message m = { .kind = MSG_FINDING };
	struct worker_finding *f = &m.finding;
	const struct finding *first = &c->findings->v[0];
	auto_free char *cluster = store_cluster(first->kind, c->workload, c->operation);
	auto_free char *id = store_id_of(c);
	bool same;

	if (is_suppressed(w->opts, c)) {
		w->suppressed++;
		return 0;
	}
	f->workload = w->at;
	f->number = earlier_number(w->opts->earlier, w->at, cluster, id, &w->next_case, &same);
	f->kind = first->kind;
	for (size_t i = 0; i < c->findings->n; i++)
		f->kinds |= 1U << c->findings->v[i].kind;
	snprintf(f->cluster, sizeof(f->cluster), "%s", cluster);
	snprintf(f->words, sizeof(f->words), "%s", first->words);
	f->kept = same || take_place(w->shared, cluster, w->opts->keep);
	if (f->kept) {
		struct store_place at = { .run = w->dir,
					  .base = w->base,
					  .base_kept = &w->base_kept,
					  .workload = w->at,
					  .number = f->number };
		int rc = store_case(&at, c, &w->opts->run, err);

		if (rc == -ENOSPC)
			err_context(err, "what was found cannot be kept; give it a place with "
					 "--output");
		if (rc)
			return rc;
	}
	tell(w, &m);
	return 0;
}

/* -ENODEV: the target is good for nothing more. */
static int do_workload(struct worker *w, struct run *run, struct workload *scratch)
{
	struct message m = { .kind = MSG_DONE, .number = w->at };
	struct run_reporter reporter = {
		.found = on_finding, .ctx = w, .phase = on_phase, .stopped = is_cut
	};
	struct err err = ERR_INIT;

	on_phase(w, "making the workload", "");
	atomic_store(&w->note->workload, w->at + 1);
	int rc = supply_get(w->opts->source, w->at, scratch, &err);

	w->next_case = w->suppressed = 0;
	if (!rc)
		rc = run_workload(run, scratch, &reporter, &m.totals, &err);
	if (rc && rc != -ECANCELED) {
		err_context(&err, "workload %s", scratch->named ? scratch->name : "without a name");
		tell_words(w, MSG_ERROR, err.msg);
	}
	m.failed = rc != 0;
	m.suppressed = w->suppressed;
	m.totals.findings -= min(m.totals.findings, w->suppressed);
	tell(w, &m);
	return rc;
}

static enum worker_end worker_main(struct worker *w)
{
	int rc = 0;
	struct run_opts opts = w->opts->run;
	auto_workload scratch;
	struct err err = ERR_INIT;
	struct run *run = NULL;
	uint64_t total = supply_count(w->opts->source);

	workload_init(&scratch);
	opts.target.worker = w->slot;
	opts.target.kmsg = &w->shared->kmsg;
	opts.target.starting = on_starting;
	opts.target.starting_ctx = w;
	on_phase(w, "making a file system", "");
	if (run_open(&opts, &run, &err)) {
		tell_words(w, MSG_FATAL, err.msg);
		return WORKER_NOT_BEGUN;
	}
	atomic_store(&w->shared->begun, true);
	atomic_store(&w->note->up, true);
	while (!atomic_load(&w->shared->stop)) {
		w->at = atomic_fetch_add(&w->shared->next, 1);
		if (w->at >= total)
			break;
		if (!progress_has(w->opts->progress, w->at))
			rc = do_workload(w, run, &scratch);
		/* To close what cannot be unmounted may take for ever; it goes with this process.
		 */
		if (rc == -ENODEV)
			return WORKER_LOST;
	}
	on_phase(w, "closing the file system", "");
	run_close(run);
	return WORKER_DONE;
}

/* ---- in the parent ---- */

struct slot {
	pid_t pid; /* 0: none */
	int in;
	struct patience patience;
	uint64_t beats, starts;
	unsigned deaths;
	uint64_t cases;		     /* of the workload at hand, */
	uint64_t next_case;	     /* and a number that is more than theirs */
	struct progress_record work; /* what is known of it */
};

struct parent {
	const struct workers_opts *opts;
	struct workers_result *result;
	struct shared *shared;
	struct slot slot[WORKERS_MAX];
	char dir[32]; /* the run's directory as a worker reaches it: its own mounts may hide it */
	struct kmsg kmsg;
	unsigned next_base;
	uint64_t failed; /* workloads that could not be done */
	uint64_t up_ns;	 /* when all workers were up; 0: they are not */
	bool killed;
	bool fatal_told;
	char fatal[1024]; /* why a worker could not begin, the last one */
};

static volatile sig_atomic_t signalled;

static void on_signal(int sig)
{
	signalled = sig;
}

static void failed(struct parent *p, char *words)
{
	p->result->errors++;
	p->opts->failed(p->opts->ctx, words);
	free(words);
}

static void child_main(struct parent *p, unsigned i, unsigned base, int out, pid_t parent)
{
	struct worker w = { .opts = p->opts,
			    .shared = p->shared,
			    .note = &p->shared->note[i],
			    .dir = p->dir,
			    .slot = i,
			    .base = base,
			    .out = out };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(WORKER_NOT_BEGUN);
	setpgid(0, 0); /* Ctrl-C goes to the parent, which tells us to stop */
	signals_in_child(true);
	for (unsigned k = 0; k < p->opts->jobs; k++)
		if (p->slot[k].pid && k != i)
			util_close(p->slot[k].in);
	_exit(worker_main(&w));
}

static int start_worker(struct parent *p, unsigned i, struct err *err)
{
	struct slot *s = &p->slot[i];
	int fds[2];
	pid_t parent = getpid();
	/* A worker makes a file system of its own, so each has a base image of its own. */
	unsigned base = p->next_base++;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_set(err, -errno, "cannot create a pipe: %m");
	atomic_store(&p->shared->note[i].workload, 0);
	atomic_store(&p->shared->note[i].up, false);
	pid_t pid = fork();
	if (pid < 0) {
		int rc = err_set(err, -errno, "cannot start a worker: %m");
		close(fds[0]);
		close(fds[1]);
		return rc;
	}
	if (pid == 0)
		child_main(p, i, base, fds[1], parent);
	close(fds[1]);
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	s->pid = pid;
	s->in = fds[0];
	patience_renew(&s->patience);
	return 0;
}

static void replace(struct parent *p, unsigned i)
{
	struct err err = ERR_INIT;

	if (atomic_load(&p->shared->stop) || ++p->slot[i].deaths > DEATHS_MAX)
		return;
	if (start_worker(p, i, &err))
		failed(p, xstrdup(err.msg));
}

/* ---- what is done ---- */

static void forget_work(struct slot *s)
{
	vec_clear(&s->work.clusters);
	s->cases = s->next_case = 0;
}

/* The worker is gone, and its workload is not done. The findings it told count all the same. */
static void drop_work(struct parent *p, struct slot *s)
{
	p->result->totals.findings += s->cases;
	forget_work(s);
}

/* What was kept of the workload before, and did not show again, is in its record. */
static void add_earlier(struct parent *p, struct slot *s)
{
	for (size_t i = 0; i < p->opts->earlier->n; i++) {
		const struct earlier_case *e = &p->opts->earlier->v[i];

		if (e->workload != s->work.number || e->again || !e->id)
			continue;
		progress_count(&s->work.clusters, &e->what);
		s->work.totals.findings++;
		p->opts->kept(p->opts->ctx, e);
	}
}

/* Without the record of what is done there is no use in going on. */
static void write_down(struct parent *p, struct slot *s)
{
	struct err err = ERR_INIT;

	add_earlier(p, s);
	progress_add_totals(&p->result->totals, &s->work.totals);
	p->result->suppressed += s->work.suppressed;
	if (progress_add(p->opts->progress, &s->work, &err)) {
		failed(p, xstrdup(err.msg));
		atomic_store(&p->shared->stop, true);
	}
	forget_work(s);
	s->deaths = 0;
}

static void take_done(struct parent *p, struct slot *s, const struct message *m)
{
	s->work.number = m->number;
	s->work.totals = m->totals;
	s->work.suppressed = m->suppressed;
	if (!m->failed) {
		write_down(p, s);
		return;
	}
	/* It is not done: who goes on with this run tries it again. */
	progress_add_totals(&p->result->totals, &m->totals);
	p->failed++;
	forget_work(s);
}

static void take_finding(struct parent *p, struct slot *s, const struct worker_finding *f)
{
	struct progress_cluster c = { .kinds = f->kinds, .count = 1, .kept = f->kept };
	struct store_place at = { .run = p->opts->dir,
				  .workload = f->workload,
				  .number = f->number };
	auto_free char *name = store_name(&at);
	auto_free char *dir = f->kept ? xasprintf("%s/findings/%s", p->opts->dir, name) : NULL;

	snprintf(c.name, sizeof(c.name), "%s", f->cluster);
	snprintf(c.words, sizeof(c.words), "%s", f->words);
	progress_count(&s->work.clusters, &c);
	s->cases++;
	s->next_case = max(s->next_case, f->number + 1);
	earlier_again(p->opts->earlier, f->workload, f->number);
	p->opts->found(p->opts->ctx, f, dir);
}

static void take_message(struct parent *p, unsigned i, const struct message *m)
{
	switch (m->kind) {
	case MSG_DONE:
		take_done(p, &p->slot[i], m);
		break;
	case MSG_FINDING:
		take_finding(p, &p->slot[i], &m->finding);
		break;
	case MSG_ERROR:
		failed(p, xstrdup(m->words));
		break;
	case MSG_FATAL:
		snprintf(p->fatal, sizeof(p->fatal), "%s", m->words);
		p->fatal_told = false;
		break;
	}
}

/* Takes what there is to hear; false once the worker has closed its end. */
static bool hear(struct parent *p, unsigned i)
{
	struct message m;
	ssize_t n;

	while ((n = read(p->slot[i].in, &m, sizeof(m))) == (ssize_t)sizeof(m))
		take_message(p, i, &m);
	return n < 0;
}

/* The workload that a worker was at, in words. */
static char *name_of(struct parent *p, unsigned i)
{
	uint64_t number = atomic_load(&p->shared->note[i].workload);
	auto_workload w;
	struct err err = ERR_INIT;

	workload_init(&w);
	if (!number || supply_get(p->opts->source, number - 1, &w, &err))
		return xstrdup("no workload yet");
	return xasprintf("workload %s", w.named ? w.name : "without a name");
}

static char *phase_of(const struct parent *p, unsigned i)
{
	const struct note *note = &p->shared->note[i];

	return xasprintf("%.*s%s%.*s", (int)sizeof(note->what) - 1, note->what,
			 *note->on ? " " : "", (int)sizeof(note->on) - 1, note->on);
}

static void tell_fatal(struct parent *p)
{
	failed(p, xasprintf("a worker could not begin: %s", p->fatal));
	p->fatal_told = true;
}

/* A worker that should have gone on ended by itself: says why, and puts another in its place. */
static void replace_ended(struct parent *p, unsigned i, int status)
{
	auto_free char *name = name_of(p, i), *phase = phase_of(p, i);
	int sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0, code = WEXITSTATUS(status);

	p->killed = true;
	if (sig)
		failed(p, xasprintf("%s: the worker was ended by signal %d (%s) while %s%s", name,
				    sig, strsignal(sig), phase,
				    sig != SIGKILL ? ""
				    : p->opts->jobs > 1
					    ? ", by a person or for lack of memory (see dmesg; -j "
					      "1 needs less)"
					    : ", by a person or for lack of memory (see dmesg)"));
	else if (code == WORKER_NOT_BEGUN && !atomic_load(&p->shared->begun))
		return; /* where no one could begin, another cannot, either */
	else if (code == WORKER_NOT_BEGUN)
		tell_fatal(p);
	else if (code != WORKER_LOST) /* which has told why */
		failed(p, xasprintf("%s: the worker ended with status %d while %s", name, code,
				    phase));
	replace(p, i);
}

static void listen_to(struct parent *p, unsigned i)
{
	struct slot *s = &p->slot[i];
	uint64_t start = util_now_ns();
	bool ours = false;
	int status = 0;

	if (hear(p, i))
		return;
	close(s->in);
	/* What it had mounted goes before it does. */
	while (waitpid(s->pid, &status, WNOHANG) == 0) {
		util_sleep_ms(2);
		if (util_now_ns() - start < STOP_MS * 1000000ULL)
			continue;
		ours = p->killed = true;
		if (!reap_tree(s->pid, &status))
			break;
	}
	s->pid = 0;
	drop_work(p, s);
	if (WIFSIGNALED(status))
		p->killed = true; /* it took nothing along, whoever sent the signal */
	if (status && !ours && !atomic_load(&p->shared->stop))
		replace_ended(p, i, status);
}

/* ---- workers that hang ---- */

/* The finding, kept or not, as if the worker had told it. */
static void take_hang(struct parent *p, unsigned i, const struct store_hang *h)
{
	struct slot *s = &p->slot[i];
	struct worker_finding f = { .workload = atomic_load(&p->shared->note[i].workload) - 1,
				    .kind = FINDING_HANG,
				    .kinds = 1U << FINDING_HANG };
	struct store_place at = { .run = p->opts->dir, .workload = f.workload };
	auto_free char *cluster = store_cluster(FINDING_HANG, h->workload, RUN_NO_OPERATION);
	struct err err = ERR_INIT;
	bool same;

	s->work.number = f.workload;
	s->work.totals = (struct run_totals){ .workloads = 1, .findings = s->cases };
	s->work.suppressed = 0;
	if (suppress_names(p->opts->suppress, p->opts->run.target.spec, cluster)) {
		s->work.suppressed = 1;
		return;
	}
	s->work.totals.findings++;
	snprintf(f.cluster, sizeof(f.cluster), "%s", cluster);
	snprintf(f.words, sizeof(f.words), "%s", h->words);
	f.number =
		earlier_number(p->opts->earlier, f.workload, cluster, "live", &s->next_case, &same);
	at.number = f.number;
	f.kept = same || take_place(p->shared, cluster, p->opts->keep);
	if (f.kept && store_hang(&at, h, &p->opts->run, &err)) {
		f.kept = false;
		failed(p, xstrdup(err.msg));
	}
	take_finding(p, s, &f);
}

static bool is_guest(const struct parent *p)
{
	struct err ignored = ERR_INIT;
	const struct target_ops *target = target_find(p->opts->run.target.spec, &ignored);

	return target && target->far;
}

/* A guest that somebody has stopped does not hang: 1, and its workload is not done. */
static bool was_stopped(struct parent *p, unsigned i)
{
	auto_strbuf who = STRBUF_INIT;

	if (!is_guest(p) || signalled || !reap_stopped(p->slot[i].pid, &who))
		return false;
	auto_free char *name = name_of(p, i), *phase = phase_of(p, i);
	failed(p, xasprintf("%s: the guest was stopped from outside, while %s: %s; let it go on "
			    "(kill -CONT), or leave it alone",
			    name, phase, strbuf_str(&who)));
	return true;
}

static void end_hung(struct parent *p, unsigned i, uint64_t limit_ms)
{
	struct slot *s = &p->slot[i];
	double silence = patience_silence(&s->patience);
	auto_free char *phase = phase_of(p, i), *words = NULL;
	auto_strbuf said = STRBUF_INIT;
	auto_workload w;
	struct err err = ERR_INIT;
	int status;

	bool stopped = was_stopped(p, i);
	reap_describe(s->pid, &said);
	bool gone = reap_tree(s->pid, &status);
	if (!gone) {
		strbuf_adds(&said, "it was killed, and did not end:\n");
		reap_describe(s->pid, &said);
	}
	close(s->in);
	s->pid = 0;
	p->killed = true;
	words = xasprintf("it did not answer for %g s while %s%s", silence, phase,
			  gone ? "" : "; the process is stuck in the kernel and cannot be killed");
	workload_init(&w);
	uint64_t number = atomic_load(&p->shared->note[i].workload);
	if (signalled || stopped) {
		p->failed += stopped && number;
		drop_work(p, s);
	} else if (!number || supply_get(p->opts->source, number - 1, &w, &err)) {
		drop_work(p, s);
		failed(p, xasprintf("a worker could not begin: %s", words));
	} else {
		take_hang(p, i,
			  &(struct store_hang){ &w, words, phase, strbuf_str(&said), limit_ms });
		write_down(p, s);
	}
	replace(p, i);
}

static void watch(struct parent *p, unsigned i)
{
	uint64_t limit_ms = p->opts->hang_ms ? p->opts->hang_ms : WORKERS_HANG_MS;
	struct slot *s = &p->slot[i];
	uint64_t beats = atomic_load(&p->shared->note[i].beats),
		 starts = atomic_load(&p->shared->note[i].starts);

	if (!s->pid)
		return;
	/* A guest that starts has a limit of its own; but nobody waits for it after a signal. */
	if (beats != s->beats || (starts != s->starts && !signalled)) {
		s->beats = beats;
		s->starts = starts;
		patience_renew(&s->patience);
	}
	bool over = patience_ends(&s->patience, s->pid, limit_ms * 1000000);
	/* Who wants to stop does not want to wait; what is cut is done again later. */
	if (signalled) {
		limit_ms = min(limit_ms, (uint64_t)STOP_MS);
		over = util_now_ns() - s->patience.since_ns >= limit_ms * 1000000;
	}
	if (over)
		end_hung(p, i, limit_ms);
}

/* ---- all of it ---- */

static unsigned running(const struct parent *p)
{
	unsigned n = 0;

	for (unsigned i = 0; i < p->opts->jobs; i++)
		n += p->slot[i].pid != 0;
	return n;
}

/* What the kernel said, and no worker took for its own: a finding of the run, without a state. */
static void take_unclaimed(void *ctx, const struct kmsg_block *b)
{
	struct parent *p = ctx;
	struct err err = ERR_INIT;
	struct worker_finding f = { .kind = FINDING_KERNEL_LOG, .kinds = 1U << FINDING_KERNEL_LOG };
	auto_free char *path = xasprintf("%s/kernel-log", p->opts->dir);

	snprintf(f.cluster, sizeof(f.cluster), "%s: of no workload in particular",
		 finding_kind_name(f.kind));
	if (suppress_names(p->opts->suppress, p->opts->run.target.spec, f.cluster)) {
		p->result->suppressed++;
		return;
	}
	int rc = kmsg_block_append(b, p->opts->dir, "kernel-log", &err);
	if (rc)
		failed(p, xstrdup(err.msg));
	f.kept = !rc;
	snprintf(f.words, sizeof(f.words), "the kernel says: %.*s", (int)strcspn(b->text, "\n"),
		 b->text);
	p->result->totals.findings++;
	p->opts->found(p->opts->ctx, &f, rc ? NULL : path);
}

/* By a signal. What is found until then is told; who goes on does the rest of it. */
static void stop_soon(struct parent *p)
{
	if (!p->result->signalled && p->opts->stopping)
		p->opts->stopping(p->opts->ctx);
	p->result->stopped = p->result->signalled = true;
	atomic_store(&p->shared->cut, true);
}

/*
 * The clock begins once all workers that are left are up, and goes on while one is replaced; a
 * guest has a limit of its own for that.
 */
static void watch_clock(struct parent *p)
{
	bool all = true;

	for (unsigned i = 0; i < p->opts->jobs; i++)
		all &= !p->slot[i].pid || atomic_load(&p->shared->note[i].up);
	if (!p->up_ns && all)
		p->up_ns = util_now_ns();
	if (p->opts->time_ns && p->up_ns && util_now_ns() - p->up_ns > p->opts->time_ns)
		p->result->stopped = true;
}

static void supervise(struct parent *p)
{
	uint64_t total = supply_count(p->opts->source);

	while (running(p)) {
		struct pollfd fds[WORKERS_MAX];

		for (unsigned i = 0; i < p->opts->jobs; i++)
			fds[i] = (struct pollfd){ p->slot[i].pid ? p->slot[i].in : -1, POLLIN, 0 };
		poll(fds, p->opts->jobs, 200);
		kmsg_watch(&p->kmsg);
		for (unsigned i = 0; i < p->opts->jobs; i++) {
			if (p->slot[i].pid && fds[i].revents)
				listen_to(p, i);
			watch(p, i);
		}
		watch_clock(p);
		if (signalled)
			stop_soon(p);
		if (p->result->stopped)
			atomic_store(&p->shared->stop, true);
		if (p->opts->progressed)
			p->opts->progressed(p->opts->ctx, &p->result->totals,
					    p->opts->progress->done + p->failed, total);
	}
}

/* Takes back the devices of workers that were killed, in a process of its own: it may hang. */
static void clean_up(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		struct err ignored = ERR_INIT;

		_exit(disk_clean_up(NULL, &ignored) != 0);
	}
	for (int ms = 0; pid > 0 && ms < CLEAN_MS && !waitpid(pid, NULL, WNOHANG); ms += 10)
		util_sleep_ms(10);
}

/* What nobody took, as no worker was left to take it. */
static void count_left(struct parent *p)
{
	uint64_t done = p->opts->progress->done + p->failed;
	uint64_t total = supply_count(p->opts->source);

	/* The time was up after the last one had begun. */
	if (done >= total && !p->result->signalled)
		p->result->stopped = false;
	if (p->result->stopped || atomic_load(&p->shared->stop) || done >= total ||
	    atomic_load(&p->shared->next) >= total)
		return;
	failed(p, xasprintf("%llu workloads were not run: %s", (unsigned long long)(total - done),
			    *p->fatal ? p->fatal : "the workers died"));
	p->fatal_told = true;
}

/* What was kept of workloads that are still not done: who goes on with the run tries them again. */
static void count_earlier(struct parent *p)
{
	for (size_t i = 0; i < p->opts->earlier->n; i++) {
		const struct earlier_case *e = &p->opts->earlier->v[i];

		if (e->again || !e->id || progress_has(p->opts->progress, e->workload))
			continue;
		p->result->totals.findings++;
		p->result->earlier++;
		p->opts->kept(p->opts->ctx, e);
	}
}

static int start_all(struct parent *p, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < p->opts->progress->clusters.n; i++) {
		const struct progress_cluster *c = &p->opts->progress->clusters.v[i];
		struct kept *k = find_kept(p->shared, c->name);

		if (k)
			atomic_store(&k->count, c->kept);
	}
	for (size_t i = 0; i < p->opts->earlier->n; i++) {
		const struct earlier_case *e = &p->opts->earlier->v[i];
		struct kept *k = e->id ? find_kept(p->shared, e->what.name) : NULL;

		if (k)
			atomic_fetch_add(&k->count, 1);
	}
	for (unsigned i = 0; i < p->opts->jobs && !rc; i++)
		rc = start_worker(p, i, err);
	if (rc)
		atomic_store(&p->shared->stop, true);
	return rc;
}

int workers_run(const struct workers_opts *opts, struct workers_result *out, struct err *err)
{
	struct parent p = { .opts = opts, .result = out };
	struct signals signals;
	auto_fd dir = open(opts->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	assert(opts->jobs >= 1 && opts->jobs <= WORKERS_MAX);
	*out = (struct workers_result){ .totals = opts->progress->totals,
					.suppressed = opts->progress->suppressed };
	if (dir < 0)
		return err_set(err, -errno, "cannot open %s: %m", opts->dir);
	snprintf(p.dir, sizeof(p.dir), "/proc/self/fd/%d", dir);
	p.next_base = store_next_base(opts->dir);
	p.shared = mmap(NULL, sizeof(*p.shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	if (p.shared == MAP_FAILED)
		return err_set(err, -errno, "cannot share memory with workers: %m");
	/* Of a file system that is not its own, this machine's kernel has nothing to say. */
	if (is_guest(&p))
		p.kmsg.fd = -1;
	else
		kmsg_open(&p.kmsg, &p.shared->kmsg);
	signalled = 0;
	signals_catch(&signals, on_signal);
	int rc = start_all(&p, err);
	supervise(&p);
	signals_restore(&signals);
	if (p.killed)
		clean_up();
	kmsg_finish(&p.kmsg, take_unclaimed, &p);
	if (!rc && *p.fatal && opts->progress->done + p.failed == 0)
		rc = err_set(err, -EIO, "%s", p.fatal);
	else if (!rc)
		count_left(&p);
	if (!rc && *p.fatal && !p.fatal_told)
		tell_fatal(&p);
	count_earlier(&p);
	if (!rc)
		rc = progress_sync(opts->progress, err);
	for (unsigned i = 0; i < opts->jobs; i++)
		vec_release(&p.slot[i].work.clusters);
	munmap(p.shared, sizeof(*p.shared));
	return rc;
}
