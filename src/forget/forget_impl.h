/* SPDX-License-Identifier: MIT */
/*
 * forget_impl.h - shared by the files of the mount that forgets, which forget.h describes.
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
 * request at hand was answered: until then it holds locks of its own, of the directories in which
 * names change, and of the inode.
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
enum { JOURNAL_HEAD = 12 }; /* bytes of a record before what it says; forget_log.c has all */

/* ---- nodes: what the kernel, the log or unsynced data still needs of an inode ---- */

struct node_name {
	struct node *node, *parent; /* which stays as long as this name is known */
	/*
	 * The name was given with the names lock, and has not been taken away since: ROOT has it. A
	 * name that was only looked up may have changed meanwhile.
	 */
	bool sure;
	uint64_t hash;
	struct node_name *hash_next; /* in the table of those that are sure */
	char name[];
};

struct node {
	/* never change */
	uint64_t dev, ino;
	mode_t type;

	/* table lock */
	struct node *hash_next;
	uint64_t nlookup; /* as often as the kernel knows it */
	uint64_t refs;	  /* names below it, the log, requests at work */
	struct vec_of(struct node_name *) names;
	/* The ring of nodes whose descriptor may be closed; or of abandoned ones. NULL: neither. */
	struct node *ring_prev, *ring_next;
	void *handle;	/* to open it again without a name */
	bool dead;	/* being released */
	bool abandoned; /* not in the table any more */
	bool gone;	/* without a name: its descriptor, if it has one, stays */
	bool made;	/* its making waits: a power cut takes it away */
	bool replaced;	/* a rename made it another's successor */
	bool traced;	/* the trace has said where it is */

	/* the descriptor (O_PATH); closed only under the table lock, and without pins */
	atomic_int pins;
	int fd;
	atomic_bool used;

	/* links that are only in the stash, and how often that began to change, and ended */
	atomic_uint stash_links, stash_begun, stash_ended;

	/* node lock */
	pthread_mutex_t lock;
	atomic_int data; /* descriptor of ROOT's file, or -1; the table lock is enough to read it */
	bool data_reads, data_writes;	      /* the access that `data` has */
	unsigned data_users;		      /* requests that read from it, without the lock */
	struct pagefile *pf;		      /* NULL: nothing was written */
	struct file_ctx *file;		      /* the page file's context */
	struct node *dirty_prev, *dirty_next; /* nodes with `pf`; guarded by the dirty lock */
	bool times;			      /* the two below are newer than ROOT's */
	struct timespec mtime, ctime;
	uint64_t opens;
	bool was_truncated; /* to nothing, since it was last written out or closed */
	bool flush;	    /* its data comes with the next metadata */
	/*
	 * Its size changed, or its holes, which metadata that becomes durable includes: the first
	 * and last operation that did so, and where it is in the list of such nodes (table lock).
	 */
	bool sized;
	uint64_t size_first, size_last;
	size_t sized_at;
	atomic_uint setid;    /* set-id bits that a write may have to take away */
	atomic_bool live;     /* `pf` or `times` is set: attributes are not ROOT's */
	atomic_bool dropping; /* the kernel is being told: pages that it writes back are lost */
};

struct undo_list vec_of(struct undo *);

/* ---- undo: how an operation of the log is taken back ---- */

struct undo {
	uint64_t seq; /* names what it put into the stash */
	uint64_t at;  /* its record in the journal */
	enum pending_kind kind;
	bool is_dir;
	bool stashed; /* the file that it removed or replaced is in the stash */
	bool remade;  /* removed directory, which is made anew: as below, with `value` */
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
	/* while it is in the log: of the operation; directories, and what it is about */
	uint64_t number;
	struct node *nodes[4];
};

/* Where undoing happens: in ROOT, by the server or after it; or in a copy of it. */
struct undo_place {
	int stash;
	/* A new descriptor (O_PATH) of an inode, or -errno. */
	int (*open)(struct undo_place *p, uint64_t ino);
	/* `ino` lost the name, or (`made`) got it. */
	void (*named)(struct undo_place *p, uint64_t ino, uint64_t dir, const char *name,
		      bool made);
	/*
	 * `ino` was removed, and from now on means the directory `fd`, which was made anew under
	 * this name. NULL: the place knows the directory by its name.
	 */
	void (*remade)(struct undo_place *p, uint64_t ino, int fd, uint64_t dir, const char *name);
	/*
	 * The log's number for the inode with this number. NULL: not needed, because every
	 * operation was done, and is undone once.
	 */
	uint64_t (*number)(struct undo_place *p, uint64_t ino);
	uint64_t made_anew; /* the number of the directory that was made last */
};

