/* SPDX-License-Identifier: MIT */
/*
 * vfs_name.c - looks up, makes and removes names. The order of the checks is the kernel's
 * (filename_create, vfs_mknod, vfs_link, may_delete in fs/namei.c), since it decides which
 * error comes first.
 */
#include <errno.h>
#include <sys/stat.h>

#include "fs/acl.h"
#include "fs/reffs_impl.h"
#include "fs/path.h"
#include "fs/perm.h"

int vfs_may_search(const struct reffs *r, const struct reffs_cred *c, uint64_t dir)
{
	const struct reffs_inode *d = inode_find(r, dir);

	if (!d)
		return -ESTALE;
	return d->type == TREE_DIR ? perm_check(c, d, PERM_X) : -ENOTDIR;
}

int vfs_find(struct reffs *r, const struct reffs_cred *c, uint64_t dir, const char *name,
	     uint64_t *ino)
{
	size_t len = strlen(name);
	int rc = vfs_may_search(r, c, dir);

	if (rc)
		return rc;
	if (len > NAME_LEN_MAX)
		return -ENAMETOOLONG;
	*ino = len ? name_find(r, dir, name, len) : 0;
	return len ? 0 : -ENOENT;
}

int vfs_lookup(struct reffs *r, const struct reffs_cred *c, uint64_t dir, const char *name,
	       uint64_t *ino)
{
	int rc = vfs_find(r, c, dir, name, ino);

	return rc ? rc : *ino ? 0 : -ENOENT;
}

int vfs_may_create(const struct reffs_cred *c, const struct reffs_inode *dir)
{
	if (!dir->nlink)
		return -ENOENT; /* the directory was removed */
	return perm_check(c, dir, PERM_W | PERM_X);
}

int vfs_may_delete(const struct reffs *r, const struct reffs_cred *c, const struct reffs_inode *dir,
		   uint64_t ino, bool want_dir)
{
	const struct reffs_inode *i = inode_get(r, ino);
	int rc = perm_check(c, dir, PERM_W | PERM_X);

	if (rc)
		return rc;
	if (perm_sticky(c, dir, i))
		return -EPERM;
	if (want_dir != (i->type == TREE_DIR))
		return want_dir ? -ENOTDIR : -EISDIR;
	return 0;
}

struct reffs_inode *inode_make(struct reffs *r, const struct reffs_cred *c,
			       const struct reffs_inode *dir, enum tree_type type, uint32_t mode)
{
	struct reffs_inode *i = inode_alloc(r->next_ino++, type, mode);
	uint32_t setgid = S_ISGID | S_IXGRP;

	i->uid = c->uid;
	i->gid = c->gid;
	i->atime = i->mtime = i->ctime = i->btime = r->now;
	if (dir->mode & S_ISGID) { /* a new file gets the directory's group */
		i->gid = dir->gid;
		if (type == TREE_DIR)
			i->mode |= S_ISGID;
		else if ((mode & setgid) == setgid && !perm_may_setgid(c, dir->gid))
			i->mode &= ~(uint32_t)S_ISGID;
	}
	if (!acl_inherit(i, dir) && type != TREE_SYMLINK)
		i->mode &= ~(c->umask & 0777);
	return i;
}

/* Checks that a new name can be made in a directory. */
static int place_for(struct reffs *r, const struct reffs_cred *c, uint64_t dir, const char *name)
{
	uint64_t ino;
	int rc = vfs_find(r, c, dir, name, &ino);

	return rc ? rc : ino ? -EEXIST : 0;
}

/* Makes an inode for a place that was checked; add() must follow. */
static int make_there(struct reffs *r, const struct reffs_cred *c, uint64_t dir,
		      enum tree_type type, uint32_t mode, struct reffs_inode **out)
{
	const struct reffs_inode *d = inode_get(r, dir);
	int rc = vfs_may_create(c, d);

	if (!rc)
		rc = inode_room(r);
	if (!rc)
		*out = inode_make(r, c, d, type, mode);
	return rc;
}

static int make(struct reffs *r, const struct reffs_cred *c, struct entry_place at,
		enum tree_type type, uint32_t mode, struct reffs_inode **out)
{
	int rc = place_for(r, c, at.dir, at.name);

	return rc ? rc : make_there(r, c, at.dir, type, mode, out);
}

static int add(struct reffs *r, struct entry_place at, struct reffs_inode *i, uint64_t *ino)
{
	*ino = i->ino;
	name_new(r, at.dir, at.name, i);
	return 0;
}

int vfs_create(struct reffs *r, const struct reffs_cred *c, uint64_t dir, const char *name,
	       uint32_t mode, uint64_t *ino)
{
	struct entry_place at = { dir, name };
	struct reffs_inode *i;
	int rc = make(r, c, at, TREE_FILE, mode & 07777, &i);

	return rc ? rc : add(r, at, i, ino);
}

int vfs_mkdir(struct reffs *r, const struct reffs_cred *c, uint64_t dir, const char *name,
	      uint32_t mode, uint64_t *ino)
{
	struct entry_place at = { dir, name };
	struct reffs_inode *i;
	/* mkdir(2) ignores set-id bits; a directory inherits the set-group-id bit. */
	int rc = make(r, c, at, TREE_DIR, mode & (0777 | S_ISVTX), &i);

	return rc ? rc : add(r, at, i, ino);
}

