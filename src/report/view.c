/* SPDX-License-Identifier: MIT */
/* view.c - loads a case or a run, and computes the facts that reports show. */
#include "report/view.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#include "base/below.h"
#include "base/io.h"
#include "case/given.h"
#include "fs/reffs.h"
#include "run/attempt.h"
#include "run/replay.h"

/* ---- a case ---- */

static void load_crash(const struct stored_case *of, const char *id, struct view_crash *c,
		       struct err *err)
{
	/* Survival does not depend on the disk's content, so the content is not read. */
	c->pm = stored_case_pm(of);
	if (c->has_trace && id)
		c->has_state = pm_choice_replay(&c->pm, &c->trace, NULL, id, &c->state, err) == 0;
}

/* Loads the crashes. If one cannot be read, the report says so: a guess could be wrong. */
static void load_crashes(struct view *v)
{
	struct err why = ERR_INIT;
	const char *second;
	auto_free char *first = stored_case_state(&v->c, &second);

	v->crash.has_trace = replay_trace(&v->c, &v->crash.trace, &why) == 0;
	load_crash(&v->c, stored_case_live(&v->c) ? NULL : first, &v->crash, &why);
	v->second.has_trace = second && replay_recovery(&v->c, &v->second.trace, &why) == 0;
	load_crash(&v->c, second, &v->second, &why);
	if (!stored_case_live(&v->c) && (!v->crash.has_state || (second && !v->second.has_state)))
		v->no_trace = xstrdup(why.msg);
}

static void release_crash(struct view_crash *c)
{
	trace_release(&c->trace);
	crash_state_release(&c->state);
}

/* Reads a tree, and replaces its text by one for a person. */
static bool load_tree(struct strbuf *text, struct tree *out)
{
	static const struct tree_opts shown = { .blocks = false };
	struct err ignored = ERR_INIT;

	if (!text->len || tree_parse(text->buf, text->len, out, &ignored))
		return false;
	strbuf_clear(text);
	tree_print(out, &shown, 0, text);
	return true;
}

static int load_places(struct view *v, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;
	int rc = store_text(&v->c, "places", &text, err);

	if (rc || !text.len)
		return rc;
	v->places = xcalloc(1, sizeof(*v->places));
	places_parse(strbuf_str(&text), v->places);
	v->crash.places = v->second.places = v->places;
	return 0;
}

static int load_rest(struct view *v, struct err *err)
{
	static const struct tree_opts all = { .times = false };
	int rc = store_text(&v->c, "expected", &v->expected_text, err);

	if (!rc)
		rc = store_text(&v->c, "seen", &v->seen_text, err);
	if (!rc)
		rc = store_text(&v->c, "kernel-log", &v->kernel_log, err);
	if (!rc)
		rc = store_text(&v->c, "said", &v->said, err);
	if (!rc)
		rc = store_text(&v->c, "diagnosis", &v->diagnosis, err);
	if (!rc)
		rc = load_places(v, err);
	if (rc)
		return rc;
	v->has_expected = load_tree(&v->expected_text, &v->expected);
	v->has_seen = load_tree(&v->seen_text, &v->seen);
	if (v->has_expected && v->has_seen)
		tree_diff(&v->expected, &v->seen, &all, &v->diff);
	load_crashes(v);
	return 0;
}

int view_load(const char *dir, bool brief, struct view *out, struct err *err)
{
	*out = (struct view){ 0 };
	trace_init(&out->crash.trace);
	trace_init(&out->second.trace);
	int rc = store_load(dir, &out->c, err);

	if (!rc) {
		out->cluster = stored_case_cluster(&out->c);
		rc = brief ? 0 : load_rest(out, err);
	}
	if (rc)
		view_release(out);
	return rc;
}

