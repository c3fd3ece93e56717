/* SPDX-License-Identifier: MIT */
/*
 * pm_record.c - runs the program under the tracer, in a child, and makes the base image and the
 * trace from the stream.
 */
#include "pm/pm_record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "core/trace_file.h"
#include "pm/file.h"
#include "pm/pm_run.h"
#include "pm/shares.h"
#include "pm/where.h"
#include "sandbox/in_child.h"

/* ---- the end of the program ---- */

/* Adds the last lines of the program's output. */
static void add_tail(struct strbuf *sb, const struct strbuf *said)
{
	size_t from = said->len > 300 ? said->len - 300 : 0;
	auto_free char *tail = xmemdupz(strbuf_str(said) + from, said->len - from);

	for (char *end = tail + strlen(tail); end > tail && end[-1] == '\n';)
		*--end = 0;
	if (*tail) {
		strbuf_adds(sb, ": ");
		strbuf_add_flat(sb, tail);
	}
}

static int check_end(const struct pm_record_opts *o, const struct proc_result *r, struct err *err)
{
	auto_strbuf tail = STRBUF_INIT;

	add_tail(&tail, &r->out);
	if (r->timed_out)
		return err_set(err, -ETIMEDOUT,
			       "%s did not end within %" PRIu64 " s; %s--timeout gives it more%s",
			       o->argv[0], o->timeout_ms / 1000,
			       o->tracer->preload ? "" : "emulation is slow, ", strbuf_str(&tail));
	if (r->signal)
		return err_set(err, -ECHILD, "%s was ended by signal %d (%s)%s", o->argv[0],
			       r->signal, strsignal(r->signal), strbuf_str(&tail));
	if (r->exit_code)
		return err_set(err, -ECHILD,
			       "%s failed with status %d, without any crash: mend that first%s",
			       o->argv[0], r->exit_code, strbuf_str(&tail));
	return 0;
}

/* ---- the recording ---- */

struct pm_session {
	const struct pm_record_opts *o;
	bool exists;
	struct image base;
	struct pool_worker *w; /* gets each step */
};

static int read_trace(const struct pm_record_opts *o, const struct traced *x, struct trace *t,
		      struct pm_counts *counts, struct err *err)
{
	static const unsigned char nothing[sizeof(PM_STREAM_MAGIC)];

	if (o->tracer->preload && x->len >= sizeof(nothing) &&
	    memcmp(x->stream, nothing, sizeof(nothing)) == 0)
		return err_set(err, -EINVAL,
			       "%s did not map %s where the library could see it: a program that "
			       "is linked statically, or gains rights, wants --tracer qemu",
			       o->argv[0], o->file);
	int rc = pm_stream_read(x->stream, x->len, t, counts, err);

	if (rc)
		return rc;
	if (o->outer && !counts->stores)
		return 0;
	if (!t->info.size)
		return err_set(err, -EINVAL,
			       "%s did not map %s, or not shared; programs that it starts are not "
			       "emulated, so name the one that maps it",
			       o->argv[0], o->file);
	return 0;
}

/* Makes the base as large as the file now is; the new part was zeros. */
static void fit_base(struct pm_session *s, uint64_t size)
{
	struct image grown;

	if (s->base.size >= size)
		return;
	image_init(&grown, size);
	if (s->base.size) {
		auto_free unsigned char *page = xmalloc(IMAGE_PAGE);

		for (uint64_t at = 0; at < s->base.size; at += IMAGE_PAGE) {
			size_t n = (size_t)min((uint64_t)IMAGE_PAGE, s->base.size - at);

			image_read(&s->base, at, page, n);
			if (page[0] || memcmp(page, page + 1, n - 1) != 0)
				image_write(&grown, at, page, n);
		}
	}
	image_release(&s->base);
	s->base = grown;
}

/* Reports a step, as a sign of life: a large trace takes long to read, compare and write. */
static void at(const struct pm_session *s, const char *what)
{
	pool_at(s->w, 0, "%s", what);
}

static int keep(struct pm_session *s, struct trace *t, uint64_t stores, const char *maps,
		struct err *err)
{
	auto_image after = IMAGE_INIT;
	struct pm_where where = { 0 };
	int rc = image_load_file(s->o->file, &after, err);

	if (rc)
		return rc;
	fit_base(s, after.size);
	rc = pm_replay_check(t, &s->base, &after, err);
	if (!rc && !stores)
		rc = err_set(err, -EINVAL, "%s stored nothing to %s by a shared mapping",
			     s->o->argv[0], s->o->file);
	at(s, "the file before the run");
	t->info.size = after.size;
	snprintf(t->info.target, sizeof(t->info.target), "pm");
	if (!rc)
		rc = image_save_below(&s->base, s->o->run, "base.img", false, err);
	at(s, "a copy of the trace");
	if (!rc)
		rc = trace_save_below(s->o->run, "trace", t, err);
	at(s, "the names of places");
	if (!rc) {
		pm_where_find(t, maps, &where);
		rc = pm_where_save(s->o->run, &where, err);
		pm_where_release(&where);
	}
	return rc;
}

