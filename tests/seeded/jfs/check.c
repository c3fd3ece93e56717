/* SPDX-License-Identifier: MIT */
/* check.c - the whole file system against itself, and what recovery counts anew. */
#include "seedfs.h"

#include <errno.h>
#include <stdarg.h>

struct count {
	struct fs *fs;
	uint8_t *used;	 /* by block: how often */
	uint32_t *names; /* by inode: entries that point to it */
	uint32_t *dirs;	 /* by inode: of those in it, how many are directories */
	uint32_t ino;	 /* the one being looked at */
	uint32_t n;	 /* its blocks */
	FILE *out;
	unsigned bad;
};

static void count_init(struct count *c, struct fs *fs, FILE *out)
{
	*c = (struct count){ .fs = fs, .out = out };
	c->used = xcalloc(fs->sb.n_blocks, 1);
	c->names = xcalloc(fs->n_inodes, sizeof(*c->names));
	c->dirs = xcalloc(fs->n_inodes, sizeof(*c->dirs));
}

static void count_release(struct count *c)
{
	free(c->used);
	free(c->names);
	free(c->dirs);
}

static void printf_like(2, 3) wrong(struct count *c, const char *fmt, ...)
{
	va_list ap;

	c->bad++;
	if (!c->out)
		return;
	va_start(ap, fmt);
	vfprintf(c->out, fmt, ap);
	va_end(ap);
	fputc('\n', c->out);
}

static int use_block(void *ctx, uint32_t block, bool meta)
{
	struct count *c = ctx;

	(void)meta;
	if (block < c->fs->sb.data || block >= c->fs->sb.n_blocks)
		return -EUCLEAN;
	c->n++;
	if (c->used[block] < UINT8_MAX)
		c->used[block]++;
	return 0;
}

static int no_blocks(struct count *c)
{
	snprintf(c->fs->why, sizeof(c->fs->why), "inode %u has blocks outside the disk", c->ino);
	return -EUCLEAN;
}

static int rebuild(struct count *c)
{
	struct fs *fs = c->fs;

	for (c->ino = ROOT_INO; c->ino < fs->n_inodes; c->ino++) {
		struct dinode *di = inode_live(fs, c->ino);

		c->n = 0;
		if (!di)
			continue;
		if (inode_each_block(fs, di, use_block, c) < 0)
			return no_blocks(c);
		if (di->blocks != c->n) {
			di->blocks = c->n;
			inode_touch(fs, c->ino);
		}
	}
	for (uint32_t b = fs->sb.data; b < fs->sb.n_blocks; b++) {
		block_mark(fs, b, c->used[b] > 0);
		if (c->used[b] == 0 && fs->state[b] & B_META) {
			fs->state[b] = 0;
			fs->n_meta--;
		}
	}
	return 0;
}

int check_rebuild_bitmap(struct fs *fs)
{
	struct count c;
	int r;

	count_init(&c, fs, NULL);
	r = rebuild(&c);
	count_release(&c);
	return r;
}

/* Who is named how often. */
static int count_names(struct count *c, uint32_t dir)
{
	struct dir_entry e = { 0 };
	uint32_t n = 0;
	int r;

	while ((r = dir_next(c->fs, dir, e.next, &e)) == 0) {
		const struct dinode *di = inode_live(c->fs, e.ino);

		n++;
		if (!di) {
			wrong(c, "directory %u: %s names inode %u, which is free", dir, e.name,
			      e.ino);
			continue;
		}
		c->names[e.ino]++;
		if ((di->mode & S_IFMT) != e.type)
			wrong(c, "directory %u: %s has the wrong type", dir, e.name);
		if (!S_ISDIR(di->mode))
			continue;
		c->dirs[dir]++;
		if (di->parent != dir)
			wrong(c, "directory %u: its parent is said to be %u, not %u", e.ino,
			      di->parent, dir);
	}
	if (r != -ENOENT)
		wrong(c, "directory %u is damaged", dir);
	else if (inode_get(c->fs, dir)->entries != n)
		wrong(c, "directory %u has %u entries, not %u", dir, n,
		      inode_get(c->fs, dir)->entries);
	return r == -ENOENT ? 0 : r;
}

