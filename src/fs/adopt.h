/* SPDX-License-Identifier: MIT */
/*
 * adopt.h - makes the reference equal to what a walk found, where it cannot know what was done: a
 * command was run.
 *
 * A path's file stays the same inode if its type did, and with it the names it shares; its changes
 * are changes of that inode. A file under a new name is a new file: whether it was moved there or
 * copied, a walk cannot tell.
 */
#ifndef FS_ADOPT_H
#define FS_ADOPT_H

#include "base/err.h"
#include "fs/reffs.h"

/*
 * Handles stay. Fails, and leaves the state between both, for what could not be read, or is a file
 * whose content was not kept.
 */
int reffs_adopt(struct reffs *r, const struct tree *seen, struct err *err) must_check;

#endif
