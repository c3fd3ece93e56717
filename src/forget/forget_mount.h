/* SPDX-License-Identifier: MIT */
/* forget_mount.h - one mount that forgets: its state, its power cuts, its commands. */
#ifndef FORGET_FORGET_MOUNT_H
#define FORGET_FORGET_MOUNT_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "base/fd_path.h"
#include "base/lock.h"
#include "base/vec.h"
#include "core/trace_file.h"
#include "forget/forget.h"
#include "forget/forget_file.h"
#include "forget/forget_redo.h"
#include "forget/forget_tree.h"
#include "fs/pagecache.h"
#include "fs/pending.h"
#include "fuse/guardian.h"
#include "fuse/session.h"

/* Has the snapshots, if there are any; the mount does not show it. */
#define STASH_NAME ".outage-stash"

/* Something that the kernel must forget. */
struct told {
	struct node *node; /* a directory's entry; NULL: the attributes and data */
	char *name;	   /* an entry of it; NULL: its attributes and data */
};
struct told_list vec_of(struct told);

struct forget {
	struct session session;	 /* first */
	struct forget_opts opts; /* with copies of its strings */
	char *root_path, *mnt_path, *fsname;
	bool checked; /* the kernel checks permissions */
	int root_fd;
	int stash_fd;	  /* -1: none yet */
	uint64_t dev;	  /* ROOT's device; changes on others do not wait */
	bool counts_dirs; /* a directory's links count those in it */
	size_t name_max;
	struct inject *faults;
	struct pagecache *cache, *shadows;

	pthread_t server; /* the thread of forget_serve() */
	atomic_bool serving;
	bool has_waker;
	pthread_t waker;  /* wakes the server to end it */
	pthread_t ticker; /* while serving, if `ticking`, under the wait lock */
	bool ticking;
	struct guardian guardian;

	pthread_rwlock_t gate;
	atomic_bool dead; /* crashed: no operation is done */
	pthread_mutex_t wait_lock;
	pthread_cond_t wait_cond; /* `dead` was set, or a fault cancelled: delays end */

	struct owned_lock log_lock;
	struct pending *log; /* NULL: metadata is durable at once */

	struct owned_lock data_locks[DATA_LOCKS];
	struct live_tree tree;
	struct node_file *dirty, *sized; /* rings; tree lock */
	struct dir_handle *dirs;	 /* the open ones; tree lock */

	/* descriptors: forget_fds.c */
	size_t fd_limit, fd_other;
	atomic_size_t n_held; /* files without a name in ROOT */
	atomic_size_t n_data; /* all files */
	unsigned threads;     /* limited by the number of descriptors */

	/* the log, the trace and the numbers for reports */
	uint64_t since_ns; /* the time of the mount */
	atomic_uint_fast64_t number;
	bool watch; /* every operation is described, for trace or log */
	pthread_mutex_t trace_lock;
	struct trace_writer *trace;
	uint64_t trace_start;
	uint64_t n_marks;
	atomic_uint_fast64_t lost_count; /* how often everything was lost */
	atomic_uint_fast64_t epoch;	 /* grows when the kernel's knowledge becomes wrong */
	pthread_mutex_t command;	 /* one command at a time */
};

/* Turns the result of a system call into that result or -errno. */
static inline int result(int64_t rc)
{
	return rc < 0 ? -errno : (int)rc;
}

static inline bool forget_is_full(int rc)
{
	return rc == -ENOSPC || rc == -EDQUOT;
}

static inline struct forget *forget_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

static inline struct node *node_of(struct forget *f, fuse_ino_t id)
{
	return id == FUSE_ROOT_ID ? &f->tree.root : (struct node *)(uintptr_t)id;
}

static inline fuse_ino_t node_id(struct forget *f, const struct node *n)
{
	return n == &f->tree.root ? FUSE_ROOT_ID : (fuse_ino_t)(uintptr_t)n;
}

/* True for the stash, which the mount hides. */
static inline bool forget_name_is_hidden(const struct forget *f, const struct node *dir,
					 const char *text)
{
	return dir == &f->tree.root && streq(text, STASH_NAME);
}

void forget_log(struct forget *f, const char *fmt, ...) printf_like(2, 3);
uint64_t forget_clock_ns(void); /* since 1970 */

/* ---- forget_fds.c ---- */

int forget_fds_init(struct forget *f, unsigned threads, struct err *err) must_check;
/* Returns how many descriptors of directories, or of data, there should be at most. */
size_t forget_fds_each_max(const struct forget *f);
/* True if a file may be kept open for good: it loses its last name, and is open. */
bool forget_fds_may_hold(const struct forget *f);

/* ---- forget_attr.c ---- */

/* Gives the attributes that a program sees; with the tree lock, without size and times of data. */
int forget_attr_stat(struct forget *f, struct node *n, struct stat *st) must_check;
/* The set-id bits of a file that a write removes; file capabilities count as one more. */
enum { SETID_CAPABILITY = 1 << 16 };
unsigned forget_attr_setid(struct forget *f, struct node *n);

/* ---- forget_copy.c: a copy of a tree, sharing blocks where the file system can ---- */

