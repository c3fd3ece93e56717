/* SPDX-License-Identifier: MIT */
/* data.c - what files hold. New data goes to new blocks, or behind the end. */
#include <errno.h>

#include "pmfs.h"

static uint64_t at_block(uint32_t block, uint64_t off)
{
	return (uint64_t)block * BLOCK + off % BLOCK;
}

static uint32_t blocks(uint64_t bytes)
{
	return (uint32_t)((bytes + BLOCK - 1) / BLOCK);
}

void file_read(struct pmfs *fs, uint32_t ino, unsigned char *out)
{
	const struct node *n = &fs->node[ino];

	memset(out, 0, n->size);
	for (uint64_t off = 0; off < n->size; off += BLOCK)
		if (n->map[off / BLOCK])
			pm_load(&fs->m, at_block(n->map[off / BLOCK], 0), out + off,
				min((uint64_t)BLOCK, n->size - off));
}

/* I2: behind the end, in its block, there are zeros. */
static void zero_tail(struct pmfs *fs, uint32_t ino, uint64_t size)
{
	static const unsigned char zeros[BLOCK];
	uint32_t block = size % BLOCK ? fs->node[ino].map[size / BLOCK] : 0;

	if (!block)
		return;
	pm_copy_nt(&fs->m, at_block(block, size), zeros, BLOCK - size % BLOCK);
	pm_fence(&fs->m);
}

/* The log says it, then the inode. */
static int commit_entry(struct pmfs *fs, uint32_t ino, struct entry *e, bool flush)
{
	struct change c = { .fs = fs };
	int rc = change_log(&c, ino, e);

	if (rc)
		return rc;
	inode_write(fs, ino, &c.to[0], flush);
	return 0;
}

/* ---- writing ---- */

static bool fits_behind_end(const struct node *n, uint64_t off, uint64_t len)
{
	return off == n->size && off % BLOCK && off % BLOCK + len <= BLOCK && n->map[off / BLOCK];
}

static int append_in_place(struct pmfs *fs, uint32_t ino, const void *data, uint64_t len)
{
	struct node *n = &fs->node[ino];
	struct entry e = { .type = ENTRY_SIZE, .lines = 1, .size = n->size + len };
	uint64_t at = at_block(n->map[n->size / BLOCK], n->size);
	bool early = has_bug(fs, BUG_SIZE_FIRST);
	int rc = 0;

	for (int i = 0; i < 2 && !rc; i++)
		if (early ? i : !i) {
			pm_copy_nt(&fs->m, at, data, len);
			pm_fence(&fs->m);
		} else {
			rc = commit_entry(fs, ino, &e, !has_bug(fs, BUG_TAIL_NOFLUSH));
		}
	if (!rc)
		index_apply(n, &e);
	return rc;
}

static bool is_all_there(const struct node *n, uint64_t off, uint64_t len)
{
	for (uint64_t b = off / BLOCK; b <= (off + len - 1) / BLOCK; b++)
		if (!n->map[b])
			return false;
	return off + len <= n->size;
}

static void overwrite_in_place(struct pmfs *fs, const struct node *n, uint64_t off,
			       const unsigned char *data, uint64_t len)
{
	for (uint64_t part; len; off += part, data += part, len -= part) {
		part = min(len, BLOCK - off % BLOCK);
		pm_copy_nt(&fs->m, at_block(n->map[off / BLOCK], off), data, part);
	}
	pm_fence(&fs->m);
}

/* The new blocks: what was there, and over it what is new. */
static void fill_blocks(struct pmfs *fs, uint32_t ino, const struct entry *e, uint64_t off,
			const void *data, uint64_t len, bool cached)
{
	struct node *n = &fs->node[ino];
	auto_free unsigned char *old = xcalloc(1, FILE_BLOCKS * BLOCK);
	uint64_t start = (uint64_t)e->from * BLOCK, end = start + (uint64_t)e->n * BLOCK;
	uint64_t fill = min(end, max(n->size, off + len)) - start;
	uint64_t at = at_block(e->block, 0);

	file_read(fs, ino, old);
	memcpy(old + off, data, len);
	if (cached) {
		pm_store(&fs->m, at, old + start, fill);
		if (!has_bug(fs, BUG_SYMLINK_CACHED))
			pm_flush(&fs->m, at, fill);
	} else {
		pm_copy_nt(&fs->m, at, old + start, fill);
	}
	pm_fence(&fs->m);
}

