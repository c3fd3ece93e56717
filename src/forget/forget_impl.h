/* SPDX-License-Identifier: MIT */
/*
 * forget_impl.h - declarations for the files of the mount that forgets, which forget.h describes.
 *
 * Locks, in the order in which they are taken:
 *
 *	gate    every request holds it shared while it works; losing everything, or a snapshot,
 *	        takes it alone. No thread waits for the kernel while holding it.
 *	names   changes of names and attributes that wait for a sync, and the log of them; not taken
 *	        by profiles whose metadata is durable at once
 *	node    the data of one file and its live times
 *	table   the table of nodes, their names and their descriptors; short
 *
 * The kernel is told to forget something (forget_tell) with no lock held, and never before the
 * current request was answered: until then the kernel holds locks of its own, of the directories in
 * which names change, and of the inode.
 */
#ifndef FORGET_FORGET_IMPL_H
#define FORGET_FORGET_IMPL_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "base/fd_path.h"
#include "base/lock.h"
#include "base/vec.h"
#include "core/trace_file.h"
#include "fs/pagecache.h"
#include "fs/pending.h"
#include "forget/forget.h"
#include "fuse/guardian.h"
#include "fuse/session.h"

#define STASH_NAME ".outage-stash"
enum { JOURNAL_HEAD = 12 }; /* bytes of a record before its content; see forget_log.c */

/* ---- nodes: what the kernel, the log or unsynced data still needs of an inode ---- */

struct node_name {
	struct node *node, *parent; /* the parent stays as long as this name is known */
	/*
	 * The name was given under the names lock, and not removed since: ROOT has it. A name that
	 * was only looked up may have changed meanwhile.
	 */
	bool sure;
	uint64_t hash;
	struct node_name *hash_next; /* in the table of sure names */
	char name[];
};

struct node {
	/* never change */
	uint64_t dev, ino;
	mode_t type;

	/* table lock */
	struct node *hash_next;
	uint64_t nlookup; /* how often the kernel has looked it up */
	uint64_t refs;	  /* names below it, the log, current requests */
	struct vec_of(struct node_name *) names;
	/* The ring of nodes whose descriptor may be closed, or of abandoned ones; or NULL. */
	struct node *ring_prev, *ring_next;
	void *handle;	/* opens it again without a name */
	bool dead;	/* being released */
	bool abandoned; /* removed from the table */
	bool gone;	/* without a name: its descriptor, if it has one, stays */
	bool made;	/* its creation waits: a power cut undoes it */
	bool replaced;	/* a rename has put it in another's place */
	bool traced;	/* the trace has its path */

	/* the descriptor (O_PATH); closed only under the table lock, and if not pinned */
	atomic_int pins;
	int fd;
	atomic_bool used;

	/* links that are only in the stash; begun and ended changes of that number */
	atomic_uint stash_links, stash_begun, stash_ended;

	/* node lock */
	pthread_mutex_t lock;
	atomic_int data; /* descriptor of ROOT's file, or -1; readable under the table lock, too */
	bool data_reads, data_writes;	      /* the access rights of `data` */
	unsigned data_users;		      /* requests reading from it without the lock */
	struct pagefile *pf;		      /* NULL: never written */
	struct file_ctx *file;		      /* the page file's context */
	struct node *dirty_prev, *dirty_next; /* nodes with `pf`; guarded by the dirty lock */
	bool times;			      /* the times below are newer than ROOT's */
	struct timespec mtime, ctime;
	uint64_t opens;
	bool was_truncated; /* truncated to nothing since it was last written out or closed */
	bool flush;	    /* its data becomes durable with the next metadata */
	/*
	 * Its size or holes changed, and metadata that becomes durable includes these: the first
	 * and last operation that changed them, and its index in the list of such nodes (table
	 * lock).
	 */
	bool sized;
	uint64_t size_first, size_last;
	size_t sized_at;
	atomic_uint setid;    /* set-id bits that a write may remove */
	atomic_bool live;     /* `pf` or `times` is set: attributes differ from ROOT's */
	atomic_bool dropping; /* the kernel is being told: its writes of pages are lost */
};

struct undo_list vec_of(struct undo *);

/* ---- undo: how an operation of the log is undone ---- */

