/* SPDX-License-Identifier: MIT */
/*
 * graft.c - changes a state directly: links, attributes and content, with no check of permissions.
 */
#include "fs/graft.h"

#include <errno.h>

#include "fs/data.h"
#include "fs/reffs_impl.h"

bool graft_name_ok(const char *name)
{
	size_t len = strlen(name);

	return len && len <= NAME_LEN_MAX && !strchr(name, '/') && !streq(name, ".") &&
	       !streq(name, "..");
}

struct hash128 graft_names(const struct reffs_inode *inode)
{
	return inode->names;
}

struct hash128 graft_path(struct hash128 dir, const char *name)
{
	return path_hash(dir, name, strlen(name));
}

struct hash128 graft_term(const struct reffs_inode *inode, struct hash128 names)
{
	struct reffs_inode named = *inode;

	named.names = names;
	return inode_term(&named, false);
}

/* Checks that a name can be changed in a directory. Returns 0 or -errno. */
static int check_dir(const struct reffs *r, uint64_t dir, const char *name)
{
	const struct reffs_inode *d = inode_find(r, dir);

	if (!d)
		return -ENOENT;
	if (d->type != TREE_DIR)
		return -ENOTDIR;
	return graft_name_ok(name) ? 0 : -EINVAL;
}

static uint64_t find(const struct reffs *r, uint64_t dir, const char *name)
{
	return name_find(r, dir, name, strlen(name));
}

int graft_make(struct reffs *r, uint64_t dir, const char *name, const struct graft_inode *inode)
{
	int rc = check_dir(r, dir, name);

	if (rc)
		return rc;
	if (inode_find(r, inode->ino) || find(r, dir, name))
		return -EEXIST;
	if ((inode->type == TREE_SYMLINK) != (inode->target != NULL))
		return -EINVAL;
	struct reffs_inode *i = inode_alloc(inode->ino, inode->type, inode->mode & 07777);
	i->uid = inode->uid;
	i->gid = inode->gid;
	i->rdev = inode->rdev;
	if (inode->target) {
		i->size = strlen(inode->target);
		i->target = blob_new(inode->target, i->size);
		i->content = hash_bytes(inode->target, i->size);
	}
	r->next_ino = max(r->next_ino, inode->ino + 1);
	name_new(r, dir, name, i);
	return 0;
}

int graft_link(struct reffs *r, uint64_t dir, const char *name, uint64_t ino)
{
	const struct reffs_inode *i = inode_find(r, ino);
	int rc = check_dir(r, dir, name);

	if (rc)
		return rc;
	if (!i)
		return -ENOENT;
	if (i->type == TREE_DIR)
		return -EPERM;
	if (find(r, dir, name))
		return -EEXIST;
	name_link(r, dir, name, ino);
	return 0;
}

int graft_unlink(struct reffs *r, uint64_t dir, const char *name)
{
	int rc = check_dir(r, dir, name);

	if (rc)
		return rc;
	uint64_t ino = find(r, dir, name);
	if (!ino)
		return -ENOENT;
	const struct reffs_inode *i = inode_get(r, ino);
	if (i->type == TREE_DIR && i->map)
		return -ENOTEMPTY;
	name_unlink(r, dir, name);
	return 0;
}

static bool may_move(const struct reffs *r, uint64_t ino, uint64_t to_dir)
{
	return inode_get(r, ino)->type != TREE_DIR || !name_is_below(r, to_dir, ino);
}

int graft_rename(struct reffs *r, uint64_t dir, const char *name, uint64_t to_dir, const char *to,
		 bool exchange)
{
	struct entry_place from = { dir, name }, there = { to_dir, to };
	int rc = check_dir(r, dir, name);

	if (!rc)
		rc = check_dir(r, to_dir, to);
	if (rc)
		return rc;
	uint64_t ino = find(r, dir, name), other = find(r, to_dir, to);
	if (!ino || (exchange && !other))
		return -ENOENT;
	if (ino == other)
		return 0;
	if (!may_move(r, ino, to_dir) || (exchange && !may_move(r, other, dir)))
		return -EINVAL;
	if (exchange) {
		name_exchange(r, from, there);
		return 0;
	}
	if (other) {
		rc = graft_unlink(r, to_dir, to);
		if (rc)
			return rc;
	}
	name_move(r, from, there);
	return 0;
}

int graft_attr(struct reffs *r, uint64_t ino, uint32_t mode, uint32_t uid, uint32_t gid)
{
	if (!inode_find(r, ino))
		return -ENOENT;
	struct reffs_inode *i = inode_edit(r, ino);
	if (mode != UINT32_MAX)
		i->mode = mode & 07777;
	if (uid != UINT32_MAX)
		i->uid = uid;
	if (gid != UINT32_MAX)
		i->gid = gid;
	inode_commit(r, i);
	return 0;
}

int graft_xattr(struct reffs *r, uint64_t ino, const char *name, const void *value, size_t len)
{
	const struct reffs_inode *found = inode_find(r, ino);

	if (!found)
		return -ENOENT;
	if (!value && !xattrs_find(found->xattrs, name))
		return 0;
	struct reffs_inode *i = inode_edit(r, ino);
	struct xattrs *old = i->xattrs;
	i->xattrs = xattrs_with(old, name, value, len);
	xattrs_unref(old);
	inode_commit(r, i);
	return 0;
}

static int check_file(const struct reffs *r, uint64_t ino)
{
	const struct reffs_inode *i = inode_find(r, ino);

	if (!i)
		return -ENOENT;
	return i->type == TREE_FILE ? 0 : -EINVAL;
}

int graft_resize(struct reffs *r, uint64_t ino, uint64_t size)
{
	int rc = check_file(r, ino);

	if (rc)
		return rc;
	struct reffs_inode *i = inode_edit(r, ino);
	data_resize(i, size);
	inode_commit(r, i);
	return 0;
}

int graft_data(struct reffs *r, uint64_t ino, const struct reffs_inode *file, uint64_t from,
	       uint64_t to)
{
	int rc = check_file(r, ino);

	if (rc)
		return rc;
	if (file->type != TREE_FILE)
		return -EINVAL;
	to = min(to, file->size);
	if (from >= to)
		return 0;
	struct reffs_inode *i = inode_edit(r, ino);
	uint64_t size = max(i->size, to);
	/* Both have zeros behind their end, so the last page can be shared as a whole. */
	if (to == file->size && size == to)
		to = (to + REFFS_PAGE - 1) / REFFS_PAGE * REFFS_PAGE;
	data_copy(i, from, file, from, to - from);
	i->size = size;
	inode_commit(r, i);
	return 0;
}