/* Something that the kernel has to forget. */
struct told {
	struct node *node; /* referenced */
	char *name;	   /* an entry of it; NULL: its attributes and data */
};
struct told_list vec_of(struct told);

struct forget {
	struct session session;	 /* first */
	struct forget_opts opts; /* with strings of its own */
	char *root_path, *mnt_path, *fsname;
	bool checked; /* the kernel looks who may do what */
	int root_fd;
	int stash_fd; /* -1: none yet */
	uint64_t dev; /* ROOT's; on other devices nothing waits */
	struct inject *faults;
	struct pagecache *cache;

	pthread_t server; /* in forget_serve() */
	atomic_bool serving;
	bool has_waker;
	pthread_t waker;  /* ends the server's waiting */
	pthread_t ticker; /* while it serves, if `ticking`, which the wait lock guards */
	bool ticking;
	struct guardian guardian;

	pthread_rwlock_t gate;
	atomic_bool dead; /* crashed: nothing is done any more */
	pthread_mutex_t wait_lock;
	pthread_cond_t wait_cond; /* `dead` was set, or a fault cancelled: delays end */

	/* names lock */
	pthread_mutex_t names;
	struct pending *log; /* NULL: metadata is durable at once */
	int journal;
	uint64_t journal_size, journal_limit;
	bool has_reserve; /* space for the journal, should ROOT be full */
	bool half_undone; /* the journal has what is left to do: the next mount does it */
	uint64_t seq;
	struct strbuf record;

	/* table lock */
	pthread_mutex_t table;
	struct node **buckets;
	size_t n_buckets, n_nodes;
	struct node_name **sure; /* names by parent and text */
	size_t sure_buckets, n_sure;
	struct node *abandoned;	 /* a ring: nodes that cannot be found any more */
	struct dir_handle *dirs; /* the open ones */
	struct node *clock;	 /* a ring: nodes whose descriptor may be closed */
	struct node root;

	/* descriptors: forget_fds.c. The numbers change with the table lock, but for data. */
	size_t fd_limit, fd_other;
	atomic_size_t n_fds;	/* nodes' that have a name */
	atomic_size_t n_held;	/* nodes' that have none */
	atomic_size_t n_dirs;	/* directories' that are being read */
	atomic_size_t n_data;	/* files' */
	unsigned threads;	/* as many as there are descriptors for */
	bool handles;		/* inodes can be opened by handle */
	bool data_stays;	/* without root, a file may not open a second time */
	atomic_bool told_short; /* the shortage of descriptors was logged */

	pthread_mutex_t dirty;
	struct node *dirty_first;
	struct vec_of(struct node *) sized; /* nodes with that mark, referenced */

	/* the log, the trace and the numbers for reports */
	uint64_t since_ns; /* when it was mounted */
	atomic_uint_fast64_t number;
	bool watch; /* every operation has to be described: trace or log */
	pthread_mutex_t trace_lock;
	struct trace_writer *trace;
	uint64_t trace_start;
	uint64_t n_marks;
	atomic_uint_fast64_t lost_count; /* how often everything was lost */
	atomic_uint_fast64_t epoch;	 /* grows when what the kernel knows becomes wrong */
	pthread_mutex_t command;	 /* one command at a time */
};

/* The result of a system call, or -errno. */
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
 * The node of an inode, made if it is not there. Takes the descriptor. `nlookup` more are known to
 * the kernel; with 0 the caller has a reference.
 */
struct node *node_adopt(struct forget *f, int fd, const struct stat *st, struct node *parent,
			const char *name, unsigned nlookup);
/* A reference, or NULL if it is not known. */
struct node *node_find(struct forget *f, uint64_t dev, uint64_t ino);
void node_ref(struct forget *f, struct node *n);
void node_unref(struct forget *f, struct node *n);
void node_forget(struct forget *f, struct node *n, uint64_t nlookup);
/* The descriptor, which stays open until it is unpinned; or -errno. */
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
 * A name of it is about to go, or to get lost. If that is the last one, its descriptor stays from
 * now on. False: there is none for it, and once the name has gone, node_abandon() must follow.
 */
