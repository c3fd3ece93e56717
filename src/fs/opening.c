/* SPDX-License-Identifier: MIT */
/*
 * opening.c - open(2) as exec_open_path() calls it: it opens no device, and does not wait for the
 * other end of a fifo. The order of the checks is the kernel's (build_open_flags, open_last_lookups
 * and do_open in fs/namei.c), since it decides which error comes first.
 */
#include "fs/opening.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "fs/path.h"

enum { TMPFILE = O_TMPFILE & ~O_DIRECTORY };

/* The result of looking a path up. */
struct found {
	uint64_t ino;
	uint64_t dir; /* the directory of its last component */
	bool created;
	bool want_dir;
};

bool opened_readable(const struct opened *f)
{
	int how = f->flags & O_ACCMODE;

	return how == O_RDONLY || how == O_RDWR;
}

bool opened_writable(const struct opened *f)
{
	int how = f->flags & O_ACCMODE;

	return how == O_WRONLY || how == O_RDWR;
}

static bool is_device(struct reffs *r, const char *path, int flags)
{
	uint64_t ino;

	if (vfs_path(r, &r->cred, path, flags & O_NOFOLLOW, &ino))
		return false;
	enum tree_type type = inode_get(r, ino)->type;
	return type == TREE_CHAR || type == TREE_BLOCK;
}

static int open_tmpfile(struct reffs *r, const char *path, int flags, uint32_t mode,
			struct opened *out)
{
	uint64_t dir;
	int rc;

	if ((flags & O_ACCMODE) == O_RDONLY)
		return -EINVAL;
	rc = vfs_path(r, &r->cred, path, O_DIRECTORY | (flags & O_NOFOLLOW), &dir);
	if (!rc)
		rc = vfs_tmpfile(r, &r->cred, dir, mode, flags & O_EXCL, &out->ino);
	out->flags = flags;
	return rc;
}

static int find_or_create(struct reffs *r, const char *path, int flags, uint32_t mode,
			  struct found *out)
{
	bool follow = !(flags & O_NOFOLLOW) && (flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL);
	struct path_walk w;
	int rc = path_walk_begin(&w, r, &r->cred, path);

	*out = (struct found){ .want_dir = flags & O_DIRECTORY };
	while (!rc) {
		if (w.last_type == LAST_NORMAL && w.slashes) {
			if (flags & O_CREAT)
				return -EISDIR;
			out->want_dir = follow = true;
		}
		rc = path_walk_last(&w, &out->ino);
		if (rc)
			return rc;
		out->dir = w.dir;
		if (!out->ino && !(flags & O_CREAT))
			return -ENOENT;
		if (!out->ino) {
			out->created = true;
			return vfs_create(r, &r->cred, w.dir, w.last, mode, &out->ino);
		}
		const struct reffs_inode *i = inode_get(r, out->ino);
		if (i->type != TREE_SYMLINK || !follow)
			return 0;
		rc = path_walk_follow(&w, i);
	}
	return rc;
}

/* True if O_CREAT must not open this file: another user's, in a sticky directory. */
static bool is_protected(const struct reffs *r, const struct reffs_inode *i, uint64_t dir_ino)
{
	const struct reffs_inode *dir = inode_get(r, dir_ino);

	if (!(dir->mode & S_ISVTX) || i->uid == dir->uid || i->uid == r->cred.uid)
		return false;
	if (i->type == TREE_FILE && !r->opts.protect_regular)
		return false;
	if (i->type == TREE_FIFO && !r->opts.protect_fifos)
		return false;
	if (dir->mode & S_IWOTH)
		return true;
	return (dir->mode & S_IWGRP) && ((i->type == TREE_FILE && r->opts.protect_regular >= 2) ||
					 (i->type == TREE_FIFO && r->opts.protect_fifos >= 2));
}

static bool fifo_has_reader(const struct reffs *r, uint64_t ino)
{
	return any_of(i, r->handles.n,
		      r->handles.v[i].file.ino == ino && opened_readable(&r->handles.v[i].file)) ||
	       (r->source.ino == ino && opened_readable(&r->source));
}

/* Opens a fifo without waiting: for writing, there must be a reader. */
static int open_fifo(const struct reffs *r, uint64_t ino, int flags)
{
	int how = flags & O_ACCMODE;

	if (how == O_WRONLY && !fifo_has_reader(r, ino))
		return -ENXIO;
	return how == O_ACCMODE || (flags & O_DIRECT) ? -EINVAL : 0;
}

static int open_found(struct reffs *r, const struct found *f, int flags)
{
	const struct reffs_inode *i = inode_get(r, f->ino);
	int rc;

	if (flags & O_CREAT) {
		if ((flags & O_EXCL) && !f->created)
			return -EEXIST;
		if (i->type == TREE_DIR)
			return -EISDIR;
		if (is_protected(r, i, f->dir))
			return -EACCES;
	}
	if (f->want_dir && i->type != TREE_DIR)
		return -ENOTDIR;
	if (f->created)
		return 0; /* the user who makes a file may use it, whatever its mode */
	rc = vfs_open(r, &r->cred, f->ino, flags);
	if (!rc && inode_get(r, f->ino)->type == TREE_FIFO)
		rc = open_fifo(r, f->ino, flags);
	return rc;
}

int opened_from_path(struct reffs *r, const char *path, int flags, uint32_t mode,
		     struct opened *out)
{
	struct found f;
	int rc;

	if (is_device(r, path, flags))
		return -EACCES;
	if ((flags & (O_DIRECTORY | O_CREAT)) == (O_DIRECTORY | O_CREAT))
		return -EINVAL;
	if (flags & TMPFILE)
		return open_tmpfile(r, path, flags, mode, out);
	rc = find_or_create(r, path, flags, mode, &f);
	if (!rc)
		rc = open_found(r, &f, flags);
	if (rc)
		return rc;
	*out = (struct opened){ f.ino, flags };
	return 0;
}

int opened_from_arg(struct reffs *r, const struct arg *arg, int flags, struct opened *out)
{
	if (!arg->is_handle)
		return opened_from_path(r, arg->text, flags, 0644, out);
	const struct handle *h = handle_find(r, arg->text);
	if (!h)
		return -EBADF;
	*out = h->file;
	return 0;
}
