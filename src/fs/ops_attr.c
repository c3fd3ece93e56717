/* SPDX-License-Identifier: MIT */
/* ops_attr.c - performs operations on owners, modes, times and extended attributes. */
#include "fs/ops.h"

#include <fcntl.h>

#include "fs/opening.h"

int64_t ref_chmod(struct reffs *r, const struct op *op)
{
	struct vfs_setattr a = { .set = VFS_SET_MODE, .mode = (uint32_t)op->args[1].num };
	struct opened f;
	int rc = opened_from_arg(r, &op->args[0], O_RDONLY, &f);

	return rc ? rc : vfs_setattr(r, &r->cred, f.ino, &a);
}

int64_t ref_chown(struct reffs *r, const struct op *op)
{
	struct vfs_setattr a = {
		.set = VFS_SET_UID | VFS_SET_GID,
		.uid = (uint32_t)op->args[1].num,
		.gid = (uint32_t)op->args[2].num,
	};
	struct opened f;
	int rc = op->args[0].is_handle ? opened_from_arg(r, &op->args[0], 0, &f)
				       : vfs_path(r, &r->cred, op->args[0].text, 0, &f.ino);

	return rc ? rc : vfs_setattr(r, &r->cred, f.ino, &a);
}

int64_t ref_utimens(struct reffs *r, const struct op *op)
{
	struct vfs_setattr a = {
		.set = VFS_SET_ATIME | VFS_SET_MTIME,
		.atime.sec = (int64_t)op->args[1].num,
		.mtime.sec = (int64_t)op->args[2].num,
	};
	struct opened f;
	int rc = opened_from_arg(r, &op->args[0], O_RDONLY, &f);

	return rc ? rc : vfs_setattr(r, &r->cred, f.ino, &a);
}

int64_t ref_setxattr(struct reffs *r, const struct op *op)
{
	const char *value = op->args[2].text;
	struct opened f;
	int rc = opened_from_arg(r, &op->args[0], O_RDONLY, &f);

	if (rc)
		return rc;
	return vfs_setxattr(r, &r->cred, f.ino, op->args[1].text, value, strlen(value),
			    (int)op->args[3].num);
}

int64_t ref_removexattr(struct reffs *r, const struct op *op)
{
	struct opened f;
	int rc = opened_from_arg(r, &op->args[0], O_RDONLY, &f);

	return rc ? rc : vfs_removexattr(r, &r->cred, f.ino, op->args[1].text);
}
