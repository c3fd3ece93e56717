/* SPDX-License-Identifier: MIT */
/*
 * vfs_dir.c - reads directories. Names come in the order of a hash of 62 bits, as in ext4: the
 * cookie of a name is its hash. Two names of one directory with the same hash would have the same
 * cookie; with a million names, that happens in one of four million directories.
 */
#include <errno.h>

#include "fs/reffs_impl.h"

enum { COOKIE_DOT = 1, COOKIE_DOTDOT = 2, COOKIE_FIRST = 3 };

struct vfs_dir_slot {
	uint64_t cookie;
	const struct dirent_node *entry;
};

static uint64_t cookie_of(const char *name)
{
	return (hash64(name, strlen(name)) >> 2) + COOKIE_FIRST;
}

static int add_slot(void *ctx, const struct map_node *leaf)
{
	struct vfs_dir *d = ctx;
	const struct dirent_node *e = container_of(leaf, struct dirent_node, node);

	if (!(d->n & (d->n - 1))) /* 0, or a power of 2 */
		d->v = xrealloc(d->v, max(d->n * 2, (size_t)16) * sizeof(*d->v));
	d->v[d->n++] = (struct vfs_dir_slot){ cookie_of(e->name), e };
	return 0;
}

DEFINE_ORDER(cmp_slot, struct vfs_dir_slot, order(a->cookie, b->cookie))

/* Updates the list. Kept names do not change (M1): with the same map, the names are the same. */
static void refresh(struct vfs_dir *d, struct map_node *map)
{
	if (map == d->map)
		return;
	vfs_dir_release(d);
	d->map = map_ref(map);
	map_each(map, add_slot, d);
	vec_sort(d, cmp_slot);
}

void vfs_dir_release(struct vfs_dir *d)
{
	map_unref(d->map);
	free(d->v);
	*d = (struct vfs_dir){ 0 };
}

int vfs_readdir(struct reffs *r, uint64_t ino, struct vfs_dir *d, uint64_t cookie,
		int (*entry)(void *ctx, const struct vfs_dirent *e), void *ctx)
{
	const struct reffs_inode *dir = inode_find(r, ino);
	int rc = 0;

	if (!dir)
		return -ESTALE;
	if (dir->type != TREE_DIR)
		return -ENOTDIR;
	if (!dir->nlink)
		return -ENOENT;
	refresh(d, dir->map);
	uint64_t parent = dir->parent;
	vfs_note_access(r, dir);
	if (cookie < COOKIE_DOT)
		rc = entry(ctx, &(struct vfs_dirent){ ".", ino, TREE_DIR, COOKIE_DOT });
	if (!rc && cookie < COOKIE_DOTDOT)
		rc = entry(ctx, &(struct vfs_dirent){ "..", parent, TREE_DIR, COOKIE_DOTDOT });
	size_t first = first_where(k, d->n, d->v[k].cookie > cookie);
	for (size_t i = first; !rc && i < d->n; i++) {
		const struct dirent_node *e = d->v[i].entry;

		rc = entry(ctx, &(struct vfs_dirent){ e->name, e->ino, inode_get(r, e->ino)->type,
						      d->v[i].cookie });
	}
	return 0;
}
