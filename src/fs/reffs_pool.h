/* SPDX-License-Identifier: MIT */
/*
 * reffs_pool.h - saved states under keys; and files of states, in which shared nodes are written
 * once.
 *
 * A file is, all numbers little-endian:
 *
 *	0    8  "OUTREFFS"
 *	8    4  version, 1
 *	12   4  flags: 1 if times count for the hash
 *	16      records; the last is of type 0
 *	end  16 XXH3-128 of all bytes before, low half first
 *
 * A record is a type of one byte and the fields of that type. Records of type 1 to 7 are nodes,
 * which are numbered from 1 in the order of the file; a record refers to nodes before it by number,
 * 0 for none, so that shared nodes are written once.
 *
 *	0  the end
 *	1  page		4096 bytes, not all zeros
 *	2  target	u32 length, bytes without NUL
 *	3  attributes	u32 count, for each u32 length, and the name, a NUL, the value
 *	4  branch	u16 bit, u32 left, u32 right: see map.h
 *	5  slot		u64 index in the file, u32 page
 *	6  entry	u64 inode, u8 length, name
 *	7  inode	u64 number, u8 type (enum tree_type), u32 mode, u32 uid, u32 gid,
 *			u64 links, u64 size, u64 device, u64 parent,
 *			4 times of i64 seconds and u32 nanoseconds (a, m, c, birth),
 *			u64 and u64 the sum of the hashes of its paths, low half first,
 *			u32 slots or entries, u32 target, u32 attributes
 *	8  state	u64 key, u32 inodes
 *
 * A file is not trusted: a state is accepted only if it has all properties of a state made by calls
 * (N1 to N4 of node.h, one way from the root to every directory).
 */
#ifndef FS_REFFS_POOL_H
#define FS_REFFS_POOL_H

#include "base/err.h"
#include "base/strbuf.h"
#include "fs/reffs.h"

struct reffs_pool {
	struct map_node *map;
	size_t n;
};

void reffs_pool_release(struct reffs_pool *p);
/* Keeps a state under a key, in place of an older one; takes a reference of its own. */
void reffs_pool_put(struct reffs_pool *p, uint64_t key, struct reffs_state *s);
/* Returns the state of a key, borrowed; or NULL. */
struct reffs_state *reffs_pool_get(const struct reffs_pool *p, uint64_t key);
void reffs_pool_drop(struct reffs_pool *p, uint64_t key); /* the key need not exist */
/* Calls back for each, in order of key; stops early at a non-zero return, and gives it. */
int reffs_pool_each(const struct reffs_pool *p,
		    int (*state)(void *ctx, uint64_t key, struct reffs_state *s), void *ctx);

enum { REFFS_PICKLE_VERSION = 1 };
#define REFFS_PICKLE_MAX ((size_t)1 << 32) /* bytes of a file that is read */

/* Writes the state of one key, or all if `key` is NULL. Returns -ENOENT if there is none. */
int reffs_pickle(const struct reffs_pool *p, const uint64_t *key, struct strbuf *out,
		 struct err *err) must_check;
int reffs_pickle_file(const struct reffs_pool *p, const uint64_t *key, const char *path,
		      struct err *err) must_check;
/*
 * Adds the states of a file to the pool, in place of those under the same keys; all or none. `r`
 * gives new inodes higher numbers than all that were read. Two reffs that load the same file can
 * give one number to different inodes: if that matters, the caller sets reffs_opts.first_ino, and
 * calls reffs_skip_inos().
 */
int reffs_load(struct reffs *r, struct reffs_pool *p, const void *data, size_t len, struct err *err)
	must_check;
int reffs_load_file(struct reffs *r, struct reffs_pool *p, const char *path, struct err *err)
	must_check;
/* Numbers new inodes from `next` on, if that is not less than the next number. */
void reffs_skip_inos(struct reffs *r, uint64_t next);

#endif
