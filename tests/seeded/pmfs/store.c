/* SPDX-License-Identifier: MIT */
/* store.c - what is persistent: inodes and their replicas, logs, the journal, blocks. */
#include <errno.h>

#include "base/hash.h"
#include "pmfs.h"

uint64_t inode_sum(const struct inode *in)
{
	return hash64(in, offsetof(struct inode, sum));
}

uint64_t super_sum(const struct super *s)
{
	return hash64(s, offsetof(struct super, inodes));
}

/* ---- blocks ---- */

uint32_t block_alloc(struct pmfs *fs, uint32_t n)
{
	uint32_t run = 0;

	for (uint32_t b = BLOCK_FIRST; b < POOL_BLOCKS; b++) {
		run = fs->in_use[b] ? 0 : run + 1;
		if (run < n)
			continue;
		for (uint32_t i = 0; i < n; i++)
			fs->in_use[b - i] = true;
		return b - n + 1;
	}
	return 0;
}

int block_free(struct pmfs *fs, uint32_t block, struct err *err)
{
	if (!fs->has_free_list)
		return err_set(err, -EUCLEAN, "block %u is freed without a free list", block);
	if (!fs->in_use[block])
		return err_set(err, -EUCLEAN, "free block %u is freed again", block);
	fs->in_use[block] = false;
	return 0;
}

/* ---- inodes ---- */

/* Only words that differ are stored. */
static void store_words(struct pm *m, uint64_t at, const void *data, size_t from, size_t to)
{
	uint64_t word, there;

	for (size_t i = from; i < to; i += 8) {
		memcpy(&word, (const char *)data + i, 8);
		pm_load(m, at + i, &there, 8);
		if (word != there)
			pm_store8(m, at + i, word);
	}
}

/* The bug: all fields, then all checksums. */
static void write_sums_late(struct pmfs *fs, const uint64_t at[2], const struct inode *to)
{
	size_t sum = offsetof(struct inode, sum);

	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < 2; i++) {
			store_words(&fs->m, at[i], to, pass ? sum : 0, pass ? sizeof(*to) : sum);
			pm_flush(&fs->m, at[i], sizeof(*to));
		}
		pm_fence(&fs->m);
	}
}

/* I1. */
static void write_copies(struct pmfs *fs, uint32_t ino, const struct inode *to, bool flush,
			 bool replica)
{
	uint64_t at[2] = { BLOCK_INODES * BLOCK + ino * sizeof(*to),
			   BLOCK_REPLICAS * BLOCK + ino * sizeof(*to) };

	if (has_bug(fs, BUG_CSUM_LATE)) {
		write_sums_late(fs, at, to);
		return;
	}
	for (int i = 0; i < (replica ? 2 : 1); i++) {
		store_words(&fs->m, at[i], to, 0, sizeof(*to));
		if (flush)
			pm_flush(&fs->m, at[i], sizeof(*to));
		if (i || !has_bug(fs, BUG_REPLICA_TOGETHER))
			pm_fence(&fs->m);
	}
}

static void write_inode(struct pmfs *fs, uint32_t ino, const struct inode *to, bool flush,
			bool replica)
{
	struct inode in = *to;

	in.sum = inode_sum(&in);
	write_copies(fs, ino, &in, flush, replica);
	fs->node[ino].in = in;
}

void inode_write(struct pmfs *fs, uint32_t ino, const struct inode *to, bool flush)
{
	write_inode(fs, ino, to, flush, true);
}

/* ---- changes ---- */

struct inode *change_inode(struct change *c, uint32_t ino)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->ino[i] == ino)
			return &c->to[i];
	assert(c->n < JOURNAL_MAX);
	c->ino[c->n] = ino;
	c->to[c->n] = c->fs->node[ino].in;
	return &c->to[c->n++];
}