void view_release(struct view *v)
{
	stored_case_release(&v->c);
	free(v->cluster);
	free(v->no_trace);
	release_crash(&v->crash);
	release_crash(&v->second);
	strbuf_release(&v->expected_text);
	strbuf_release(&v->seen_text);
	tree_diff_release(&v->diff);
	tree_release(&v->expected);
	tree_release(&v->seen);
	strbuf_release(&v->kernel_log);
	strbuf_release(&v->said);
	strbuf_release(&v->diagnosis);
	if (v->places)
		places_release(v->places);
	free(v->places);
	*v = (struct view){ 0 };
}

const char *view_place(const struct view_crash *c, const struct event *ev)
{
	return c->places && ev->pc ? places_find(c->places, ev->pc) : NULL;
}

const char *view_caller(const struct view_crash *c, const struct event *ev, size_t depth)
{
	uint64_t frames[EVENT_FRAMES_MAX];
	size_t n = c->places && ev->stack ? trace_stack(&c->trace, ev->stack, frames) : 0;

	return depth < n ? places_find(c->places, frames[depth]) : NULL;
}

static bool has_event(const uint64_t *v, size_t n, uint64_t event)
{
	return any_of(i, n, v[i] == event);
}

enum request_fate view_state_fate(const struct crash_state *s, uint64_t event)
{
	if (event >= s->point)
		return REQUEST_LATER;
	if (has_event(s->lost.v, s->lost.n, event))
		return REQUEST_LOST;
	if (any_of(i, s->torn.n, s->torn.v[i].event == event))
		return REQUEST_TORN;
	return has_event(s->survived.v, s->survived.n, event) ? REQUEST_SURVIVED : REQUEST_DURABLE;
}

enum request_fate view_fate(const struct view_crash *c, uint64_t event)
{
	return c->has_state ? view_state_fate(&c->state, event) : REQUEST_DURABLE;
}

const char *view_fate_name(enum request_fate f)
{
	static const char *const names[] = { "", "durable", "survived", "torn", "lost", "later" };

	assert((unsigned)f < ARRAY_SIZE(names));
	return names[f];
}

char *view_cause(const struct view *v)
{
	size_t n = strcspn(strbuf_str(&v->diagnosis), ":\n");

	return v->diagnosis.len ? xmemdupz(v->diagnosis.buf, n) : NULL;
}

void view_reference(const struct view *v, size_t n, bool no_reflink, struct tree *out)
{
	static const struct tree_opts all = { .dir_nlink = true };
	struct reffs_opts opts = { .no_reflink = no_reflink };
	struct reffs *fs = reffs_new(&opts);

	reffs_begin(fs, &v->c.workload);
	for (size_t i = 0; i < n; i++)
		(void)reffs_op(fs, &v->c.workload, i);
	struct reffs_state *now = reffs_save(fs);
	reffs_tree(now, &all, out);
	reffs_state_unref(now);
	reffs_free(fs);
}

size_t view_under_way(const struct view *v)
{
	for (uint64_t i = 0; v->crash.has_state && i < v->crash.state.point; i++) {
		const struct event *ev = &v->crash.trace.events.v[i];

		if (ev->kind == EV_OP_BEGIN && ev->ref == v->c.done)
			return v->c.done;
	}
	return v->c.workload.ops.n;
}

bool view_result(const struct view *v, size_t i, int32_t *result)
{
	for (size_t e = 0; v->crash.has_trace && e < v->crash.trace.events.n; e++) {
		const struct event *ev = &v->crash.trace.events.v[e];

		if (ev->kind == EV_OP_END && ev->ref == i) {
			*result = ev->result;
			return true;
		}
	}
	return false;
}

static bool is_inside(const struct trace *t, size_t i, size_t *from, size_t *to)
{
	bool begun = false;

	*to = t->events.n;
	for (size_t e = 0; e < t->events.n; e++) {
		const struct event *ev = &t->events.v[e];

		if (ev->ref != i)
			continue;
		if (ev->kind == EV_OP_BEGIN) {
			begun = true;
			*from = max(*from, e + 1);
		} else if (ev->kind == EV_OP_END) {
			*to = e;
			break;
		}
	}
	return begun;
}

