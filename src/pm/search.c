/* SPDX-License-Identifier: MIT */
/*
 * search.c - see search.h.
 *
 * Each worker is a copy of this process that enumerates all states by itself, and checks those
 * whose number, divided by the number of workers, leaves its own as the rest: enumerating is a
 * thousand times faster than checking, and nothing has to be sent but what fails. What is in
 * flight at each crash point, which can take longer, is found out before there are workers.
 */
#include "pm/search.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "core/hashset.h"
#include "core/trace_file.h"
#include "pm/file.h"
#include "pm/reads.h"
#include "pm/record.h"

/*
 * Stores of a copy are taken together from so many bytes on: a record and the flag behind it that
 * says that it is there are no copy.
 */
enum { JOIN_MIN = 256 };

enum { JOBS_MAX = 256, FAILURES_MAX = 4096, SAID_MAX = 4096, POLL_MS = 200, TELL_EVERY = 32 };

/* ---- a run ---- */

int pm_run_load(const char *dir, struct pm_run *out, struct err *err)
{
	auto_free char *base = xasprintf("%s/base.img", dir);
	auto_free char *trace = xasprintf("%s/trace", dir);
	struct pm_run r = { .dir = xstrdup(dir) };

	trace_init(&r.trace);
	int rc = pm_plan_load(dir, &r.plan, err);
	if (!rc)
		rc = image_load_file(base, &r.base, err);
	if (!rc)
		rc = trace_load(trace, &r.trace, NULL, err);
	if (!rc)
		rc = pm_where_load(dir, &r.where, err);
	if (!rc && r.base.size != r.trace.info.size)
		rc = err_set(err, -EINVAL, "%s is not as long as the region of %s", base, trace);
	if (!rc) {
		r.where.noticed = r.plan.preload;
		r.model.granularity = (uint32_t)r.plan.granularity;
		r.model.join_min = r.plan.split ? PM_JOIN_NEVER : JOIN_MIN;
		rc = model_pm_opts_check(&r.model, err);
	}
	if (rc)
		pm_run_release(&r);
	else
		*out = r;
	return rc;
}

void pm_run_release(struct pm_run *r)
{
	pm_plan_release(&r->plan);
	trace_release(&r->trace);
	pm_where_release(&r->where);
	for (size_t i = 0; i < r->n_nested; i++)
		pm_run_release(&r->nested[i]);
	free(r->nested);
	r->nested = NULL;
	r->n_nested = 0;
	free(r->outer.state);
	r->outer.state = NULL;
	image_release(&r->base);
	free(r->dir);
	r->dir = NULL;
}

void pm_run_points(const struct pm_run *r, struct crash_points *out)
{
	size_t kept = 0;

	crash_points_pm(&r->trace, out);
	for (size_t i = 0; i < out->n; i++)
		if (out->v[i] >= r->plan.first_point)
			out->v[kept++] = out->v[i];
	out->n = kept;
}

struct crash_opts pm_run_crash(const struct pm_run *r)
{
	struct crash_opts o = CRASH_OPTS_INIT;

	o.model = r->plan.eadr ? &model_pm_eadr : &model_pm;
	o.model_ctx = &r->model;
	o.base = &r->base;
	o.layers = CRASH_WITH_WHOLE;
	/* A processor writes 8 bytes as one, and no copy. */
	if (!r->plan.split)
		o.layers |= CRASH_WITH_TEARS | CRASH_WITH_PARTS;
	o.tear_unit = PM_LINE;
	o.few_tears = true;
	o.max_subset = (uint32_t)min(r->plan.max_subset, (uint64_t)UINT32_MAX);
	o.budget = r->plan.budget;
	o.seed = r->plan.seed;
	return o;
}

uint64_t pm_run_copies(const struct pm_run *r)
{
	return r->plan.split ? 0 : pm_count_copies(&r->trace, JOIN_MIN);
}

