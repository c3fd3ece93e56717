/* SPDX-License-Identifier: MIT */
/* worker.c - see worker.h. */
#include "pm/worker.h"

#include <errno.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/io.h"
#include "core/hashset.h"
#include "pm/reads.h"
#include "pm/trial.h"

enum { SAID_MAX = 4096 };

/* What a dump prints is all that counts; of a check, the beginning will do. */
static size_t said_max(const struct pm_run *r)
{
	return r->plan.dump ? CHECK_OUTPUT_MAX : SAID_MAX;
}

/* ---- what is told ---- */

static int tell(int fd, const struct pm_message *m, const struct crash_state *s, const char *id,
		const char *said)
{
	int rc = io_write_full(fd, m, sizeof(*m));

	if (!rc && m->id_len)
		rc = io_write_full(fd, id, m->id_len);
	if (!rc && m->n_lost)
		rc = io_write_full(fd, s->gone.v, pm_listed(m->n_lost) * sizeof(*s->gone.v));
	if (!rc && m->n_survived)
		rc = io_write_full(fd, s->survived.v, pm_listed(m->n_survived) * sizeof(uint64_t));
	if (!rc && m->said_len)
		rc = io_write_full(fd, said, m->said_len);
	return rc;
}

/* What was lost when states of a point failed, how often, and how many were left out for it. */
struct reason {
	uint64_t point;
	struct pm_key key;
	uint64_t failed, skipped;
};

struct pm_worker {
	const struct pm_search_opts *o;
	struct pm_share share;
	struct pm_trial trial;
	struct pm_message counts;
	/*
	 * Between two marks a state comes once, with the least that survives; if it is one of
	 * these, nothing need be lost for it. After another mark, it must be lost.
	 */
	struct pm_prefixes prefixes;
	struct vec_of(struct reason) reasons;
	struct crash_points points;
	struct crash *states; /* the enumerator, before the first state */
	/* What the memory held at the crash point before the last state that got bad lines. */
	struct image old;
	uint64_t old_at;
	struct hashset changes; /* that were told */
	struct hashset bad;	/* images with bad lines that were checked */
};

static int tell_failure(struct pm_worker *w, const struct crash_state *s,
			const struct media_fault *fault)
{
	auto_strbuf id = STRBUF_INIT;
	const struct check_result *r = &w->trial.r;
	struct pm_message m = w->counts;

	m.what = SAID_FAILURE;
	m.point = s->point;
	m.n_lost = s->gone.n;
	m.n_survived = s->survived.n;
	m.layer = s->layer;
	m.end = r->end;
	m.exit_code = r->exit_code;
	m.signal = r->signal;
	m.media = fault;
	m.cause = pm_cause_of(&w->prefixes, s, &m.prefix);
	strbuf_adds(&id, strbuf_str(&s->id));
	if (fault) {
		auto_media_faults one = { 0 };

		vec_push(&one, *fault);
		strbuf_addch(&id, '/');
		media_format(&one, &id);
		m.fault = *fault;
	}
	m.id_len = id.len;
	m.said_len = min(r->output.len, said_max(w->o->run));
	return tell(w->share.fd, &m, s, strbuf_str(&id), strbuf_str(&r->output));
}