static int write_new_blocks(struct pmfs *fs, uint32_t ino, uint64_t off, const void *data,
			    uint64_t len, bool cached)
{
	struct node *n = &fs->node[ino];
	struct entry e = { .type = ENTRY_WRITE, .lines = 1 };
	uint32_t was[FILE_BLOCKS];

	e.from = (uint32_t)(off / BLOCK);
	e.n = blocks(off + len) - e.from;
	e.size = max(n->size, off + len);
	e.block = block_alloc(fs, e.n);
	if (!e.block)
		return -ENOSPC;
	if (off > n->size)
		zero_tail(fs, ino, n->size);
	fill_blocks(fs, ino, &e, off, data, len, cached);
	int rc = commit_entry(fs, ino, &e, cached || !has_bug(fs, BUG_TAIL_NOFLUSH));

	memcpy(was, n->map, sizeof(was));
	for (uint32_t i = 0; i < e.n; i++) {
		uint32_t gone = rc ? e.block + i : was[e.from + i];

		if (gone)
			fs->in_use[gone] = false;
	}
	if (!rc)
		index_apply(n, &e);
	return rc;
}

int file_write(struct pmfs *fs, uint32_t ino, uint64_t off, const void *data, uint64_t len,
	       bool cached)
{
	struct node *n = &fs->node[ino];

	if (off > FILE_BLOCKS * BLOCK || len > FILE_BLOCKS * BLOCK - off)
		return -EFBIG;
	if (!len)
		return 0;
	if (fits_behind_end(n, off, len))
		return append_in_place(fs, ino, data, len);
	if (has_bug(fs, BUG_WRITE_INPLACE) && is_all_there(n, off, len)) {
		overwrite_in_place(fs, n, off, data, len);
		return 0;
	}
	return write_new_blocks(fs, ino, off, data, len, cached);
}

static int find_file(struct pmfs *fs, const char *path, uint32_t *ino)
{
	int rc = path_find(fs, path, ino);

	if (!rc && fs->node[*ino].in.type != INODE_FILE)
		rc = fs->node[*ino].in.type == INODE_DIR ? -EISDIR : -EINVAL;
	return rc;
}

/* Data that tells which operation wrote it where. */
static int write_pattern(struct pmfs *fs, uint32_t ino, uint64_t off, uint64_t len)
{
	if (len > FILE_BLOCKS * BLOCK)
		return -EFBIG;
	auto_free unsigned char *data = xcalloc(1, len + 1);

	for (uint64_t i = 0; i < len; i++)
		data[i] = (unsigned char)('!' + (fs->salt * 37 + off + i) % 89);
	return file_write(fs, ino, off, data, len, false);
}

int pmfs_write(struct pmfs *fs, const char *path, uint64_t off, uint64_t len)
{
	uint32_t ino;
	int rc = find_file(fs, path, &ino);

	return rc ? rc : write_pattern(fs, ino, off, len);
}

int pmfs_append(struct pmfs *fs, const char *path, uint64_t len)
{
	uint32_t ino;
	int rc = find_file(fs, path, &ino);

	return rc ? rc : write_pattern(fs, ino, fs->node[ino].size, len);
}

/* ---- truncate ---- */

static int set_size(struct pmfs *fs, uint32_t ino, uint64_t size)
{
	struct entry e = { .type = ENTRY_SIZE, .lines = 1, .size = size };
	int rc = commit_entry(fs, ino, &e, true);

	if (!rc)
		index_apply(&fs->node[ino], &e);
	return rc;
}

int file_truncate(struct pmfs *fs, uint32_t ino, uint64_t size, struct err *err)
{
	struct node *n = &fs->node[ino];
	uint32_t was[FILE_BLOCKS];
	int rc;

	memcpy(was, n->map, sizeof(was));
	rc = set_size(fs, ino, size);
	for (uint32_t i = blocks(size); i < FILE_BLOCKS && !rc; i++)
		if (was[i])
			rc = block_free(fs, was[i], err);
	return rc;
}

void truncate_finish(struct pmfs *fs, uint32_t ino)
{
	zero_tail(fs, ino, fs->node[ino].size);
	pm_store8(&fs->m, BLOCK_TRUNCATE * BLOCK, 0);
	if (!has_bug(fs, BUG_TRUNC_STALE))
		pm_persist(&fs->m, BLOCK_TRUNCATE * BLOCK, 8);
}

