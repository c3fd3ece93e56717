/* SPDX-License-Identifier: MIT */
/*
 * vfs_attr.c - changes attributes of inodes, as setattr_prepare(), notify_change() and
 * setattr_copy() of the kernel do.
 */
#include <errno.h>
#include <sys/stat.h>

#include "fs/acl.h"
#include "fs/data.h"
#include "fs/reffs_impl.h"
#include "fs/perm.h"

void reffs_set_time(struct reffs *r, struct tree_time now)
{
	r->now = now;
}

int vfs_getattr(struct reffs *r, uint64_t ino, struct reffs_attr *out)
{
	const struct reffs_inode *i = inode_find(r, ino);

	if (!i)
		return -ESTALE;
	reffs_attr(i, out);
	return 0;
}

int vfs_access(struct reffs *r, const struct reffs_cred *c, uint64_t ino, int want)
{
	const struct reffs_inode *i = inode_find(r, ino);

	if (!i)
		return -ESTALE;
	return perm_check(c, i, (unsigned)want & 7);
}

static bool may_chown(const struct reffs_cred *c, const struct reffs_inode *i,
		      const struct vfs_setattr *a)
{
	bool same_uid = !(a->set & VFS_SET_UID) || a->uid == UINT32_MAX || a->uid == i->uid;
	bool same_gid = !(a->set & VFS_SET_GID) || a->gid == UINT32_MAX;

	if (perm_capable(c, REFFS_CAP_CHOWN))
		return true;
	/* Only the owner may set the owner, even to the same one. */
	if ((a->set & VFS_SET_UID) && a->uid != UINT32_MAX && (c->uid != i->uid || !same_uid))
		return false;
	return same_gid || (c->uid == i->uid && (a->gid == i->gid || perm_in_group(c, a->gid)));
}

static int may_truncate(const struct reffs *r, const struct reffs_cred *c,
			const struct reffs_inode *i, const struct vfs_setattr *a)
{
	if (i->type == TREE_DIR)
		return -EISDIR;
	if (i->type != TREE_FILE)
		return -EINVAL;
	if (!(a->set & VFS_SET_OPEN)) {
		int rc = perm_check(c, i, PERM_W);

		if (rc)
			return rc;
	}
	return a->size > i->size && a->size > r->opts.file_max ? -EFBIG : 0;
}

static int may_set_times(const struct reffs_cred *c, const struct reffs_inode *i, unsigned set)
{
	unsigned times = VFS_SET_ATIME | VFS_SET_MTIME, now = VFS_SET_ATIME_NOW | VFS_SET_MTIME_NOW;

	if (!(set & (times | now)) || (set & (VFS_SET_SIZE | VFS_SET_OPEN)) || perm_owns(c, i))
		return 0;
	return (set & now) == now ? perm_check(c, i, PERM_W) : -EPERM;
}

static int may_setattr(const struct reffs *r, const struct reffs_cred *c,
		       const struct reffs_inode *i, const struct vfs_setattr *a)
{
	if (a->set & VFS_SET_SIZE) {
		int rc = may_truncate(r, c, i, a);

		if (rc)
			return rc;
	}
	if (a->set & (VFS_SET_UID | VFS_SET_GID)) {
		bool drops = i->type != TREE_DIR && perm_drop_setid(c, i) != i->mode;

		/* A loss of set-id bits changes the mode, even if the owner stays the same. */
		if (!may_chown(c, i, a) || (drops && !perm_owns(c, i)))
			return -EPERM;
	}
	if ((a->set & VFS_SET_MODE) && !perm_owns(c, i))
		return -EPERM;
	if ((a->set & VFS_SET_MODE) && i->type == TREE_SYMLINK)
		return -EOPNOTSUPP;
	return may_set_times(c, i, a->set);
}

static void set_owner(const struct reffs_cred *c, struct reffs_inode *i,
		      const struct vfs_setattr *a)
{
	/* The bits go also for root, and also if nothing changes. */
	if (i->type != TREE_DIR)
		i->mode = perm_drop_setid(c, i);
	if ((a->set & VFS_SET_UID) && a->uid != UINT32_MAX)
		i->uid = a->uid;
	if ((a->set & VFS_SET_GID) && a->gid != UINT32_MAX)
		i->gid = a->gid;
}

static void set_times(const struct reffs *r, struct reffs_inode *i, const struct vfs_setattr *a)
{
	if (a->set & VFS_SET_ATIME)
		i->atime = a->atime;
	if (a->set & VFS_SET_MTIME)
		i->mtime = a->mtime;
	if (a->set & VFS_SET_ATIME_NOW)
		i->atime = r->now;
	if (a->set & VFS_SET_MTIME_NOW)
		i->mtime = r->now;
	i->ctime = r->now;
}

int vfs_setattr(struct reffs *r, const struct reffs_cred *c, uint64_t ino,
		const struct vfs_setattr *a)
{
	const struct reffs_inode *found = inode_find(r, ino);
	int rc = found ? may_setattr(r, c, found, a) : -ESTALE;

	if (rc || !(a->set & ~(unsigned)VFS_SET_OPEN))
		return rc;
	struct reffs_inode *i = inode_edit(r, ino);
	if (a->set & (VFS_SET_UID | VFS_SET_GID)) {
		vfs_drop_capabilities(i);
		set_owner(c, i, a);
	}
	if (a->set & VFS_SET_SIZE) {
		data_resize(i, a->size);
		vfs_drop_privileges(c, i);
		i->mtime = r->now;
	}
	if (a->set & VFS_SET_MODE) {
		i->mode = a->mode & 07777;
		if (!perm_may_setgid(c, i->gid))
			i->mode &= ~(uint32_t)S_ISGID;
		acl_chmod(i);
	}
	set_times(r, i, a);
	inode_commit(r, i);
	return 0;
}

void vfs_statfs(struct reffs *r, struct vfs_statfs *out)
{
	uint64_t pages = r->cur->pages + r->orphan_pages, inodes = r->cur->n_inodes + r->n_orphans;
	uint64_t many = UINT64_C(1) << 40; /* the pages that are reported if there is no limit */
	uint64_t pages_max = r->opts.pages_max ? r->opts.pages_max : many;
	uint64_t inodes_max = r->opts.inodes_max ? r->opts.inodes_max : many;

	*out = (struct vfs_statfs){ pages_max, pages_max - min(pages, pages_max), inodes_max,
				    inodes_max - min(inodes, inodes_max) };
}
