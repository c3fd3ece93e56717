/* SPDX-License-Identifier: MIT */
/*
 * pagetree.c - finds, inserts and removes pages in the radix tree. Each node has at least one
 * child.
 */
#include "fs/pagetree.h"

enum { BITS = 6, WAYS = 1 << BITS, HEIGHT_MAX = 10 };

struct pagenode {
	uint64_t used; /* a bit for each slot that is not NULL */
	void *slot[WAYS];
};

static bool covers(unsigned height, uint64_t index)
{
	return !(index >> (BITS * height));
}

static unsigned slot_of(uint64_t index, unsigned height)
{
	return (unsigned)(index >> (BITS * (height - 1))) & (WAYS - 1);
}

static void leaf_keep(struct pagetree *t, struct pagenode *leaf, uint64_t index)
{
	t->leaf = leaf;
	t->leaf_index = index >> BITS;
}

struct page *pagetree_find(struct pagetree *t, uint64_t index)
{
	if (t->leaf && index >> BITS == t->leaf_index)
		return t->leaf->slot[index & (WAYS - 1)];
	if (!t->root || !covers(t->height, index))
		return NULL;
	void *at = t->root;
	for (unsigned h = t->height; h; h--) {
		struct pagenode *n = at;

		if (h == 1)
			leaf_keep(t, n, index);
		at = n->slot[slot_of(index, h)];
		if (!at)
			return NULL;
	}
	return at;
}

/* `index` counts from the first page that is below `at`. */
static struct page *next_below(void *at, unsigned height, uint64_t index)
{
	if (!height)
		return at;
	const struct pagenode *n = at;
	unsigned first = slot_of(index, height);
	uint64_t rest = index & ((UINT64_C(1) << (BITS * (height - 1))) - 1);
	for (uint64_t left = n->used & (UINT64_MAX << first); left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctzll(left);
		struct page *p = next_below(n->slot[i], height - 1, i == first ? rest : 0);

		if (p)
			return p;
	}
	return NULL;
}

struct page *pagetree_next(const struct pagetree *t, uint64_t index)
{
	if (t->leaf && index >> BITS == t->leaf_index) {
		uint64_t left = t->leaf->used & (UINT64_MAX << (index & (WAYS - 1)));

		if (left)
			return t->leaf->slot[__builtin_ctzll(left)];
	}
	if (!t->root || !covers(t->height, index))
		return NULL;
	return next_below(t->root, t->height, index);
}

static struct pagenode *node_with(unsigned slot, void *child)
{
	struct pagenode *n = xcalloc(1, sizeof(*n));

	n->slot[slot] = child;
	n->used = UINT64_C(1) << slot;
	return n;
}

static void grow(struct pagetree *t, uint64_t index)
{
	while (!covers(t->height, index)) {
		if (t->root)
			t->root = node_with(0, t->root);
		t->height++;
	}
}

void pagetree_insert(struct pagetree *t, uint64_t index, struct page *p)
{
	void **at = &t->root;

	grow(t, index);
	assert(t->height <= HEIGHT_MAX);
	for (unsigned h = t->height; h; h--) {
		if (!*at)
			*at = xcalloc(1, sizeof(struct pagenode));
		struct pagenode *n = *at;
		unsigned i = slot_of(index, h);

		if (h == 1)
			leaf_keep(t, n, index);
		n->used |= UINT64_C(1) << i;
		at = &n->slot[i];
	}
	assert(!*at);
	*at = p;
}

void pagetree_remove(struct pagetree *t, uint64_t index)
{
	void **path[HEIGHT_MAX + 1] = { &t->root };

	for (unsigned h = t->height, d = 0; h; h--, d++)
		path[d + 1] = &((struct pagenode *)*path[d])->slot[slot_of(index, h)];
	assert(*path[t->height]);
	*path[t->height] = NULL;
	for (unsigned d = t->height; d > 0; d--) {
		struct pagenode *n = *path[d - 1];

		n->used &= ~(UINT64_C(1) << slot_of(index, t->height - d + 1));
		if (n->used)
			return;
		if (n == t->leaf)
			t->leaf = NULL;
		free(n);
		*path[d - 1] = NULL;
	}
	t->height = 0; /* the tree is empty */
}
