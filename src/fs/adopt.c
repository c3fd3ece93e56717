/* SPDX-License-Identifier: MIT */
/* adopt.c - changes a reference file system, entry by entry, into what a walk saw. */
#include "fs/adopt.h"

#include <errno.h>
#include <sys/sysmacros.h>

#include "base/words.h"
#include "fs/data.h"
#include "fs/graft.h"
#include "fs/reffs_impl.h"

/* An inode that an entry of the tree has taken, and which names may share it; 0: none. */
struct taken_inode {
	uint64_t ino;
	uint32_t link;
};

struct adopter {
	struct reffs *r;
	const struct tree *seen;
	struct vec_of(struct taken_inode) taken;
	struct err *err;
};

static int failed(const struct adopter *a, int rc, const char *path)
{
	return err_set(a->err, rc, "the change of a command at %s cannot be followed: %s", path,
		       strerror(-rc));
}

/* ---- names that are gone ---- */

static int add_name(void *ctx, const char *name, uint64_t ino)
{
	struct words *list = ctx;

	(void)ino;
	vec_push(list, xstrdup(name));
	return 0;
}

static int remove_name(struct adopter *a, uint64_t dir, const char *name);

static int empty_dir(struct adopter *a, uint64_t dir)
{
	auto_words names = { 0 };
	int rc = 0;

	reffs_entries(inode_get(a->r, dir), add_name, &names);
	for (size_t i = 0; i < names.n && !rc; i++)
		rc = remove_name(a, dir, names.v[i]);
	return rc;
}

/* Removes a name with all that is below it. */
static int remove_name(struct adopter *a, uint64_t dir, const char *name)
{
	uint64_t ino = reffs_lookup(inode_get(a->r, dir), name);
	int rc = inode_get(a->r, ino)->type == TREE_DIR ? empty_dir(a, ino) : 0;

	return rc ? rc : graft_unlink(a->r, dir, name);
}

/* True if an inode may stand for an entry: the attributes that never change are the same. */
static bool may_be(const struct reffs *r, uint64_t ino, const struct tree_entry *e)
{
	struct reffs_attr attr;

	reffs_attr(inode_get(r, ino), &attr);
	if (attr.type != e->type)
		return false;
	if (e->type == TREE_SYMLINK)
		return streq(attr.target, e->target ? e->target : "");
	if (e->type == TREE_CHAR || e->type == TREE_BLOCK)
		return attr.rdev == makedev(e->rdev_major, e->rdev_minor);
	return true;
}

static int remove_gone(struct adopter *a, uint64_t dir, const char *path)
{
	auto_words names = { 0 };
	int rc = 0;

	reffs_entries(inode_get(a->r, dir), add_name, &names);
	for (size_t i = 0; i < names.n && !rc; i++) {
		auto_free char *below = xasprintf("%s%s%s", path, *path ? "/" : "", names.v[i]);
		const struct tree_entry *e = tree_find(a->seen, below);
		uint64_t ino = reffs_lookup(inode_get(a->r, dir), names.v[i]);

		if (!e || !may_be(a->r, ino, e))
			rc = remove_name(a, dir, names.v[i]);
		else if (e->type == TREE_DIR)
			rc = remove_gone(a, ino, below);
	}
	return rc;
}

/* ---- names that are there ---- */

static const struct taken_inode *find_ino(const struct adopter *a, uint64_t ino)
{
	return vec_find(i, &a->taken, a->taken.v[i].ino == ino);
}

static uint64_t find_link(const struct adopter *a, uint32_t link)
{
	for (size_t i = 0; link && i < a->taken.n; i++)
		if (a->taken.v[i].link == link)
			return a->taken.v[i].ino;
	return 0;
}

static int make(struct adopter *a, uint64_t dir, const char *name, const struct tree_entry *e,
		uint64_t *ino)
{
	struct graft_inode made = {
		.ino = a->r->next_ino,
		.type = e->type,
		.mode = e->mode,
		.uid = e->uid,
		.gid = e->gid,
		.rdev = makedev(e->rdev_major, e->rdev_minor),
		.target = e->type == TREE_SYMLINK ? (e->target ? e->target : "") : NULL,
	};

	*ino = made.ino;
	return graft_make(a->r, dir, name, &made);
}

/* Gives the inode of the entry, which has this name then; makes one if there is none. */
static int place(struct adopter *a, uint64_t dir, const char *name, const struct tree_entry *e,
		 uint64_t *ino)
{
	uint64_t there = reffs_lookup(inode_get(a->r, dir), name), same = find_link(a, e->link);
	const struct taken_inode *other = there ? find_ino(a, there) : NULL;
	int rc = 0;

	*ino = there;
	if (there && (same ? there == same : !other))
		return 0;
	if (there)
		rc = remove_name(a, dir, name);
	if (rc)
		return rc;
	*ino = same;
	return same ? graft_link(a->r, dir, name, same) : make(a, dir, name, e, ino);
}

