/* SPDX-License-Identifier: MIT */
/* ops.c - operations on names. Each stages what it changes, and commits it once. */
#include <errno.h>

#include "pmfs.h"

/* ---- paths ---- */

static struct name *find_name(struct node *dir, const char *name)
{
	for (size_t i = 0; i < dir->names.n; i++)
		if (streq(dir->names.v[i].text, name))
			return &dir->names.v[i];
	return NULL;
}

/* A path as its directory and the last name; the inode, if it is there. */
struct place {
	uint32_t dir;
	char name[NAME_LEN_MAX + 1];
	bool there;
	uint32_t ino;
};

static int look_up(struct pmfs *fs, const char *path, struct place *p)
{
	*p = (struct place){ .there = true };
	for (const char *at = path; *at;) {
		size_t len = strcspn(at, "/");

		if (len && !(len == 1 && *at == '.')) {
			if (len > NAME_LEN_MAX)
				return -ENAMETOOLONG;
			if (!p->there)
				return -ENOENT;
			if (fs->node[p->ino].in.type != INODE_DIR)
				return -ENOTDIR;
			p->dir = p->ino;
			memcpy(p->name, at, len);
			p->name[len] = '\0';
			struct name *n = find_name(&fs->node[p->dir], p->name);

			p->there = n;
			p->ino = n ? n->ino : 0;
		}
		at += len + (at[len] == '/');
	}
	return 0;
}

int path_find(struct pmfs *fs, const char *path, uint32_t *ino)
{
	struct place p;
	int rc = look_up(fs, path, &p);

	if (!rc && !p.there)
		rc = -ENOENT;
	if (!rc)
		*ino = p.ino;
	return rc;
}

/* ---- what is known of it in ordinary memory ---- */

static void index_name(struct pmfs *fs, uint32_t dir, enum entry_type type, const char *name,
		       uint32_t ino)
{
	struct entry e = { .type = (uint8_t)type, .ino = ino, .name_len = (uint16_t)strlen(name) };

	memcpy(e.name, name, e.name_len);
	index_apply(&fs->node[dir], &e);
}

static void free_blocks(struct pmfs *fs, const struct node *n)
{
	struct log_head head;

	for (uint32_t i = 0; i < FILE_BLOCKS; i++)
		if (n->map[i])
			fs->in_use[n->map[i]] = false;
	if (!n->in.head)
		return;
	for (uint64_t b = n->in.head / BLOCK;; b = head.next) {
		fs->in_use[b] = false;
		if (b == (n->in.tail - 1) / BLOCK)
			break;
		pm_load(&fs->m, b * BLOCK, &head, sizeof(head));
	}
}

static void write_free(struct pmfs *fs, uint32_t ino)
{
	struct inode in = { .generation = fs->node[ino].in.generation };

	inode_write(fs, ino, &in, true);
}

/* No name leads to it any more. */
static void let_go(struct pmfs *fs, uint32_t ino)
{
	struct node *n = &fs->node[ino];

	free_blocks(fs, n);
	memset(n->map, 0, sizeof(n->map));
	n->size = 0;
	vec_clear(&n->names);
	n->used = false;
	if (n->in.type != INODE_FREE)
		write_free(fs, ino);
}

/* ---- making ---- */

static void put_count(struct pmfs *fs, uint32_t ino)
{
	uint64_t at = BLOCK_SUPER * BLOCK + offsetof(struct super, inodes);

	if (ino < fs->inodes)
		return;
	fs->inodes = ino + 1;
	pm_store8(&fs->m, at, fs->inodes);
	pm_persist(&fs->m, at, 8);
}

static int new_inode(struct pmfs *fs, enum inode_type type, unsigned mode, uint32_t *out)
{
	uint32_t ino = 1;

	while (ino < N_INODES && fs->node[ino].used)
		ino++;
	if (ino == N_INODES)
		return -ENOSPC;
	struct inode in = { .type = (uint8_t)type,
			    .mode = (uint16_t)mode,
			    .nlink = 1,
			    .generation = fs->node[ino].in.generation + 1 };

	if (!has_bug(fs, BUG_COUNT_LATE))
		put_count(fs, ino);
	inode_write(fs, ino, &in, true);
	fs->node[ino].used = true;
	fs->node[ino].size = 0;
	memset(fs->node[ino].map, 0, sizeof(fs->node[ino].map));
	*out = ino;
	return 0;
}

/* I5: all of it is there before its name is. */
static int make(struct pmfs *fs, const char *path, enum inode_type type, unsigned mode,
		const char *target)
{
	struct change c = { .fs = fs };
	struct place p;
	uint32_t ino;
	int rc = look_up(fs, path, &p);

	if (!rc && p.there)
		rc = -EEXIST;
	if (!rc)
		rc = new_inode(fs, type, mode, &ino);
	if (rc)
		return rc;
	if (target)
		rc = file_write(fs, ino, 0, target, strlen(target), true);
	if (!rc)
		rc = change_name(&c, p.dir, ENTRY_ADD, p.name, ino);
	if (rc) {
		let_go(fs, ino);
		return rc;
	}
	change_commit(&c);
	put_count(fs, ino);
	index_name(fs, p.dir, ENTRY_ADD, p.name, ino);
	return 0;
}

int pmfs_creat(struct pmfs *fs, const char *path)
{
	int rc = make(fs, path, INODE_FILE, 0644, NULL);

	return rc == -EEXIST ? 0 : rc;
}

int pmfs_mkdir(struct pmfs *fs, const char *path)
{
	return make(fs, path, INODE_DIR, 0755, NULL);
}

int pmfs_symlink(struct pmfs *fs, const char *target, const char *path)
{
	return make(fs, path, INODE_SYMLINK, 0777, target);
}

