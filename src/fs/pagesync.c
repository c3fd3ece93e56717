/* SPDX-License-Identifier: MIT */
/*
 * pagesync.c - writes the pages of a file to its durable content.
 *
 * Dirty blocks are written in order of offset; adjacent blocks become one write of many pieces. A
 * block is released only after it was written, so a failure leaves the others unchanged. The cut is
 * made before bytes behind it are written: else old bytes behind it would be visible again.
 */
#include <errno.h>

#include "fs/pagecache_impl.h"

enum { RUN_BYTES = 1 << 20, ZEROS = 1 << 16 };

/* Blocks that touch, not yet written. */
struct page_run {
	struct iovec v[PAGEFILE_PIECES];
	int n;
	uint64_t offset, len;
};

/* Makes a truncation durable if bytes up to `end`, behind it, are to be written. */
static int pagefile_apply_cut(struct pagefile *f, uint64_t end)
{
	int rc;

	if (f->cut == NO_CUT || end <= f->cut)
		return 0;
	rc = f->ops->resize(f->ctx, f->cut);
	if (rc)
		return rc;
	f->durable_size = f->cut;
	f->cut = NO_CUT;
	return 0;
}

static int zero_below(struct pagefile *f, uint64_t start, uint64_t end)
{
	static const unsigned char zeros[ZEROS];
	int rc = 0;

	if (f->ops->zero)
		return f->ops->zero(f->ctx, start, end - start);
	while (!rc && start < end) {
		size_t n = min(end - start, (uint64_t)ZEROS);

		rc = f->ops->write(f->ctx, zeros, start, n);
		start += n;
	}
	return rc;
}

/* Makes holes durable, from the last one on, as removing the last is cheap. */
static int apply_holes(struct pagefile *f)
{
	while (f->holes.n) {
		const struct hole *h = &vec_last(&f->holes);
		int rc = zero_below(f, h->start, h->end);

		if (rc)
			return rc;
		f->holes.n--;
	}
	return 0;
}

int pagefile_write_below(struct pagefile *f, const struct iovec *v, int n, uint64_t offset,
			 uint64_t len)
{
	int rc = pagefile_apply_cut(f, offset + len);

	if (rc)
		return rc;
	if (n == 1)
		rc = f->ops->write(f->ctx, v->iov_base, offset, v->iov_len);
	else
		rc = f->ops->writev(f->ctx, v, n, offset);
	if (rc)
		return rc;
	f->durable_size = max(f->durable_size, offset + len);
	holes_subtract(&f->holes, offset, offset + len);
	return 0;
}

/* ---- letting go ---- */

/* Releases blocks; one counts as covered if its part in the file is. */
static void release_blocks(struct pagefile *f, struct page *p, uint64_t start, uint64_t end)
{
	uint32_t page_size = pagecache_page_size(f->cache);
	uint32_t block_size = pagecache_opts(f->cache)->block_size;
	uint64_t at = p->index * page_size;

	for (struct block *b = p->blocks; b < p->blocks + page_size / block_size; b++) {
		if (at >= start && (at + block_size <= end || f->size <= end) && at < end)
			block_release(f, p, b);
		at += block_size;
	}
}

void pagefile_release(struct pagefile *f, uint64_t start, uint64_t end)
{
	uint32_t page_size = pagecache_page_size(f->cache);
	struct page *p = pagetree_next(&f->tree, start / page_size), *list = NULL;

	while (p && p->index * page_size < end) {
		uint64_t index = p->index;

		release_blocks(f, p, start, end);
		page_settle(f, p, &list);
		p = pagetree_next(&f->tree, index + 1);
	}
	pagecache_free_pages(f->cache, list);
}

/* ---- writing ---- */

static int run_write(struct pagefile *f, struct page_run *r)
{
	int rc = 0;

	if (r->n)
		rc = pagefile_write_below(f, r->v, r->n, r->offset, r->len);
	if (!rc && r->n)
		pagefile_release(f, r->offset, r->offset + r->len);
	r->n = 0;
	r->len = 0;
	return rc;
}