struct undo {
	uint64_t seq; /* names its file in the stash */
	uint64_t at;  /* the place of its record in the journal */
	enum pending_kind kind;
	bool is_dir;
	bool stashed; /* the removed or replaced file is in the stash */
	bool remade;  /* a removed directory, made anew with `value` */
	uint64_t ino, other;
	uint64_t dir[2];
	char *name[2];
	/* the old attributes */
	uint32_t mode, uid, gid;
	struct timespec atime, mtime;
	/* the old value; NULL: there was none */
	char *xattr;
	void *value;
	size_t value_len;
	/* while in the log: number of the operation; its directories and objects */
	uint64_t number;
	struct node *nodes[4];
};

/* The place where operations are undone: ROOT, by the server or after it; or a copy of ROOT. */
struct undo_place {
	int stash;
	/* Returns a new descriptor (O_PATH) of an inode, or -errno. */
	int (*open)(struct undo_place *p, uint64_t ino);
	/* Notes that `ino` lost the name, or (`made`) got it. */
	void (*named)(struct undo_place *p, uint64_t ino, uint64_t dir, const char *name,
		      bool made);
	/*
	 * Notes that `ino`, which was removed, is now the directory `fd`, made anew under this
	 * name. NULL: the place finds the directory by its name.
	 */
	void (*remade)(struct undo_place *p, uint64_t ino, int fd, uint64_t dir, const char *name);
	/*
	 * Returns the log's number of the inode with this number. NULL: not needed, as every
	 * operation was done, and is undone once.
	 */
	uint64_t (*number)(struct undo_place *p, uint64_t ino);
	uint64_t made_anew; /* the number of the last directory made anew */
};

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
	int stash_fd; /* -1: none yet */
	uint64_t dev; /* ROOT's device; changes on others do not wait */
	struct inject *faults;
	struct pagecache *cache;

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

	/* names lock */
	pthread_mutex_t names;
	struct pending *log; /* NULL: metadata is durable at once */
	int journal;
	uint64_t journal_size, journal_limit;
	bool has_reserve; /* space for the journal if ROOT gets full */
	bool half_undone; /* the journal has the rest: the next mount undoes it */
	uint64_t seq;
	struct strbuf record;

	/* table lock */
	pthread_mutex_t table;
	struct node **buckets;
	size_t n_buckets, n_nodes;
	struct node_name **sure; /* names by parent and text */
	size_t sure_buckets, n_sure;
	struct node *abandoned;	 /* a ring: nodes outside of the table */
	struct dir_handle *dirs; /* the open ones */
	struct node *clock;	 /* a ring: nodes whose descriptor may be closed */
	struct node root;

	/* descriptors: forget_fds.c. The counts change under the table lock, except `n_data`. */
	size_t fd_limit, fd_other;
	atomic_size_t n_fds;	/* descriptors of nodes with a name */
	atomic_size_t n_held;	/* descriptors of nodes without a name */
	atomic_size_t n_dirs;	/* descriptors of directories being read */
	atomic_size_t n_data;	/* descriptors of files */
	unsigned threads;	/* limited by the number of descriptors */
	bool handles;		/* inodes can be opened by handle */
	bool data_stays;	/* without root, a file may not open twice */
	atomic_bool told_short; /* the shortage of descriptors was logged */

	pthread_mutex_t dirty;
	struct node *dirty_first;
	struct vec_of(struct node *) sized; /* nodes with `sized`, referenced */

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

static inline struct forget *forget_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

/* ---- forget_node.c ---- */

void node_table_init(struct forget *f);
void node_table_release(struct forget *f);
void node_init(struct node *n, uint64_t dev, uint64_t ino, mode_t type);
static inline struct node *node_of(struct forget *f, fuse_ino_t id)
{
	return id == FUSE_ROOT_ID ? &f->root : (struct node *)(uintptr_t)id;
}
static inline fuse_ino_t node_id(struct forget *f, const struct node *n)
{
	return n == &f->root ? FUSE_ROOT_ID : (fuse_ino_t)(uintptr_t)n;
}
/*
 * Returns the node of an inode, made if there is none. Takes the descriptor. The kernel's count
 * grows by `nlookup`; if that is 0, the caller gets a reference.
 */
