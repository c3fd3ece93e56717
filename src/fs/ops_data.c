/* SPDX-License-Identifier: MIT */
/* ops_data.c - performs operations on the content of files, as the flags of the open file allow. */
#include "fs/ops.h"

#include <errno.h>
#include <fcntl.h>

#include "fs/data.h"
#include "fs/falloc.h"
#include "fs/opening.h"
#include "workload/content.h"

static void fill(void *ctx, uint64_t offset, void *data, size_t len)
{
	const struct reffs *r = ctx;

	content_fill(r->tag, r->index, offset, data, len);
}

/* write(2) at `pos`. */
static int64_t write_file(struct reffs *r, const struct opened *f, uint64_t pos, uint64_t len)
{
	if (!opened_writable(f))
		return -EBADF;
	if (!len)
		return 0;
	return vfs_write_from(r, &r->cred, f->ino, (struct data_source){ .fill = fill, .ctx = r },
			      pos, len, f->flags);
}

int64_t ref_write(struct reffs *r, const struct op *op)
{
	uint64_t offset = op->args[1].num;
	struct opened f;
	int rc = opened_from_arg(r, &op->args[0], O_RDWR | O_CREAT, &f);

	if (rc)
		return rc;
	/* The executor calls lseek(2) first. */
	const struct reffs_inode *i = inode_get(r, f.ino);
	if (i->type == TREE_FIFO)
		return -ESPIPE;
	if (i->type == TREE_FILE && offset > r->opts.file_max)
		return -EINVAL;
	return write_file(r, &f, offset, op->args[2].num);
}

int64_t ref_append(struct reffs *r, const struct op *op)
{
	struct opened f;
	int rc = opened_from_arg(r, &op->args[0], O_WRONLY | O_CREAT | O_APPEND, &f);

	if (rc)
		return rc;
	const struct reffs_inode *i = inode_get(r, f.ino);
	if (i->type == TREE_FIFO)
		return -ESPIPE;
	return write_file(r, &f, i->size, op->args[1].num);
}

static int64_t write_at(struct reffs *r, const struct op *op, int flags)
{
	uint64_t offset = op->args[1].num;
	struct opened f;
	int rc = opened_from_arg(r, &op->args[0], flags, &f);

	if (rc)
		return rc;
	if (inode_get(r, f.ino)->type == TREE_FIFO)
		return -ESPIPE;
	return write_file(r, &f, offset, op->args[2].num);
}

int64_t ref_pwrite(struct reffs *r, const struct op *op)
{
	return write_at(r, op, O_RDWR);
}

int64_t ref_dwrite(struct reffs *r, const struct op *op)
{
	return write_at(r, op, O_RDWR | O_CREAT | O_DIRECT);
}

/* fallocate(2) of a file that is open. */
static int64_t falloc_file(struct reffs *r, const struct opened *f, int mode, uint64_t offset,
			   uint64_t len)
{
	int rc = falloc_check(mode, len);

	if (rc)
		return rc;
	if (!opened_writable(f))
		return -EBADF;
	return vfs_fallocate(r, &r->cred, f->ino, mode, offset, len);
}

int64_t ref_mmapwrite(struct reffs *r, const struct op *op)
{
	uint64_t offset = op->args[1].num, len = op->args[2].num, size;
	struct opened f;
	int rc = opened_from_arg(r, &op->args[0], O_RDWR | O_CREAT, &f);

	if (rc || !len)
		return rc;
	const struct reffs_inode *i = inode_get(r, f.ino);
	size = i->type == TREE_DIR ? REFFS_PAGE : i->size; /* a small directory on ext4 */
	if (size < offset + len) {
		int64_t grown = falloc_file(r, &f, 0, offset, len);

		if (grown < 0)
			return grown;
	}
	/* mmap(2) for writing needs both rights, and comes after the file has grown. */
	if (!opened_readable(&f) || !opened_writable(&f))
		return -EACCES;
	/* A write to a mapped page does not clear set-id bits. */
	struct reffs_inode *own = inode_edit(r, f.ino);
	len = data_write(own, offset, len, (struct data_source){ .fill = fill, .ctx = r },
			 page_room(r));
	own->mtime = own->ctime = r->now;
	inode_commit(r, own);
	return (int64_t)len;
}

