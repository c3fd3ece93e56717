/* SPDX-License-Identifier: MIT */
/*
 * inode.c - inodes, their blocks, their data.
 *
 * Bytes of a file's last block past its size mean nothing; they are zeroed when the file grows over
 * them. That keeps a truncation from writing data, and so from being seen before it is durable.
 */
#include "seedfs.h"

#include <errno.h>
#include <linux/falloc.h>

#define MAX_LBLOCK (N_DIRECT + N_PER_BLOCK + (uint64_t)N_PER_BLOCK * N_PER_BLOCK)
#define MAX_SIZE   (MAX_LBLOCK * BLOCK_BYTES)

struct dinode *inode_get(struct fs *fs, uint32_t ino)
{
	static struct dinode broken; /* stands for one that cannot be read */
	unsigned char *block;

	assert(ino < fs->n_inodes);
	block = block_get(fs, fs->sb.itable + ino / (uint32_t)INODES_BLOCK);
	if (!block)
		return memset(&broken, 0, sizeof(broken));
	return (struct dinode *)block + ino % INODES_BLOCK;
}

struct dinode *inode_live(struct fs *fs, uint32_t ino)
{
	struct dinode *di = ino > 0 && ino < fs->n_inodes ? inode_get(fs, ino) : NULL;

	return di && di->mode ? di : NULL;
}

void inode_touch(struct fs *fs, uint32_t ino)
{
	block_meta(fs, fs->sb.itable + ino / (uint32_t)INODES_BLOCK);
}

void inode_change(struct fs *fs, uint32_t ino)
{
	inode_touch(fs, ino);
	fs->mi[ino].dirty = true;
}

static void set_size(struct fs *fs, uint32_t ino, uint64_t size)
{
	inode_get(fs, ino)->size = size;
	fs->mi[ino].log_size = size;
}

void inode_reset_log(struct fs *fs)
{
	for (uint32_t ino = ROOT_INO; ino < fs->n_inodes; ino++) {
		struct minode *mi = &fs->mi[ino];

		*mi = (struct minode){ .refs = mi->refs, .log_size = inode_get(fs, ino)->size };
	}
}

int inode_alloc(struct fs *fs, uint32_t dir, mode_t mode, uid_t uid, gid_t gid, uint32_t *out)
{
	const struct dinode *parent = inode_get(fs, dir);
	int64_t now = fs_now(fs);

	for (uint32_t ino = ROOT_INO; ino < fs->n_inodes; ino++) {
		struct dinode *di = inode_get(fs, ino);

		if (di->mode != 0 || fs->mi[ino].refs)
			continue;
		if (parent->mode & S_ISGID) {
			gid = parent->gid;
			mode |= S_ISDIR(mode) ? S_ISGID : 0;
		}
		*di = (struct dinode){ .mode = mode, .uid = uid, .gid = gid, .n_link = 1 };
		di->atime = di->mtime = di->ctime = now;
		if (S_ISDIR(mode)) {
			di->n_link = 2;
			di->parent = dir;
		}
		fs->mi[ino] = (struct minode){ .made = true };
		inode_change(fs, ino);
		*out = ino;
		return 0;
	}
	return -ENOSPC;
}

/* --- the map from a file's blocks to the disk's --- */

/* A place that holds a block number, and the indirect block it is in; 0 if it is in the inode. */
struct slot {
	uint32_t *at;
	uint32_t in;
};

static void slot_set(struct fs *fs, uint32_t ino, struct slot s, uint32_t block)
{
	*s.at = block;
	inode_touch(fs, ino);
	if (s.in)
		block_meta(fs, s.in);
}

/* Goes down one level; with `make`, the indirect block is made if it is not there. */
static int slot_down(struct fs *fs, uint32_t ino, bool make, uint64_t index, struct slot *s)
{
	uint32_t *numbers;
	int r;

	if (*s->at == 0) {
		uint32_t block;

		if (!make)
			return -ENOENT;
		r = block_alloc(fs, &block);
		if (r < 0)
			return r;
		block_meta(fs, block);
		inode_get(fs, ino)->blocks++;
		slot_set(fs, ino, *s, block);
	}
	numbers = *s->at >= fs->sb.data ? (uint32_t *)block_get(fs, *s->at) : NULL;
	if (!numbers)
		return -EIO;
	*s = (struct slot){ .at = &numbers[index], .in = *s->at };
	return 0;
}