static void copy_content(void *ctx, uint64_t offset, void *data, size_t len)
{
	const struct tree_entry *e = ctx;

	memcpy(data, (const char *)e->content + offset, len);
}

static int set_data(struct adopter *a, uint64_t ino, const struct tree_entry *e)
{
	struct data_source from = { .fill = copy_content, .ctx = (void *)(uintptr_t)e };
	struct reffs_attr attr;

	reffs_attr(inode_get(a->r, ino), &attr);
	if (attr.size == e->size && hash_eq(attr.content, e->hash))
		return 0;
	if (e->size && !e->content && !hash_eq(e->hash, tree_content_hash("", 0)))
		return -EFBIG;
	struct reffs_inode *i = inode_edit(a->r, ino);
	data_resize(i, 0);
	if (e->content)
		data_write(i, 0, e->size, from, UINT64_MAX);
	data_resize(i, e->size);
	inode_commit(a->r, i);
	return 0;
}

static int set_attr(struct adopter *a, uint64_t ino, const struct tree_entry *e)
{
	struct reffs_attr attr;

	reffs_attr(inode_get(a->r, ino), &attr);
	if (attr.mode == e->mode && attr.uid == e->uid && attr.gid == e->gid)
		return 0;
	return graft_attr(a->r, ino, e->mode, e->uid, e->gid);
}

/* ---- extended attributes ---- */

struct xattr_look {
	const struct tree_entry *e;
	struct words gone;
	size_t same;
};

static int look_at_xattr(void *ctx, const char *name, const void *value, size_t len)
{
	struct xattr_look *look = ctx;
	const struct tree_xattr *x = tree_find_xattr(look->e, name);

	if (!x)
		vec_push(&look->gone, xstrdup(name));
	else if (x->len == len && (!len || memcmp(x->value, value, len) == 0))
		look->same++;
	return 0;
}

static int set_xattrs(struct adopter *a, uint64_t ino, const struct tree_entry *e)
{
	struct xattr_look look = { .e = e };
	int rc = 0;

	reffs_xattrs(inode_get(a->r, ino), look_at_xattr, &look);
	for (size_t i = 0; i < look.gone.n && !rc; i++)
		rc = graft_xattr(a->r, ino, look.gone.v[i], NULL, 0);
	for (size_t i = 0; look.same < e->n_xattrs && i < e->n_xattrs && !rc; i++)
		rc = graft_xattr(a->r, ino, e->xattrs[i].name,
				 e->xattrs[i].len ? e->xattrs[i].value : "", e->xattrs[i].len);
	words_release(&look.gone);
	return rc;
}

/* Returns the directory of an entry; parents come before their entries. */
static uint64_t find_dir(const struct adopter *a, const char *path, const char **name)
{
	uint64_t dir = REFFS_ROOT_INO;
	const char *slash;

	while (dir && (slash = strchr(path, '/'))) {
		auto_free char *step = xmemdupz(path, (size_t)(slash - path));

		dir = reffs_lookup(inode_get(a->r, dir), step);
		path = slash + 1;
	}
	*name = path;
	return dir;
}

static int adopt_entry(struct adopter *a, const struct tree_entry *e)
{
	uint64_t ino, dir;
	const char *name;
	int rc;

	if (e->error || e->type == TREE_UNKNOWN)
		return e->error ? -e->error : -EIO;
	if (!*e->path)
		return 0; /* mkfs sets the root's attributes */
	dir = find_dir(a, e->path, &name);
	rc = dir ? place(a, dir, name, e, &ino) : -ENOENT;
	if (rc)
		return rc;
	if (!find_ino(a, ino))
		vec_push(&a->taken, (struct taken_inode){ ino, e->link });
	rc = set_attr(a, ino, e);
	if (!rc)
		rc = set_xattrs(a, ino, e);
	return !rc && e->type == TREE_FILE ? set_data(a, ino, e) : rc;
}

int reffs_adopt(struct reffs *r, const struct tree *seen, struct err *err)
{
	struct adopter a = { .r = r, .seen = seen, .err = err };
	int rc = remove_gone(&a, REFFS_ROOT_INO, "");

	if (rc)
		rc = failed(&a, rc, "the root");
	for (size_t i = 0; i < seen->entries.n && !rc; i++) {
		rc = adopt_entry(&a, &seen->entries.v[i]);
		if (rc)
			rc = failed(&a, rc, seen->entries.v[i].path);
	}
	vec_release(&a.taken);
	return rc;
}
