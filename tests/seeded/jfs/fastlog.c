/* SPDX-License-Identifier: MIT */
/*
 * fastlog.c - what makes fsync cheap: the changes since the last commit, as records.
 *
 * The log is an area of its own. Each fsync adds a batch, in whole blocks:
 *
 *	magic (8), number of the last commit (8), number of the batch (4), bytes (4), checksum (8)
 *	records: type (4), length of the payload (4), payload, padded to 8 bytes
 *
 *	inode	number (8), the inode as in the table
 *	block	number (8), content of an indirect or attribute block without the zeros at its end
 *	add	directory (4), inode (4), name with its NUL
 *	remove	directory (4), inode (4), name with its NUL
 *
 * A batch holds every inode and every name that changed since the last one; file data is flushed
 * before it is written. It counts if its checksum is right, its commit is the last in the journal,
 * and all batches before it count. The next commit makes the log void.
 *
 * Of a directory the log holds the attributes, never the blocks: replay makes and removes entries
 * one by one. What the log cannot express (an inode that is gone, a directory that moved) makes the
 * next fsync a commit: fs->full_only.
 */
#include "seedfs.h"

#include <errno.h>

#include "base/hash.h"
#include "base/strbuf.h"

#define BATCH_MAGIC 0x3148435442444553ULL

struct batch_head {
	uint64_t magic, commit;
	uint32_t number, bytes;
	uint64_t sum; /* of all bytes, with this 0 */
};

enum record_type { REC_INODE = 1, REC_BLOCK, REC_ADD, REC_REMOVE };

struct record_head {
	uint32_t type, len;
};

struct name_record {
	uint32_t dir, ino;
	char name[];
};

/* --- what waits for the next batch --- */

static void drop_name(struct fs *fs, size_t i)
{
	free(fs->names.v[i].name);
	memmove(&fs->names.v[i], &fs->names.v[i + 1], (fs->names.n - i - 1) * sizeof(*fs->names.v));
	fs->names.n--;
}

static bool same_name(const struct name_change *a, const struct name_change *b)
{
	return a->dir == b->dir && streq(a->name, b->name);
}

/* Both take over the name. */
void log_name_added(struct fs *fs, const struct name_change *c)
{
	for (size_t i = fs->names.n; bug(BUG_NAME_REUSED) && i-- > 0;)
		if (!fs->names.v[i].add && same_name(&fs->names.v[i], c))
			drop_name(fs, i);
	vec_push(&fs->names, *c);
}

void log_name_removed(struct fs *fs, const struct name_change *c)
{
	/* A name that the log has not seen need not be removed from it. */
	for (size_t i = fs->names.n; i-- > 0;) {
		const struct name_change *old = &fs->names.v[i];

		if (old->add && old->ino == c->ino && same_name(old, c)) {
			drop_name(fs, i);
			free(c->name);
			return;
		}
	}
	vec_push(&fs->names, *c);
}

void log_forget(struct fs *fs)
{
	for (size_t i = 0; i < fs->names.n; i++)
		free(fs->names.v[i].name);
	vec_clear(&fs->names);
	fs->log_pos = fs->log_batch = 0;
}

/* --- writing a batch --- */

struct batch {
	struct fs *fs;
	struct strbuf out;
	struct vec_of(uint32_t) blocks; /* that it holds */
	struct vec_of(uint32_t) inodes;
};

static void put(struct batch *b, enum record_type type, const void *a, size_t a_len, const void *c,
		size_t c_len)
{
	struct record_head h = { (uint32_t)type, (uint32_t)(a_len + c_len) };
	static const char zeros[8];

	strbuf_add(&b->out, &h, sizeof(h));
	strbuf_add(&b->out, a, a_len);
	strbuf_add(&b->out, c, c_len);
	strbuf_add(&b->out, zeros, -(a_len + c_len) & 7);
}

static int put_block(void *ctx, uint32_t block, bool meta)
{
	struct batch *b = ctx;
	const unsigned char *bytes;
	uint64_t number = block;
	size_t len = BLOCK_BYTES;

	if (block >= b->fs->sb.n_blocks)
		return -EIO;
	bytes = b->fs->buf[block];
	if (!meta || !(b->fs->state[block] & B_LOG))
		return 0;
	while (len > 0 && bytes[len - 1] == 0)
		len--;
	put(b, REC_BLOCK, &number, sizeof(number), bytes, len);
	vec_push(&b->blocks, block);
	return 0;
}

