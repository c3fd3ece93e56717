/* SPDX-License-Identifier: MIT */
/* reffs_impl.h - shared by the files of this room, and not seen by others. */
#ifndef FS_REFFS_IMPL_H
#define FS_REFFS_IMPL_H

#include "fs/node.h"
#include "fs/vfs.h"

/* A file as open(2) leaves it. There is no position: every operation says where it acts. */
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
	bool times; /* count for the hash */
	struct map_node *inodes;
	struct hash128 hash;
	uint64_t n_inodes, pages; /* of all files together */
};

typedef int64_t reffs_op_fn(struct reffs *r, const struct op *op);

/* Which inodes are pinned, and how often: a table with open addressing, its size a power of 2. */
struct pins {
	struct pin {
		uint64_t ino; /* 0: empty */
		uint64_t n;
	} * v;
	size_t n, size;
};

/* Inodes that were found lately; all are forgotten when any may have moved. */
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

	/* Operations of workloads: their user, and what they left open. */
	struct reffs_cred cred;
	struct vec_of(struct handle) handles;

	/* The operation being performed, and what its content is made from. */
	const struct workload *workload;
	size_t index;
	uint32_t tag;
	bool tag_fixed;
	struct opened source; /* of a copy, open while its destination is opened; else ino 0 */
};

/* ---- inode.c: inodes of the current state, and orphans ---- */

/* Valid until the inode is changed. NULL if there is no such inode. */
const struct reffs_inode *inode_find(const struct reffs *r, uint64_t ino);
/* The same, of an inode that must exist. */
const struct reffs_inode *inode_get(const struct reffs *r, uint64_t ino);
/* For changing what does not count for the hash: a directory's names, link counts. */
struct reffs_inode *inode_own(struct reffs *r, uint64_t ino);
/* For changing anything; inode_commit() must follow. */
struct reffs_inode *inode_edit(struct reffs *r, uint64_t ino);
void inode_commit(struct reffs *r, struct reffs_inode *inode);
/* Sets times of an inode that is ours to change, to now; keeps the hash right. */
enum { TOUCH_ATIME = 1, TOUCH_MTIME = 2, TOUCH_CTIME = 4 };
void inode_touch(struct reffs *r, struct reffs_inode *inode, unsigned times);
/* Room for so many more inodes and pages: 0 or -ENOSPC. */
int inode_room(const struct reffs *r);
uint64_t page_room(const struct reffs *r);

/* After the current state was replaced. */
void inode_forget(struct reffs *r);
/* The first name takes an inode into the table of the state, the last one out of it. */
void inode_add(struct reffs *r, struct reffs_inode *inode);
void inode_remove(struct reffs *r, struct reffs_inode *inode);
/* An orphan leaves the orphans; the caller gets the reference. */
struct reffs_inode *inode_take_orphan(struct reffs *r, uint64_t ino);
/* Puts an inode without a name among the orphans, which take over the reference. */
void inode_add_orphan(struct reffs *r, struct reffs_inode *inode);
void inode_drop_orphans(struct reffs *r);

/* ---- pins.c ---- */

uint64_t pins_count(const struct pins *p, uint64_t ino);
/* Adds to how often it is pinned, and gives the sum. */
uint64_t pins_add(struct pins *p, uint64_t ino, int64_t n);
void pins_release(struct pins *p);

/* ---- names.c: what names do to a state; all checks are made before ---- */

/* The inode of a name, or 0. */
uint64_t name_find(const struct reffs *r, uint64_t dir, const char *name, size_t len);
/* The first name of a new inode, which goes into the table. */
void name_new(struct reffs *r, uint64_t dir, const char *name, struct reffs_inode *inode);
/* One more name of an inode that is no directory. */
void name_link(struct reffs *r, uint64_t dir, const char *name, uint64_t ino);
/* Removes a name, and with its last name the inode; a directory must be empty. */
void name_unlink(struct reffs *r, uint64_t dir, const char *name);
/* A name in a directory. */
struct entry_place {
	uint64_t dir;
	const char *name;
};
/* Nothing may be at the new place. */
void name_move(struct reffs *r, struct entry_place from, struct entry_place to);
void name_exchange(struct reffs *r, struct entry_place a, struct entry_place b);
/* Whether `above` is `dir` or a directory above it. */
bool name_is_below(const struct reffs *r, uint64_t dir, uint64_t above);

/* ---- vfs_name.c ---- */

/* Whether names may be looked up there: 0 or -errno. */
int vfs_may_search(const struct reffs *r, const struct reffs_cred *c, uint64_t dir);
/* Looks a name up as part of another call: *ino is 0 if there is none. 0 or -errno. */
int vfs_find(struct reffs *r, const struct reffs_cred *c, uint64_t dir, const char *name,
	     uint64_t *ino);
/* Whether a name may be made in this directory, or taken away from it. 0 or -errno. */
int vfs_may_create(const struct reffs_cred *c, const struct reffs_inode *dir);
int vfs_may_delete(const struct reffs *r, const struct reffs_cred *c, const struct reffs_inode *dir,
		   uint64_t ino, bool want_dir);
/* A new inode made in a directory, which decides about its group. The inode has no name yet. */
struct reffs_inode *inode_make(struct reffs *r, const struct reffs_cred *c,
			       const struct reffs_inode *dir, enum tree_type type, uint32_t mode);

/* ---- vfs_data.c ---- */

struct data_source;
/* vfs_write() of what comes from somewhere else. */
int64_t vfs_write_from(struct reffs *r, const struct reffs_cred *c, uint64_t ino,
		       struct data_source from, uint64_t offset, uint64_t len, int flags);
/* Takes away set-id bits and capabilities of a file that is changed. */
void vfs_drop_privileges(const struct reffs_cred *c, struct reffs_inode *i);
/* A file was read: sets the access time if the options say so. */
void vfs_note_access(struct reffs *r, const struct reffs_inode *i);

/* ---- vfs_xattr.c ---- */

void vfs_drop_capabilities(struct reffs_inode *i);

/* ---- handles.c: what workloads left open ---- */

struct handle *handle_find(struct reffs *r, const char *name);
void handle_set(struct reffs *r, const char *name, struct opened file);
void handle_close(struct reffs *r, struct handle *h);
void handles_close_all(struct reffs *r);

/* ---- ops.c ---- */

/* Performs an operation of a workload. */
reffs_op_fn ref_op;

#endif