void pm_marks(const struct trace *t, uint64_t point, struct strbuf *out)
{
	for (uint64_t i = 0; i < min(point, (uint64_t)t->events.n); i++) {
		const struct event *ev = &t->events.v[i];

		if (ev->kind == EV_OP_BEGIN || ev->kind == EV_OP_END)
			strbuf_addf(out, "%s %" PRIu64 "\n",
				    ev->kind == EV_OP_BEGIN ? "begin" : "end", ev->ref);
		if (ev->kind == EV_TEXT) {
			strbuf_adds(out, "text ");
			strbuf_add_flat(out, (const char *)ev->data);
			strbuf_addch(out, '\n');
		}
	}
}

const struct pm_run *pm_failure_run(const struct pm_run *r, const struct pm_failure *f)
{
	return f->recovery ? &r->nested[f->recovery - 1] : r;
}

void pm_failure_release(struct pm_failure *f)
{
	free(f->state);
	free(f->lost);
	free(f->survived);
	free(f->said);
	*f = (struct pm_failure){ 0 };
}

void pm_found_release(struct pm_found *f)
{
	for (size_t i = 0; i < f->failures.n; i++)
		pm_failure_release(&f->failures.v[i]);
	vec_release(&f->failures);
	for (size_t i = 0; i < f->changes.n; i++)
		free(f->changes.v[i].state);
	vec_release(&f->changes);
}

/* What a dump prints is all that counts; of a check, the beginning will do. */
static size_t said_max(const struct pm_run *r)
{
	return r->plan.dump ? CHECK_OUTPUT_MAX : SAID_MAX;
}

/* ---- one state ---- */

struct checker {
	const struct pm_run *run;
	struct pm_file *file;
	struct check_opts check;
	struct check_result r;
	struct strbuf marks;
	uint64_t marks_point;
};

static int checker_init(struct checker *c, const struct pm_run *r, struct err *err)
{
	*c = (struct checker){ .run = r, .marks_point = UINT64_MAX };
	int rc = pm_file_new(r->plan.file, r->base.size, &c->file, err);
	if (rc)
		return rc;
	c->check = (struct check_opts){ .command = r->plan.check ? r->plan.check : r->plan.dump,
					.dir = r->plan.dir,
					.file = r->plan.file,
					.notes = pm_file_notes(c->file),
					.timeout_ms = r->plan.timeout_ms,
					.output_limit = r->plan.dump ? CHECK_OUTPUT_MAX : 0 };
	return 0;
}

/* Recovery is part of the check: if it fails, that is what is told. */
static int run_commands(struct checker *c, uint64_t point, struct err *err)
{
	struct check_opts recover = c->check;
	int rc = 0;

	if (c->run->plan.recover) {
		recover.command = c->run->plan.recover;
		rc = check_run(&recover, point, strbuf_str(&c->marks), c->marks.len, &c->r, err);
		if (rc || c->r.end != CHECK_PASSED)
			return rc;
	}
	return check_run(&c->check, point, strbuf_str(&c->marks), c->marks.len, &c->r, err);
}

static int check_image(struct checker *c, const struct image *img, uint64_t point, struct err *err)
{
	int rc = pm_file_put(c->file, img, err);

	if (rc)
		return rc;
	if (point != c->marks_point) {
		strbuf_clear(&c->marks);
		pm_marks(&c->run->trace, point, &c->marks);
		c->marks_point = point;
	}
	return run_commands(c, point, err);
}

/* ---- bad lines ---- */

/* The last crash point before this one: what was stored since then was on its way. */
static uint64_t point_before(const struct crash_points *points, uint64_t point)
{
	uint64_t before = 0;

	for (size_t i = 0; i < points->n && points->v[i] < point; i++)
		before = points->v[i];
	return before;
}

/* What the memory holds after so many events if nothing is lost. */
static void image_at(const struct pm_run *r, uint64_t point, struct image *out)
{
	image_snapshot(&r->base, out);
	for (uint64_t i = 0; i < point; i++) {
		const struct event *ev = &r->trace.events.v[i];

		if (ev->kind == EV_STORE)
			image_write(out, ev->addr, ev->data, ev->len);
	}
}

