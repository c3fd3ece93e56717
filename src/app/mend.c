/* SPDX-License-Identifier: MIT */
/* mend.c - puts one fsync into a recorded trace, and makes the history of that trace. */
#include "app/mend.h"

#include <errno.h>

/* Returns the inode to be synced, as in the trace; 0 if there is none. */
static uint64_t target_of(const struct change *c, const struct posix_event *p, enum mend_what what)
{
	bool renames = c->kind == CHANGE_RENAME || c->kind == CHANGE_SWAP;

	switch (what) {
	case MEND_FILE:
		return c->kind == CHANGE_REMOVE ? 0 : p->ino;
	case MEND_DIR:
		return renames ? p->dir2 : p->dir;
	case MEND_OLD_DIR:
		return renames && p->dir != p->dir2 ? p->dir : 0;
	}
	return 0;
}

/* Copies the events, but not their data, which belongs to the other trace. */
static void copy_events(const struct trace *t, uint64_t after, const struct event *more,
			struct trace *out)
{
	out->info = t->info;
	vec_reserve(&out->events, t->events.n + 1);
	for (uint64_t i = 0; i < t->events.n; i++) {
		vec_push(&out->events, t->events.v[i]);
		if (i == after)
			vec_push(&out->events, *more);
	}
}

int mend(const struct history *h, const struct history_opts *opts, uint32_t n, enum mend_what what,
	 uint64_t after, struct mended *out, struct err *err)
{
	const struct change *c = &h->changes.v[n];
	const struct event *ev = &h->trace->events.v[c->event];
	struct posix_event p, sync;
	struct event more;
	int rc = posix_decode(ev, &p, err);

	if (rc)
		return rc;
	sync = (struct posix_event){ .op = what == MEND_FILE ? POSIX_FSYNC : POSIX_FSYNCDIR,
				     .pid = p.pid,
				     .tid = p.tid,
				     .uid = p.uid,
				     .gid = p.gid,
				     .ino = target_of(c, &p, what) };
	if (!sync.ino)
		return -ENOENT;
	*out = (struct mended){ 0 };
	trace_init(&out->trace);
	posix_to_event(&sync, h->trace->events.v[after].time_ns, &out->record, &more);
	copy_events(h->trace, after, &more, &out->trace);
	rc = history_new(&out->trace, opts, &out->h, err);
	if (rc) {
		trace_release(&out->trace);
		strbuf_release(&out->record);
	}
	return rc;
}

void mended_release(struct mended *m)
{
	history_release(&m->h);
	trace_release(&m->trace);
	strbuf_release(&m->record);
}