int pmfs_link(struct pmfs *fs, const char *old, const char *path)
{
	struct change c = { .fs = fs };
	struct place p;
	uint32_t ino;
	int rc = path_find(fs, old, &ino);

	if (!rc)
		rc = look_up(fs, path, &p);
	if (!rc && p.there)
		rc = -EEXIST;
	if (!rc && fs->node[ino].in.type == INODE_DIR)
		rc = -EPERM;
	if (rc)
		return rc;
	change_inode(&c, ino)->nlink++;
	if (has_bug(fs, BUG_LINK_COUNT_FIRST)) {
		change_commit(&c);
		c.n = 0;
	}
	rc = change_name(&c, p.dir, ENTRY_ADD, p.name, ino);
	if (rc)
		return rc;
	change_commit(&c);
	index_name(fs, p.dir, ENTRY_ADD, p.name, ino);
	return 0;
}

/* ---- removing ---- */

/* One name less; true if it was the last. */
static bool one_less(struct change *c, uint32_t ino)
{
	const struct inode *in = &c->fs->node[ino].in;

	if (in->type == INODE_DIR || in->nlink <= 1)
		return true;
	change_inode(c, ino)->nlink--;
	return false;
}

static int remove_name(struct pmfs *fs, const struct place *p)
{
	struct change c = { .fs = fs };
	bool last = one_less(&c, p->ino);
	int rc = change_name(&c, p->dir, ENTRY_DEL, p->name, p->ino);

	if (rc)
		return rc;
	struct inode was = fs->node[p->ino].in;

	if (last && has_bug(fs, BUG_UNLINK_INODE_FIRST))
		write_free(fs, p->ino);
	change_commit(&c);
	index_name(fs, p->dir, ENTRY_DEL, p->name, p->ino);
	if (last) {
		fs->node[p->ino].in.head = was.head;
		fs->node[p->ino].in.tail = was.tail;
		let_go(fs, p->ino);
	}
	return 0;
}

int pmfs_unlink(struct pmfs *fs, const char *path)
{
	struct place p;
	int rc = look_up(fs, path, &p);

	if (!rc && !p.there)
		rc = -ENOENT;
	if (!rc && fs->node[p.ino].in.type == INODE_DIR)
		rc = -EISDIR;
	return rc ? rc : remove_name(fs, &p);
}

int pmfs_rmdir(struct pmfs *fs, const char *path)
{
	struct place p;
	int rc = look_up(fs, path, &p);

	if (!rc && !p.there)
		rc = -ENOENT;
	if (!rc && (!p.ino || fs->node[p.ino].in.type != INODE_DIR))
		rc = p.ino ? -ENOTDIR : -EBUSY;
	if (!rc && fs->node[p.ino].names.n)
		rc = -ENOTEMPTY;
	return rc ? rc : remove_name(fs, &p);
}

/* ---- rename ---- */

static bool is_below(struct pmfs *fs, uint32_t ino, uint32_t top)
{
	const struct node *n = &fs->node[top];

	if (ino == top)
		return true;
	for (size_t i = 0; n->in.type == INODE_DIR && i < n->names.n; i++)
		if (is_below(fs, ino, n->names.v[i].ino))
			return true;
	return false;
}

static int may_rename(struct pmfs *fs, const struct place *from, const struct place *to)
{
	bool dir = fs->node[from->ino].in.type == INODE_DIR;

	if (!from->ino)
		return -EBUSY;
	if (dir && is_below(fs, to->dir, from->ino))
		return -EINVAL;
	if (!to->there)
		return 0;
	bool over_dir = fs->node[to->ino].in.type == INODE_DIR;

	if (dir != over_dir)
		return dir ? -ENOTDIR : -EISDIR;
	return over_dir && fs->node[to->ino].names.n ? -ENOTEMPTY : 0;
}

static int stage_rename(struct pmfs *fs, struct change *c, const struct place *from,
			const struct place *to)
{
	bool add_first = has_bug(fs, BUG_RENAME_ADD_FIRST);
	bool split = add_first || has_bug(fs, BUG_RENAME_DEL_FIRST);

	for (int i = 0; i < 2; i++) {
		bool add = add_first ? !i : i;
		const struct place *p = add ? to : from;
		int rc = change_name(c, p->dir, add ? ENTRY_ADD : ENTRY_DEL, p->name, from->ino);

		if (rc)
			return rc;
		if (split && !i) {
			change_commit(c);
			c->n = 0;
		}
	}
	return 0;
}

int pmfs_rename(struct pmfs *fs, const char *old, const char *path)
{
	struct change c = { .fs = fs };
	struct place from, to;
	bool last = false;
	int rc = look_up(fs, old, &from);

	if (!rc && !from.there)
		rc = -ENOENT;
	if (!rc)
		rc = look_up(fs, path, &to);
	if (!rc && to.there && to.ino == from.ino)
		return 0;
	if (!rc)
		rc = may_rename(fs, &from, &to);
	if (!rc)
		rc = stage_rename(fs, &c, &from, &to);
	if (rc)
		return rc;
	if (to.there)
		last = one_less(&c, to.ino);
	change_commit(&c);
	index_name(fs, from.dir, ENTRY_DEL, from.name, from.ino);
	index_name(fs, to.dir, ENTRY_ADD, to.name, from.ino);
	if (last)
		let_go(fs, to.ino);
	return 0;
}

int pmfs_chmod(struct pmfs *fs, const char *path, unsigned mode)
{
	struct change c = { .fs = fs };
	uint32_t ino;
	int rc = path_find(fs, path, &ino);

	if (rc)
		return rc;
	change_inode(&c, ino)->mode = (uint16_t)(mode & 07777);
	change_commit(&c);
	return 0;
}
