/* SPDX-License-Identifier: MIT */
/*
 * The page cache against a naive model: a file as two arrays of bytes, what shows and what is
 * durable, with a state for every block and a mark on every byte whose old content is hidden.
 */
#include "tap.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "base/rng.h"
#include "base/vec.h"
#include "fs/pagecache.h"

/* ---- the durable content, which can fail ---- */

enum { SPACE = 24 << 10 };

struct store {
	unsigned char data[SPACE];
	uint64_t size;
	int fail_at; /* the call that fails, from 1; 0: none */
	int calls, writes;
	uint64_t last_end; /* of writes, to see their order */
	bool unordered;
	pthread_rwlock_t lock;
};

static int call(struct store *s)
{
	return __atomic_add_fetch(&s->calls, 1, __ATOMIC_RELAXED) == s->fail_at ? -EIO : 0;
}

static int store_fill(void *ctx, void *data, uint64_t offset, size_t len)
{
	struct store *s = ctx;
	int rc = call(s);

	if (rc)
		return rc;
	assert(len && offset + len <= SPACE);
	for (size_t i = 0; i < len; i++)
		((unsigned char *)data)[i] = offset + i < s->size ? s->data[offset + i] : 0;
	return 0;
}

static void put(struct store *s, const void *data, uint64_t offset, size_t len)
{
	assert(len && offset + len <= SPACE);
	if (offset > s->size)
		memset(s->data + s->size, 0, offset - s->size);
	memcpy(s->data + offset, data, len);
	s->size = max(s->size, offset + len);
}

static int store_writev(void *ctx, const struct iovec *v, int n, uint64_t offset)
{
	struct store *s = ctx;
	int rc = call(s);

	if (rc)
		return rc;
	s->unordered |= offset < s->last_end;
	for (int i = 0; i < n; i++) {
		put(s, v[i].iov_base, offset, v[i].iov_len);
		offset += v[i].iov_len;
	}
	s->last_end = offset;
	s->writes++;
	return 0;
}

static int store_write(void *ctx, const void *data, uint64_t offset, size_t len)
{
	struct iovec v = { (void *)data, len };

	return store_writev(ctx, &v, 1, offset);
}

static int store_resize(void *ctx, uint64_t size)
{
	struct store *s = ctx;
	int rc = call(s);

	if (rc)
		return rc;
	assert(size <= SPACE);
	if (size > s->size)
		memset(s->data + s->size, 0, size - s->size);
	s->size = size;
	return 0;
}

static int store_zero(void *ctx, uint64_t offset, uint64_t len)
{
	struct store *s = ctx;
	int rc = call(s);

	if (rc)
		return rc;
	assert(len && offset + len <= s->size);
	memset(s->data + offset, 0, len);
	return 0;
}

static bool store_trylock(void *ctx)
{
	return !pthread_rwlock_trywrlock(&((struct store *)ctx)->lock);
}

static void store_unlock(void *ctx)
{
	pthread_rwlock_unlock(&((struct store *)ctx)->lock);
}

static const struct pagefile_ops full_ops = {
	.fill = store_fill,
	.write = store_write,
	.resize = store_resize,
	.writev = store_writev,
	.zero = store_zero,
	.trylock = store_trylock,
	.unlock = store_unlock,
};

static const struct pagefile_ops plain_ops = {
	.fill = store_fill,
	.write = store_write,
	.resize = store_resize,
};

/* In blocks of 512: data where there is a byte that is not zero. */
static int64_t store_seek(void *ctx, uint64_t offset, int whence)
{
	const struct store *s = ctx;

	if (offset >= s->size)
		return -ENXIO;
	for (uint64_t at = offset / 512 * 512; at < s->size; at += 512) {
		bool data = false;

		for (uint64_t i = at; i < min(at + 512, s->size); i++)
			data |= s->data[i] != 0;
		if (data == (whence == SEEK_DATA))
			return (int64_t)max(at, offset);
	}
	return whence == SEEK_DATA ? -ENXIO : (int64_t)s->size;
}

/* ---- the model ---- */

struct model {
	uint32_t block;
	unsigned char shows[SPACE], durable[SPACE];
	uint64_t size, durable_size, cut;
	bool hidden[SPACE]; /* zeros until a sync makes them so */
	enum { ABSENT, DIRTY, FAILED } state[SPACE / 64];
	uint64_t set_size;
	bool was_set;
};

static uint64_t durable_end(const struct model *m)
{
	return min(m->durable_size, m->cut);
}

static void m_resize_durable(struct model *m, uint64_t size)
{
	if (size > m->durable_size)
		memset(m->durable + m->durable_size, 0, size - m->durable_size);
	m->durable_size = size;
}

static void m_cut(struct model *m)
{
	if (m->cut < m->durable_size)
		m_resize_durable(m, m->cut);
	m->cut = UINT64_MAX;
}

static void m_put_durable(struct model *m, const unsigned char *data, uint64_t start, uint64_t end)
{
	if (end > m->cut)
		m_cut(m);
	if (start > m->durable_size)
		m_resize_durable(m, start);
	memcpy(m->durable + start, data, end - start);
	memset(m->hidden + start, 0, end - start);
	m->durable_size = max(m->durable_size, end);
}

static void m_write(struct model *m, const unsigned char *data, uint64_t offset, uint64_t len)
{
	if (!len)
		return;
	memcpy(m->shows + offset, data, len);
	for (uint64_t b = offset / m->block; b <= (offset + len - 1) / m->block; b++)
		m->state[b] = DIRTY;
	m->size = max(m->size, offset + len);
}

/* A block that is wholly in the range is let go, one that is only touched is dirty if it is held */
static void m_zero_blocks(struct model *m, uint64_t start, uint64_t end)
{
	for (uint64_t b = 0; b * m->block < m->size; b++) {
		uint64_t from = b * m->block, to = min(from + m->block, m->size);

		if (from >= end || to <= start || m->state[b] == ABSENT)
			continue;
		m->state[b] = from >= start && to <= end ? ABSENT : DIRTY;
	}
}

static void m_set_size(struct model *m, uint64_t size)
{
	m->size = m->set_size = size;
	m->was_set = true;
}