static void put_records(struct change *c)
{
	struct pm *m = &c->fs->m;

	for (size_t i = 0; i < c->n; i++) {
		struct record r = { .ino = c->ino[i], .inode = c->to[i] };
		uint64_t at = BLOCK_JOURNAL * BLOCK + PM_LINE_SIZE + i * RECORD_SIZE;

		r.inode.sum = inode_sum(&r.inode);
		pm_store(m, at, &r, sizeof(r));
		pm_flush(m, at, sizeof(r));
	}
}

void put_journal_clear(struct pmfs *fs)
{
	pm_store8(&fs->m, BLOCK_JOURNAL * BLOCK, 0);
	pm_persist(&fs->m, BLOCK_JOURNAL * BLOCK, 8);
}

/* I3. */
void change_commit(struct change *c)
{
	struct pmfs *fs = c->fs;

	if (c->n == 1) {
		inode_write(fs, c->ino[0], &c->to[0], true);
		return;
	}
	put_records(c);
	if (!has_bug(fs, BUG_JOURNAL_FLAG_FIRST))
		pm_fence(&fs->m);
	pm_store8(&fs->m, BLOCK_JOURNAL * BLOCK, c->n);
	pm_persist(&fs->m, BLOCK_JOURNAL * BLOCK, 8);
	for (size_t i = 0; i < c->n; i++)
		write_inode(fs, c->ino[i], &c->to[i], true, !has_bug(fs, BUG_REPLICA_STALE));
	put_journal_clear(fs);
}

/* ---- logs ---- */

static int add_log_block(struct change *c, struct inode *in)
{
	struct pmfs *fs = c->fs;
	struct log_head head = { .magic = LOG_MAGIC };
	uint32_t block = block_alloc(fs, 1);
	uint64_t at = (uint64_t)block * BLOCK;

	if (!block)
		return -ENOSPC;
	pm_store(&fs->m, at, &head, sizeof(head));
	if (!has_bug(fs, BUG_LOG_LINK))
		pm_persist(&fs->m, at, sizeof(head));
	if (in->head) {
		uint64_t link = in->tail - BLOCK + offsetof(struct log_head, next);

		pm_store8(&fs->m, link, block);
		pm_persist(&fs->m, link, 8);
	} else {
		in->head = at;
	}
	in->tail = at + LOG_HEAD;
	return 0;
}

static void put_entry(struct pmfs *fs, uint64_t at, const struct entry *e)
{
	size_t len = (size_t)e->lines * ENTRY;
	bool dir = e->type == ENTRY_ADD || e->type == ENTRY_DEL;

	pm_store(&fs->m, at, e, len);
	if (dir && has_bug(fs, BUG_ENTRY_NOFLUSH))
		return;
	pm_flush(&fs->m, at, has_bug(fs, BUG_NAME_LINE) ? ENTRY : len);
	if (!has_bug(fs, BUG_ENTRY_NOFENCE))
		pm_fence(&fs->m);
}

static uint64_t room(const struct inode *in)
{
	return in->head ? -in->tail & (BLOCK - 1) : 0;
}

/* I2. */
int change_log(struct change *c, uint32_t ino, struct entry *e)
{
	struct inode *in = change_inode(c, ino);
	struct entry pad = { .type = ENTRY_PAD, .lines = 1 };
	uint64_t len = (uint64_t)e->lines * ENTRY;
	int rc = 0;

	if (room(in) && room(in) < len) {
		put_entry(c->fs, in->tail, &pad);
		in->tail += ENTRY;
	}
	if (!room(in))
		rc = add_log_block(c, in);
	if (rc)
		return rc;
	put_entry(c->fs, in->tail, e);
	in->tail += len;
	return 0;
}

int change_name(struct change *c, uint32_t dir, enum entry_type type, const char *name,
		uint32_t ino)
{
	struct entry e = { .type = (uint8_t)type, .ino = ino };
	size_t len = strlen(name);

	if (len > NAME_LEN_MAX)
		return -ENAMETOOLONG;
	memcpy(e.name, name, len);
	e.name_len = (uint16_t)len;
	e.lines = offsetof(struct entry, name) + len > ENTRY ? 2 : 1;
	return change_log(c, dir, &e);
}
