/* SPDX-License-Identifier: MIT */
/*
 * forget_tree.h - the live tree of a mount that forgets, in memory, over ROOT, which holds what is
 * durable.
 *
 * A node is an inode that the kernel knows, or that differs from ROOT. A name is a place for a
 * node: a text in a directory. Each name has two nodes, the live one, which programs see, and the
 * durable one, which ROOT has there; one or both may be missing. A name of which both are the same
 * is only a cache of ROOT. All others are in memory for as long as they differ, so a lookup that
 * finds no name here asks ROOT. A power cut makes each live node the durable one; a sync makes a
 * change in ROOT, and then makes each durable node the live one. Nothing else ever changes ROOT.
 *
 *	name   live  durable
 *	a      1     1         as in ROOT
 *	b      2     -         made, linked or renamed to this place; not synced
 *	c      -     3         removed or renamed away; not synced
 *	d      4     5         4 replaces 5
 *
 * The changes that make the difference are records in a log, in order (forget_redo.h). The
 * attributes of a node are those of ROOT, unless it has `looks`; its data is that of ROOT's file,
 * unless it has newer data in memory (forget_file.h). A node that was never in ROOT is *unmade*: it
 * has all that a file in ROOT would have. Its data which was synced without its name, as POSIX lets
 * a program do, is a second page file in memory; it becomes durable together with the first name.
 *
 * T1: ROOT holds all that a sync has promised, and beyond that only whole records that are older
 *     than a record of a running sync which needs them, or which chose them. So a killed server
 *     leaves what a power cut would, in the middle of a sync that has not returned.
 * T2: a name in ROOT is there from its first moment with the type, mode, owner and synced data of
 *     its file. (Access control lists and extended attributes of a new directory follow at once.)
 *     ROOT has no other names: no temporary ones, no list of changes.
 * T3: a name whose nodes differ stays in memory. A node stays while the kernel knows it, while a
 *     name of another directory entry, a record or a request refers to it, or while it has data
 *     that is not durable.
 * T4: an inode number, as a program sees it, stays the same until the inode is gone. An unmade node
 *     gets a number that ROOT's file system will not give; when it gets into ROOT, the two numbers
 *     are kept as a pair, also when the node is forgotten and loaded again.
 *
 * Locks, in the order in which they are taken:
 *
 *	gate    each request holds it shared while it works; a power cut, or a snapshot, takes it
 *	        alone. No thread waits for the kernel while holding it
 *	log     changes of names and attributes, live or in ROOT
 *	data    the data of one file; many files share a lock, and a thread holds only one
 *	tree    this file: nodes, names, looks, descriptors of directories; short
 */
#ifndef FORGET_FORGET_TREE_H
#define FORGET_FORGET_TREE_H

#include <sys/stat.h>

#include "base/lock.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "fs/node.h"

struct forget;
struct node;

enum name_state { NAME_LIVE, NAME_DURABLE, NAME_STATES };

struct node_name {
	struct node_name *hash_next;
	struct node *dir; /* stays as long as this name */
	struct node *node[NAME_STATES];
	struct node_name *next[NAME_STATES];	       /* another name of this node */
	struct node_name *differs_prev, *differs_next; /* names of this directory that differ */
	uint32_t hash;
	uint32_t records; /* so many records of the log have it */
	char text[];
};

/* The attributes of a node, if they differ from ROOT's. */
struct looks {
	uint32_t mode, uid, gid;
	bool own_xattrs; /* `xattrs` is all of them; if not, ROOT's count */
	struct xattrs *xattrs;
	struct timespec atime, mtime, ctime;
};

/* The attributes that a change sets. */
enum { LOOKS_MODE = 1, LOOKS_OWNER = 2, LOOKS_ATIME = 4, LOOKS_MTIME = 8 };

/* The rest of what makes a node that is not in ROOT. */
struct unmade {
	struct looks looks; /* the attributes that would be durable */
	dev_t rdev;
	char *target; /* for a symbolic link */
};