static void m_truncate(struct model *m, uint64_t size)
{
	if (size < m->size) {
		m_zero_blocks(m, size, m->size);
		memset(m->shows + size, 0, SPACE - size);
	}
	if (size < durable_end(m)) {
		m->cut = size;
		memset(m->hidden + size, 0, SPACE - size);
	}
	m_set_size(m, size);
}

static void m_zero(struct model *m, uint64_t offset, uint64_t len, bool keep)
{
	uint64_t end = offset + len, inside = min(end, m->size);

	if (offset < inside) {
		m_zero_blocks(m, offset, inside);
		memset(m->shows + offset, 0, inside - offset);
	}
	for (uint64_t i = offset; i < min(end, durable_end(m)); i++)
		m->hidden[i] = true;
	if (!keep && end > m->size)
		m_set_size(m, end);
}

static void m_sync_range(struct model *m, uint64_t start, uint64_t end)
{
	for (uint64_t b = 0; b * m->block < m->size; b++) {
		uint64_t from = b * m->block, to = min(from + m->block, m->size);

		if (m->state[b] != DIRTY || from >= end || from + m->block <= start)
			continue;
		m_put_durable(m, m->shows + from, from, to);
		m->state[b] = ABSENT;
	}
}

static void m_sync_size(struct model *m, bool grown)
{
	m_cut(m);
	for (uint64_t i = 0; i < m->durable_size; i++)
		if (m->hidden[i])
			m->durable[i] = 0;
	memset(m->hidden, 0, sizeof(m->hidden));
	if (m->was_set)
		m_resize_durable(m, max(m->durable_size, m->set_size));
	if (grown)
		m_resize_durable(m, m->size);
	m->was_set = false;
}

static void m_drop(struct model *m)
{
	memset(m->shows, 0, SPACE);
	memcpy(m->shows, m->durable, m->durable_size);
	m->size = m->durable_size;
	m->cut = UINT64_MAX;
	m->was_set = false;
	memset(m->hidden, 0, sizeof(m->hidden));
	memset(m->state, 0, sizeof(m->state));
}

static void m_sync(struct model *m)
{
	m->was_set = false;
	m_sync_size(m, false);
	m_sync_range(m, 0, UINT64_MAX);
	m_resize_durable(m, m->size);
}

static void m_fail(struct model *m)
{
	for (size_t i = 0; i < ARRAY_SIZE(m->state); i++)
		if (m->state[i] == DIRTY)
			m->state[i] = FAILED;
}

/* ---- both, side by side ---- */

struct pair {
	struct pagecache *cache;
	struct pagefile *file;
	struct store store;
	struct model model;
	struct rng rng;
	uint64_t number;
	bool only_shows; /* what is durable depends on evictions: not compared until a sync */
	bool may_fail;
	const char *wrong;
};

static const unsigned char *random_bytes(struct pair *p, uint64_t len)
{
	static unsigned char data[SPACE];

	for (uint64_t i = 0; i < len; i++)
		data[i] = (unsigned char)(1 + rng_below(&p->rng, 255));
	return data;
}

/* Edges of blocks and pages, and around them, more often than not. */
static uint64_t random_offset(struct pair *p, uint64_t below)
{
	uint64_t v = rng_below(&p->rng, below);

	switch (rng_below(&p->rng, 4)) {
	case 0:
		return v / p->model.block * p->model.block;
	case 1:
		v = v / p->model.block * p->model.block + rng_below(&p->rng, 3);
		return v ? v - 1 : 0;
	default:
		return v;
	}
}

static void check_shows(struct pair *p)
{
	static unsigned char data[SPACE + 1];
	uint64_t from = random_offset(p, SPACE), len = rng_below(&p->rng, SPACE - from + 1);
	const struct model *m = &p->model;
	int64_t n;

	if (pagefile_size(p->file) != m->size) {
		p->wrong = "the size is wrong";
		return;
	}
	if (rng_below(&p->rng, 2)) {
		from = 0;
		len = SPACE;
	}
	data[len] = 0xee;
	n = pagefile_read(p->file, data, from, len);
	uint64_t want = from < m->size ? min(len, m->size - from) : 0;
	if (n != (int64_t)want || memcmp(data, m->shows + from, want) || data[len] != 0xee)
		p->wrong = "what is read is wrong";
}

static void check_durable(struct pair *p)
{
	const struct model *m = &p->model;
	uint64_t dirty = 0;

	if (p->store.size != m->durable_size || memcmp(p->store.data, m->durable, m->durable_size))
		p->wrong = "what is durable is wrong";
	if (pagefile_durable_size(p->file) != m->durable_size)
		p->wrong = "the durable size is wrong";
	for (size_t i = 0; i < ARRAY_SIZE(m->state); i++)
		dirty += m->state[i] == DIRTY;
	if (pagefile_dirty_bytes(p->file) != dirty * m->block)
		p->wrong = "the count of dirty bytes is wrong";
}

/* With evictions the model does not know what is durable; after a sync it does. */
static void adopt_durable(struct pair *p)
{
	struct model *m = &p->model;

	memcpy(m->durable, p->store.data, SPACE);
	m->durable_size = p->store.size;
}

struct marks {
	uint32_t block;
	unsigned char seen[SPACE / 64];
	uint64_t end;
	bool bad;
};

static int mark_risk(void *ctx, const struct pagefile_risk *r)
{
	struct marks *k = ctx;

	if (r->kind != RISK_DATA)
		return 0;
	if (r->offset < k->end || r->first > r->last || !r->first || r->since_ns != r->first * 10)
		k->bad = true;
	for (uint64_t at = r->offset; at < r->offset + r->len; at += k->block)
		k->seen[at / k->block] = r->failed ? FAILED : DIRTY;
	k->end = r->offset + r->len;
	return 0;
}

static void check_risks(struct pair *p)
{
	struct marks k = { .block = p->model.block };

	if (pagefile_risks(p->file, mark_risk, &k) || k.bad)
		p->wrong = "a risk is wrong";
	for (size_t i = 0; i < ARRAY_SIZE(k.seen); i++)
		if (k.seen[i] != p->model.state[i])
			p->wrong = "the blocks at risk are wrong";
}