void pm_image_before(const struct pm_run *r, uint64_t point, struct image *out)
{
	struct crash_points points = { 0 };

	pm_run_points(r, &points);
	image_at(r, point_before(&points, point), out);
	crash_points_release(&points);
}

static int check_faults(struct checker *c, const struct image *img, uint64_t point,
			const struct media_faults *faults, const struct image *old, struct err *err)
{
	auto_strbuf words = STRBUF_INIT;
	auto_image bad = IMAGE_INIT;

	image_snapshot(img, &bad);
	media_apply(faults, old, &bad);
	media_format(faults, &words);
	setenv("OUTAGE_MEDIA", strbuf_str(&words), 1);
	int rc = check_image(c, &bad, point, err);
	unsetenv("OUTAGE_MEDIA");
	return rc;
}

/* ---- what a worker tells ---- */

enum said { SAID_FAILURE, SAID_CHANGE, SAID_COUNTS, SAID_ERROR, SAID_END };

struct message {
	enum said what;
	/* a failure */
	uint64_t point, n_lost, n_survived;
	enum crash_layer layer;
	enum semantic_cause cause;
	uint64_t prefix;
	enum check_end end;
	int exit_code, signal;
	size_t id_len, said_len;
	bool media;
	struct media_fault fault;
	struct hash128 change;
	/* counts, since the start */
	uint64_t checked, failing, errors, known, media_states;
	double media_left_out;
	bool stopped;
	struct crash_stats stats;
};

static size_t listed(uint64_t n)
{
	return (size_t)min(n, (uint64_t)PM_LIST_MAX);
}

static int tell(int fd, const struct message *m, const struct crash_state *s, const char *id,
		const char *said)
{
	int rc = io_write_full(fd, m, sizeof(*m));

	if (!rc && m->id_len)
		rc = io_write_full(fd, id, m->id_len);
	if (!rc && m->n_lost)
		rc = io_write_full(fd, s->gone.v, listed(m->n_lost) * sizeof(*s->gone.v));
	if (!rc && m->n_survived)
		rc = io_write_full(fd, s->survived.v, listed(m->n_survived) * sizeof(uint64_t));
	if (!rc && m->said_len)
		rc = io_write_full(fd, said, m->said_len);
	return rc;
}

struct reason {
	uint64_t point;
	struct pm_key key;
	uint64_t failed, skipped;
};

struct worker {
	const struct pm_search_opts *o;
	unsigned number, of;
	int fd;
	uint64_t until_ns; /* 0: no limit */
	struct checker c;
	struct message counts;
	/*
	 * Between two marks a state comes once, with the least that survives; if it is one of
	 * these, nothing need be lost for it. After another mark, it must be lost.
	 */
	struct pm_prefixes prefixes;
	/* Reasons for which states of one point failed, and how often. */
	struct vec_of(struct reason) reasons;
	struct crash_points points;
	struct crash *states; /* the enumerator, before the first state */
	/* What the memory held at the crash point before the last state that got bad lines. */
	struct image old;
	uint64_t old_at;
	struct hashset changes; /* that were told */
	struct hashset bad;	/* images with bad lines that were checked */
};

static int tell_failure(struct worker *w, const struct crash_state *s,
			const struct media_fault *fault)
{
	auto_strbuf id = STRBUF_INIT;
	const struct check_result *r = &w->c.r;
	struct message m = { .what = SAID_FAILURE,
			     .point = s->point,
			     .n_lost = s->gone.n,
			     .n_survived = s->survived.n,
			     .layer = s->layer,
			     .end = r->end,
			     .exit_code = r->exit_code,
			     .signal = r->signal,
			     .media = fault };

	m.cause = pm_cause_of(&w->prefixes, s, &m.prefix);
	strbuf_adds(&id, strbuf_str(&s->id));
	if (fault) {
		struct media_faults one = { 0 };

		vec_push(&one, *fault);
		strbuf_addch(&id, '/');
		media_format(&one, &id);
		vec_release(&one);
		m.fault = *fault;
	}
	m.id_len = id.len;
	m.said_len = min(r->output.len, said_max(w->o->run));
	return tell(w->fd, &m, s, strbuf_str(&id), strbuf_str(&r->output));
}

