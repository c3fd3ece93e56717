/* SPDX-License-Identifier: MIT */
/*
 * workers.c - the parent of the workers of a run: gives out workloads, takes and keeps findings.
 * A unit of the pool is a workload, by its number.
 *
 * W1: a number is taken by one worker; the parent alone writes down that it is done.
 * W2: the slot of a worker has what it told of a workload until that is done, or the worker is
 *     gone; findings count in either case.
 * W3: a worker dies with its parent, and with it its mounts and its disk.
 */
#include "run/workers.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/below.h"
#include "base/signals.h"
#include "run/store.h"
#include "run/workers_impl.h"

enum {
	DEPTH = 2,	 /* workloads of a worker: it has the next while the last is written down */
	STOP_MS = 10000, /* how long a worker may be silent once all shall stop */
	DEATHS_MAX = 3,	 /* in a row, of a worker, without a workload done between them */
	CLEAN_MS = 5000,
};

struct worker_slot {
	unsigned ended;		     /* workers */
	uint64_t cases;		     /* of the workload at hand, */
	uint64_t next_case;	     /* and a number that is more than theirs */
	struct progress_record work; /* all that is known of it */
};

struct workers_parent {
	const struct workers_opts *opts;
	struct workers_result *result;
	struct workers_shared *shared;
	struct pool *pool;
	struct worker_slot slot[WORKERS_MAX];
	char dir[32]; /* the run's directory as a worker reaches it: its own mounts may hide it */
	struct kmsg kmsg;
	unsigned first_base;
	uint64_t next;	 /* the workload to be given out */
	uint64_t failed; /* workloads that could not be done */
	uint64_t lost;	 /* workloads: their worker died */
	bool killed;	 /* a worker that may have left a device behind */
	bool stopping;	 /* no workload is given out any more */
	bool fatal_told;
	char fatal[1024]; /* why a worker could not begin, the last one */
};

static volatile sig_atomic_t signalled;

static void on_signal(int sig)
{
	signalled = sig;
}

static void failed(struct workers_parent *p, char *words)
{
	p->result->errors++;
	p->opts->failed(p->opts->ctx, words);
	free(words);
}

/* A worker makes a file system of its own, so each has a base image of its own. */
static int work(void *ctx, struct pool_worker *pool)
{
	struct workers_parent *p = ctx;
	unsigned i = pool_number(pool);
	struct worker w = { .opts = p->opts,
			    .shared = p->shared,
			    .pool = pool,
			    .dir = p->dir,
			    .base = p->first_base + p->slot[i].ended * p->opts->jobs + i };

	return workers_child(&w);
}

static bool next_workload(void *ctx, uint64_t *unit, struct strbuf *data)
{
	struct workers_parent *p = ctx;

	(void)data;
	while (p->next < supply_count(p->opts->source) && progress_has(p->opts->progress, p->next))
		p->next++;
	*unit = p->next++;
	return *unit < supply_count(p->opts->source);
}

/* As long as its silence tells nothing else; `limit_ms` as in pool_stop(). */
static void stop(struct workers_parent *p, uint64_t limit_ms)
{
	p->stopping = true;
	pool_stop(p->pool, limit_ms);
}

/* ---- what is done ---- */

static void forget_work(struct worker_slot *s)
{
	vec_clear(&s->work.clusters);
	s->cases = s->next_case = 0;
}

/* The worker is gone, and its workload is not done. The findings it told count all the same. */
static void drop_work(struct workers_parent *p, struct worker_slot *s)
{
	p->result->totals.findings += s->cases;
	forget_work(s);
}

/* Adds to its record the cases that were kept before, and did not show again. */
static void add_earlier(struct workers_parent *p, struct worker_slot *s)
{
	vec_each(e, p->opts->earlier) {
		if (e->workload != s->work.number || e->again || !e->id)
			continue;
		progress_count(&s->work.clusters, &e->what);
		s->work.totals.findings++;
		p->opts->kept(p->opts->ctx, e);
	}
}

/* Without the record of what is done there is no use in going on. */
static void write_down(struct workers_parent *p, struct worker_slot *s)
{
	struct err err = ERR_INIT;

	add_earlier(p, s);
	progress_add_totals(&p->result->totals, &s->work.totals);
	if (progress_add(p->opts->progress, &s->work, &err)) {
		failed(p, xstrdup(err.msg));
		stop(p, 0);
	}
	forget_work(s);
}