bool node_keep(struct forget *f, struct node *n, bool lost) must_check;
/* The name did not go. */
void node_not_gone(struct forget *f, struct node *n);
/*
 * An abandoned node has no name, and keeps no descriptor: a request for more than its data gets
 * ESTALE.
 */
void node_abandon(struct forget *f, struct node *n);
/* No more descriptors of nodes than there should be. */
void node_give_way(struct forget *f);
/* With the names lock: it got the name, or lost it. */
void node_named(struct forget *f, struct node *n, struct node *parent, const char *name);
void node_unnamed(struct forget *f, struct node *n, struct node *parent, const char *name);
/*
 * With the names lock: the node that has this name, with a reference. NULL: unknown; ROOT has to be
 * asked.
 */
struct node *node_of_name(struct forget *f, struct node *parent, const char *name);
/* ROOT becomes another: inodes that are known by number are not the same any more. */
void node_abandon_all(struct forget *f);
/* The path from the mount, with `name` behind it if there is one. */
void node_path(struct forget *f, struct node *n, const char *name, struct strbuf *out);

/* ---- forget_fds.c ---- */

int forget_fds_init(struct forget *f, unsigned threads, struct err *err) must_check;
/* How many descriptors of nodes that give way there should be; and as many of data. */
size_t forget_fds_each_max(const struct forget *f);
/*
 * The purpose of one more descriptor that stays; the further down, the more must be left without
 * it.
 */
enum fds_for {
	FDS_OPEN,	 /* a file or directory that is opened */
	FDS_REMOVED_DIR, /* a directory that is removed */
	FDS_LOST_OPEN,	 /* a node that loses its last name, and may be open */
	FDS_LOST,	 /* the same, and not open */
};
/* Whether it may. The table lock must not be held; nor a node lock, unless `data_stays`. */
bool forget_fds_take(struct forget *f, enum fds_for what) must_check;
/* The answer to a request that gets no descriptor. */
int forget_fds_refuse(struct forget *f);
/* Everything that can gives way. */
void forget_fds_prepare_cut(struct forget *f);

/* ---- forget_call.c: what every request does ---- */

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

/* 0: go on, inside the gate. Or what to answer. call_end() must follow, whatever this gives. */
int call_begin_what(struct call *c, fuse_req_t req, const struct call_what *w) must_check;
#define call_begin(c, req, ...) call_begin_what(c, req, &(struct call_what){ __VA_ARGS__ })
/* Leaves the gate. Gives what to answer: `rc`, or that the mount crashed. */
int64_t call_end(struct call *c, int64_t rc) must_check;
/*
 * Whether something was lost or went back since call_begin(): the kernel may have been told to
 * forget before it hears this answer, and must not keep it.
 */
static inline bool call_is_late(const struct call *c)
{
	return atomic_load(&c->f->epoch) != c->epoch;
}
/* After the answer: the kernel is told. */
void call_done(struct call *c);
/* The simple answer, with all three. */
void call_reply(struct call *c, int64_t rc);
void forget_log(struct forget *f, const char *fmt, ...) printf_like(2, 3);
uint64_t forget_clock_ns(void); /* since 1970 */

/* ---- forget_trace.c ---- */

int forget_trace_open(struct forget *f, struct err *err) must_check;
int forget_trace_close(struct forget *f, struct err *err) must_check;
/* Whether a call belongs into the trace. */
bool forget_trace_wants(const struct call *c);
/* Writes a call down; with the trace lock. */
void forget_trace_call(struct call *c);
/* Something that is no call happened here. Takes the trace lock. */
void forget_trace_note(struct forget *f, const char *fmt, ...) printf_like(2, 3);
/* The events that are gathered go to the file. Takes the trace lock. */
void forget_trace_hand_over(struct forget *f);
/* The event of its making will say where it is. */
void forget_trace_made(struct forget *f, struct node *n);

/* ---- forget_attr.c ---- */

/* A link of `n` comes to the stash, or leaves it: meanwhile ROOT and the count do not agree. */
static inline void stash_change_begin(struct node *n)
{
	atomic_fetch_add(&n->stash_begun, 1);
}

static inline void stash_change_end(struct node *n, int more)
{
	atomic_fetch_add(&n->stash_links, (unsigned)more);
	atomic_fetch_add(&n->stash_ended, 1);
}