static void check_clean(struct pair *p)
{
	const struct model *m = &p->model;
	bool clean = m->size == m->durable_size && m->cut == UINT64_MAX;

	for (size_t i = 0; i < ARRAY_SIZE(m->state); i++)
		clean &= m->state[i] == ABSENT;
	for (size_t i = 0; i < SPACE; i++)
		clean &= !m->hidden[i];
	if (clean != pagefile_is_clean(p->file))
		p->wrong = "whether it is clean is wrong";
}

/* What SEEK_DATA calls data may be zeros, what SEEK_HOLE calls a hole must be. */
static void check_seek(struct pair *p)
{
	const struct model *m = &p->model;
	uint64_t from = random_offset(p, SPACE);
	int64_t data = pagefile_seek(p->file, from, SEEK_DATA, store_seek);
	int64_t hole = pagefile_seek(p->file, from, SEEK_HOLE, store_seek);

	if (from >= m->size) {
		if (data != -ENXIO || hole != -ENXIO)
			p->wrong = "a seek behind the end";
		return;
	}
	uint64_t stop = data < 0 ? m->size : (uint64_t)data;
	if ((data < 0 && data != -ENXIO) || stop < from || stop > m->size || hole < (int64_t)from ||
	    hole > (int64_t)m->size)
		p->wrong = "a seek gives what cannot be";
	for (uint64_t i = from; i < stop && i < SPACE; i++)
		if (m->shows[i])
			p->wrong = "a seek for data skips some";
	if (hole >= 0 && (uint64_t)hole < m->size && m->shows[hole])
		p->wrong = "a hole has data";
	if ((data == (int64_t)from) != (hole > (int64_t)from))
		p->wrong = "data and hole at the same place";
}

static void do_write(struct pair *p)
{
	uint64_t offset = random_offset(p, SPACE - 1);
	uint64_t len = rng_below(&p->rng, min(SPACE - offset, (uint64_t)5000) + 1);
	const unsigned char *data = random_bytes(p, len);

	p->number++;
	if (pagefile_write(p->file, data, offset, len, p->number, p->number * 10))
		p->wrong = "a write failed";
	m_write(&p->model, data, offset, len);
}

static void do_write_durable(struct pair *p)
{
	uint64_t offset = random_offset(p, SPACE - 1);
	uint64_t len = rng_below(&p->rng, min(SPACE - offset, (uint64_t)5000) + 1);
	const unsigned char *data = random_bytes(p, len);
	struct model *m = &p->model;

	if (pagefile_write_durable(p->file, data, offset, len))
		p->wrong = "a durable write failed";
	if (!len)
		return;
	memcpy(m->shows + offset, data, len);
	m->size = max(m->size, offset + len);
	m_put_durable(m, data, offset, offset + len);
	for (uint64_t b = 0; b * m->block < m->size; b++)
		if (b * m->block >= offset && b * m->block < offset + len &&
		    min((b + 1) * m->block, m->size) <= offset + len)
			m->state[b] = ABSENT;
}

static void do_truncate(struct pair *p)
{
	uint64_t size = random_offset(p, SPACE);

	p->number++;
	if (pagefile_truncate(p->file, size, p->number, p->number * 10))
		p->wrong = "a truncation failed";
	m_truncate(&p->model, size);
}

static void do_zero(struct pair *p)
{
	uint64_t offset = random_offset(p, SPACE - 1);
	uint64_t len = rng_below(&p->rng, min(SPACE - offset, (uint64_t)6000) + 1);
	bool keep = rng_below(&p->rng, 2);

	p->number++;
	if (pagefile_zero(p->file, offset, len, keep, p->number, p->number * 10))
		p->wrong = "zeros failed";
	m_zero(&p->model, offset, len, keep);
}

static void do_sync(struct pair *p)
{
	struct model *m = &p->model;

	if (pagefile_sync(p->file))
		p->wrong = "a sync failed";
	m_sync(m);
	if (!p->only_shows)
		return;
	if (p->store.size != m->size || memcmp(p->store.data, m->shows, m->size))
		p->wrong = "what was synced is not durable";
	adopt_durable(p);
}

static void do_sync_range(struct pair *p)
{
	uint64_t offset = random_offset(p, SPACE);
	uint64_t len = rng_below(&p->rng, 8) ? rng_below(&p->rng, 6000) : UINT64_MAX;

	if (pagefile_sync_range(p->file, offset, len))
		p->wrong = "a sync of a range failed";
	if (len)
		m_sync_range(&p->model, offset, len == UINT64_MAX ? len : offset + len);
}

static void step(struct pair *p)
{
	bool grown = rng_below(&p->rng, 2);

	switch (rng_below(&p->rng, 40)) {
	case 0 ... 19:
		do_write(p);
		break;
	case 20 ... 24:
		do_truncate(p);
		break;
	case 25 ... 28:
		do_zero(p);
		break;
	case 29 ... 31:
		do_write_durable(p);
		break;
	case 32 ... 33:
		do_sync(p);
		break;
	case 34 ... 36:
		do_sync_range(p);
		break;
	case 37:
		if (pagefile_sync_size(p->file, grown))
			p->wrong = "a sync of the size failed";
		m_sync_size(&p->model, grown);
		break;
	case 38:
		pagefile_drop(p->file);
		if (p->only_shows)
			adopt_durable(p);
		m_drop(&p->model);
		break;
	case 39:
		if (!p->may_fail)
			break;
		pagefile_fail(p->file);
		m_fail(&p->model);
		break;
	}
}

static void pair_init(struct pair *p, const struct pagecache_opts *o,
		      const struct pagefile_ops *ops, uint64_t seed)
{
	struct err err = ERR_INIT;

	memset(p, 0, sizeof(*p));
	if (pagecache_new(o, &p->cache, &err)) {
		printf("Bail out! %s\n", err.msg);
		exit(1);
	}
	rng_init(&p->rng, seed);
	p->model.block = pagecache_opts(p->cache)->block_size;
	p->model.cut = UINT64_MAX;
	p->store.size = p->model.size = p->model.durable_size = rng_below(&p->rng, SPACE);
	memcpy(p->store.data, random_bytes(p, p->store.size), p->store.size);
	memcpy(p->model.shows, p->store.data, p->store.size);
	memcpy(p->model.durable, p->store.data, p->store.size);
	p->only_shows = o->pages_max;
	p->may_fail = !p->only_shows;
	p->file = pagefile_new(p->cache, p->store.size, ops, &p->store);
}

