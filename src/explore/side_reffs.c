/* SPDX-License-Identifier: MIT */
/* side_reffs.c - the reference file system in this process. A saved state is a state of reffs. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "explore/side.h"
#include "fs/vfs.h"

struct reffs_side {
	struct side base;
	struct reffs *fs;
	const struct workload *w;
};
static_assert(sizeof(struct reffs_side) <= 4096, "side_open() makes it");

static struct reffs_side *own(struct side *s)
{
	return container_of(s, struct reffs_side, base);
}

static int open_reffs(struct side *s, const struct side_opts *opts, struct err *err)
{
	struct reffs_opts how = { 0 };

	(void)err;
	if (opts->relative_to) {
		differences_reffs(opts->relative_to, &how);
		s->differences = opts->relative_to;
	}
	own(s)->fs = reffs_new(&how);
	return 0;
}

static void close_reffs(struct side *s)
{
	reffs_free(own(s)->fs);
}

static void begin(struct side *s, const struct workload *w)
{
	own(s)->w = w;
	reffs_begin(own(s)->fs, w);
}

static int64_t perform(struct side *s, size_t i)
{
	return reffs_op(own(s)->fs, own(s)->w, i);
}

static int tree(struct side *s, const struct tree_opts *opts, struct tree *out, struct err *err)
{
	struct reffs_state *now = reffs_save(own(s)->fs);

	(void)err;
	reffs_tree(now, opts, out);
	reffs_state_unref(now);
	return 0;
}

static struct hash128 hash(struct side *s)
{
	struct reffs_state *now = reffs_save(own(s)->fs);
	struct hash128 h = reffs_state_hash(now);

	reffs_state_unref(now);
	return h;
}

static int save(struct side *s, struct side_state **out, struct err *err)
{
	(void)err;
	*out = (struct side_state *)reffs_save(own(s)->fs);
	s->counts.saves++;
	return 0;
}

static int restore(struct side *s, struct side_state *state, struct strbuf *said, struct err *err)
{
	(void)said;
	(void)err;
	reffs_restore(own(s)->fs, (struct reffs_state *)state);
	s->counts.restores++;
	return 0;
}

static void drop(struct side *s, struct side_state *state)
{
	(void)s;
	reffs_state_unref((struct reffs_state *)state);
}

/* ---- made from a tree ---- */

/* The first name of a file that has several. */
static const struct tree_entry *first_name(const struct tree *t, const struct tree_entry *e)
{
	for (size_t i = 0; e->link && i < t->entries.n; i++)
		if (t->entries.v[i].link == e->link)
			return &t->entries.v[i];
	return e;
}

static int make_node(struct reffs *r, const struct tree_entry *e, uint64_t dir, const char *name,
		     uint64_t *ino)
{
	static const uint32_t types[TREE_TYPE_END] = {
		[TREE_FIFO] = S_IFIFO,
		[TREE_CHAR] = S_IFCHR,
		[TREE_BLOCK] = S_IFBLK,
		[TREE_SOCKET] = S_IFSOCK,
	};
	const struct reffs_cred *c = &reffs_root;
	int64_t rc;

	switch (e->type) {
	case TREE_DIR:
		return vfs_mkdir(r, c, dir, name, 0700, ino);
	case TREE_SYMLINK:
		return vfs_symlink(r, c, e->target, dir, name, ino);
	case TREE_FILE:
		rc = vfs_create(r, c, dir, name, 0600, ino);
		if (!rc && e->size && !e->content)
			return -EFBIG;
		if (!rc && e->size)
			rc = vfs_write(r, c, *ino, e->content, 0, e->size, 0);
		return rc < 0 ? (int)rc : rc && (uint64_t)rc != e->size ? -ENOSPC : 0;
	case TREE_UNKNOWN:
	case TREE_TYPE_END:
		return -EIO;
	default:
		return vfs_mknod(r, c, dir, name, types[e->type] | 0600,
				 makedev(e->rdev_major, e->rdev_minor), ino);
	}
}

/* Writing and changing the owner take bits of the mode away, so that comes last. */
static int set_rest(struct reffs *r, const struct tree_entry *e, uint64_t ino)
{
	struct vfs_setattr owner = { .set = VFS_SET_UID | VFS_SET_GID,
				     .uid = e->uid,
				     .gid = e->gid };
	struct vfs_setattr mode = { .set = VFS_SET_MODE, .mode = e->mode };
	int rc = vfs_setattr(r, &reffs_root, ino, &owner);

	for (size_t i = 0; i < e->n_xattrs && !rc; i++)
		rc = vfs_setxattr(r, &reffs_root, ino, e->xattrs[i].name, e->xattrs[i].value,
				  e->xattrs[i].len, 0);
	return rc || e->type == TREE_SYMLINK ? rc : vfs_setattr(r, &reffs_root, ino, &mode);
}

static int make_entry(struct reffs *r, const struct tree *t, const struct tree_entry *e)
{
	const struct tree_entry *first = first_name(t, e);
	uint64_t dir, ino;
	const char *name;
	int rc;

	if (e->error)
		return -e->error;
	if (!*e->path)
		return set_rest(r, e, REFFS_ROOT_INO);
	rc = vfs_path_parent(r, &reffs_root, e->path, &dir, &name);
	if (!rc && first != e) {
		rc = vfs_path(r, &reffs_root, first->path, O_NOFOLLOW, &ino);
		return rc ? rc : vfs_link(r, &reffs_root, ino, dir, name);
	}
	if (!rc)
		rc = make_node(r, e, dir, name, &ino);
	return rc ? rc : set_rest(r, e, ino);
}

/* Entries are in order of path: a directory comes before what is in it. */
static int from_tree(struct side *s, const struct tree *t, struct side_state **out, struct err *err)
{
	struct reffs *r = own(s)->fs;
	int rc = 0;

	reffs_restore(r, (struct reffs_state *)s->base);
	for (size_t i = 0; i < t->entries.n && !rc; i++) {
		rc = make_entry(r, t, &t->entries.v[i]);
		if (rc)
			err_set(err, rc,
				"the reference cannot have %.200s as it is in the image: %s",
				*t->entries.v[i].path ? t->entries.v[i].path : "its root",
				strerror(-rc));
	}
	if (!rc)
		*out = (struct side_state *)reffs_save(r);
	return rc;
}

const struct side_ops side_reffs = {
	.name = "reffs",
	.help = "the reference file system, in this process",
	.open = open_reffs,
	.close = close_reffs,
	.begin = begin,
	.op = perform,
	.tree = tree,
	.hash = hash,
	.save = save,
	.restore = restore,
	.drop = drop,
	.from_tree = from_tree,
};
