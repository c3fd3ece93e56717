/* SPDX-License-Identifier: MIT */
/* pagecache_impl.h - shared by the files of the page cache. */
#ifndef FS_PAGECACHE_IMPL_H
#define FS_PAGECACHE_IMPL_H

#include "base/lock.h"
#include "base/vec.h"
#include "fs/pagecache.h"
#include "fs/pagetree.h"

enum block_state {
	BLOCK_ABSENT, /* not held: the durable content is valid */
	BLOCK_DIRTY,
	BLOCK_FAILED, /* held, but counts as clean */
};

struct block {
	uint64_t first, last, since_ns;
	enum block_state state;
};

/* A page that a file has holds at least one block. */
struct page {
	struct pagefile *file;
	uint64_t index;		  /* in its file */
	struct page *prev, *next; /* in order of use, if pages are evicted */
	struct page *list;	  /* a list of free pages, or of pages to free */
	struct slab *slab;
	unsigned char *data;
	uint32_t held; /* blocks */
	struct block blocks[];
};

/* A range of the durable content that reads as zeros, and is not zeroed yet. */
struct hole {
	uint64_t start, end;
	uint64_t first, last, since_ns;
};

struct holes vec_of(struct hole); /* in order, apart from each other */

/* Adds a hole; joins it with holes that it touches. */
void holes_add(struct holes *h, const struct hole *hole);
void holes_subtract(struct holes *h, uint64_t start, uint64_t end);
/* Returns the first hole that ends behind `offset`, or NULL. */
const struct hole *holes_next(const struct holes *h, uint64_t offset);

#define NO_CUT UINT64_MAX

struct pagefile {
	struct pagecache *cache;
	const struct pagefile_ops *ops;
	void *ctx;
	struct pagetree tree;
	uint64_t size, durable_size;
	/*
	 * Where a truncation cut the durable content: bytes behind read as zeros, also after the
	 * file has grown again. Less than durable_size, at most size; or NO_CUT.
	 */
	uint64_t cut;
	struct holes holes; /* all below min(cut, durable_size) */
	uint64_t dirty;	    /* blocks */
	uint64_t pages;	    /* in the tree */
	bool size_was_set;  /* a truncation or zeros set set_size; writes may have added */
	uint64_t set_size;
	uint64_t size_first, size_last, size_since_ns;
};

/* ---- pagecache.c ---- */

uint32_t pagecache_page_size(const struct pagecache *c);
/*
 * Takes a page for `index` of this file, and adds it to the tree; all blocks are absent. The call
 * may evict pages of the same file. Returns -ENOSPC if the cache is full and does not evict.
 */
int page_take(struct pagefile *f, uint64_t index, struct page **out) must_check;
/* Takes back pages that were removed from their trees, linked by `list`. */
void pagecache_free_pages(struct pagecache *c, struct page *list);
/*
 * Takes all pages of the file away; the freer thread frees them later. False: the pages are few, or
 * in the order of use, and the caller frees them one by one.
 */
bool pagefile_detach_pages(struct pagefile *f);
/* Marks a page as the last one used. */
void page_touch(struct pagecache *c, struct page *p);

/* ---- pagesync.c ---- */

/* Writes the dirty blocks of a range, and releases them. */
int pagefile_write_back(struct pagefile *f, uint64_t start, uint64_t end) must_check;
/* Writes bytes to the durable content, not through held blocks. */
int pagefile_write_below(struct pagefile *f, const struct iovec *v, int n, uint64_t offset,
			 uint64_t len) must_check;
/* Releases the blocks that are wholly inside a range, up to the end of the file. */
void pagefile_release(struct pagefile *f, uint64_t start, uint64_t end);

/* ---- small things ---- */

static inline uint64_t durable_end(const struct pagefile *f)
{
	return min(f->durable_size, f->cut);
}

static inline void block_release(struct pagefile *f, struct page *p, struct block *b)
{
	if (b->state == BLOCK_ABSENT)
		return;
	if (b->state == BLOCK_DIRTY)
		f->dirty--;
	b->state = BLOCK_ABSENT;
	p->held--;
}

/* Moves a page in which no block is held from its file to the list. */
static inline void page_settle(struct pagefile *f, struct page *p, struct page **list)
{
	if (p->held)
		return;
	pagetree_remove(&f->tree, p->index);
	f->pages--;
	p->list = *list;
	*list = p;
}

#endif
