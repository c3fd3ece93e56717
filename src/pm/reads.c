/* SPDX-License-Identifier: MIT */
/* reads.c - finds out which lines recovery and check read, from a trace of their loads. */
#include "pm/reads.h"

#include <errno.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "pm/pm_command.h"
#include "pm/file.h"
#include "pm/shares.h"

enum {
	TRACED_MAX = 1024, /* a run in an emulator takes a good part of a second */
	VARY_MIN = 4,	   /* with fewer pieces there is less to gain than that costs */
};

struct lines vec_of(uint64_t);

struct read_set {
	struct hash128 image;
	bool whole;
	struct lines lines; /* numbers; ascending, each once */
};

struct pm_reads {
	struct vec_of(struct read_set) sets; /* by image */
};

void pm_reads_free(struct pm_reads *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->sets.n; i++)
		vec_release(&r->sets.v[i].lines);
	vec_release(&r->sets);
	free(r);
}

static int compare_sets(const void *a, const void *b)
{
	const struct hash128 *x = &((const struct read_set *)a)->image;
	const struct hash128 *y = &((const struct read_set *)b)->image;

	if (x->hi != y->hi)
		return x->hi < y->hi ? -1 : 1;
	return (x->lo > y->lo) - (x->lo < y->lo);
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static bool has_line(const struct lines *l, uint64_t from, uint64_t to)
{
	size_t low = 0, high = l->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (l->v[mid] < from)
			low = mid + 1;
		else
			high = mid;
	}
	return low < l->n && l->v[low] <= to;
}

bool pm_reads_vary(void *ctx, uint64_t point, struct hash128 all, const struct model_piece *piece)
{
	const struct pm_reads *r = ctx;
	struct read_set key = { .image = all };
	const struct read_set *s =
		r->sets.n ? bsearch(&key, r->sets.v, r->sets.n, sizeof(key), compare_sets) : NULL;

	(void)point;
	return !s || s->whole ||
	       has_line(&s->lines, piece->addr / PM_LINE,
			(piece->addr + max(piece->len, (uint64_t)1) - 1) / PM_LINE);
}

/* ---- one state ---- */

struct reads_watcher {
	const struct pm_run *run;
	const struct tracer *tracer;
	struct pm_file *file;
	int notify;
};

/* Whether somebody has read the file since the last time it was asked, by a system call. */
static bool was_read(int notify)
{
	char events[4096];
	bool any = false;

	while (read(notify, events, sizeof(events)) > 0)
		any = true;
	return any;
}

static void add_loads(const struct trace *t, struct read_set *s)
{
	for (size_t i = 0; i < t->events.n; i++) {
		const struct event *ev = &t->events.v[i];

		if (ev->kind != EV_LOAD && ev->kind != EV_STORE)
			continue;
		for (uint64_t l = ev->addr / PM_LINE; l <= (ev->addr + ev->len - 1) / PM_LINE; l++)
			if (!s->lines.n || vec_last(&s->lines) != l)
				vec_push(&s->lines, l);
	}
}

static int trace_command(struct reads_watcher *w, const char *command, struct read_set *s,
			 struct err *err)
{
	struct traced x = { 0 };
	auto_words argv = { 0 };
	auto_trace t;

	trace_init(&t);
	int rc = command_traced(w->tracer, command, w->run->plan.file, &argv, err);
	if (!rc)
		rc = tracer_run(w->tracer, w->run->plan.file, (const char *const *)argv.v,
				w->run->plan.timeout_ms, &x, err);
	/* One that fails, or is killed, read what it read; but that is not known to the end. */
	if (!rc &&
	    (x.end.signal || x.end.timed_out || pm_stream_read(x.stream, x.len, &t, NULL, NULL)))
		s->whole = true;
	else if (!rc)
		add_loads(&t, s);
	/* Not mapped, as far as the tracer knows: another program looks at it. */
	s->whole |= !rc && !t.info.size;
	traced_release(&x);
	return rc;
}

static int look(struct reads_watcher *w, const struct image *img, struct read_set *s,
		struct err *err)
{
	const struct pm_plan *p = &w->run->plan;
	size_t kept = 0;
	int rc = pm_file_put(w->file, img, err);

