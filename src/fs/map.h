/* SPDX-License-Identifier: MIT */
/*
 * map.h - a persistent sorted map: many versions of it share all they have in common.
 *
 * The map is a crit-bit tree: a branch names the first bit in which the keys below it differ, a
 * leaf holds key and value. Its shape depends on the keys alone, needs no balancing, and a change
 * makes new nodes only between the root and one leaf. Keys are bytes, as if zeros followed for
 * ever: names (which hold no NUL), or numbers, most significant byte first. Leaves come in the
 * order of memcmp().
 *
 * M1: a node with more than one reference never changes. One with a single reference, reached
 *     from a root through nodes with a single reference, is its owner's and changes in place.
 * M2: a map is a pointer to its root, which counts as a reference; NULL is the empty map.
 *
 * Reference counts are not atomic: versions that share nodes belong to one thread.
 */
#ifndef FS_MAP_H
#define FS_MAP_H

#include <endian.h>

#include "base/util.h"

struct map_node;

/* The facts that the map has to know of its leaves. */
struct map_kind {
	size_t key_at; /* where in the leaf its key is */
	struct map_node *(*copy)(const struct map_node *leaf);
	void (*free)(struct map_node *leaf);
};

struct map_node {
	const struct map_kind *kind; /* NULL: a branch */
	uint32_t refs;
	uint16_t bits; /* of a branch: the bit that differs; of a leaf: bytes of its key */
};

/* A number as a key. */
struct map_num {
	unsigned char b[8];
};

static inline struct map_num map_num(uint64_t n)
{
	struct map_num key;

	n = htobe64(n);
	memcpy(key.b, &n, sizeof(n));
	return key;
}

static inline struct map_node *map_ref(struct map_node *n)
{
	if (n)
		n->refs++;
	return n;
}

void map_unref(struct map_node *n); /* NULL is fine */

/* The leaf, or NULL. */
const struct map_node *map_find(const struct map_node *root, const void *key, size_t len);
/* The first leaf whose key is not less, or NULL. */
const struct map_node *map_ceil(const struct map_node *root, const void *key, size_t len);
/* The leaf for changing, or NULL: it and the way to it are the map's own (M1). */
struct map_node *map_try_own(struct map_node **root, const void *key, size_t len);
/* The same of a leaf that must be there. */
struct map_node *map_own(struct map_node **root, const void *key, size_t len);
/* Adds a leaf whose key is not there yet; the map takes over the caller's reference. */
void map_insert(struct map_node **root, struct map_node *leaf);
/* Removes a leaf that is there. */
void map_remove(struct map_node **root, const void *key, size_t len);
/* Calls back for each leaf in order; stops early at a non-zero return, and gives it. */
int map_each(const struct map_node *root, int (*leaf)(void *ctx, const struct map_node *leaf),
	     void *ctx);

/*
 * Calls back for each leaf of one map that is not the same leaf in the other, of both. Shared parts
 * cost nothing; for maps with little in common, some leaves that are the same may come, too.
 */
void map_differ(const struct map_node *a, const struct map_node *b,
		void (*leaf)(void *ctx, const struct map_node *leaf), void *ctx);

/* For code that writes maps down and builds them again. */
bool map_children(const struct map_node *n, const struct map_node *child[2]); /* false: a leaf */
/*
 * A branch above two maps, which it takes over; a leaf of each says how its keys begin. NULL, and
 * nothing is taken, if that would be no map: the keys must differ first at `bit`.
 */
struct map_node *map_join(struct map_node *left, const struct map_node *left_leaf,
			  struct map_node *right, const struct map_node *right_leaf, unsigned bit);

/* How many nodes (leaves, branches) this thread made and freed; for tests of sharing. */
struct map_stats {
	uint64_t made, freed;
};
extern _Thread_local struct map_stats map_stats;

/* A new node with one reference, for code that makes leaves; the rest is not set. */
void *map_node_alloc(size_t size, const struct map_kind *kind, size_t bits);
void map_node_free(void *node);

#endif
