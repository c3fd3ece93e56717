/* SPDX-License-Identifier: MIT */
/*
 * inode.c - the inodes of the current state, and those without a name.
 *
 * R1: the current state changes in place only while it has no other holder; else a new one takes
 *     its place first. So a state that was saved never changes.
 * R2: an orphan has link count 0 and is pinned.
 */
#include "fs/reffs_impl.h"

#include <errno.h>

static const struct reffs_inode *as_inode(const struct map_node *leaf)
{
	return leaf ? container_of(leaf, struct reffs_inode, node) : NULL;
}

static const struct reffs_inode *find_in(const struct map_node *table, uint64_t ino)
{
	struct map_num key = map_num(ino);

	return as_inode(map_find(table, key.b, sizeof(key)));
}

const struct reffs_inode *reffs_inode(const struct reffs_state *s, uint64_t ino)
{
	return find_in(s->inodes, ino);
}

void inode_forget(struct reffs *r)
{
	r->found->now++;
}

const struct reffs_inode *inode_find(const struct reffs *r, uint64_t ino)
{
	struct found_inodes *f = r->found;
	size_t slot = ino % ARRAY_SIZE(f->v);

	/* An operation walks a path more than once, each time from the root. */
	if (f->v[slot].ino == ino && f->v[slot].when == f->now)
		return f->v[slot].inode;
	const struct reffs_inode *i = find_in(r->cur->inodes, ino);
	if (!i && r->orphans)
		i = find_in(r->orphans, ino);
	f->v[slot].ino = ino;
	f->v[slot].when = f->now;
	f->v[slot].inode = i;
	return i;
}

const struct reffs_inode *inode_get(const struct reffs *r, uint64_t ino)
{
	const struct reffs_inode *i = inode_find(r, ino);

	assert(i);
	return i;
}

/* Keeps R1 before the current state is changed. */
static void own_state(struct reffs *r)
{
	struct reffs_state *s = r->cur;

	if (s->refs == 1)
		return;
	r->cur = xmalloc(sizeof(*r->cur));
	*r->cur = *s;
	r->cur->refs = 1;
	map_ref(s->inodes);
	s->refs--;
}

struct reffs_inode *inode_own(struct reffs *r, uint64_t ino)
{
	struct map_num key = map_num(ino);
	struct map_node **table = &r->orphans;

	inode_forget(r);
	if (!r->orphans || !find_in(r->orphans, ino)) {
		own_state(r);
		table = &r->cur->inodes;
	}
	struct map_node *leaf = map_own(table, key.b, sizeof(key));
	return container_of(leaf, struct reffs_inode, node);
}

/* Subtract an inode's term from the sums of its state, or of the orphans; and add it. */
static void count_out(struct reffs *r, const struct reffs_inode *i)
{
	if (i->nlink) {
		r->cur->hash = hash_sub(r->cur->hash, i->term);
		r->cur->pages -= i->pages;
	} else {
		r->orphan_pages -= i->pages;
	}
}

static void count_in(struct reffs *r, struct reffs_inode *i)
{
	if (i->nlink) {
		i->term = inode_term(i, r->opts.times);
		r->cur->hash = hash_add(r->cur->hash, i->term);
		r->cur->pages += i->pages;
	} else {
		r->orphan_pages += i->pages;
	}
}

struct reffs_inode *inode_edit(struct reffs *r, uint64_t ino)
{
	struct reffs_inode *i = inode_own(r, ino);

	count_out(r, i);
	return i;
}

void inode_commit(struct reffs *r, struct reffs_inode *inode)
{
	count_in(r, inode);
}

void inode_touch(struct reffs *r, struct reffs_inode *inode, unsigned times)
{
	bool counts = r->opts.times && inode->nlink && (times & (TOUCH_ATIME | TOUCH_MTIME));

	if (counts)
		count_out(r, inode);
	if (times & TOUCH_ATIME)
		inode->atime = r->now;
	if (times & TOUCH_MTIME)
		inode->mtime = r->now;
	if (times & TOUCH_CTIME)
		inode->ctime = r->now;
	if (counts)
		count_in(r, inode);
}

/* ---- limits ---- */

int inode_room(const struct reffs *r)
{
	if (!r->opts.inodes_max || r->cur->n_inodes + r->n_orphans < r->opts.inodes_max)
		return 0;
	return r->opts.full_error;
}

uint64_t page_room(const struct reffs *r)
{
	uint64_t used = r->cur->pages + r->orphan_pages;

	if (!r->opts.pages_max)
		return UINT64_MAX / 2;
	return r->opts.pages_max > used ? r->opts.pages_max - used : 0;
}

/* ---- in and out of the table ---- */

void inode_add(struct reffs *r, struct reffs_inode *inode)
{
	assert(inode->nlink);
	inode_forget(r);
	own_state(r);
	map_insert(&r->cur->inodes, &inode->node);
	r->cur->n_inodes++;
	count_in(r, inode);
}

void inode_remove(struct reffs *r, struct reffs_inode *inode)
{
	struct map_num key = inode->key; /* the last reference may free the inode */

	assert(!inode->nlink);
	inode_forget(r);
	r->cur->n_inodes--;
	if (pins_count(&r->pins, inode->ino)) {
		map_ref(&inode->node);
		map_remove(&r->cur->inodes, key.b, sizeof(key));
		inode_add_orphan(r, inode);
	} else {
		map_remove(&r->cur->inodes, key.b, sizeof(key));
	}
}

void inode_add_orphan(struct reffs *r, struct reffs_inode *inode)
{
	assert(!inode->nlink);
	inode_forget(r);
	map_insert(&r->orphans, &inode->node);
	r->n_orphans++;
	r->orphan_pages += inode->pages;
}

struct reffs_inode *inode_take_orphan(struct reffs *r, uint64_t ino)
{
	struct map_num key = map_num(ino);
	inode_forget(r);
	struct map_node *leaf = map_ref(map_own(&r->orphans, key.b, sizeof(key)));
	struct reffs_inode *i = container_of(leaf, struct reffs_inode, node);

	map_remove(&r->orphans, key.b, sizeof(key));
	r->n_orphans--;
	r->orphan_pages -= i->pages;
	return i;
}

void inode_drop_orphans(struct reffs *r)
{
	inode_forget(r);
	map_unref(r->orphans);
	r->orphans = NULL;
	r->n_orphans = r->orphan_pages = 0;
}

/* ---- pins ---- */

void vfs_pin(struct reffs *r, uint64_t ino, uint64_t n)
{
	pins_add(&r->pins, ino, (int64_t)n);
}

void vfs_unpin(struct reffs *r, uint64_t ino, uint64_t n)
{
	if (pins_add(&r->pins, ino, -(int64_t)n))
		return;
	if (r->orphans && find_in(r->orphans, ino))
		inode_unref(inode_take_orphan(r, ino));
}