struct node *node_adopt(struct forget *f, int fd, const struct stat *st, struct node *parent,
			const char *name, unsigned nlookup);
/* Returns a known node, with a reference; or NULL. */
struct node *node_find(struct forget *f, uint64_t dev, uint64_t ino);
void node_ref(struct forget *f, struct node *n);
void node_unref(struct forget *f, struct node *n);
void node_forget(struct forget *f, struct node *n, uint64_t nlookup);
/* Returns the descriptor, which stays open until node_unpin(); or -errno. */
int node_pin(struct forget *f, struct node *n);
void node_unpin(struct node *n);
/* Pins a node until the scope ends: auto_pin at = node_pinned(f, n). */
struct pin {
	struct node *node;
	int fd;
};
static inline struct pin node_pinned(struct forget *f, struct node *n)
{
	return (struct pin){ n, node_pin(f, n) };
}
static inline void pin_release(struct pin *p)
{
	if (p->fd >= 0)
		node_unpin(p->node);
}
#define auto_pin auto_call(pin_release) struct pin
/*
 * Called before a name of the node is removed or lost. If that is its last name, its descriptor
 * stays from now on. False: there is no descriptor for it, and after the name is gone,
 * node_abandon() must follow.
 */
bool node_keep(struct forget *f, struct node *n, bool lost) must_check;
/* Called if the name was not removed. */
void node_not_gone(struct forget *f, struct node *n);
/*
 * Abandons a node, which has no name and no descriptor then: requests for more than its data get
 * ESTALE.
 */
void node_abandon(struct forget *f, struct node *n);
/* Closes descriptors of nodes beyond their number. */
void node_give_way(struct forget *f);
/* With the names lock: adds a name of the node, or removes one. */
void node_named(struct forget *f, struct node *n, struct node *parent, const char *name);
void node_unnamed(struct forget *f, struct node *n, struct node *parent, const char *name);
/*
 * With the names lock: returns the node of this name, with a reference. NULL: unknown, ROOT must be
 * asked.
 */
struct node *node_of_name(struct forget *f, struct node *parent, const char *name);
/* Called when ROOT is replaced: inode numbers then mean other inodes. */
void node_abandon_all(struct forget *f);
/* Adds the path from the mount, and `name` if it is not NULL. */
void node_path(struct forget *f, struct node *n, const char *name, struct strbuf *out);

/* ---- forget_fds.c ---- */

int forget_fds_init(struct forget *f, unsigned threads, struct err *err) must_check;
/* Returns how many descriptors of nodes should give way; the same number is for data. */
size_t forget_fds_each_max(const struct forget *f);
/*
 * The purpose of one more descriptor that stays; later purposes must leave more descriptors free.
 */
enum fds_for {
	FDS_OPEN,	 /* a file or directory that is opened */
	FDS_REMOVED_DIR, /* a directory that is removed */
	FDS_LOST_OPEN,	 /* a node that loses its last name, and may be open */
	FDS_LOST,	 /* a node that loses its last name, and is not open */
};
/* True if it may be taken. No table lock may be held; nor a node lock, unless `data_stays`. */
bool forget_fds_take(struct forget *f, enum fds_for what) must_check;
/* Returns the answer to a request that gets no descriptor. */
int forget_fds_refuse(struct forget *f);
/* Closes all descriptors that give way. */
void forget_fds_prepare_cut(struct forget *f);

/* ---- forget_call.c: the frame of every request ---- */

struct call {
	struct forget *f;
	fuse_req_t req;
	struct posix_event ev;
	struct node *node, *node2;
	struct inject_action act;
	bool inside;  /* holds the gate */
	bool tracing; /* holds the trace lock */
	bool watched;
	uint64_t start_ns, epoch;
	char *from, *to;
	struct told_list told;
};

/* The operation; `node` is the object or the directory of `name`. */
struct call_what {
	enum posix_op op;
	struct node *node, *node2;
	const char *name, *name2;
	uint64_t offset, len;
	uint32_t arg, flags;
	const void *payload;
	size_t payload_len;
};

