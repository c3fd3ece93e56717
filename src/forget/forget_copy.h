/* SPDX-License-Identifier: MIT */
/* forget_copy.h - a copy of a tree, sharing blocks where the file system can. */
#ifndef FORGET_FORGET_COPY_H
#define FORGET_FORGET_COPY_H

#include "forget/forget_impl.h"

/*
 * Copies what is in the directory `from` into `to`, but for `skip` in it. `places`, made for `to`,
 * tells afterwards where in the copy each inode of the original is.
 */
int forget_copy_tree(int from, int to, const char *skip, struct recover_places *places) must_check;
/* One thing more, beside the tree: hard links to what is in it are links in the copy, too. */
int forget_copy_one(int from, int to, const char *name, struct recover_places *places) must_check;

#endif
