/* SPDX-License-Identifier: MIT */
/*
 * perm.c - decides permissions as generic_permission(), check_sticky() and
 * setattr_should_drop_suidgid() of the kernel do.
 */
#include "fs/perm.h"

#include <errno.h>
#include <sys/stat.h>

#include "fs/acl.h"

const struct reffs_cred reffs_root = { .caps = REFFS_CAPS_ALL };

bool perm_in_group(const struct reffs_cred *c, uint32_t gid)
{
	if (gid == c->gid)
		return true;
	return any_of(i, c->n_groups, c->groups[i] == gid) || (c->in_group && c->in_group(c, gid));
}

bool perm_owns(const struct reffs_cred *c, const struct reffs_inode *i)
{
	return c->uid == i->uid || perm_capable(c, REFFS_CAP_FOWNER);
}

/* Checks mode and list; the caller checks capabilities after that. */
static int by_mode(const struct reffs_cred *c, const struct reffs_inode *i, unsigned want)
{
	uint32_t mode = i->mode;

	if (c->uid == i->uid) {
		mode >>= 6;
	} else {
		if ((mode & S_IRWXG) && i->xattrs) {
			int rc = acl_check(i, c, want);

			if (rc != -ENODATA)
				return rc;
		}
		/*
		 * Asks for groups only if they make a difference: finding all groups of a user can
		 * take time.
		 */
		if ((want & (mode ^ (mode >> 3))) && perm_in_group(c, i->gid))
			mode >>= 3;
	}
	return want & ~mode ? -EACCES : 0;
}

int perm_check(const struct reffs_cred *c, const struct reffs_inode *i, unsigned want)
{
	unsigned override = REFFS_CAP_DAC_OVERRIDE, search = REFFS_CAP_DAC_READ_SEARCH;

	if (perm_capable(c, override) &&
	    (i->type == TREE_DIR || !(want & PERM_X) || (i->mode & 0111)))
		return 0;
	if (!by_mode(c, i, want))
		return 0;
	if (perm_capable(c, search) && (i->type == TREE_DIR ? !(want & PERM_W) : want == PERM_R))
		return 0;
	return -EACCES;
}

bool perm_sticky(const struct reffs_cred *c, const struct reffs_inode *dir,
		 const struct reffs_inode *i)
{
	if (!(dir->mode & S_ISVTX) || c->uid == i->uid || c->uid == dir->uid)
		return false;
	return !perm_capable(c, REFFS_CAP_FOWNER);
}

bool perm_may_setgid(const struct reffs_cred *c, uint32_t gid)
{
	return perm_capable(c, REFFS_CAP_FSETID) || perm_in_group(c, gid);
}

uint32_t perm_drop_setid(const struct reffs_cred *c, const struct reffs_inode *i)
{
	uint32_t mode = i->mode & ~(uint32_t)S_ISUID;

	/* Without x for the group, S_ISGID is no set-id bit; only some may set it even then. */
	if ((mode & S_ISGID) && ((mode & S_IXGRP) || !perm_may_setgid(c, i->gid)))
		mode &= ~(uint32_t)S_ISGID;
	return mode;
}
