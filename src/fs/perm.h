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
/* True if the user has the rights of the owner. */
bool perm_owns(const struct reffs_cred *c, const struct reffs_inode *i);
/* 0 or -EACCES. */
int perm_check(const struct reffs_cred *c, const struct reffs_inode *i, unsigned want);
/* True if a sticky directory forbids the user to remove this name. */
bool perm_sticky(const struct reffs_cred *c, const struct reffs_inode *dir,
		 const struct reffs_inode *i);
/* True if the user may set the set-group-id bit: a member of the group. */
bool perm_may_setgid(const struct reffs_cred *c, uint32_t gid);
/* Returns the mode after a write or a change of owner, without set-id bits if they must go. */
uint32_t perm_drop_setid(const struct reffs_cred *c, const struct reffs_inode *i);

#endif
