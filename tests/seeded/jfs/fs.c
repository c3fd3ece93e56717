/* SPDX-License-Identifier: MIT */
/* fs.c - making, opening with recovery, closing; the start of an operation and its fsync. */
#include "seedfs.h"

#include <errno.h>
#include <time.h>

#include "base/hash.h"

#define SUPER_MAGIC 0x3130534644454553ULL
#define FIXED_START 1000000000LL
#define NS_PER_SEC  1000000000LL
#define MARGIN	    16	/* metadata blocks that any operation may change */
#define MAX_REVOKED 256 /* in a transaction */

union super_block {
	struct super sb;
	unsigned char bytes[BLOCK_BYTES];
} __attribute__((aligned(BLOCK_BYTES)));
_Static_assert(sizeof(struct super) <= SECTOR_SIZE, "the superblock cannot be torn");

static uint64_t super_sum(const struct super *sb)
{
	return hash64(sb, offsetof(struct super, sum));
}

int fs_write_super(struct fs *fs, bool clean)
{
	union super_block block = { .sb = fs->sb };
	int r;

	block.sb.seq = fs->seq;
	block.sb.clean = clean;
	block.sb.sum = super_sum(&block.sb);
	r = disk_write(fs->disk, 0, &block);
	if (r == 0)
		r = disk_flush(fs->disk);
	if (r == 0)
		fs->sb = block.sb;
	return r;
}

int64_t fs_now(struct fs *fs)
{
	struct timespec ts;

	if (fs->fixed_clock)
		return fs->clock;
	clock_gettime(CLOCK_REALTIME, &ts);
	return ts.tv_sec * NS_PER_SEC + ts.tv_nsec;
}

static struct super layout(uint32_t n_blocks)
{
	struct super sb = { .magic = SUPER_MAGIC, .version = 1, .n_blocks = n_blocks, .seq = 1 };

	sb.journal = 1;
	sb.journal_len = n_blocks < 1024 ? 64 : 96;
	sb.log = sb.journal + sb.journal_len;
	sb.log_len = n_blocks < 1024 ? 16 : 32;
	sb.bitmap = sb.log + sb.log_len;
	sb.bitmap_len = (n_blocks + 8 * BLOCK_BYTES - 1) / (8 * BLOCK_BYTES);
	sb.itable = sb.bitmap + sb.bitmap_len;
	sb.itable_len = min(n_blocks / 32, 64U);
	sb.data = sb.itable + sb.itable_len;
	sb.clean = 1;
	sb.sum = super_sum(&sb);
	return sb;
}

static int write_empty(struct disk *d, const struct super *sb)
{
	union super_block block = { 0 };
	int r = 0;

	/* The superblock last: until it is there, there is no file system. */
	for (uint32_t b = 0; r == 0 && b < sb->data; b++) {
		memset(&block, 0, sizeof(block));
		if (b >= sb->bitmap && b < sb->itable)
			for (uint32_t i = 0; i < 8 * BLOCK_BYTES; i++)
				if ((b - sb->bitmap) * 8 * BLOCK_BYTES + i < sb->data)
					block.bytes[i / 8] |= (unsigned char)(1 << i % 8);
		if (b == sb->itable)
			((struct dinode *)block.bytes)[ROOT_INO] = (struct dinode){
				.mode = S_IFDIR | 0755, .n_link = 2, .parent = ROOT_INO
			};
		r = disk_write(d, b, &block);
	}
	if (r == 0)
		r = disk_flush(d);
	memset(&block, 0, sizeof(block));
	block.sb = *sb;
	if (r == 0)
		r = disk_write(d, 0, &block);
	return r == 0 ? disk_flush(d) : r;
}

int fs_mkfs(struct disk *d, uint32_t n_blocks)
{
	struct super sb = layout(n_blocks);

	if (n_blocks < MIN_BLOCKS || n_blocks > MAX_BLOCKS || n_blocks > d->n_blocks)
		return -EINVAL;
	return write_empty(d, &sb);
}

static int read_super(struct fs *fs)
{
	union super_block block;
	int r = disk_read(fs->disk, 0, &block);
	struct super want;

	if (r < 0)
		return r;
	if (block.sb.magic != SUPER_MAGIC || block.sb.version != 1 ||
	    block.sb.sum != super_sum(&block.sb) || block.sb.n_blocks < MIN_BLOCKS ||
	    block.sb.n_blocks > fs->disk->n_blocks) {
		snprintf(fs->why, sizeof(fs->why), "no valid superblock");
		return -EUCLEAN;
	}
	want = layout(block.sb.n_blocks);
	if (memcmp(&want.journal, &block.sb.journal,
		   offsetof(struct super, clean) - offsetof(struct super, journal)) != 0) {
		snprintf(fs->why, sizeof(fs->why), "superblock with an impossible layout");
		return -EUCLEAN;
	}
	fs->sb = block.sb;
	fs->seq = block.sb.seq;
	return 0;
}

