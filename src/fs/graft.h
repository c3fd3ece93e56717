/* SPDX-License-Identifier: MIT */
/*
 * graft.h - puts a state together from parts: names, attributes and content that survived a crash,
 * taken one by one from what was recorded. Permissions are not checked and no time passes; inode
 * numbers are the caller's. An impossible change (a name in a directory that is not there, a second
 * directory of the same name) is refused with -errno, and nothing changes.
 */
#ifndef FS_GRAFT_H
#define FS_GRAFT_H

#include "fs/reffs.h"

struct graft_inode {
	uint64_t ino; /* not in use in this state */
	enum tree_type type;
	uint32_t mode, uid, gid;
	uint64_t rdev;
	const char *target; /* of a symbolic link */
};

/* A new inode with its first name. */
int graft_make(struct reffs *r, uint64_t dir, const char *name, const struct graft_inode *inode);
int graft_link(struct reffs *r, uint64_t dir, const char *name, uint64_t ino);
/* The last name takes the inode with it. A directory must be empty. */
int graft_unlink(struct reffs *r, uint64_t dir, const char *name);
/* The file at the new place goes; with `exchange` it comes to the old one. */
int graft_rename(struct reffs *r, uint64_t dir, const char *name, uint64_t to_dir, const char *to,
		 bool exchange);
/* UINT32_MAX: as it is. */
int graft_attr(struct reffs *r, uint64_t ino, uint32_t mode, uint32_t uid, uint32_t gid);
/* With `value` NULL it is removed, if it is there. */
int graft_xattr(struct reffs *r, uint64_t ino, const char *name, const void *value, size_t len);
int graft_resize(struct reffs *r, uint64_t ino, uint64_t size);
/* Makes [from, to) what it is in another file, up to that one's end; it may get longer by that. */
int graft_data(struct reffs *r, uint64_t ino, const struct reffs_inode *file, uint64_t from,
	       uint64_t to);

/* ---- hashes without states: see node.h ---- */

bool graft_name_ok(const char *name);
/* The sum over the paths of an inode, and of one path in a directory with that sum. */
struct hash128 graft_names(const struct reffs_inode *inode);
struct hash128 graft_path(struct hash128 dir, const char *name);
/*
 * The term that an inode would add to the hash of a state if it had these names. Times do not
 * count.
 */
struct hash128 graft_term(const struct reffs_inode *inode, struct hash128 names);

#endif