static void add_marks(const struct view *v, size_t i, bool late, struct view_steps *out)
{
	const struct trace *t = &v->crash.trace;
	size_t from = 0, to;

	if (!v->crash.has_state || !is_inside(t, i, &from, &to))
		return;
	for (; from < to; from++)
		if (t->events.v[from].kind == EV_TEXT && (from >= v->crash.state.point) == late)
			vec_push(out, (struct view_step){ .kind = STEP_MARK,
							  .late = late,
							  .mark = &t->events.v[from] });
}

void view_steps(const struct view *v, struct view_steps *out)
{
	static const struct view_step crash = { .kind = STEP_CRASH };
	size_t during = view_under_way(v), n = v->c.workload.ops.n;
	bool live = stored_case_live(&v->c);

	for (size_t i = 0; i < n; i++) {
		struct view_step s = { .op = i, .under_way = i == during };
		int32_t result;

		if (!live && i == v->c.done && i != during)
			vec_push(out, crash);
		if (view_result(v, i, &result) && result < 0)
			s.error = -result;
		vec_push(out, s);
		add_marks(v, i, false, out);
		if (!live && i == during)
			vec_push(out, crash);
		add_marks(v, i, true, out);
	}
	if (!live && v->c.done >= n)
		vec_push(out, crash);
}

struct view_words view_torn_into(const struct crash_state *s)
{
	struct view_words words = { "" };
	uint64_t unit = UINT64_MAX;

	for (size_t i = 0; i < s->torn.n; i++)
		unit = min(unit, s->torn.v[i].unit);
	if (s->torn.n)
		snprintf(words.text, sizeof(words.text), " into units of %llu bytes", llu(unit));
	return words;
}

size_t view_recovered(const struct view_crash *c)
{
	return attempt_walked(&c->trace);
}

const char *view_problem_reason(const struct stored_problem *p, const char **joint)
{
	*joint = *p->promise ? "although" : "because";
	return *p->promise ? p->promise : finding_kind_why(p->kind);
}

/* ---- trees side by side ---- */

/*
 * Finds the next entry of the stored text, which has one line per entry, in order, after a first
 * line; lines that begin with a space belong to the entry above.
 */
static void next_entry(const char **at, const char **line, size_t *len)
{
	const char *end = *at;

	do {
		end += strcspn(end, "\n");
		end += *end == '\n';
	} while (*end == ' ');
	*line = *at;
	*len = (size_t)(end - *at);
	*at = end;
	while (*len && (*line)[*len - 1] == '\n')
		--*len;
}

static const char *skip_first(const struct strbuf *text)
{
	const char *at = strbuf_str(text), *line;
	size_t len;

	next_entry(&at, &line, &len);
	return at;
}

static bool differs(const struct view *v, const char *path)
{
	return any_of(i, v->diff.list.n, streq(v->diff.list.v[i].path, path));
}

static bool is_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return n && strncmp(path, dir, n) == 0 && path[n] == '/';
}

bool view_about(const struct view *v, const char *path)
{
	vec_each(p, &v->c.problems) {
		if (streq(p->path, path) || is_below(path, p->path))
			return true;
		/* The words have all names of a file. */
		if ((p->kind == FINDING_LOST || p->kind == FINDING_BOTH) && *path &&
		    strstr(p->words, path))
			return true;
	}
	return false;
}

void view_rows(const struct view *v, struct view_rows *out)
{
	const char *left = skip_first(&v->expected_text), *right = skip_first(&v->seen_text);
	size_t i = 0, k = 0;
	size_t n = v->has_expected ? v->expected.entries.n : 0;
	size_t m = v->has_seen ? v->seen.entries.n : 0;

	while (i < n || k < m) {
		struct view_row row = { .mark = ROW_SAME };
		int cmp = i == n   ? 1
			  : k == m ? -1
				   : tree_path_cmp(v->expected.entries.v[i].path,
						   v->seen.entries.v[k].path);

		if (cmp <= 0)
			next_entry(&left, &row.expected, &row.expected_len);
		if (cmp >= 0)
			next_entry(&right, &row.seen, &row.seen_len);
		if (cmp == 0 && differs(v, v->seen.entries.v[k].path))
			row.mark = ROW_CHANGED;
		if (cmp)
			row.mark = cmp < 0 ? ROW_MISSING : ROW_EXTRA;
		row.allowed = row.mark != ROW_SAME && v->has_seen &&
			      !view_about(v, cmp <= 0 ? v->expected.entries.v[i].path
						      : v->seen.entries.v[k].path);
		i += cmp <= 0;
		k += cmp >= 0;
		vec_push(out, row);
	}
}

