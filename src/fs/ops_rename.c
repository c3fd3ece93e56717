/* SPDX-License-Identifier: MIT */
/*
 * ops_rename.c - renameat2(2) in all its forms. The checks come in the order of do_renameat2()
 * and vfs_rename() in fs/namei.c.
 */
#include "fs/ops.h"

#include <errno.h>

#include "fs/path.h"

struct rename {
	struct place from, to;
	uint64_t source, target; /* inodes; no target is 0 */
	bool exchange, noreplace, whiteout;
};

static int find_both(const struct reffs *r, struct rename *n)
{
	int rc;

	if (n->exchange && (n->noreplace || n->whiteout))
		return -EINVAL;
	if (streq(n->from.name, "."))
		return -EBUSY;
	if (streq(n->to.name, "."))
		return n->noreplace ? -EEXIST : -EBUSY;
	rc = path_name(r, n->from, &n->source);
	if (rc || !n->source)
		return rc ? rc : -ENOENT;
	return path_name(r, n->to, &n->target);
}

/* What stands between finding both and doing it. */
static int check(const struct reffs *r, const struct rename *n)
{
	const struct reffs_inode *source = inode_get(r, n->source);
	const struct reffs_inode *target = n->target ? inode_get(r, n->target) : NULL;
	bool source_dir = source->type == TREE_DIR;
	bool target_dir = target && target->type == TREE_DIR;

	if (n->noreplace && target)
		return -EEXIST;
	if (n->exchange && !target)
		return -ENOENT;
	if (source_dir && dir_is_below(r, n->to.dir, n->source))
		return -EINVAL;
	if (target_dir && dir_is_below(r, n->from.dir, n->target))
		return n->exchange ? -EINVAL : -ENOTEMPTY;
	if (!target || n->exchange || target == source)
		return 0;
	if (source_dir && !target_dir)
		return -ENOTDIR;
	if (!source_dir && target_dir)
		return -EISDIR;
	return target_dir && target->map ? -ENOTEMPTY : 0;
}

/* A character device 0:0 that hides the name in a lower layer of an overlay. */
static void leave_whiteout(struct reffs *r, struct place at)
{
	name_new(r, at.dir, at.name, inode_make(r, at.dir, TREE_CHAR, 0));
}

int64_t ref_rename(struct reffs *r, const struct op *op)
{
	uint64_t flags = op->args[2].num;
	struct rename n = {
		.exchange = flags & RENAME_W_EXCHANGE,
		.noreplace = flags & RENAME_W_NOREPLACE,
		.whiteout = flags & RENAME_W_WHITEOUT,
	};
	int from_rc = path_parent(r, op->args[0].text, &n.from);
	int rc = path_parent(r, op->args[1].text, &n.to);

	if (from_rc || rc)
		return from_rc ? from_rc : rc;
	rc = find_both(r, &n);
	if (!rc)
		rc = check(r, &n);
	if (rc || n.source == n.target)
		return rc;
	if (n.exchange) {
		name_exchange(r, n.from, n.to);
		return 0;
	}
	if (n.target)
		name_unlink(r, n.to.dir, n.to.name);
	name_move(r, n.from, n.to);
	if (n.whiteout)
		leave_whiteout(r, n.from);
	return 0;
}