static void take_done(struct workers_parent *p, struct worker_slot *s, const struct worker_done *m)
{
	s->work.number = m->number;
	s->work.totals = m->totals;
	if (!m->failed) {
		write_down(p, s);
		return;
	}
	/* A failed workload is not done: a run that goes on tries it again. */
	progress_add_totals(&p->result->totals, &m->totals);
	p->failed++;
	forget_work(s);
}

static void take_finding(struct workers_parent *p, struct worker_slot *s,
			 const struct worker_finding *f)
{
	struct store_place at = { .run = p->opts->dir,
				  .workload = f->workload,
				  .number = f->number };
	auto_free char *name = store_name(&at);
	auto_free char *dir = f->what.kept ? xasprintf("%s/findings/%s", p->opts->dir, name) : NULL;

	progress_count(&s->work.clusters, &f->what);
	s->cases++;
	s->next_case = max(s->next_case, f->number + 1);
	earlier_again(p->opts->earlier, f->workload, f->number);
	p->opts->found(p->opts->ctx, f, dir);
}

static void on_message(void *ctx, unsigned i, uint32_t kind, const void *data, size_t len)
{
	struct workers_parent *p = ctx;
	struct worker_finding finding;
	struct worker_done done;

	switch ((enum message_kind)kind) {
	case MSG_DONE:
		assert(len == sizeof(done));
		memcpy(&done, data, len);
		take_done(p, &p->slot[i], &done);
		break;
	case MSG_FINDING:
		assert(len == sizeof(finding));
		memcpy(&finding, data, len);
		take_finding(p, &p->slot[i], &finding);
		break;
	case MSG_ERROR:
		failed(p, xmemdupz(data, len));
		break;
	case MSG_FATAL:
		snprintf(p->fatal, sizeof(p->fatal), "%.*s", (int)len, (const char *)data);
		p->fatal_told = false;
		break;
	}
}

/* The workload that a worker was at, in words. */
static char *name_of(struct workers_parent *p, const struct pool_end *e)
{
	auto_workload w;
	struct err err = ERR_INIT;

	workload_init(&w);
	if (e->unit == POOL_NONE || supply_get(p->opts->source, e->unit, &w, &err))
		return xstrdup("no workload yet");
	return xasprintf("workload %s", w.named ? w.name : "without a name");
}

static void tell_fatal(struct workers_parent *p)
{
	failed(p, xasprintf("a worker could not begin: %s", p->fatal));
	p->fatal_told = true;
}

/* A worker that should have gone on ended by itself: says why. False: another would, too. */
static bool take_death(struct workers_parent *p, const struct pool_end *e)
{
	auto_free char *name = name_of(p, e);
	auto_strbuf words = STRBUF_INIT;
	bool not_begun = e->how == POOL_EXITED && e->code == WORKER_NOT_BEGUN;

	if (not_begun && !pool_has_begun(p->pool))
		return false; /* where no one could begin, another cannot, either */
	if (not_begun) {
		tell_fatal(p);
		return true;
	}
	if (e->how == POOL_EXITED && e->code == WORKER_LOST)
		return true; /* the worker has told why */
	p->lost += e->open;
	strbuf_addf(&words, "%s: the worker ", name);
	pool_end_words(e, &words);
	strbuf_addf(&words, " while %s", e->at);
	if (e->how == POOL_KILLED && e->code == SIGKILL)
		strbuf_addf(&words, ", by a person or for lack of memory (see dmesg%s)",
			    p->opts->jobs > 1 ? "; -j 1 needs less" : "");
	failed(p, strbuf_detach(&words));
	return true;
}

/* ---- workers that hang ---- */