/*
 * Journal, then log, then what nothing names. Each step leaves a disk on which the next recovery
 * does the same again, or finds it done: what the log says is committed as one transaction, whose
 * number makes the log void.
 */
static int recover(struct fs *fs, struct recovered *rec)
{
	int r = journal_replay(fs, &rec->transactions);

	if (r == 0)
		r = log_replay(fs, &rec->batches);
	if (r == 0)
		r = check_orphans(fs, rec->batches > 0, &rec->orphans);
	if (r == 0)
		r = journal_commit(fs);
	return r == 0 ? journal_checkpoint(fs) : r;
}

static struct fs *fs_new(struct disk *d, bool fixed_clock)
{
	struct fs *fs = xcalloc(1, sizeof(*fs));

	fs->disk = d;
	fs->fixed_clock = fixed_clock;
	fs->clock = FIXED_START * NS_PER_SEC;
	return fs;
}

int fs_open(struct disk *d, bool fixed_clock, struct recovered *rec, char *why, size_t why_size,
	    struct fs **out)
{
	struct fs *fs = fs_new(d, fixed_clock);
	int r = read_super(fs);

	*rec = (struct recovered){ 0 };
	if (r == 0) {
		fs->buf = xcalloc(fs->sb.n_blocks, sizeof(*fs->buf));
		fs->state = xcalloc(fs->sb.n_blocks, sizeof(*fs->state));
		fs->n_inodes = fs->sb.itable_len * (uint32_t)INODES_BLOCK;
		fs->mi = xcalloc(fs->n_inodes, sizeof(*fs->mi));
		rec->was_dirty = !fs->sb.clean;
	}
	if (r == 0 && rec->was_dirty)
		r = recover(fs, rec);
	/* A number of its own for this mount: nothing that an earlier one left can be mistaken. */
	fs->seq++;
	if (r == 0)
		r = fs_write_super(fs, false);
	if (r < 0) {
		snprintf(why, why_size, "%s", fs->why[0] ? fs->why : strerror(-r));
		fs_free(fs);
		return r;
	}
	inode_reset_log(fs);
	*out = fs;
	return 0;
}

void fs_free(struct fs *fs)
{
	for (uint32_t b = 0; fs->buf && b < fs->sb.n_blocks; b++)
		free(fs->buf[b]);
	log_forget(fs);
	vec_release(&fs->names);
	vec_release(&fs->revoked);
	free(fs->buf);
	free(fs->state);
	free(fs->mi);
	free(fs);
}

int fs_close(struct fs *fs)
{
	int r = 0;

	for (uint32_t ino = ROOT_INO; ino < fs->n_inodes; ino++) {
		fs->mi[ino].refs = 0;
		if (r == 0)
			r = inode_drop(fs, ino);
	}
	if (r == 0)
		r = journal_commit(fs);
	if (r == 0)
		r = journal_checkpoint(fs);
	if (r == 0)
		r = fs_write_super(fs, true);
	fs_free(fs);
	return r;
}

int fs_begin(struct fs *fs, uint64_t n_blocks)
{
	uint64_t meta = MARGIN + n_blocks / N_PER_BLOCK;
	int r = fs->failed;

	if (r < 0)
		return r;
	fs->clock += NS_PER_SEC;
	if (meta > journal_limit(fs))
		return -EFBIG;
	if (fs->n_meta + meta > journal_limit(fs) || fs->revoked.n > MAX_REVOKED)
		r = journal_commit(fs);
	if (r < 0 || n_blocks == 0)
		return r;
	/* A commit makes what was freed available. */
	if (fs->n_freed > 0 && block_count_free(fs, false) < n_blocks)
		r = journal_commit(fs);
	if (r == 0 && block_count_free(fs, false) < n_blocks)
		r = -ENOSPC;
	return r;
}

/* fsync of anything makes everything durable; the log does it with less writing, where it can. */
int fs_fsync(struct fs *fs, uint32_t ino)
{
	const struct minode *mi = &fs->mi[ino];
	int r;

	if (fs->failed)
		return fs->failed;
	if (fs->full_only)
		return journal_commit(fs);
	if (bug(BUG_FSYNC_TWICE) && mi->logged)
		return 0;
	if (bug(BUG_DIR_ENTRY) && S_ISDIR(inode_get(fs, ino)->mode) && !mi->dirty)
		return 0;
	r = log_write(fs, ino);
	return r == -ENOSPC ? journal_commit(fs) : r;
}

int fs_sync(struct fs *fs)
{
	return journal_commit(fs);
}
