/* SPDX-License-Identifier: MIT */
/*
 * xattr.c - extended attributes: one block an inode.
 *
 *	0	magic, 4 bytes
 *	4	bytes in use, these 8 included, 4 bytes
 *	8	attributes: length of the name, length of the value (2 bytes each), name, value
 */
#include "seedfs.h"

#include <errno.h>
#include <sys/xattr.h>

#define XATTR_MAGIC 0x52545458U
#define HEAD	    8
#define ITEM_HEAD   4

struct xattr_head {
	uint32_t magic, used;
};

struct item {
	size_t at, len; /* of all of it */
	size_t name_len, value_len;
	const char *name, *value;
};

size_t xattr_used(const unsigned char *block)
{
	struct xattr_head h;

	memcpy(&h, block, sizeof(h));
	return h.magic == XATTR_MAGIC && h.used >= HEAD && h.used <= BLOCK_BYTES ? h.used : 0;
}

static void set_used(unsigned char *block, size_t used)
{
	struct xattr_head h = { XATTR_MAGIC, (uint32_t)used };

	memcpy(block, &h, sizeof(h));
	memset(block + used, 0, BLOCK_BYTES - used);
}

static bool item_at(const unsigned char *block, size_t at, struct item *out)
{
	size_t used = xattr_used(block);
	uint16_t lens[2];

	if (at + ITEM_HEAD > used)
		return false;
	memcpy(lens, block + at, sizeof(lens));
	*out = (struct item){ .at = at, .name_len = lens[0], .value_len = lens[1] };
	out->len = ITEM_HEAD + out->name_len + out->value_len;
	out->name = (const char *)block + at + ITEM_HEAD;
	out->value = out->name + out->name_len;
	return at + out->len <= used;
}

static bool item_find(const unsigned char *block, const char *name, struct item *out)
{
	for (size_t at = HEAD; item_at(block, at, out); at += out->len)
		if (out->name_len == strlen(name) && memcmp(out->name, name, out->name_len) == 0)
			return true;
	return false;
}

static void item_remove(unsigned char *block, const struct item *it)
{
	size_t used = xattr_used(block);

	memmove(block + it->at, block + it->at + it->len, used - it->at - it->len);
	set_used(block, used - it->len);
}

/* The inode's attribute block; NULL and 0 if it has none. */
static int get_block(struct fs *fs, uint32_t ino, unsigned char **out)
{
	uint32_t block = inode_get(fs, ino)->xattr;

	*out = NULL;
	if (block == 0)
		return 0;
	if (block >= fs->sb.data)
		*out = block_get(fs, block);
	return *out && xattr_used(*out) ? 0 : -EIO;
}

static int make_block(struct fs *fs, uint32_t ino, unsigned char **out)
{
	struct dinode *di = inode_get(fs, ino);
	int r = block_alloc(fs, &di->xattr);

	if (r < 0)
		return r;
	di->blocks++;
	*out = fs->buf[di->xattr];
	set_used(*out, HEAD);
	return 0;
}

int xattr_set(struct fs *fs, uint32_t ino, const char *name, const void *value, size_t len,
	      int flags)
{
	size_t name_len = strlen(name), used;
	uint16_t lens[2] = { (uint16_t)name_len, (uint16_t)len };
	struct item it = { 0 };
	unsigned char *b;
	bool there;
	int r = get_block(fs, ino, &b);

	if (r < 0)
		return r;
	there = b && item_find(b, name, &it);
	if (there && flags & XATTR_CREATE)
		return -EEXIST;
	if (!there && flags & XATTR_REPLACE)
		return -ENODATA;
	used = b ? xattr_used(b) - (there ? it.len : 0) : HEAD;
	if (name_len == 0 || name_len > NAME_MAX_LEN)
		return -ERANGE;
	if (len > BLOCK_BYTES || used + ITEM_HEAD + name_len + len > BLOCK_BYTES)
		return -ENOSPC;
	r = fs_begin(fs, b ? 0 : 1);
	if (r == 0 && !b)
		r = make_block(fs, ino, &b);
	if (r < 0)
		return r;
	if (there)
		item_remove(b, &it);
	set_used(b, used + ITEM_HEAD + name_len + len);
	memcpy(b + used, lens, sizeof(lens));
	memcpy(b + used + ITEM_HEAD, name, name_len);
	memcpy(b + used + ITEM_HEAD + name_len, value, len);
	block_meta(fs, inode_get(fs, ino)->xattr);
	inode_get(fs, ino)->ctime = fs_now(fs);
	if (bug(BUG_XATTR_LOST))
		inode_touch(fs, ino);
	else
		inode_change(fs, ino);
	return 0;
}

ssize_t xattr_get(struct fs *fs, uint32_t ino, const char *name, void *value, size_t len)
{
	unsigned char *b;
	struct item it;
	int r = get_block(fs, ino, &b);

	if (r < 0)
		return r;
	if (!b || !item_find(b, name, &it))
		return -ENODATA;
	if (len == 0)
		return (ssize_t)it.value_len;
	if (len < it.value_len)
		return -ERANGE;
	memcpy(value, it.value, it.value_len);
	return (ssize_t)it.value_len;
}

ssize_t xattr_list(struct fs *fs, uint32_t ino, char *list, size_t len)
{
	unsigned char *b;
	struct item it;
	size_t n = 0;
	int r = get_block(fs, ino, &b);

	if (r < 0)
		return r;
	for (size_t at = HEAD; b && item_at(b, at, &it); at += it.len) {
		if (len > 0 && n + it.name_len + 1 > len)
			return -ERANGE;
		if (len > 0) {
			memcpy(list + n, it.name, it.name_len);
			list[n + it.name_len] = '\0';
		}
		n += it.name_len + 1;
	}
	return (ssize_t)n;
}

int xattr_remove(struct fs *fs, uint32_t ino, const char *name)
{
	struct dinode *di = inode_get(fs, ino);
	unsigned char *b;
	struct item it;
	int r = get_block(fs, ino, &b);

	if (r < 0)
		return r;
	if (!b || !item_find(b, name, &it))
		return -ENODATA;
	r = fs_begin(fs, 0);
	if (r < 0)
		return r;
	item_remove(b, &it);
	if (xattr_used(b) == HEAD) {
		block_free(fs, di->xattr);
		di->xattr = 0;
		di->blocks--;
	} else {
		block_meta(fs, di->xattr);
	}
	di->ctime = fs_now(fs);
	if (bug(BUG_XATTR_BACK))
		inode_touch(fs, ino);
	else
		inode_change(fs, ino);
	return 0;
}
