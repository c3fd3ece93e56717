/* SPDX-License-Identifier: MIT */
/*
 * map.c - the crit-bit tree behind map.h; nodes are copied when a version that shares them changes.
 */
#include "fs/map.h"

struct branch {
	struct map_node node;
	struct map_node *child[2];
};

_Thread_local struct map_stats map_stats;

void *map_node_alloc(size_t size, const struct map_kind *kind, size_t bits)
{
	struct map_node *n = xmalloc(size);

	assert(bits <= UINT16_MAX);
	*n = (struct map_node){ .kind = kind, .refs = 1, .bits = (uint16_t)bits };
	map_stats.made++;
	return n;
}

void map_node_free(void *node)
{
	map_stats.freed++;
	free(node);
}

static struct branch *as_branch(const struct map_node *n)
{
	assert(n && !n->kind);
	return (struct branch *)(uintptr_t)n;
}

static const unsigned char *key_of(const struct map_node *leaf)
{
	return (const unsigned char *)leaf + leaf->kind->key_at;
}

static unsigned bit_of(const unsigned char *key, size_t len, unsigned bit)
{
	size_t byte = bit >> 3;

	return byte < len ? key[byte] >> (7 - (bit & 7)) & 1u : 0;
}

static bool has_key(const struct map_node *leaf, const void *key, size_t len)
{
	return leaf->bits == len && memcmp(key_of(leaf), key, len) == 0;
}

/* The first bit in which two keys differ, or -1 if they are the same. */
static int first_difference(const unsigned char *a, size_t a_len, const unsigned char *b,
			    size_t b_len)
{
	for (size_t i = 0; i < max(a_len, b_len); i++) {
		unsigned d = (i < a_len ? a[i] : 0u) ^ (i < b_len ? b[i] : 0u);

		if (d)
			return (int)(i * 8) + __builtin_clz(d) - 24;
	}
	return -1;
}

void map_unref(struct map_node *n)
{
	if (!n)
		return;
	assert(n->refs > 0);
	if (--n->refs)
		return;
	if (n->kind) {
		n->kind->free(n);
		return;
	}
	map_unref(as_branch(n)->child[0]);
	map_unref(as_branch(n)->child[1]);
	map_node_free(n);
}

/* Returns the leaf where a search for `key` ends, the only one that can have this key. */
static const struct map_node *nearest(const struct map_node *n, const unsigned char *key,
				      size_t len)
{
	while (!n->kind)
		n = as_branch(n)->child[bit_of(key, len, n->bits)];
	return n;
}

const struct map_node *map_find(const struct map_node *root, const void *key, size_t len)
{
	if (!root)
		return NULL;
	const struct map_node *leaf = nearest(root, key, len);
	return has_key(leaf, key, len) ? leaf : NULL;
}

const struct map_node *map_ceil(const struct map_node *root, const void *key, size_t len)
{
	const struct map_node *n = root, *above = NULL; /* all keys of `above` are greater */

	if (!root)
		return NULL;
	const struct map_node *leaf = nearest(root, key, len);
	int bit = first_difference(key_of(leaf), leaf->bits, key, len);
	if (bit < 0)
		return leaf;
	while (!n->kind && n->bits < bit) {
		unsigned side = bit_of(key, len, n->bits);

		if (!side)
			above = as_branch(n)->child[1];
		n = as_branch(n)->child[side];
	}
	/* All keys below `n` agree up to `bit`, in which they differ from `key`. */
	if (bit_of(key, len, (unsigned)bit))
		n = above;
	while (n && !n->kind)
		n = as_branch(n)->child[0];
	return n;
}

/* Copies the node in `slot` if it is shared (M1); the nodes above must not be shared. */
static struct map_node *own(struct map_node **slot)
{
	struct map_node *n = *slot;

	assert(n); /* a branch has two children */
	if (n->refs == 1)
		return n;
	if (n->kind) {
		*slot = n->kind->copy(n);
	} else {
		struct branch *copy = map_node_alloc(sizeof(*copy), NULL, n->bits);

		copy->child[0] = map_ref(as_branch(n)->child[0]);
		copy->child[1] = map_ref(as_branch(n)->child[1]);
		*slot = &copy->node;
	}
	n->refs--;
	return *slot;
}

struct map_node *map_try_own(struct map_node **root, const void *key, size_t len)
{
	struct map_node **slot = root;

	if (!*root)
		return NULL;
	while (!(*slot)->kind) {
		struct map_node *n = own(slot);

		slot = &as_branch(n)->child[bit_of(key, len, n->bits)];
	}
	return has_key(*slot, key, len) ? own(slot) : NULL;
}

