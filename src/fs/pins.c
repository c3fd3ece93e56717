/* SPDX-License-Identifier: MIT */
/*
 * pins.c - counts how often each inode is pinned, in a hash table, and finds pinned inodes that a
 * restore changes.
 */
#include "fs/reffs_impl.h"

/* Returns the place of an inode, or its empty place; there is always an empty one. */
static size_t place_of(const struct pins *p, uint64_t ino)
{
	size_t i = (size_t)(ino * 0x9e3779b97f4a7c15u >> 20) & (p->size - 1);

	while (p->v[i].ino && p->v[i].ino != ino)
		i = (i + 1) & (p->size - 1);
	return i;
}

uint64_t pins_count(const struct pins *p, uint64_t ino)
{
	return p->n ? p->v[place_of(p, ino)].n : 0;
}

static void grow(struct pins *p)
{
	struct pins bigger = { .n = p->n, .size = p->size ? p->size * 2 : 16 };

	bigger.v = xcalloc(bigger.size, sizeof(*bigger.v));
	for (size_t i = 0; i < p->size; i++)
		if (p->v[i].ino)
			bigger.v[place_of(&bigger, p->v[i].ino)] = p->v[i];
	free(p->v);
	*p = bigger;
}

/* Empties a place, and moves the pins behind it, which would not be found across a gap. */
static void empty_place(struct pins *p, size_t i)
{
	p->v[i] = (struct pin){ 0 };
	p->n--;
	for (i = (i + 1) & (p->size - 1); p->v[i].ino; i = (i + 1) & (p->size - 1)) {
		struct pin moved = p->v[i];

		p->v[i] = (struct pin){ 0 };
		p->v[place_of(p, moved.ino)] = moved;
	}
}

uint64_t pins_add(struct pins *p, uint64_t ino, int64_t n)
{
	if (p->n * 2 >= p->size)
		grow(p);
	size_t i = place_of(p, ino);
	if (!p->v[i].ino) {
		if (n <= 0)
			return 0;
		p->v[i].ino = ino;
		p->n++;
	}
	assert(n >= 0 || p->v[i].n >= (uint64_t)-n);
	p->v[i].n += (uint64_t)n;
	uint64_t left = p->v[i].n;
	if (!left)
		empty_place(p, i);
	return left;
}

void pins_release(struct pins *p)
{
	free(p->v);
	*p = (struct pins){ 0 };
}

struct telling {
	const struct pins *pins;
	void (*changed)(void *ctx, uint64_t ino);
	void *ctx;
};

static void tell(void *ctx, const struct map_node *leaf)
{
	struct telling *t = ctx;
	uint64_t ino = container_of(leaf, struct reffs_inode, node)->ino;

	if (pins_count(t->pins, ino))
		t->changed(t->ctx, ino);
}

void vfs_restore(struct reffs *r, struct reffs_state *s, void (*changed)(void *ctx, uint64_t ino),
		 void *ctx)
{
	struct telling t = { &r->pins, changed, ctx };

	map_differ(r->cur->inodes, s->inodes, tell, &t);
	map_differ(r->orphans, NULL, tell, &t);
	reffs_restore(r, s);
}