static void pair_release(struct pair *p)
{
	pagefile_free(p->file);
	if (pagecache_pages(p->cache))
		p->wrong = "pages are left";
	pagecache_free(p->cache);
}

static const char *history(const struct pagecache_opts *o, const struct pagefile_ops *ops,
			   uint64_t seed, int steps)
{
	static struct pair p;

	pair_init(&p, o, ops, seed);
	for (int i = 0; i < steps && !p.wrong; i++) {
		step(&p);
		if (!p.wrong)
			check_shows(&p);
		if (!p.wrong)
			check_seek(&p);
		if (o->pages_max && pagecache_pages(p.cache) > o->pages_max)
			p.wrong = "more pages than allowed";
		if (p.only_shows || p.wrong)
			continue;
		check_durable(&p);
		check_risks(&p);
		check_clean(&p);
	}
	pair_release(&p);
	return p.wrong;
}

static void random_histories(void)
{
	static const struct pagecache_opts opts[] = {
		{ 512, 64, 0, false },	{ 512, 512, 0, false },	 { 4096, 0, 0, false },
		{ 4096, 512, 0, true }, { 8192, 1024, 3, true }, { 512, 128, 5, true },
		{ 512, 512, 1, true },	{ 512, 128, 5, false },	 { 4096, 0, 2, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(opts); i++)
		for (int plain = 0; plain < 2; plain++) {
			const char *wrong = NULL;
			uint64_t seed;

			for (seed = 1; seed <= 8 && !wrong; seed++)
				wrong = history(&opts[i], plain ? &plain_ops : &full_ops, seed,
						500);
			ok(!wrong, "pages of %u, blocks of %u, %u at most%s%s: 4000 operations",
			   opts[i].page_size, opts[i].block_size, (unsigned)opts[i].pages_max,
			   opts[i].evict ? ", evicting" : "", plain ? ", plain" : "");
			if (wrong)
				printf("#   seed %" PRIu64 ": %s\n", seed - 1, wrong);
		}
}

/* ---- failures ---- */

/* After a write that failed: a first part is new, the rest and all around it as before. */
static void adopt_failed_write(struct pair *p, const unsigned char *data, uint64_t offset,
			       uint64_t len)
{
	static unsigned char now[SPACE];
	struct model *m = &p->model;
	uint64_t size = pagefile_size(p->file), done = 0;
	int64_t n = pagefile_read(p->file, now, 0, SPACE);

	if (n != (int64_t)size) {
		p->wrong = "after a failed write it cannot be read";
		return;
	}
	memset(now + size, 0, SPACE - size);
	while (done < len && now[offset + done] == data[done])
		done++;
	if (done == len)
		p->wrong = "a write failed and is there";
	while (done && size < offset + done)
		done--;
	memcpy(m->shows + offset, data, done);
	if (done)
		m->size = max(m->size, offset + done);
	if (m->size != size || memcmp(m->shows, now, SPACE))
		p->wrong = "a failed write is there in part, but not in a first part";
}

static void failing_write(struct pair *p)
{
	uint64_t offset = random_offset(p, SPACE - 1);
	uint64_t len = 1 + rng_below(&p->rng, min(SPACE - offset, (uint64_t)5000));
	const unsigned char *data = random_bytes(p, len);
	int rc;

	p->number++;
	rc = pagefile_write(p->file, data, offset, len, p->number, p->number * 10);
	if (!rc)
		m_write(&p->model, data, offset, len);
	else if (rc == -EIO)
		adopt_failed_write(p, data, offset, len);
	else
		p->wrong = "a write failed with another error";
}

/* A few operations, of which one call below fails; true if it was reached. */
static bool failing_history(struct pair *p, int fail_at)
{
	static unsigned char data[SPACE];
	bool reached;
	int rc = 0;

	p->store.calls = 0;
	p->store.fail_at = fail_at;
	for (int i = 0; i < 12 && !p->wrong; i++) {
		failing_write(p);
		if (i % 4 == 1)
			do_truncate(p);
		if (i % 4 == 2)
			do_zero(p);
		if (i % 5 == 4)
			rc = pagefile_sync_range(p->file, random_offset(p, SPACE), 4000);
		if (i % 6 == 5)
			rc = pagefile_sync_size(p->file, i % 4 == 1);
		if (i == 8)
			rc = pagefile_sync(p->file);
		if (rc && rc != -EIO)
			p->wrong = "a failure has another error";
	}
	reached = p->store.calls >= fail_at;
	rc = pagefile_sync(p->file);
	if (rc && p->store.calls > fail_at)
		p->wrong = "a sync fails without a reason";
	p->store.fail_at = 0;
	if (pagefile_read(p->file, data, 0, SPACE) != (int64_t)p->model.size ||
	    memcmp(data, p->model.shows, p->model.size))
		p->wrong = "after a failure it reads wrong";
	rc = pagefile_sync(p->file);
	if (rc || p->store.size != p->model.size ||
	    memcmp(p->store.data, p->model.shows, p->model.size) || !pagefile_is_clean(p->file))
		p->wrong = "after a failure it cannot be synced";
	return reached;
}

static void failures(void)
{
	static const struct pagecache_opts opts[] = {
		{ 1024, 256, 0, false },
		{ 512, 512, 3, true },
		{ 512, 128, 3, false },
	};
	static struct pair p;

	for (size_t i = 0; i < ARRAY_SIZE(opts); i++) {
		const char *wrong = NULL;
		int runs = 0, seed = 0;

		for (seed = 1; seed <= 10 && !wrong; seed++)
			for (int n = 1, more = 1; more && !wrong; n++, runs++) {
				pair_init(&p, &opts[i], n % 2 ? &full_ops : &plain_ops,
					  (uint64_t)seed);
				more = failing_history(&p, n) && n < 300;
				pair_release(&p);
				wrong = p.wrong;
				if (wrong)
					printf("#   seed %d, call %d: %s\n", seed, n, wrong);
			}
		ok(!wrong && runs > 100, "each call below fails once: %d runs, %u at most%s", runs,
		   (unsigned)opts[i].pages_max, opts[i].evict ? ", evicting" : "");
	}
}

/* ---- by hand ---- */

static const struct pagecache_opts small = { 512, 0, 0, false };

static struct pair *fresh(const struct pagecache_opts *o, uint64_t durable)
{
	static struct pair p;

	pair_init(&p, o, &full_ops, 1);
	pagefile_free(p.file);
	memset(p.store.data, 'd', SPACE);
	p.store.size = durable;
	p.file = pagefile_new(p.cache, durable, &full_ops, &p.store);
	return &p;
}

static int write_text(struct pair *p, const char *s, uint64_t offset)
{
	p->number++;
	return pagefile_write(p->file, s, offset, strlen(s), p->number, p->number * 10);
}

static const char *text_at(struct pair *p, uint64_t offset, size_t len)
{
	static char text[64];
	int64_t n = pagefile_read(p->file, text, offset, len);

	if (n < 0)
		return "failed";
	for (int64_t i = 0; i < n; i++)
		if (!text[i])
			text[i] = '0';
	text[n] = '\0';
	return text;
}

static void shrink_and_grow(void)
{
	struct pair *p = fresh(&small, 1000);

	is_i(pagefile_truncate(p->file, 700, 1, 10), 0, "truncated inside a page");
	is_i(pagefile_truncate(p->file, 2000, 2, 20), 0, "and longer again");
	is_s(text_at(p, 698, 6), "dd0000", "what was cut off reads as zeros");
	is_s(text_at(p, 998, 4), "0000", "also where the durable end is");
	is_u(p->store.size, 1000, "nothing durable happened");
	is_i(write_text(p, "new", 704), 0, "written behind the cut");
	is_s(text_at(p, 698, 12), "dd0000new000", "with zeros around it");
	is_i(pagefile_sync_range(p->file, 704, 1), 0, "that is synced alone");
	is_u(p->store.size, 1024, "the cut came first, then the block");
	ok(p->store.data[699] == 'd' && !p->store.data[700] && p->store.data[704] == 'n',
	   "and the old bytes do not come back");
	pagefile_drop(p->file);
	is_u(pagefile_size(p->file), 1024, "the size that was set is lost");
	pair_release(p);
}

static void cut_is_lost(void)
{
	struct pair *p = fresh(&small, 1000);

	is_i(pagefile_truncate(p->file, 0, 1, 10), 0, "truncated to nothing");
	is_i(write_text(p, "short", 0), 0, "and written");
	is_u(pagefile_size(p->file), 5, "it is short");
	pagefile_drop(p->file);
	is_u(pagefile_size(p->file), 1000, "after the power cut it is long");
	is_s(text_at(p, 0, 5), "ddddd", "and old");
	is_i(pagefile_truncate(p->file, 0, 2, 20), 0, "again");
	is_i(write_text(p, "short", 0), 0, "and again");
	is_i(pagefile_sync_size(p->file, false), 0, "only the truncation becomes durable");
	is_u(p->store.size, 0, "nothing is there");
	pagefile_drop(p->file);
	is_u(pagefile_size(p->file), 0, "after the power cut it is empty");
	is_i(write_text(p, "xyz", 100), 0, "written beyond the end");
	is_i(pagefile_sync_size(p->file, true), 0, "its size becomes durable, not its data");
	pagefile_drop(p->file);
	is_s(text_at(p, 100, 8), "000", "a file that ends in zeros");
	pair_release(p);
}

static void failed_sync(void)
{
	struct pair *p = fresh(&small, 1000);

	is_i(write_text(p, "AAA", 10), 0, "written");
	p->store.fail_at = p->store.calls + 1;
	is_i(pagefile_sync(p->file), -EIO, "the sync fails");
	is_u(pagefile_dirty_bytes(p->file), 512, "it stays dirty");
	pagefile_fail(p->file);
	is_u(pagefile_dirty_bytes(p->file), 0, "until it is taken for clean");
	is_i(pagefile_sync(p->file), 0, "the next sync succeeds");
	is_u(p->store.data[10], 'd', "but writes nothing");
	is_s(text_at(p, 9, 5), "dAAAd", "it still reads as written");
	ok(!pagefile_is_clean(p->file), "so it differs from what is durable");
	is_i(write_text(p, "B", 10), 0, "written again");
	is_i(pagefile_sync(p->file), 0, "and synced");
	ok(!memcmp(p->store.data + 9, "dBAAd", 5), "all of the block is durable");
	ok(pagefile_is_clean(p->file), "and it is clean");
	pair_release(p);
}

static void evicted_after_failure(void)
{
	static const struct pagecache_opts two = { 512, 0, 2, true };
	struct pair *p = fresh(&two, 4096);

	is_i(write_text(p, "AAA", 10), 0, "written");
	pagefile_fail(p->file);
	is_i(write_text(p, "x", 1024), 0, "a second page");
	is_i(write_text(p, "x", 2048), 0, "a third, for which the failed one goes");
	is_s(text_at(p, 9, 5), "ddddd", "what failed reads as it was before");
	is_u(p->store.data[2048], 'd', "the others wait");
	is_u(pagecache_pages(p->cache), 2, "two pages are held");
	is_i(write_text(p, "y", 1025), 0, "the second is used");
	is_i(write_text(p, "z", 10), 0, "a fourth");
	ok(p->store.data[2048] == 'x' && p->store.data[1024] == 'd',
	   "the page that was used least recently went to its file");
	pair_release(p);
}

static void no_eviction(void)
{
	static const struct pagecache_opts two = { 512, 0, 2, false };
	struct pair *p = fresh(&two, 0);
	static const char text[2048] = { [0] = 'a', [512] = 'b', [1024] = 'c', [1536] = 'd' };

	is_i(pagefile_write(p->file, text, 0, sizeof(text), 1, 10), 0, "four pages, room for two");
	is_u(pagecache_pages(p->cache), 2, "two are held");
	is_u(p->store.writes, 1, "the others are durable by one write");
	ok(!p->store.data[0] && !p->store.data[512] && p->store.data[1024] == 'c' &&
		   p->store.data[1536] == 'd',
	   "and only these");
	is_i(write_text(p, "e", 0), 0, "a page that is held is written again");
	is_u(p->store.writes, 1, "in memory");
	pagefile_drop(p->file);
	is_s(text_at(p, 0, 1), "0", "which is lost");
	is_s(text_at(p, 1024, 1), "c", "and the other is not");
	pair_release(p);
}

static int always_fails(void *ctx, const void *data, uint64_t offset, size_t len)
{
	(void)ctx;
	(void)data;
	(void)offset;
	(void)len;
	return -ENOSPC;
}

/* Neither a file in use nor one that cannot be written keeps others from being evicted. */
static void stubborn_files(void)
{
	static const struct pagecache_opts three = { 512, 0, 3, true };
	struct pagefile_ops sick_ops = plain_ops;
	struct pair *p = fresh(&three, 0);
	static struct store sick, busy;

	sick_ops.write = always_fails;
	sick_ops.trylock = store_trylock;
	sick_ops.unlock = store_unlock;
	pthread_rwlock_init(&sick.lock, NULL);
	pthread_rwlock_init(&busy.lock, NULL);
	struct pagefile *s = pagefile_new(p->cache, 0, &sick_ops, &sick);
	struct pagefile *b = pagefile_new(p->cache, 0, &full_ops, &busy);
	is_i(pagefile_write(s, "s", 0, 1, 1, 1), 0, "a file that cannot be written");
	is_i(pagefile_write(b, "b", 0, 1, 1, 1), 0, "a file that is in use");
	pthread_rwlock_wrlock(&busy.lock);
	for (uint64_t i = 0; i < 20; i++)
		if (write_text(p, "x", i * 512))
			p->wrong = "a write failed";
	ok(!p->wrong && pagecache_pages(p->cache) <= 4, "others evict their own pages");
	ok(p->store.writes >= 16, "all but a few of them");
	ok(pagefile_dirty_bytes(s) == 512 && pagefile_dirty_bytes(b) == 512 && !busy.writes,
	   "the two keep theirs");
	pthread_rwlock_unlock(&busy.lock);
	for (uint64_t i = 0; i < 20; i++)
		if (write_text(p, "x", i * 512))
			p->wrong = "a write failed";
	ok(busy.writes == 1 && pagefile_is_clean(b), "what is no longer in use is evicted");
	ok(!pthread_rwlock_trywrlock(&busy.lock) && !pthread_rwlock_trywrlock(&sick.lock),
	   "and no lock is left");
	ok(pagecache_pages(p->cache) <= 3, "the bound is kept again");
	pthread_rwlock_unlock(&busy.lock);
	pthread_rwlock_unlock(&sick.lock);
	pagefile_free(s);
	pagefile_free(b);
	pair_release(p);
}

static void joined_writes(void)
{
	struct pair *p = fresh(&small, 0);
	unsigned char page[512];

	memset(page, 'p', sizeof(page));
	for (int i = 0; i < 31; i++) /* 31 pages, in a scattered order; one is left out */
		if (i * 7 % 31 != 20)
			is_i(pagefile_write(p->file, page, (uint64_t)(i * 7 % 31) * 512, 512,
					    (uint64_t)i + 1, 1),
			     0, "page %d", i * 7 % 31);
	is_i(pagefile_sync(p->file), 0, "synced");
	is_u(p->store.writes, 2, "in two writes, as there is one gap");
	ok(!p->store.unordered, "in order");
	is_u(p->store.size, 31 * 512, "all of it");
	ok(pagefile_is_clean(p->file) && !pagecache_pages(p->cache), "nothing is held");
	pair_release(p);
}

struct seen {
	struct pagefile_risk v[8];
	size_t n;
};

static int note_risk(void *ctx, const struct pagefile_risk *r)
{
	struct seen *s = ctx;

	s->v[s->n++] = *r;
	return s->n == ARRAY_SIZE(s->v) ? -E2BIG : 0;
}

static void risks(void)
{
	static const struct pagecache_opts blocks = { 1024, 256, 0, false };
	struct pair *p = fresh(&blocks, 8000);
	struct seen s = { .n = 0 };

	is_i(pagefile_risks(p->file, note_risk, &s), 0, "asked");
	is_u(s.n, 0, "nothing is at risk");
	is_i(write_text(p, "x", 1023), 0, "the last byte of a page"); /* 1 */
	is_i(write_text(p, "x", 1024), 0, "the first of the next");   /* 2 */
	is_i(write_text(p, "x", 4000), 0, "elsewhere");		      /* 3 */
	is_i(write_text(p, "x", 1023), 0, "and again");		      /* 4 */
	is_i(pagefile_zero(p->file, 6000, 100, true, 5, 50), 0, "a hole");
	is_i(pagefile_truncate(p->file, 7000, 6, 60), 0, "and a truncation");
	is_i(pagefile_risks(p->file, note_risk, &s), 0, "asked");
	is_u(s.n, 4, "two ranges, a hole and the size");
	ok(s.v[0].offset == 768 && s.v[0].len == 512 && s.v[0].first == 1 && s.v[0].last == 4 &&
		   s.v[0].since_ns == 10 && !s.v[0].failed,
	   "blocks that touch are joined");
	ok(s.v[1].kind == RISK_DATA && s.v[1].offset == 3840 && s.v[1].len == 256 &&
		   s.v[1].first == 3,
	   "others are not");
	ok(s.v[2].kind == RISK_HOLE && s.v[2].offset == 6000 && s.v[2].len == 100, "the hole");
	ok(s.v[3].kind == RISK_SIZE && s.v[3].offset == 7000 && s.v[3].len == 1000 &&
		   s.v[3].first == 6,
	   "the bytes that would come back");
	pagefile_fail(p->file);
	s.n = 0;
	is_i(pagefile_risks(p->file, note_risk, &s), 0, "asked");
	ok(s.n == 4 && s.v[0].failed && s.v[1].failed, "failed blocks are told as such");
	pair_release(p);
}

static void odd_options(void)
{
	static const struct pagecache_opts bad[] = {
		{ .page_size = 256 },
		{ .page_size = 3000 },
		{ .page_size = 2 << 20 },
		{ .page_size = 4096, .block_size = 8192 },
		{ .page_size = 4096, .block_size = 1000 },
		{ .page_size = 4096, .block_size = 32 },
	};
	struct pagecache *c = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct err err = ERR_INIT;

		ok(pagecache_new(&bad[i], &c, &err) == -EINVAL && *err.msg, "refused: %s", err.msg);
	}
	struct err err = ERR_INIT;
	is_i(pagecache_new(&(struct pagecache_opts){ 0 }, &c, &err), 0, "defaults");
	ok(pagecache_opts(c)->page_size == 4096 && pagecache_opts(c)->block_size == 4096,
	   "4096 bytes");
	pagecache_free(c);
}

