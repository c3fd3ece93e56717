/* SPDX-License-Identifier: MIT */
/* internal.h - what the files of this room share and others do not see. */
#ifndef FS_INTERNAL_H
#define FS_INTERNAL_H

#include "fs/node.h"

/* What open(2) leaves behind. There is no position: every operation says where it acts. */
struct opened {
	uint64_t ino;
	int flags; /* those of open(2) */
};

struct handle {
	char *name;
	struct opened file; /* ino 0: closed */
};

struct reffs_state {
	uint32_t refs;
	struct map_node *inodes;
	struct hash128 hash;
};

typedef int64_t reffs_op_fn(struct reffs *r, const struct op *op);
enum { REFFS_OPS_MAX = 64 };

struct reffs {
	struct reffs_opts opts; /* with the defaults filled in */
	struct reffs_state *cur;
	uint64_t next_ino;
	struct vec_of(struct reffs_inode *) orphans;
	struct vec_of(struct handle) handles;
	reffs_op_fn *ops[REFFS_OPS_MAX]; /* by place in op_table */

	/* The operation being performed, and what its content is made from. */
	const struct workload *workload;
	size_t index;
	uint32_t tag;
	bool tag_fixed;
	struct opened source; /* of a copy, open while its destination is opened; else ino 0 */
};

/* ---- reffs.c: inodes of the current state, and orphans ---- */

/* Valid until the inode is changed. The inode must exist. */
const struct reffs_inode *inode_get(const struct reffs *r, uint64_t ino);
/* For changing what does not count for the hash: a directory's names, link counts. */
struct reffs_inode *inode_own(struct reffs *r, uint64_t ino);
/* For changing anything; inode_commit() must follow. */
struct reffs_inode *inode_edit(struct reffs *r, uint64_t ino);
void inode_commit(struct reffs *r, struct reffs_inode *inode);
/* A new inode made in a directory, which decides about its group. It has no name yet. */
struct reffs_inode *inode_make(struct reffs *r, uint64_t dir, enum tree_type type, uint32_t mode);
/* Puts an inode without a name among the orphans, which take over the reference. */
void orphan_add(struct reffs *r, struct reffs_inode *inode);

bool inode_is_open(const struct reffs *r, uint64_t ino);
struct handle *handle_find(struct reffs *r, const char *name);
void handle_set(struct reffs *r, const char *name, struct opened file);
void handle_close(struct reffs *r, struct handle *h);
void handles_close_all(struct reffs *r);

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
struct place {
	uint64_t dir;
	const char *name;
};
/* Nothing may be at the new place. */
void name_move(struct reffs *r, struct place from, struct place to);
void name_exchange(struct reffs *r, struct place a, struct place b);
/* Whether `above` is `dir` or a directory above it. */
bool dir_is_below(const struct reffs *r, uint64_t dir, uint64_t above);

/* ---- ops.c ---- */

reffs_op_fn *op_lookup(const char *name);

#endif
