/* SPDX-License-Identifier: MIT */
/*
 * pagefile.c - a file as an application sees it: held blocks, and elsewhere the durable content up
 * to the cut, without the holes.
 *
 * B1: a block that is held begins before the end of the file; its bytes behind the end are zeros.
 * B2: durable bytes at or behind durable_end() and in holes are never seen.
 * So only the size changes when a file gets longer.
 */
#include <errno.h>
#include <unistd.h>

#include "fs/pagecache_impl.h"

#define OFFSET_MAX ((uint64_t)INT64_MAX)

struct pagefile *pagefile_new(struct pagecache *c, uint64_t durable_size,
			      const struct pagefile_ops *ops, void *ctx)
{
	struct pagefile *f = xcalloc(1, sizeof(*f));

	f->cache = c;
	f->ops = ops;
	f->ctx = ctx;
	f->size = f->durable_size = durable_size;
	f->cut = NO_CUT;
	return f;
}

void pagefile_free(struct pagefile *f)
{
	if (!f)
		return;
	pagefile_drop(f);
	vec_release(&f->holes);
	free(f);
}

uint64_t pagefile_size(const struct pagefile *f)
{
	return f->size;
}

uint64_t pagefile_durable_size(const struct pagefile *f)
{
	return f->durable_size;
}

bool pagefile_is_clean(const struct pagefile *f)
{
	return !f->tree.root && f->size == f->durable_size && f->cut == NO_CUT && !f->holes.n;
}

uint64_t pagefile_dirty_bytes(const struct pagefile *f)
{
	return f->dirty * pagecache_opts(f->cache)->block_size;
}

static uint32_t block_size_of(const struct pagefile *f)
{
	return pagecache_opts(f->cache)->block_size;
}

/* Reads the durable content where no block is held. */
static int read_below(struct pagefile *f, unsigned char *data, uint64_t offset, size_t len)
{
	uint64_t end = durable_end(f), stop = offset + len;
	size_t there = offset < end ? min((uint64_t)len, end - offset) : 0;
	const struct hole *h = f->holes.n ? holes_next(&f->holes, offset) : NULL;
	int rc = there ? f->ops->fill(f->ctx, data, offset, there) : 0;

	if (rc)
		return rc;
	memset(data + there, 0, len - there);
	for (; h && h < f->holes.v + f->holes.n && h->start < stop; h++) {
		uint64_t from = max(h->start, offset), to = min(h->end, stop);

		memset(data + (from - offset), 0, to - from);
	}
	return 0;
}

/* ---- reading ---- */

/* Reads from a page, from `at` in it; adjacent blocks of one state are read together. */
static int read_page(struct pagefile *f, struct page *p, unsigned char *data, uint32_t at,
		     uint32_t len)
{
	uint32_t block_size = block_size_of(f);
	uint64_t base = p->index * pagecache_page_size(f->cache);
	int rc = 0;

	page_touch(f->cache, p);
	for (uint32_t stop = at + len, next; !rc && at < stop; at = next) {
		bool absent = p->blocks[at / block_size].state == BLOCK_ABSENT;

		next = (at / block_size + 1) * block_size;
		while (next < stop &&
		       (p->blocks[next / block_size].state == BLOCK_ABSENT) == absent)
			next += block_size;
		next = min(next, stop);
		if (absent)
			rc = read_below(f, data, base + at, next - at);
		else
			memcpy(data, p->data + at, next - at);
		data += next - at;
	}
	return rc;
}

int64_t pagefile_read(struct pagefile *f, void *data, uint64_t offset, size_t len)
{
	uint32_t page_size = pagecache_page_size(f->cache);
	unsigned char *to = data;
	uint64_t at = offset, stop;
	int rc = 0;

	if (offset >= f->size)
		return 0;
	len = min((uint64_t)len, f->size - offset);
	stop = offset + len;
	while (!rc && at < stop) {
		struct page *p = pagetree_next(&f->tree, at / page_size);
		uint64_t from = p ? p->index * page_size : UINT64_MAX, next;

		if (from > at) {
			next = min(stop, from);
			rc = read_below(f, to, at, next - at);
		} else {
			next = min(stop, from + page_size);
			rc = read_page(f, p, to, (uint32_t)(at - from), (uint32_t)(next - at));
		}
		to += next - at;
		at = next;
	}
	return rc ? rc : (int64_t)len;
}

/* ---- writing ---- */

static void mark_dirty(struct pagefile *f, struct page *p, struct block *b, uint64_t number,
		       uint64_t time_ns)
{
	if (b->state == BLOCK_ABSENT)
		p->held++;
	if (b->state != BLOCK_DIRTY) {
		b->state = BLOCK_DIRTY;
		b->first = number;
		b->since_ns = time_ns;
		f->dirty++;
	}
	b->last = number;
}

