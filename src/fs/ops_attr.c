/* SPDX-License-Identifier: MIT */
/* ops_attr.c - owners, modes, times and extended attributes. The process is root. */
#include "fs/ops.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "fs/file.h"
#include "fs/path.h"

enum { XATTR_NAME_LIMIT = 255, XATTR_SIZE_LIMIT = 65536 };

int64_t ref_chmod(struct reffs *r, const struct op *op)
{
	struct opened f;
	int rc = file_arg(r, &op->args[0], O_RDONLY, &f);

	if (rc)
		return rc;
	struct reffs_inode *i = inode_edit(r, f.ino);
	i->mode = op->args[1].num & 07777;
	inode_commit(r, i);
	return 0;
}

int64_t ref_chown(struct reffs *r, const struct op *op)
{
	uint32_t uid = (uint32_t)op->args[1].num, gid = (uint32_t)op->args[2].num;
	struct opened f;
	int rc = op->args[0].is_handle ? file_arg(r, &op->args[0], 0, &f)
				       : path_lookup(r, op->args[0].text, 0, &f.ino);

	if (rc)
		return rc;
	struct reffs_inode *i = inode_edit(r, f.ino);
	if (uid != UINT32_MAX)
		i->uid = uid;
	if (gid != UINT32_MAX)
		i->gid = gid;
	/* Also for root, also if nothing changed; a set-group-id bit without x is no such bit. */
	if (i->type != TREE_DIR) {
		i->mode &= ~(uint32_t)S_ISUID;
		if (i->mode & S_IXGRP)
			i->mode &= ~(uint32_t)S_ISGID;
	}
	inode_commit(r, i);
	return 0;
}

int64_t ref_utimens(struct reffs *r, const struct op *op)
{
	struct opened f;

	return file_arg(r, &op->args[0], O_RDONLY, &f); /* times are not kept */
}

static bool has_prefix(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool is_acl(const char *name)
{
	return streq(name, "system.posix_acl_access") || streq(name, "system.posix_acl_default");
}

/* Whether a name may be set or removed; ACLs, which are no plain attributes, excepted. */
static int check_name(const struct reffs_inode *i, const char *name)
{
	static const char *const spaces[] = { "user.", "trusted.", "security." };

	if (has_prefix(name, "user.") && i->type != TREE_FILE && i->type != TREE_DIR)
		return -EPERM;
	for (size_t s = 0; s < ARRAY_SIZE(spaces); s++)
		if (has_prefix(name, spaces[s]))
			return name[strlen(spaces[s])] ? 0 : -EINVAL;
	return -EOPNOTSUPP;
}

/*
 * Text is never a valid ACL, nor a set of capabilities: both begin with a number that has a zero
 * byte. Setting none removes an ACL that cannot be there; and empty capabilities are an attribute
 * like any other, which writing does not take away.
 */
static int set_acl(size_t len)
{
	return !len ? 0 : len < 4 ? -EINVAL : -EOPNOTSUPP;
}

static void set_xattrs(struct reffs *r, uint64_t ino, const char *name, const char *value)
{
	struct reffs_inode *i = inode_edit(r, ino);
	struct xattrs *new = xattrs_with(i->xattrs, name, value, value ? strlen(value) : 0);

	xattrs_unref(i->xattrs);
	i->xattrs = new;
	inode_commit(r, i);
}

int64_t ref_setxattr(struct reffs *r, const struct op *op)
{
	const char *name = op->args[1].text, *value = op->args[2].text;
	uint64_t flags = op->args[3].num;
	struct opened f;
	int rc = file_arg(r, &op->args[0], O_RDONLY, &f);

	if (rc)
		return rc;
	if (strlen(name) > XATTR_NAME_LIMIT)
		return -ERANGE;
	if (strlen(value) > XATTR_SIZE_LIMIT)
		return -E2BIG;
	if (is_acl(name))
		return set_acl(strlen(value));
	if (streq(name, "security.capability") && *value)
		return -EINVAL;
	const struct reffs_inode *i = inode_get(r, f.ino);
	rc = check_name(i, name);
	if (rc)
		return rc;
	bool there = xattrs_find(i->xattrs, name);
	if (there && (flags & XATTR_CREATE))
		return -EEXIST;
	if (!there && (flags & XATTR_REPLACE))
		return -ENODATA;
	set_xattrs(r, f.ino, name, value);
	return 0;
}

int64_t ref_removexattr(struct reffs *r, const struct op *op)
{
	const char *name = op->args[1].text;
	struct opened f;
	int rc = file_arg(r, &op->args[0], O_RDONLY, &f);

	if (rc)
		return rc;
	if (strlen(name) > XATTR_NAME_LIMIT)
		return -ERANGE;
	if (is_acl(name))
		return 0;
	const struct reffs_inode *i = inode_get(r, f.ino);
	rc = check_name(i, name);
	if (rc)
		return rc;
	if (!xattrs_find(i->xattrs, name))
		return -ENODATA;
	set_xattrs(r, f.ino, name, NULL);
	return 0;
}
