/* SPDX-License-Identifier: MIT */
/* reads.c - finds the lines that recovery and check read, from a trace of their loads. */
#include "pm/reads.h"

#include <errno.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/reap.h"
#include "pm/file.h"
#include "pm/pm_command.h"
#include "pm/shares.h"

enum {
	TRACED_MAX = 1024, /* a run in an emulator takes a good part of a second */
	VARY_MIN = 4,	   /* for fewer pieces the gain is less than this costs */
};

/* ---- one state ---- */

struct reads_watcher {
	const struct pm_run *run;
	const struct tracer *tracer;
	struct pm_file *file;
	int notify;
};

/* True if a system call has read the file since the last call of this function. */
static bool was_read(int notify)
{
	char events[4096];
	bool any = false;

	while (read(notify, events, sizeof(events)) > 0)
		any = true;
	return any;
}

static int trace_command(struct reads_watcher *w, const char *command, struct reads_of *s,
			 struct err *err)
{
	auto_call(traced_release) struct traced x = { 0 };
	auto_words argv = { 0 };
	auto_trace t;

	trace_init(&t);
	int rc = pm_command_traced(w->tracer, command, w->run->plan.file, &argv, err);
	if (!rc)
		rc = tracer_run(w->tracer, w->run->plan.file, (const char *const *)argv.v,
				w->run->plan.timeout_ms, &x, err);
	(void)reap_below();
	/* After a failure or a kill, some reads may be missing. */
	if (!rc &&
	    (x.end.signal || x.end.timed_out || pm_stream_read(x.stream, x.len, &t, NULL, NULL)))
		s->whole = true;
	else if (!rc)
		reads_learn(s, &t, PM_LINE, true);
	/* The tracer saw no mapping of the file: another program looks at it. */
	s->whole |= !rc && !t.info.size;
	return rc;
}

static int look(struct reads_watcher *w, const struct image *img, struct reads_of *s,
		struct err *err)
{
	const struct pm_plan *p = &w->run->plan;
	int rc = pm_file_put(w->file, img, err);

	(void)was_read(w->notify);
	if (!rc && p->recover)
		rc = trace_command(w, p->recover, s, err);
	if (!rc)
		rc = trace_command(w, p->check ? p->check : p->dump, s, err);
	s->whole |= was_read(w->notify);
	reads_settle(s);
	return rc;
}

static int watcher_init(struct reads_watcher *w, struct err *err)
{
	int rc = pm_file_new(w->run->plan.file, w->run->base.size, &w->file, err);

	if (rc)
		return rc;
	prctl(PR_SET_CHILD_SUBREAPER, 1); /* adopt the processes that a command leaves */
	setenv("PMEM_IS_PMEM_FORCE", "1", 0);
	setenv("OUTAGE_FILE", w->run->plan.file, 1);
	w->notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (w->notify < 0 || inotify_add_watch(w->notify, w->run->plan.file, IN_ACCESS) < 0)
		return err_set(err, -errno, "cannot watch %s: %m", w->run->plan.file);
	return 0;
}

/* ---- all states ---- */

/* The head of a worker's message about a state; the lines follow as spans. */
struct head {
	struct hash128 image;
	uint64_t n;
	bool whole, failed;
	struct err err;
};

static void tell(struct share *share, uint64_t next, const struct reads_of *s,
		 const struct err *err)
{
	struct head h = { .image = s->image, .n = s->where.n, .whole = s->whole, .failed = err };
	auto_strbuf text = STRBUF_INIT;

	if (err)
		h.err = *err;
	strbuf_add(&text, &h, sizeof(h));
	strbuf_add(&text, s->where.v, h.n * sizeof(*s->where.v));
	share_tell(share, next, text.buf, text.len);
}

/* Finds the states where everything survives that belong to this share. */
static int find_mine(struct reads_watcher *w, struct share *share, struct err *err)
{
	struct crash_opts opts = pm_run_crash(w->run);
	auto_crash_state s = CRASH_STATE_INIT;
	auto_call(crash_points_release) struct crash_points points = { 0 };
	auto_crash e = NULL;
	uint64_t n = 0;

	pm_run_points(w->run, &points);
	opts.points = points.v;
	opts.n_points = points.n;
	opts.layers = CRASH_WITH_ALL;
	opts.budget = 0;
	opts.ignore_marks = true;
	int rc = crash_new(&w->run->trace, &opts, &e, err);
	while (!rc && n < TRACED_MAX && crash_next(e, &s)) {
		struct reads_of set = { .image = s.hash };

		pool_beat(share->w);
		if (s.survived.n < VARY_MIN || n++ % share->of != share->number || n <= share->from)
			continue;
		pool_at(share->w, n - 1, "state %s", strbuf_str(&s.id));
		rc = look(w, &s.image, &set, err);
		if (!rc)
			tell(share, n, &set, NULL);
		vec_release(&set.where);
	}
	return rc;
}

struct reads_search {
	struct reads_watcher watcher;
	struct reads *reads;
	struct pm_reads_count *count;
	struct err *err;
};

static void work(void *ctx, struct share *share)
{
	struct reads_search *x = ctx;
	struct err err = ERR_INIT;
	struct reads_of none = { 0 };

	signal(SIGPIPE, SIG_IGN);
	int rc = watcher_init(&x->watcher, &err);
	if (!rc)
		rc = find_mine(&x->watcher, share, &err);
	if (rc)
		tell(share, POOL_NONE, &none, &err);
}

static int on_told(void *ctx, unsigned share, const void *data, size_t len)
{
	struct reads_search *x = ctx;
	struct head h;

	(void)share;
	assert(len >= sizeof(h));
	memcpy(&h, data, sizeof(h));
	assert(len == sizeof(h) + h.n * sizeof(struct reads_span));
	if (h.failed)
		return err_set(x->err, h.err.code, "%s", h.err.msg);
	struct reads_of s = { .point = READS_ANYWHERE, .image = h.image, .whole = h.whole };
	vec_reserve(&s.where, h.n + 1);
	memcpy(s.where.v, (const char *)data + sizeof(h), h.n * sizeof(*s.where.v));
	s.where.n = h.n;
	vec_push(x->reads, s);
	x->count->traced++;
	x->count->whole += h.whole;
	return 0;
}

/* For a state that was not traced, all pieces vary: none are left out. */
static void on_lost(void *ctx, unsigned share, bool whole, const char *words)
{
	struct reads_search *x = ctx;

	(void)share;
	(void)whole;
	if (!x->count->lost++)
		snprintf(x->count->error, sizeof(x->count->error), "%s", words);
}

int pm_reads_find(const struct pm_run *run, const struct tracer *t, unsigned jobs,
		  const volatile sig_atomic_t *stop, struct reads *out,
		  struct pm_reads_count *count, struct err *err)
{
	struct tracer with_loads = *t;
	struct reads_search x = { .watcher = { .run = run, .tracer = &with_loads, .notify = -1 },
				  .reads = out,
				  .count = count,
				  .err = err };
	struct shares shares = { .n = min(max(jobs, 1u), (unsigned)POOL_JOBS_MAX),
				 .patience_ms = pm_patience_ms(&run->plan),
				 .stop = stop,
				 .ctx = &x,
				 .work = work,
				 .told = on_told,
				 .lost = on_lost };

	with_loads.loads = true;
	return shares_run(&shares, err);
}
