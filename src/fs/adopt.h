/* SPDX-License-Identifier: MIT */
/*
 * adopt.h - makes the reference equal to a walked tree, after a command whose effect the reference
 * cannot know.
 *
 * The file of a path keeps its inode, with all its names, if its type is the same; its changes are
 * changes of that inode. A file under a new name is a new file: a walk cannot tell whether it was
 * moved or copied.
 */
#ifndef FS_ADOPT_H
#define FS_ADOPT_H

#include "base/err.h"
#include "fs/reffs.h"

/*
 * Handles stay. Fails, and leaves a state between the two, if an entry could not be read, or the
 * content of a file was not kept.
 */
int reffs_adopt(struct reffs *r, const struct tree *seen, struct err *err) must_check;

#endif