/* The part of a node that only directories have. */
struct node_dir {
	int fd; /* in ROOT; -1: closed */
	unsigned pins;
	bool used;
	struct node *ring_prev, *ring_next; /* directories with a descriptor */
	struct node_name *differs;
	size_t added, removed; /* names that are only live, or only durable */
	long subdirs;	       /* so many more directories are in it than in ROOT's */
	/* The directory gives these to new files; unknown after a change of attributes. */
	bool rules_known, has_default;
	uint32_t mode, gid;
	bool times; /* the time of the last change of a name that differs */
	struct timespec mtime;
};

struct node {
	struct node *hash_next;
	uint64_t ino;	   /* as programs see it */
	uint64_t root_ino; /* in ROOT; 0: not in it, or without a name there */
	dev_t dev;
	uint64_t nlookup; /* how often the kernel has looked it up */
	uint32_t refs;	  /* names in it, the log, requests */
	uint32_t records; /* records of the log about its names and attributes */
	mode_t type;
	bool dead;		/* being released */
	bool traced;		/* the trace has its path */
	bool stale;		/* its last name in ROOT went, and it could not be kept open */
	bool made;		/* a record that waits has made the node */
	bool replaced;		/* a rename has put it in another's place */
	_Atomic(bool) dropping; /* the kernel is being told: its writes of pages are lost */
	struct node_name *names[NAME_STATES];
	struct looks *looks;
	struct unmade *unmade;
	struct node_file *file; /* data lock */
	struct node_dir *in;	/* directories */
};

/* A pair of inode numbers (T4). */
struct ino_pair {
	uint64_t root_ino, ino;
};

struct live_tree {
	struct owned_lock lock;
	struct node **nodes; /* by number */
	size_t n_buckets, n_nodes;
	struct node_name **names;
	size_t name_buckets, n_names;
	struct ino_pair *pairs; /* open addressing; root_ino 0 is free */
	size_t pairs_cap, n_pairs;
	uint64_t next_ino;
	struct node *clock; /* a ring: directories with a descriptor */
	size_t n_dirs;
	struct node root;
};

void forget_tree_init(struct forget *f);
void forget_tree_release(struct forget *f);
/* Called when ROOT was replaced: every node is stale, and no name is known. */
void forget_tree_abandon(struct forget *f);

/* Nodes; these take the lock. */
void node_ref(struct forget *f, struct node *n);
void node_unref(struct forget *f, struct node *n); /* NULL is fine */
void node_forget(struct forget *f, struct node *n, uint64_t nlookup);
/* Adds the path from the mount, and `name` if it is not NULL. */
void node_path(struct forget *f, struct node *n, const char *name, struct strbuf *out);
/* Returns the node of a path in the live tree, with a reference; or NULL and -errno in `rc`. */
struct node *node_of_path(struct forget *f, const char *path, int *rc);

/* ---- with the tree lock ---- */

/* Makes a node that is not in ROOT, with a reference. */
struct node *node_new_unmade(struct forget *f, mode_t mode);
/* Returns the live node of a name, with a reference; or NULL and -errno in `rc`. */
struct node *node_lookup(struct forget *f, struct node *dir, const char *text, int *rc);
/* Returns the name, made if it is not in memory; then neither of its nodes is known. */
struct node_name *node_name_get(struct forget *f, struct node *dir, const char *text);
/* Sets one node of a name, or both. node_name_put() follows. */
void node_name_set(struct forget *f, struct node_name *a, enum name_state s, struct node *n);
/* Frees the name if it is not needed; its nodes may be freed later, by node_unref(). */
void node_name_put(struct forget *f, struct node_name *a);
/*
 * The node is in ROOT now, as `st`; or no more, if `st` is NULL. Unless its number was `seen`, it
 * gets that of ROOT.
 */
void node_in_root(struct forget *f, struct node *n, const struct stat *st, bool seen);
/* True if a file or directory is in ROOT, or was when its last name went. */
static inline bool node_is_made(const struct node *n)
{
	return !n->unmade;
}
/* The names that a program sees; for a directory, with those in it. */
nlink_t node_links(struct forget *f, const struct node *n, nlink_t in_root);
bool node_is_empty(struct forget *f, struct node *dir, int *rc);
/* Names in a directory: of its live ones, each with its number and type. */
struct dir_entry {
	uint64_t ino;
	mode_t type;
	char *name;
};
struct dir_entries vec_of(struct dir_entry);
int node_entries(struct forget *f, struct node *dir, struct dir_entries *out) must_check;
void dir_entries_release(struct dir_entries *e);
/*
 * Puts a new node in the place of a directory in which no name differs; the caller gets a
 * reference, and moves the names that are known in the directory.
 */