/* ---- far away: a durable content of which only the calls are kept ---- */

struct far {
	uint64_t size, write_at, write_len, zeroed;
};

static int far_fill(void *ctx, void *data, uint64_t offset, size_t len)
{
	struct far *f = ctx;

	assert(offset + len <= f->size);
	memset(data, 'f', len);
	return 0;
}

static int far_write(void *ctx, const void *data, uint64_t offset, size_t len)
{
	struct far *f = ctx;

	(void)data;
	f->write_at = offset;
	f->write_len = len;
	f->size = max(f->size, offset + len);
	return 0;
}

static int far_resize(void *ctx, uint64_t size)
{
	((struct far *)ctx)->size = size;
	return 0;
}

static int far_zero(void *ctx, uint64_t offset, uint64_t len)
{
	(void)offset;
	((struct far *)ctx)->zeroed += len;
	return 0;
}

static const struct pagefile_ops far_ops = {
	.fill = far_fill,
	.write = far_write,
	.resize = far_resize,
	.zero = far_zero,
};

static void far_offsets(void)
{
	const uint64_t tb = UINT64_C(1) << 40, end = INT64_MAX;
	struct far far = { .size = 16 * tb };
	struct pagecache *c = NULL;
	struct err err = ERR_INIT;
	char got[4] = "";

	is_i(pagecache_new(&(struct pagecache_opts){ 0 }, &c, &err), 0, "a cache");
	struct pagefile *f = pagefile_new(c, far.size, &far_ops, &far);
	is_i(pagefile_write(f, "abc", 8 * tb - 1, 3, 1, 1), 0, "across 8 TiB");
	is_i(pagefile_write(f, "xyz", 5, 3, 2, 1), 0, "and near the start");
	ok(pagefile_read(f, got, 8 * tb - 1, 3) == 3 && !memcmp(got, "abc", 3), "read there");
	is_u(pagecache_pages(c), 3, "three pages");
	is_i(pagefile_zero(f, tb, 10 * tb, true, 3, 1), 0, "a hole of 10 TiB");
	is_u(pagecache_pages(c), 1, "needs no page, and frees two");
	ok(pagefile_read(f, got, 8 * tb - 1, 3) == 3 && !got[0] && !got[2], "and reads as zeros");
	is_i(pagefile_write(f, "abc", end - 3, 3, 4, 1), 0, "the last bytes that there can be");
	is_u(pagefile_size(f), end, "the size is the largest");
	is_i(pagefile_write(f, "abc", end - 2, 3, 5, 1), -EFBIG, "one more is too much");
	is_i(pagefile_write(f, "abc", UINT64_MAX - 1, 3, 5, 1), -EFBIG, "an overflow");
	is_i(pagefile_truncate(f, end + 1, 5, 1), -EFBIG, "a size beyond");
	is_i(pagefile_zero(f, end - 1, 2, false, 5, 1), -EFBIG, "zeros beyond");
	is_i(pagefile_write(f, "abc", end, 0, 5, 1), 0, "nothing at the end is fine");
	is_i(pagefile_sync(f), 0, "synced");
	ok(far.size == end && far.zeroed == 10 * tb && far.write_at + far.write_len == end,
	   "the end, the hole and the last bytes are durable");
	is_i(pagefile_truncate(f, 3, 6, 1), 0, "truncated");
	is_i(pagefile_read(f, got, 0, 4), 3, "three bytes are left");
	is_i(pagefile_read(f, got, end, 4), 0, "and none far away");
	pagefile_free(f);
	pagecache_free(c);
}

