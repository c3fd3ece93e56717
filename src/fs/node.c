/* SPDX-License-Identifier: MIT */
/*
 * node.c - allocates, copies and hashes inodes, names, pages and attributes, which count their
 * users.
 */
#include "fs/node.h"

/* ---- blobs ---- */

static struct blob *blob_alloc(size_t len)
{
	struct blob *b = xmalloc(sizeof(*b) + len + 1);

	*b = (struct blob){ .refs = 1, .len = len };
	b->data[len] = '\0';
	return b;
}

struct blob *blob_new(const void *data, size_t len)
{
	struct blob *b = blob_alloc(len);

	memcpy(b->data, data, len);
	return b;
}

struct blob *blob_ref(struct blob *b)
{
	if (b)
		b->refs++;
	return b;
}

void blob_unref(struct blob *b)
{
	if (b && !--b->refs)
		free(b);
}

/* ---- extended attributes ---- */

const struct blob *xattrs_find(const struct xattrs *x, const char *name)
{
	for (size_t i = 0; x && i < x->n; i++)
		if (streq(x->v[i]->data, name))
			return x->v[i];
	return NULL;
}

static struct blob *xattr_new(const char *name, const void *value, size_t len)
{
	size_t name_size = strlen(name) + 1;
	struct blob *b = blob_alloc(name_size + len);

	memcpy(b->data, name, name_size);
	memcpy(b->data + name_size, value, len);
	return b;
}

struct xattrs *xattrs_with(const struct xattrs *x, const char *name, const void *value, size_t len)
{
	size_t old = x ? x->n : 0, i = 0;
	struct xattrs *new = xmalloc(sizeof(*new) + (old + 1) * sizeof(struct blob *));

	*new = (struct xattrs){ .refs = 1 };
	while (i < old && strcmp(x->v[i]->data, name) < 0)
		new->v[new->n++] = blob_ref(x->v[i++]);
	if (i < old && streq(x->v[i]->data, name))
		i++;
	if (value)
		new->v[new->n++] = xattr_new(name, value, len);
	while (i < old)
		new->v[new->n++] = blob_ref(x->v[i++]);
	for (i = 0; i < new->n; i++)
		new->hash = hash_add(new->hash, hash_bytes(new->v[i]->data, new->v[i]->len));
	if (new->n)
		return new;
	free(new);
	return NULL;
}

void xattrs_unref(struct xattrs *x)
{
	if (!x || --x->refs)
		return;
	for (size_t i = 0; i < x->n; i++)
		blob_unref(x->v[i]);
	free(x);
}

/* ---- pages ---- */

struct page *page_new(void)
{
	struct page *p = xmalloc(sizeof(*p));

	p->refs = 1;
	return p;
}

struct page *page_ref(struct page *p)
{
	if (p)
		p->refs++;
	return p;
}

void page_unref(struct page *p)
{
	if (p && !--p->refs)
		free(p);
}

static struct map_node *page_slot_copy(const struct map_node *leaf)
{
	const struct page_slot *s = container_of(leaf, struct page_slot, node);
	struct page_slot *copy = map_node_alloc(sizeof(*copy), leaf->kind, leaf->bits);

	copy->index = s->index;
	copy->hash = s->hash;
	copy->page = page_ref(s->page);
	return &copy->node;
}

static void page_slot_free(struct map_node *leaf)
{
	page_unref(container_of(leaf, struct page_slot, node)->page);
	map_node_free(leaf);
}

static const struct map_kind page_slot_kind = {
	.key_at = offsetof(struct page_slot, index),
	.copy = page_slot_copy,
	.free = page_slot_free,
};

struct page_slot *page_slot_new(uint64_t index, struct page *page)
{
	struct page_slot *s = map_node_alloc(sizeof(*s), &page_slot_kind, sizeof(struct map_num));

	s->index = map_num(index);
	s->hash = (struct hash128){ 0 };
	s->page = page;
	return s;
}

/* ---- names ---- */

