/* SPDX-License-Identifier: MIT */
/*
 * forget.h - the file system that forgets: a mount over a directory, ROOT, which shows what the
 * application wrote, and of which a power cut leaves what the application synced.
 *
 * F1: ROOT holds the durable part of file contents and nothing else; newer data is in memory
 *     (fs/pagecache). Killing the server loses it, as a power cut would.
 * F2: names and attributes are changed in ROOT at once, so that the kernel's rules apply to them.
 *     Where the profile says that they wait for a sync, each change is in a log (fs/pending) with
 *     the steps that undo it; removed files are kept in a hidden directory of ROOT until the
 *     removal is durable. A power cut undoes what is pending. The log is in a file there as well:
 *     if the server is killed, its parent, or the next mount of the same ROOT, undoes it before
 *     anything else.
 * F3: one mount has one ROOT (a lock says so), and whatever ends it, ROOT is then what would have
 *     survived, or the next mount makes it so and says it.
 *
 * The kernel may cache names, attributes and pages: all changes come through it. The kernel is told
 * to forget all that is lost or rolled back under it.
 */
#ifndef FORGET_FORGET_H
#define FORGET_FORGET_H

#include "base/err.h"
#include "base/strbuf.h"
#include "core/posix.h"
#include "core/trace.h"
#include "fs/pagecache.h"
#include "fs/profile.h"
#include "inject/inject.h"

struct forget;

struct forget_opts {
	const char *root, *mnt;
	const struct profile *profile;
	struct pagecache_opts cache;
	bool allow_other;
	bool real_sync;	     /* a sync also syncs ROOT's own file system */
	const char *subtype; /* "outage", or "lazyfs": shown as the mount's type, fuse.lazyfs */
	const char *const *fuse_options; /* further ones for mount, NULL-terminated; or NULL */
	const char *trace;		 /* where to record all operations; NULL: nowhere */
	bool trace_data;		 /* with the data of writes */
	bool trace_reads;		 /* and operations that change nothing */
	bool trace_closes;		 /* only closing a file, among these */
	/*
	 * Called before an event is added to the trace, so that marks from elsewhere until then
	 * stand before it: it may call forget_mark(). NULL: nothing happens elsewhere.
	 */
	void (*marks)(void *ctx, struct forget *f);
	void *marks_ctx;
	/*
	 * Called for each call that goes into the trace, while the caller waits for the answer. The
	 * function must ask nothing of the mount. NULL: none.
	 */
	void (*traced)(void *ctx, const struct posix_event *ev);
	void *traced_ctx;
	/* A line for the log, or several: faults that fired, what was lost, each operation if
	 * `log_all`. */
	void (*log)(void *ctx, const char *line);
	void *log_ctx;
	bool log_all;
	const char *log_path, *fifo_path; /* for the command "status"; or NULL */
	unsigned threads;		  /* 0: as many as are useful */
};

/* Mounts. Takes the faults of `faults`, which it then owns, also if it fails. */
int forget_mount(const struct forget_opts *opts, struct inject *faults, struct forget **out,
		 struct err *err) must_check;

/* Why the mount ended. */
enum forget_end {
	FORGET_UNMOUNTED, /* everything became durable, as at any unmount */
	FORGET_CRASHED,	  /* by a fault or a command */
	FORGET_SIGNAL,	  /* SIGINT, SIGTERM: as unmounted */
	FORGET_LOST,	  /* ROOT is gone, or the connection failed */
};

/* Serves until it is unmounted or crashes. Nothing is mounted afterwards. */
int forget_serve(struct forget *f, enum forget_end *end, struct err *err) must_check;
void forget_free(struct forget *f); /* NULL is fine */

/*
 * Does a command; from any thread while forget_serve() runs. The answer is a sentence or a table in
 * `text`, and one JSON object in `json`; either may be NULL. A command that was not done is an
 * error. A crash answers before the mount ends.
 */
int forget_command(struct forget *f, const struct inject_command *c, struct strbuf *text,
		   struct strbuf *json, struct err *err) must_check;

/*
 * For the callback `marks` alone: something was acknowledged. In the trace it is an EV_OP_BEGIN
 * with the text, and an EV_PERSIST; acknowledgements are numbered from 0.
 */
void forget_mark(struct forget *f, const char *text, size_t len);
/* Lets the callback look, also if no operation comes. */
void forget_look_for_marks(struct forget *f);
/* All that was done so far was synced, by a call of `pid` that did not come through the mount. */
void forget_note_sync(struct forget *f, uint32_t pid);
/* Adds events from elsewhere to the trace; to be called before the first operation. */
int forget_trace_add(struct forget *f, const struct trace *t, struct err *err) must_check;
/* Bytes that the trace has by now; events that are gathered for the next frame are not counted. */
uint64_t forget_trace_size(const struct forget *f);

/* Undoes the pending operations that a killed server left in ROOT. 1 if there was something. */
int forget_recover(const char *root, struct err *err) must_check;

#endif