static void without_blocks(struct dinode *di, uint64_t from)
{
	for (uint64_t i = from; i < N_DIRECT; i++)
		di->direct[i] = 0;
	if (from <= N_DIRECT)
		di->indirect[0] = 0;
	if (from <= N_DIRECT + N_PER_BLOCK)
		di->indirect[1] = 0;
}

static int put_inode(struct batch *b, uint32_t ino, uint32_t synced)
{
	struct fs *fs = b->fs;
	const struct minode *mi = &fs->mi[ino];
	struct dinode di = *inode_get(fs, ino);
	uint64_t number = ino;
	int r = 0;

	if (S_ISREG(di.mode))
		di.size = mi->log_size;
	if (bug(BUG_FALLOC_KEEP) && S_ISREG(di.mode))
		without_blocks(&di, (di.size + BLOCK_BYTES - 1) / BLOCK_BYTES);
	if ((bug(BUG_LINK_SIZE) && mi->linked && ino != synced) ||
	    (bug(BUG_SYMLINK_EMPTY) && S_ISLNK(di.mode))) {
		without_blocks(&di, 0);
		memset(di.target, 0, sizeof(di.target));
		di.size = 0;
	}
	put(b, REC_INODE, &number, sizeof(number), &di, sizeof(di));
	vec_push(&b->inodes, ino);
	if (!S_ISDIR(di.mode))
		r = inode_each_block(fs, &di, put_block, b);
	else if (di.xattr)
		r = put_block(b, di.xattr, true);
	return r;
}

/* A name that this batch leaves out, for a later one to hold. */
static bool name_waits(struct fs *fs, const struct name_change *c, uint32_t synced)
{
	const struct minode *mi = &fs->mi[c->ino];
	bool is_dir = S_ISDIR(inode_get(fs, c->ino)->mode);
	bool synced_dir = S_ISDIR(inode_get(fs, synced)->mode);

	if (!c->add)
		return bug(BUG_RENAME_BOTH) && c->rename && c->dir != synced;
	if (bug(BUG_RENAME_LOST) && c->rename && c->cross && c->dir != synced)
		return true;
	if (bug(BUG_RENAME_OVER) && c->over && c->ino != synced)
		return true;
	if (bug(BUG_NAME_NEW) && mi->made && c->ino == synced && !is_dir)
		return true;
	if (bug(BUG_LINK_LOST) && c->link && c->ino == synced)
		return true;
	if (bug(BUG_ONE_NAME) && c->link && mi->named)
		return true;
	if (bug(BUG_DIR_ENTRY) && !synced_dir && !is_dir && !c->rename && c->ino != synced)
		return true;
	return false;
}

static void put_names(struct batch *b, uint32_t synced)
{
	struct fs *fs = b->fs;

	for (size_t i = 0; i < fs->names.n;) {
		const struct name_change *c = &fs->names.v[i];
		struct name_record rec = { c->dir, c->ino };

		if (name_waits(fs, c, synced)) {
			i++;
			continue;
		}
		if (c->add)
			fs->mi[c->ino].named = true;
		put(b, c->add ? REC_ADD : REC_REMOVE, &rec, sizeof(rec), c->name,
		    strlen(c->name) + 1);
		drop_name(fs, i);
	}
}

static int put_all(struct batch *b, uint32_t synced)
{
	struct fs *fs = b->fs;
	struct batch_head h = { .magic = BATCH_MAGIC,
				.commit = fs->seq - 1,
				.number = fs->log_batch };

	strbuf_add(&b->out, &h, sizeof(h));
	for (uint32_t ino = ROOT_INO; ino < fs->n_inodes; ino++) {
		int r = fs->mi[ino].dirty ? put_inode(b, ino, synced) : 0;

		if (r < 0)
			return r;
	}
	put_names(b, synced);
	if (b->out.len == sizeof(h))
		return 0;
	h.bytes = (uint32_t)b->out.len;
	memcpy(b->out.buf, &h, sizeof(h));
	h.sum = hash64(b->out.buf, b->out.len);
	memcpy(b->out.buf, &h, sizeof(h));
	return 0;
}

static int write_blocks(struct fs *fs, const struct strbuf *out)
{
	static unsigned char block[BLOCK_BYTES] __attribute__((aligned(BLOCK_BYTES)));

	for (size_t at = 0; at < out->len; at += BLOCK_BYTES) {
		size_t n = min(out->len - at, (size_t)BLOCK_BYTES);
		uint32_t to = fs->sb.log + fs->log_pos + (uint32_t)(at / BLOCK_BYTES);
		int r;

		memset(block, 0, sizeof(block));
		memcpy(block, out->buf + at, n);
		r = disk_write(fs->disk, to, block);
		if (r < 0)
			return r;
	}
	return 0;
}