static int tell_error(struct worker *w, const char *text)
{
	struct message m = { .what = SAID_ERROR, .said_len = strlen(text) };

	return tell(w->fd, &m, NULL, NULL, text);
}

struct changed {
	struct hash128 what;
	bool any;
};

/* Words that are not what they were, wherever the rest comes from. */
static int add_changed(void *ctx, uint64_t page, const unsigned char *a, const unsigned char *b)
{
	struct changed *x = ctx;

	for (size_t i = 0; i < IMAGE_PAGE; i += 8) {
		uint64_t word[2] = { page * IMAGE_PAGE + i, 0 };

		if (memcmp(a + i, b + i, 8) == 0)
			continue;
		memcpy(&word[1], b + i, 8);
		x->what = hash_add(x->what, hash_bytes(word, sizeof(word)));
		x->any = true;
	}
	return 0;
}

/* What the commands did to the file is what they do to recover. */
static int tell_change(struct worker *w, const struct crash_state *s)
{
	struct message m = { .what = SAID_CHANGE, .id_len = s->id.len };
	auto_image now = IMAGE_INIT;
	struct changed x = { 0 };

	if (image_load_file(w->o->run->plan.file, &now, NULL) || now.size != s->image.size)
		return 0;
	(void)!image_diff(&s->image, &now, add_changed, &x);
	if (!x.any || !hashset_insert(&w->changes, x.what))
		return 0;
	m.change = x.what;
	return tell(w->fd, &m, NULL, strbuf_str(&s->id), NULL);
}

/* ---- reasons ---- */

enum { SAMPLE_EVERY = 16 };

/* A state as a failure, as far as its key is concerned. */
static struct pm_key key_of_state(struct worker *w, const struct crash_state *s)
{
	struct pm_failure f = { .point = s->point, .n_lost = s->gone.n, .lost = s->gone.v };

	f.cause = pm_cause_of(&w->prefixes, s, &f.prefix);
	return pm_failure_key(w->o->run, &f);
}

static void note_reason(struct worker *w, const struct crash_state *s)
{
	struct pm_key k = key_of_state(w, s);

	for (size_t i = 0; i < w->reasons.n; i++) {
		struct reason *r = &w->reasons.v[i];

		if (r->point != s->point || !pm_key_explains(&k, &r->key))
			continue;
		r->failed++;
		pm_key_release(&k);
		return;
	}
	vec_push(&w->reasons, (struct reason){ s->point, k, 1, 0 });
}

static bool is_enough(const struct worker *w, const struct reason *r, uint64_t point)
{
	return r->point == point && r->failed >= w->o->run->plan.enough;
}

/*
 * Whether a state would say what is known: it loses all that, at the same point, was enough to
 * fail many times. One of so many is tried all the same.
 */
static bool is_known(struct worker *w, const struct crash_state *s)
{
	struct reason *known = NULL;
	size_t first = 0;

	if (!w->o->run->plan.enough || w->o->run->plan.dump)
		return false;
	while (first < w->reasons.n && !is_enough(w, &w->reasons.v[first], s->point))
		first++;
	if (first == w->reasons.n)
		return false;
	struct pm_key k = key_of_state(w, s);
	for (size_t i = first; i < w->reasons.n && !known; i++)
		if (is_enough(w, &w->reasons.v[i], s->point) &&
		    pm_key_explains(&k, &w->reasons.v[i].key))
			known = &w->reasons.v[i];
	pm_key_release(&k);
	bool skip = known && ++known->skipped % SAMPLE_EVERY;
	w->counts.known += skip;
	return skip;
}