/* The finding, kept or not, as if the worker had told it. */
static void take_hang(struct workers_parent *p, const struct pool_end *e,
		      const struct store_hang *h)
{
	struct worker_slot *s = &p->slot[e->worker];
	auto_free char *cluster = store_cluster(FINDING_HANG, h->workload, RUN_NO_OPERATION);
	struct worker_finding f =
		workers_finding(e->unit, FINDING_HANG, 1U << FINDING_HANG, cluster, h->words);
	struct store_place at = { .run = p->opts->dir, .workload = f.workload };
	struct err err = ERR_INIT;
	bool same;

	s->work.number = f.workload;
	s->work.totals = (struct run_totals){ .workloads = 1, .findings = s->cases };
	if (suppress_names(p->opts->suppress, p->opts->run.target.spec, cluster)) {
		s->work.totals.suppressed = 1;
		return;
	}
	s->work.totals.findings++;
	f.number =
		earlier_number(p->opts->earlier, f.workload, cluster, "live", &s->next_case, &same);
	at.number = f.number;
	f.what.kept = same || workers_take_place(p->shared, cluster, p->opts->keep);
	if (f.what.kept && store_hang(&at, h, &p->opts->run, &err)) {
		f.what.kept = 0;
		failed(p, xstrdup(err.msg));
	}
	take_finding(p, s, &f);
}

/* A guest that was stopped from outside does not hang, and its workload is not done. */
static bool was_stopped(struct workers_parent *p, const struct pool_end *e)
{
	if (!target_is_guest(p->opts->run.target.spec) || signalled || !e->stopped)
		return false;
	auto_free char *name = name_of(p, e);
	failed(p, xasprintf("%s: the guest was stopped from outside, while %s: %s; let it go on "
			    "(kill -CONT), or leave it alone",
			    name, e->at, e->stopped));
	return true;
}

static void take_silence(struct workers_parent *p, const struct pool_end *e)
{
	struct worker_slot *s = &p->slot[e->worker];
	uint64_t limit_ms = p->opts->hang_ms ? p->opts->hang_ms : WORKERS_HANG_MS;
	auto_free char *words = xasprintf(
		"it did not answer for %g s while %s%s", e->silence, e->at,
		e->stuck ? "; the process is stuck in the kernel and cannot be killed" : "");
	auto_workload w;
	struct err err = ERR_INIT;
	bool stopped = was_stopped(p, e);

	workload_init(&w);
	if (signalled || stopped) {
		p->failed += stopped && e->unit != POOL_NONE;
		drop_work(p, s);
	} else if (e->unit == POOL_NONE || supply_get(p->opts->source, e->unit, &w, &err)) {
		drop_work(p, s);
		failed(p, xasprintf("a worker could not begin: %s", words));
	} else {
		take_hang(p, e, &(struct store_hang){ &w, words, e->at, e->kernel, limit_ms });
		write_down(p, s);
	}
}

static enum pool_then on_ended(void *ctx, const struct pool_end *e)
{
	struct workers_parent *p = ctx;
	bool again = e->deaths <= DEATHS_MAX;

	p->killed = true; /* the worker may have left a device behind, however it ended */
	p->slot[e->worker].ended++;
	if (e->how == POOL_HUNG) {
		take_silence(p, e);
	} else {
		drop_work(p, &p->slot[e->worker]);
		if (e->how != POOL_LINGERED && !p->stopping)
			again &= take_death(p, e);
	}
	return again ? POOL_SKIP : POOL_DROP;
}

/* ---- all of it ---- */

/* A message of the kernel that no worker claimed is a finding of the run, without a state. */
static void take_unclaimed(void *ctx, const struct kmsg_block *b)
{
	struct workers_parent *p = ctx;
	struct err err = ERR_INIT;
	auto_free char *path = xasprintf("%s/kernel-log", p->opts->dir);
	auto_free char *cluster = xasprintf("%s: of no workload in particular",
					    finding_kind_name(FINDING_KERNEL_LOG));
	auto_free char *words =
		xasprintf("the kernel says: %.*s", (int)strcspn(b->text, "\n"), b->text);
	struct worker_finding f =
		workers_finding(0, FINDING_KERNEL_LOG, 1U << FINDING_KERNEL_LOG, cluster, words);

	if (suppress_names(p->opts->suppress, p->opts->run.target.spec, cluster)) {
		p->result->totals.suppressed++;
		return;
	}
	int rc = kmsg_block_append(b, p->opts->dir, "kernel-log", &err);
	if (rc)
		failed(p, xstrdup(err.msg));
	f.what.kept = !rc;
	p->result->totals.findings++;
	p->opts->found(p->opts->ctx, &f, rc ? NULL : path);
}

/* By a signal. The findings until then are told; a run that goes on does the rest. */
static void stop_soon(struct workers_parent *p)
{
	if (!p->result->signalled && p->opts->stopping)
		p->opts->stopping(p->opts->ctx);
	p->result->stopped = p->result->signalled = true;
	atomic_store(&p->shared->cut, true);
}