/* Fills the part of the block at `at` that a write from `from` to `to` does not cover. */
static int fill_block(struct pagefile *f, struct page *p, uint32_t at, uint32_t from, uint32_t to)
{
	uint32_t block_size = block_size_of(f), start = at / block_size * block_size;
	uint64_t base = p->index * pagecache_page_size(f->cache);
	uint32_t end = start + block_size;
	int rc = 0;

	if (p->blocks[at / block_size].state != BLOCK_ABSENT)
		return 0;
	if (from > start)
		rc = read_below(f, p->data + start, base + start, from - start);
	if (!rc && to < end)
		rc = read_below(f, p->data + to, base + to, end - to);
	return rc;
}

/* Writes [from, to) of a page. On failure nothing is changed. */
static int write_page(struct pagefile *f, struct page *p, const void *data, uint32_t from,
		      uint32_t to, uint64_t number, uint64_t time_ns)
{
	uint32_t block_size = block_size_of(f);
	uint32_t first = from / block_size, last = (to - 1) / block_size;
	int rc = fill_block(f, p, from, from, to);

	if (!rc && last != first)
		rc = fill_block(f, p, to - 1, from, to);
	if (rc)
		return rc;
	memcpy(p->data + from, data, to - from);
	for (uint32_t i = first; i <= last; i++)
		mark_dirty(f, p, &p->blocks[i], number, time_ns);
	return 0;
}

static void settle_one(struct pagefile *f, struct page *p)
{
	struct page *list = NULL;

	page_settle(f, p, &list);
	pagecache_free_pages(f->cache, list);
}

/* Writes straight to the durable content, up to the next held page, as the cache is full. */
static int write_past(struct pagefile *f, const void *data, uint64_t at, uint64_t stop,
		      uint64_t *next)
{
	uint32_t page_size = pagecache_page_size(f->cache);
	struct page *p = pagetree_next(&f->tree, at / page_size);
	struct iovec v;
	int rc;

	*next = p ? min(stop, p->index * page_size) : stop;
	v = (struct iovec){ (void *)data, *next - at };
	rc = pagefile_write_below(f, &v, 1, at, *next - at);
	return rc;
}

/* Writes up to the end of a page, or further if the write does not go through the cache. */
static int write_some(struct pagefile *f, const void *data, uint64_t at, uint64_t stop,
		      uint64_t number, uint64_t time_ns, uint64_t *next)
{
	uint32_t page_size = pagecache_page_size(f->cache);
	uint32_t from = (uint32_t)(at % page_size);
	struct page *p = pagetree_find(&f->tree, at / page_size);
	int rc = 0;

	*next = min(stop, at - from + page_size);
	if (p)
		page_touch(f->cache, p);
	else
		rc = page_take(f, at / page_size, &p);
	if (rc == -ENOSPC)
		return write_past(f, data, at, stop, next);
	if (rc)
		return rc;
	rc = write_page(f, p, data, from, from + (uint32_t)(*next - at), number, time_ns);
	if (rc)
		settle_one(f, p);
	return rc;
}

int pagefile_write(struct pagefile *f, const void *data, uint64_t offset, size_t len,
		   uint64_t number, uint64_t time_ns)
{
	uint64_t at = offset, stop, next;
	const unsigned char *from = data;
	int rc = 0;

	if (!len)
		return 0;
	if (offset > OFFSET_MAX || len > OFFSET_MAX - offset)
		return -EFBIG;
	for (stop = offset + len; !rc && at < stop;) {
		rc = write_some(f, from, at, stop, number, time_ns, &next);
		if (rc)
			break;
		from += next - at;
		at = next;
		f->size = max(f->size, at);
	}
	return rc;
}

/* Copies bytes that became durable into held blocks. */
static void update_held(struct pagefile *f, const unsigned char *data, uint64_t offset,
			uint64_t stop)
{
	uint32_t page_size = pagecache_page_size(f->cache), block_size = block_size_of(f);
	struct page *p = pagetree_next(&f->tree, offset / page_size);

	for (; p && p->index * page_size < stop; p = pagetree_next(&f->tree, p->index + 1)) {
		uint64_t base = p->index * page_size;

		for (uint32_t i = 0; i < page_size / block_size; i++) {
			uint64_t start = base + (uint64_t)i * block_size;
			uint64_t from = max(offset, start), to = min(stop, start + block_size);

			if (from < to && p->blocks[i].state != BLOCK_ABSENT)
				memcpy(p->data + (from - base), data + (from - offset), to - from);
		}
	}
}

int pagefile_write_durable(struct pagefile *f, const void *data, uint64_t offset, size_t len)
{
	struct iovec v = { (void *)data, len };
	int rc;

	if (!len)
		return 0;
	if (offset > OFFSET_MAX || len > OFFSET_MAX - offset)
		return -EFBIG;
	rc = pagefile_write_below(f, &v, 1, offset, len);
	if (rc)
		return rc;
	f->size = max(f->size, offset + len);
	update_held(f, data, offset, offset + len);
	pagefile_release(f, offset, offset + len);
	return 0;
}