static int do_state(struct worker *w, const struct crash_state *s)
{
	struct err err = ERR_INIT;
	int rc = check_image(&w->c, &s->image, s->point, &err);

	if (rc || w->c.r.end == CHECK_ERROR) {
		w->counts.errors++;
		return tell_error(w, rc ? err.msg : strbuf_str(&w->c.r.output));
	}
	w->counts.checked++;
	w->counts.failing += w->c.r.end != CHECK_PASSED;
	if (w->o->run->plan.dump && w->c.r.output_cut) {
		w->counts.errors++;
		return tell_error(w, "the dump prints more than 64 KiB; let it print a checksum of "
				     "what is large");
	}
	if (w->c.r.end != CHECK_PASSED && w->o->run->plan.enough && !w->o->run->plan.dump)
		note_reason(w, s);
	if (w->c.r.end != CHECK_PASSED || w->o->run->plan.dump)
		rc = tell_failure(w, s, NULL);
	if (!rc && w->o->changes && w->c.r.end == CHECK_PASSED)
		rc = tell_change(w, s);
	return rc;
}

static int do_fault(struct worker *w, const struct crash_state *s, struct media_fault fault)
{
	struct media_faults one = { 0 };
	struct err err = ERR_INIT;

	vec_push(&one, fault);
	int rc = check_faults(&w->c, &s->image, s->point, &one, &w->old, &err);
	vec_release(&one);
	if (rc || w->c.r.end == CHECK_ERROR) {
		w->counts.errors++;
		return tell_error(w, rc ? err.msg : strbuf_str(&w->c.r.output));
	}
	w->counts.checked++;
	w->counts.media_states++;
	w->counts.failing += w->c.r.end != CHECK_PASSED;
	return w->c.r.end == CHECK_PASSED ? 0 : tell_failure(w, s, &fault);
}

/* Whether a line with a fault is another state, and one that was not tried. */
static bool is_new_fault(struct worker *w, const struct crash_state *s, struct media_fault fault)
{
	struct media_faults one = { 0 };
	auto_image bad = IMAGE_INIT;

	image_snapshot(&s->image, &bad);
	vec_push(&one, fault);
	media_apply(&one, &w->old, &bad);
	vec_release(&one);
	struct hash128 h = image_hash(&bad);
	return !hash_eq(h, s->hash) && hashset_insert(&w->bad, h);
}

/* Lines that were being written: of states where nothing, or everything, survived. */
static int do_media(struct worker *w, const struct crash_state *s)
{
	const struct pm_run *r = w->o->run;
	uint64_t from = point_before(&w->points, s->point), tried = 0;
	struct media_lines lines = { 0 };
	int rc = 0;

	if (s->layer != CRASH_NONE && s->layer != CRASH_ALL)
		return 0;
	if (w->old_at != from) {
		image_release(&w->old);
		image_at(r, from, &w->old);
		w->old_at = from;
	}
	media_lines(&r->trace, from, s->point, &lines);
	for (size_t i = 0; !rc && i < lines.n; i++)
		for (unsigned k = MEDIA_POISON; !rc && k <= MEDIA_STALE; k++) {
			struct media_fault fault = { (enum media_kind)k, lines.v[i] };

			if (!(r->plan.media & 1u << k) || !is_new_fault(w, s, fault))
				continue;
			if (tried++ < r->plan.media_max)
				rc = do_fault(w, s, fault);
			else
				w->counts.media_left_out++;
		}
	vec_release(&lines);
	return rc;
}

/* What all workers have in common. */
static int prepare(struct worker *w, struct err *err)
{
	struct crash_opts opts = pm_run_crash(w->o->run);

	pm_run_points(w->o->run, &w->points);
	opts.points = w->points.v;
	opts.n_points = w->points.n;
	opts.stop = w->o->stop;
	if (w->o->reads) {
		opts.vary = pm_reads_vary;
		opts.vary_ctx = w->o->reads;
	}
	pm_prefixes_find(&w->o->run->trace, &w->o->run->base, w->o->run->where.noticed,
			 &w->prefixes);
	return crash_new(&w->o->run->trace, &opts, &w->states, err);
}

