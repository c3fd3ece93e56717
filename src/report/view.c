/* SPDX-License-Identifier: MIT */
#include "report/view.h"

#include <errno.h>
#include <unistd.h>

#include "base/io.h"
#include "run/replay.h"

/* ---- a case ---- */

static void load_trace(struct view *v)
{
	struct crash_opts opts = CRASH_OPTS_INIT;
	struct err ignored = ERR_INIT;

	v->has_trace = replay_trace(&v->c, &v->trace, &ignored) == 0;
	err_clear(&ignored);
	/* What survived does not depend on the disk's content, so that need not be read. */
	const char *second;
	auto_free char *id = stored_case_state(&v->c, &second);
	if (v->has_trace && !stored_case_live(&v->c))
		v->has_state = crash_replay(&v->trace, &opts, id, &v->state, &ignored) == 0;
}

static bool load_tree(const struct strbuf *text, struct tree *out)
{
	struct err ignored = ERR_INIT;

	return text->len && tree_parse(text->buf, text->len, out, &ignored) == 0;
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
	if (rc)
		return rc;
	v->has_expected = load_tree(&v->expected_text, &v->expected);
	v->has_seen = load_tree(&v->seen_text, &v->seen);
	if (v->has_expected && v->has_seen)
		tree_diff(&v->expected, &v->seen, &all, &v->diff);
	load_trace(v);
	return 0;
}

int view_load(const char *dir, bool brief, struct view *out, struct err *err)
{
	*out = (struct view){ 0 };
	trace_init(&out->trace);
	int rc = store_load(dir, &out->c, err);

	if (!rc) {
		out->cluster = store_cluster(stored_case_first(&out->c)->kind, &out->c.workload);
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
	trace_release(&v->trace);
	crash_state_release(&v->state);
	strbuf_release(&v->expected_text);
	strbuf_release(&v->seen_text);
	tree_diff_release(&v->diff);
	tree_release(&v->expected);
	tree_release(&v->seen);
	strbuf_release(&v->kernel_log);
	strbuf_release(&v->said);
	*v = (struct view){ 0 };
}

enum request_fate view_fate(const struct view *v, uint64_t event)
{
	if (!v->has_state)
		return REQUEST_DURABLE;
	if (event >= v->state.point)
		return REQUEST_LATER;
	for (size_t i = 0; i < v->state.lost.n; i++)
		if (v->state.lost.v[i] == event)
			return REQUEST_LOST;
	for (size_t i = 0; i < v->state.torn.n; i++)
		if (v->state.torn.v[i].event == event)
			return REQUEST_TORN;
	for (size_t i = 0; i < v->state.survived.n; i++)
		if (v->state.survived.v[i] == event)
			return REQUEST_SURVIVED;
	return REQUEST_DURABLE;
}

const char *fate_name(enum request_fate f)
{
	static const char *const names[] = { "durable", "survived", "torn", "lost", "later" };

	assert((unsigned)f < ARRAY_SIZE(names));
	return names[f];
}

bool view_result(const struct view *v, size_t i, int32_t *result)
{
	for (size_t e = 0; v->has_trace && e < v->trace.events.n; e++) {
		const struct event *ev = &v->trace.events.v[e];

		if (ev->kind == EV_OP_END && ev->ref == i) {
			*result = ev->result;
			return true;
		}
	}
	return false;
}

/* ---- trees side by side ---- */

/*
 * The stored text has one line an entry, in order, after its first line; lines that begin with a
 * space tell more of the entry above.
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
	for (size_t i = 0; i < v->diff.list.n; i++)
		if (streq(v->diff.list.v[i].path, path))
			return true;
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
		i += cmp <= 0;
		k += cmp >= 0;
		vec_push(out, row);
	}
}

/* ---- a run ---- */

static struct run_cluster *find_cluster(struct run_view *r, const char *name)
{
	for (size_t i = 0; i < r->clusters.n; i++)
		if (streq(r->clusters.v[i].name, name))
			return &r->clusters.v[i];
	return NULL;
}

static void add_to_cluster(struct run_view *r, size_t at)
{
	const struct view *v = &r->cases.v[at];
	struct run_cluster *c = find_cluster(r, v->cluster);

	if (!c) {
		/* Of a workload that is not done, or a case by itself: nobody has counted it. */
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

/* A run from before there was such a file has none. */
static int load_about(struct run_view *r, struct err *err)
{
	struct err none = ERR_INIT;
	int rc = plan_load(r->dir, &r->plan, &none);

	if (rc == -ENOENT)
		return 0;
	if (rc) {
		*err = none;
		return rc;
	}
	r->has_plan = true;
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
	struct store_list list = { 0 };
	auto_free char *alone = xasprintf("%s/case", dir);
	int rc = 0;

	*out = (struct run_view){ .dir = xstrdup(dir), .progress = { .fd = -1 } };
	/* The directory of a case stands for a run that found nothing else. */
	if (access(alone, F_OK) == 0)
		vec_push(&list, xstrdup(dir));
	else
		rc = store_list(dir, &list, err);
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
	store_list_release(&list);
	if (rc)
		run_view_release(out);
	return rc;
}

static bool total(const struct run_view *v, size_t i, const char **key, struct strbuf *value)
{
	const struct run_totals *t = &v->progress.totals;
	const struct {
		const char *key;
		uint64_t value;
	} totals[] = {
		{ "done", v->progress.done },
		{ "crash-states", t->crash_states },
		{ "unique-states", t->unique_states },
		{ "findings", v->findings },
		{ "kept", v->cases.n },
		{ "suppressed", v->progress.suppressed },
	};

	if (i >= ARRAY_SIZE(totals))
		return false;
	*key = totals[i].key;
	strbuf_addu(value, totals[i].value);
	return true;
}

bool run_view_fact(const struct run_view *v, size_t i, const char **key, struct strbuf *value)
{
	size_t before = 0;
	const char *ignored;
	auto_strbuf scratch = STRBUF_INIT;

	strbuf_clear(value);
	if (!v->has_plan)
		return false;
	if (plan_value(&v->plan, i, key, value))
		return true;
	while (plan_value(&v->plan, before, &ignored, &scratch))
		before++;
	return total(v, i - before, key, value);
}

void run_view_release(struct run_view *v)
{
	free(v->dir);
	if (v->has_plan)
		plan_release(&v->plan);
	progress_release(&v->progress);
	for (size_t i = 0; i < v->cases.n; i++)
		view_release(&v->cases.v[i]);
	vec_release(&v->cases);
	for (size_t i = 0; i < v->clusters.n; i++) {
		free(v->clusters.v[i].name);
		free(v->clusters.v[i].words);
	}
	vec_release(&v->clusters);
	*v = (struct run_view){ .progress = { .fd = -1 } };
}