/* A mapping needs both rights. A file without data in the range has nothing to be synced. */
int64_t ref_msync(struct reffs *r, const struct op *op)
{
	struct opened f;
	int rc = opened_from_arg(r, &op->args[0], O_RDWR, &f);

	if (rc)
		return rc;
	return opened_readable(&f) && opened_writable(&f) ? 0 : -EACCES;
}

int64_t ref_read(struct reffs *r, const struct op *op)
{
	uint64_t offset = op->args[1].num, len = op->args[2].num;
	struct opened f;
	int rc = opened_from_arg(r, &op->args[0], O_RDONLY, &f);

	if (rc)
		return rc;
	const struct reffs_inode *i = inode_get(r, f.ino);
	if (i->type == TREE_FIFO)
		return -ESPIPE;
	if (!opened_readable(&f))
		return -EBADF;
	if (i->type == TREE_DIR)
		return -EISDIR;
	if (!len || offset >= i->size)
		return 0;
	/* ext4 allows this in a hole, but the reference does not know which parts are holes. */
	if ((f.flags & O_DIRECT) && (offset | len) % r->opts.dio_align)
		return -EINVAL;
	vfs_note_access(r, i);
	return (int64_t)min(len, inode_get(r, f.ino)->size - offset);
}

int64_t ref_truncate(struct reffs *r, const struct op *op)
{
	struct vfs_setattr a = { .set = VFS_SET_SIZE | VFS_SET_OPEN, .size = op->args[1].num };
	struct opened f;
	int rc = opened_from_arg(r, &op->args[0], O_WRONLY, &f);

	if (rc)
		return rc;
	if (inode_get(r, f.ino)->type != TREE_FILE || !opened_writable(&f))
		return -EINVAL;
	return vfs_setattr(r, &r->cred, f.ino, &a);
}

int64_t ref_falloc(struct reffs *r, const struct op *op)
{
	struct opened f;
	int rc = opened_from_arg(r, &op->args[0], O_WRONLY, &f);

	if (rc)
		return rc;
	return falloc_file(r, &f, (int)op->args[1].num, op->args[2].num, op->args[3].num);
}

/* Opens both files of a copy; the second is not made if the first is not there. */
static int open_both(struct reffs *r, const struct arg *from_arg, const struct arg *to_arg,
		     struct opened *from, struct opened *to)
{
	int rc = opened_from_arg(r, from_arg, O_RDONLY, from);

	if (rc)
		return rc;
	r->source = *from;
	rc = opened_from_arg(r, to_arg, O_WRONLY | O_CREAT, to);
	r->source.ino = 0;
	if (rc)
		return rc;
	enum tree_type a = inode_get(r, from->ino)->type, b = inode_get(r, to->ino)->type;
	if (a == TREE_DIR || b == TREE_DIR)
		return -EISDIR;
	if (a != TREE_FILE || b != TREE_FILE)
		return -EINVAL;
	if (!opened_readable(from) || !opened_writable(to) || (to->flags & O_APPEND))
		return -EBADF;
	return 0;
}

int64_t ref_copy_file_range(struct reffs *r, const struct op *op)
{
	struct opened from, to;
	int rc = open_both(r, &op->args[0], &op->args[2], &from, &to);

	if (rc)
		return rc;
	return vfs_copy(r, &r->cred, from.ino, op->args[1].num, to.ino, op->args[3].num,
			op->args[4].num);
}

int64_t ref_reflink(struct reffs *r, const struct op *op)
{
	struct opened from, to;
	int rc = open_both(r, &op->args[0], &op->args[1], &from, &to);

	return rc ? rc : vfs_clone(r, &r->cred, from.ino, to.ino);
}
