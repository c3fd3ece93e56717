/* SPDX-License-Identifier: MIT */
/* data.c - reads, writes, moves and shares the pages of a file. */
#include "fs/data.h"

enum { PAGE = REFFS_PAGE };
_Static_assert((int)REFFS_PAGE == (int)TREE_PAGE, "the content hash is a sum over pages");

static struct page_slot *as_slot(const struct map_node *leaf)
{
	return container_of(leaf, struct page_slot, node);
}

static const struct page_slot *slot_find(const struct reffs_inode *f, uint64_t index)
{
	struct map_num key = map_num(index);
	const struct map_node *leaf = map_find(f->map, key.b, sizeof(key));

	return leaf ? as_slot(leaf) : NULL;
}

/* Returns the first page with this or a higher index, or NULL. */
static const struct page_slot *slot_from(const struct reffs_inode *f, uint64_t index)
{
	struct map_num key = map_num(index);
	const struct map_node *leaf = map_ceil(f->map, key.b, sizeof(key));

	return leaf ? as_slot(leaf) : NULL;
}

static void slot_remove(struct reffs_inode *f, const struct page_slot *s)
{
	struct map_num key = s->index;

	f->content = hash_sub(f->content, s->hash);
	f->pages--;
	map_remove(&f->map, key.b, sizeof(key));
}

static void slot_add(struct reffs_inode *f, uint64_t index, struct page *page, struct hash128 hash)
{
	struct page_slot *s = page_slot_new(index, page);

	s->hash = hash;
	f->content = hash_add(f->content, hash);
	f->pages++;
	map_insert(&f->map, &s->node);
}

/* Makes the slot's page its own: copies a shared page. */
static void own_page(struct page_slot *s)
{
	struct page *old = s->page;

	if (old && old->refs == 1)
		return;
	s->page = page_new();
	if (old)
		memcpy(s->page->data, old->data, PAGE);
	else
		memset(s->page->data, 0, PAGE);
	page_unref(old);
}

/* Returns a page for changing, made of zeros if there is none; slot_commit() must follow. */
static struct page_slot *slot_edit(struct reffs_inode *f, uint64_t index)
{
	struct map_num key = map_num(index);

	struct map_node *leaf = map_try_own(&f->map, key.b, sizeof(key));
	if (!leaf) {
		slot_add(f, index, NULL, (struct hash128){ 0 });
		leaf = map_own(&f->map, key.b, sizeof(key));
	}
	struct page_slot *s = as_slot(leaf);
	f->content = hash_sub(f->content, s->hash);
	own_page(s);
	return s;
}

static void slot_commit(struct reffs_inode *f, struct page_slot *s)
{
	s->hash = tree_page_hash(page_slot_index(s), s->page->data, PAGE);
	f->content = hash_add(f->content, s->hash);
	if (hash_eq(s->hash, (struct hash128){ 0 })) { /* all zeros (N3) */
		page_unref(s->page);
		s->page = NULL;
	}
}

/* Puts a shared page into a slot, which must not exist yet. */
static void slot_share(struct reffs_inode *f, uint64_t index, struct page *page)
{
	struct hash128 hash = { 0 };

	if (page)
		hash = tree_page_hash(index, page->data, PAGE);
	slot_add(f, index, page_ref(page), hash);
}

/* Returns a page that has lost its place if it can be used again; else NULL. */
static struct page *leave_page(struct page *old)
{
	if (old && old->refs == 1)
		return old;
	page_unref(old);
	return NULL;
}

/* Puts a page that was made ahead into its place; `ready` gets the replaced page, for reuse. */
static void slot_exchange(struct reffs_inode *f, uint64_t index, struct data_page *ready)
{
	struct map_num key = map_num(index);
	struct map_node *leaf = map_try_own(&f->map, key.b, sizeof(key));
	bool zeros = hash_eq(ready->hash, (struct hash128){ 0 }); /* N3 */

	if (!leaf) {
		slot_add(f, index, zeros ? NULL : steal(ready->page), ready->hash);
		return;
	}
	struct page_slot *s = as_slot(leaf);
	struct page *old = s->page;
	f->content = hash_add(hash_sub(f->content, s->hash), ready->hash);
	s->hash = ready->hash;
	if (zeros) {
		s->page = NULL;
		page_unref(old);
		return;
	}
	s->page = ready->page;
	ready->page = leave_page(old);
}