static bool has_data(const struct fs *fs)
{
	for (uint32_t b = fs->sb.data; b < fs->sb.n_blocks; b++)
		if (fs->state[b] & B_DATA)
			return true;
	return false;
}

static int write_batch(struct batch *b)
{
	struct fs *fs = b->fs;
	bool data = has_data(fs), records = b->out.len > sizeof(struct batch_head);
	int r = 0;

	if (data && !bug(BUG_DATA_LATE))
		r = journal_write_data(fs);
	if (r == 0 && data && !bug(BUG_DATA_LATE) && !bug(BUG_NO_FLUSH))
		r = disk_flush(fs->disk);
	if (r == 0 && records)
		r = write_blocks(fs, &b->out);
	if (r == 0 && data && bug(BUG_DATA_LATE))
		r = journal_write_data(fs);
	if (r == 0 && (data || records))
		r = disk_flush(fs->disk);
	return r;
}

/* What is in the batch is durable: blocks it reaches are not written in place any more. */
static void batch_done(struct batch *b)
{
	struct fs *fs = b->fs;

	for (uint32_t i = fs->sb.data; i < fs->sb.n_blocks; i++)
		fs->state[i] &= (uint8_t) ~(B_DATA | B_FRESH);
	for (size_t i = 0; i < b->blocks.n; i++)
		fs->state[b->blocks.v[i]] &= (uint8_t)~B_LOG;
	for (size_t i = 0; i < b->inodes.n; i++) {
		fs->mi[b->inodes.v[i]].dirty = false;
		fs->mi[b->inodes.v[i]].logged = true;
	}
	if (b->out.len > sizeof(struct batch_head)) {
		fs->log_pos += (uint32_t)((b->out.len + BLOCK_BYTES - 1) / BLOCK_BYTES);
		fs->log_batch++;
	}
}

int log_write(struct fs *fs, uint32_t synced)
{
	struct batch b = { .fs = fs };
	int r = put_all(&b, synced);

	if (r == 0 && b.out.len > (size_t)(fs->sb.log_len - fs->log_pos) * BLOCK_BYTES)
		r = -ENOSPC; /* the commit that follows takes everything */
	else if (r == 0)
		r = fs->failed = write_batch(&b);
	if (r == 0)
		batch_done(&b);
	strbuf_release(&b.out);
	vec_release(&b.blocks);
	vec_release(&b.inodes);
	return r;
}

/* --- replay --- */

static int bad_log(struct fs *fs, const char *what, uint32_t ino)
{
	snprintf(fs->why, sizeof(fs->why), "the fsync log %s (inode %u)", what, ino);
	return -EUCLEAN;
}

/* Adds the records of the next batch that counts; -ENOENT if there is none. */
static int read_batch(struct fs *fs, uint32_t *pos, uint32_t number, struct strbuf *records)
{
	static unsigned char block[BLOCK_BYTES] __attribute__((aligned(BLOCK_BYTES)));
	auto_strbuf bytes = STRBUF_INIT;
	struct batch_head h;
	uint64_t sum;
	int r;

	if (*pos >= fs->sb.log_len)
		return -ENOENT;
	r = disk_read(fs->disk, fs->sb.log + *pos, block);
	if (r < 0)
		return r;
	memcpy(&h, block, sizeof(h));
	if (h.magic != BATCH_MAGIC || h.number != number || h.bytes < sizeof(h) ||
	    h.bytes > (fs->sb.log_len - *pos) * BLOCK_BYTES)
		return -ENOENT;
	if (h.commit != fs->seq - 1 && !(bug(BUG_STALE_LOG) && h.commit < fs->seq))
		return -ENOENT;
	while (r == 0 && bytes.len < h.bytes) {
		r = disk_read(fs->disk, fs->sb.log + (*pos)++, block);
		strbuf_add(&bytes, block, min(h.bytes - bytes.len, (size_t)BLOCK_BYTES));
	}
	if (r < 0)
		return r;
	sum = h.sum;
	h.sum = 0;
	memcpy(bytes.buf, &h, sizeof(h));
	if (bug(BUG_TORN_RECORD) && bytes.len <= BLOCK_BYTES)
		sum = hash64(bytes.buf, bytes.len); /* one block is written whole or not at all */
	if (hash64(bytes.buf, bytes.len) != sum)
		return -ENOENT;
	strbuf_add(records, bytes.buf + sizeof(h), bytes.len - sizeof(h));
	return 0;
}