struct map_node *map_own(struct map_node **root, const void *key, size_t len)
{
	struct map_node *leaf = map_try_own(root, key, len);

	assert(leaf);
	return leaf;
}

void map_insert(struct map_node **root, struct map_node *leaf)
{
	const unsigned char *key = key_of(leaf);
	size_t len = leaf->bits;
	struct map_node **slot = root;

	if (!*root) {
		*root = leaf;
		return;
	}
	const struct map_node *near = nearest(*root, key, len);
	int bit = first_difference(key_of(near), near->bits, key, len);
	assert(bit >= 0);
	while (!(*slot)->kind && (*slot)->bits < bit) {
		struct map_node *n = own(slot);

		slot = &as_branch(n)->child[bit_of(key, len, n->bits)];
	}
	struct branch *b = map_node_alloc(sizeof(*b), NULL, (size_t)bit);
	unsigned side = bit_of(key, len, (unsigned)bit);
	b->child[side] = leaf;
	b->child[!side] = *slot;
	*slot = &b->node;
}

void map_remove(struct map_node **root, const void *key, size_t len)
{
	struct map_node **slot = root;

	assert(map_find(*root, key, len));
	if ((*root)->kind) {
		map_unref(*root);
		*root = NULL;
		return;
	}
	for (;;) {
		struct branch *b = as_branch(*slot);
		unsigned side = bit_of(key, len, b->node.bits);

		if (b->child[side]->kind) { /* the leaf; its neighbour replaces the branch */
			struct map_node *stays = map_ref(b->child[!side]);

			map_unref(&b->node);
			*slot = stays;
			return;
		}
		b = as_branch(own(slot));
		slot = &b->child[side];
	}
}

int map_each(const struct map_node *root, int (*leaf)(void *ctx, const struct map_node *leaf),
	     void *ctx)
{
	if (!root)
		return 0;
	if (root->kind)
		return leaf(ctx, root);
	int rc = map_each(as_branch(root)->child[0], leaf, ctx);
	return rc ? rc : map_each(as_branch(root)->child[1], leaf, ctx);
}

static void report_all(const struct map_node *n,
		       void (*leaf)(void *ctx, const struct map_node *leaf), void *ctx)
{
	if (!n)
		return;
	if (n->kind) {
		leaf(ctx, n);
		return;
	}
	report_all(as_branch(n)->child[0], leaf, ctx);
	report_all(as_branch(n)->child[1], leaf, ctx);
}

void map_differ(const struct map_node *a, const struct map_node *b,
		void (*leaf)(void *ctx, const struct map_node *leaf), void *ctx)
{
	if (a == b)
		return;
	if (!a || !b || (a->kind && b->kind)) {
		report_all(a, leaf, ctx);
		report_all(b, leaf, ctx);
		return;
	}
	/* The node that branches first; the whole other one belongs to one side of it. */
	const struct map_node *first = b->kind || (!a->kind && a->bits <= b->bits) ? a : b;
	const struct map_node *other = first == a ? b : a, *some = other;
	struct map_node *const *child = as_branch(first)->child;
	if (!other->kind && other->bits == first->bits) {
		map_differ(child[0], as_branch(other)->child[0], leaf, ctx);
		map_differ(child[1], as_branch(other)->child[1], leaf, ctx);
		return;
	}
	while (!some->kind)
		some = as_branch(some)->child[0];
	unsigned side = bit_of(key_of(some), some->bits, first->bits);
	map_differ(child[side], other, leaf, ctx);
	report_all(child[!side], leaf, ctx);
}

bool map_children(const struct map_node *n, const struct map_node *child[2])
{
	if (n->kind)
		return false;
	child[0] = as_branch(n)->child[0];
	child[1] = as_branch(n)->child[1];
	return true;
}

struct map_node *map_join(struct map_node *left, const struct map_node *left_leaf,
			  struct map_node *right, const struct map_node *right_leaf, unsigned bit)
{
	const unsigned char *a = key_of(left_leaf), *b = key_of(right_leaf);

	if (first_difference(a, left_leaf->bits, b, right_leaf->bits) != (int)bit ||
	    bit_of(a, left_leaf->bits, bit))
		return NULL;
	if ((!left->kind && left->bits <= bit) || (!right->kind && right->bits <= bit))
		return NULL;
	struct branch *n = map_node_alloc(sizeof(*n), NULL, bit);
	n->child[0] = left;
	n->child[1] = right;
	return &n->node;
}