/* Copies the content of directory `from` into `to`, except the name `skip`. */
int forget_copy_tree(int from, int to, const char *skip) must_check;
/* Removes `name` with everything below it. */
int forget_remove_tree(int dir, const char *name) must_check;

/* ---- forget_lose.c ---- */

enum lose_end { LOSE_GO_ON, LOSE_AND_END };

/*
 * Loses everything that is not durable, except what `fault` lets survive (NULL: nothing). With
 * LOSE_AND_END no operation is done any more. The gate must not be held. Adds to `told` what the
 * kernel must forget.
 */
void forget_lose(struct forget *f, struct fault *fault, enum lose_end end, const char *why,
		 struct told_list *told);
/* As forget_lose(), and tells what was at risk, as forget_report_risks() does; `text` or `json` may
 * be NULL. */
void forget_lose_telling(struct forget *f, struct fault *fault, enum lose_end end, const char *why,
			 struct told_list *told, struct strbuf *text, struct strbuf *json);
/* forget_lose() with the gate held alone, which the caller goes on to hold. */
void forget_lose_inside(struct forget *f, struct fault *fault, enum lose_end end, const char *why,
			struct told_list *told, struct strbuf *text, struct strbuf *json);
/* forget_lose(), and makes the parts of one write durable that `fault` names. */
void forget_tear(struct forget *f, struct fault *fault, struct node *n, const void *data,
		 uint64_t offset, size_t len);
void forget_tell(struct forget *f, struct told_list *told);
void told_add(struct forget *f, struct told_list *told, struct node *n, const char *name);
/*
 * True if a waiting operation concerns a match: a file's attributes, or one of its names, which
 * `named` decides. With the log lock.
 */
bool forget_waits_for(struct forget *f, const struct pending_op *op, const struct path_match *m,
		      bool (*named)(const struct path_match *m, const char *path));
/* Adds everything that the kernel knows. */
void told_all(struct forget *f, struct told_list *told);
/* Makes everything durable; the gate is held. */
int forget_sync_all(struct forget *f) must_check;
/* Does the sync of a FAULT_SYNC, at an operation on `own` (NULL: on none); the gate is held. */
int forget_sync_pages(struct forget *f, struct node *own, const struct fault *fault) must_check;
/* Returns how many unsynced pages the file of a FAULT_SYNC has; if several match, the most. */
uint64_t forget_pages_meant(struct forget *f, const struct fault *fault);
/* Syncs the data, and then the log; the gate is held. */
int forget_sync_node(struct forget *f, struct node *n, bool data_only) must_check;
/*
 * Makes a file's content durable; takes its lock. If ROOT is full, what waits for its removal is
 * removed.
 */
int forget_sync_data_freeing(struct forget *f, struct node *n) must_check;
bool forget_root_is_there(const struct forget *f);
/* Returns the path of ROOT, if ROOT was moved since the mount; otherwise NULL. */
char *forget_root_now(const struct forget *f);
/* Ends forget_serve(), from any thread. */
void forget_stop(struct forget *f);

/* ---- forget_report.c ---- */

/* Reports what is at risk, one line each. */
void forget_report_risks(struct forget *f, struct strbuf *text, struct strbuf *json);
/* Answers a command that is done; either may be NULL. */
void forget_report_say(struct strbuf *text, struct strbuf *json, const char *sentence);

/* ---- forget_durable.c ---- */

int forget_durable_all(struct forget *f, struct strbuf *text, struct strbuf *json, struct err *err)
	must_check;
/* Does the sync of a FAULT_SYNC at once. */
int forget_durable_some(struct forget *f, const struct fault *some, struct strbuf *text,
			struct strbuf *json, struct err *err) must_check;
/* True if a path in ROOT matches, or if there are too many paths to search. */
bool forget_root_has_match(struct forget *f, const struct path_match *m);

/* ---- forget_snapshot.c ---- */

int forget_snapshot_take(struct forget *f, const char *name, struct err *err) must_check;
int forget_snapshot_rollback(struct forget *f, const char *name, struct told_list *told,
			     struct err *err) must_check;
/* Finishes the rollback of a killed server. Returns 1 if there was one, and it is done. */
int forget_snapshot_finish_rollback(int root_fd, int stash, const char *root, struct err *err)
	must_check;
/* Removes a snapshot. */
int forget_snapshot_drop(struct forget *f, const char *name, struct err *err) must_check;
int forget_snapshot_list(struct forget *f, struct strbuf *text, struct strbuf *json,
			 struct err *err) must_check;

/* Makes the stash, if there is none. */
int forget_stash_open(struct forget *f, struct err *err) must_check;
/* Checks that no other user can have put files there. */
int forget_stash_check(int stash, const char *root, struct err *err) must_check;

/* ---- forget_recover.c ---- */

/* Called with the lock of ROOT. Returns 1 if ROOT is made from a snapshot now. */
int forget_recover_locked(int root_fd, const char *root, struct err *err) must_check;
/* Returns -EBUSY, with a message, if another process has the lock. */
int forget_root_lock(int root_fd, const char *root, bool wait, struct err *err) must_check;

#endif