/* How long the kernel may keep them. */
double forget_attr_keep_s(const struct stat *st);
/* Whether a user who is alone may do this. */
int forget_attr_allowed(struct forget *f, struct node *n, int mask) must_check;
void forget_on_access(fuse_req_t req, fuse_ino_t ino, int mask);
/*
 * The set-id bits of a file that a write takes away; beside the mode's bits there are capabilities.
 */
enum { SETID_CAPABILITY = 1 << 16 };
unsigned forget_attr_setid(int fd, const struct stat *st);
/* Writing to a file, or shortening it, takes set-id bits away. */
void forget_attr_drop_setid(struct call *c, struct node *n);
/* How many names of it an application sees; `fd` is its descriptor. 0 or a negated errno. */
int forget_attr_links(struct node *n, int fd, nlink_t *links) must_check;
/* From ROOT's values to ours. */
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
	const char *target; /* a symbolic link's */
	bool open;	    /* a file, to be opened */
};

/*
 * With the names lock. Gives 0, or the descriptor of a file that was opened, and the entry; or
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
 * From here to forget_caller_leave(), this thread makes things in the name of the user who sent the
 * request: with the user's owner and umask. The kernel has decided whether they may be made; so
 * only the owner changes, not what we may do.
 */
void forget_caller_enter(fuse_req_t req);
void forget_caller_leave(fuse_req_t req);

/* ---- forget_remove.c ---- */

void forget_on_unlink(fuse_req_t req, fuse_ino_t parent, const char *name);
void forget_on_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name);
void forget_on_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t to,
		      const char *new_name, unsigned flags);

/* ---- forget_remake.c: directories that were removed ---- */

/* Writes down what the directory looks like, for the undo; the caller frees its value. */
int forget_remake_note(int fd, struct undo *u) must_check;
/* Makes the directory, if it is not there. Returns a descriptor (O_PATH), or -errno. */
int forget_remake(const struct undo *u, int dir, const char *name) must_check;

/* ---- forget_dir.c ---- */

/* After a crash there is no request that closes what is open. */
void forget_dir_release_all(struct forget *f);
void forget_on_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void forget_on_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		       struct fuse_file_info *fi);
void forget_on_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
			   struct fuse_file_info *fi);
void forget_on_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
/* Hidden from the mount: the stash. */
bool forget_name_is_hidden(const struct forget *f, const struct node *parent, const char *name);

/* The answer to lookup, creation and readdirplus. Takes one of nlookup. */
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

/* Whether the kernel needs not to tell when a descriptor is closed. */
bool forget_data_noflush(struct forget *f, const struct fuse_file_info *fi);
/* Takes the node lock. The descriptor of a file that was just made, or -1, is taken. */
void forget_data_open_created(struct forget *f, struct node *n, int fd);

/* ---- forget_file.c; the node lock is held for all of these ---- */

/*
 * ROOT's file, for reading or for writing; or -errno. A user who may not open the file a second
 * time keeps the descriptor: so the file is opened for writing when the application opens it, whose
 * mode may change later.
 */
int forget_data_fd(struct forget *f, struct node *n, bool write) must_check;
/* When descriptors run short, a file has one only while it is used. */
void forget_data_trim(struct forget *f, struct node *n);
/* Closes data that is not being used; takes the table lock, and no node lock may be held. */
void forget_data_close_idle(struct forget *f);
/* Makes `pf`. */
int forget_data_file(struct forget *f, struct node *n) must_check;
/* Frees the data in memory. */
void forget_data_free(struct forget *f, struct node *n);
int forget_data_truncate(struct forget *f, struct node *n, uint64_t size, uint64_t number)
	must_check;
/* Metadata that becomes durable will include its size, which operation `number` changed. */
void forget_data_mark_sized(struct forget *f, struct node *n, uint64_t number);
/* The node is durable, or not needed. The caller has a reference. */
void forget_data_unmark_sized(struct forget *f, struct node *n);
void forget_data_touch(struct node *n); /* sets the times to now */
/* Writing to ROOT's file, or resizing it, changed its time; what was set counts. */
int forget_data_keep_times(struct forget *f, struct node *n) must_check;
/* Makes the content durable, with its times. */
int forget_data_sync(struct forget *f, struct node *n) must_check;
/* Makes durable what metadata includes of it: a size that was set, holes; not the content. */
int forget_data_sync_size(struct forget *f, struct node *n) must_check;
bool forget_data_is_dirty(const struct node *n);
/* A sync of its data needs new metadata: a size, or space where there was none. */
bool forget_data_needs_metadata(struct forget *f, struct node *n);
/* Whether ROOT's file has a hole where these bytes are, or ends before them. */
bool forget_data_range_needs_space(struct forget *f, struct node *n, const struct pagefile_risk *r);
/* Loses the data that is not durable. */
void forget_data_drop(struct forget *f, struct node *n);
/*
 * Forgets a node that was made and removed, neither of which is durable: no name leads to it any
 * more.
 */
