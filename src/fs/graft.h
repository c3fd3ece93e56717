/* SPDX-License-Identifier: MIT */
/*
 * graft.h - builds a state from parts: names, attributes and content that survived a crash, taken
 * one by one from a record. Permissions are not checked and no time passes; the caller chooses
 * inode numbers. An impossible change (a name in a directory that is not there, a second directory
 * of the same name) is refused with -errno, and nothing changes.
 */
#ifndef FS_GRAFT_H
#define FS_GRAFT_H

#include "fs/reffs.h"

struct graft_inode {
	uint64_t ino; /* not in use in this state */
	enum tree_type type;
	uint32_t mode, uid, gid;
	uint64_t rdev;
	const char *target; /* the target of a symbolic link */
};

/* Makes a new inode with its first name. */
int graft_make(struct reffs *r, uint64_t dir, const char *name, const struct graft_inode *inode);
int graft_link(struct reffs *r, uint64_t dir, const char *name, uint64_t ino);
/* Removes a name, and with its last name the inode. A directory must be empty. */
int graft_unlink(struct reffs *r, uint64_t dir, const char *name);
/* Replaces a file at the new place; with `exchange`, that file gets the old name. */
int graft_rename(struct reffs *r, uint64_t dir, const char *name, uint64_t to_dir, const char *to,
		 bool exchange);
/* Sets mode and owner; UINT32_MAX: unchanged. */
int graft_attr(struct reffs *r, uint64_t ino, uint32_t mode, uint32_t uid, uint32_t gid);
/* Sets an attribute; `value` NULL removes it, if it exists. */
int graft_xattr(struct reffs *r, uint64_t ino, const char *name, const void *value, size_t len);
int graft_resize(struct reffs *r, uint64_t ino, uint64_t size);
/* Copies [from, to) of another file, up to its end; the inode may get longer by that. */
int graft_data(struct reffs *r, uint64_t ino, const struct reffs_inode *file, uint64_t from,
	       uint64_t to);

/* ---- hashes without states: see node.h ---- */

bool graft_name_ok(const char *name);
/* The sum of the hashes of an inode's paths; the hash of a path in a directory with that sum. */
struct hash128 graft_names(const struct reffs_inode *inode);
struct hash128 graft_path(struct hash128 dir, const char *name);
/*
 * The term that an inode would add to the hash of a state if it had these names. Times do not
 * count.
 */
struct hash128 graft_term(const struct reffs_inode *inode, struct hash128 names);

#endif