static int replay_inode(struct fs *fs, uint64_t ino, const struct dinode *img)
{
	struct dinode *di, old;

	if (ino < ROOT_INO || ino >= fs->n_inodes || img->mode == 0)
		return bad_log(fs, "holds an impossible inode", (uint32_t)ino);
	di = inode_get(fs, (uint32_t)ino);
	old = *di;
	*di = *img;
	inode_touch(fs, (uint32_t)ino);
	if (!S_ISDIR(img->mode))
		return 0;
	/* Entries are added and removed one by one, to what was committed. */
	if (!S_ISDIR(old.mode))
		old = (struct dinode){ 0 };
	memcpy(di->direct, old.direct, sizeof(di->direct));
	memcpy(di->indirect, old.indirect, sizeof(di->indirect));
	di->size = old.size;
	if (!bug(BUG_DIR_COUNT))
		di->entries = old.entries;
	return 0;
}

static int replay_block(struct fs *fs, uint64_t block, const void *bytes, size_t len)
{
	if (block < fs->sb.data || block >= fs->sb.n_blocks || len > BLOCK_BYTES)
		return bad_log(fs, "holds an impossible block", 0);
	memcpy(block_new(fs, (uint32_t)block), bytes, len);
	block_meta(fs, (uint32_t)block);
	return 0;
}

static int replay_name(struct fs *fs, bool add, const struct name_record *n)
{
	const struct dinode *dir = inode_live(fs, n->dir), *di = inode_live(fs, n->ino);
	uint32_t there;
	int r;

	if (!dir || !S_ISDIR(dir->mode))
		return bad_log(fs, "changes a directory that is not there", n->dir);
	r = dir_find(fs, n->dir, n->name, &there);
	if (r < 0 && r != -ENOENT)
		return bad_log(fs, "changes a damaged directory", n->dir);
	if (!add)
		return r == 0 && there == n->ino ? dir_delete(fs, n->dir, n->name) : 0;
	if (!di)
		return bad_log(fs, "names an inode that is not there", n->ino);
	if (r == 0 && there != n->ino)
		return bad_log(fs, "adds a name that another file has", n->ino);
	return r == 0 ? 0 : dir_insert(fs, n->dir, n->name, n->ino, di->mode);
}

static int replay_record(struct fs *fs, bool names, const struct record_head *h, const char *data)
{
	uint64_t number = 0;

	if (h->len < sizeof(number))
		return bad_log(fs, "holds a short record", 0);
	memcpy(&number, data, sizeof(number));
	switch (h->type) {
	case REC_INODE:
		if (h->len != sizeof(number) + sizeof(struct dinode))
			return bad_log(fs, "holds a short inode", 0);
		return names ? 0 : replay_inode(fs, number, (const void *)(data + sizeof(number)));
	case REC_BLOCK:
		return names ? 0
			     : replay_block(fs, number, data + sizeof(number),
					    h->len - sizeof(number));
	case REC_ADD:
	case REC_REMOVE:
		if (data[h->len - 1] != '\0' || h->len < sizeof(struct name_record) + 2)
			return bad_log(fs, "holds a bad name", 0);
		return names ? replay_name(fs, h->type == REC_ADD, (const void *)data) : 0;
	default:
		return bad_log(fs, "holds an unknown record", 0);
	}
}

static int replay_records(struct fs *fs, bool names, const struct strbuf *records)
{
	for (size_t at = 0; at + sizeof(struct record_head) <= records->len;) {
		struct record_head h;
		int r;

		memcpy(&h, records->buf + at, sizeof(h));
		at += sizeof(h);
		if (h.len > records->len - at)
			return bad_log(fs, "holds a record cut short", 0);
		r = replay_record(fs, names, &h, records->buf + at);
		if (r < 0)
			return r;
		at += (h.len + 7) & ~(size_t)7;
	}
	return 0;
}

/*
 * All inodes first, so that the bitmap knows which blocks are theirs before directories grow. Then
 * the names, in their order.
 */
int log_replay(struct fs *fs, unsigned *n)
{
	auto_strbuf records = STRBUF_INIT;
	uint32_t pos = 0;
	int r;

	*n = 0;
	while ((r = read_batch(fs, &pos, *n, &records)) == 0)
		(*n)++;
	if (r != -ENOENT)
		return r;
	if (*n == 0)
		return 0;
	r = replay_records(fs, false, &records);
	if (r == 0)
		r = check_rebuild_bitmap(fs);
	return r == 0 ? replay_records(fs, true, &records) : r;
}