uint64_t data_write(struct reffs_inode *f, uint64_t offset, uint64_t len, struct data_source from,
		    uint64_t room)
{
	uint64_t done = 0, most = f->pages + room;

	assert(f->type == TREE_FILE);
	while (done < len) {
		uint64_t at = offset + done;
		size_t in = at % PAGE, n = (size_t)min(len - done, (uint64_t)(PAGE - in));

		if (f->pages >= most && !slot_find(f, at / PAGE))
			break;
		done += n;
		struct data_page *ready = n == PAGE && from.ready ? from.ready(from.ctx, at / PAGE)
								  : NULL;
		if (ready) {
			slot_exchange(f, at / PAGE, ready);
			continue;
		}
		struct page_slot *s = slot_edit(f, at / PAGE);
		from.fill(from.ctx, at, s->page->data + in, n);
		slot_commit(f, s);
	}
	if (done)
		f->size = max(f->size, offset + done);
	return done;
}

void data_read(const struct reffs_inode *f, uint64_t offset, void *data, size_t len)
{
	for (size_t done = 0; done < len;) {
		uint64_t at = offset + done;
		size_t in = at % PAGE, n = min(len - done, PAGE - in);
		const struct page_slot *s = slot_find(f, at / PAGE);

		if (s && s->page)
			memcpy((char *)data + done, s->page->data + in, n);
		else
			memset((char *)data + done, 0, n);
		done += n;
	}
}

uint64_t data_missing(const struct reffs_inode *f, uint64_t from, uint64_t to)
{
	uint64_t first = from / PAGE, end = (to + PAGE - 1) / PAGE, missing = end - first;

	for (const struct page_slot *s = slot_from(f, first); s && page_slot_index(s) < end;
	     s = slot_from(f, page_slot_index(s) + 1))
		missing--;
	return missing;
}

uint64_t data_next(const struct reffs_inode *f, uint64_t offset, bool hole)
{
	uint64_t index = offset / PAGE;
	const struct page_slot *s = slot_from(f, index);

	if (!hole) {
		if (!s)
			return UINT64_MAX;
		return max(offset, page_slot_index(s) * PAGE);
	}
	while (s && page_slot_index(s) == index)
		s = slot_from(f, ++index);
	return max(offset, index * PAGE);
}

void data_zero(struct reffs_inode *f, uint64_t from, uint64_t to)
{
	const struct page_slot *s;

	assert(f->type == TREE_FILE);
	for (uint64_t at = from; at < to; at = (at / PAGE + 1) * PAGE) {
		s = slot_from(f, at / PAGE);
		if (!s || page_slot_index(s) * PAGE >= to)
			return;
		at = max(at, page_slot_index(s) * PAGE);
		size_t in = at % PAGE, n = (size_t)min(to - at, (uint64_t)(PAGE - in));
		if (n == PAGE) {
			slot_remove(f, s);
			continue;
		}
		if (!s->page)
			continue;
		struct page_slot *own = slot_edit(f, at / PAGE);
		memset(own->page->data + in, 0, n);
		slot_commit(f, own);
	}
}

void data_resize(struct reffs_inode *f, uint64_t size)
{
	if (size == 0) {
		map_unref(f->map);
		f->map = NULL;
		f->content = (struct hash128){ 0 };
		f->pages = 0;
	} else if (size < f->size) {
		/* To the end of the last page, so that it is removed as a whole. */
		data_zero(f, size, (f->size + PAGE - 1) / PAGE * PAGE);
	}
	f->size = size;
}