static void worker_release(struct worker *w)
{
	crash_free(w->states);
	crash_points_release(&w->points);
	pm_prefixes_release(&w->prefixes);
}

static int enumerate(struct worker *w)
{
	auto_crash_state s = CRASH_STATE_INIT;
	int rc = 0;

	for (uint64_t n = 0; !rc && crash_next(w->states, &s); n++) {
		if (n % w->of != w->number)
			continue;
		if (w->until_ns && util_now_ns() > w->until_ns) {
			w->counts.stopped = true;
			break;
		}
		if (is_known(w, &s))
			continue;
		rc = do_state(w, &s);
		if (!rc && w->o->run->plan.media)
			rc = do_media(w, &s);
		if (!rc && w->counts.checked % TELL_EVERY == 0)
			rc = tell(w->fd, &w->counts, NULL, NULL, NULL);
	}
	crash_stats(w->states, &w->counts.stats);
	return rc;
}

static void work(struct worker *w, pid_t parent)
{
	struct err err = ERR_INIT;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	signal(SIGINT, SIG_IGN); /* a terminal sends it to all; the parent decides */
	signal(SIGPIPE, SIG_IGN);
	w->counts.what = SAID_COUNTS;
	int rc = checker_init(&w->c, w->o->run, &err);
	if (!rc)
		rc = enumerate(w);
	if (rc && err.code) {
		w->counts.errors++;
		(void)!tell_error(w, err.msg);
	}
	w->counts.what = SAID_END;
	_exit(tell(w->fd, &w->counts, NULL, NULL, NULL) ? 1 : 0);
}

/* ---- the parent ---- */

struct slot {
	pid_t pid;
	int fd; /* -1: it has ended */
	struct message last;
	bool ended;
};

struct search {
	const struct pm_search_opts *o;
	struct pm_found *found;
	struct slot slot[JOBS_MAX];
	unsigned jobs;
};

static void first_error(struct pm_found *f, const char *text)
{
	if (!f->error[0])
		snprintf(f->error, sizeof(f->error), "%s", text);
}

static bool read_part(int fd, void *to, size_t len)
{
	return !len || io_read_full(fd, to, len) == (ssize_t)len;
}

static bool hear_failure(struct search *x, int fd, const struct message *m)
{
	struct pm_failure f = { .point = m->point,
				.layer = m->layer,
				.end = m->end,
				.exit_code = m->exit_code,
				.signal = m->signal,
				.cause = m->cause,
				.prefix = m->prefix,
				.n_lost = m->n_lost,
				.n_survived = m->n_survived,
				.media = m->media,
				.fault = m->fault };
	size_t lost = listed(m->n_lost), survived = listed(m->n_survived);
	bool all = x->o->run->plan.dump;

	f.state = xcalloc(1, m->id_len + 1);
	f.lost = xcalloc(lost + 1, sizeof(*f.lost));
	f.survived = xcalloc(survived + 1, sizeof(*f.survived));
	f.said = xcalloc(1, m->said_len + 1);
	bool good = read_part(fd, f.state, m->id_len) &&
		    read_part(fd, f.lost, lost * sizeof(*f.lost)) &&
		    read_part(fd, f.survived, survived * sizeof(*f.survived)) &&
		    read_part(fd, f.said, m->said_len);
	if (good && !all && x->o->failed)
		x->o->failed(x->o->ctx, &f);
	if (good && (all || x->found->failures.n < FAILURES_MAX))
		vec_push(&x->found->failures, f);
	else
		pm_failure_release(&f);
	return good;
}

static bool hear(struct search *x, struct slot *s)
{
	struct message m;

	if (!read_part(s->fd, &m, sizeof(m)))
		return false;
	if (m.what == SAID_FAILURE)
		return hear_failure(x, s->fd, &m);
	if (m.what == SAID_CHANGE) {
		struct pm_change c = { m.change, xcalloc(1, m.id_len + 1) };
		bool good = read_part(s->fd, c.state, m.id_len);

		vec_push(&x->found->changes, c);
		return good;
	}
	if (m.what == SAID_ERROR) {
		auto_free char *text = xcalloc(1, m.said_len + 1);
		bool good = read_part(s->fd, text, m.said_len);

		first_error(x->found, text);
		return good;
	}
	s->last = m;
	s->ended = m.what == SAID_END;
	return !s->ended;
}

