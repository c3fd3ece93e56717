/* SPDX-License-Identifier: MIT */
/*
 * differences.c - the table of declared differences, and whether one of them excuses what was seen.
 */
#include "explore/differences.h"

#include <errno.h>

/* Errors with which any file system may refuse, whatever others do. */
static const struct {
	int error;
	unsigned flags; /* for operations with one of these flags; 0: for any */
	const char *reason;
} refusals[] = {
	{ ENOSPC, 0, "how much room there is depends on the layout of each file system" },
	{ EDQUOT, 0, "the same, where it is counted per user" },
	{ EOPNOTSUPP, OP_OPTIONAL, "not every file system can do everything" },
	{ ENOTTY, OP_SHARES, "an ioctl that it does not know" },
	{ ENOSYS, OP_OPTIONAL, "a call that it does not know" },
	{ EXDEV, OP_SHARES | OP_COPIES, "a copy that it cannot do by itself" },
	{ EMLINK, OP_LINKS, "each has its own limit of links" },
	{ EFBIG, OP_DATA, "each has its own largest file" },
	{ E2BIG, OP_XATTR, "each has its own room for attributes" },
};

#define DIRECT_IO                                                                                  \
	{                                                                                          \
		.kind = DIFFER_RESULT, .op = OP_DEF(dwrite), .error = EINVAL,                      \
		.reason = "alignment of direct I/O is the device's business",                      \
	}
#define RANGES                                                                                     \
	{                                                                                          \
		.kind = DIFFER_RESULT, .op = OP_DEF(falloc), .error = EINVAL,                      \
		.reason = "ranges are moved in units of its own",                                  \
	}
#define EXT                                                                                        \
	{ .kind = DIFFER_NO_REFLINK, .reason = "it cannot share data between files" },             \
		{ .kind = DIFFER_ROOM,                                                             \
		  .bytes = 256 << 10,                                                              \
		  .reason = "directories do not shrink, and the root stays" },                     \
		DIRECT_IO, RANGES

static const struct differences known[] = {
	{ "ext4", { EXT } },
	{ "ext3", { EXT } },
	{ "ext2",
	  { EXT,
	    { .kind = DIFFER_SAVE,
	      .reason = "it has no journal: only an unmounted ext2 is whole" } } },
	{ "xfs",
	  { { .kind = DIFFER_ROOM,
	      .bytes = 1 << 20,
	      .reason = "inodes are freed by the chunk, and some room stays reserved" },
	    { .kind = DIFFER_WHITEOUT,
	      .reason = "a whiteout gets its group from the directory that the file went to" },
	    { .kind = DIFFER_CAN,
	      .op = OP_DEF(falloc),
	      .error = EOPNOTSUPP,
	      .reason = "it shares data between files, and can undo that by unshare" },
	    DIRECT_IO,
	    RANGES } },
	{ "btrfs",
	  { { .kind = DIFFER_DIR_NLINK, .reason = "every directory has one link" },
	    { .kind = DIFFER_ROOM,
	      .bytes = 24 << 20,
	      .reason = "room is given to data or metadata by the chunk" },
	    DIRECT_IO,
	    RANGES } },
	{ "fuse",
	  { { .kind = DIFFER_DIR_NLINK, .reason = "servers may say 1 for every directory" },
	    { .kind = DIFFER_NO_REFLINK, .reason = "FUSE cannot share data between files" },
	    { .kind = DIFFER_RESULT,
	      .op = OP_DEF(rename),
	      .error = EINVAL,
	      .flags = RENAME_W_WHITEOUT,
	      .reason = "few servers know whiteouts, and the kernel says EINVAL for them" },
	    { .kind = DIFFER_RESULT,
	      .error = ENOSYS,
	      .reason = "a server need not have every call" },
	    { .kind = DIFFER_ROOM, .bytes = 1 << 20, .reason = "a server may keep what it grew" },
	    { .kind = DIFFER_SAVE,
	      .reason = "syncfs does not reach a FUSE server: it is unmounted to be saved" },
	    DIRECT_IO,
	    RANGES } },
	{ NULL, { { 0 } } },
};

const struct differences *differences_of(const char *target)
{
	const struct differences *d = known;

	while (d->fs && !streq(d->fs, target))
		d++;
	return d;
}

const struct difference *differences_find(const struct differences *d, enum difference_kind kind)
{
	for (const struct difference *x = d->list; x->reason; x++)
		if (x->kind == kind)
			return x;
	return NULL;
}

static bool has_flags(const struct difference *x, const struct op *op)
{
	size_t n = op_count_args(op->def);

	return !x->flags || (n && op->args[n - 1].num & x->flags);
}

/* Words that not every file system knows make an operation one that it need not know. */
static bool has_rare_words(const struct op *op)
{
	for (size_t i = 0; op->def->args[i].kind != ARG_END; i++)
		if (op->args[i].num & op->def->args[i].rare)
			return true;
	return false;
}

static bool may_refuse(unsigned flags, const struct op *op)
{
	return !flags || op->def->flags & flags || (flags & OP_OPTIONAL && has_rare_words(op));
}

/* A path that leads nowhere is found out before a file system is asked for anything. */
static bool comes_first(int64_t result)
{
	return result == -ENOENT || result == -ENOTDIR || result == -ELOOP || result == -EBADF;
}

const char *differences_excuse(const struct differences *d, const struct op *op, int64_t result,
			       int64_t other)
{
	if (result >= 0)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(refusals) && !comes_first(other); i++)
		if (refusals[i].error == -result && may_refuse(refusals[i].flags, op))
			return refusals[i].reason;
	for (const struct difference *x = d->list; x->reason; x++)
		if (x->kind == DIFFER_RESULT && x->error == -result &&
		    (!x->op || x->op == op->def) && has_flags(x, op))
			return x->reason;
	return NULL;
}

bool differences_part(const struct differences *a, const struct differences *b, const struct op *op)
{
	return op_words(op, rename_words) & RENAME_W_WHITEOUT &&
	       !differences_find(a, DIFFER_WHITEOUT) != !differences_find(b, DIFFER_WHITEOUT);
}

bool differences_can_more(const struct differences *d, const struct op *op, int64_t reference)
{
	for (const struct difference *x = d->list; x->reason; x++)
		if (x->kind == DIFFER_CAN && x->error == -reference && x->op == op->def)
			return true;
	return false;
}

bool differences_same_failure(const struct op *op, int64_t a, int64_t b)
{
	bool removes = op->def->flags & OP_REMOVES_DIR;

	/* rename(3p), rmdir(3p): a directory that is not empty gives either of them. */
	return a == b ||
	       (removes && (a == -EEXIST || a == -ENOTEMPTY) && (b == -EEXIST || b == -ENOTEMPTY));
}

void differences_reffs(const struct differences *d, struct reffs_opts *out)
{
	*out = (struct reffs_opts){ .no_reflink = differences_find(d, DIFFER_NO_REFLINK) != NULL,
				    .whiteout_to = differences_find(d, DIFFER_WHITEOUT) != NULL };
}