/* Returns 0 to go on, inside the gate; or the answer. call_end() must follow in both cases. */
int call_begin_what(struct call *c, fuse_req_t req, const struct call_what *w) must_check;
#define call_begin(c, req, ...) call_begin_what(c, req, &(struct call_what){ __VA_ARGS__ })
/* Leaves the gate. Returns the answer: `rc`, or the error of a crashed mount. */
int64_t call_end(struct call *c, int64_t rc) must_check;
/*
 * True if anything was lost or rolled back since call_begin(): the kernel may have been told to
 * forget before it gets this answer, and must not keep the answer.
 */
static inline bool call_is_late(const struct call *c)
{
	return atomic_load(&c->f->epoch) != c->epoch;
}
/* Tells the kernel what to forget, after the answer. */
void call_done(struct call *c);
/* Ends a call, answers it, and tells the kernel. */
void call_reply(struct call *c, int64_t rc);
void forget_log(struct forget *f, const char *fmt, ...) printf_like(2, 3);
uint64_t forget_clock_ns(void); /* since 1970 */

/* ---- forget_trace.c ---- */

int forget_trace_open(struct forget *f, struct err *err) must_check;
int forget_trace_close(struct forget *f, struct err *err) must_check;
/* True if the call belongs into the trace. */
bool forget_trace_wants(const struct call *c);
/* Adds a call to the trace; with the trace lock. */
void forget_trace_call(struct call *c);
/* Adds a note to the trace. Takes the trace lock. */
void forget_trace_note(struct forget *f, const char *fmt, ...) printf_like(2, 3);
/* Writes the gathered events to the file. Takes the trace lock. */
void forget_trace_hand_over(struct forget *f);
/* Marks a new node: the event of its creation will have its path. */
void forget_trace_made(struct forget *f, struct node *n);

/* ---- forget_attr.c ---- */

/* A link of `n` enters or leaves the stash: meanwhile ROOT and the count do not agree. */
static inline void stash_change_begin(struct node *n)
{
	atomic_fetch_add(&n->stash_begun, 1);
}

static inline void stash_change_end(struct node *n, int more)
{
	atomic_fetch_add(&n->stash_links, (unsigned)more);
	atomic_fetch_add(&n->stash_ended, 1);
}

/* Returns how long the kernel may keep the attributes. */
double forget_attr_keep_s(const struct stat *st);
/* Checks what a user who is alone may do. */
int forget_attr_allowed(struct forget *f, struct node *n, int mask) must_check;
void forget_on_access(fuse_req_t req, fuse_ino_t ino, int mask);
/* The set-id bits of a file that a write removes; file capabilities count as one more. */
enum { SETID_CAPABILITY = 1 << 16 };
unsigned forget_attr_setid(int fd, const struct stat *st);
/* Removes set-id bits, as a write or a truncation does. */
void forget_attr_drop_setid(struct call *c, struct node *n);
/* Counts the names that an application sees; `fd` is the node's descriptor. Returns 0 or -errno. */
int forget_attr_links(struct node *n, int fd, nlink_t *links) must_check;
/* Replaces ROOT's values by the node's. */
void forget_attr_overlay(struct forget *f, struct node *n, struct stat *st);
void forget_on_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void forget_on_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *st, int to_set,
		       struct fuse_file_info *fi);
void forget_on_statfs(fuse_req_t req, fuse_ino_t ino);
void forget_on_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size);
void forget_on_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size);
void forget_on_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value,
			size_t len, int flags);
void forget_on_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name);

/* ---- forget_names.c ---- */

struct making {
	mode_t mode;
	dev_t rdev;
	const char *target; /* the target of a symbolic link */
	bool open;	    /* a file that is opened at once */
};

/*
 * With the names lock. Returns 0, or the descriptor of a file that was opened, and the entry; or
 * -errno.
 */
int forget_make_locked(struct call *c, struct node *p, int dir, const char *name,
		       const struct making *m, struct fuse_entry_param *e) must_check;
void forget_on_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
void forget_on_forget(fuse_req_t req, fuse_ino_t ino, uint64_t n);
void forget_on_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *v);
void forget_on_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev);
void forget_on_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode);
void forget_on_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name);
void forget_on_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name);
void forget_on_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		      struct fuse_file_info *fi);
void forget_on_readlink(fuse_req_t req, fuse_ino_t ino);

/* ---- forget_caller.c ---- */

/*
 * From here to forget_caller_leave(), this thread makes files for the user who sent the request:
 * with the user's owner and umask. The kernel has checked whether the user may make them; so only
 * the owner changes, not the rights of the server.
 */