int vfs_mknod(struct reffs *r, const struct reffs_cred *c, uint64_t dir, const char *name,
	      uint32_t mode, uint64_t rdev, uint64_t *ino)
{
	enum tree_type type = mode & S_IFMT ? tree_type_of(mode) : TREE_FILE;
	bool device = type == TREE_CHAR || type == TREE_BLOCK;
	struct reffs_inode *i;
	int rc;

	if (type == TREE_DIR)
		return -EPERM;
	if (type == TREE_UNKNOWN || type == TREE_SYMLINK)
		return -EINVAL;
	rc = place_for(r, c, dir, name);
	if (!rc)
		rc = vfs_may_create(c, inode_get(r, dir));
	/* Any user may make a whiteout. */
	if (!rc && device && !(type == TREE_CHAR && !rdev) && !perm_capable(c, REFFS_CAP_MKNOD))
		rc = -EPERM;
	if (!rc)
		rc = make_there(r, c, dir, type, mode & 07777, &i);
	if (rc)
		return rc;
	if (device)
		i->rdev = rdev;
	return add(r, (struct entry_place){ dir, name }, i, ino);
}

int vfs_symlink(struct reffs *r, const struct reffs_cred *c, const char *target, uint64_t dir,
		const char *name, uint64_t *ino)
{
	struct entry_place at = { dir, name };
	size_t len = strlen(target);
	struct reffs_inode *i;

	if (!len)
		return -ENOENT;
	if (len >= PATH_LEN_MAX)
		return -ENAMETOOLONG;
	int rc = make(r, c, at, TREE_SYMLINK, 0777, &i);
	if (rc)
		return rc;
	i->target = blob_new(target, len);
	i->size = len;
	i->content = hash_bytes(target, len);
	return add(r, at, i, ino);
}

int vfs_tmpfile(struct reffs *r, const struct reffs_cred *c, uint64_t dir, uint32_t mode, bool excl,
		uint64_t *ino)
{
	const struct reffs_inode *d = inode_find(r, dir);
	int rc = !d ? -ESTALE : d->type != TREE_DIR ? -ENOTDIR : perm_check(c, d, PERM_W | PERM_X);

	if (!rc)
		rc = inode_room(r);
	if (rc)
		return rc;
	struct reffs_inode *i = inode_make(r, c, d, TREE_FILE, mode & 07777);
	i->linkable = !excl;
	*ino = i->ino;
	inode_add_orphan(r, i);
	return 0;
}

/* False if the sysctl forbids to link a file of another owner that the user could not write. */
static bool may_link(const struct reffs *r, const struct reffs_cred *c, const struct reffs_inode *i)
{
	uint32_t setgid = S_ISGID | S_IXGRP;

	if (!r->opts.protect_hardlinks || perm_owns(c, i))
		return true;
	return i->type == TREE_FILE && !(i->mode & S_ISUID) && (i->mode & setgid) != setgid &&
	       !perm_check(c, i, PERM_R | PERM_W);
}

int vfs_link(struct reffs *r, const struct reffs_cred *c, uint64_t ino, uint64_t dir,
	     const char *name)
{
	const struct reffs_inode *i = inode_find(r, ino);
	int rc;

	if (!i)
		return -ESTALE;
	rc = place_for(r, c, dir, name);
	if (rc)
		return rc;
	if (!may_link(r, c, i))
		return -EPERM;
	rc = vfs_may_create(c, inode_get(r, dir));
	if (rc)
		return rc;
	if (i->type == TREE_DIR)
		return -EPERM;
	if (!i->nlink && !i->linkable)
		return -ENOENT;
	if (i->nlink >= r->opts.link_max)
		return -EMLINK;
	name_link(r, dir, name, ino);
	return 0;
}

int vfs_unlink(struct reffs *r, const struct reffs_cred *c, uint64_t dir, const char *name)
{
	uint64_t ino;
	int rc = vfs_lookup(r, c, dir, name, &ino);

	if (!rc)
		rc = vfs_may_delete(r, c, inode_get(r, dir), ino, false);
	if (!rc)
		name_unlink(r, dir, name);
	return rc;
}

int vfs_rmdir(struct reffs *r, const struct reffs_cred *c, uint64_t dir, const char *name)
{
	uint64_t ino;
	int rc = vfs_lookup(r, c, dir, name, &ino);

	if (!rc)
		rc = vfs_may_delete(r, c, inode_get(r, dir), ino, true);
	if (!rc && inode_get(r, ino)->map)
		rc = -ENOTEMPTY;
	if (!rc)
		name_unlink(r, dir, name);
	return rc;
}

int vfs_readlink(struct reffs *r, uint64_t ino, const char **target)
{
	const struct reffs_inode *i = inode_find(r, ino);

	if (!i)
		return -ESTALE;
	if (i->type != TREE_SYMLINK)
		return -EINVAL;
	vfs_note_access(r, i);
	*target = inode_get(r, ino)->target->data;
	return 0;
}
