/* SPDX-License-Identifier: MIT */
#include "report/app_words.h"

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
	size_t low = 0, high = log->calls.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (log->calls.v[mid].event < event)
			low = mid + 1;
		else
			high = mid;
	}
	return low < log->calls.n && log->calls.v[low].event == event ? &log->calls.v[low] : NULL;
}

static void add_path(struct strbuf *out, const char *path)
{
	if (!path)
		path = "a file without a name";
	posix_add_safe(out, path, strlen(path));
}

/* The text of the n-th acknowledgement. */
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

/* ---- causes ---- */

static void add_dir(struct strbuf *out, const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	strbuf_adds(out, "the directory ");
	if (slash)
		posix_add_safe(out, path, (size_t)(slash - path));
	else
		strbuf_addch(out, '.');
}

/* What to sync, so that a change is durable. */
static void add_sync(const struct history *h, const struct posix_log *log,
		     const struct explain_lost *l, struct strbuf *out)
{
	const struct change *c = &h->changes.v[l->change];
	const struct posix_call *call = call_of(log, l->event);
	const char *path = call ? call->path : NULL;

	strbuf_adds(out, "an fsync of ");
	switch (c->kind) {
	case CHANGE_MAKE:
	case CHANGE_REMOVE:
		add_dir(out, path);
		break;
	case CHANGE_LINK:
		add_dir(out, call && call->path2 ? call->path2 : path);
		break;
	case CHANGE_RENAME:
	case CHANGE_SWAP:
		add_dir(out, call && call->path2 ? call->path2 : path);
		break;
	default:
		add_path(out, path);
	}
}

/* Operations, of which one may be several changes: its data, and the size it gave. */
static size_t count_lost(const struct explained *e)
{
	size_t n = 0;

	for (size_t i = 0; i < e->lost.n; i++)
		n += !i || e->lost.v[i].event != e->lost.v[i - 1].event;
	return n;
}

static void add_lost(const struct history *h, const struct posix_log *log,
		     const struct explained *e, struct strbuf *out)
{
	const struct explain_lost *l = &e->lost.v[0];

	app_words_event(h->trace, log, l->event, out);
	if (l->units)
		strbuf_addf(out, " (torn: %" PRIu32 " of %" PRIu32 " parts survived)", l->kept,
			    l->units);
	size_t more = count_lost(e) - 1;
	if (more)
		strbuf_addf(out, " and %zu more", more);
}

static bool is_sync(const struct posix_log *log, uint64_t event)
{
	const struct posix_call *c = call_of(log, event);

	return c && posix_op_persists(c->op);
}

static void fix_parts(struct strbuf *fix)
{
	strbuf_adds(fix,
		    "recognise a part by a checksum; or write a new file, fsync it, and rename "
		    "it over the old one");
}

/* One write call that came in several requests, of which not all survive. */
static void words_parts(const struct history *h, const struct posix_log *log, uint64_t event,
			struct strbuf *title, struct strbuf *fix)
{
	app_words_event(h->trace, log, event, title);
	strbuf_adds(title, " is not atomic: a crash can leave a part of it (one write call may "
			   "arrive in parts)");
	fix_parts(fix);
}

static void words_window(const struct history *h, const struct posix_log *log,
			 const struct explained *e, struct strbuf *title, struct strbuf *fix)
{
	bool ack = h->trace->events.v[e->after].kind == EV_PERSIST;

	if (e->until != UINT64_MAX && history_same_call(h, e->after, e->until)) {
		words_parts(h, log, e->after, title, fix);
		return;
	}
	if (ack) {
		add_ack(h->trace, e->after, title);
		strbuf_adds(title, " was acknowledged too early");
	} else {
		strbuf_adds(title, "a crash after ");
		app_words_event(h->trace, log, e->after, title);
		strbuf_adds(title, " is one too many, with nothing lost");
	}
	if (e->until != UINT64_MAX) {
		strbuf_adds(title, ack ? ": before " : ": all is well only after ");
		app_words_event(h->trace, log, e->until, title);
	}
	strbuf_adds(fix, ack ? "acknowledge when everything is done and synced"
			     : "the change takes more than one operation: write it to a new file, "
			       "fsync that, and rename it over the old one; or keep a journal");
}

static void words_torn(const struct history *h, const struct posix_log *log,
		       const struct explained *e, struct strbuf *title, struct strbuf *fix)
{
	const struct explain_lost *l = &e->lost.v[0];

	app_words_event(h->trace, log, l->event, title);
	if (l->units)
		strbuf_addf(title,
			    " is not atomic: a crash can leave %" PRIu32 " of its %" PRIu32
			    " parts",
			    l->kept, l->units);
	else
		strbuf_adds(title, " is not atomic: a crash can leave the file longer, with zeros "
				   "instead of what was written");
	fix_parts(fix);
}

static void words_order(const struct history *h, const struct posix_log *log,
			const struct explained *e, struct strbuf *title, struct strbuf *fix)
{
	if (e->after == e->lost.v[0].event) { /* it was torn by the crash that came with it */
		words_torn(h, log, e, title, fix);
		return;
	}
	if (history_same_call(h, e->lost.v[0].event, e->after)) {
		words_parts(h, log, e->lost.v[0].event, title, fix);
		return;
	}
	add_lost(h, log, e, title);
	if (e->kind == EXPLAIN_ACK) {
		strbuf_adds(title, " was not durable when ");
		add_ack(h->trace, e->after, title);
		strbuf_adds(title, " was acknowledged: ");
	} else {
		strbuf_adds(title, is_sync(log, e->after) ? " was lost, and "
							  : " was not ordered before the ");
		app_words_event(h->trace, log, e->after, title);
		strbuf_adds(title, is_sync(log, e->after) ? " made later ones durable: " : ": ");
	}
	add_sync(h, log, &e->lost.v[0], title);
	strbuf_adds(title, " is missing");
	add_sync(h, log, &e->lost.v[0], fix);
	strbuf_adds(fix, ", after ");
	app_words_event(h->trace, log, e->lost.v[e->lost.n - 1].event, fix);
	strbuf_adds(fix, " and before ");
	app_words_event(h->trace, log, e->after, fix);
}

void app_words_case(const struct history *h, const struct posix_log *log,
		    const struct app_plan *plan, const struct explained *e, struct app_case *c)
{
	struct strbuf title = STRBUF_INIT, fix = STRBUF_INIT;

	if (e->kind == EXPLAIN_START || e->after == UINT64_MAX) {
		strbuf_adds(&title, "it fails on the directory as it was before the run, with "
				    "nothing acknowledged");
		strbuf_addf(&fix,
			    "a crash may come before anything is done: the %s must accept that, "
			    "as long as nothing is acknowledged",
			    app_plan_asks(plan));
	} else if (!e->lost.n) {
		words_window(h, log, e, &title, &fix);
	} else {
		words_order(h, log, e, &title, &fix);
	}
	if (e->cut)
		strbuf_addf(&title,
			    " (cut short after %u checks: there may be a simpler reason, so this "
			    "one is not sure)",
			    e->checks);
	c->title = strbuf_detach(&title);
	c->fix = e->cut ? xasprintf("perhaps %s", strbuf_str(&fix)) : xstrdup(strbuf_str(&fix));
	strbuf_release(&fix);
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
