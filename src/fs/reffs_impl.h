/* SPDX-License-Identifier: MIT */
/* reffs_impl.h - declarations that only the files of this room share. */
#ifndef FS_REFFS_IMPL_H
#define FS_REFFS_IMPL_H

#include "fs/node.h"
#include "fs/vfs.h"

/* An open file. There is no position: every operation has an offset. */
struct opened {
	uint64_t ino;
	int flags; /* open(2)'s */
};

struct handle {
	char *name;
	struct opened file; /* ino 0: closed */
};

struct reffs_state {
	uint32_t refs;
	bool times; /* times count for the hash */
	struct map_node *inodes;
	struct hash128 hash;
	uint64_t n_inodes, pages; /* of all files together */
};

typedef int64_t reffs_op_fn(struct reffs *r, const struct op *op);

/* Pinned inodes, and how often: a table with open addressing; its size is a power of 2. */
struct pins {
	struct pin {
		uint64_t ino; /* 0: empty */
		uint64_t n;
	} * v;
	size_t n, size;
};

/* A cache of inodes that were found; emptied when one may have moved in memory. */
struct found_inodes {
	uint64_t now;
	struct {
		uint64_t when, ino;
		const struct reffs_inode *inode;
	} v[16];
};

struct reffs {
	struct reffs_opts opts; /* with the defaults filled in */
	struct reffs_state *cur;
	struct found_inodes *found;
	uint64_t next_ino;
	struct tree_time now;
	struct pins pins;
	/* Inodes without a name that are pinned. */
	struct map_node *orphans;
	uint64_t n_orphans, orphan_pages;

	/* For operations of workloads: their user, and the handles that they left open. */
	struct reffs_cred cred;
	struct vec_of(struct handle) handles;

	/* The operation that is performed, and the origin of its content. */
	const struct workload *workload;
	size_t index;
	uint32_t tag;
	bool tag_fixed;
	struct opened source; /* source of a copy while its destination is opened; else ino 0 */
};

/* ---- inode.c: inodes of the current state, and orphans ---- */

/* Finds an inode, or NULL. Valid until the inode is changed. */
const struct reffs_inode *inode_find(const struct reffs *r, uint64_t ino);
/* Returns an inode that must exist. */
const struct reffs_inode *inode_get(const struct reffs *r, uint64_t ino);
/* Returns an inode for a change that does not alter the hash: a directory's names, link counts. */
struct reffs_inode *inode_own(struct reffs *r, uint64_t ino);
/* Returns an inode for any change; inode_commit() must follow. */
struct reffs_inode *inode_edit(struct reffs *r, uint64_t ino);
void inode_commit(struct reffs *r, struct reffs_inode *inode);
/* Sets times of an inode from inode_own() to now; keeps the hash up to date. */
enum { TOUCH_ATIME = 1, TOUCH_MTIME = 2, TOUCH_CTIME = 4 };
void inode_touch(struct reffs *r, struct reffs_inode *inode, unsigned times);
/* inode_room() gives 0, or -ENOSPC; page_room() the number of pages that are left. */
int inode_room(const struct reffs *r);
uint64_t page_room(const struct reffs *r);

/* Empties the cache, after the current state was replaced. */
void inode_forget(struct reffs *r);
/* Add an inode to the table of the state with its first name; remove it with its last. */
void inode_add(struct reffs *r, struct reffs_inode *inode);
void inode_remove(struct reffs *r, struct reffs_inode *inode);
/* Takes an orphan out; the caller gets the reference. */
struct reffs_inode *inode_take_orphan(struct reffs *r, uint64_t ino);
/* Adds an inode without a name to the orphans, which take the reference. */
void inode_add_orphan(struct reffs *r, struct reffs_inode *inode);
void inode_drop_orphans(struct reffs *r);

/* ---- pins.c ---- */

uint64_t pins_count(const struct pins *p, uint64_t ino);
/* Adds `n` to the pins of an inode, and returns the sum. */
uint64_t pins_add(struct pins *p, uint64_t ino, int64_t n);
void pins_release(struct pins *p);

/* ---- names.c: changes of names in a state, which are not checked ---- */

/* Returns the inode of a name, or 0. */
uint64_t name_find(const struct reffs *r, uint64_t dir, const char *name, size_t len);
/* Adds a new inode with its first name. */
void name_new(struct reffs *r, uint64_t dir, const char *name, struct reffs_inode *inode);
/* Adds a name of an inode that is no directory. */
void name_link(struct reffs *r, uint64_t dir, const char *name, uint64_t ino);
/* Removes a name, and with its last name the inode; a directory must be empty. */
void name_unlink(struct reffs *r, uint64_t dir, const char *name);
/* A name in a directory. */
struct entry_place {
	uint64_t dir;
	const char *name;
};
/* Moves a name to a place that is free. */
void name_move(struct reffs *r, struct entry_place from, struct entry_place to);
void name_exchange(struct reffs *r, struct entry_place a, struct entry_place b);
/* True if `above` is `dir` or a directory above it. */
bool name_is_below(const struct reffs *r, uint64_t dir, uint64_t above);

/* ---- vfs_name.c ---- */

/* Checks that names may be looked up in a directory. Returns 0 or -errno. */
int vfs_may_search(const struct reffs *r, const struct reffs_cred *c, uint64_t dir);
/* Looks a name up as part of another call: *ino is 0 if there is none. Returns 0 or -errno. */
int vfs_find(struct reffs *r, const struct reffs_cred *c, uint64_t dir, const char *name,
	     uint64_t *ino);
/* Check that a name may be made in this directory, or removed. Return 0 or -errno. */
int vfs_may_create(const struct reffs_cred *c, const struct reffs_inode *dir);
int vfs_may_delete(const struct reffs *r, const struct reffs_cred *c, const struct reffs_inode *dir,
		   uint64_t ino, bool want_dir);
/* Makes an inode in a directory, which determines its group. The inode has no name yet. */
struct reffs_inode *inode_make(struct reffs *r, const struct reffs_cred *c,
			       const struct reffs_inode *dir, enum tree_type type, uint32_t mode);

/* ---- vfs_data.c ---- */

struct data_source;
/* vfs_write() from another source. */
int64_t vfs_write_from(struct reffs *r, const struct reffs_cred *c, uint64_t ino,
		       struct data_source from, uint64_t offset, uint64_t len, int flags);
/* Removes set-id bits and capabilities of a file that is changed. */
void vfs_drop_privileges(const struct reffs_cred *c, struct reffs_inode *i);
/* Sets the access time of a file that was read, if the options say so. */
void vfs_note_access(struct reffs *r, const struct reffs_inode *i);

/* ---- vfs_xattr.c ---- */

void vfs_drop_capabilities(struct reffs_inode *i);

/* ---- handles.c: files that workloads left open ---- */

struct handle *handle_find(struct reffs *r, const char *name);
void handle_set(struct reffs *r, const char *name, struct opened file);
void handle_close(struct reffs *r, struct handle *h);
void handles_close_all(struct reffs *r);

/* ---- ops.c ---- */

/* Performs an operation of a workload. */
reffs_op_fn ref_op;

#endif
