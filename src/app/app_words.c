/* SPDX-License-Identifier: MIT */
/* app_words.c - makes sentences of an explained failure. */
#include "app/app_words.h"

#include <inttypes.h>

enum { ACK_SHOWN = 60 };

int app_log(const struct trace *t, struct posix_log *log, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < t->events.n; i++)
		rc = posix_log_add(log, i, &t->events.v[i], err);
	if (!rc)
		posix_log_finish(log);
	return rc;
}

void app_count_words(double n, struct strbuf *out)
{
	if (n > 1e18)
		strbuf_adds(out, "more than 10^18 sets of survivors");
	else
		strbuf_addf(out, "%.0f %s", n, n == 1 ? "set of survivors" : "sets of survivors");
}

/* ---- operations ---- */

static const struct posix_call *call_of(const struct posix_log *log, uint64_t event)
{
	size_t at = first_where(i, log->calls.n, log->calls.v[i].event >= event);

	return at < log->calls.n && log->calls.v[at].event == event ? &log->calls.v[at] : NULL;
}

static void add_path(struct strbuf *out, const char *path)
{
	if (!path)
		path = "a file without a name";
	posix_add_safe(out, path, strlen(path));
}

/* Adds the text of an acknowledgement. */
static void add_ack(const struct trace *t, uint64_t event, struct strbuf *out)
{
	uint64_t n = t->events.v[event].ref;

	for (uint64_t i = event; i-- > 0;) {
		const struct event *ev = &t->events.v[i];

		if (ev->kind != EV_OP_BEGIN || ev->ref != n)
			continue;
		strbuf_addch(out, '\'');
		posix_add_safe(out, (const char *)ev->data,
			       min((size_t)ev->len, (size_t)ACK_SHOWN));
		strbuf_adds(out, ev->len > ACK_SHOWN ? "...'" : "'");
		return;
	}
	strbuf_addf(out, "line %" PRIu64, n + 1);
}

static const char *joint_of(enum posix_op op)
{
	return op == POSIX_WRITE ? "to" : "of";
}

void app_words_event(const struct trace *t, const struct posix_log *log, uint64_t event,
		     struct strbuf *out)
{
	const struct posix_call *c = call_of(log, event);

	if (event < t->events.n && t->events.v[event].kind == EV_PERSIST) {
		strbuf_addf(out, "acknowledgement %" PRIu64 " (", t->events.v[event].ref + 1);
		add_ack(t, event, out);
		strbuf_addch(out, ')');
		return;
	}
	if (!c) {
		strbuf_addf(out, "event %" PRIu64, event);
		return;
	}
	if (c->op == POSIX_SYNCFS) {
		strbuf_addf(out, "sync %" PRIu64 " of everything", event);
		return;
	}
	strbuf_addf(out, "%s %" PRIu64 " %s ",
		    c->op == POSIX_FSYNCDIR ? "fsync" : posix_op_name(c->op), event,
		    joint_of(c->op));
	if (c->op == POSIX_FSYNCDIR)
		strbuf_adds(out, "the directory ");
	add_path(out, c->path);
	if (c->path2) {
		strbuf_adds(out, c->op == POSIX_COPY ? " from " : " to ");
		add_path(out, c->path2);
	}
}

/* ---- callers ---- */

const struct stack_list *app_words_stack(const struct stack_table *stacks, const struct trace *t,
					 uint64_t event)
{
	struct posix_event e;

	if (!stacks || event >= t->events.n || t->events.v[event].kind != EV_POSIX ||
	    posix_decode(&t->events.v[event], &e, NULL))
		return NULL;
	return stack_table_find(stacks, e.number);
}

bool app_words_place(const struct stack_table *stacks, const struct trace *t, uint64_t event,
		     struct strbuf *out)
{
	const struct stack_list *s = app_words_stack(stacks, t, event);
	const struct stack_frame *f = s ? stack_place(stacks, s) : NULL;
	auto_strbuf words = STRBUF_INIT;

	if (!f)
		return false;
	stack_frame_words(stacks, f, &words);
	posix_add_safe(out, strbuf_str(&words), words.len);
	return true;
}

/* ---- causes ---- */

struct wording {
	const struct history *h;
	const struct posix_log *log;
	const struct stack_table *stacks; /* or NULL */
	const struct explained *e;
	struct strbuf title, fix;
};

static void add_event(const struct wording *w, uint64_t event, struct strbuf *out)
{
	app_words_event(w->h->trace, w->log, event, out);
}

