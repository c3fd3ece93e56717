/* SPDX-License-Identifier: MIT */
/*
 * forget_trace.c - records the application's calls as a trace, with the places of files, and marks
 * among the calls.
 *
 * The trace lock is held while events are written (K2 of forget_call.c).
 *
 * The trace must outlive the server, which may be killed. So gathered events go to the file when
 * something persists or goes wrong, and every second. A write for each event would be slow.
 */
#include <stdarg.h>
#include <sys/stat.h>

#include "core/trace.h"
#include "forget/forget_call.h"

/* Ends the trace after a failure, which is logged; the mount goes on. */
static void end_trace(struct forget *f, const struct err *err)
{
	forget_log(f, "the trace ends here: %s", err->msg);
	trace_writer_free(steal(f->trace));
}

static void put_event(struct forget *f, const struct event *ev)
{
	struct err err = ERR_INIT;

	if (!f->trace || !trace_writer_append(f->trace, ev, &err))
		return;
	end_trace(f, &err);
}

static void flush(struct forget *f)
{
	struct err err = ERR_INIT;

	if (f->trace && trace_writer_flush(f->trace, &err))
		end_trace(f, &err);
}

static void put_call(struct forget *f, const struct posix_event *p, uint64_t time_ns)
{
	auto_strbuf record = STRBUF_INIT;
	struct event ev;

	posix_to_event(p, time_ns, &record, &ev);
	put_event(f, &ev);
}

/* ---- places of files ---- */

static void put_place(struct forget *f, uint64_t ino, uint64_t dir, const char *name)
{
	struct posix_event e = { .op = POSIX_LOOKUP, .ino = ino, .dir = dir, .name = name };

	put_call(f, &e, util_now_ns() - f->trace_start);
}

struct place_of {
	uint64_t ino, dir;
	char *name;
};

/*
 * Adds the place of an inode that existed before the trace, before the first event about it; later
 * changes of its names are in the events.
 */
static void introduce(struct forget *f, struct node *n)
{
	auto_vec struct vec_of(struct place_of) way = { 0 };

	owned_take(&f->tree.lock);
	for (const struct node_name *a; n && !n->traced; n = a ? a->dir : NULL) {
		n->traced = true;
		a = n->names[NAME_LIVE];
		if (a)
			vec_push(&way, (struct place_of){ n->ino, a->dir->ino, xstrdup(a->text) });
	}
	owned_give(&f->tree.lock);
	while (way.n) {
		struct place_of *p = &way.v[--way.n];

		put_place(f, p->ino, p->dir, p->name);
		free(p->name);
	}
}

void forget_trace_made(struct forget *f, struct node *n)
{
	if (!f->trace)
		return;
	auto_owned(&f->tree.lock);
	n->traced = true;
}

/* ---- calls ---- */

bool forget_trace_wants(const struct call *c)
{
	const struct forget_opts *o = &c->f->opts;

	return c->f->trace &&
	       (o->trace_reads || posix_op_changes(c->ev.op) || posix_op_persists(c->ev.op) ||
		(o->trace_closes && c->ev.op == POSIX_RELEASE));
}

void forget_trace_call(struct call *c)
{
	struct forget *f = c->f;

	if (f->opts.marks)
		f->opts.marks(f->opts.marks_ctx, f);
	if (!f->opts.trace_data && c->ev.op == POSIX_WRITE) {
		c->ev.payload = NULL;
		c->ev.payload_len = 0;
	}
	introduce(f, c->node);
	if (c->node2)
		introduce(f, c->node2);
	put_call(f, &c->ev, c->start_ns - f->trace_start);
	if (f->opts.traced)
		f->opts.traced(f->opts.traced_ctx, &c->ev);
	if (posix_op_persists(c->ev.op) || c->act.fired)
		flush(f);
}

/* ---- notes for the user among the calls ---- */

void forget_trace_note(struct forget *f, const char *fmt, ...)
{
	va_list ap;

	if (!f->opts.trace)
		return;
	va_start(ap, fmt);
	auto_free char *text = xvasprintf(fmt, ap);
	va_end(ap);
	auto_lock(&f->trace_lock);
	put_event(f, &(struct event){ .kind = EV_TEXT,
				      .time_ns = util_now_ns() - f->trace_start,
				      .len = strlen(text),
				      .data = (const unsigned char *)text });
	flush(f);
}

void forget_trace_hand_over(struct forget *f)
{
	auto_lock(&f->trace_lock);
	flush(f);
}

/* ---- marks, and events from elsewhere ---- */

void forget_mark(struct forget *f, const char *text, size_t len)
{
	uint64_t now = util_now_ns() - f->trace_start;

	if (f->n_marks >= TRACE_OP_MAX)
		return;
	put_event(f, &(struct event){ .kind = EV_OP_BEGIN,
				      .ref = f->n_marks,
				      .time_ns = now,
				      .len = len,
				      .data = (const unsigned char *)text });
	put_event(f, &(struct event){ .kind = EV_PERSIST, .ref = f->n_marks, .time_ns = now });
	f->n_marks++;
}

void forget_look_for_marks(struct forget *f)
{
	auto_lock(&f->trace_lock);
	if (f->opts.marks)
		f->opts.marks(f->opts.marks_ctx, f);
}

void forget_note_sync(struct forget *f, uint32_t pid)
{
	struct posix_event e = { .op = POSIX_SYNCFS, .pid = pid, .tid = pid };

	auto_lock(&f->trace_lock);
	if (f->opts.marks)
		f->opts.marks(f->opts.marks_ctx, f);
	put_call(f, &e, util_now_ns() - f->trace_start);
	flush(f);
}

int forget_trace_add(struct forget *f, const struct trace *t, struct err *err)
{
	int rc = 0;

	auto_lock(&f->trace_lock);
	for (size_t i = 0; !rc && f->trace && i < t->events.n; i++)
		rc = trace_writer_append(f->trace, &t->events.v[i], err);
	return rc;
}

uint64_t forget_trace_size(const struct forget *f)
{
	struct stat st;

	return f->opts.trace && !stat(f->opts.trace, &st) ? (uint64_t)st.st_size : 0;
}

/* ---- life ---- */

int forget_trace_open(struct forget *f, struct err *err)
{
	struct trace_info info = { .sector_size = 512 };

	pthread_mutex_init(&f->trace_lock, NULL);
	f->watch = f->opts.trace || f->opts.log_all;
	if (!f->opts.trace)
		return 0;
	snprintf(info.target, sizeof(info.target), "mount, profile %s", f->opts.profile->name);
	f->trace_start = util_now_ns();
	int rc = trace_writer_open(f->opts.trace, &info, &f->trace, err);
	if (rc)
		return rc;
	f->tree.root.traced = true;
	put_place(f, f->tree.root.ino, 0, ".");
	return 0;
}

int forget_trace_close(struct forget *f, struct err *err)
{
	return f->trace ? trace_writer_close(steal(f->trace), err) : 0;
}