static uint32_t links_wanted(const struct count *c, uint32_t ino)
{
	if (!S_ISDIR(inode_get(c->fs, ino)->mode))
		return c->names[ino];
	return ino == ROOT_INO || c->names[ino] ? 2 + c->dirs[ino] : 0;
}

static int recount_links(struct count *c)
{
	struct fs *fs = c->fs;

	for (uint32_t ino = ROOT_INO; ino < fs->n_inodes; ino++) {
		const struct dinode *di = inode_live(fs, ino);

		if (di && S_ISDIR(di->mode) && count_names(c, ino) < 0) {
			snprintf(fs->why, sizeof(fs->why), "directory %u is damaged", ino);
			return -EUCLEAN;
		}
	}
	for (uint32_t ino = ROOT_INO; ino < fs->n_inodes; ino++) {
		struct dinode *di = inode_live(fs, ino);

		if (!di || di->n_link == links_wanted(c, ino))
			continue;
		di->n_link = links_wanted(c, ino);
		inode_touch(fs, ino);
	}
	return 0;
}

int check_orphans(struct fs *fs, bool links, unsigned *n)
{
	struct count c;
	int r = 0;

	count_init(&c, fs, NULL);
	if (links)
		r = recount_links(&c);
	for (uint32_t ino = ROOT_INO; r == 0 && ino < fs->n_inodes; ino++) {
		struct dinode *di = inode_live(fs, ino);

		if (!di || di->n_link > 0)
			continue;
		*di = (struct dinode){ 0 };
		inode_touch(fs, ino);
		(*n)++;
	}
	if (r == 0 && (links || *n > 0))
		r = rebuild(&c);
	count_release(&c);
	return r;
}

static void check_inode(struct count *c, uint32_t ino)
{
	struct fs *fs = c->fs;
	const struct dinode *di = inode_live(fs, ino);

	if (!di)
		return;
	c->ino = ino;
	c->n = 0;
	if (inode_each_block(fs, di, use_block, c) < 0)
		wrong(c, "inode %u has blocks outside the disk", ino);
	else if (di->blocks != c->n)
		wrong(c, "inode %u has %u blocks, not %u", ino, c->n, di->blocks);
	if (di->xattr && (di->xattr < fs->sb.data || !block_get(fs, di->xattr) ||
			  !xattr_used(block_get(fs, di->xattr))))
		wrong(c, "inode %u has damaged attributes", ino);
	if (S_ISDIR(di->mode))
		(void)count_names(c, ino); /* says itself what is wrong */
	if (S_ISLNK(di->mode) && (di->size == 0 || di->size >= BLOCK_BYTES))
		wrong(c, "symbolic link %u has an impossible target", ino);
}

unsigned check_all(struct fs *fs, FILE *out)
{
	struct count c;
	unsigned bad;

	count_init(&c, fs, out);
	if (!inode_live(fs, ROOT_INO) || !S_ISDIR(inode_get(fs, ROOT_INO)->mode))
		wrong(&c, "there is no root directory");
	for (uint32_t ino = ROOT_INO; ino < fs->n_inodes; ino++)
		check_inode(&c, ino);
	for (uint32_t ino = ROOT_INO; ino < fs->n_inodes; ino++)
		if (inode_live(fs, ino) && inode_get(fs, ino)->n_link != links_wanted(&c, ino))
			wrong(&c, "inode %u has %u links, not %u", ino, links_wanted(&c, ino),
			      inode_get(fs, ino)->n_link);
	for (uint32_t b = fs->sb.data; b < fs->sb.n_blocks; b++) {
		if (c.used[b] > 1)
			wrong(&c, "block %u is used %u times", b, c.used[b]);
		if (block_used(fs, b) != (c.used[b] > 0))
			wrong(&c, "block %u is %s, the bitmap says otherwise", b,
			      c.used[b] ? "used" : "free");
	}
	bad = c.bad;
	count_release(&c);
	return bad;
}