void forget_data_forget_removed(struct forget *f, struct node *n);
/* If the file is not open: closes what is not needed any more. */
void forget_data_idle(struct forget *f, struct node *n);
/* As forget_data_idle(); takes the node lock. */
void forget_data_let_go(struct forget *f, struct node *n);
/* Writes what a torn write left straight to ROOT. */
int forget_data_write_through(struct forget *f, struct node *n, const void *data, uint64_t offset,
			      size_t len) must_check;
/* As lseek with SEEK_DATA and SEEK_HOLE. */
int64_t forget_data_seek(struct forget *f, struct node *n, uint64_t offset, int whence) must_check;
/* Takes the node lock; the node must be out of use. */
void forget_data_release(struct forget *f, struct node *n);
/*
 * A walk over every node that has data in memory, and over those whose size waits for metadata.
 * Each has a reference until the next is asked for; a walk goes to its end:
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
/* The data of a sync, and then what the log says; the gate is held. */
int forget_data_sync_node(struct forget *f, struct node *n, bool data_only) must_check;
int forget_dir_sync_node(struct forget *f, struct node *n, bool data_only) must_check;
/*
 * Makes a file's content durable; takes its lock. If ROOT is full, files that the log holds are
 * freed.
 */
int forget_data_sync_freeing(struct forget *f, struct node *n) must_check;
/* Sizes become durable as metadata does. A size that cannot be written waits on. */
int forget_data_sync_sizes(struct forget *f) must_check;

/* ---- forget_log.c: the log of what waits, and its journal; with the names lock ---- */

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
/* Both, for a scope. */
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
/* Before the operation: it is in the journal. Gives its number, or -errno. */
int forget_log_intend(struct forget *f, struct undo *u) must_check;
/* The operation failed, and did nothing. */
void forget_log_cancel(struct forget *f, struct undo *u);
/* The operation is done: `u` is copied to the heap, with references to the nodes, and waits. */
void forget_log_add(struct forget *f, struct undo *u, struct node *const nodes[4], uint64_t number);
/* fsync of a node; its data is durable already. If it fails, nothing more is durable than was. */
int forget_log_sync(struct forget *f, struct node *n, bool data_only, bool had_data) must_check;
/* If it fails, some of it may be durable, in order. */
int forget_log_sync_all(struct forget *f) must_check;
/* ROOT is full. 0: something became durable, so the files that it removed are gone: try again. */
int forget_log_make_room(struct forget *f) must_check;
/*
 * Loses what waits; `keep` as in pending.h. If it fails, it stopped half way: then the mount has to
 * end, and the next one does the rest.
 */
int forget_log_cut(struct forget *f, bool (*keep)(void *ctx, const struct pending_op *op),
		   void *ctx, struct told_list *told) must_check;
int forget_log_open(struct forget *f, struct err *err) must_check;
void forget_log_close(struct forget *f);
void forget_stash_name(uint64_t seq, char out[32]);
/* Makes the stash, if it is not there yet. */
int forget_stash_open(struct forget *f, struct err *err) must_check;

/* ---- forget_undo.c ---- */

int undo_apply(const struct undo *u, struct undo_place *p) must_check;
/* After that: the journal `fd` says that it is done. */
int undo_mark(const struct undo *u, const struct undo_place *p, int fd) must_check;
void undo_encode(const struct undo *u, struct strbuf *out);
/* The attributes that it brings back. */
void undo_attributes(struct undo *u, const struct stat *st);
/* With 4 bytes before that say how many there are. */
void undo_add_bytes(struct strbuf *out, const void *data, size_t len);
/* Bytes used, 0 if it ends too early, or -EINVAL. `out` has memory of its own. */
int64_t undo_decode(const void *data, size_t len, struct undo *out) must_check;
void undo_release(struct undo *u);

/* ---- forget_recover.c ---- */

