/* SPDX-License-Identifier: MIT */
/* reffs_tree.c - makes a tree of a state, as tree_walk() would. */
#include "fs/reffs_impl.h"

#include <sys/sysmacros.h>

struct walker {
	const struct reffs_state *s;
	const struct tree_opts *opts;
	struct tree *out;
	struct strbuf path;
	struct vec_of(struct tree_xattr) xattrs;
	unsigned char *content;
	size_t content_size;
};

static int add_xattr(void *ctx, const char *name, const void *value, size_t len)
{
	struct walker *w = ctx;

	vec_push(&w->xattrs, (struct tree_xattr){ name, value, len });
	return 0;
}

/* Returns the bytes of a file that is small enough; else NULL, and only the hash is kept. */
static const void *content_of(struct walker *w, const struct reffs_inode *i)
{
	uint64_t limit = w->opts->content_limit ? w->opts->content_limit : TREE_CONTENT_LIMIT;

	if (!i->size || i->size > limit || i->size > TREE_CONTENT_TOTAL - w->out->kept)
		return NULL;
	if (i->size > w->content_size) {
		w->content_size = (size_t)i->size;
		w->content = xrealloc(w->content, w->content_size);
	}
	for (uint64_t at = 0; at < i->size; at += REFFS_PAGE) {
		const unsigned char *page = reffs_page(i, at / REFFS_PAGE);
		size_t n = (size_t)min(i->size - at, (uint64_t)REFFS_PAGE);

		if (page)
			memcpy(w->content + at, page, n);
		else
			memset(w->content + at, 0, n);
	}
	return w->content;
}

static void add_inode(struct walker *w, const struct reffs_inode *i)
{
	struct tree_entry e = {
		.path = strbuf_str(&w->path),
		.type = i->type,
		.mode = i->mode,
		.uid = i->uid,
		.gid = i->gid,
		.nlink = i->nlink,
		.size = i->size,
		.rdev_major = major(i->rdev),
		.rdev_minor = minor(i->rdev),
		.inode = i->ino,
		.target = i->target ? i->target->data : NULL,
		.atime = i->atime,
		.mtime = i->mtime,
	};

	if (i->type == TREE_FILE) {
		e.hash = i->content;
		e.content = content_of(w, i);
	}
	vec_clear(&w->xattrs);
	reffs_xattrs(i, add_xattr, w);
	e.xattrs = w->xattrs.v;
	e.n_xattrs = w->xattrs.n;
	tree_add(w->out, &e, w->opts);
}

static bool ignored(const struct walker *w, const char *name)
{
	if (w->path.len || !w->opts->ignore)
		return false;
	for (const char *const *i = w->opts->ignore; *i; i++)
		if (streq(*i, name))
			return true;
	return false;
}

static int visit(void *ctx, const char *name, uint64_t ino)
{
	struct walker *w = ctx;
	const struct reffs_inode *i = reffs_inode(w->s, ino);
	size_t len = w->path.len;

	if (ignored(w, name))
		return 0;
	if (len)
		strbuf_addch(&w->path, '/');
	strbuf_adds(&w->path, name);
	add_inode(w, i);
	if (i->type == TREE_DIR)
		reffs_entries(i, visit, w);
	strbuf_cut(&w->path, len);
	return 0;
}

void reffs_tree(const struct reffs_state *s, const struct tree_opts *opts, struct tree *out)
{
	struct walker w = { .s = s, .opts = opts, .out = out };
	const struct reffs_inode *root = reffs_inode(s, REFFS_ROOT_INO);

	tree_clear(out);
	out->lacks = TREE_FIELD_BLOCKS | TREE_FIELD_DIR_SIZE | (s->times ? 0 : TREE_FIELD_TIMES);
	add_inode(&w, root);
	reffs_entries(root, visit, &w);
	tree_finish(out);
	strbuf_release(&w.path);
	vec_release(&w.xattrs);
	free(w.content);
}
