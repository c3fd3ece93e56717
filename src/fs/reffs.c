/* SPDX-License-Identifier: MIT */
/*
 * reffs.c - the object: its current state, saved states, open handles, and reading a state.
 *
 * R1: the current state changes in place only while nobody else holds it; else a new one takes
 *     its place first. So a state that was saved never changes.
 * R2: an orphan has link count 0 and at least one handle.
 */
#include "fs/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "fs/file.h"
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
	map_insert(&r->cur->inodes, &root->node);
	inode_commit(r, root);
	r->next_ino = REFFS_ROOT_INO + 1;
}

struct reffs *reffs_new(const struct reffs_opts *opts)
{
	struct reffs *r = xcalloc(1, sizeof(*r));

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
	r->cur = xcalloc(1, sizeof(*r->cur));
	r->cur->refs = 1;
	make_root(r);
	for (size_t i = 0; op_table[i].name; i++) {
		assert(i < REFFS_OPS_MAX);
		r->ops[i] = op_lookup(op_table[i].name);
	}
	return r;
}

void reffs_free(struct reffs *r)
{
	if (!r)
		return;
	handles_close_all(r);
	for (size_t i = 0; i < r->handles.n; i++)
		free(r->handles.v[i].name);
	vec_release(&r->handles);
	vec_release(&r->orphans);
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
	handles_close_all(r);
	s->refs++;
	reffs_state_unref(r->cur);
	r->cur = s;
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

bool reffs_supports(const struct op_def *def)
{
	return op_lookup(def->name) != NULL;
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
	int64_t result = r->ops[op->def - op_table](r, op);
	assert(result >= -4095);
	return result;
}

/* ---- inodes ---- */

static const struct reffs_inode *find_inode(const struct reffs_state *s, uint64_t ino)
{
	struct map_num key = map_num(ino);
	const struct map_node *leaf = map_find(s->inodes, key.b, sizeof(key));

	return leaf ? container_of(leaf, struct reffs_inode, node) : NULL;
}

static struct reffs_inode **find_orphan(const struct reffs *r, uint64_t ino)
{
	for (size_t i = 0; i < r->orphans.n; i++)
		if (r->orphans.v[i]->ino == ino)
			return &r->orphans.v[i];
	assert(!"no such inode");
	return NULL;
}

const struct reffs_inode *inode_get(const struct reffs *r, uint64_t ino)
{
	const struct reffs_inode *i = find_inode(r->cur, ino);

	return i ? i : *find_orphan(r, ino);
}

/* R1 */
static void own_state(struct reffs *r)
{
	struct reffs_state *s = r->cur;

	if (s->refs == 1)
		return;
	r->cur = xmalloc(sizeof(*r->cur));
	*r->cur = (struct reffs_state){ 1, map_ref(s->inodes), s->hash };
	s->refs--;
}

struct reffs_inode *inode_own(struct reffs *r, uint64_t ino)
{
	struct map_num key = map_num(ino);
	struct map_node *leaf;

	if (r->orphans.n && !find_inode(r->cur, ino)) {
		struct reffs_inode **slot = find_orphan(r, ino);

		if ((*slot)->node.refs > 1) {
			leaf = (*slot)->node.kind->copy(&(*slot)->node);
			inode_unref(*slot);
			*slot = container_of(leaf, struct reffs_inode, node);
		}
		return *slot;
	}
	own_state(r);
	leaf = map_own(&r->cur->inodes, key.b, sizeof(key));
	return container_of(leaf, struct reffs_inode, node);
}

struct reffs_inode *inode_edit(struct reffs *r, uint64_t ino)
{
	struct reffs_inode *i = inode_own(r, ino);

	if (i->nlink)
		r->cur->hash = hash_sub(r->cur->hash, i->term);
	return i;
}

void inode_commit(struct reffs *r, struct reffs_inode *inode)
{
	if (!inode->nlink)
		return;
	inode->term = inode_term(inode);
	r->cur->hash = hash_add(r->cur->hash, inode->term);
}

struct reffs_inode *inode_make(struct reffs *r, uint64_t dir, enum tree_type type, uint32_t mode)
{
	const struct reffs_inode *d = inode_get(r, dir);
	struct reffs_inode *i = inode_alloc(r->next_ino++, type, mode);

	i->uid = r->opts.uid;
	i->gid = r->opts.gid;
	if (d->mode & S_ISGID) { /* what is made in it belongs to its group */
		i->gid = d->gid;
		if (type == TREE_DIR)
			i->mode |= S_ISGID;
	}
	return i;
}

/* ---- handles and orphans ---- */

bool inode_is_open(const struct reffs *r, uint64_t ino)
{
	for (size_t i = 0; i < r->handles.n; i++)
		if (r->handles.v[i].file.ino == ino)
			return true;
	return false;
}

void orphan_add(struct reffs *r, struct reffs_inode *inode)
{
	assert(!inode->nlink);
	vec_push(&r->orphans, inode);
}

struct handle *handle_find(struct reffs *r, const char *name)
{
	for (size_t i = 0; i < r->handles.n; i++)
		if (streq(r->handles.v[i].name, name))
			return r->handles.v[i].file.ino ? &r->handles.v[i] : NULL;
	return NULL;
}

void handle_set(struct reffs *r, const char *name, struct opened file)
{
	for (size_t i = 0; i < r->handles.n; i++) {
		struct handle *h = &r->handles.v[i];

		if (!streq(h->name, name))
			continue;
		/* The new one is open before the old one is closed. */
		struct handle old = { NULL, h->file };
		h->file = file;
		handle_close(r, &old);
		return;
	}
	vec_push(&r->handles, (struct handle){ xstrdup(name), file });
}

void handle_close(struct reffs *r, struct handle *h)
{
	uint64_t ino = h->file.ino;

	h->file.ino = 0;
	if (!ino || inode_is_open(r, ino))
		return;
	for (size_t i = 0; i < r->orphans.n; i++) {
		if (r->orphans.v[i]->ino != ino)
			continue;
		inode_unref(r->orphans.v[i]);
		r->orphans.v[i] = r->orphans.v[--r->orphans.n];
		return;
	}
}

void handles_close_all(struct reffs *r)
{
	for (size_t i = 0; i < r->handles.n; i++)
		handle_close(r, &r->handles.v[i]);
	assert(!r->orphans.n);
}

/* What an operation removed is there again: it is open, but no orphan any more. */
static void adopt_orphans(struct reffs *r, const struct reffs_state *s)
{
	for (size_t i = r->orphans.n; i-- > 0;)
		if (reffs_inode(s, r->orphans.v[i]->ino)) {
			inode_unref(r->orphans.v[i]);
			r->orphans.v[i] = r->orphans.v[--r->orphans.n];
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
	for (size_t i = 0; op->def->args[i].kind != ARG_END; i++) {
		struct opened f;

		if (op->def->args[i].role == ROLE_MAKE && !op->args[i].is_handle)
			(void)file_arg(r, &op->args[i], O_WRONLY | O_CREAT, &f);
	}
}

/* ---- reading a state ---- */

const struct reffs_inode *reffs_inode(const struct reffs_state *s, uint64_t ino)
{
	return find_inode(s, ino);
}

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
	};
}

const unsigned char *reffs_page(const struct reffs_inode *inode, uint64_t n)
{
	struct map_num key = map_num(n);
	const struct map_node *leaf;

	assert(inode->type == TREE_FILE);
	leaf = map_find(inode->map, key.b, sizeof(key));
	return leaf ? container_of(leaf, struct page_slot, node)->page->data : NULL;
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
