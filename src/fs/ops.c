/* SPDX-License-Identifier: MIT */
/*
 * ops.c - the table of operations, and those that only open, close or sync.
 *
 * What is synced makes no difference here: the state is what a user sees while the system runs.
 */
#include "fs/ops.h"

#include <errno.h>
#include <fcntl.h>

#include "fs/file.h"

static int64_t ref_creat(struct reffs *r, const struct op *op)
{
	struct opened f;

	return file_open(r, op->args[0].text, O_WRONLY | O_CREAT | O_TRUNC,
			 (uint32_t)op->args[1].num, &f);
}

static int64_t ref_open(struct reffs *r, const struct op *op)
{
	struct opened f;
	int rc =
		file_open(r, op->args[0].text, (int)op->args[1].num, (uint32_t)op->args[2].num, &f);

	if (!rc)
		handle_set(r, op->handle, f);
	return rc;
}

static int64_t ref_close(struct reffs *r, const struct op *op)
{
	struct handle *h = handle_find(r, op->args[0].text);

	if (!h)
		return -EBADF;
	handle_close(r, h);
	return 0;
}

static int64_t ref_fsync(struct reffs *r, const struct op *op)
{
	struct opened f;
	int rc = file_arg(r, &op->args[0], O_RDONLY, &f);

	if (rc)
		return rc;
	return inode_get(r, f.ino)->type == TREE_FIFO ? -EINVAL : 0;
}

static int64_t ref_sync_file_range(struct reffs *r, const struct op *op)
{
	struct opened f;
	int rc = file_arg(r, &op->args[0], O_RDONLY, &f);

	if (rc)
		return rc;
	return inode_get(r, f.ino)->type == TREE_FIFO ? -ESPIPE : 0;
}

static int64_t ref_nothing(struct reffs *r, const struct op *op)
{
	(void)r, (void)op;
	return 0;
}

/* What a command does, only who runs it can tell: see reffs_adopt(). */
static int64_t ref_shell(struct reffs *r, const struct op *op)
{
	(void)r, (void)op;
	return -EOPNOTSUPP;
}

static int64_t ref_remount(struct reffs *r, const struct op *op)
{
	(void)op;
	handles_close_all(r);
	return 0;
}

static const struct {
	const char *name;
	reffs_op_fn *fn;
} table[] = {
	{ "creat", ref_creat },
	{ "open", ref_open },
	{ "close", ref_close },
	{ "mkdir", ref_mkdir },
	{ "rmdir", ref_rmdir },
	{ "mknod", ref_mknod },
	{ "mkfifo", ref_mkfifo },
	{ "link", ref_link },
	{ "symlink", ref_symlink },
	{ "unlink", ref_unlink },
	{ "remove", ref_remove },
	{ "rename", ref_rename },
	{ "write", ref_write },
	{ "append", ref_append },
	{ "pwrite", ref_pwrite },
	{ "dwrite", ref_dwrite },
	{ "mmapwrite", ref_mmapwrite },
	{ "read", ref_read },
	{ "truncate", ref_truncate },
	{ "falloc", ref_falloc },
	{ "copy_file_range", ref_copy_file_range },
	{ "reflink", ref_reflink },
	{ "setxattr", ref_setxattr },
	{ "removexattr", ref_removexattr },
	{ "chmod", ref_chmod },
	{ "chown", ref_chown },
	{ "utimens", ref_utimens },
	{ "fsync", ref_fsync },
	{ "fdatasync", ref_fsync },
	{ "sync", ref_nothing },
	{ "syncfs", ref_nothing },
	{ "sync_file_range", ref_sync_file_range },
	{ "remount", ref_remount },
	{ "drop_caches", ref_nothing },
	{ "shell", ref_shell },
};

reffs_op_fn *op_lookup(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (streq(table[i].name, name))
			return table[i].fn;
	return NULL;
}
