/* SPDX-License-Identifier: MIT */
/* perm.h - permissions: modes, owners, groups, capabilities, access control lists. */
#ifndef FS_PERM_H
#define FS_PERM_H

#include "fs/node.h"
#include "fs/vfs.h"

enum { PERM_X = 1, PERM_W = 2, PERM_R = 4 };

static inline bool perm_capable(const struct reffs_cred *c, unsigned cap)
{
	return c->caps & cap;
}

bool perm_in_group(const struct reffs_cred *c, uint32_t gid);
/* Whether the owner's rights are theirs. */
bool perm_owns(const struct reffs_cred *c, const struct reffs_inode *i);
/* 0 or -EACCES. */
int perm_check(const struct reffs_cred *c, const struct reffs_inode *i, unsigned want);
/* Whether a sticky directory keeps them from taking this name away. */
bool perm_sticky(const struct reffs_cred *c, const struct reffs_inode *dir,
		 const struct reffs_inode *i);
/* A set-group-id bit is for those who are in the group. */
bool perm_may_setgid(const struct reffs_cred *c, uint32_t gid);
/* The mode after a write, or a change of the owner: without the set-id bits that must go. */
uint32_t perm_drop_setid(const struct reffs_cred *c, const struct reffs_inode *i);

#endif
