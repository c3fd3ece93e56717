/* SPDX-License-Identifier: MIT */
/*
 * pagetree.h - the pages of a file by their index: a radix tree of 64 ways, no higher than the
 * largest index needs, so that a small file has no node at all and a sparse one of terabytes a
 * few. Pages come in order of index.
 */
#ifndef FS_PAGETREE_H
#define FS_PAGETREE_H

#include "base/util.h"

struct page;
struct pagenode;

struct pagetree {
	void *root; /* a page if height is 0, else a node; NULL: empty */
	unsigned height;
	struct pagenode *leaf; /* used last: a near page is found at once */
	uint64_t leaf_index;   /* of its first page, divided by 64 */
};

struct page *pagetree_find(struct pagetree *t, uint64_t index);
/* The first at or behind `index`, or NULL. Needs page->index. */
struct page *pagetree_next(const struct pagetree *t, uint64_t index);
/* There must be none at this index. */
void pagetree_insert(struct pagetree *t, uint64_t index, struct page *p);
/* There must be one. */
void pagetree_remove(struct pagetree *t, uint64_t index);

#endif