/* Copies a whole page; a hole becomes a hole. */
static void copy_page(struct reffs_inode *f, uint64_t to, const struct reffs_inode *from,
		      uint64_t from_index)
{
	const struct page_slot *old = slot_find(f, to), *s = slot_find(from, from_index);
	struct map_num key = map_num(to);

	if (!s) {
		if (old)
			slot_remove(f, old);
		return;
	}
	struct page *page = page_ref(s->page);
	struct hash128 hash = s->hash; /* the hash depends on the place */
	if (page && to != from_index)
		hash = tree_page_hash(to, page->data, PAGE);
	if (!old) {
		slot_add(f, to, page, hash);
		return;
	}
	struct page_slot *own = as_slot(map_own(&f->map, key.b, sizeof(key)));
	f->content = hash_add(hash_sub(f->content, own->hash), hash);
	page_unref(own->page);
	own->page = page;
	own->hash = hash;
}

void data_copy(struct reffs_inode *f, uint64_t offset, const struct reffs_inode *from,
	       uint64_t from_offset, uint64_t len)
{
	assert(f->type == TREE_FILE && from->type == TREE_FILE);
	for (uint64_t done = 0; done < len;) {
		uint64_t to_at = offset + done, from_at = from_offset + done;
		size_t to_in = to_at % PAGE, from_in = from_at % PAGE;
		size_t n = (size_t)min(len - done, (uint64_t)(PAGE - max(to_in, from_in)));

		done += n;
		if (n == PAGE) {
			copy_page(f, to_at / PAGE, from, from_at / PAGE);
			continue;
		}
		const struct page_slot *s = slot_find(from, from_at / PAGE);
		if (!s || !s->page) {
			data_zero(f, to_at, to_at + n);
			continue;
		}
		struct page_slot *own = slot_edit(f, to_at / PAGE);
		/* If both files are one, slot_edit() may have replaced the page of `s`. */
		s = slot_find(from, from_at / PAGE);
		memcpy(own->page->data + to_in, s->page->data + from_in, n);
		slot_commit(f, own);
	}
	if (len)
		f->size = max(f->size, offset + len);
}

static int share_page(void *ctx, const struct map_node *leaf)
{
	const struct page_slot *s = as_slot(leaf);

	slot_share(ctx, page_slot_index(s), s->page);
	return 0;
}

void data_clone(struct reffs_inode *f, const struct reffs_inode *from)
{
	if (f->size > from->size) {
		assert(from->size % PAGE == 0);
		data_zero(f, 0, from->size);
		map_each(from->map, share_page, f);
		return;
	}
	map_ref(from->map);
	map_unref(f->map);
	f->map = from->map;
	f->content = from->content;
	f->pages = from->pages;
	f->size = from->size;
}

struct shift {
	struct reffs_inode *f;
	uint64_t from;	   /* the first page that moves */
	uint64_t up, down; /* by so many pages */
};

static int shift_page(void *ctx, const struct map_node *leaf)
{
	const struct shift *shift = ctx;
	const struct page_slot *s = as_slot(leaf);
	uint64_t index = page_slot_index(s);

	slot_share(shift->f, index < shift->from ? index : index + shift->up - shift->down,
		   s->page);
	return 0;
}

static void shift_pages(struct reffs_inode *f, struct shift shift)
{
	struct map_node *old = f->map;

	shift.f = f;
	f->map = NULL;
	f->content = (struct hash128){ 0 };
	f->pages = 0;
	map_each(old, shift_page, &shift);
	map_unref(old);
	f->size += shift.up * PAGE;
	f->size -= shift.down * PAGE;
}

void data_collapse(struct reffs_inode *f, uint64_t offset, uint64_t len)
{
	assert(offset % PAGE == 0 && len % PAGE == 0);
	data_zero(f, offset, offset + len);
	shift_pages(f, (struct shift){ .from = (offset + len) / PAGE, .down = len / PAGE });
}

void data_insert(struct reffs_inode *f, uint64_t offset, uint64_t len)
{
	assert(offset % PAGE == 0 && len % PAGE == 0);
	shift_pages(f, (struct shift){ .from = offset / PAGE, .up = len / PAGE });
}