/* ---- a run ---- */

static struct run_cluster *find_cluster(struct run_view *r, const char *name)
{
	return vec_find(i, &r->clusters, streq(r->clusters.v[i].name, name));
}

static void add_to_cluster(struct run_view *r, size_t at)
{
	const struct view *v = &r->cases.v[at];
	struct run_cluster *c = find_cluster(r, v->cluster);

	if (!c) {
		/* A case of an unfinished workload, or a case by itself, is not counted yet. */
		vec_push(&r->clusters,
			 (struct run_cluster){ .name = xstrdup(v->cluster),
					       .words = xstrdup(stored_case_first(&v->c)->words),
					       .first = RUN_NO_CASE });
		c = &vec_last(&r->clusters);
	}
	if (c->first == RUN_NO_CASE)
		c->first = (ssize_t)at;
	c->kept++;
	c->count = max(c->count, c->kept);
	for (size_t i = 0; i < v->c.problems.n; i++)
		c->kinds |= 1U << v->c.problems.v[i].kind;
}

/* True if a process is at work on the run: it holds a lock on this file. */
static bool is_locked(const char *run)
{
	struct err ignored = ERR_INIT;
	auto_fd fd = below_open(run, "progress", O_RDONLY, &ignored);

	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

void run_view_add_plan(struct run_view *v, const struct record_type *t, const void *plan)
{
	for (size_t i = 0; i < t->n; i++) {
		struct strbuf value = STRBUF_INIT;

		given_put(&t->fields[i], plan, &value);
		if (value.len)
			vec_push(&v->options, (struct run_option){ xstrdup(t->fields[i].key.name),
								   strbuf_detach(&value) });
	}
}

const char *run_view_option(const struct run_view *v, const char *key)
{
	for (size_t i = 0; i < v->options.n; i++)
		if (streq(v->options.v[i].key, key))
			return v->options.v[i].value;
	return NULL;
}

/* Loads the plan of a run. A finding has none; cli/explore_kept.c loads that of an exploration. */
static int load_about(struct run_view *r, struct err *err)
{
	if (!below_exists(r->dir, CASE_RUN) || case_is(r->dir, "explore"))
		return 0;
	int rc = case_plan_load(&plan_kept, r->dir, &r->plan, err);
	if (rc)
		return rc;
	r->has_plan = true;
	run_view_add_plan(r, &plan_record, &r->plan);
	r->under_way = is_locked(r->dir);
	rc = progress_load(r->dir, r->plan.workloads, &r->progress, err);
	for (size_t i = 0; !rc && i < r->progress.clusters.n; i++) {
		const struct progress_cluster *c = &r->progress.clusters.v[i];

		vec_push(&r->clusters, (struct run_cluster){ .name = xstrdup(c->name),
							     .words = xstrdup(c->words),
							     .kinds = c->kinds,
							     .first = RUN_NO_CASE,
							     .count = c->count });
	}
	return rc;
}

int run_view_load(const char *dir, struct run_view *out, struct err *err)
{
	auto_words list = { 0 };

	*out = (struct run_view){ .dir = xstrdup(dir), .progress = { .fd = -1 } };
	int rc = case_version_of(dir, &out->version, err);
	/* The directory of one case counts as a run with that finding alone. */
	if (!rc && case_is_one(dir))
		vec_push(&list, xstrdup(dir));
	else if (!rc)
		rc = case_list(dir, &list, err);
	if (!rc)
		rc = load_about(out, err);
	for (size_t i = 0; i < list.n && !rc; i++) {
		struct view v;

		rc = view_load(list.v[i], true, &v, err);
		if (rc)
			break;
		vec_push(&out->cases, v);
		add_to_cluster(out, out->cases.n - 1);
	}
	for (size_t i = 0; i < out->clusters.n; i++)
		out->findings += out->clusters.v[i].count;
	if (rc)
		run_view_release(out);
	return rc;
}

static void put_target(const struct run_view *v, struct strbuf *out)
{
	strbuf_addf(out, "%s, guarantee %s, Linux %s", v->plan.target, v->plan.guarantee,
		    v->plan.kernel);
}

static void put_started(const struct run_view *v, struct strbuf *out)
{
	strbuf_adds(out, v->plan.started ? v->plan.started : "");
}

static void put_version(const struct run_view *v, struct strbuf *out)
{
	strbuf_adds(out, v->version);
}

static void put_workloads(const struct run_view *v, struct strbuf *out)
{
	strbuf_addf(out, "%llu of %llu done", llu(v->progress.done), llu(v->plan.workloads));
	if (v->under_way) {
		strbuf_adds(out, "; it is under way");
	} else if (v->progress.done < v->plan.workloads) {
		strbuf_adds(out, "; it was interrupted, its time was up, or the others failed");
		if (!plan_from_stdin(&v->plan))
			strbuf_addf(out, "; to go on: outage test --resume %s", v->dir);
	}
}

static void put_states(const struct run_view *v, struct strbuf *out)
{
	const struct run_totals *t = &v->progress.totals;

	strbuf_addf(out, "%llu tried, %llu of them different", llu(t->crash_states),
		    llu(t->unique_states));
}

/* Adds the number of states left out. Large numbers are estimates, and have few digits. */
static void put_left_out(const struct run_view *v, struct strbuf *out)
{
	const struct run_totals *t = &v->progress.totals;

	if (!t->budget_hit)
		return;
	strbuf_addf(out, t->left_out < 1e9 ? "up to %.0f" : "up to %.3g", t->left_out);
	strbuf_addf(out, " crash %s, by the budget",
		    plural((uint64_t)t->left_out, "state", "states"));
	if (v->plan.crash.budget)
		strbuf_addf(out, " of %llu for each workload", llu(v->plan.crash.budget));
}

static void put_findings(const struct run_view *v, struct strbuf *out)
{
	strbuf_addf(out, "%llu in %zu %s", llu(v->findings), v->clusters.n,
		    plural(v->clusters.n, "cluster", "clusters"));
	if (v->findings)
		strbuf_addf(out, "; %zu kept", v->cases.n);
	if (v->findings > v->cases.n)
		strbuf_addf(out, ", %llu counted only", llu(v->findings - v->cases.n));
	if (v->progress.totals.suppressed)
		strbuf_addf(out, "; %llu more suppressed", llu(v->progress.totals.suppressed));
}

bool run_view_fact(const struct run_view *v, size_t i, const char **key, struct strbuf *value)
{
	static const struct {
		const char *key;
		void (*put)(const struct run_view *v, struct strbuf *out);
	} facts[] = {
		{ "version", put_version },	{ "target", put_target },
		{ "started", put_started },	{ "workloads", put_workloads },
		{ "crash states", put_states }, { "left out", put_left_out },
		{ "findings", put_findings },
	};

	strbuf_clear(value);
	if (i >= (v->has_plan ? ARRAY_SIZE(facts) : 1))
		return false;
	*key = facts[i].key;
	facts[i].put(v, value);
	return true;
}

void run_view_release(struct run_view *v)
{
	free(v->dir);
	free(v->version);
	vec_release_each(p, &v->options, free(p->key), free(p->value));
	if (v->has_plan)
		plan_release(&v->plan);
	progress_release(&v->progress);
	vec_release_each(p, &v->cases, view_release(p));
	vec_release_each(p, &v->clusters, free(p->name), free(p->words));
	*v = (struct run_view){ .progress = { .fd = -1 } };
}
