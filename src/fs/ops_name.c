/* SPDX-License-Identifier: MIT */
/* ops_name.c - operations that make and remove names. They act on the last component itself. */
#include "fs/ops.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "fs/path.h"

static bool is_dot(const char *name)
{
	return streq(name, ".");
}

/* A place for a new name: the name must be one, and free. */
static int free_place(const struct reffs *r, struct place at)
{
	uint64_t ino;
	int rc;

	if (is_dot(at.name))
		return -EEXIST;
	rc = path_name(r, at, &ino);
	return rc ? rc : ino ? -EEXIST : 0;
}

static int new_place(const struct reffs *r, const char *path, struct place *out)
{
	int rc = path_parent(r, path, out);

	return rc ? rc : free_place(r, *out);
}

int64_t ref_mkdir(struct reffs *r, const struct op *op)
{
	struct place at;
	int rc = new_place(r, op->args[0].text, &at);

	if (rc)
		return rc;
	/* mkdir(2) takes no set-id bits; a directory with the set-group-id bit passes it on. */
	name_new(r, at.dir, at.name,
		 inode_make(r, at.dir, TREE_DIR, op->args[1].num & (0777 | S_ISVTX)));
	return 0;
}

static int make_node(struct reffs *r, const char *path, mode_t mode, uint64_t rdev)
{
	enum tree_type type = S_ISCHR(mode)    ? TREE_CHAR
			      : S_ISBLK(mode)  ? TREE_BLOCK
			      : S_ISFIFO(mode) ? TREE_FIFO
			      : S_ISSOCK(mode) ? TREE_SOCKET
					       : TREE_FILE;
	struct place at;
	int rc = new_place(r, path, &at);

	if (rc)
		return rc;
	struct reffs_inode *i = inode_make(r, at.dir, type, mode & 07777);
	if (type == TREE_CHAR || type == TREE_BLOCK)
		i->rdev = rdev;
	name_new(r, at.dir, at.name, i);
	return 0;
}

int64_t ref_mknod(struct reffs *r, const struct op *op)
{
	/* The kernel takes 32 bits: 12 of the major number, 20 of the minor. */
	uint32_t dev = (uint32_t)op->args[2].num;
	uint64_t rdev = makedev(dev >> 8 & 0xfff, (dev & 0xff) | (dev >> 12 & 0xfff00));

	return make_node(r, op->args[0].text, (mode_t)op->args[1].num | 0644, rdev);
}

int64_t ref_mkfifo(struct reffs *r, const struct op *op)
{
	return make_node(r, op->args[0].text, S_IFIFO | (mode_t)op->args[1].num, 0);
}

int64_t ref_symlink(struct reffs *r, const struct op *op)
{
	const char *target = op->args[0].text;
	size_t len = strlen(target);
	struct place at;
	int rc = path_parent(r, op->args[1].text, &at);

	if (rc)
		return rc;
	if (!len)
		return -ENOENT;
	if (len >= PATH_LEN_MAX)
		return -ENAMETOOLONG;
	rc = free_place(r, at);
	if (rc)
		return rc;
	struct reffs_inode *i = inode_make(r, at.dir, TREE_SYMLINK, 0777);
	i->target = blob_new(target, len);
	i->size = len;
	i->content = hash_bytes(target, len);
	name_new(r, at.dir, at.name, i);
	return 0;
}

int64_t ref_link(struct reffs *r, const struct op *op)
{
	struct place old, new;
	uint64_t ino;
	int old_rc = path_parent(r, op->args[0].text, &old);
	int rc = path_parent(r, op->args[1].text, &new);

	if (old_rc || rc)
		return old_rc ? old_rc : rc;
	if (is_dot(old.name)) {
		ino = old.dir;
	} else {
		rc = path_name(r, old, &ino);
		if (rc || !ino)
			return rc ? rc : -ENOENT;
	}
	rc = free_place(r, new);
	if (rc)
		return rc;
	const struct reffs_inode *i = inode_get(r, ino);
	if (i->type == TREE_DIR)
		return -EPERM;
	if (i->nlink >= r->opts.link_max)
		return -EMLINK;
	name_link(r, new.dir, new.name, ino);
	return 0;
}

static int64_t unlink_at(struct reffs *r, struct place at)
{
	uint64_t ino;
	int rc;

	if (is_dot(at.name))
		return -EISDIR;
	rc = path_name(r, at, &ino);
	if (rc || !ino)
		return rc ? rc : -ENOENT;
	if (inode_get(r, ino)->type == TREE_DIR)
		return -EISDIR;
	name_unlink(r, at.dir, at.name);
	return 0;
}

static int64_t rmdir_at(struct reffs *r, struct place at)
{
	uint64_t ino;
	int rc;

	if (is_dot(at.name))
		return -EINVAL;
	rc = path_name(r, at, &ino);
	if (rc || !ino)
		return rc ? rc : -ENOENT;
	const struct reffs_inode *i = inode_get(r, ino);
	if (i->type != TREE_DIR)
		return -ENOTDIR;
	if (i->map)
		return -ENOTEMPTY;
	name_unlink(r, at.dir, at.name);
	return 0;
}

int64_t ref_unlink(struct reffs *r, const struct op *op)
{
	struct place at;
	int rc = path_parent(r, op->args[0].text, &at);

	return rc ? rc : unlink_at(r, at);
}

int64_t ref_rmdir(struct reffs *r, const struct op *op)
{
	struct place at;
	int rc = path_parent(r, op->args[0].text, &at);

	return rc ? rc : rmdir_at(r, at);
}

int64_t ref_remove(struct reffs *r, const struct op *op)
{
	struct place at;
	int64_t rc = path_parent(r, op->args[0].text, &at);

	if (rc)
		return rc;
	rc = unlink_at(r, at);
	return rc == -EISDIR ? rmdir_at(r, at) : rc;
}