/* I4. The size is durable before the inode makes it count. */
static void truncate_begin(struct pmfs *fs, uint32_t ino, uint64_t size)
{
	for (int i = 1; i >= 0; i--) {
		pm_store8(&fs->m, BLOCK_TRUNCATE * BLOCK + (uint64_t)i * 8, i ? size : ino);
		pm_persist(&fs->m, BLOCK_TRUNCATE * BLOCK, 16);
	}
}

int pmfs_truncate(struct pmfs *fs, const char *path, uint64_t size)
{
	struct err err = ERR_INIT;
	uint32_t ino;
	int rc = find_file(fs, path, &ino);

	if (!rc && size > FILE_BLOCKS * BLOCK)
		rc = -EFBIG;
	if (rc || size == fs->node[ino].size)
		return rc;
	if (size > fs->node[ino].size) {
		zero_tail(fs, ino, fs->node[ino].size);
		return set_size(fs, ino, size);
	}
	if (has_bug(fs, BUG_TRUNCATE_ZERO_FIRST))
		zero_tail(fs, ino, size);
	truncate_begin(fs, ino, size);
	rc = file_truncate(fs, ino, size, &err);
	truncate_finish(fs, ino);
	return rc;
}

/* ---- fallocate ---- */

static int zero_blocks(struct pmfs *fs, struct entry *e)
{
	static const unsigned char zeros[BLOCK];

	e->block = block_alloc(fs, e->n);
	if (!e->block)
		return -ENOSPC;
	for (uint32_t i = 0; i < e->n; i++)
		pm_copy_nt(&fs->m, at_block(e->block + i, 0), zeros, BLOCK);
	return 0;
}

/* Live, only holes are filled; the bug is that the log says otherwise. */
static void index_holes(struct pmfs *fs, struct node *n, const struct entry *e)
{
	n->size = e->size;
	for (uint32_t i = 0; i < e->n; i++)
		if (n->map[e->from + i])
			fs->in_use[e->block + i] = false;
		else
			n->map[e->from + i] = e->block + i;
}

/* The next run of blocks, from e->from on, that an entry is for; e->n 0: none. */
static void next_holes(const struct pmfs *fs, const struct node *n, uint32_t to, struct entry *e)
{
	bool all = has_bug(fs, BUG_FALLOC_REPLAY);

	while (e->from < to && n->map[e->from] && !all)
		e->from++;
	e->n = 0;
	while (e->from + e->n < to && (!n->map[e->from + e->n] || all))
		e->n++;
}

static int fill_holes(struct pmfs *fs, uint32_t ino, uint32_t from, uint32_t to, uint64_t size)
{
	struct node *n = &fs->node[ino];
	struct entry e = { .type = ENTRY_WRITE, .lines = 1, .from = from, .size = size };
	struct vec_of(struct entry) done = { 0 };
	struct change c = { .fs = fs };
	int rc = 0;

	for (next_holes(fs, n, to, &e); e.n && !rc; next_holes(fs, n, to, &e)) {
		rc = zero_blocks(fs, &e);
		if (!rc)
			vec_push(&done, e);
		e.from += e.n;
	}
	pm_fence(&fs->m);
	for (size_t i = 0; i < done.n && !rc; i++)
		rc = change_log(&c, ino, &done.v[i]);
	if (!rc && !done.n)
		rc = change_log(&c, ino,
				&(struct entry){ .type = ENTRY_SIZE, .lines = 1, .size = size });
	if (!rc)
		change_commit(&c);
	for (size_t i = 0; i < done.n; i++)
		for (uint32_t j = 0; rc && j < done.v[i].n; j++)
			fs->in_use[done.v[i].block + j] = false;
	for (size_t i = 0; i < done.n && !rc; i++)
		index_holes(fs, n, &done.v[i]);
	if (!rc)
		n->size = size;
	vec_release(&done);
	return rc;
}

int pmfs_falloc(struct pmfs *fs, const char *path, bool keep, uint64_t off, uint64_t len)
{
	uint32_t ino;
	int rc = find_file(fs, path, &ino);

	if (rc)
		return rc;
	if (!len)
		return -EINVAL;
	if (off > FILE_BLOCKS * BLOCK || len > FILE_BLOCKS * BLOCK - off)
		return -EFBIG;
	uint64_t was = fs->node[ino].size, size = keep ? was : max(was, off + len);

	if (size > was)
		zero_tail(fs, ino, was);
	return fill_holes(fs, ino, (uint32_t)(off / BLOCK), blocks(off + len), size);
}
