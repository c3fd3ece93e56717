/* SPDX-License-Identifier: MIT */
/* reffs.c - makes, saves and restores the reference file system, and reads its states. */
#include "fs/reffs_impl.h"

#include <errno.h>
#include <fcntl.h>

#include "fs/opening.h"
#include "workload/content.h"

#define EXT4_FILE_MAX ((uint64_t)UINT32_MAX * 4096)

/* ---- life ---- */

static void make_root(struct reffs *r)
{
	struct reffs_inode *root = inode_alloc(REFFS_ROOT_INO, TREE_DIR, r->opts.root_mode & 07777);

	root->uid = r->opts.uid;
	root->gid = r->opts.gid;
	root->nlink = 2;
	root->parent = REFFS_ROOT_INO;
	root->names = hash_bytes("/", 1);
	inode_add(r, root);
	r->next_ino = max(r->opts.first_ino, (uint64_t)REFFS_ROOT_INO + 1);
}

struct reffs *reffs_new(const struct reffs_opts *opts)
{
	struct reffs *r = xcalloc(1, sizeof(*r));

	r->found = xcalloc(1, sizeof(*r->found));
	inode_forget(r); /* an entry of time 0 is empty */

	if (opts)
		r->opts = *opts;
	if (!r->opts.root_mode)
		r->opts.root_mode = 0755;
	if (!r->opts.file_max)
		r->opts.file_max = EXT4_FILE_MAX;
	if (!r->opts.link_max)
		r->opts.link_max = 65000;
	if (!r->opts.dio_align)
		r->opts.dio_align = 512;
	if (!r->opts.full_error)
		r->opts.full_error = -ENOSPC;
	r->cred = (struct reffs_cred){ .uid = r->opts.uid,
				       .gid = r->opts.gid,
				       .caps = REFFS_CAPS_ALL };
	r->cur = xcalloc(1, sizeof(*r->cur));
	r->cur->refs = 1;
	r->cur->times = r->opts.times;
	make_root(r);
	return r;
}

void reffs_free(struct reffs *r)
{
	if (!r)
		return;
	handles_close_all(r);
	vec_release_each(p, &r->handles, free(p->name));
	inode_drop_orphans(r);
	pins_release(&r->pins);
	free(r->found);
	reffs_state_unref(r->cur);
	free(r);
}

struct reffs_state *reffs_save(struct reffs *r)
{
	r->cur->refs++;
	return r->cur;
}

void reffs_restore(struct reffs *r, struct reffs_state *s)
{
	assert(s->times == r->opts.times);
	handles_close_all(r);
	inode_drop_orphans(r);
	s->refs++;
	reffs_state_unref(r->cur);
	r->cur = s;
	inode_forget(r);
}

/* Drops orphans that have a name again in `s`: their handles stay open. */
static void adopt_orphans(struct reffs *r, const struct reffs_state *s)
{
	for (size_t i = 0; i < r->handles.n; i++) {
		uint64_t ino = r->handles.v[i].file.ino;

		if (ino && reffs_inode(s, ino) && !reffs_inode(r->cur, ino))
			inode_unref(inode_take_orphan(r, ino));
	}
}

void reffs_refused(struct reffs *r, struct reffs_state *before, const struct op *op)
{
	struct handle *made = op->handle ? handle_find(r, op->handle) : NULL;

	if (made)
		handle_close(r, made);
	adopt_orphans(r, before);
	before->refs++;
	reffs_state_unref(r->cur);
	r->cur = before;
	inode_forget(r);
	for (size_t i = 0; op->def->args[i].kind != ARG_END; i++) {
		struct opened f;

		if (op->def->args[i].role == ROLE_MAKE && !op->args[i].is_handle)
			(void)opened_from_arg(r, &op->args[i], O_WRONLY | O_CREAT, &f);
	}
}

void reffs_state_unref(struct reffs_state *s)
{
	if (!s)
		return;
	assert(s->refs > 0);
	if (--s->refs)
		return;
	map_unref(s->inodes);
	free(s);
}

struct hash128 reffs_state_hash(const struct reffs_state *s)
{
	return s->hash;
}

void reffs_begin(struct reffs *r, const struct workload *w)
{
	handles_close_all(r);
	r->workload = w;
	r->tag = content_tag(w);
	r->tag_fixed = true;
}

void reffs_become(struct reffs *r, const struct reffs_cred *cred)
{
	r->cred = *cred;
}

int64_t reffs_op(struct reffs *r, const struct workload *w, size_t i)
{
	assert(i < w->ops.n);
	const struct op *op = &w->ops.v[i];

	if (w != r->workload || (i == 0 && !r->tag_fixed)) {
		r->workload = w;
		r->tag = content_tag(w);
		r->tag_fixed = false;
	}
	r->index = i;
	int64_t result = ref_op(r, op);
	assert(result >= -4095);
	return result;
}