static const struct map_kind dirent_kind;

struct dirent_node *dirent_node_new(const char *name, size_t len, uint64_t ino)
{
	struct dirent_node *d = map_node_alloc(sizeof(*d) + len + 1, &dirent_kind, len);

	assert(len > 0 && len <= NAME_LEN_MAX);
	d->ino = ino;
	memcpy(d->name, name, len);
	d->name[len] = '\0';
	return d;
}

static struct map_node *dirent_copy(const struct map_node *leaf)
{
	const struct dirent_node *d = container_of(leaf, struct dirent_node, node);

	return &dirent_node_new(d->name, leaf->bits, d->ino)->node;
}

static void dirent_free(struct map_node *leaf)
{
	map_node_free(leaf);
}

static const struct map_kind dirent_kind = {
	.key_at = offsetof(struct dirent_node, name),
	.copy = dirent_copy,
	.free = dirent_free,
};

/* ---- inodes ---- */

static struct map_node *inode_copy(const struct map_node *leaf)
{
	const struct reffs_inode *i = container_of(leaf, struct reffs_inode, node);
	struct reffs_inode *copy = map_node_alloc(sizeof(*copy), leaf->kind, leaf->bits);
	struct map_node head = copy->node;

	*copy = *i;
	copy->node = head;
	map_ref(copy->map);
	blob_ref(copy->target);
	if (copy->xattrs)
		copy->xattrs->refs++;
	return &copy->node;
}

static void inode_free(struct map_node *leaf)
{
	struct reffs_inode *i = container_of(leaf, struct reffs_inode, node);

	map_unref(i->map);
	blob_unref(i->target);
	xattrs_unref(i->xattrs);
	map_node_free(i);
}

static const struct map_kind inode_kind = {
	.key_at = offsetof(struct reffs_inode, key),
	.copy = inode_copy,
	.free = inode_free,
};

struct reffs_inode *inode_alloc(uint64_t ino, enum tree_type type, uint32_t mode)
{
	struct reffs_inode *i = map_node_alloc(sizeof(*i), &inode_kind, sizeof(struct map_num));
	struct map_node head = i->node;

	*i = (struct reffs_inode){
		.node = head, .key = map_num(ino), .ino = ino, .type = type, .mode = mode
	};
	return i;
}

void inode_unref(struct reffs_inode *inode)
{
	map_unref(&inode->node);
}

/* Adds the times to a hash. */
static struct hash128 with_times(struct hash128 term, const struct reffs_inode *inode)
{
	uint64_t text[] = { term.lo,
			    term.hi,
			    (uint64_t)inode->atime.sec,
			    inode->atime.nsec,
			    (uint64_t)inode->mtime.sec,
			    inode->mtime.nsec };

	return hash_bytes(text, sizeof(text));
}

struct hash128 inode_term(const struct reffs_inode *inode, bool times)
{
	struct {
		uint32_t type, mode, uid, gid;
		uint64_t size, rdev;
		struct hash128 content, xattrs, names;
	} seen = {
		.type = inode->type,
		.mode = inode->mode,
		.uid = inode->uid,
		.gid = inode->gid,
		.size = inode->size,
		.rdev = inode->rdev,
		.content = inode->content,
		.names = inode->names,
	};
	_Static_assert(sizeof(seen) == 4 * 4 + 2 * 8 + 3 * 16, "no padding");

	if (inode->xattrs)
		seen.xattrs = inode->xattrs->hash;
	struct hash128 term = hash_bytes(&seen, sizeof(seen));
	return times ? with_times(term, inode) : term;
}

struct hash128 path_hash(struct hash128 dir, const char *name, size_t len)
{
	unsigned char text[sizeof(dir) + NAME_LEN_MAX];

	assert(len <= NAME_LEN_MAX);
	memcpy(text, &dir, sizeof(dir));
	memcpy(text + sizeof(dir), name, len);
	return hash_bytes(text, sizeof(dir) + len);
}