static void close_slot(struct search *x, struct slot *s)
{
	if (!s->ended) {
		s->last.errors++;
		first_error(x->found, "a process that checks crash states was killed");
	}
	util_close(steal_fd(&s->fd));
	while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static int start_workers(struct search *x, const struct worker *common, struct err *err)
{
	uint64_t until = x->o->time_ns ? util_now_ns() + x->o->time_ns : 0;
	pid_t parent = getpid();

	for (unsigned i = 0; i < x->jobs; i++) {
		int fds[2];

		if (pipe2(fds, O_CLOEXEC))
			return err_set(err, -errno, "cannot make a pipe: %m");
		pid_t pid = fork();
		if (!pid) {
			struct worker w = *common;

			w.number = i;
			w.of = x->jobs;
			w.fd = fds[1];
			w.until_ns = until;
			w.old_at = UINT64_MAX;

			for (unsigned j = 0; j < i; j++)
				util_close(x->slot[j].fd);
			util_close(fds[0]);
			work(&w, parent);
		}
		util_close(fds[1]);
		if (pid < 0) {
			util_close(fds[0]);
			return err_set(err, -errno, "cannot start a process: %m");
		}
		x->slot[i] = (struct slot){ .pid = pid, .fd = fds[0] };
	}
	return 0;
}

static void add_up(struct search *x)
{
	struct pm_found *f = x->found;

	f->checked = f->failing = f->errors = f->known = f->media = 0;
	f->media_left_out = 0;
	for (unsigned i = 0; i < x->jobs; i++) {
		const struct message *m = &x->slot[i].last;

		f->checked += m->checked;
		f->failing += m->failing;
		f->errors += m->errors;
		f->known += m->known;
		f->media += m->media_states;
		f->media_left_out += m->media_left_out;
		f->stopped |= m->stopped;
		if (m->stats.tried > f->stats.tried) /* all go through the same */
			f->stats = m->stats;
	}
}

static bool listen_all(struct search *x)
{
	struct pollfd fds[JOBS_MAX];
	bool any = false;

	for (unsigned i = 0; i < x->jobs; i++) {
		fds[i] = (struct pollfd){ x->slot[i].fd, POLLIN, 0 };
		any |= x->slot[i].fd >= 0;
	}
	if (!any)
		return false;
	poll(fds, x->jobs, POLL_MS);
	for (unsigned i = 0; i < x->jobs; i++)
		if (x->slot[i].fd >= 0 && fds[i].revents && !hear(x, &x->slot[i]))
			close_slot(x, &x->slot[i]);
	return true;
}

static void stop_workers(struct search *x)
{
	for (unsigned i = 0; i < x->jobs; i++) {
		struct slot *s = &x->slot[i];

		if (s->fd < 0)
			continue;
		kill(s->pid, SIGKILL);
		s->ended = true;
		close_slot(x, s);
	}
}

int pm_search(const struct pm_search_opts *o, struct pm_found *out, struct err *err)
{
	struct search *x = xcalloc(1, sizeof(*x));

	*out = (struct pm_found){ 0 };
	x->o = o;
	x->found = out;
	x->jobs = min(max(o->jobs, 1u), (unsigned)JOBS_MAX);
	for (unsigned i = 0; i < x->jobs; i++)
		x->slot[i].fd = -1;
	struct worker common = { .o = o };
	int rc = prepare(&common, err);
	if (!rc)
		rc = start_workers(x, &common, err);
	while (!rc && !(o->stop && *o->stop) && listen_all(x)) {
		add_up(x);
		if (o->progress)
			o->progress(o->ctx, out->checked, out->failing);
	}
	stop_workers(x);
	worker_release(&common);
	add_up(x);
	out->stopped |= o->stop && *o->stop;
	free(x);
	return rc;
}

/* ---- one state, by its id ---- */

struct one {
	const struct pm_run *run;
	const char *id;
};

struct one_end {
	enum check_end end;
	int exit_code, signal;
	uint64_t point;
	char said[CHECK_OUTPUT_MAX + 1];
};

static int replay_fault(struct checker *c, const struct crash_state *s, const char *text,
			struct err *err)
{
	auto_media_faults faults = { 0 };
	auto_image old = IMAGE_INIT;
	int rc = media_parse(text, c->run->base.size, &faults, err);

	if (rc)
		return rc;
	pm_image_before(c->run, s->point, &old);
	return check_faults(c, &s->image, s->point, &faults, &old, err);
}

static int check_one(void *ctx, void *out, struct err *err)
{
	const struct one *o = ctx;
	struct one_end *end = out;
	struct crash_opts opts = pm_run_crash(o->run);
	auto_crash_state s = CRASH_STATE_INIT;
	auto_free char *id = xstrdup(o->id);
	char *fault = strchr(id, '/');
	struct checker c;

	if (fault)
		*fault++ = 0;
	int rc = crash_replay(&o->run->trace, &opts, id, &s, err);
	if (!rc)
		rc = checker_init(&c, o->run, err);
	if (!rc)
		rc = fault ? replay_fault(&c, &s, fault, err)
			   : check_image(&c, &s.image, s.point, err);
	if (rc)
		return rc;
	*end = (struct one_end){
		.end = c.r.end, .exit_code = c.r.exit_code, .signal = c.r.signal, .point = s.point
	};
	snprintf(end->said, sizeof(end->said), "%s", strbuf_str(&c.r.output));
	return 0;
}

/* "r3:ID": the state ID of what was done to recover the third time. */
static int search_nested(const struct pm_run *r, const char *id, struct pm_failure *f,
			 struct err *err)
{
	char *rest;
	unsigned long long number = strtoull(id + 1, &rest, 10);
	auto_free char *dir = xasprintf("%s/recovery/%llu", r->dir, number);
	struct pm_run nested;

	if (*rest != ':' || rest[1] == 'r')
		return err_set(err, -EINVAL, "'%.80s' is not the id of a crash state", id);
	int rc = pm_run_load(dir, &nested, err);
	if (rc)
		return rc;
	/* What is run is what the run says, wherever the trace comes from. */
	free(nested.plan.file);
	free(nested.plan.dir);
	free(nested.plan.check);
	free(nested.plan.dump);
	free(nested.plan.recover);
	nested.plan.file = xstrdup(r->plan.file);
	nested.plan.dir = xstrdup(r->plan.dir);
	nested.plan.check = r->plan.check ? xstrdup(r->plan.check) : NULL;
	nested.plan.dump = r->plan.dump ? xstrdup(r->plan.dump) : NULL;
	nested.plan.recover = r->plan.recover ? xstrdup(r->plan.recover) : NULL;
	rc = pm_search_one(&nested, rest + 1, f, err);
	pm_run_release(&nested);
	return rc;
}

int pm_search_one(const struct pm_run *r, const char *id, struct pm_failure *f, struct err *err)
{
	if (id[0] == 'r')
		return search_nested(r, id, f, err);
	struct one o = { r, id };
	struct one_end *end = xcalloc(1, sizeof(*end));
	int rc = pm_in_child(check_one, &o, end, sizeof(*end), r->stop, err);

	if (!rc && end->end == CHECK_ERROR)
		rc = err_set(err, -ECHILD, "the check could not be run: %.300s", end->said);
	if (!rc)
		*f = (struct pm_failure){ .state = xstrdup(id),
					  .point = end->point,
					  .end = end->end,
					  .exit_code = end->exit_code,
					  .signal = end->signal,
					  .said = xstrdup(end->said) };
	free(end);
	return rc;
}