/* ---- sizes and zeros ---- */

static void set_size(struct pagefile *f, uint64_t size, uint64_t number, uint64_t time_ns)
{
	f->size = f->set_size = size;
	if (!f->size_was_set) {
		f->size_first = number;
		f->size_since_ns = time_ns;
	}
	f->size_was_set = true;
	f->size_last = number;
}

/* Zeroes held blocks; releases those that are wholly inside. */
static void zero_held(struct pagefile *f, uint64_t start, uint64_t end, uint64_t number,
		      uint64_t time_ns)
{
	uint32_t page_size = pagecache_page_size(f->cache), block_size = block_size_of(f);
	uint64_t edges[] = { start, end };

	pagefile_release(f, start, end);
	for (size_t i = 0; i < ARRAY_SIZE(edges); i++) {
		uint64_t block = (i ? end - 1 : start) / block_size * block_size;
		struct page *p = pagetree_find(&f->tree, block / page_size);
		uint64_t from = max(start, block), to = min(end, block + block_size);

		if (!p)
			continue;
		struct block *b = &p->blocks[block % page_size / block_size];
		if (b->state == BLOCK_ABSENT)
			continue;
		memset(p->data + from % page_size, 0, to - from);
		mark_dirty(f, p, b, number, time_ns);
	}
}

int pagefile_truncate(struct pagefile *f, uint64_t size, uint64_t number, uint64_t time_ns)
{
	if (size > OFFSET_MAX)
		return -EFBIG;
	if (size < f->size)
		zero_held(f, size, f->size, number, time_ns);
	if (size < durable_end(f)) {
		holes_subtract(&f->holes, size, UINT64_MAX);
		f->cut = size;
	}
	/*
	 * A truncation to the present size changes nothing. The kernel sends one after a direct
	 * write beyond the end that failed.
	 */
	if (size != f->size)
		set_size(f, size, number, time_ns);
	return 0;
}

int pagefile_zero(struct pagefile *f, uint64_t offset, uint64_t len, bool keep_size,
		  uint64_t number, uint64_t time_ns)
{
	uint64_t end, below;

	if (offset > OFFSET_MAX || len > OFFSET_MAX - offset)
		return -EFBIG;
	end = offset + len;
	if (offset < min(end, f->size))
		zero_held(f, offset, min(end, f->size), number, time_ns);
	below = min(end, durable_end(f));
	if (offset < below)
		holes_add(&f->holes, &(struct hole){ offset, below, number, number, time_ns });
	if (!keep_size && end > f->size)
		set_size(f, end, number, time_ns);
	return 0;
}

/* ---- losing ---- */

void pagefile_drop(struct pagefile *f)
{
	if (!pagefile_detach_pages(f))
		pagefile_release(f, 0, UINT64_MAX);
	assert(!f->tree.root && !f->dirty);
	f->size = f->durable_size;
	f->cut = NO_CUT;
	vec_clear(&f->holes);
	f->size_was_set = false;
}

void pagefile_fail(struct pagefile *f)
{
	uint32_t n = pagecache_page_size(f->cache) / block_size_of(f);
	struct page *p = pagetree_next(&f->tree, 0);

	for (; p; p = pagetree_next(&f->tree, p->index + 1))
		for (uint32_t i = 0; i < n; i++)
			if (p->blocks[i].state == BLOCK_DIRTY)
				p->blocks[i].state = BLOCK_FAILED;
	f->dirty = 0;
}

/* ---- telling ---- */

struct risks {
	int (*fn)(void *ctx, const struct pagefile_risk *r);
	void *ctx;
	struct pagefile_risk now; /* len 0: none */
};

static int risk_flush(struct risks *r)
{
	int rc = r->now.len ? r->fn(r->ctx, &r->now) : 0;

	r->now.len = 0;
	return rc;
}

static int risk_add(struct risks *r, const struct block *b, uint64_t offset, uint64_t len)
{
	bool failed = b->state == BLOCK_FAILED;
	struct pagefile_risk *now = &r->now;

	if (now->len && (now->offset + now->len != offset || now->failed != failed)) {
		int rc = risk_flush(r);

		if (rc)
			return rc;
	}
	if (!now->len)
		*now = (struct pagefile_risk){
			.offset = offset,
			.first = b->first,
			.last = b->last,
			.since_ns = b->since_ns,
			.failed = failed,
		};
	now->len += len;
	now->first = min(now->first, b->first);
	now->last = max(now->last, b->last);
	now->since_ns = min(now->since_ns, b->since_ns);
	return 0;
}

