/* SPDX-License-Identifier: MIT */
/*
 * data.h - the content of a regular file. All of them act on an inode from inode_edit(), keep
 * N3 and N4 of node.h, and do nothing about limits, which were checked before.
 */
#ifndef FS_DATA_H
#define FS_DATA_H

#include "fs/node.h"

/* A whole page that was made ahead, with its tree_page_hash() for the place where it goes. */
struct data_page {
	struct page *page; /* with no other reference */
	struct hash128 hash;
};

/* Where what is written comes from: fills `len` bytes that go to `offset` of the file. */
struct data_source {
	void (*fill)(void *ctx, uint64_t offset, void *data, size_t len);
	/*
	 * The page for this place if there is one. The file takes the page, and leaves the one that
	 * it had there instead if that has no other reference; else NULL. As a member NULL: there
	 * are none.
	 */
	struct data_page *(*ready)(void *ctx, uint64_t index);
	void *ctx;
};

/*
 * Writes, and extends the file if it ends before. Takes at most `room` pages that the file did not
 * have; how much was written is returned.
 */
uint64_t data_write(struct reffs_inode *f, uint64_t offset, uint64_t len, struct data_source from,
		    uint64_t room);
void data_read(const struct reffs_inode *f, uint64_t offset, void *data, size_t len);
/* How many pages of [from, to) the file does not have. */
uint64_t data_missing(const struct reffs_inode *f, uint64_t from, uint64_t to);
/* Where the next hole, or the next data begins, from `offset` on; UINT64_MAX if there is none. */
uint64_t data_next(const struct reffs_inode *f, uint64_t offset, bool hole);
/* Makes [from, to) read as zeros; the size stays. */
void data_zero(struct reffs_inode *f, uint64_t from, uint64_t to);
void data_resize(struct reffs_inode *f, uint64_t size);
/* Copies a range, which must not overlap in one file, and extends `f` if it ends before. */
void data_copy(struct reffs_inode *f, uint64_t offset, const struct reffs_inode *from,
	       uint64_t from_offset, uint64_t len);
/* All of `from` replaces as much of `f`; pages that `f` keeps must be whole. */
void data_clone(struct reffs_inode *f, const struct reffs_inode *from);
/* Takes [offset, offset + len) out, or puts zeros in there; both are whole pages. */
void data_collapse(struct reffs_inode *f, uint64_t offset, uint64_t len);
void data_insert(struct reffs_inode *f, uint64_t offset, uint64_t len);

#endif
