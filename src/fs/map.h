/* SPDX-License-Identifier: MIT */
/*
 * map.h - a persistent sorted map: versions of a map share the nodes in which they do not differ.
 *
 * The map is a crit-bit tree: a branch names the first bit in which the keys below it differ, a
 * leaf holds key and value. Its shape depends on the keys alone, needs no balancing, and a change
 * makes new nodes only between the root and one leaf. Keys are bytes, as if zeros followed without
 * end: names (which have no NUL), or numbers, most significant byte first. Leaves come in the order
 * of memcmp().
 *
 * M1: a node with more than one reference never changes. A node with a single reference, reached
 *     from a root through nodes with a single reference, belongs to one map and changes in place.
 * M2: a map is a pointer to its root, which counts as a reference; NULL is the empty map.
 *
 * Reference counts are not atomic: versions that share nodes belong to one thread.
 */
#ifndef FS_MAP_H
#define FS_MAP_H

#include <endian.h>

#include "base/util.h"

struct map_node;

/* The facts about leaves that the map needs. */
struct map_kind {
	size_t key_at; /* the offset of the key in the leaf */
	struct map_node *(*copy)(const struct map_node *leaf);
	void (*free)(struct map_node *leaf);
};

struct map_node {
	const struct map_kind *kind; /* NULL: a branch */
	uint32_t refs;
	uint16_t bits; /* for a branch, the bit that differs; for a leaf, bytes of its key */
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

/* Returns the leaf, or NULL. */
const struct map_node *map_find(const struct map_node *root, const void *key, size_t len);
/* Returns the first leaf whose key is not less, or NULL. */
const struct map_node *map_ceil(const struct map_node *root, const void *key, size_t len);
/* Returns the leaf for changing, or NULL; copies shared nodes on the way (M1). */
struct map_node *map_try_own(struct map_node **root, const void *key, size_t len);
/* Returns the leaf for changing; it must be there. */
struct map_node *map_own(struct map_node **root, const void *key, size_t len);
/* Adds a leaf whose key is not there yet; the map takes the caller's reference. */
void map_insert(struct map_node **root, struct map_node *leaf);
/* Removes a leaf that is there. */
void map_remove(struct map_node **root, const void *key, size_t len);
/* Calls back for each leaf in order; stops early at a non-zero return, and gives it. */
int map_each(const struct map_node *root, int (*leaf)(void *ctx, const struct map_node *leaf),
	     void *ctx);

/*
 * Calls back for each leaf of either map that is not the same leaf in the other. Shared parts cost
 * no time; for maps with little in common, the calls may include some leaves of both.
 */
void map_differ(const struct map_node *a, const struct map_node *b,
		void (*leaf)(void *ctx, const struct map_node *leaf), void *ctx);

/* For code that writes maps to a file and builds them again. */
bool map_children(const struct map_node *n, const struct map_node *child[2]); /* false: a leaf */
/*
 * Makes a branch above two maps, whose references it takes; a leaf of each shows the begin of its
 * keys. Returns NULL, and takes nothing, if that is no valid map: the keys must differ first at
 * `bit`.
 */
struct map_node *map_join(struct map_node *left, const struct map_node *left_leaf,
			  struct map_node *right, const struct map_node *right_leaf, unsigned bit);

/* The number of nodes (leaves, branches) that this thread made and freed; for tests of sharing. */
struct map_stats {
	uint64_t made, freed;
};
extern _Thread_local struct map_stats map_stats;

/* Makes a node with one reference, for code that makes leaves; other members are not set. */
void *map_node_alloc(size_t size, const struct map_kind *kind, size_t bits);
void map_node_free(void *node);

#endif