static int data_risks(const struct pagefile *f, struct risks *r)
{
	uint32_t page_size = pagecache_page_size(f->cache), block_size = block_size_of(f);
	struct page *p = pagetree_next(&f->tree, 0);
	int rc = 0;

	for (; !rc && p; p = pagetree_next(&f->tree, p->index + 1))
		for (uint32_t i = 0; !rc && i < page_size / block_size; i++)
			if (p->blocks[i].state != BLOCK_ABSENT)
				rc = risk_add(r, &p->blocks[i],
					      p->index * page_size + (uint64_t)i * block_size,
					      block_size);
	return rc ? rc : risk_flush(r);
}

static int hole_risks(const struct pagefile *f, struct risks *r)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < f->holes.n; i++) {
		const struct hole *h = &f->holes.v[i];

		r->now = (struct pagefile_risk){
			.kind = RISK_HOLE,
			.offset = h->start,
			.len = h->end - h->start,
			.first = h->first,
			.last = h->last,
			.since_ns = h->since_ns,
		};
		rc = risk_flush(r);
	}
	return rc;
}

int pagefile_risks(const struct pagefile *f, int (*fn)(void *ctx, const struct pagefile_risk *r),
		   void *ctx)
{
	struct risks r = { .fn = fn, .ctx = ctx };
	uint64_t start = min(f->size, durable_end(f)), end = max(f->size, f->durable_size);
	int rc = data_risks(f, &r);

	if (!rc)
		rc = hole_risks(f, &r);
	if (rc || !f->size_was_set)
		return rc;
	r.now = (struct pagefile_risk){
		.kind = RISK_SIZE,
		.offset = start,
		.len = end - start,
		.first = f->size_first,
		.last = f->size_last,
		.since_ns = f->size_since_ns,
	};
	return risk_flush(&r);
}

/* ---- data and holes ---- */

/* Returns the first held block that ends behind `offset`, or UINT64_MAX. */
static uint64_t next_held(const struct pagefile *f, uint64_t offset)
{
	uint32_t page_size = pagecache_page_size(f->cache), block_size = block_size_of(f);
	struct page *p = pagetree_next(&f->tree, offset / page_size);

	for (; p; p = pagetree_next(&f->tree, p->index + 1))
		for (uint32_t i = 0; i < page_size / block_size; i++) {
			uint64_t start = p->index * page_size + (uint64_t)i * block_size;

			if (start + block_size > offset && p->blocks[i].state != BLOCK_ABSENT)
				return start;
		}
	return UINT64_MAX;
}

/* Gives the first visible durable byte from `at` on that is data; UINT64_MAX if none. Or -errno. */
static int data_below(struct pagefile *f, uint64_t at,
		      int64_t (*below)(void *ctx, uint64_t offset, int whence), uint64_t *out)
{
	*out = UINT64_MAX;
	while (at < durable_end(f)) {
		int64_t found = below(f->ctx, at, SEEK_DATA);

		if (found == -ENXIO)
			return 0;
		if (found < 0)
			return (int)found;
		const struct hole *h = holes_next(&f->holes, (uint64_t)found);
		if (!h || h->start > (uint64_t)found) {
			if ((uint64_t)found < durable_end(f))
				*out = (uint64_t)found;
			return 0;
		}
		at = h->end;
	}
	return 0;
}

static int64_t seek_data(struct pagefile *f, uint64_t offset,
			 int64_t (*below)(void *ctx, uint64_t offset, int whence))
{
	uint64_t held = max(next_held(f, offset), offset), found;
	int rc = data_below(f, offset, below, &found);

	if (rc)
		return rc;
	found = min(found, held);
	return found < f->size ? (int64_t)found : -ENXIO;
}

static int64_t seek_hole(struct pagefile *f, uint64_t at,
			 int64_t (*below)(void *ctx, uint64_t offset, int whence))
{
	while (at < f->size) {
		uint64_t held = next_held(f, at), end = durable_end(f);

		if (held <= at) {
			at = held + block_size_of(f);
			continue;
		}
		const struct hole *h = holes_next(&f->holes, at);
		if (at >= end || (h && h->start <= at))
			return (int64_t)at;
		int64_t found = below(f->ctx, at, SEEK_HOLE);
		if (found < 0)
			return found;
		end = min(end, (uint64_t)found);
		if (h)
			end = min(end, h->start);
		if (end < held)
			return (int64_t)min(end, f->size);
		at = held;
	}
	return (int64_t)f->size;
}

int64_t pagefile_seek(struct pagefile *f, uint64_t offset, int whence,
		      int64_t (*below)(void *ctx, uint64_t offset, int whence))
{
	if (whence != SEEK_DATA && whence != SEEK_HOLE)
		return -EINVAL;
	if (offset >= f->size)
		return -ENXIO;
	return whence == SEEK_DATA ? seek_data(f, offset, below) : seek_hole(f, offset, below);
}
