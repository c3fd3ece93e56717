/* SPDX-License-Identifier: MIT */
/*
 * block.c - the cache of blocks and the bitmap.
 *
 * A block that some durable state may reach is not given out again before the release has been
 * committed (I3): its bit is cleared, and B_FREED keeps it away from block_alloc().
 */
#include "seedfs.h"

#include <errno.h>

static unsigned char *buffer(struct fs *fs, uint32_t block)
{
	if (!fs->buf[block]) {
		fs->buf[block] = aligned_alloc(BLOCK_BYTES, BLOCK_BYTES);
		if (!fs->buf[block])
			abort();
	}
	return fs->buf[block];
}

unsigned char *block_get(struct fs *fs, uint32_t block)
{
	if (block == 0 || block >= fs->sb.n_blocks)
		return NULL;
	if (!fs->buf[block] && disk_read(fs->disk, block, buffer(fs, block)) < 0) {
		free(fs->buf[block]);
		fs->buf[block] = NULL;
	}
	return fs->buf[block];
}

unsigned char *block_new(struct fs *fs, uint32_t block)
{
	assert(block >= fs->sb.data && block < fs->sb.n_blocks);
	return memset(buffer(fs, block), 0, BLOCK_BYTES);
}

void block_meta(struct fs *fs, uint32_t block)
{
	/* On a damaged disk a block may be of two kinds; then metadata it is. */
	fs->state[block] &= (uint8_t)~B_DATA;
	if (!(fs->state[block] & B_META))
		fs->n_meta++;
	fs->state[block] |= B_META | B_LOG;
}

static unsigned char *bitmap(struct fs *fs, uint32_t block)
{
	return block_get(fs, fs->sb.bitmap + block / (8 * BLOCK_BYTES));
}

bool block_used(struct fs *fs, uint32_t block)
{
	const unsigned char *bits = bitmap(fs, block);

	/* A bitmap that cannot be read gives nothing away. */
	return !bits || bits[block / 8 % BLOCK_BYTES] >> (block % 8) & 1;
}

void block_mark(struct fs *fs, uint32_t block, bool used)
{
	unsigned char *bits = bitmap(fs, block);
	unsigned char bit = (unsigned char)(1 << block % 8);

	if (!bits || block_used(fs, block) == used)
		return;
	bits[block / 8 % BLOCK_BYTES] ^= bit;
	block_meta(fs, fs->sb.bitmap + block / (8 * BLOCK_BYTES));
}

int block_alloc(struct fs *fs, uint32_t *out)
{
	for (uint32_t b = fs->sb.data; b < fs->sb.n_blocks; b++) {
		if (block_used(fs, b))
			continue;
		if (fs->state[b] & B_FREED) {
			if (!bug(BUG_REUSE_EARLY))
				continue;
			fs->n_freed--;
		}
		block_mark(fs, b, true);
		fs->state[b] = B_FRESH;
		block_new(fs, b);
		*out = b;
		return 0;
	}
	return -ENOSPC;
}

void block_free(struct fs *fs, uint32_t block)
{
	uint8_t state = fs->state[block];

	block_mark(fs, block, false);
	if (state & B_META)
		fs->n_meta--;
	fs->state[block] = 0;
	if (state & B_FRESH)
		return;
	/* Its copies in the journal must not be written over what comes to lie here. */
	if (state & B_JOURNALED && !bug(BUG_NO_REVOKE))
		vec_push(&fs->revoked, block);
	fs->state[block] = B_FREED;
	fs->n_freed++;
}

uint32_t block_count_free(struct fs *fs, bool and_freed)
{
	uint32_t n = 0;

	for (uint32_t b = fs->sb.data; b < fs->sb.n_blocks; b++)
		n += !block_used(fs, b) && (and_freed || !(fs->state[b] & B_FREED));
	return n;
}
