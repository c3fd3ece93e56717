/* SPDX-License-Identifier: MIT */
/*
 * dir.c - directories: blocks of entries, and the operations on names.
 *
 * An entry: inode (4 bytes, 0 if free), length of the entry (2), length of the name (1), type (1),
 * name. The entries of a block fill it. . and .. are not stored; the inode knows the parent and how
 * many entries there are.
 */
#include "seedfs.h"

#include <errno.h>
#include <linux/fs.h>

struct dent {
	uint32_t ino;
	uint16_t len;
	uint8_t name_len, type;
	char name[];
};
#define DENT_HEAD 8

static uint16_t dent_need(size_t name_len)
{
	return (uint16_t)((DENT_HEAD + name_len + 3) & ~(size_t)3);
}

/* NULL if what is there cannot be an entry. */
static struct dent *dent_at(unsigned char *block, uint32_t at)
{
	struct dent *d = (struct dent *)(block + at);

	if (at + DENT_HEAD > BLOCK_BYTES || d->len < DENT_HEAD || d->len % 4 ||
	    at + d->len > BLOCK_BYTES || (d->ino && dent_need(d->name_len) > d->len))
		return NULL;
	return d;
}

static int dir_block(struct fs *fs, uint32_t dir, uint64_t n, uint32_t *block, unsigned char **out)
{
	int r = inode_map(fs, dir, n, block);

	if (r < 0)
		return r;
	*out = block_get(fs, *block);
	return *out ? 0 : -EIO;
}

static uint64_t dir_blocks(struct fs *fs, uint32_t dir)
{
	return inode_get(fs, dir)->size / BLOCK_BYTES;
}

/* Where an entry was found: it, the one before it in the block if any, and the block. */
struct found {
	struct dent *d, *prev;
	uint32_t block;
};

static int find(struct fs *fs, uint32_t dir, const char *name, struct found *out)
{
	size_t len = strlen(name);

	for (uint64_t n = 0; n < dir_blocks(fs, dir); n++) {
		unsigned char *bytes;
		int r = dir_block(fs, dir, n, &out->block, &bytes);

		if (r < 0)
			return r;
		out->prev = NULL;
		for (uint32_t at = 0; at < BLOCK_BYTES; at += out->d->len) {
			out->d = dent_at(bytes, at);
			if (!out->d)
				return -EIO;
			if (out->d->ino && out->d->name_len == len &&
			    memcmp(out->d->name, name, len) == 0)
				return 0;
			out->prev = out->d;
		}
	}
	return -ENOENT;
}

int dir_find(struct fs *fs, uint32_t dir, const char *name, uint32_t *out)
{
	struct found f;
	int r;

	if (strlen(name) > NAME_MAX_LEN)
		return -ENAMETOOLONG;
	r = find(fs, dir, name, &f);
	if (r == 0 && !inode_live(fs, f.d->ino))
		r = -EIO;
	if (r == 0)
		*out = f.d->ino;
	return r;
}

int dir_next(struct fs *fs, uint32_t dir, uint64_t pos, struct dir_entry *out)
{
	for (uint64_t n = pos / BLOCK_BYTES; n < dir_blocks(fs, dir); n++) {
		unsigned char *bytes;
		const struct dent *d;
		uint32_t block;
		int r = dir_block(fs, dir, n, &block, &bytes);

		if (r < 0)
			return r;
		for (uint32_t at = 0; at < BLOCK_BYTES; at += d->len) {
			d = dent_at(bytes, at);
			if (!d)
				return -EIO;
			if (d->ino == 0 || n * BLOCK_BYTES + at < pos)
				continue;
			out->ino = d->ino;
			out->type = (mode_t)d->type << 12;
			out->next = n * BLOCK_BYTES + at + d->len;
			memcpy(out->name, d->name, d->name_len);
			out->name[d->name_len] = '\0';
			return 0;
		}
	}
	return -ENOENT;
}

