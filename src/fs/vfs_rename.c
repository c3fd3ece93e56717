/* SPDX-License-Identifier: MIT */
/*
 * vfs_rename.c - performs renameat2(2) in all its forms. The checks come in the order of
 * do_renameat2() and vfs_rename() in fs/namei.c.
 */
#include <errno.h>
#include <linux/fs.h>

#include "fs/reffs_impl.h"
#include "fs/perm.h"

struct rename {
	struct entry_place from, to;
	uint64_t source, target; /* inodes; target 0: none */
	unsigned flags;
};

/* Makes the checks between the lookup of both names and the check of permissions. */
static int check_places(const struct reffs *r, const struct rename *n)
{
	bool exchange = n->flags & RENAME_EXCHANGE;

	if (!n->source)
		return -ENOENT;
	if ((n->flags & RENAME_NOREPLACE) && n->target)
		return -EEXIST;
	if (exchange && !n->target)
		return -ENOENT;
	if (inode_get(r, n->source)->type == TREE_DIR && name_is_below(r, n->to.dir, n->source))
		return -EINVAL;
	if (n->target && inode_get(r, n->target)->type == TREE_DIR &&
	    name_is_below(r, n->from.dir, n->target))
		return exchange ? -EINVAL : -ENOTEMPTY;
	return 0;
}

/* Checks the right to move a directory: its ".." changes with its parent. */
static int may_move(const struct reffs_cred *c, const struct reffs_inode *i, const struct rename *n)
{
	if (i->type != TREE_DIR || n->from.dir == n->to.dir)
		return 0;
	return perm_check(c, i, PERM_W);
}

static int check_rights(const struct reffs *r, const struct reffs_cred *c, const struct rename *n)
{
	const struct reffs_inode *from = inode_get(r, n->from.dir), *to = inode_get(r, n->to.dir);
	const struct reffs_inode *source = inode_get(r, n->source);
	const struct reffs_inode *target = n->target ? inode_get(r, n->target) : NULL;
	bool source_dir = source->type == TREE_DIR, exchange = n->flags & RENAME_EXCHANGE;
	int rc = vfs_may_delete(r, c, from, n->source, source_dir);

	if (!rc && !target)
		rc = vfs_may_create(c, to);
	else if (!rc)
		rc = vfs_may_delete(r, c, to, n->target,
				    exchange ? target->type == TREE_DIR : source_dir);
	if (!rc)
		rc = may_move(c, source, n);
	if (!rc && exchange)
		rc = may_move(c, target, n);
	if (!rc && target && !exchange && source_dir && target->map)
		rc = -ENOTEMPTY;
	return rc;
}

/* Makes a whiteout: a character device 0:0 that hides the name in an overlay's lower layer. */
static void leave_whiteout(struct reffs *r, const struct reffs_cred *c, const struct rename *n)
{
	uint64_t for_dir = r->opts.whiteout_to ? n->to.dir : n->from.dir;
	struct reffs_cred plain = *c;

	plain.umask = 0;
	name_new(r, n->from.dir, n->from.name,
		 inode_make(r, &plain, inode_get(r, for_dir), TREE_CHAR, 0));
}

static void do_rename(struct reffs *r, const struct reffs_cred *c, const struct rename *n)
{
	if (n->flags & RENAME_EXCHANGE) {
		name_exchange(r, n->from, n->to);
		return;
	}
	if (n->target)
		name_unlink(r, n->to.dir, n->to.name);
	name_move(r, n->from, n->to);
	if (n->flags & RENAME_WHITEOUT)
		leave_whiteout(r, c, n);
}

int vfs_rename(struct reffs *r, const struct reffs_cred *c, uint64_t from_dir, const char *from,
	       uint64_t to_dir, const char *to, unsigned flags)
{
	unsigned all = RENAME_NOREPLACE | RENAME_EXCHANGE | RENAME_WHITEOUT;
	struct rename n = { { from_dir, from }, { to_dir, to }, 0, 0, flags };
	int rc;

	if ((flags & ~all) ||
	    ((flags & RENAME_EXCHANGE) && (flags & (RENAME_NOREPLACE | RENAME_WHITEOUT))))
		return -EINVAL;
	rc = vfs_may_search(r, c, from_dir);
	if (!rc)
		rc = vfs_may_search(r, c, to_dir);
	if (!rc)
		rc = vfs_find(r, c, from_dir, from, &n.source);
	if (!rc && !n.source)
		rc = -ENOENT;
	if (!rc)
		rc = vfs_find(r, c, to_dir, to, &n.target);
	if (!rc && !inode_get(r, to_dir)->nlink)
		rc = -ENOENT;
	if (!rc)
		rc = check_places(r, &n);
	if (rc || n.source == n.target) /* two names of one file: there is no effect */
		return rc;
	rc = check_rights(r, c, &n);
	if (!rc && (flags & RENAME_WHITEOUT) && !n.target)
		rc = inode_room(r);
	if (!rc)
		do_rename(r, c, &n);
	return rc;
}