/* Adds an event with its place in the program, between commas. */
static void add_event_place(const struct wording *w, uint64_t event, bool more, struct strbuf *out)
{
	auto_strbuf place = STRBUF_INIT;

	add_event(w, event, out);
	if (app_words_place(w->stacks, w->h->trace, event, &place))
		strbuf_addf(out, ", at %s%s", strbuf_str(&place), more ? "," : "");
}

static void add_dir(struct strbuf *out, const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	strbuf_adds(out, "the directory ");
	if (slash)
		posix_add_safe(out, path, (size_t)(slash - path));
	else
		strbuf_addch(out, '.');
}

/* Adds the missing call, which was tried. */
static void add_sync(const struct wording *w, struct strbuf *out)
{
	const struct explain_lost *l = &w->e->lost.v[w->e->mend.lost];
	const struct posix_call *call = call_of(w->log, l->event);
	const char *path = call ? call->path : NULL;
	const char *path2 = call && call->path2 ? call->path2 : path;

	strbuf_adds(out, "an fsync of ");
	switch (w->e->mend.what) {
	case MEND_FILE:
		add_path(out, path);
		break;
	case MEND_DIR:
		add_dir(out, path2);
		break;
	case MEND_OLD_DIR:
		add_dir(out, path);
		break;
	}
}

/* Counts lost operations; one may be several changes: its data, and a new size. */
static size_t count_lost(const struct explained *e)
{
	size_t n = 0;

	for (size_t i = 0; i < e->lost.n; i++)
		n += !i || e->lost.v[i].event != e->lost.v[i - 1].event;
	return n;
}

static void add_lost(const struct wording *w, struct strbuf *out)
{
	const struct explain_lost *l = &w->e->lost.v[0];

	add_event_place(w, l->event, true, out);
	if (l->units)
		strbuf_addf(out, " (torn: %" PRIu32 " of %" PRIu32 " parts survived)", l->kept,
			    l->units);
	size_t more = count_lost(w->e) - 1;
	if (more)
		strbuf_addf(out, " and %zu more", more);
}

static bool is_sync(const struct posix_log *log, uint64_t event)
{
	const struct posix_call *c = call_of(log, event);

	return c && posix_op_persists(c->op);
}

static void fix_parts(struct wording *w)
{
	strbuf_adds(&w->fix,
		    "recognise a part by a checksum; or write a new file, fsync it, and rename "
		    "it over the old one");
}

/* Makes the words for one write call that came in several requests, of which some are lost. */
static void words_parts(struct wording *w, uint64_t event)
{
	add_event_place(w, event, true, &w->title);
	strbuf_adds(&w->title, " is not atomic: a crash can leave a part of it (one write call may "
			       "arrive in parts)");
	fix_parts(w);
}

static void words_window(struct wording *w)
{
	const struct explained *e = w->e;
	bool ack = w->h->trace->events.v[e->after].kind == EV_PERSIST;

	if (e->until != UINT64_MAX && history_same_call(w->h, e->after, e->until)) {
		words_parts(w, e->after);
		return;
	}
	if (ack) {
		add_ack(w->h->trace, e->after, &w->title);
		strbuf_adds(&w->title, " was acknowledged too early");
	} else {
		strbuf_adds(&w->title, "a crash after ");
		add_event_place(w, e->after, true, &w->title);
		strbuf_adds(&w->title, " is one too many, with nothing lost");
	}
	if (e->until != UINT64_MAX) {
		strbuf_adds(&w->title, ack ? ": before " : ": all is well only after ");
		add_event_place(w, e->until, false, &w->title);
	}
	strbuf_adds(&w->fix,
		    ack ? "acknowledge when everything is done and synced"
			: "the change takes more than one operation: write it to a new file, "
			  "fsync that, and rename it over the old one; or keep a journal");
}

static void words_torn(struct wording *w)
{
	const struct explain_lost *l = &w->e->lost.v[0];

	add_event_place(w, l->event, true, &w->title);
	if (l->units)
		strbuf_addf(&w->title,
			    " is not atomic: a crash can leave %" PRIu32 " of its %" PRIu32
			    " parts",
			    l->kept, l->units);
	else if (w->h->changes.v[l->change].kind == CHANGE_DATA)
		strbuf_adds(&w->title, " is not atomic: a crash can leave the file longer, with "
				       "zeros instead of what was written");
	else
		strbuf_adds(&w->title, " can be lost");
	fix_parts(w);
}

