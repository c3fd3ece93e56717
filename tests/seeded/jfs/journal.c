/* SPDX-License-Identifier: MIT */
/*
 * journal.c - transactions: physical copies of changed metadata, made durable as one.
 *
 * A transaction in the journal, in blocks:
 *
 *	1	start: magic, sequence number, number n of copies
 *	n	copies of metadata blocks
 *	1	commit record: a header in the first sector; from the second on, as 32-bit numbers,
 *		the n home blocks of the copies, then the blocks revoked
 *
 * Order of a commit: file data, start and copies; flush; commit record; flush. The record counts if
 * its checksum is right. The next transaction follows with the next number. When there is no room
 * for another, a checkpoint writes the blocks home, flushes, and lets the superblock say that the
 * journal begins with the next number: what still lies there is older and does not count.
 *
 * Replay goes over the journal twice: what is revoked, and up to which transaction; then the copies
 * that are not. It may be cut short and begun anew at any point, since the superblock moves on only
 * after the copies are flushed.
 */
#include "seedfs.h"

#include <errno.h>

#include "base/hash.h"

#define START_MAGIC  0x3154525453444553ULL
#define COMMIT_MAGIC 0x31544d4353444553ULL
#define MAX_NUMBERS  ((BLOCK_BYTES - SECTOR_SIZE) / 4)

struct start {
	uint64_t magic, seq;
	uint32_t n_copies, unused;
};

struct commit {
	union {
		struct {
			uint64_t magic, seq;
			uint32_t n_copies, n_revoked;
			uint64_t sum; /* of the block, with this 0 */
		};
		char sector[SECTOR_SIZE];
	};
	uint32_t numbers[MAX_NUMBERS];
};
_Static_assert(sizeof(struct commit) == BLOCK_BYTES, "a record is a block");

union record {
	struct start start;
	struct commit commit;
	unsigned char bytes[BLOCK_BYTES];
} __attribute__((aligned(BLOCK_BYTES)));

static uint64_t commit_sum(const struct commit *c)
{
	struct commit copy = *c;

	copy.sum = 0;
	return hash64(&copy, sizeof(copy));
}

uint32_t journal_limit(const struct fs *fs)
{
	return fs->sb.journal_len / 2 - 2;
}

int journal_write_data(struct fs *fs)
{
	for (uint32_t b = fs->sb.data; b < fs->sb.n_blocks; b++) {
		int r = fs->state[b] & B_DATA ? disk_write(fs->disk, b, fs->buf[b]) : 0;

		if (r < 0)
			return r;
	}
	return 0;
}

/* What was durable once and what is being made durable are now the same. */
static void transaction_done(struct fs *fs)
{
	for (uint32_t b = 0; b < fs->sb.n_blocks; b++) {
		if (fs->state[b] & B_META)
			fs->state[b] |= B_JOURNALED;
		fs->state[b] &= B_JOURNALED;
	}
	fs->n_meta = fs->n_freed = 0;
	vec_clear(&fs->revoked);
	fs->full_only = false;
	fs->seq++;
	log_forget(fs);
	inode_reset_log(fs);
}

static int write_copies(struct fs *fs, uint32_t at, struct commit *c)
{
	union record start = {
		.start = { .magic = START_MAGIC, .seq = fs->seq, .n_copies = fs->n_meta }
	};
	int r = disk_write(fs->disk, at, &start);

	for (uint32_t b = 0; r == 0 && b < fs->sb.n_blocks; b++) {
		if (!(fs->state[b] & B_META))
			continue;
		c->numbers[c->n_copies++] = b;
		r = disk_write(fs->disk, at + c->n_copies, fs->buf[b]);
	}
	return r;
}

static int write_transaction(struct fs *fs)
{
	uint32_t at = fs->sb.journal + fs->journal_pos;
	union record end = { .commit = { .magic = COMMIT_MAGIC, .seq = fs->seq } };
	struct commit *c = &end.commit;
	int r = bug(BUG_DATA_LATE) ? 0 : journal_write_data(fs);

	if (r == 0)
		r = write_copies(fs, at, c);
	assert(r < 0 || c->n_copies == fs->n_meta);
	for (size_t i = 0; i < fs->revoked.n; i++)
		c->numbers[c->n_copies + c->n_revoked++] = fs->revoked.v[i];
	c->sum = commit_sum(c);
	if (r == 0 && !bug(BUG_NO_FLUSH))
		r = disk_flush(fs->disk);
	if (r == 0)
		r = disk_write(fs->disk, at + 1 + c->n_copies, c);
	if (r == 0 && bug(BUG_DATA_LATE))
		r = journal_write_data(fs);
	if (r == 0)
		r = disk_flush(fs->disk);
	return r;
}

