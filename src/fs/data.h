/* SPDX-License-Identifier: MIT */
/*
 * data.h - the content of a regular file. All functions act on an inode from inode_edit(), keep N3
 * and N4 of node.h, and do not check limits, which their callers do.
 */
#ifndef FS_DATA_H
#define FS_DATA_H

#include "fs/node.h"

/* A whole page that was made ahead, with its tree_page_hash() for its place in the file. */
struct data_page {
	struct page *page; /* with no other reference */
	struct hash128 hash;
};

/* The source of written bytes: fills `len` bytes for `offset` of the file. */
struct data_source {
	void (*fill)(void *ctx, uint64_t offset, void *data, size_t len);
	/*
	 * Returns a page made ahead for this place, or NULL. The file takes that page, and leaves
	 * the replaced one in its place if it has no other reference; else NULL. The member may be
	 * NULL: no page is made ahead.
	 */
	struct data_page *(*ready)(void *ctx, uint64_t index);
	void *ctx;
};

/*
 * Writes, and extends the file if needed. Takes at most `room` new pages; returns the number of
 * bytes that were written.
 */
uint64_t data_write(struct reffs_inode *f, uint64_t offset, uint64_t len, struct data_source from,
		    uint64_t room);
void data_read(const struct reffs_inode *f, uint64_t offset, void *data, size_t len);
/* The number of pages of [from, to) that the file does not have. */
uint64_t data_missing(const struct reffs_inode *f, uint64_t from, uint64_t to);
/* Returns the begin of the next hole, or of the next data, from `offset` on; UINT64_MAX if none. */
uint64_t data_next(const struct reffs_inode *f, uint64_t offset, bool hole);
/* Makes [from, to) read as zeros; the size stays. */
void data_zero(struct reffs_inode *f, uint64_t from, uint64_t to);
void data_resize(struct reffs_inode *f, uint64_t size);
/* Copies a range, which must not overlap in one file, and extends `f` if needed. */
void data_copy(struct reffs_inode *f, uint64_t offset, const struct reffs_inode *from,
	       uint64_t from_offset, uint64_t len);
/* Shares all of `from` with the begin of `f`; below a longer `f` it must end with a whole page. */
void data_clone(struct reffs_inode *f, const struct reffs_inode *from);
/* Take [offset, offset + len) out, or insert zeros there; offset and len are whole pages. */
void data_collapse(struct reffs_inode *f, uint64_t offset, uint64_t len);
void data_insert(struct reffs_inode *f, uint64_t offset, uint64_t len);

#endif