void forget_caller_enter(fuse_req_t req);
void forget_caller_leave(fuse_req_t req);

/* ---- forget_remove.c ---- */

void forget_on_unlink(fuse_req_t req, fuse_ino_t parent, const char *name);
void forget_on_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name);
void forget_on_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t to,
		      const char *new_name, unsigned flags);

/* ---- forget_remake.c: removed directories ---- */

/* Notes the attributes of a directory, for the undo; the caller frees its value. */
int forget_remake_note(int fd, struct undo *u) must_check;
/* Makes the directory, if needed, with its attributes. Returns a descriptor (O_PATH), or -errno. */
int forget_remake(const struct undo *u, int dir, const char *name) must_check;

/* ---- forget_dir.c ---- */

/* Closes open directories: after a crash no request does it. */
void forget_dir_release_all(struct forget *f);
void forget_on_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void forget_on_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		       struct fuse_file_info *fi);
void forget_on_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
			   struct fuse_file_info *fi);
void forget_on_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
/* True for the stash, which the mount hides. */
bool forget_name_is_hidden(const struct forget *f, const struct node *parent, const char *name);

/* Makes the answer to lookup, creation and readdirplus. The kernel's count grows by one. */
int forget_entry_lookup(struct forget *f, struct node *parent, int dir, const char *name,
			struct fuse_entry_param *e) must_check;

/* ---- forget_data.c ---- */

void forget_on_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void forget_on_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void forget_on_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void forget_on_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		    struct fuse_file_info *fi);
void forget_on_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t off,
		     struct fuse_file_info *fi);
void forget_on_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t len,
			 struct fuse_file_info *fi);
void forget_on_lseek(fuse_req_t req, fuse_ino_t ino, off_t off, int whence,
		     struct fuse_file_info *fi);

/* True if the kernel need not report the closing of a descriptor. */
bool forget_data_noflush(struct forget *f, const struct fuse_file_info *fi);
/* Opens a new file's data; takes its descriptor, or -1. Takes the node lock. */
void forget_data_open_created(struct forget *f, struct node *n, int fd);

/* ---- forget_file.c; the node lock is held for all of these ---- */

/*
 * Returns a descriptor of ROOT's file, for reading or for writing; or -errno. A user who may not
 * open the file a second time keeps the descriptor: so the file is opened for writing when the
 * application opens it, as its mode may change later.
 */
int forget_data_fd(struct forget *f, struct node *n, bool write) must_check;
/* Closes unused data if descriptors run short. */
void forget_data_trim(struct forget *f, struct node *n);
/* Closes all unused data; takes the table lock, and no node lock may be held. */
void forget_data_close_idle(struct forget *f);
/* Makes `pf`. */
int forget_data_file(struct forget *f, struct node *n) must_check;
/* Frees the data in memory. */
void forget_data_free(struct forget *f, struct node *n);
int forget_data_truncate(struct forget *f, struct node *n, uint64_t size, uint64_t number)
	must_check;
/* Notes that operation `number` changed the size, which metadata that becomes durable includes. */
void forget_data_mark_sized(struct forget *f, struct node *n, uint64_t number);
/* Removes that note: the node is durable, or not needed. The caller has a reference. */
void forget_data_unmark_sized(struct forget *f, struct node *n);
void forget_data_touch(struct node *n); /* sets the times to now */
/* Sets the times again after a write to ROOT's file, or a resize, changed them. */
int forget_data_keep_times(struct forget *f, struct node *n) must_check;
/* Makes the content durable, with its times. */
int forget_data_sync(struct forget *f, struct node *n) must_check;
/* Makes durable what metadata includes: a size that was set, holes; not the content. */
int forget_data_sync_size(struct forget *f, struct node *n) must_check;
bool forget_data_is_dirty(const struct node *n);
/* True if a sync of its data needs new metadata: a size, or space for a hole. */
bool forget_data_needs_metadata(struct forget *f, struct node *n);
/* True if ROOT's file has a hole at these bytes, or ends before them. */
bool forget_data_range_needs_space(struct forget *f, struct node *n, const struct pagefile_risk *r);
/* Loses the data that is not durable. */
void forget_data_drop(struct forget *f, struct node *n);
/* Frees the data of a file that was made and removed, neither of which is durable. */
void forget_data_forget_removed(struct forget *f, struct node *n);
/* Closes data that is not needed, if the file is not open. */
void forget_data_idle(struct forget *f, struct node *n);
/* As forget_data_idle(); takes the node lock. */
void forget_data_let_go(struct forget *f, struct node *n);
/* Writes the surviving part of a torn write straight to ROOT. */
int forget_data_write_through(struct forget *f, struct node *n, const void *data, uint64_t offset,
			      size_t len) must_check;