/* Names a missing call only if it was tried (X3 of app/explain.h). */
static void words_fix(struct wording *w)
{
	const struct explained *e = w->e;

	if (e->mend.found) {
		strbuf_adds(&w->title, ": ");
		add_sync(w, &w->title);
		strbuf_adds(&w->title, " is missing");
		add_sync(w, &w->fix);
		strbuf_adds(&w->fix, ", after ");
	} else {
		strbuf_adds(&w->fix, "no single fsync was found that would do");
		if (vec_last(&e->lost).event >= e->after)
			return;
		strbuf_adds(&w->fix, "; what is lost must be durable after ");
	}
	add_event_place(w, vec_last(&e->lost).event, true, &w->fix);
	strbuf_adds(&w->fix, " and before ");
	add_event_place(w, e->after, false, &w->fix);
	if (e->mend.found)
		strbuf_adds(&w->fix, " (verified: with it, no crash leaves this state)");
}

static void words_order(struct wording *w)
{
	const struct explained *e = w->e;
	bool sync = is_sync(w->log, e->after);

	if (e->after == e->lost.v[0].event) { /* the crash came with the write and tore it */
		words_torn(w);
		return;
	}
	if (history_same_call(w->h, e->lost.v[0].event, e->after)) {
		words_parts(w, e->lost.v[0].event);
		return;
	}
	add_lost(w, &w->title);
	if (e->kind == EXPLAIN_ACK) {
		strbuf_adds(&w->title, " was not durable when ");
		add_ack(w->h->trace, e->after, &w->title);
		strbuf_adds(&w->title, " was acknowledged");
	} else {
		strbuf_adds(&w->title, sync ? " was lost, and " : " was not ordered before the ");
		add_event_place(w, e->after, sync, &w->title);
		strbuf_adds(&w->title, sync ? " made later ones durable" : "");
	}
	words_fix(w);
}

static void words_not(struct wording *w)
{
	const struct explained *e = w->e;

	strbuf_adds(&w->title, "the cause is not known, as ");
	if (e->unsteady)
		strbuf_adds(&w->title, "the check does not always say the same of one state");
	else if (e->cut_by)
		strbuf_addf(&w->title, "%s cut the explanation short", e->cut_by);
	else
		strbuf_adds(&w->title, "the explanation did not come to its end");
	strbuf_adds(&w->title, "; here ");
	if (e->lost.n)
		add_lost(w, &w->title);
	else
		strbuf_adds(&w->title, "nothing");
	strbuf_adds(&w->title, " is lost by a crash ");
	if (e->after == UINT64_MAX) {
		strbuf_adds(&w->title, "before the first operation");
	} else {
		strbuf_adds(&w->title, "after ");
		add_event_place(w, e->after, false, &w->title);
	}
}

void app_words_case(const struct history *h, const struct posix_log *log,
		    const struct stack_table *stacks, const struct app_plan *plan,
		    const struct explained *e, struct app_case *c)
{
	struct wording w = { .h = h, .log = log, .stacks = stacks, .e = e };

	if (e->kind == EXPLAIN_NOT) {
		words_not(&w);
	} else if (e->kind == EXPLAIN_START || e->after == UINT64_MAX) {
		strbuf_adds(&w.title, "it fails on the directory as it was before the run, with "
				      "nothing acknowledged");
		strbuf_addf(&w.fix,
			    "a crash may come before anything is done: the %s must accept that, "
			    "as long as nothing is acknowledged",
			    app_plan_asks(plan));
	} else if (!e->lost.n) {
		words_window(&w);
	} else {
		words_order(&w);
	}
	if (e->cut)
		strbuf_addf(&w.title,
			    " (cut short after %u checks: there may be a simpler reason, so this "
			    "one is not sure)",
			    e->checks);
	c->title = strbuf_detach(&w.title);
	c->unexplained = e->kind == EXPLAIN_NOT;
	if (!c->unexplained)
		c->fix = e->cut && !e->mend.found ? xasprintf("perhaps %s", strbuf_str(&w.fix))
						  : xstrdup(strbuf_str(&w.fix));
	strbuf_release(&w.fix);
	c->verified = e->mend.found;
	for (size_t i = 0; i < e->lost.n; i++) {
		const struct explain_lost *l = &e->lost.v[i];

		if (i && e->lost.v[i - 1].event == l->event && !l->units)
			continue;
		vec_push(&c->lost, l->units ? xasprintf("%" PRIu64 " %" PRIu32 "/%" PRIu32,
							l->event, l->kept, l->units)
					    : xasprintf("%" PRIu64, l->event));
	}
	if (e->after != UINT64_MAX)
		vec_push(&c->after, xasprintf("%" PRIu64, e->after));
}