int journal_commit(struct fs *fs)
{
	int r;

	if (fs->failed)
		return fs->failed;
	if (fs->n_meta == 0)
		return 0; /* no change is without metadata */
	if (fs->journal_pos + fs->n_meta + 2 > fs->sb.journal_len ||
	    fs->n_meta + fs->revoked.n > MAX_NUMBERS)
		return -EFBIG;
	r = write_transaction(fs);
	if (r < 0)
		return fs->failed = r;
	fs->journal_pos += fs->n_meta + 2;
	transaction_done(fs);
	if (fs->journal_pos + journal_limit(fs) + 2 > fs->sb.journal_len)
		return journal_checkpoint(fs);
	return 0;
}

/* Only right after a commit: the cache is what was committed. */
int journal_checkpoint(struct fs *fs)
{
	int r = fs->failed;

	assert(r || fs->n_meta == 0);
	for (uint32_t b = 0; r == 0 && b < fs->sb.n_blocks; b++)
		if (fs->state[b] & B_JOURNALED)
			r = disk_write(fs->disk, b, fs->buf[b]);
	if (r == 0 && !bug(BUG_CHECKPOINT_FLUSH))
		r = disk_flush(fs->disk);
	if (r == 0)
		r = fs_write_super(fs, false);
	if (r < 0)
		return fs->failed = r;
	for (uint32_t b = 0; b < fs->sb.n_blocks; b++)
		fs->state[b] &= (uint8_t)~B_JOURNALED;
	fs->journal_pos = 0;
	return 0;
}

/* The commit record of the transaction at `pos`; -ENOENT if there is none. */
static int read_transaction(struct fs *fs, uint32_t pos, union record *out)
{
	union record start;
	const struct commit *c = &out->commit;
	int r;

	if (pos + 2 > fs->sb.journal_len)
		return -ENOENT;
	r = disk_read(fs->disk, fs->sb.journal + pos, &start);
	if (r < 0)
		return r;
	if (start.start.magic != START_MAGIC || start.start.seq != fs->seq ||
	    start.start.n_copies > fs->sb.journal_len - pos - 2)
		return -ENOENT;
	r = disk_read(fs->disk, fs->sb.journal + pos + 1 + start.start.n_copies, out);
	if (r < 0)
		return r;
	if (c->magic != COMMIT_MAGIC || c->seq != fs->seq || c->n_copies != start.start.n_copies ||
	    c->n_revoked > MAX_NUMBERS - c->n_copies)
		return -ENOENT;
	if (c->sum != commit_sum(c) && !bug(BUG_TORN_RECORD))
		return -ENOENT;
	for (uint32_t i = 0; i < c->n_copies + c->n_revoked; i++) {
		if (c->numbers[i] < fs->sb.bitmap || c->numbers[i] >= fs->sb.n_blocks) {
			snprintf(fs->why, sizeof(fs->why),
				 "transaction %llu names block %u, which is not metadata",
				 (unsigned long long)c->seq, c->numbers[i]);
			return -EUCLEAN;
		}
	}
	return 0;
}

static int copy_home(struct fs *fs, uint32_t pos, const struct commit *c, const uint64_t *revoked)
{
	for (uint32_t i = 0; i < c->n_copies; i++) {
		union record copy;
		uint32_t home = c->numbers[i];
		int r;

		if (revoked[home] >= c->seq)
			continue;
		r = disk_read(fs->disk, fs->sb.journal + pos + 1 + i, &copy);
		if (r == 0)
			r = disk_write(fs->disk, home, &copy);
		if (r < 0)
			return r;
	}
	return 0;
}

int journal_replay(struct fs *fs, unsigned *n)
{
	auto_free uint64_t *revoked = xcalloc(fs->sb.n_blocks, sizeof(*revoked));
	uint64_t first = fs->seq;
	union record rec;
	uint32_t pos = 0;
	int r;

	for (; (r = read_transaction(fs, pos, &rec)) == 0; fs->seq++) {
		const struct commit *c = &rec.commit;

		for (uint32_t i = 0; i < c->n_revoked; i++)
			revoked[c->numbers[c->n_copies + i]] = c->seq;
		pos += c->n_copies + 2;
	}
	if (r != -ENOENT)
		return r;
	*n = (unsigned)(fs->seq - first);
	if (*n == 0)
		return 0;
	r = bug(BUG_RECOVERY_ORDER) ? fs_write_super(fs, false) : 0;
	pos = 0;
	for (fs->seq = first; r == 0 && fs->seq < first + *n; fs->seq++) {
		r = read_transaction(fs, pos, &rec);
		if (r == 0)
			r = copy_home(fs, pos, &rec.commit, revoked);
		pos += rec.commit.n_copies + 2;
	}
	if (r == 0)
		r = disk_flush(fs->disk);
	return r == 0 ? fs_write_super(fs, false) : r;
}