/* Does the same as lseek with SEEK_DATA or SEEK_HOLE. */
int64_t forget_data_seek(struct forget *f, struct node *n, uint64_t offset, int whence) must_check;
/* Frees the data of a node that is not in use; takes the node lock. */
void forget_data_release(struct forget *f, struct node *n);
/*
 * A walk over all nodes with data in memory, or over those whose size waits for metadata. Each node
 * has a reference until the next one is taken; a walk must go to its end:
 *
 *	auto_vec struct node_walk walk = forget_data_dirty_nodes(f);
 *	for (struct node *n; (n = node_next(&walk));) ...
 */
struct node_walk {
	struct vec_of(struct node *) list;
	size_t next;
	struct node *at;
	struct forget *f;
};
struct node_walk forget_data_dirty_nodes(struct forget *f);
struct node_walk forget_data_sized_nodes(struct forget *f);
struct node *node_next(struct node_walk *w);

/* ---- forget_sync.c ---- */

void forget_on_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi);
void forget_on_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi);
/* Syncs the data, and then the log; the gate is held. */
int forget_data_sync_node(struct forget *f, struct node *n, bool data_only) must_check;
int forget_dir_sync_node(struct forget *f, struct node *n, bool data_only) must_check;
/*
 * Makes a file's content durable; takes its lock. If ROOT is full, removed files in the stash are
 * freed.
 */
int forget_data_sync_freeing(struct forget *f, struct node *n) must_check;
/* Makes sizes durable, as metadata. A size that cannot be written still waits. */
int forget_data_sync_sizes(struct forget *f) must_check;

/* ---- forget_log.c: the log of waiting operations, and its journal; with the names lock ---- */

static inline bool forget_log_waits(const struct forget *f, const struct node *n)
{
	return f->log && n->dev == f->dev;
}
static inline void names_lock(struct forget *f)
{
	if (f->log)
		pthread_mutex_lock(&f->names);
}
static inline void names_unlock(struct forget *f)
{
	if (f->log)
		pthread_mutex_unlock(&f->names);
}
/* Locks and unlocks for a scope. */
static inline struct forget *names_enter_(struct forget *f)
{
	names_lock(f);
	return f;
}
static inline void names_leave_(struct forget *const *f)
{
	names_unlock(*f);
}
#define auto_names(f)                                                                              \
	auto_call(names_leave_)                                                                    \
		__attribute__((unused)) struct forget *const names_of_ = names_enter_(f)
/* Puts an operation into the journal before it is done. Returns its number, or -errno. */
int forget_log_intend(struct forget *f, struct undo *u) must_check;
/* Called if the operation failed without an effect. */
void forget_log_cancel(struct forget *f, struct undo *u);
/* Adds a done operation to the log: copies `u` to the heap, with references to the nodes. */
void forget_log_add(struct forget *f, struct undo *u, struct node *const nodes[4], uint64_t number);
/* Does fsync of a node whose data is durable already. On failure, nothing more is durable. */
int forget_log_sync(struct forget *f, struct node *n, bool data_only, bool had_data) must_check;
/* Makes all operations durable. On failure some may be durable, in order. */
int forget_log_sync_all(struct forget *f) must_check;
/* Called if ROOT is full. Returns 0 if that freed removed files: then try again. */
int forget_log_make_room(struct forget *f) must_check;
/*
 * Undoes waiting operations; `keep` as in pending.h. On failure some are undone: then the mount
 * must end, and the next one undoes the rest.
 */
int forget_log_cut(struct forget *f, bool (*keep)(void *ctx, const struct pending_op *op),
		   void *ctx, struct told_list *told) must_check;