/* Puts the marks before the crash in front of the trace of a recovery, without its own marks. */
static void put_behind(const struct pm_record_opts *o, const struct trace *did, struct trace *out)
{
	for (uint64_t i = 0; i < o->outer_point; i++) {
		struct event ev = o->outer->events.v[i];

		ev.stack = 0; /* the stack belongs to another trace */
		ev.pc = 0;
		if (pm_is_mark(&ev))
			trace_append(out, &ev);
	}
	vec_each(ev, &did->events) {
		uint64_t frames[EVENT_FRAMES_MAX];

		if (ev->kind == EV_STACK)
			trace_add_stack(out, frames,
					trace_stack(did, (uint32_t)out->stacks.n + 1, frames));
		else if (!pm_is_mark(ev))
			trace_append(out, ev);
	}
	out->info = did->info;
}

static int keep_recovery(struct pm_session *s, const struct trace *did, const char *maps,
			 struct err *err)
{
	auto_trace t;

	trace_init(&t);
	put_behind(s->o, did, &t);
	return keep(s, &t, 1, maps, err);
}

/* Gives a recovery the marks before the crash, as a check gets them. */
static int tell_marks(const struct pm_record_opts *o, struct err *err)
{
	auto_strbuf marks = STRBUF_INIT;

	pm_marks(o->outer, o->outer_point, &marks);
	setenv("OUTAGE_FILE", o->file, 1);
	setenv("OUTAGE_MARKS", PM_FILE_NOTES "/acked", 1);
	return io_write_file(PM_FILE_NOTES, "acked", strbuf_str(&marks), marks.len, 0, err);
}

static int run_it(void *ctx, struct pool_worker *w, void *out, struct err *err)
{
	struct pm_session *s = ctx;
	const struct pm_record_opts *o = s->o;
	struct pm_counts *counts = out;
	struct pm_file *f = NULL;
	auto_call(traced_release) struct traced x = { 0 };
	auto_trace t;
	int rc = 0;

	s->w = w;
	trace_init(&t);
	if (s->exists) {
		rc = pm_file_new(o->file, s->base.size, &f, err);
		if (!rc)
			rc = pm_file_put(f, &s->base, err);
	}
	if (!rc && o->outer)
		rc = tell_marks(o, err);
	at(s, "the run of the program");
	if (!rc)
		rc = tracer_run(o->tracer, o->file, o->argv, o->timeout_ms, &x, err);
	if (!rc)
		rc = check_end(o, &x.end, err);
	at(s, "its trace");
	if (!rc)
		rc = read_trace(o, &x, &t, counts, err);
	at(s, "the file that it left");
	if (!rc && !o->outer)
		rc = keep(s, &t, counts->stores, x.maps, err);
	else if (!rc && counts->stores)
		rc = keep_recovery(s, &t, x.maps, err);
	return rc;
}

static int look(struct pm_session *s, bool *made, struct err *err)
{
	const struct pm_record_opts *o = s->o;
	struct stat st;

	s->exists = stat(o->file, &st) == 0;
	if (!s->exists && o->size) {
		auto_fd fd = open(o->file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

		if (fd < 0 || ftruncate(fd, (off_t)o->size))
			return err_set(err, -errno, "cannot make %s: %m", o->file);
		*made = s->exists = true;
	}
	if (!s->exists) {
		*made = true;
		return 0;
	}
	if (o->base) {
		image_snapshot(o->base, &s->base);
		return 0;
	}
	return image_load_file(o->file, &s->base, err);
}

int pm_record(const struct pm_record_opts *o, struct pm_counts *counts, bool *made, struct err *err)
{
	struct pm_session s = { .o = o };
	struct pm_counts made_counts = { 0 };
	struct in_child child = { .fn = run_it,
				  .ctx = &s,
				  .out = &made_counts,
				  .out_size = sizeof(made_counts),
				  .patience_ms = o->timeout_ms ? o->timeout_ms + SHARES_SLACK_MS
							       : 0,
				  .stop = o->stop };
	int rc = look(&s, made, err);

	/* Libraries ask whether the file is on persistent memory: a traced file is. */
	setenv("PMEM_IS_PMEM_FORCE", "1", 0);
	if (!rc)
		rc = in_child(&child, err);
	image_release(&s.base);
	if (!rc)
		*counts = made_counts;
	return rc;
}
