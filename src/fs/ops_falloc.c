/* SPDX-License-Identifier: MIT */
/*
 * ops_falloc.c - fallocate(2). Blocks that are allocated but not written cannot be seen here; what
 * is left are sizes and zeros. Modes exclude each other, whatever the encoding says: the kernel
 * (since 6.11; before, some wrong mixtures were -EINVAL) answers -EOPNOTSUPP.
 */
#include "fs/ops.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>

#include "fs/data.h"
#include "fs/file.h"

enum {
	KEEP = FALLOC_FL_KEEP_SIZE,
	PUNCH = FALLOC_FL_PUNCH_HOLE,
	COLLAPSE = FALLOC_FL_COLLAPSE_RANGE,
	ZERO = FALLOC_FL_ZERO_RANGE,
	INSERT = FALLOC_FL_INSERT_RANGE,
};

static int check_mode(int mode)
{
	switch (mode & ~KEEP) {
	case 0:
	case ZERO:
	case FALLOC_FL_UNSHARE_RANGE:
		return 0;
	case PUNCH:
		return mode & KEEP ? 0 : -EOPNOTSUPP;
	case COLLAPSE:
	case INSERT:
		return mode & KEEP ? -EOPNOTSUPP : 0;
	}
	return -EOPNOTSUPP;
}

/* What the mode asks of the range in this file. */
static int check_range(const struct reffs *r, const struct reffs_inode *i, int mode,
		       uint64_t offset, uint64_t len)
{
	if (mode & FALLOC_FL_UNSHARE_RANGE)
		return -EOPNOTSUPP; /* ext4 shares nothing */
	if (!(mode & (COLLAPSE | INSERT)))
		return 0;
	if ((offset | len) % REFFS_PAGE)
		return -EINVAL;
	if ((mode & COLLAPSE) && offset + len >= i->size)
		return -EINVAL;
	if ((mode & INSERT) && offset >= i->size)
		return -EINVAL;
	if ((mode & INSERT) && len > r->opts.file_max - i->size)
		return -EFBIG;
	return 0;
}

int64_t falloc_file(struct reffs *r, const struct opened *f, int mode, uint64_t offset,
		    uint64_t len)
{
	const struct reffs_inode *i = inode_get(r, f->ino);
	uint64_t end = offset + len;
	int rc;

	if (!len)
		return -EINVAL;
	rc = check_mode(mode);
	if (rc)
		return rc;
	if (!file_writable(f))
		return -EBADF;
	if (i->type == TREE_FIFO)
		return -ESPIPE;
	assert(i->type == TREE_FILE); /* nothing else can be open for writing */
	if (end > r->opts.file_max)
		return -EFBIG;
	rc = check_range(r, i, mode, offset, len);
	if (rc)
		return rc;
	struct reffs_inode *own = inode_edit(r, f->ino);
	if (mode & COLLAPSE)
		data_collapse(own, offset, len);
	else if (mode & INSERT)
		data_insert(own, offset, len);
	else if (mode & (PUNCH | ZERO))
		data_zero(own, offset, end);
	if ((mode & ~ZERO) == 0 && end > own->size)
		data_resize(own, end);
	inode_commit(r, own);
	return 0;
}

int64_t ref_falloc(struct reffs *r, const struct op *op)
{
	struct opened f;
	int rc = file_arg(r, &op->args[0], O_WRONLY, &f);

	if (rc)
		return rc;
	return falloc_file(r, &f, (int)op->args[1].num, op->args[2].num, op->args[3].num);
}