/* A free entry of at least `need` bytes; may cut one off the end of another, or add a block. */
static int find_room(struct fs *fs, uint32_t dir, uint16_t need, uint32_t *block, struct dent **out)
{
	uint64_t n_blocks = dir_blocks(fs, dir);
	unsigned char *bytes;
	int r;

	for (uint64_t n = 0; n < n_blocks; n++) {
		r = dir_block(fs, dir, n, block, &bytes);
		if (r < 0)
			return r;
		for (uint32_t at = 0; at < BLOCK_BYTES;) {
			struct dent *d = dent_at(bytes, at);
			uint16_t used;

			if (!d)
				return -EIO;
			used = d->ino ? dent_need(d->name_len) : 0;
			if (d->len - used >= need) {
				*out = (struct dent *)(bytes + at + used);
				if (used) {
					(*out)->len = (uint16_t)(d->len - used);
					d->len = used;
				}
				return 0;
			}
			at += d->len;
		}
	}
	r = inode_add_block(fs, dir, n_blocks, block);
	if (r < 0)
		return r;
	inode_get(fs, dir)->size += BLOCK_BYTES;
	*out = (struct dent *)fs->buf[*block];
	(*out)->len = BLOCK_BYTES;
	return 0;
}

int dir_insert(struct fs *fs, uint32_t dir, const char *name, uint32_t ino, mode_t type)
{
	size_t len = strlen(name);
	struct dent *d;
	uint32_t block;
	int r = find_room(fs, dir, dent_need(len), &block, &d);

	if (r < 0)
		return r;
	d->ino = ino;
	d->name_len = (uint8_t)len;
	d->type = (uint8_t)((type & S_IFMT) >> 12);
	memcpy(d->name, name, len);
	block_meta(fs, block);
	inode_get(fs, dir)->entries++;
	inode_touch(fs, dir);
	return 0;
}

int dir_delete(struct fs *fs, uint32_t dir, const char *name)
{
	struct found f;
	int r = find(fs, dir, name, &f);

	if (r < 0)
		return r;
	f.d->ino = 0;
	if (f.prev)
		f.prev->len += f.d->len;
	block_meta(fs, f.block);
	inode_get(fs, dir)->entries--;
	inode_touch(fs, dir);
	return 0;
}

/* --- operations --- */

static void stamp_dir(struct fs *fs, uint32_t dir)
{
	struct dinode *di = inode_get(fs, dir);

	di->mtime = di->ctime = fs_now(fs);
	inode_change(fs, dir);
}

/* Room for an entry and what it may need, and whether the name is free. */
static int begin_new(struct fs *fs, uint32_t dir, const char *name)
{
	uint32_t there;
	int r = dir_find(fs, dir, name, &there);

	if (r == 0)
		return -EEXIST;
	if (r != -ENOENT)
		return r;
	return inode_get(fs, dir)->n_link == 0 ? -ENOENT : fs_begin(fs, 4);
}

static int enter(struct fs *fs, uint32_t dir, const char *name, uint32_t ino, bool link)
{
	struct name_change c = { .add = true, .link = link, .dir = dir, .ino = ino };
	mode_t mode = inode_get(fs, ino)->mode;
	int r = dir_insert(fs, dir, name, ino, mode);

	if (r < 0)
		return r;
	if (S_ISDIR(mode))
		inode_get(fs, dir)->n_link++;
	stamp_dir(fs, dir);
	c.name = xstrdup(name);
	log_name_added(fs, &c);
	return 0;
}

static int make(struct fs *fs, uint32_t dir, const char *name, mode_t mode, struct owner owner,
		uint32_t *out)
{
	int r = begin_new(fs, dir, name);

	if (r == 0)
		r = inode_alloc(fs, dir, mode, owner.uid, owner.gid, out);
	if (r < 0)
		return r;
	r = enter(fs, dir, name, *out, false);
	if (r < 0) {
		*inode_get(fs, *out) = (struct dinode){ 0 };
		fs->mi[*out] = (struct minode){ 0 };
	}
	return r;
}

int dir_make(struct fs *fs, uint32_t dir, const char *name, mode_t mode, dev_t rdev,
	     struct owner owner, uint32_t *out)
{
	int r = make(fs, dir, name, mode, owner, out);

	if (r == 0)
		inode_get(fs, *out)->rdev = S_ISCHR(mode) || S_ISBLK(mode) ? (uint32_t)rdev : 0;
	return r;
}

int dir_symlink(struct fs *fs, uint32_t dir, const char *name, const char *target,
		struct owner owner, uint32_t *out)
{
	size_t len = strlen(target);
	struct dinode *di;
	int r;