/* -ENOENT: no indirect block there, and none wanted. */
static int slot_find(struct fs *fs, uint32_t ino, uint64_t lblock, bool make, struct slot *out)
{
	struct dinode *di = inode_get(fs, ino);
	int r;

	if (lblock < N_DIRECT) {
		*out = (struct slot){ .at = &di->direct[lblock] };
		return 0;
	}
	lblock -= N_DIRECT;
	if (lblock < N_PER_BLOCK) {
		*out = (struct slot){ .at = &di->indirect[0] };
		return slot_down(fs, ino, make, lblock, out);
	}
	lblock -= N_PER_BLOCK;
	if (lblock >= (uint64_t)N_PER_BLOCK * N_PER_BLOCK)
		return -EFBIG;
	*out = (struct slot){ .at = &di->indirect[1] };
	r = slot_down(fs, ino, make, lblock / N_PER_BLOCK, out);
	return r < 0 ? r : slot_down(fs, ino, make, lblock % N_PER_BLOCK, out);
}

int inode_map(struct fs *fs, uint32_t ino, uint64_t lblock, uint32_t *out)
{
	struct slot s;
	int r = slot_find(fs, ino, lblock, false, &s);

	*out = r == 0 ? *s.at : 0;
	if (r == 0 && *out && (*out < fs->sb.data || *out >= fs->sb.n_blocks))
		return -EIO;
	return r == -ENOENT ? 0 : r;
}

int inode_add_block(struct fs *fs, uint32_t ino, uint64_t lblock, uint32_t *out)
{
	struct slot s;
	int r = slot_find(fs, ino, lblock, true, &s);

	if (r == 0)
		r = block_alloc(fs, out);
	if (r < 0)
		return r;
	block_meta(fs, *out);
	inode_get(fs, ino)->blocks++;
	slot_set(fs, ino, s, *out);
	return 0;
}

static int each_below(struct fs *fs, uint32_t block, int level, inode_block_fn *fn, void *ctx)
{
	const uint32_t *numbers;
	int r = block ? fn(ctx, block, level > 0) : 0;

	if (r < 0 || level == 0 || block == 0)
		return r;
	numbers = block >= fs->sb.data ? (uint32_t *)block_get(fs, block) : NULL;
	if (!numbers)
		return -EIO;
	for (int i = 0; r == 0 && i < N_PER_BLOCK; i++)
		if (numbers[i])
			r = each_below(fs, numbers[i], level - 1, fn, ctx);
	return r;
}

int inode_each_block(struct fs *fs, const struct dinode *di, inode_block_fn *fn, void *ctx)
{
	int r = 0;

	for (int i = 0; r == 0 && i < N_DIRECT; i++)
		r = each_below(fs, di->direct[i], 0, fn, ctx);
	for (int i = 0; r == 0 && i < 2; i++)
		r = each_below(fs, di->indirect[i], i + 1, fn, ctx);
	return r == 0 && di->xattr ? fn(ctx, di->xattr, true) : r;
}

/* Frees a block of the file. Indirect blocks stay until the file ends before them. */
static int unmap(struct fs *fs, uint32_t ino, uint64_t lblock)
{
	struct slot s;
	uint32_t block;
	int r = inode_map(fs, ino, lblock, &block);

	if (r < 0 || block == 0)
		return r;
	r = slot_find(fs, ino, lblock, false, &s);
	if (r < 0)
		return r;
	block_free(fs, block);
	inode_get(fs, ino)->blocks--;
	slot_set(fs, ino, s, 0);
	return 0;
}

/* Frees what lies at `lblock` or after it, below `s`, which covers from `first` on. */
static int cut_below(struct fs *fs, uint32_t ino, struct slot s, int level, uint64_t first,
		     uint64_t lblock)
{
	uint64_t span = level == 2 ? N_PER_BLOCK : 1;
	uint32_t block = *s.at;

	if (block == 0 || first + (level ? span * N_PER_BLOCK : 1) <= lblock)
		return 0;
	if (block < fs->sb.data || block >= fs->sb.n_blocks || !block_get(fs, block))
		return -EIO;
	for (uint64_t i = 0; level > 0 && i < N_PER_BLOCK; i++) {
		uint32_t *numbers = (uint32_t *)block_get(fs, block);
		int r = cut_below(fs, ino, (struct slot){ &numbers[i], block }, level - 1,
				  first + i * span, lblock);

		if (r < 0)
			return r;
	}
	if (first < lblock)
		return 0;
	block_free(fs, block);
	inode_get(fs, ino)->blocks--;
	slot_set(fs, ino, s, 0);
	return 0;
}