static int tell_error(struct pm_worker *w, const char *text)
{
	struct pm_message m = { .what = SAID_ERROR, .said_len = strlen(text) };

	return tell(w->share.fd, &m, NULL, NULL, text);
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
static int tell_change(struct pm_worker *w, const struct crash_state *s)
{
	struct pm_message m = { .what = SAID_CHANGE, .id_len = s->id.len };
	auto_image now = IMAGE_INIT;
	struct changed x = { 0 };

	if (image_load_file(w->o->run->plan.file, &now, NULL) || now.size != s->image.size)
		return 0;
	(void)!image_diff(&s->image, &now, add_changed, &x);
	if (!x.any || !hashset_insert(&w->changes, x.what))
		return 0;
	m.change = x.what;
	return tell(w->share.fd, &m, NULL, strbuf_str(&s->id), NULL);
}

/* ---- reasons ---- */

enum { SAMPLE_EVERY = 16 };

/* A state as a failure, as far as its key is concerned. */
static struct pm_key key_of_state(struct pm_worker *w, const struct crash_state *s)
{
	struct pm_failure f = { .point = s->point, .n_lost = s->gone.n, .lost = s->gone.v };

	f.cause = pm_cause_of(&w->prefixes, s, &f.prefix);
	return pm_failure_key(w->o->run, &f);
}

static void note_reason(struct pm_worker *w, const struct crash_state *s)
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

static bool is_enough(const struct pm_worker *w, const struct reason *r, uint64_t point)
{
	return r->point == point && r->failed >= w->o->run->plan.enough;
}

/*
 * Whether a state would say what is known: it loses all that, at the same point, was enough to
 * fail many times. One of so many is tried all the same.
 */
static bool is_known(struct pm_worker *w, const struct crash_state *s)
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

/* ---- what is checked ---- */

/* Takes what the trial of a state came to; false if it came to nothing, and that was told. */
static bool count_state(struct pm_worker *w, int rc, const struct err *err, int *told)
{
	const struct check_result *r = &w->trial.r;

	*told = 0;
	if (rc || r->end == CHECK_ERROR) {
		w->counts.errors++;
		*told = tell_error(w, rc ? err->msg : strbuf_str(&r->output));
		return false;
	}
	w->counts.checked++;
	w->counts.failing += r->end != CHECK_PASSED;
	return true;
}

static int do_state(struct pm_worker *w, const struct crash_state *s)
{
	struct err err = ERR_INIT;
	const struct pm_plan *plan = &w->o->run->plan;
	int rc = pm_trial_check(&w->trial, &s->image, s->point, &err);

	if (!count_state(w, rc, &err, &rc))
		return rc;
	bool passed = w->trial.r.end == CHECK_PASSED;
	if (plan->dump && w->trial.r.output_cut) {
		w->counts.errors++;
		return tell_error(w, "the dump prints more than 64 KiB; let it print a checksum of "
				     "what is large");
	}
	if (!passed && plan->enough && !plan->dump)
		note_reason(w, s);
	if (!passed || plan->dump)
		rc = tell_failure(w, s, NULL);
	if (!rc && w->o->changes && passed)
		rc = tell_change(w, s);
	return rc;
}

static bool is_late(struct pm_worker *w)
{
	w->counts.stopped |= w->share.until_ns && util_now_ns() > w->share.until_ns;
	return w->counts.stopped;
}

static int do_fault(struct pm_worker *w, const struct crash_state *s, struct media_fault fault)
{
	auto_media_faults one = { 0 };
	struct err err = ERR_INIT;

	vec_push(&one, fault);
	int rc = pm_trial_check_bad(&w->trial, &s->image, s->point, &one, &w->old, &err);
	if (!count_state(w, rc, &err, &rc))
		return rc;
	w->counts.media_states++;
	return w->trial.r.end == CHECK_PASSED ? 0 : tell_failure(w, s, &fault);
}

/* Whether a line with a fault is another state, and one that was not tried. */
static bool is_new_fault(struct pm_worker *w, const struct crash_state *s, struct media_fault fault)
{
	auto_media_faults one = { 0 };
	auto_image bad = IMAGE_INIT;

	image_snapshot(&s->image, &bad);
	vec_push(&one, fault);
	media_apply(&one, &w->old, &bad);
	struct hash128 h = image_hash(&bad);
	return !hash_eq(h, s->hash) && hashset_insert(&w->bad, h);
}

/* Lines that were being written: of states where nothing, or everything, survived. */
static int do_media(struct pm_worker *w, const struct crash_state *s)
{
	const struct pm_run *r = w->o->run;
	uint64_t from = pm_point_before(&w->points, s->point), tried = 0;
	struct media_lines lines = { 0 };
	int rc = 0;

	if (s->layer != CRASH_NONE && s->layer != CRASH_ALL)
		return 0;
	if (w->old_at != from) {
		image_release(&w->old);
		pm_image_at(r, from, &w->old);
		w->old_at = from;
	}
	media_lines(&r->trace, from, s->point, &lines);
	for (size_t i = 0; !rc && i < lines.n; i++)
		for (unsigned k = MEDIA_POISON; !rc && k <= MEDIA_STALE; k++) {
			struct media_fault fault = { (enum media_kind)k, lines.v[i] };

			if (!(r->plan.media & 1u << k) || !is_new_fault(w, s, fault))
				continue;
			if (tried++ < r->plan.media_max && !is_late(w))
				rc = do_fault(w, s, fault);
			else
				w->counts.media_left_out++;
		}
	vec_release(&lines);
	return rc;
}

/* ---- life ---- */

int pm_worker_new(const struct pm_search_opts *o, struct pm_worker **out, struct err *err)
{
	struct crash_opts opts = pm_run_crash(o->run);
	struct pm_worker *w = xcalloc(1, sizeof(*w));

	w->o = o;
	w->old_at = UINT64_MAX;
	pm_run_points(o->run, &w->points);
	opts.points = w->points.v;
	opts.n_points = w->points.n;
	opts.stop = o->stop;
	if (o->reads) {
		opts.vary = pm_reads_vary;
		opts.vary_ctx = o->reads;
	}
	pm_prefixes_find(&o->run->trace, &o->run->base, o->run->where.noticed, &w->prefixes);
	int rc = crash_new(&o->run->trace, &opts, &w->states, err);
	if (rc)
		pm_worker_free(w);
	else
		*out = w;
	return rc;
}

void pm_worker_free(struct pm_worker *w)
{
	if (!w)
		return;
	crash_free(w->states);
	crash_points_release(&w->points);
	pm_prefixes_release(&w->prefixes);
	free(w);
}

static int enumerate(struct pm_worker *w)
{
	auto_crash_state s = CRASH_STATE_INIT;
	int rc = 0;

	for (uint64_t n = 0; !rc && crash_next(w->states, &s); n++) {
		if (n % w->share.of != w->share.number)
			continue;
		if (is_late(w))
			break;
		if (is_known(w, &s))
			continue;
		crash_stats(w->states, &w->counts.stats);
		rc = do_state(w, &s);
		if (!rc && w->o->run->plan.media)
			rc = do_media(w, &s);
		/* After each: a check may take long, and the run may be stopped in the next. */
		if (!rc)
			rc = tell(w->share.fd, &w->counts, NULL, NULL, NULL);
	}
	crash_stats(w->states, &w->counts.stats);
	return rc;
}

void pm_work(struct pm_worker *w, const struct pm_share *share)
{
	struct err err = ERR_INIT;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != share->parent)
		_exit(1);
	signal(SIGINT, SIG_IGN); /* a terminal sends it to all; the parent decides */
	signal(SIGPIPE, SIG_IGN);
	w->share = *share;
	w->counts.what = SAID_COUNTS;
	int rc = pm_trial_init(&w->trial, w->o->run, &err);
	if (!rc)
		rc = enumerate(w);
	if (rc && err.code) {
		w->counts.errors++;
		(void)!tell_error(w, err.msg);
	}
	w->counts.what = SAID_END;
	_exit(tell(w->share.fd, &w->counts, NULL, NULL, NULL) ? 1 : 0);
}
