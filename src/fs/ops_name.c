/* SPDX-License-Identifier: MIT */
/*
 * ops_name.c - performs operations that make and remove names. The operations do not follow a link
 * that is the last component.
 */
#include "fs/ops.h"

#include <errno.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "fs/path.h"

/*
 * "." can be neither made nor removed, but only a user who may search the directory is told so. The
 * calls check all other names.
 */
static bool is_dot(const char *name)
{
	return streq(name, ".");
}

static int dot_is(const struct reffs *r, uint64_t dir, int what)
{
	int rc = vfs_may_search(r, &r->cred, dir);

	return rc ? rc : what;
}

/*
 * Finds the place for a new name; "." exists already. The calls that make the name check all else.
 */
static int new_place(struct reffs *r, const char *path, struct entry_place *out)
{
	int rc = path_parent(r, &r->cred, path, out);

	return !rc && is_dot(out->name) ? dot_is(r, out->dir, -EEXIST) : rc;
}

int64_t ref_mkdir(struct reffs *r, const struct op *op)
{
	struct entry_place at;
	uint64_t ino;
	int rc = new_place(r, op->args[0].text, &at);

	return rc ? rc : vfs_mkdir(r, &r->cred, at.dir, at.name, (uint32_t)op->args[1].num, &ino);
}

static int make_node(struct reffs *r, const char *path, uint32_t mode, uint64_t rdev)
{
	struct entry_place at;
	uint64_t ino;
	int rc = new_place(r, path, &at);

	return rc ? rc : vfs_mknod(r, &r->cred, at.dir, at.name, mode, rdev, &ino);
}

int64_t ref_mknod(struct reffs *r, const struct op *op)
{
	/* The kernel takes 32 bits: 12 of the major number, 20 of the minor. */
	uint32_t dev = (uint32_t)op->args[2].num;
	uint64_t rdev = makedev(dev >> 8 & 0xfff, (dev & 0xff) | (dev >> 12 & 0xfff00));

	return make_node(r, op->args[0].text, (uint32_t)op->args[1].num | 0644, rdev);
}

int64_t ref_mkfifo(struct reffs *r, const struct op *op)
{
	return make_node(r, op->args[0].text, S_IFIFO | (uint32_t)op->args[1].num, 0);
}

int64_t ref_symlink(struct reffs *r, const struct op *op)
{
	const char *target = op->args[0].text;
	struct entry_place at;
	uint64_t ino;
	int rc = path_parent(r, &r->cred, op->args[1].text, &at);

	if (rc)
		return rc;
	if (is_dot(at.name) && *target && strlen(target) < PATH_LEN_MAX)
		return dot_is(r, at.dir, -EEXIST);
	return vfs_symlink(r, &r->cred, target, at.dir, at.name, &ino);
}

int64_t ref_link(struct reffs *r, const struct op *op)
{
	struct entry_place old, new;
	uint64_t ino;
	int old_rc = path_parent(r, &r->cred, op->args[0].text, &old);
	int rc = path_parent(r, &r->cred, op->args[1].text, &new);

	if (old_rc || rc)
		return old_rc ? old_rc : rc;
	ino = old.dir;
	if (is_dot(old.name))
		rc = dot_is(r, old.dir, 0);
	else
		rc = vfs_lookup(r, &r->cred, old.dir, old.name, &ino);
	if (rc)
		return rc;
	if (is_dot(new.name))
		return dot_is(r, new.dir, -EEXIST);
	return vfs_link(r, &r->cred, ino, new.dir, new.name);
}

static int64_t unlink_at(struct reffs *r, struct entry_place at)
{
	return is_dot(at.name) ? dot_is(r, at.dir, -EISDIR)
			       : vfs_unlink(r, &r->cred, at.dir, at.name);
}

static int64_t rmdir_at(struct reffs *r, struct entry_place at)
{
	return is_dot(at.name) ? dot_is(r, at.dir, -EINVAL)
			       : vfs_rmdir(r, &r->cred, at.dir, at.name);
}

int64_t ref_unlink(struct reffs *r, const struct op *op)
{
	struct entry_place at;
	int rc = path_parent(r, &r->cred, op->args[0].text, &at);

	return rc ? rc : unlink_at(r, at);
}

int64_t ref_rmdir(struct reffs *r, const struct op *op)
{
	struct entry_place at;
	int rc = path_parent(r, &r->cred, op->args[0].text, &at);

	return rc ? rc : rmdir_at(r, at);
}

int64_t ref_remove(struct reffs *r, const struct op *op)
{
	struct entry_place at;
	int64_t rc = path_parent(r, &r->cred, op->args[0].text, &at);

	if (rc)
		return rc;
	rc = unlink_at(r, at);
	return rc == -EISDIR ? rmdir_at(r, at) : rc;
}

int64_t ref_rename(struct reffs *r, const struct op *op)
{
	uint64_t words = op->args[2].num;
	unsigned flags = (words & RENAME_W_EXCHANGE ? RENAME_EXCHANGE : 0) |
			 (words & RENAME_W_NOREPLACE ? RENAME_NOREPLACE : 0) |
			 (words & RENAME_W_WHITEOUT ? RENAME_WHITEOUT : 0);
	struct entry_place from, to;
	int from_rc = path_parent(r, &r->cred, op->args[0].text, &from);
	int rc = path_parent(r, &r->cred, op->args[1].text, &to);

	if (from_rc || rc)
		return from_rc ? from_rc : rc;
	if ((flags & RENAME_EXCHANGE) && (flags & (RENAME_NOREPLACE | RENAME_WHITEOUT)))
		return -EINVAL;
	if (is_dot(from.name) || is_dot(to.name)) {
		rc = dot_is(r, from.dir, 0);
		if (rc || is_dot(from.name))
			return rc ? rc : dot_is(r, to.dir, -EBUSY);
		return dot_is(r, to.dir, flags & RENAME_NOREPLACE ? -EEXIST : -EBUSY);
	}
	return vfs_rename(r, &r->cred, from.dir, from.name, to.dir, to.name, flags);
}