	(void)was_read(w->notify);
	if (!rc && p->recover)
		rc = trace_command(w, p->recover, s, err);
	if (!rc)
		rc = trace_command(w, p->check ? p->check : p->dump, s, err);
	s->whole |= was_read(w->notify);
	if (s->lines.n)
		qsort(s->lines.v, s->lines.n, sizeof(*s->lines.v), compare_u64);
	for (size_t i = 0; i < s->lines.n; i++)
		if (!kept || s->lines.v[kept - 1] != s->lines.v[i])
			s->lines.v[kept++] = s->lines.v[i];
	s->lines.n = s->whole ? 0 : kept;
	return rc;
}

static int watcher_init(struct reads_watcher *w, struct err *err)
{
	int rc = pm_file_new(w->run->plan.file, w->run->base.size, &w->file, err);

	if (rc)
		return rc;
	setenv("PMEM_IS_PMEM_FORCE", "1", 0);
	setenv("OUTAGE_FILE", w->run->plan.file, 1);
	w->notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (w->notify < 0 || inotify_add_watch(w->notify, w->run->plan.file, IN_ACCESS) < 0)
		return err_set(err, -errno, "cannot watch %s: %m", w->run->plan.file);
	return 0;
}

/* ---- all of them ---- */

/* What a worker tells of a state; behind it come the lines. */
struct head {
	struct hash128 image;
	uint64_t n;
	bool whole, failed;
	struct err err;
};

static void tell(struct share *share, uint64_t next, const struct read_set *s,
		 const struct err *err)
{
	struct head h = { .image = s->image, .n = s->lines.n, .whole = s->whole, .failed = err };
	auto_strbuf text = STRBUF_INIT;

	if (err)
		h.err = *err;
	strbuf_add(&text, &h, sizeof(h));
	strbuf_add(&text, s->lines.v, h.n * sizeof(uint64_t));
	share_tell(share, next, text.buf, text.len);
}

/* The states where everything survives; those that the enumerator gives to this share. */
static int find_mine(struct reads_watcher *w, struct share *share, struct err *err)
{
	struct crash_opts opts = pm_run_crash(w->run);
	auto_crash_state s = CRASH_STATE_INIT;
	struct crash_points points = { 0 };
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
		struct read_set set = { .image = s.hash };

		pool_beat(share->w);
		if (s.survived.n < VARY_MIN || n++ % share->of != share->number || n <= share->from)
			continue;
		pool_at(share->w, n - 1, "state %s", strbuf_str(&s.id));
		rc = look(w, &s.image, &set, err);
		if (!rc)
			tell(share, n, &set, NULL);
		vec_release(&set.lines);
	}
	crash_points_release(&points);
	return rc;
}

struct reads_search {
	struct reads_watcher watcher;
	struct pm_reads *reads;
	struct pm_reads_count *count;
	struct err *err;
};

static void work(void *ctx, struct share *share)
{
	struct reads_search *x = ctx;
	struct err err = ERR_INIT;
	struct read_set none = { 0 };

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
	assert(len == sizeof(h) + h.n * sizeof(uint64_t));
	if (h.failed)
		return err_set(x->err, h.err.code, "%s", h.err.msg);
	struct read_set s = { .image = h.image, .whole = h.whole };
	vec_reserve(&s.lines, h.n + 1);
	memcpy(s.lines.v, (const char *)data + sizeof(h), h.n * sizeof(uint64_t));
	s.lines.n = h.n;
	vec_push(&x->reads->sets, s);
	x->count->traced++;
	x->count->whole += h.whole;
	return 0;
}

/* Of a state that was not traced all is varied: nothing is left out for it. */
static void on_lost(void *ctx, unsigned share, bool whole, const char *words)
{
	struct reads_search *x = ctx;

	(void)share;
	(void)whole;
	if (!x->count->lost++)
		snprintf(x->count->error, sizeof(x->count->error), "%s", words);
}

int pm_reads_find(const struct pm_run *run, const struct tracer *t, unsigned jobs,
		  const volatile sig_atomic_t *stop, struct pm_reads **out,
		  struct pm_reads_count *count, struct err *err)
{
	struct pm_reads *r = xcalloc(1, sizeof(*r));
	struct tracer with_loads = *t;
	struct reads_search x = { .watcher = { .run = run, .tracer = &with_loads, .notify = -1 },
				  .reads = r,
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
	int rc = shares_run(&shares, err);
	if (r->sets.n)
		qsort(r->sets.v, r->sets.n, sizeof(*r->sets.v), compare_sets);
	if (rc)
		pm_reads_free(r);
	else
		*out = r;
	return rc;
}