	if (len >= BLOCK_BYTES)
		return -ENAMETOOLONG;
	r = make(fs, dir, name, S_IFLNK | 0777, owner, out);
	if (r < 0)
		return r;
	di = inode_get(fs, *out);
	di->size = len;
	if (len <= sizeof(di->target)) {
		memcpy(di->target, target, len);
		return 0;
	}
	return file_put_small(fs, *out, target, len);
}

int dir_link(struct fs *fs, uint32_t ino, uint32_t dir, const char *name)
{
	struct dinode *di = inode_get(fs, ino);
	int r;

	if (S_ISDIR(di->mode))
		return -EPERM;
	if (di->n_link == 0)
		return -ENOENT;
	r = begin_new(fs, dir, name);
	if (r == 0)
		r = enter(fs, dir, name, ino, true);
	if (r < 0)
		return r;
	di->n_link++;
	di->ctime = fs_now(fs);
	fs->mi[ino].linked = true;
	inode_change(fs, ino);
	return 0;
}

/* One name less. The log cannot say that an inode is gone: the next fsync is a commit. */
static void lose_name(struct fs *fs, uint32_t dir, uint32_t ino)
{
	struct dinode *di = inode_get(fs, ino);

	if (S_ISDIR(di->mode)) {
		di->n_link = 0;
		inode_get(fs, dir)->n_link--;
	} else {
		di->n_link--;
	}
	di->ctime = fs_now(fs);
	inode_change(fs, ino);
	if (di->n_link == 0)
		fs->full_only = true;
}

static int remove_name(struct fs *fs, uint32_t dir, const char *name, uint32_t ino, bool rename)
{
	struct name_change c = { .rename = rename, .dir = dir, .ino = ino };
	int r = dir_delete(fs, dir, name);

	if (r < 0)
		return r;
	stamp_dir(fs, dir);
	c.name = xstrdup(name);
	log_name_removed(fs, &c);
	return 0;
}

static int remove_entry(struct fs *fs, uint32_t dir, const char *name, bool want_dir)
{
	const struct dinode *di;
	uint32_t ino;
	int r = dir_find(fs, dir, name, &ino);

	if (r < 0)
		return r;
	di = inode_get(fs, ino);
	if (want_dir && !S_ISDIR(di->mode))
		return -ENOTDIR;
	if (!want_dir && S_ISDIR(di->mode))
		return -EISDIR;
	if (want_dir && di->entries > 0)
		return -ENOTEMPTY;
	r = fs_begin(fs, 0);
	if (r == 0)
		r = remove_name(fs, dir, name, ino, false);
	if (r < 0)
		return r;
	lose_name(fs, dir, ino);
	return inode_drop(fs, ino);
}

int dir_unlink(struct fs *fs, uint32_t dir, const char *name)
{
	return remove_entry(fs, dir, name, false);
}

int dir_rmdir(struct fs *fs, uint32_t dir, const char *name)
{
	return remove_entry(fs, dir, name, true);
}

/* Points an entry at another inode; both are there. */
static int retarget(struct fs *fs, uint32_t dir, const char *name, uint32_t ino)
{
	struct found f;
	int r = find(fs, dir, name, &f);

	if (r < 0)
		return r;
	f.d->ino = ino;
	f.d->type = (uint8_t)((inode_get(fs, ino)->mode & S_IFMT) >> 12);
	block_meta(fs, f.block);
	stamp_dir(fs, dir);
	return 0;
}

static void move_dir(struct fs *fs, uint32_t ino, uint32_t from, uint32_t to)
{
	if (!S_ISDIR(inode_get(fs, ino)->mode))
		return;
	inode_get(fs, from)->n_link--;
	inode_get(fs, to)->n_link++;
	inode_get(fs, ino)->parent = to;
}

static int exchange(struct fs *fs, uint32_t dir, const char *name, uint32_t ino, uint32_t new_dir,
		    const char *new_name, uint32_t new_ino)
{
	int r = fs_begin(fs, 0);

	if (r == 0)
		r = retarget(fs, dir, name, new_ino);
	if (r == 0)
		r = retarget(fs, new_dir, new_name, ino);
	if (r < 0)
		return r;
	move_dir(fs, ino, dir, new_dir);
	move_dir(fs, new_ino, new_dir, dir);
	inode_get(fs, ino)->ctime = inode_get(fs, new_ino)->ctime = fs_now(fs);
	inode_change(fs, ino);
	inode_change(fs, new_ino);
	fs->full_only = true;
	return 0;
}

