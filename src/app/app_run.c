/* SPDX-License-Identifier: MIT */
/* app_run.c - loads a recorded run of an application. */
#include "app/app_run.h"

#include <errno.h>

#include "app/app_words.h"
#include "base/below.h"
#include "base/io.h"
#include "core/trace_file.h"

void app_run_release(struct app_run *r)
{
	judge_release(&r->judge);
	if (r->has_history)
		history_release(&r->history);
	if (r->made.profile)
		util_close(r->base_fd);
	stack_table_release(&r->stacks);
	trace_release(&r->trace);
	app_plan_release(&r->plan);
	words_release(&r->acks);
	words_release(&r->shown);
	for (size_t i = 0; i < r->nested.n; i++) {
		app_run_release(r->nested.v[i]);
		free(r->nested.v[i]);
	}
	vec_release(&r->nested);
	free(r->base);
	free(r->dir);
	*r = (struct app_run){ 0 };
}

static void find_acks(struct app_run *r)
{
	vec_each(ev, &r->trace.events) {
		if (ev->kind == EV_OP_BEGIN)
			vec_push(&r->acks, xmemdupz(ev->data, ev->len));
	}
}

void app_lines(const char *text, struct words *out)
{
	for (const char *end; *text; text = *end ? end + 1 : end) {
		end = strchrnul(text, '\n');
		vec_push(out, xmemdupz(text, (size_t)(end - text)));
	}
}

static int read_shown(struct app_run *r, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;

	if (!below_exists(r->dir, "shown"))
		return 0;
	int rc = io_slurp_file(r->dir, "shown", 64 << 20, &text, err);
	app_lines(strbuf_str(&text), &r->shown);
	return rc;
}

static int read_stacks(struct app_run *r, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;
	int rc = io_slurp_file(r->dir, "stacks", (size_t)1 << 30, &text, err);

	if (!rc)
		rc = stack_table_parse(strbuf_str(&text), text.len, &r->stacks, err);
	if (rc)
		err_context(err, "%s/stacks", r->dir);
	return rc;
}

int app_run_open(struct app_run *r, struct err *err)
{
	const struct profile *profile = profile_find(r->plan.profile);

	r->base = xasprintf("%s/base", r->dir);
	if (!profile)
		return err_set(err, -EINVAL, "%s: there is no profile '%.60s'", r->dir,
			       r->plan.profile);
	if (r->plan.unit != 512 && r->plan.unit != 4096)
		return err_set(err, -EINVAL, "%s: a unit of %llu bytes is not possible", r->dir,
			       llu(r->plan.unit));
	int rc = trace_load_below(r->dir, "trace", &r->trace, err);
	if (!rc && r->plan.first_point > r->trace.events.n)
		rc = err_set(err, -EINVAL, "%s: there are no %llu events", r->dir,
			     llu(r->plan.first_point));
	if (rc)
		return rc;
	r->base_fd = below_open_dir(r->dir, "base", err);
	if (r->base_fd < 0)
		return r->base_fd;
	r->made = (struct history_opts){ .profile = profile,
					 .unit_size = (uint32_t)r->plan.unit,
					 .base = r->base_fd,
					 .root_ino = r->plan.root_ino,
					 .first_point = r->plan.first_point };
	rc = history_new(&r->trace, &r->made, &r->history, err);
	r->has_history = !rc;
	if (!rc && r->plan.stacks)
		rc = read_stacks(r, err);
	if (!rc)
		find_acks(r);
	return rc ? rc : read_shown(r, err);
}

/* Loads the run into its final place, as the history points to the trace. */
int app_run_load(const char *dir, struct app_run *out, struct err *err)
{
	*out = (struct app_run){ .dir = xstrdup(dir) };
	trace_init(&out->trace);
	int rc = app_plan_load(dir, &out->plan, err);
	if (!rc && !out->plan.root_ino)
		rc = err_set(err, -ENODATA,
			     "%s: not finished: it was ended while the application was recorded; "
			     "remove it, and run it again",
			     dir);
	if (!rc)
		rc = app_run_open(out, err);
	if (rc)
		app_run_release(out);
	return rc;
}

int app_run_of(struct app_run *r, const char *state, struct app_run **out, struct err *err)
{
	auto_free char *dir = case_nested(r->dir, state);

	*out = r;
	if (!dir)
		return 0;
	for (size_t i = 0; i < r->nested.n; i++)
		if (streq(r->nested.v[i]->dir, dir)) {
			*out = r->nested.v[i];
			return 0;
		}
	struct app_run *made = xcalloc(1, sizeof(*made));
	int rc = app_run_load(dir, made, err);
	if (rc) {
		free(made);
		return rc;
	}
	made->whole = r;
	vec_push(&r->nested, made);
	*out = made;
	return 0;
}

