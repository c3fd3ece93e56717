/* SPDX-License-Identifier: MIT */
/*
 * path.c - walks a path component by component, through links. The walk follows the kernel's
 * (link_path_walk in fs/namei.c), so that errors come in the same order: all components but the
 * last are resolved; the caller resolves the last one.
 */
#include "fs/path.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "fs/perm.h"

static enum last_type type_of(const char *name, size_t len)
{
	if (name[0] != '.' || len > 2)
		return LAST_NORMAL;
	if (len == 1)
		return LAST_DOT;
	return name[1] == '.' ? LAST_DOTDOT : LAST_NORMAL;
}

/* Counts a link and gives its target. */
static int link_target(struct path_walk *w, const struct reffs_inode *link, const char **out)
{
	if (w->links++ >= PATH_LINKS_MAX)
		return -ELOOP;
	if (link->target->data[0] == '/')
		return -EXDEV;
	*out = link->target->data;
	return 0;
}

int path_walk_last(struct path_walk *w, uint64_t *ino)
{
	switch (w->last_type) {
	case LAST_DOT:
		*ino = w->dir;
		return 0;
	case LAST_DOTDOT:
		if (w->dir == REFFS_ROOT_INO)
			return -EXDEV;
		*ino = inode_get(w->r, w->dir)->parent;
		return 0;
	case LAST_NORMAL:
		break;
	}
	if (w->last_len > NAME_LEN_MAX)
		return -ENAMETOOLONG;
	*ino = name_find(w->r, w->dir, w->last, w->last_len);
	return 0;
}

/* Takes the next component off *s, with the slashes behind it. */
static void take_component(struct path_walk *w, const char **s)
{
	w->last = *s;
	w->last_len = strcspn(*s, "/");
	w->last_type = type_of(w->last, w->last_len);
	*s += w->last_len;
	w->slashes = **s == '/';
	*s += strspn(*s, "/");
}

/* Walks to the end of `s`, which is not empty, and of all texts on the stack. */
static int walk_on(struct path_walk *w, const char *s)
{
	uint64_t ino;
	int rc;

	s += strspn(s, "/");
	for (;;) {
		rc = perm_check(w->c, inode_get(w->r, w->dir), PERM_X);
		if (rc)
			return rc;
		take_component(w, &s);
		if (!*s) {
			if (!w->depth)
				return 0;
			s = w->stack[--w->depth]; /* the end of a link in the middle */
		}
		rc = path_walk_last(w, &ino);
		if (rc)
			return rc;
		if (!ino)
			return -ENOENT;
		const struct reffs_inode *i = inode_get(w->r, ino);
		if (i->type == TREE_SYMLINK) {
			const char *rest = s;

			rc = link_target(w, i, &s);
			if (rc)
				return rc;
			w->stack[w->depth++] = rest;
		} else if (i->type != TREE_DIR) {
			return -ENOTDIR;
		} else {
			w->dir = ino;
		}
	}
}

int path_walk_begin(struct path_walk *w, const struct reffs *r, const struct reffs_cred *c,
		    const char *path)
{
	w->r = r;
	w->c = c;
	w->dir = REFFS_ROOT_INO;
	w->depth = 0;
	w->links = 0;
	if (!*path)
		return -ENOENT;
	if (strlen(path) >= PATH_LEN_MAX)
		return -ENAMETOOLONG;
	if (*path == '/')
		return -EXDEV;
	return walk_on(w, path);
}

/* False for a link that another user made in a directory for all, if the sysctl forbids it. */
static bool may_follow(const struct path_walk *w, const struct reffs_inode *link)
{
	const struct reffs_inode *dir = inode_get(w->r, w->dir);
	uint32_t for_all = S_ISVTX | S_IWOTH;

	return !w->r->opts.protect_symlinks || link->uid == w->c->uid ||
	       (dir->mode & for_all) != for_all || dir->uid == link->uid;
}

int path_walk_follow(struct path_walk *w, const struct reffs_inode *link)
{
	const char *target;
	int rc;

	if (w->links < PATH_LINKS_MAX && !may_follow(w, link))
		return -EACCES;
	rc = link_target(w, link, &target);
	return rc ? rc : walk_on(w, target);
}

int vfs_path(struct reffs *r, const struct reffs_cred *c, const char *path, int flags,
	     uint64_t *ino)
{
	bool want_dir = flags & O_DIRECTORY, follow = !(flags & O_NOFOLLOW);
	struct path_walk w;
	int rc = path_walk_begin(&w, r, c, path);

	while (!rc) {
		rc = path_walk_last(&w, ino);
		if (rc)
			break;
		if (!*ino)
			return -ENOENT;
		if (w.slashes && w.last_type == LAST_NORMAL)
			want_dir = follow = true;
		const struct reffs_inode *i = inode_get(r, *ino);
		if (i->type == TREE_SYMLINK && follow) {
			rc = path_walk_follow(&w, i);
			continue;
		}
		return want_dir && i->type != TREE_DIR ? -ENOTDIR : 0;
	}
	return rc;
}

int path_parent(struct reffs *r, const struct reffs_cred *c, const char *path,
		struct entry_place *out)
{
	const char *slash = strrchr(path, '/');

	if (!slash) {
		*out = (struct entry_place){ REFFS_ROOT_INO, path };
		return perm_check(c, inode_get(r, REFFS_ROOT_INO), PERM_X);
	}
	char parent[PATH_LEN_MAX];
	if (slash - path >= PATH_LEN_MAX)
		return -ENAMETOOLONG;
	memcpy(parent, path, (size_t)(slash - path));
	parent[slash - path] = '\0';
	out->name = slash + 1;
	return vfs_path(r, c, parent, O_DIRECTORY, &out->dir);
}

int vfs_path_parent(struct reffs *r, const struct reffs_cred *c, const char *path, uint64_t *dir,
		    const char **name)
{
	struct entry_place at;
	int rc = path_parent(r, c, path, &at);

	if (!rc)
		rc = vfs_may_search(r, c, at.dir);
	*dir = rc ? 0 : at.dir;
	*name = rc ? NULL : at.name;
	return rc;
}