static int may_replace(struct fs *fs, uint32_t ino, uint32_t victim)
{
	bool is_dir = S_ISDIR(inode_get(fs, ino)->mode);
	const struct dinode *di = inode_get(fs, victim);

	if (is_dir != S_ISDIR(di->mode))
		return is_dir ? -ENOTDIR : -EISDIR;
	return is_dir && di->entries > 0 ? -ENOTEMPTY : 0;
}

/* A directory does not go below itself. */
static bool is_below(struct fs *fs, uint32_t dir, uint32_t top)
{
	for (uint32_t n = 0; dir != ROOT_INO && n < fs->n_inodes; n++) {
		if (dir == top)
			return true;
		if (!inode_live(fs, dir))
			break;
		dir = inode_get(fs, dir)->parent;
	}
	return dir == top;
}

struct rename {
	uint32_t dir, new_dir, ino, victim; /* victim 0: none */
	const char *name, *new_name;
};

static int rename_names(struct fs *fs, const struct rename *rn)
{
	struct name_change c = { .add = true,
				 .rename = true,
				 .cross = rn->dir != rn->new_dir,
				 .over = rn->victim != 0,
				 .dir = rn->new_dir,
				 .ino = rn->ino };
	int r = 0;

	if (rn->victim)
		r = remove_name(fs, rn->new_dir, rn->new_name, rn->victim, false);
	if (r == 0)
		r = dir_insert(fs, rn->new_dir, rn->new_name, rn->ino,
			       inode_get(fs, rn->ino)->mode);
	if (r < 0)
		return r;
	c.name = xstrdup(rn->new_name);
	log_name_added(fs, &c);
	stamp_dir(fs, rn->new_dir);
	return remove_name(fs, rn->dir, rn->name, rn->ino, true);
}

static int rename_one(struct fs *fs, const struct rename *rn)
{
	struct dinode *di = inode_get(fs, rn->ino);
	bool full_only;
	int r = fs_begin(fs, 4);

	if (r == 0)
		r = rename_names(fs, rn);
	if (r < 0)
		return r;
	move_dir(fs, rn->ino, rn->dir, rn->new_dir);
	di->ctime = fs_now(fs);
	inode_change(fs, rn->ino);
	if (S_ISDIR(di->mode))
		fs->full_only = true;
	if (!rn->victim)
		return 0;
	full_only = fs->full_only;
	lose_name(fs, rn->new_dir, rn->victim);
	if (bug(BUG_RENAME_OVER))
		fs->full_only = full_only;
	return inode_drop(fs, rn->victim);
}

int dir_rename(struct fs *fs, uint32_t dir, const char *name, uint32_t new_dir,
	       const char *new_name, unsigned flags)
{
	struct rename rn = { .dir = dir, .new_dir = new_dir, .name = name, .new_name = new_name };
	int r = dir_find(fs, dir, name, &rn.ino);

	if (r < 0)
		return r;
	if (flags & ~(unsigned)(RENAME_NOREPLACE | RENAME_EXCHANGE) ||
	    flags == (RENAME_NOREPLACE | RENAME_EXCHANGE))
		return -EINVAL;
	r = dir_find(fs, new_dir, new_name, &rn.victim);
	if (r == -ENOENT && !(flags & RENAME_EXCHANGE))
		r = inode_get(fs, new_dir)->n_link == 0 ? -ENOENT : 0;
	if (r < 0)
		return r;
	if (rn.victim && flags & RENAME_NOREPLACE)
		return -EEXIST;
	if (rn.victim == rn.ino)
		return 0;
	if (S_ISDIR(inode_get(fs, rn.ino)->mode) && is_below(fs, new_dir, rn.ino))
		return -EINVAL;
	if (flags & RENAME_EXCHANGE)
		return exchange(fs, dir, name, rn.ino, new_dir, new_name, rn.victim);
	r = rn.victim ? may_replace(fs, rn.ino, rn.victim) : 0;
	return r < 0 ? r : rename_one(fs, &rn);
}