static int cut_from(struct fs *fs, uint32_t ino, uint64_t lblock)
{
	struct dinode *di = inode_get(fs, ino);
	int r = 0;

	for (uint64_t i = 0; r == 0 && i < N_DIRECT; i++)
		r = cut_below(fs, ino, (struct slot){ &di->direct[i], 0 }, 0, i, lblock);
	if (r == 0)
		r = cut_below(fs, ino, (struct slot){ &di->indirect[0], 0 }, 1, N_DIRECT, lblock);
	if (r == 0)
		r = cut_below(fs, ino, (struct slot){ &di->indirect[1], 0 }, 2,
			      N_DIRECT + N_PER_BLOCK, lblock);
	return r;
}

int inode_drop(struct fs *fs, uint32_t ino)
{
	struct dinode *di = inode_live(fs, ino);
	int r;

	if (!di || di->n_link > 0 || fs->mi[ino].refs > 0)
		return 0;
	r = fs_begin(fs, 0);
	if (r == 0)
		r = cut_from(fs, ino, 0);
	if (r < 0)
		return r;
	if (di->xattr >= fs->sb.data && di->xattr < fs->sb.n_blocks)
		block_free(fs, di->xattr);
	*di = (struct dinode){ 0 };
	fs->mi[ino] = (struct minode){ 0 };
	inode_touch(fs, ino);
	return 0;
}

void inode_ref(struct fs *fs, uint32_t ino)
{
	fs->mi[ino].refs++;
}

void inode_unref(struct fs *fs, uint32_t ino, uint64_t n)
{
	assert(fs->mi[ino].refs >= n);
	fs->mi[ino].refs -= n;
	if (inode_drop(fs, ino) < 0)
		return; /* stays as an orphan, which recovery frees */
}

/* --- data --- */

ssize_t file_read(struct fs *fs, uint32_t ino, void *data, size_t len, uint64_t off)
{
	uint64_t size = inode_get(fs, ino)->size;
	size_t done = 0;

	len = off >= size ? 0 : (size_t)min((uint64_t)len, size - off);
	while (done < len) {
		size_t in = (off + done) % BLOCK_BYTES;
		size_t n = min(len - done, BLOCK_BYTES - in);
		const unsigned char *from;
		uint32_t block;
		int r = inode_map(fs, ino, (off + done) / BLOCK_BYTES, &block);

		if (r < 0)
			return r;
		from = block ? block_get(fs, block) : NULL;
		if (block && !from)
			return -EIO;
		if (from)
			memcpy((char *)data + done, from + in, n);
		else
			memset((char *)data + done, 0, n);
		done += n;
	}
	return (ssize_t)len;
}

/*
 * A block of the file to write into, with what it held. One that a durable state reaches is not
 * written in place: the file gets a new one.
 */
static int writable(struct fs *fs, uint32_t ino, uint64_t lblock, unsigned char **out)
{
	struct slot s;
	uint32_t old, block;
	int r = inode_map(fs, ino, lblock, &old);

	if (r == 0)
		r = slot_find(fs, ino, lblock, true, &s);
	if (r < 0)
		return r;
	block = old;
	if (!old || !(fs->state[old] & B_FRESH)) {
		if (old && !block_get(fs, old))
			return -EIO;
		r = block_alloc(fs, &block);
		if (r < 0)
			return r;
		if (old) {
			memcpy(fs->buf[block], fs->buf[old], BLOCK_BYTES);
			block_free(fs, old);
		} else {
			inode_get(fs, ino)->blocks++;
		}
		slot_set(fs, ino, s, block);
	}
	fs->state[block] |= B_DATA;
	*out = fs->buf[block];
	return 0;
}