/* Where each inode of a tree is, kept up to date while it is undone. */
struct recover_places;
struct recover_places *recover_places_new(int root);
void recover_places_free(struct recover_places *p);
void recover_places_add(struct recover_places *p, uint64_t ino, uint64_t dir, const char *name);
struct undo_place *recover_places_undo(struct recover_places *p, int stash, bool copy);
void recover_places_set_root(struct recover_places *p, uint64_t ino);
/* Checks that no other user can have put anything there. */
int forget_stash_check(int stash, const char *root, struct err *err) must_check;
/* With the lock of ROOT held. 1: something was undone. */
int forget_recover_locked(int root_fd, const char *root, struct err *err) must_check;
/* -EBUSY with a sentence if another process has it. */
int forget_root_lock(int root_fd, const char *root, bool wait, struct err *err) must_check;
/* Removes what is below `name`, and it. */
int forget_remove_tree(int dir, const char *name) must_check;

/* ---- forget_copy.c: a copy of a tree, sharing blocks where the file system can ---- */

/*
 * Copies what is in the directory `from` into `to`, but for `skip` in it. `places`, made for `to`,
 * tells afterwards where in the copy each inode of the original is.
 */
int forget_copy_tree(int from, int to, const char *skip, struct recover_places *places) must_check;
/* One thing more, beside the tree: hard links to what is in it are links in the copy, too. */
int forget_copy_one(int from, int to, const char *name, struct recover_places *places) must_check;

/* ---- forget_lose.c ---- */

enum lose_end { LOSE_GO_ON, LOSE_AND_END };
/*
 * Everything that is not durable is lost, but for what `fault` lets survive (NULL: nothing). With
 * LOSE_AND_END nothing is done any more. The gate must not be held. Adds to `told` what the kernel
 * has to be told.
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
 * Whether a waiting operation is about what matches: a file's attributes, or one of the names, for
 * which `named` says it. With the names lock.
 */
bool forget_waits_for(struct forget *f, const struct pending_op *op, const struct path_match *m,
		      bool (*named)(const struct path_match *m, const char *path));
/* Everything that the kernel knows. */
void told_all(struct forget *f, struct told_list *told);
/* Makes everything durable; the gate is held. */
int forget_sync_all(struct forget *f) must_check;
/*
 * At the end: operations that forget_sync_all() could not make durable are undone, so that ROOT is
 * whole.
 */
void forget_give_up(struct forget *f);
/* Does what FAULT_SYNC says, at an operation on `own` (NULL: on none); the gate is held. */
int forget_sync_pages(struct forget *f, struct node *own, const struct fault *fault) must_check;
/* How many unsynced pages the file has that FAULT_SYNC means; of several, the one with most. */
uint64_t forget_pages_meant(struct forget *f, const struct fault *fault);
bool forget_root_is_there(const struct forget *f);
/* Where ROOT is, if it was moved since it was mounted; NULL: it was not. */
char *forget_root_now(const struct forget *f);
/* Ends forget_serve(), from any thread. */
void forget_stop(struct forget *f);

/* ---- forget_report.c ---- */

/* Says what is at risk, in words, a line each. */
void forget_report_risks(struct forget *f, struct strbuf *text, struct strbuf *json);
/* The answer of a command that is done; either may be NULL. */
void forget_report_say(struct strbuf *text, struct strbuf *json, const char *sentence);

/* ---- forget_durable.c ---- */

int forget_durable_all(struct forget *f, struct strbuf *text, struct strbuf *json, struct err *err)
	must_check;
/* Does what a FAULT_SYNC says, at once. */
int forget_durable_some(struct forget *f, const struct fault *some, struct strbuf *text,
			struct strbuf *json, struct err *err) must_check;
/* Whether anything in ROOT has a path that matches; true as well if there is too much to look at.
 */
bool forget_root_has_match(struct forget *f, const struct path_match *m);

/* ---- forget_snapshot.c ---- */

int forget_snapshot_take(struct forget *f, const char *name, struct err *err) must_check;
int forget_snapshot_rollback(struct forget *f, const char *name, struct told_list *told,
			     struct err *err) must_check;
/*
 * Finishes the rollback at which a server was killed. 1: there was something to do, and it is done.
 */
int forget_snapshot_finish_rollback(int root_fd, int stash, const char *root, struct err *err)
	must_check;
/* Removes a snapshot. */
int forget_snapshot_drop(struct forget *f, const char *name, struct err *err) must_check;
int forget_snapshot_list(struct forget *f, struct strbuf *text, struct strbuf *json,
			 struct err *err) must_check;

#endif