/* True if these bytes can be added to the run. */
static bool run_takes(const struct pagefile *f, const struct page_run *r, const void *data,
		      uint64_t offset, size_t len)
{
	const struct iovec *last = r->n ? &r->v[r->n - 1] : NULL;

	if (!last)
		return true;
	if (offset != r->offset + r->len || r->len + len > RUN_BYTES)
		return false;
	if ((const char *)last->iov_base + last->iov_len == data)
		return true;
	return f->ops->writev && r->n < PAGEFILE_PIECES;
}

static int run_add(struct pagefile *f, struct page_run *r, void *data, uint64_t offset, size_t len)
{
	if (!run_takes(f, r, data, offset, len)) {
		int rc = run_write(f, r);

		if (rc)
			return rc;
	}
	struct iovec *last = r->n ? &r->v[r->n - 1] : NULL;
	if (!last)
		r->offset = offset;
	if (last && (char *)last->iov_base + last->iov_len == data)
		last->iov_len += len;
	else
		r->v[r->n++] = (struct iovec){ data, len };
	r->len += len;
	return 0;
}

static int add_page(struct pagefile *f, struct page_run *r, struct page *p, uint64_t start,
		    uint64_t end)
{
	uint32_t page_size = pagecache_page_size(f->cache);
	uint32_t block_size = pagecache_opts(f->cache)->block_size;
	uint64_t base = p->index * page_size;
	int rc = 0;

	/* Writing the run releases blocks, and this page only after its last block. */
	for (uint32_t i = 0; !rc && i < page_size / block_size; i++) {
		uint64_t at = base + (uint64_t)i * block_size;

		if (p->blocks[i].state == BLOCK_DIRTY && at < end && at + block_size > start)
			rc = run_add(f, r, p->data + (at - base), at,
				     min((uint64_t)block_size, f->size - at));
	}
	return rc;
}

int pagefile_write_back(struct pagefile *f, uint64_t start, uint64_t end)
{
	uint32_t page_size = pagecache_page_size(f->cache);
	struct page *p = pagetree_next(&f->tree, start / page_size);
	struct page_run r;
	int rc = 0;

	if (!f->dirty)
		return 0;
	r.n = 0;
	r.len = 0;
	while (!rc && p && p->index * page_size < end) {
		uint64_t index = p->index;

		rc = add_page(f, &r, p, start, end);
		p = pagetree_next(&f->tree, index + 1);
	}
	return rc ? rc : run_write(f, &r);
}

/* ---- the interface ---- */

static int resize_to(struct pagefile *f, uint64_t size)
{
	int rc;

	if (size == f->durable_size)
		return 0;
	rc = f->ops->resize(f->ctx, size);
	if (!rc)
		f->durable_size = size;
	return rc;
}

int pagefile_sync(struct pagefile *f)
{
	int rc = pagefile_apply_cut(f, UINT64_MAX);

	if (!rc)
		rc = apply_holes(f);
	if (!rc)
		rc = pagefile_write_back(f, 0, UINT64_MAX);
	if (!rc)
		rc = resize_to(f, f->size);
	if (!rc)
		f->size_was_set = false;
	return rc;
}

int pagefile_sync_range(struct pagefile *f, uint64_t offset, uint64_t len)
{
	uint64_t end = len > UINT64_MAX - offset ? UINT64_MAX : offset + len;

	return len ? pagefile_write_back(f, offset, end) : 0;
}

int pagefile_sync_size(struct pagefile *f, bool grown)
{
	int rc = pagefile_apply_cut(f, UINT64_MAX);

	if (!rc)
		rc = apply_holes(f);
	if (!rc && f->size_was_set)
		rc = resize_to(f, max(f->durable_size, f->set_size));
	if (!rc && grown)
		rc = resize_to(f, f->size);
	if (!rc)
		f->size_was_set = false;
	return rc;
}
