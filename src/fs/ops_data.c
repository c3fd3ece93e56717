/* SPDX-License-Identifier: MIT */
/*
 * ops_data.c - operations on the content of files. The process is root, so that writing keeps
 * the set-id bits.
 */
#include "fs/ops.h"

#include <errno.h>
#include <fcntl.h>

#include "fs/data.h"
#include "fs/file.h"

/* write(2) at `pos`. */
static int64_t write_file(struct reffs *r, const struct opened *f, uint64_t pos, uint64_t len)
{
	uint64_t limit = r->opts.file_max;

	if (!file_writable(f))
		return -EBADF;
	if (!len)
		return 0;
	if (f->flags & O_APPEND)
		pos = inode_get(r, f->ino)->size;
	if (pos >= limit)
		return -EFBIG;
	len = min(len, limit - pos);
	if ((f->flags & O_DIRECT) && (pos | len) % r->opts.dio_align)
		return -EINVAL;
	struct reffs_inode *i = inode_edit(r, f->ino);
	data_write(i, pos, len, r->tag, r->index);
	inode_commit(r, i);
	return (int64_t)len;
}

int64_t ref_write(struct reffs *r, const struct op *op)
{
	uint64_t offset = op->args[1].num;
	struct opened f;
	int rc = file_arg(r, &op->args[0], O_RDWR | O_CREAT, &f);

	if (rc)
		return rc;
	/* lseek(2) goes first. */
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
	int rc = file_arg(r, &op->args[0], O_WRONLY | O_CREAT | O_APPEND, &f);

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
	int rc = file_arg(r, &op->args[0], flags, &f);

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

int64_t ref_mmapwrite(struct reffs *r, const struct op *op)
{
	uint64_t offset = op->args[1].num, len = op->args[2].num, size;
	struct opened f;
	int rc = file_arg(r, &op->args[0], O_RDWR | O_CREAT, &f);

	if (rc || !len)
		return rc;
	const struct reffs_inode *i = inode_get(r, f.ino);
	size = i->type == TREE_DIR ? REFFS_PAGE : i->size; /* a small directory on ext4 */
	if (size < offset + len) {
		int64_t grown = falloc_file(r, &f, 0, offset, len);

		if (grown < 0)
			return grown;
	}
	/* mmap(2) for writing needs both, and comes after the file has grown. */
	if (!file_readable(&f) || !file_writable(&f))
		return -EACCES;
	struct reffs_inode *own = inode_edit(r, f.ino);
	data_write(own, offset, len, r->tag, r->index);
	inode_commit(r, own);
	return (int64_t)len;
}

int64_t ref_read(struct reffs *r, const struct op *op)
{
	uint64_t offset = op->args[1].num, len = op->args[2].num;
	struct opened f;
	int rc = file_arg(r, &op->args[0], O_RDONLY, &f);

	if (rc)
		return rc;
	const struct reffs_inode *i = inode_get(r, f.ino);
	if (i->type == TREE_FIFO)
		return -ESPIPE;
	if (!file_readable(&f))
		return -EBADF;
	if (i->type == TREE_DIR)
		return -EISDIR;
	if (!len || offset >= i->size)
		return 0;
	/* ext4 does not mind in a hole; which parts of a file are holes is not known here. */
	if ((f.flags & O_DIRECT) && (offset | len) % r->opts.dio_align)
		return -EINVAL;
	return (int64_t)min(len, i->size - offset);
}

int64_t ref_truncate(struct reffs *r, const struct op *op)
{
	uint64_t size = op->args[1].num;
	struct opened f;
	int rc = file_arg(r, &op->args[0], O_WRONLY, &f);

	if (rc)
		return rc;
	const struct reffs_inode *i = inode_get(r, f.ino);
	if (i->type != TREE_FILE || !file_writable(&f))
		return -EINVAL;
	if (size > i->size && size > r->opts.file_max)
		return -EFBIG;
	struct reffs_inode *own = inode_edit(r, f.ino);
	data_resize(own, size);
	inode_commit(r, own);
	return 0;
}

/* Opens both files of a copy; the second is not made if the first is not there. */
static int open_both(struct reffs *r, const struct arg *from_arg, const struct arg *to_arg,
		     struct opened *from, struct opened *to)
{
	int rc = file_arg(r, from_arg, O_RDONLY, from);

	if (rc)
		return rc;
	r->source = *from;
	rc = file_arg(r, to_arg, O_WRONLY | O_CREAT, to);
	r->source.ino = 0;
	if (rc)
		return rc;
	enum tree_type a = inode_get(r, from->ino)->type, b = inode_get(r, to->ino)->type;
	if (a == TREE_DIR || b == TREE_DIR)
		return -EISDIR;
	if (a != TREE_FILE || b != TREE_FILE)
		return -EINVAL;
	if (!file_readable(from) || !file_writable(to) || (to->flags & O_APPEND))
		return -EBADF;
	return 0;
}

int64_t ref_copy_file_range(struct reffs *r, const struct op *op)
{
	uint64_t from_offset = op->args[1].num, to_offset = op->args[3].num, len = op->args[4].num;
	uint64_t limit = r->opts.file_max;
	struct opened from, to;
	int rc = open_both(r, &op->args[0], &op->args[2], &from, &to);

	if (rc)
		return rc;
	uint64_t size = inode_get(r, from.ino)->size;
	len = from_offset < size ? min(len, size - from_offset) : 0;
	if (to_offset >= limit)
		return -EFBIG;
	len = min(len, limit - to_offset);
	if (from.ino == to.ino && to_offset + len > from_offset && to_offset < from_offset + len)
		return -EINVAL;
	if (!len)
		return 0;
	struct reffs_inode *i = inode_edit(r, to.ino);
	data_copy(i, to_offset, inode_get(r, from.ino), from_offset, len);
	inode_commit(r, i);
	return (int64_t)len;
}

int64_t ref_reflink(struct reffs *r, const struct op *op)
{
	struct opened from, to;
	int rc = open_both(r, &op->args[0], &op->args[1], &from, &to);

	if (rc)
		return rc;
	if (r->opts.no_reflink)
		return -EOPNOTSUPP;
	const struct reffs_inode *source = inode_get(r, from.ino);
	if (!source->size)
		return 0;
	if (from.ino == to.ino)
		return -EINVAL;
	/* The last block is shared whole, so that nothing may follow it. */
	if (source->size % REFFS_PAGE && inode_get(r, to.ino)->size > source->size)
		return -EINVAL;
	struct reffs_inode *i = inode_edit(r, to.ino);
	data_clone(i, inode_get(r, from.ino));
	inode_commit(r, i);
	return 0;
}