static int zero_bytes(struct fs *fs, uint32_t ino, uint64_t lblock, size_t from, size_t to)
{
	unsigned char *bytes;
	int r = writable(fs, ino, lblock, &bytes);

	if (r == 0)
		memset(bytes + from, 0, to - from);
	return r;
}

/* Before the size grows: the rest of the last block is not zero yet. */
static int zero_tail(struct fs *fs, uint32_t ino)
{
	uint64_t size = inode_get(fs, ino)->size;
	uint32_t block;
	int r = inode_map(fs, ino, size / BLOCK_BYTES, &block);

	if (r < 0 || block == 0 || size % BLOCK_BYTES == 0)
		return r;
	return zero_bytes(fs, ino, size / BLOCK_BYTES, size % BLOCK_BYTES, BLOCK_BYTES);
}

/* Blocks that changing the range takes at most: its own, indirect ones, and the old last one. */
static uint64_t blocks_for(uint64_t off, uint64_t len)
{
	uint64_t n = (off + len + BLOCK_BYTES - 1) / BLOCK_BYTES - off / BLOCK_BYTES;

	return n + n / N_PER_BLOCK + 5;
}

static void stamp(struct fs *fs, uint32_t ino)
{
	struct dinode *di = inode_get(fs, ino);

	di->mtime = di->ctime = fs_now(fs);
}

ssize_t file_write(struct fs *fs, uint32_t ino, const void *data, size_t len, uint64_t off,
		   unsigned flags)
{
	struct dinode *di = inode_get(fs, ino);
	uint64_t old = di->size;
	int r;

	if (len == 0)
		return 0;
	if (off > MAX_SIZE || len > MAX_SIZE - off)
		return -EFBIG;
	r = fs_begin(fs, blocks_for(off, len));
	if (r == 0 && off > old)
		r = zero_tail(fs, ino);
	for (size_t done = 0; r == 0 && done < len;) {
		size_t in = (off + done) % BLOCK_BYTES;
		size_t n = min(len - done, BLOCK_BYTES - in);
		unsigned char *to;

		r = writable(fs, ino, (off + done) / BLOCK_BYTES, &to);
		if (r == 0)
			memcpy(to + in, (const char *)data + done, n);
		/* An append into the last block leaves no old bytes behind it. */
		if (r == 0 && off + done + n > old &&
		    (off + done) / BLOCK_BYTES == old / BLOCK_BYTES)
			memset(to + in + n, 0, BLOCK_BYTES - in - n);
		done += n;
	}
	if (r < 0)
		return r;
	stamp(fs, ino);
	if (bug(BUG_MMAP_LOST) && flags & WRITE_MAPPED)
		inode_touch(fs, ino);
	else
		inode_change(fs, ino);
	if (off + len <= old)
		return (ssize_t)len;
	if (bug(BUG_SIZE_OLD) && off == old && old > 0)
		di->size = off + len;
	else if (bug(BUG_DIRECT_SIZE) && flags & WRITE_DIRECT)
		di->size = off + len;
	else
		set_size(fs, ino, off + len);
	return (ssize_t)len;
}

int file_put_small(struct fs *fs, uint32_t ino, const void *data, size_t len)
{
	unsigned char *to;
	int r = writable(fs, ino, 0, &to);

	assert(len <= BLOCK_BYTES);
	if (r < 0)
		return r;
	memcpy(to, data, len);
	inode_get(fs, ino)->size = len;
	return 0;
}

int file_truncate(struct fs *fs, uint32_t ino, uint64_t size)
{
	uint64_t old = inode_get(fs, ino)->size;
	int r;

	if (size > MAX_SIZE)
		return -EFBIG;
	r = fs_begin(fs, size > old ? 2 : 0);
	if (r == 0 && size > old)
		r = zero_tail(fs, ino);
	else if (r == 0)
		r = cut_from(fs, ino, (size + BLOCK_BYTES - 1) / BLOCK_BYTES);
	if (r < 0)
		return r;
	set_size(fs, ino, size);
	stamp(fs, ino);
	inode_change(fs, ino);
	return 0;
}