static void on_tick(void *ctx)
{
	struct workers_parent *p = ctx;

	kmsg_watch(&p->kmsg);
	if (p->opts->time_ns && pool_ready_ns(p->pool) > p->opts->time_ns)
		p->result->stopped = true;
	if (signalled)
		stop_soon(p);
	/* The user does not want to wait; what is cut is done again later. */
	if (p->result->stopped)
		stop(p, signalled ? STOP_MS : 0);
	if (p->opts->progressed)
		p->opts->progressed(p->opts->ctx, &p->result->totals,
				    p->opts->progress->done + p->failed,
				    supply_count(p->opts->source));
}

/* In a process of its own: it may hang. */
void workers_clean_up(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		struct err ignored = ERR_INIT;

		_exit(disk_clean_up(NULL, &ignored) != 0);
	}
	for (int ms = 0; pid > 0 && ms < CLEAN_MS && !waitpid(pid, NULL, WNOHANG); ms += 10)
		util_sleep_ms(10);
}

/* Counts the workloads that were not run, as no worker was left. */
static void count_left(struct workers_parent *p)
{
	uint64_t done = p->opts->progress->done + p->failed;
	uint64_t total = supply_count(p->opts->source);

	/* The time was up after the last one had begun. */
	if (done >= total && !p->result->signalled)
		p->result->stopped = false;
	if (p->result->stopped || p->stopping || done + p->lost >= total)
		return;
	failed(p, xasprintf("%llu workloads were not run: %s", llu(total - done - p->lost),
			    *p->fatal ? p->fatal : "the workers died"));
	p->fatal_told = true;
}

/* Counts the kept cases of workloads still not done: a run that goes on tries them again. */
static void count_earlier(struct workers_parent *p)
{
	vec_each(e, p->opts->earlier) {
		if (e->again || !e->id || progress_has(p->opts->progress, e->workload))
			continue;
		p->result->totals.findings++;
		p->result->earlier++;
		p->opts->kept(p->opts->ctx, e);
	}
}

static void count_kept(struct workers_parent *p)
{
	vec_each(c, &p->opts->progress->clusters) {
		struct workers_kept *k = workers_find_kept(p->shared, c->name);

		if (k)
			atomic_store(&k->count, c->kept);
	}
	vec_each(e, p->opts->earlier) {
		struct workers_kept *k = e->id ? workers_find_kept(p->shared, e->what.name) : NULL;

		if (k)
			atomic_fetch_add(&k->count, 1);
	}
}

static int run_pool(struct workers_parent *p, struct err *err)
{
	struct pool_opts opts = { .jobs = p->opts->jobs,
				  .depth = DEPTH,
				  .patience_ms = p->opts->hang_ms ? p->opts->hang_ms
								  : WORKERS_HANG_MS,
				  .ctx = p,
				  .work = work,
				  .next = next_workload,
				  .message = on_message,
				  .ended = on_ended,
				  .tick = on_tick };
	int rc = pool_new(&opts, &p->pool, err);

	if (!rc)
		rc = pool_run(p->pool, err);
	pool_free(p->pool);
	return rc;
}

int workers_run(const struct workers_opts *opts, struct workers_result *out, struct err *err)
{
	struct workers_parent p = { .opts = opts, .result = out };
	struct signals signals;
	auto_fd dir = below_open_dir(opts->dir, NULL, err);

	assert(opts->jobs >= 1 && opts->jobs <= WORKERS_MAX);
	*out = (struct workers_result){ .totals = opts->progress->totals };
	if (dir < 0)
		return dir;
	snprintf(p.dir, sizeof(p.dir), "/proc/self/fd/%d", dir);
	p.first_base = store_next_base(opts->dir);
	p.shared = pool_share(sizeof(*p.shared), err);
	if (!p.shared)
		return err->code;
	count_kept(&p);
	/* The log of this machine's kernel does not concern a guest's file system. */
	if (target_is_guest(opts->run.target.spec))
		p.kmsg.fd = -1;
	else
		kmsg_open(&p.kmsg, &p.shared->kmsg);
	signalled = 0;
	signals_catch(&signals, on_signal);
	int rc = run_pool(&p, err);
	signals_restore(&signals);
	if (p.killed)
		workers_clean_up();
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
	pool_unshare(p.shared, sizeof(*p.shared));
	return rc;
}