/* ---- many threads, few pages ---- */

enum { THREADS = 4, FILES = 6, ROUNDS = 1500 };

static struct shared {
	struct pagefile *file;
	struct store store;
	struct model model;
} shared[FILES];

struct worker {
	pthread_t thread;
	struct pagecache *cache;
	uint64_t seed;
	bool wrong;
};

/* Readers may be many at once. */
static void read_from(struct worker *w, struct shared *s, struct rng *r)
{
	uint64_t offset = rng_below(r, SPACE), size = s->model.size;
	unsigned char got[3000];
	uint64_t len = rng_below(r, sizeof(got)) + 1;
	int64_t want = offset < size ? (int64_t)min(len, size - offset) : 0;

	w->wrong |= pagefile_read(s->file, got, offset, len) != want ||
		    memcmp(got, s->model.shows + offset, (size_t)want) ||
		    pagefile_size(s->file) != size;
}

static void work_on(struct worker *w, struct shared *s, struct rng *r)
{
	unsigned char data[3000];
	uint64_t offset = rng_below(r, SPACE - sizeof(data)), len = rng_below(r, sizeof(data)) + 1;

	memset(data, (int)rng_below(r, 256), len);
	switch (rng_below(r, 8)) {
	case 0:
		w->wrong |= pagefile_sync(s->file) != 0;
		break;
	case 1:
		w->wrong |= pagefile_truncate(s->file, offset, 1, 1) != 0;
		m_truncate(&s->model, offset);
		break;
	case 2: /* closed and opened again */
		w->wrong |= pagefile_sync(s->file) != 0;
		pagefile_free(s->file);
		s->file = pagefile_new(w->cache, s->store.size, &full_ops, &s->store);
		break;
	default:
		w->wrong |= pagefile_write(s->file, data, offset, len, 1, 1) != 0;
		m_write(&s->model, data, offset, len);
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct rng r;

	rng_init(&r, w->seed);
	for (int i = 0; i < ROUNDS; i++) {
		struct shared *s = &shared[rng_below(&r, FILES)];

		if (rng_below(&r, 3)) {
			pthread_rwlock_wrlock(&s->store.lock);
			work_on(w, s, &r);
		} else {
			pthread_rwlock_rdlock(&s->store.lock);
			read_from(w, s, &r);
		}
		pthread_rwlock_unlock(&s->store.lock);
	}
	return NULL;
}

static void threads(bool evict)
{
	struct pagecache_opts o = { 512, 128, 20, evict };
	struct worker workers[THREADS];
	struct pagecache *c = NULL;
	struct err err = ERR_INIT;
	bool wrong = pagecache_new(&o, &c, &err) != 0;

	for (int i = 0; i < FILES; i++) {
		struct shared *s = &shared[i];

		memset(s, 0, sizeof(*s));
		s->model.block = 128;
		s->model.cut = UINT64_MAX;
		pthread_rwlock_init(&s->store.lock, NULL);
		s->file = pagefile_new(c, 0, &full_ops, &s->store);
	}
	for (uint64_t i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ .cache = c, .seed = i + 1 };
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		wrong |= workers[i].wrong;
	}
	ok(!wrong, "%d threads, %d files, 20 pages%s: all reads were right", THREADS, FILES,
	   evict ? ", evicting" : "");
	for (int i = 0; i < FILES; i++) {
		struct shared *s = &shared[i];

		wrong |= pagefile_sync(s->file) || s->store.size != s->model.size ||
			 memcmp(s->store.data, s->model.shows, s->model.size);
		pagefile_free(s->file);
		pthread_rwlock_destroy(&s->store.lock);
	}
	ok(!wrong, "and all is durable in the end");
	is_u(pagecache_pages(c), 0, "no page is left");
	pagecache_free(c);
}

