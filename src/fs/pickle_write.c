/* SPDX-License-Identifier: MIT */
/* pickle_write.c - writes states to a file; reffs_pool.h has the format. */
#include "fs/pickle.h"

#include <endian.h>
#include <errno.h>

#include "base/io.h"
#include "fs/reffs_impl.h"
#include "fs/reffs_pool.h"

struct writer {
	struct strbuf *out;
	struct pins numbers; /* numbers of written nodes, by address */
	uint32_t next;
	bool times, overflow;
};

static void put8(struct writer *w, uint8_t n)
{
	strbuf_addch(w->out, (char)n);
}

static void put16(struct writer *w, uint16_t n)
{
	n = htole16(n);
	strbuf_add(w->out, &n, sizeof(n));
}

static void put32(struct writer *w, uint32_t n)
{
	n = htole32(n);
	strbuf_add(w->out, &n, sizeof(n));
}

static void put64(struct writer *w, uint64_t n)
{
	n = htole64(n);
	strbuf_add(w->out, &n, sizeof(n));
}

static uint32_t number_of(const struct writer *w, const void *node)
{
	return node ? (uint32_t)pins_count(&w->numbers, (uintptr_t)node) : 0;
}

/* Gives a node its number, after all nodes that it refers to. */
static uint32_t number(struct writer *w, const void *node)
{
	if (w->next == UINT32_MAX)
		w->overflow = true;
	else
		w->next++;
	pins_add(&w->numbers, (uintptr_t)node, w->next);
	return w->next;
}

static uint32_t write_page(struct writer *w, const struct page *p)
{
	uint32_t n = number_of(w, p);

	if (n || !p)
		return n;
	put8(w, REC_PAGE);
	strbuf_add(w->out, p->data, REFFS_PAGE);
	return number(w, p);
}

static uint32_t write_target(struct writer *w, const struct blob *b)
{
	uint32_t n = number_of(w, b);

	if (n || !b)
		return n;
	put8(w, REC_TARGET);
	put32(w, (uint32_t)b->len);
	strbuf_add(w->out, b->data, b->len);
	return number(w, b);
}

static uint32_t write_xattrs(struct writer *w, const struct xattrs *x)
{
	uint32_t n = number_of(w, x);

	if (n || !x)
		return n;
	put8(w, REC_XATTRS);
	put32(w, (uint32_t)x->n);
	for (size_t i = 0; i < x->n; i++) {
		put32(w, (uint32_t)x->v[i]->len);
		strbuf_add(w->out, x->v[i]->data, x->v[i]->len);
	}
	return number(w, x);
}

typedef void write_leaf_fn(struct writer *w, const struct map_node *leaf);

static uint32_t write_map(struct writer *w, const struct map_node *n, write_leaf_fn *leaf)
{
	const struct map_node *child[2];
	uint32_t left, right, known = number_of(w, n);

	if (known || !n)
		return known;
	if (map_children(n, child)) {
		left = write_map(w, child[0], leaf);
		right = write_map(w, child[1], leaf);
		put8(w, REC_BRANCH);
		put16(w, n->bits);
		put32(w, left);
		put32(w, right);
	} else {
		leaf(w, n);
	}
	return number(w, n);
}

static void write_slot(struct writer *w, const struct map_node *leaf)
{
	const struct page_slot *s = container_of(leaf, struct page_slot, node);
	uint32_t page = write_page(w, s->page);

	put8(w, REC_SLOT);
	put64(w, page_slot_index(s));
	put32(w, page);
}

static void write_entry(struct writer *w, const struct map_node *leaf)
{
	const struct dirent_node *d = container_of(leaf, struct dirent_node, node);

	put8(w, REC_ENTRY);
	put64(w, d->ino);
	put8(w, (uint8_t)leaf->bits);
	strbuf_add(w->out, d->name, leaf->bits);
}

static void put_time(struct writer *w, struct tree_time t)
{
	put64(w, (uint64_t)t.sec);
	put32(w, t.nsec);
}

static void write_inode(struct writer *w, const struct map_node *leaf)
{
	const struct reffs_inode *i = container_of(leaf, struct reffs_inode, node);
	uint32_t map = write_map(w, i->map, i->type == TREE_DIR ? write_entry : write_slot);
	uint32_t target = write_target(w, i->target), xattrs = write_xattrs(w, i->xattrs);

	put8(w, REC_INODE);
	put64(w, i->ino);
	put8(w, (uint8_t)i->type);
	put32(w, i->mode);
	put32(w, i->uid);
	put32(w, i->gid);
	put64(w, i->nlink);
	put64(w, i->size);
	put64(w, i->rdev);
	put64(w, i->parent);
	put_time(w, i->atime);
	put_time(w, i->mtime);
	put_time(w, i->ctime);
	put_time(w, i->btime);
	put64(w, i->names.lo);
	put64(w, i->names.hi);
	put32(w, map);
	put32(w, target);
	put32(w, xattrs);
}

static int write_state(void *ctx, uint64_t key, struct reffs_state *s)
{
	struct writer *w = ctx;
	uint32_t map = write_map(w, s->inodes, write_inode);

	put8(w, REC_STATE);
	put64(w, key);
	put32(w, map);
	return 0;
}

static int take_times(void *ctx, uint64_t key, struct reffs_state *s)
{
	(void)key;
	*(bool *)ctx = s->times;
	return 1;
}

int reffs_pickle(const struct reffs_pool *p, const uint64_t *key, struct strbuf *out,
		 struct err *err)
{
	struct reffs_state *one = key ? reffs_pool_get(p, *key) : NULL;
	struct writer w = { .out = out };
	size_t start = out->len;

	if (key && !one)
		return err_set(err, -ENOENT, "no state is saved under the key %llu",
			       (unsigned long long)*key);
	if (one)
		w.times = one->times;
	else
		reffs_pool_each(p, take_times, &w.times);
	strbuf_adds(out, PICKLE_MAGIC);
	put32(&w, REFFS_PICKLE_VERSION);
	put32(&w, w.times ? PICKLE_TIMES : 0);
	if (one)
		write_state(&w, *key, one);
	else
		reffs_pool_each(p, write_state, &w);
	put8(&w, REC_END);
	pins_release(&w.numbers);
	if (w.overflow) {
		strbuf_cut(out, start);
		return err_set(err, -EFBIG,
			       "the states are too many for one file; write each "
			       "key into a file of its own");
	}
	struct hash128 sum = hash_bytes(out->buf + start, out->len - start);
	put64(&w, sum.lo);
	put64(&w, sum.hi);
	return 0;
}

int reffs_pickle_file(const struct reffs_pool *p, const uint64_t *key, const char *path,
		      struct err *err)
{
	auto_strbuf text = STRBUF_INIT;
	int rc = reffs_pickle(p, key, &text, err);

	return rc ? rc : io_write_file(NULL, path, text.buf, text.len, 0, err);
}