struct node *node_replace(struct forget *f, struct node *n);
void node_name_move(struct node_name *a, struct node *from, struct node *to);
/* Gives the looks of a node, for a change: made from what it has now. Returns NULL on failure. */
struct looks *node_looks(struct forget *f, struct node *n);
void node_looks_drop(struct node *n);
/* Brings the access list in line with the mode. */
void looks_chmod(struct looks *l, mode_t type);
/* All live extended attributes that may be read; the caller releases them. */
struct xattrs *node_xattrs(struct forget *f, struct node *n);
void unmade_free(struct unmade *u); /* NULL is fine */

/* ---- a node in ROOT, with the tree lock: forget_root.c ---- */

/* Where a call on a node in ROOT goes: the descriptor of a directory there, and a name. */
struct root_at {
	int dir;
	const char *name;
	struct node *pinned;
	int held; /* the descriptor of a file without a name; or -1 */
};
int root_at(struct forget *f, struct node *n, struct root_at *at) must_check;
/* As root_at(), of a name that may not exist. */
int root_at_name(struct forget *f, struct node *dir, const char *text, struct root_at *at)
	must_check;
void root_at_end(struct root_at *at);
#define auto_root_at auto_call(root_at_end) struct root_at

/* Attributes that would be durable, in ROOT or not. */
int forget_root_looks(struct forget *f, struct node *n, struct stat *st) must_check;
int forget_root_open(struct forget *f, struct node *n, int flags) must_check;
int forget_root_get_xattr(struct forget *f, struct node *n, const char *name, void *value,
			  size_t size) must_check;
int forget_root_list_xattr(struct forget *f, struct node *n, char *list, size_t size) must_check;
int forget_root_readlink(struct forget *f, struct node *n, char *out, size_t size) must_check;
struct xattrs *forget_root_xattrs(struct forget *f, struct node *n); /* all that may be read */
int forget_root_set_xattr(struct forget *f, struct node *n, const char *name, const void *value,
			  size_t len) must_check; /* NULL: removes it */
int forget_root_set_looks(struct forget *f, struct node *n, const struct looks *l, unsigned sets)
	must_check;
/* Makes `n` in ROOT, with all that it has except data; `fd`, if not -1, is its file. */
int forget_root_make(struct forget *f, struct node *n, struct node *dir, const char *text, int fd,
		     struct stat *st) must_check;
/* Makes `n` by the rules of ROOT's directory, with a mask: as a program would. */
int forget_root_make_now(struct forget *f, struct node *n, struct node *dir, const char *text,
			 mode_t umask, struct stat *st) must_check;
int forget_root_link(struct forget *f, struct node *n, struct node *dir, const char *text)
	must_check;
int forget_root_remove(struct forget *f, struct node *dir, const char *text, bool is_dir)
	must_check;
int forget_root_rename(struct forget *f, const struct node_name *from, const struct node_name *to,
		       unsigned flags) must_check;
void forget_root_set_dir_time(struct forget *f, struct node *dir, const struct timespec *mtime);
/*
 * Around the removal of a durable name of `n`, if it succeeded, then with `gone`: what a program
 * still sees of `n` is kept. For a regular file, forget_file_hold() comes before, which says
 * whether the file is `unmade` then.
 */
struct root_leaving {
	bool stays;	  /* by another durable name */
	bool other_names; /* which were not looked up yet */
	struct unmade *copy;
};
int forget_root_leave_begin(struct forget *f, struct node *n, bool unmade, struct root_leaving *l)
	must_check;
void forget_root_leave_end(struct forget *f, struct node *n, struct root_leaving *l, bool gone);
/* An unnamed file for forget_root_make(), or -errno. */
int forget_root_tmpfile(struct forget *f, struct node *dir) must_check;
void forget_root_close_dir(struct forget *f, struct node *dir);

#endif