/* Many pages that are lost at once are freed later: nobody must see them until then, or after. */
static void many_pages(bool evict)
{
	enum { PAGES = 5000, SIZE = 512 };
	struct pagecache_opts o = { .page_size = SIZE, .evict = evict, .pages_max = 2 * PAGES };
	struct pagecache *c = NULL;
	struct err err = ERR_INIT;
	const char *how = evict ? "in the order of use: " : "";
	static struct store s;
	unsigned char page[SIZE], seen[SIZE];
	bool wrong = pagecache_new(&o, &c, &err) != 0;

	s = (struct store){ .size = 3, .data = "abc" };
	struct pagefile *f = pagefile_new(c, 3, &plain_ops, &s);
	for (int round = 0; round < 20; round++) {
		memset(page, round + 1, SIZE);
		for (uint64_t i = 0; i < PAGES; i++)
			wrong |= pagefile_write(f, page, i * SIZE, SIZE, 1, 1);
		wrong |= pagecache_pages(c) != PAGES;
		wrong |= pagefile_read(f, seen, (PAGES - 1) * SIZE, SIZE) != SIZE ||
			 memcmp(seen, page, SIZE);
		pagefile_drop(f);
		wrong |= pagecache_pages(c) || !pagefile_is_clean(f) || pagefile_size(f) != 3 ||
			 pagefile_dirty_bytes(f);
		wrong |= pagefile_read(f, seen, 0, SIZE) != 3 || memcmp(seen, "abc", 3);
	}
	ok(!wrong, "%s%d pages are lost and written again", how, PAGES);
	for (uint64_t i = 0; i < PAGES; i++)
		wrong |= pagefile_write(f, page, i * SIZE, SIZE, 1, 1);
	pagefile_free(f);
	ok(!wrong && !pagecache_pages(c), "%sa file goes with all it has", how);
	pagecache_free(c);
}

