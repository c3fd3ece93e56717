/* SPDX-License-Identifier: MIT */
/*
 * forget.h - the file system that forgets: a mount over a directory, ROOT, which shows the
 * application's data; after a power cut, only synced data is left.
 *
 * F1: ROOT holds what is durable and nothing else: contents, names and attributes. All newer
 *     changes are in memory (forget_tree.h), with a log of them.
 * F2: a sync does in ROOT what the profile promises, one change after the other. A power cut
 *     forgets the rest. Killing the server is a power cut.
 * F3: one mount has one ROOT (a lock says so). However the mount ends, ROOT is then in the state
 *     that survives a power cut. Only the way back to a snapshot is finished by the next mount.
 *
 * The kernel may cache names, attributes and pages: all changes come through it. The kernel is told
 * to forget everything that is lost or rolled back.
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
	const char *const *fuse_options; /* further mount options, NULL-terminated; or NULL */
	const char *trace;		 /* the file that records all operations; NULL: none */
	bool trace_data;		 /* with the data of writes */
	bool trace_reads;		 /* also operations that change nothing */
	bool trace_closes;		 /* only the closing of files, of these */
	/*
	 * Called before an event is added to the trace, so that marks from elsewhere until then
	 * come before it: may call forget_mark(). May be NULL.
	 */
	void (*marks)(void *ctx, struct forget *f);
	void *marks_ctx;
	/*
	 * Called for each call that goes into the trace, while the caller waits for the answer. The
	 * function must not use the mount. May be NULL.
	 */
	void (*traced)(void *ctx, const struct posix_event *ev);
	void *traced_ctx;
	/*
	 * Gets one or more lines for the log: faults that fired, losses, each operation if
	 * `log_all`.
	 */
	void (*log)(void *ctx, const char *line);
	void *log_ctx;
	bool log_all;
	const char *log_path, *fifo_path; /* for the command "status"; or NULL */
	unsigned threads;		  /* 0: a useful number */
};

/* Mounts. Takes the faults of `faults`, which the mount then owns, even after an error. */
int forget_mount(const struct forget_opts *opts, struct inject *faults, struct forget **out,
		 struct err *err) must_check;

/* Why the mount ended. */
enum forget_end {
	FORGET_UNMOUNTED, /* all changes became durable, as at any unmount */
	FORGET_CRASHED,	  /* by a fault or a command */
	FORGET_SIGNAL,	  /* SIGINT, SIGTERM: as unmounted */
	FORGET_LOST,	  /* ROOT is gone, or the connection failed */
};

/* Serves until the mount is unmounted or crashes. Nothing stays mounted. */
int forget_serve(struct forget *f, enum forget_end *end, struct err *err) must_check;
void forget_free(struct forget *f); /* NULL is fine */

/*
 * Executes a command, from any thread while forget_serve() runs. `text` gets a sentence or a table,
 * `json` one JSON object; either may be NULL. Fails if the command was not done. A crash answers
 * before the mount ends.
 */
int forget_command(struct forget *f, const struct inject_command *c, struct strbuf *text,
		   struct strbuf *json, struct err *err) must_check;

/*
 * For the callback `marks` alone: adds an acknowledgement. In the trace it is an EV_OP_BEGIN with
 * the text, and an EV_PERSIST; acknowledgements are numbered from 0.
 */
void forget_mark(struct forget *f, const char *text, size_t len);
/* Calls `marks`, also if no operation comes. */
void forget_look_for_marks(struct forget *f);
/* Notes that everything so far was synced, by a call of `pid` past the mount. */
void forget_note_sync(struct forget *f, uint32_t pid);
/* Adds events from elsewhere to the trace; called before the first operation. */
int forget_trace_add(struct forget *f, const struct trace *t, struct err *err) must_check;
/* Returns the trace's size in bytes; events gathered for the next frame are not counted. */
uint64_t forget_trace_size(const struct forget *f);

/* Finishes the way back to a snapshot for a killed server. Returns 1 if there was one. */
int forget_recover(const char *root, struct err *err) must_check;

#endif
