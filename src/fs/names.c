/* SPDX-License-Identifier: MIT */
/*
 * names.c - adds, removes and moves names in a state: the directories' entries, link counts, times,
 * and the hashes of paths. Callers check permissions (vfs_name.c, vfs_rename.c).
 */
#include "fs/reffs_impl.h"

uint64_t name_find(const struct reffs *r, uint64_t dir, const char *name, size_t len)
{
	const struct reffs_inode *d = inode_get(r, dir);
	const struct map_node *leaf;

	assert(d->type == TREE_DIR);
	leaf = map_find(d->map, name, len);
	return leaf ? container_of(leaf, struct dirent_node, node)->ino : 0;
}

/* Returns a directory for a change of its names. */
static struct reffs_inode *change_dir(struct reffs *r, uint64_t dir)
{
	struct reffs_inode *d = inode_own(r, dir);

	inode_touch(r, d, TOUCH_MTIME | TOUCH_CTIME);
	return d;
}

static void entry_add(struct reffs *r, uint64_t dir, const char *name, uint64_t ino)
{
	map_insert(&change_dir(r, dir)->map, &dirent_node_new(name, strlen(name), ino)->node);
}

static void entry_remove(struct reffs *r, uint64_t dir, const char *name)
{
	map_remove(&change_dir(r, dir)->map, name, strlen(name));
}

static void entry_set(struct reffs *r, struct entry_place at, uint64_t ino)
{
	struct map_node *leaf = map_own(&change_dir(r, at.dir)->map, at.name, strlen(at.name));

	container_of(leaf, struct dirent_node, node)->ino = ino;
}

static struct hash128 hash_of(const struct reffs *r, struct entry_place at)
{
	return path_hash(inode_get(r, at.dir)->names, at.name, strlen(at.name));
}

void name_new(struct reffs *r, uint64_t dir, const char *name, struct reffs_inode *inode)
{
	entry_add(r, dir, name, inode->ino); /* and makes the state our own */
	inode->nlink = 1;
	inode->names = hash_of(r, (struct entry_place){ dir, name });
	if (inode->type == TREE_DIR) {
		inode->nlink = 2;
		inode->parent = dir;
		inode_own(r, dir)->nlink++;
	}
	inode_add(r, inode);
}

void name_link(struct reffs *r, uint64_t dir, const char *name, uint64_t ino)
{
	if (!inode_get(r, ino)->nlink) { /* an inode that O_TMPFILE made */
		struct reffs_inode *orphan = inode_take_orphan(r, ino);

		orphan->ctime = r->now;
		orphan->linkable = false; /* only one name can be given */
		name_new(r, dir, name, orphan);
		return;
	}
	struct reffs_inode *i = inode_edit(r, ino);
	assert(i->type != TREE_DIR);
	i->nlink++;
	i->ctime = r->now;
	i->names = hash_add(i->names, hash_of(r, (struct entry_place){ dir, name }));
	inode_commit(r, i);
	entry_add(r, dir, name, ino);
}

void name_unlink(struct reffs *r, uint64_t dir, const char *name)
{
	uint64_t ino = name_find(r, dir, name, strlen(name));
	struct reffs_inode *i = inode_edit(r, ino);

	assert(ino != REFFS_ROOT_INO && (i->type != TREE_DIR || !i->map));
	entry_remove(r, dir, name);
	i->names = hash_sub(i->names, hash_of(r, (struct entry_place){ dir, name }));
	i->ctime = r->now;
	i->nlink--;
	if (i->type == TREE_DIR) {
		i->nlink = 0;
		inode_own(r, dir)->nlink--;
	}
	if (i->nlink)
		inode_commit(r, i);
	else
		inode_remove(r, i);
}

/* A change of one path of an inode. */
struct moved {
	uint64_t ino;
	struct hash128 from, to;
};

struct moving {
	struct vec_of(struct moved) left;
	struct moved dir; /* the directory whose names are visited */
};

static int move_entry(void *ctx, const struct map_node *leaf)
{
	struct moving *m = ctx;
	const struct dirent_node *d = container_of(leaf, struct dirent_node, node);
	size_t len = d->node.bits;

	vec_push(&m->left, (struct moved){ d->ino, path_hash(m->dir.from, d->name, len),
					   path_hash(m->dir.to, d->name, len) });
	return 0;
}

/* Changes one path of an inode, and all paths below it, however deep. */
static void change_path(struct reffs *r, uint64_t ino, struct hash128 from, struct hash128 to)
{
	struct moving m = { .dir = { ino, from, to } };

	for (;;) {
		struct reffs_inode *i = inode_edit(r, m.dir.ino);

		i->names = hash_add(hash_sub(i->names, m.dir.from), m.dir.to);
		inode_commit(r, i);
		if (i->type == TREE_DIR)
			map_each(i->map, move_entry, &m);
		if (!m.left.n)
			break;
		m.dir = m.left.v[--m.left.n];
	}
	vec_release(&m.left);
}

/* Updates link counts: a directory counts as a link of its parent. */
static void change_parent(struct reffs *r, uint64_t ino, uint64_t from, uint64_t to)
{
	if (from == to || inode_get(r, ino)->type != TREE_DIR)
		return;
	inode_own(r, ino)->parent = to;
	inode_own(r, from)->nlink--;
	inode_own(r, to)->nlink++;
}

void name_move(struct reffs *r, struct entry_place from, struct entry_place to)
{
	uint64_t ino = name_find(r, from.dir, from.name, strlen(from.name));

	change_path(r, ino, hash_of(r, from), hash_of(r, to));
	entry_remove(r, from.dir, from.name);
	entry_add(r, to.dir, to.name, ino);
	change_parent(r, ino, from.dir, to.dir);
	inode_own(r, ino)->ctime = r->now;
}

void name_exchange(struct reffs *r, struct entry_place a, struct entry_place b)
{
	uint64_t at_a = name_find(r, a.dir, a.name, strlen(a.name));
	uint64_t at_b = name_find(r, b.dir, b.name, strlen(b.name));
	struct hash128 hash_a = hash_of(r, a), hash_b = hash_of(r, b);

	assert(at_a != at_b);
	change_path(r, at_a, hash_a, hash_b);
	change_path(r, at_b, hash_b, hash_a);
	entry_set(r, a, at_b);
	entry_set(r, b, at_a);
	change_parent(r, at_a, a.dir, b.dir);
	change_parent(r, at_b, b.dir, a.dir);
	inode_own(r, at_a)->ctime = r->now;
	inode_own(r, at_b)->ctime = r->now;
}

bool name_is_below(const struct reffs *r, uint64_t dir, uint64_t above)
{
	while (dir != above) {
		uint64_t parent = inode_get(r, dir)->parent;

		if (parent == dir)
			return false;
		dir = parent;
	}
	return true;
}