/* Zeroes a range: whole blocks go (punch) or become zeros (zero range), parts are written. */
static int zero_range(struct fs *fs, uint32_t ino, uint64_t off, uint64_t end, bool punch)
{
	while (off < end) {
		size_t in = off % BLOCK_BYTES;
		size_t n = (size_t)min(end - off, (uint64_t)BLOCK_BYTES - in);
		uint32_t block = 0;
		int r;

		if (off / BLOCK_BYTES >= MAX_LBLOCK)
			return 0;
		r = punch ? inode_map(fs, ino, off / BLOCK_BYTES, &block) : 0;
		if (r == 0 && punch && n == BLOCK_BYTES)
			r = unmap(fs, ino, off / BLOCK_BYTES);
		else if (r == 0 && (!punch || block))
			r = zero_bytes(fs, ino, off / BLOCK_BYTES, in, in + n);
		if (r < 0)
			return r;
		off += n;
	}
	return 0;
}

/* Blocks for a range; those that are there stay. */
static int fill_holes(struct fs *fs, uint32_t ino, uint64_t off, uint64_t end)
{
	for (uint64_t l = off / BLOCK_BYTES; l < (end + BLOCK_BYTES - 1) / BLOCK_BYTES; l++) {
		uint32_t block;
		int r = inode_map(fs, ino, l, &block);

		if (r == 0 && block == 0)
			r = zero_bytes(fs, ino, l, 0, BLOCK_BYTES);
		if (r < 0)
			return r;
	}
	return 0;
}

int file_fallocate(struct fs *fs, uint32_t ino, int mode, uint64_t off, uint64_t len)
{
	const int known = FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE;
	uint64_t end = off + len, old = inode_get(fs, ino)->size;
	bool keep = mode & FALLOC_FL_KEEP_SIZE, punch = mode & FALLOC_FL_PUNCH_HOLE;
	int r;

	if (mode & ~known || (punch && (!keep || mode & FALLOC_FL_ZERO_RANGE)))
		return -EOPNOTSUPP;
	if (len == 0 || end < off)
		return -EINVAL;
	if (!punch && end > MAX_SIZE)
		return -EFBIG;
	r = fs_begin(fs, punch ? 3 : blocks_for(off, len));
	if (r == 0 && !keep && end > old)
		r = zero_tail(fs, ino);
	/* Past the end nothing needs to be zeroed but whole blocks, which may be many. */
	if (r == 0 && punch)
		r = zero_range(fs, ino, off, min(end, MAX_SIZE), true);
	else if (r == 0 && mode & FALLOC_FL_ZERO_RANGE)
		r = zero_range(fs, ino, off, end, false);
	else if (r == 0)
		r = fill_holes(fs, ino, off, end);
	if (r < 0)
		return r;
	stamp(fs, ino);
	if (punch && bug(BUG_PUNCH_LOST))
		inode_touch(fs, ino);
	else
		inode_change(fs, ino);
	if (!keep && end > old)
		set_size(fs, ino, end);
	if (bug(BUG_ZERO_KEEP) && mode & FALLOC_FL_ZERO_RANGE && end > old)
		fs->mi[ino].log_size = end;
	return 0;
}

int64_t file_seek(struct fs *fs, uint32_t ino, uint64_t off, bool hole)
{
	uint64_t size = inode_get(fs, ino)->size;

	while (off < size) {
		uint32_t block;
		int r = inode_map(fs, ino, off / BLOCK_BYTES, &block);

		if (r < 0)
			return r;
		if ((block == 0) == hole)
			return (int64_t)off;
		off = (off / BLOCK_BYTES + 1) * BLOCK_BYTES;
	}
	return hole && off >= size ? (int64_t)size : -ENXIO;
}

int inode_set_attr(struct fs *fs, uint32_t ino, const struct attr_change *c)
{
	struct dinode *di = inode_get(fs, ino);
	int r = fs_begin(fs, 0);

	if (r < 0)
		return r;
	if (c->set & SET_MODE)
		di->mode = (di->mode & S_IFMT) | (c->mode & 07777);
	if (c->set & SET_UID)
		di->uid = c->uid;
	if (c->set & SET_GID)
		di->gid = c->gid;
	if (c->set & SET_ATIME)
		di->atime = c->atime;
	if (c->set & SET_MTIME)
		di->mtime = c->mtime;
	di->ctime = c->set & SET_CTIME ? c->ctime : fs_now(fs);
	if (c->set & SET_MODE && bug(BUG_CHMOD_LOST))
		inode_touch(fs, ino);
	else
		inode_change(fs, ino);
	return 0;
}