int forget_log_open(struct forget *f, struct err *err) must_check;
void forget_log_close(struct forget *f);
void forget_stash_name(uint64_t seq, char out[32]);
/* Makes the stash, if there is none. */
int forget_stash_open(struct forget *f, struct err *err) must_check;

/* ---- forget_undo.c ---- */

int undo_apply(const struct undo *u, struct undo_place *p) must_check;
/* Marks the operation as undone in the journal `fd`, afterwards. */
int undo_mark(const struct undo *u, const struct undo_place *p, int fd) must_check;
void undo_encode(const struct undo *u, struct strbuf *out);
/* Takes the attributes that the undo restores. */
void undo_attributes(struct undo *u, const struct stat *st);
/* Adds a length of 4 bytes, and the bytes. */
void undo_add_bytes(struct strbuf *out, const void *data, size_t len);
/* Returns the bytes used, 0 if the data ends too early, or -EINVAL. `out` has memory of its own. */
int64_t undo_decode(const void *data, size_t len, struct undo *out) must_check;
void undo_release(struct undo *u);

/* ---- forget_recover.c ---- */

/* The places of each inode of a tree, kept up to date while operations are undone. */
struct recover_places;
struct recover_places *recover_places_new(int root);
void recover_places_free(struct recover_places *p);
void recover_places_add(struct recover_places *p, uint64_t ino, uint64_t dir, const char *name);
struct undo_place *recover_places_undo(struct recover_places *p, int stash, bool copy);
void recover_places_set_root(struct recover_places *p, uint64_t ino);
/* Checks that no other user can have put files there. */
int forget_stash_check(int stash, const char *root, struct err *err) must_check;
/* Called with the lock of ROOT. Returns 1 if anything was undone. */
int forget_recover_locked(int root_fd, const char *root, struct err *err) must_check;
/* Returns -EBUSY, with a message, if another process has the lock. */
int forget_root_lock(int root_fd, const char *root, bool wait, struct err *err) must_check;
/* Removes `name` with everything below it. */
int forget_remove_tree(int dir, const char *name) must_check;

/* ---- forget_copy.c: a copy of a tree, sharing blocks where the file system can ---- */

/*
 * Copies the content of directory `from` into `to`, except the name `skip`. `places`, made for
 * `to`, then has the place in the copy of each inode of the original.
 */
int forget_copy_tree(int from, int to, const char *skip, struct recover_places *places) must_check;
/* Copies one more file: hard links to files of the tree become links in the copy, too. */
int forget_copy_one(int from, int to, const char *name, struct recover_places *places) must_check;

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
/*
 * forget_lose() with the gate held alone, which the caller goes on to hold. If it fails, the mount
 * has to end: forget_stop(), when the gate is open.
 */
int forget_lose_inside(struct forget *f, struct fault *fault, enum lose_end end, const char *why,
		       struct told_list *told, struct strbuf *text, struct strbuf *json) must_check;
/* forget_lose(), and makes the parts of one write durable that `fault` names. */
void forget_tear(struct forget *f, struct fault *fault, struct node *n, const void *data,
		 uint64_t offset, size_t len);
void forget_tell(struct forget *f, struct told_list *told);
void told_add(struct forget *f, struct told_list *told, struct node *n, const char *name);
/*
 * True if a waiting operation concerns a match: a file's attributes, or one of its names, which
 * `named` decides. With the names lock.
 */
bool forget_waits_for(struct forget *f, const struct pending_op *op, const struct path_match *m,
		      bool (*named)(const struct path_match *m, const char *path));
/* Adds everything that the kernel knows. */
void told_all(struct forget *f, struct told_list *told);
/* Makes everything durable; the gate is held. */
int forget_sync_all(struct forget *f) must_check;
/*
 * Called at the end: undoes operations that forget_sync_all() could not make durable, so that ROOT
 * is consistent.
 */
void forget_give_up(struct forget *f);
/* Does the sync of a FAULT_SYNC, at an operation on `own` (NULL: on none); the gate is held. */
int forget_sync_pages(struct forget *f, struct node *own, const struct fault *fault) must_check;
/* Returns how many unsynced pages the file of a FAULT_SYNC has; if several match, the most. */
uint64_t forget_pages_meant(struct forget *f, const struct fault *fault);
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

#endif