/* Pages that a file had lost are another file's then, which knows nothing of what was in them. */
static void pages_of_others(void)
{
	enum { PAGES = 2000, SIZE = 4096, BLOCK = 1024, TIMES = 50 };
	struct pagecache_opts o = { .page_size = SIZE, .block_size = BLOCK };
	struct pagecache *c = NULL;
	struct err err = ERR_INIT;
	static struct store gone, s;
	unsigned char page[SIZE];
	bool wrong_count = pagecache_new(&o, &c, &err) != 0, wrong_read = false, lost = false;

	memset(page, 'x', SIZE);
	for (int round = 0; round < TIMES; round++) {
		gone = s = (struct store){ .size = 0 };
		s.size = SIZE;
		memset(s.data, 'o', SIZE);
		struct pagefile *f = pagefile_new(c, 0, &plain_ops, &gone);
		struct pagefile *other = pagefile_new(c, SIZE, &plain_ops, &s);

		for (uint64_t i = 0; i < PAGES; i++)
			wrong_count |= pagefile_write(f, page, i * SIZE, SIZE, 1, 1);
		pagefile_free(f);
		usleep(2000); /* mostly some of them are freed by then; all is right anyway */
		lost |= pagefile_write(other, "new", 1, 3, 2, 2);
		wrong_count |= pagefile_dirty_bytes(other) != BLOCK;
		wrong_read |= pagefile_read(other, page, 0, SIZE) != SIZE ||
			      memcmp(page, "onewo", 5) || page[SIZE - 1] != 'o';
		lost |= pagefile_sync(other) || memcmp(s.data, "onewo", 5) ||
			!pagefile_is_clean(other) || pagefile_dirty_bytes(other);
		pagefile_free(other);
		memset(page, 'x', SIZE);
	}
	ok(!wrong_count, "a page of another file that was lost: what is dirty is counted");
	ok(!wrong_read, "what was not written comes from the durable content");
	ok(!lost, "and a sync writes what is dirty");
	is_u(pagecache_pages(c), 0, "no page is left");
	pagecache_free(c);
}

int main(void)
{
	odd_options();
	shrink_and_grow();
	cut_is_lost();
	failed_sync();
	evicted_after_failure();
	no_eviction();
	stubborn_files();
	joined_writes();
	risks();
	far_offsets();
	many_pages(false);
	many_pages(true);
	pages_of_others();
	random_histories();
	failures();
	threads(true);
	threads(false);
	return done_testing();
}