/* ---- reading a state ---- */

void reffs_attr(const struct reffs_inode *inode, struct reffs_attr *out)
{
	*out = (struct reffs_attr){
		.ino = inode->ino,
		.type = inode->type,
		.mode = inode->mode,
		.uid = inode->uid,
		.gid = inode->gid,
		.nlink = inode->nlink,
		.size = inode->size,
		.rdev = inode->rdev,
		.target = inode->target ? inode->target->data : NULL,
		.pages = inode->pages,
		.content = inode->content,
		.atime = inode->atime,
		.mtime = inode->mtime,
		.ctime = inode->ctime,
		.btime = inode->btime,
	};
}

const unsigned char *reffs_page(const struct reffs_inode *inode, uint64_t n)
{
	struct map_num key = map_num(n);
	const struct map_node *leaf;

	assert(inode->type == TREE_FILE);
	leaf = map_find(inode->map, key.b, sizeof(key));
	const struct page *page = leaf ? container_of(leaf, struct page_slot, node)->page : NULL;
	return page ? page->data : NULL;
}

uint64_t reffs_next_page(const struct reffs_inode *inode, uint64_t n)
{
	struct map_num key = map_num(n);
	const struct map_node *leaf;

	assert(inode->type == TREE_FILE);
	leaf = map_ceil(inode->map, key.b, sizeof(key));
	return leaf ? page_slot_index(container_of(leaf, struct page_slot, node)) : UINT64_MAX;
}

struct entries_call {
	int (*entry)(void *ctx, const char *name, uint64_t ino);
	void *ctx;
};

static int call_entry(void *ctx, const struct map_node *leaf)
{
	const struct entries_call *call = ctx;
	const struct dirent_node *d = container_of(leaf, struct dirent_node, node);

	return call->entry(call->ctx, d->name, d->ino);
}

int reffs_entries(const struct reffs_inode *dir,
		  int (*entry)(void *ctx, const char *name, uint64_t ino), void *ctx)
{
	struct entries_call call = { entry, ctx };

	assert(dir->type == TREE_DIR);
	return map_each(dir->map, call_entry, &call);
}

uint64_t reffs_lookup(const struct reffs_inode *dir, const char *name)
{
	const struct map_node *leaf;

	assert(dir->type == TREE_DIR);
	leaf = map_find(dir->map, name, strlen(name));
	return leaf ? container_of(leaf, struct dirent_node, node)->ino : 0;
}

struct differing {
	const struct reffs_state *a, *b;
	uint64_t dir;
	void (*entry)(void *ctx, uint64_t dir, const char *name);
	void *ctx;
};

static void tell_entry(void *ctx, const struct map_node *leaf)
{
	const struct differing *d = ctx;

	d->entry(d->ctx, d->dir, container_of(leaf, struct dirent_node, node)->name);
}

static void tell_dir(void *ctx, const struct map_node *leaf)
{
	struct differing *d = ctx;
	const struct reffs_inode *one = container_of(leaf, struct reffs_inode, node);
	const struct reffs_inode *a = d->a ? reffs_inode(d->a, one->ino) : NULL;
	const struct reffs_inode *b = reffs_inode(d->b, one->ino);

	/* One that both states have comes twice. */
	if (one->type != TREE_DIR || (a && b && one == a))
		return;
	d->dir = one->ino;
	map_differ(a ? a->map : NULL, b ? b->map : NULL, tell_entry, d);
}

void reffs_differ(const struct reffs_state *a, const struct reffs_state *b,
		  void (*entry)(void *ctx, uint64_t dir, const char *name), void *ctx)
{
	struct differing d = { a, b, 0, entry, ctx };

	map_differ(a ? a->inodes : NULL, b->inodes, tell_dir, &d);
}

int reffs_xattrs(const struct reffs_inode *inode,
		 int (*xattr)(void *ctx, const char *name, const void *value, size_t len),
		 void *ctx)
{
	for (size_t i = 0; inode->xattrs && i < inode->xattrs->n; i++) {
		const struct blob *b = inode->xattrs->v[i];
		size_t name_size = strlen(b->data) + 1;
		int rc = xattr(ctx, b->data, b->data + name_size, b->len - name_size);

		if (rc)
			return rc;
	}
	return 0;
}

struct inodes_call {
	int (*inode)(void *ctx, const struct reffs_inode *inode);
	void *ctx;
};

static int call_inode(void *ctx, const struct map_node *leaf)
{
	const struct inodes_call *call = ctx;

	return call->inode(call->ctx, container_of(leaf, struct reffs_inode, node));
}

int reffs_inodes(const struct reffs_state *s,
		 int (*inode)(void *ctx, const struct reffs_inode *inode), void *ctx)
{
	struct inodes_call call = { inode, ctx };

	return map_each(s->inodes, call_inode, &call);
}
