/* SPDX-License-Identifier: MIT */
/*
 * pagetree.h - the pages of a file by their index: a radix tree of 64 ways, no higher than the
 * largest index needs, so that a small file needs no node, and a sparse file of terabytes few.
 * Pages come in order of index.
 */
#ifndef FS_PAGETREE_H
#define FS_PAGETREE_H

#include "base/util.h"

struct page;
struct pagenode;

struct pagetree {
	void *root; /* a page if height is 0, else a node; NULL: empty */
	unsigned height;
	struct pagenode *leaf; /* used last, to find near pages fast */
	uint64_t leaf_index;   /* index of its first page / 64 */
};

struct page *pagetree_find(struct pagetree *t, uint64_t index);
/* Returns the first page at or behind `index`, or NULL. Needs page->index. */
struct page *pagetree_next(const struct pagetree *t, uint64_t index);
/* Inserts a page; there must be none at this index. */
void pagetree_insert(struct pagetree *t, uint64_t index, struct page *p);
/* Removes a page, which must exist. */
void pagetree_remove(struct pagetree *t, uint64_t index);

#endif
