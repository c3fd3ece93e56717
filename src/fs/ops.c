/* SPDX-License-Identifier: MIT */
/*
 * ops.c - finds the function of an operation; and the operations that only open, close or sync.
 *
 * A sync makes no difference here: the state is what a user sees while the system runs.
 */
#include "fs/ops.h"

#include <errno.h>
#include <fcntl.h>

#include "fs/opening.h"

int64_t ref_creat(struct reffs *r, const struct op *op)
{
	struct opened f;

	return opened_from_path(r, op->args[0].text, O_WRONLY | O_CREAT | O_TRUNC,
				(uint32_t)op->args[1].num, &f);
}

int64_t ref_open(struct reffs *r, const struct op *op)
{
	struct opened f;
	int rc = opened_from_path(r, op->args[0].text, (int)op->args[1].num,
				  (uint32_t)op->args[2].num, &f);

	if (!rc)
		handle_set(r, op->handle, f);
	return rc;
}

int64_t ref_close(struct reffs *r, const struct op *op)
{
	struct handle *h = handle_find(r, op->args[0].text);

	if (!h)
		return -EBADF;
	handle_close(r, h);
	return 0;
}

static int64_t sync_file(struct reffs *r, const struct op *op, int of_fifo)
{
	struct opened f;
	int rc = opened_from_arg(r, &op->args[0], O_RDONLY, &f);

	return rc ? rc : inode_get(r, f.ino)->type == TREE_FIFO ? of_fifo : 0;
}

int64_t ref_fsync(struct reffs *r, const struct op *op)
{
	return sync_file(r, op, -EINVAL);
}

int64_t ref_sync_file_range(struct reffs *r, const struct op *op)
{
	return sync_file(r, op, -ESPIPE);
}

int64_t ref_fdatasync(struct reffs *r, const struct op *op)
{
	return ref_fsync(r, op);
}

int64_t ref_sync(struct reffs *r, const struct op *op)
{
	(void)r, (void)op;
	return 0;
}

int64_t ref_syncfs(struct reffs *r, const struct op *op)
{
	return ref_sync(r, op);
}

int64_t ref_drop_caches(struct reffs *r, const struct op *op)
{
	(void)r, (void)op;
	return 0;
}

/* The effect of a command is known only after it has run: see reffs_adopt(). */
int64_t ref_shell(struct reffs *r, const struct op *op)
{
	(void)r, (void)op;
	return -EOPNOTSUPP;
}

int64_t ref_remount(struct reffs *r, const struct op *op)
{
	(void)op;
	handles_close_all(r);
	return 0;
}

static reffs_op_fn *const table[OP_COUNT] = {
#define OP(name, ...) [OP_ID(name)] = ref_##name,
#include "workload/ops.def"
};

int64_t ref_op(struct reffs *r, const struct op *op)
{
	return table[op_id(op->def)](r, op);
}