struct app_search_opts app_run_search(struct app_run *r)
{
	/* An error about trust names the plan of the whole run, not of a restart. */
	const struct app_run *told = r->whole ? r->whole : r;

	judge_release(&r->judge);
	judge_init(&r->judge, &told->plan, &told->acks, told->shown.n ? &told->shown : NULL);
	return (struct app_search_opts){
		.h = &r->history,
		.made = &r->made,
		.states = { .max_subset = (uint32_t)min(r->plan.max_subset, (uint64_t)UINT32_MAX),
			    .budget = r->plan.budget,
			    .seed = r->plan.seed,
			    .cover = true },
		.judge = &r->judge,
		.checkers = { .jobs = 1,
			      .place = { .base = r->base,
					 .before = r->history.before,
					 .at = told->plan.dir },
			      .check = { .command = r->judge.command,
					 .errors_apart = r->judge.errors_apart,
					 .timeout_ms = told->plan.timeout_ms,
					 .output_limit = CHECK_OUTPUT_MAX },
			      .acks = (const char *const *)told->acks.v,
			      .n_acks = told->acks.n },
	};
}

/* ---- acknowledgements by a file ---- */

static void add_mark(struct trace *t, uint64_t n, const char *text, size_t len, uint64_t time_ns)
{
	trace_append(t, &(struct event){ .kind = EV_OP_BEGIN,
					 .ref = n,
					 .len = len,
					 .time_ns = time_ns,
					 .data = (const unsigned char *)text });
	trace_append(t, &(struct event){ .kind = EV_PERSIST, .ref = n, .time_ns = time_ns });
}

/* Adds the complete lines that were written so far as acknowledgements. */
static void mark_lines(struct strbuf *part, const struct posix_event *e, uint64_t time_ns,
		       uint64_t *marks, struct trace *out)
{
	char *end;

	strbuf_add(part, e->payload, min((size_t)e->result, e->payload_len));
	while (part->len && (end = memchr(part->buf, '\n', part->len))) {
		size_t len = (size_t)(end - part->buf);

		add_mark(out, (*marks)++, part->buf, min(len, (size_t)4096), time_ns);
		memmove(part->buf, end + 1, part->len - len - 1);
		strbuf_cut(part, part->len - len - 1);
	}
}

static void copy_event(struct trace *out, const struct event *ev, uint64_t *marks)
{
	struct event copy = *ev;

	if (ev->kind == EV_OP_BEGIN)
		copy.ref = *marks;
	else if (ev->kind == EV_PERSIST)
		copy.ref = (*marks)++;
	trace_append(out, &copy);
}

static int add_marks(const struct trace *t, const char *name, struct trace *out, struct err *err)
{
	auto_posix_log log;
	auto_strbuf part = STRBUF_INIT;
	uint64_t marks = 0, found = 0;
	size_t at = 0;

	posix_log_init(&log);
	int rc = app_log(t, &log, err);
	for (size_t i = 0; !rc && i < t->events.n; i++) {
		struct posix_event e;

		copy_event(out, &t->events.v[i], &marks);
		while (at < log.calls.n && log.calls.v[at].event < i)
			at++;
		if (at == log.calls.n || log.calls.v[at].event != i ||
		    log.calls.v[at].op != POSIX_WRITE || log.calls.v[at].result <= 0 ||
		    !log.calls.v[at].path || !streq(log.calls.v[at].path, name))
			continue;
		rc = posix_decode(&t->events.v[i], &e, err);
		if (!rc)
			mark_lines(&part, &e, t->events.v[i].time_ns, &marks, out);
		found++;
	}
	if (!rc && !found)
		rc = err_set(
			err, -ENOENT,
			"the run wrote nothing to the file %s, which --ack-file names; give its "
			"path below the directory",
			name);
	return rc;
}

int app_ack_file(const char *run, const char *name, struct err *err)
{
	auto_trace t, out;

	trace_init(&t);
	trace_init(&out);
	int rc = trace_load_below(run, "trace", &t, err);
	out.info = t.info;
	if (!rc)
		rc = add_marks(&t, name, &out, err);
	return rc ? rc : trace_save_below(run, "trace", &out, err);
}
