/* SPDX-License-Identifier: MIT */
/*
 * node.h - the parts of a state: inodes, names, pages, attributes.
 *
 * The hash of a state is the sum of the terms of its inodes. The term of an inode is the hash of
 * all that a user can see of it: type, mode, owner, size, content or target or device, attributes,
 * and the set of its names, that is the sum of the hashes of its paths. The hash of a path is made
 * from that of its directory and the last name. So two names of one file (one term with two names)
 * differ from two equal files (two terms), while inode numbers, the order of creation, and times
 * (unless the options say so) do not count: two states have the same hash iff tree_equal() is true
 * for their trees, except for a collision of 128 bits. Link counts follow from the names and are
 * not hashed.
 *
 * The cost: moving a directory moves every path below it, and each inode there gets a new term.
 * Every other operation changes the terms of at most three inodes.
 *
 * N1: an inode is in the table of a state iff its link count is not 0. An inode that is open and
 *     has no name belongs to the reffs (orphans), not to a state.
 * N2: `term` of an inode in a table is up to date, and the state's hash is the sum of all terms,
 *     except between inode_edit() and inode_commit().
 * N3: a slot without a page is a block that was written and reads as zeros; no page that is stored
 *     is all zeros. No slot lies beyond the file's size, and bytes beyond it are zeros.
 * N4: `content` of a regular file is the sum of the hashes of its pages, tree_content_hash(), and
 *     `pages` the number of its slots.
 */
#ifndef FS_NODE_H
#define FS_NODE_H

#include "base/hash.h"
#include "base/vec.h"
#include "fs/map.h"
#include "fs/reffs.h"

enum { NAME_LEN_MAX = 255 };

/* Shared bytes that never change; a NUL follows them. */
struct blob {
	uint32_t refs;
	size_t len;
	char data[];
};

struct blob *blob_new(const void *data, size_t len);
struct blob *blob_ref(struct blob *b);
void blob_unref(struct blob *b); /* NULL is fine */

/* Extended attributes in order of name; shared, never changed. NULL is the empty list. */
struct xattrs {
	uint32_t refs;
	size_t n;
	struct hash128 hash;
	struct blob *v[]; /* name, NUL, value */
};

const struct blob *xattrs_find(const struct xattrs *x, const char *name);
/* A new list with the attribute set, or with it removed if `value` is NULL. */
struct xattrs *xattrs_with(const struct xattrs *x, const char *name, const void *value, size_t len);
void xattrs_unref(struct xattrs *x);

/* A page of content; and a slot, which is a page at its place in a file. */
struct page {
	uint32_t refs;
	unsigned char data[REFFS_PAGE];
};

struct page_slot {
	struct map_node node;
	struct map_num index;
	struct hash128 hash; /* tree_page_hash() */
	struct page *page;   /* NULL: zeros (N3) */
};

struct page *page_new(void);	       /* not set */
struct page *page_ref(struct page *p); /* NULL is fine here and below */
void page_unref(struct page *p);
/* Takes ownership of the page; the caller sets the hash. */
struct page_slot *page_slot_new(uint64_t index, struct page *page);
static inline uint64_t page_slot_index(const struct page_slot *s)
{
	uint64_t n;

	memcpy(&n, s->index.b, sizeof(n));
	return be64toh(n);
}

/* A name in a directory. */
struct dirent_node {
	struct map_node node; /* bits: length of the name */
	uint64_t ino;
	char name[]; /* with a NUL */
};

struct dirent_node *dirent_node_new(const char *name, size_t len, uint64_t ino);

struct reffs_inode {
	struct map_node node;
	struct map_num key; /* the inode number */
	uint64_t ino;
	enum tree_type type;
	uint32_t mode, uid, gid;
	bool linkable; /* made by O_TMPFILE: it may get its first name */
	uint64_t nlink;
	uint64_t size;
	uint64_t rdev;
	uint64_t pages; /* for a file: N4 */
	struct tree_time atime, mtime, ctime, btime;
	uint64_t parent;	/* for a directory; the root's is itself */
	struct map_node *map;	/* names of a directory; pages of a file */
	struct blob *target;	/* for a symbolic link */
	struct xattrs *xattrs;	/* NULL: none */
	struct hash128 content; /* for a file: N4; for a link: its target's hash; else 0 */
	struct hash128 names;	/* the sum of path_hash() of its names */
	struct hash128 term;
};

/* Makes an inode with one reference and no name. */
struct reffs_inode *inode_alloc(uint64_t ino, enum tree_type type, uint32_t mode);
void inode_unref(struct reffs_inode *inode);
/* The term of an inode; with `times`, access and modification time count. */
struct hash128 inode_term(const struct reffs_inode *inode, bool times);

/* The hash of the path `name` in a directory whose own path has the hash `dir`. */
struct hash128 path_hash(struct hash128 dir, const char *name, size_t len);

#endif
