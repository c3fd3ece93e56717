/* SPDX-License-Identifier: MIT */
/*
 * pagecache.c - allocates pages, and evicts one when there are too many.
 *
 * Memory is taken in slabs of some megabytes; pages come from a slab's list of free ones. New
 * memory costs far more than copying a page, so some empty slabs are kept: a program that writes
 * and syncs in turn never waits for the kernel. (Huge pages were tried: if the kernel must assemble
 * them first, they cost more than they save.)
 *
 * The cache's lock guards slabs, the count, and the order of use; it is held for short times, and
 * never while content is read or written. The order of locks is: a file's, then the cache's.
 * Evicting needs a second file's lock while the cache's is held; it is tried, so that no two
 * threads wait in a circle. A file whose pages are in the order of use exists: the thread that
 * frees the file takes them out under the cache's lock, with the file's lock held, and cannot get
 * that lock while an evictor holds it.
 *
 * Many pages that are lost at once are given to a thread that frees them: giving memory back takes
 * longer than all other steps, and a power cut must not wait.
 */
#include "fs/pagecache.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

#include "fs/pagecache_impl.h"

enum {
	SLAB_SIZE = 2 << 20,
	SLAB_PAGES_MIN = 8,
	PAGE_SIZE_MAX = 1 << 20,
	EMPTY_MAX = 128 << 20, /* bytes of slabs that are kept without a page in use */
	EVICT_LOOK = 64,       /* pages that are looked at before the bound is passed */
	EVICT_MAX = 4,	       /* pages that one call evicts, to get back below the bound */
	DETACH_MIN = 1024,     /* fewer pages are freed at once */
	FREE_BATCH = 256,      /* pages that are freed before others get the lock */
};

/* The pages of a file that has lost them. */
struct detached {
	struct pagetree tree;
	struct detached *next;
};

struct slab {
	struct slab *prev, *next; /* slabs with free pages */
	struct page *free;
	uint32_t used;
	size_t size;
	unsigned char *data;
	unsigned char *pages;
};

struct pagecache {
	struct pagecache_opts opts;
	pthread_mutex_t lock;
	struct slab *partial;
	size_t empty; /* bytes */
	uint64_t held;
	size_t page_stride;	      /* bytes of a struct page */
	struct page *newest, *oldest; /* only if pages are evicted */
	struct detached *detached;
	bool has_freer, ending;
	pthread_t freer;
	pthread_cond_t work; /* for the freer */
};

static bool power_of_two(uint32_t n)
{
	return n && !(n & (n - 1));
}

int pagecache_new(const struct pagecache_opts *opts, struct pagecache **out, struct err *err)
{
	struct pagecache_opts o = *opts;

	if (!o.page_size)
		o.page_size = 4096;
	if (!o.block_size)
		o.block_size = o.page_size;
	if (!power_of_two(o.page_size) || o.page_size < 512 || o.page_size > PAGE_SIZE_MAX)
		return err_set(err, -EINVAL,
			       "a page of %u bytes is not possible: it must be a power of two from "
			       "512 to 1048576",
			       o.page_size);
	if (o.block_size < 64 || o.block_size > o.page_size || o.page_size % o.block_size)
		return err_set(err, -EINVAL,
			       "a block of %u bytes is not possible: it must be at least 64 and "
			       "divide the page of %u",
			       o.block_size, o.page_size);
	struct pagecache *c = xcalloc(1, sizeof(*c));
	c->opts = o;
	c->page_stride = sizeof(struct page) + (o.page_size / o.block_size) * sizeof(struct block);
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->work, NULL);
	*out = c;
	return 0;
}

static void slab_free(struct slab *s)
{
	if (s->data != MAP_FAILED)
		munmap(s->data, s->size);
	free(s->pages);
	free(s);
}

static void end_freer(struct pagecache *c);

void pagecache_free(struct pagecache *c)
{
	if (!c)
		return;
	assert(!c->held);
	end_freer(c);
	while (c->partial) {
		struct slab *s = c->partial;

		c->partial = s->next;
		slab_free(s);
	}
	pthread_cond_destroy(&c->work);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

const struct pagecache_opts *pagecache_opts(const struct pagecache *c)
{
	return &c->opts;
}

uint32_t pagecache_page_size(const struct pagecache *c)
{
	return c->opts.page_size;
}

uint64_t pagecache_pages(const struct pagecache *c)
{
	return __atomic_load_n(&c->held, __ATOMIC_RELAXED);
}

static void count_held(struct pagecache *c, int64_t n)
{
	__atomic_store_n(&c->held, c->held + (uint64_t)n, __ATOMIC_RELAXED);
}

/* ---- slabs ---- */

static void partial_add(struct pagecache *c, struct slab *s)
{
	s->prev = NULL;
	s->next = c->partial;
	if (s->next)
		s->next->prev = s;
	c->partial = s;
}

static void partial_remove(struct pagecache *c, struct slab *s)
{
	*(s->prev ? &s->prev->next : &c->partial) = s->next;
	if (s->next)
		s->next->prev = s->prev;
}

static int slab_new(struct pagecache *c)
{
	uint32_t n = max(SLAB_SIZE / c->opts.page_size, (uint32_t)SLAB_PAGES_MIN);
	size_t size = (size_t)n * c->opts.page_size;
	struct slab *s = xcalloc(1, sizeof(*s));

	s->size = size;
	s->data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	s->pages = calloc(n, c->page_stride);
	if (s->data == MAP_FAILED || !s->pages) {
		slab_free(s);
		return -ENOMEM;
	}
	for (uint32_t i = n; i--;) {
		struct page *p = (struct page *)(void *)(s->pages + i * c->page_stride);

		p->slab = s;
		p->data = s->data + (size_t)i * c->opts.page_size;
		p->list = s->free;
		s->free = p;
	}
	partial_add(c, s);
	c->empty += size;
	return 0;
}

static int slab_take(struct pagecache *c, struct page **out)
{
	int rc = c->partial ? 0 : slab_new(c);

	if (rc)
		return rc;
	struct slab *s = c->partial;
	*out = s->free;
	s->free = (*out)->list;
	if (!s->used++)
		c->empty -= s->size;
	if (!s->free)
		partial_remove(c, s);
	return 0;
}

static void slab_give(struct pagecache *c, struct page *p)
{
	struct slab *s = p->slab;

	assert(!p->held);
	if (!s->free)
		partial_add(c, s);
	p->list = s->free;
	p->file = NULL;
	s->free = p;
	if (--s->used)
		return;
	if (c->empty < EMPTY_MAX) {
		c->empty += s->size;
		return;
	}
	partial_remove(c, s);
	slab_free(s);
}

/* ---- the order of use ---- */

static bool has_order(const struct pagecache *c)
{
	return c->opts.evict && c->opts.pages_max;
}

static void order_add(struct pagecache *c, struct page *p)
{
	p->prev = NULL;
	p->next = c->newest;
	*(p->next ? &p->next->prev : &c->oldest) = p;
	c->newest = p;
}

static void order_remove(struct pagecache *c, struct page *p)
{
	*(p->prev ? &p->prev->next : &c->newest) = p->next;
	*(p->next ? &p->next->prev : &c->oldest) = p->prev;
}

void page_touch(struct pagecache *c, struct page *p)
{
	if (!has_order(c))
		return;
	auto_lock(&c->lock);
	if (c->newest != p) {
		order_remove(c, p);
		order_add(c, p);
	}
}

void pagecache_free_pages(struct pagecache *c, struct page *list)
{
	if (!list)
		return;
	auto_lock(&c->lock);
	for (struct page *next; list; list = next) {
		next = list->list;
		if (has_order(c))
			order_remove(c, list);
		slab_give(c, list);
		count_held(c, -1);
	}
}

/* ---- many at once ---- */

/* Empties a page: the next file that gets it must not see the content of this one. */
static void page_empty(const struct pagecache *c, struct page *p)
{
	for (uint32_t i = 0; i < c->opts.page_size / c->opts.block_size; i++)
		p->blocks[i].state = BLOCK_ABSENT;
	p->held = 0;
}

/* Frees some of the pages; false if there are no more. */
static bool free_some(struct pagecache *c, struct detached *d)
{
	struct page *list = NULL, *p = NULL;

	for (int i = 0; i < FREE_BATCH && (p = pagetree_next(&d->tree, 0)); i++) {
		pagetree_remove(&d->tree, p->index);
		page_empty(c, p);
		p->list = list;
		list = p;
	}
	auto_lock(&c->lock);
	for (struct page *next; list; list = next) {
		next = list->list;
		slab_give(c, list);
	}
	return p;
}

static void *free_detached(void *arg)
{
	struct pagecache *c = arg;

	pthread_mutex_lock(&c->lock);
	while (c->detached || !c->ending) {
		struct detached *d = c->detached;

		if (!d) {
			pthread_cond_wait(&c->work, &c->lock);
			continue;
		}
		c->detached = d->next;
		pthread_mutex_unlock(&c->lock);
		while (free_some(c, d))
			;
		free(d);
		pthread_mutex_lock(&c->lock);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

/* Frees all pages that are left, and ends the thread. */
static void end_freer(struct pagecache *c)
{
	if (!c->has_freer)
		return;
	pthread_mutex_lock(&c->lock);
	c->ending = true;
	pthread_cond_signal(&c->work);
	pthread_mutex_unlock(&c->lock);
	pthread_join(c->freer, NULL);
}

bool pagefile_detach_pages(struct pagefile *f)
{
	struct pagecache *c = f->cache;
	struct detached *d;
	bool taken;

	if (has_order(c) || f->pages < DETACH_MIN)
		return false;
	d = xcalloc(1, sizeof(*d));
	d->tree = f->tree;
	pthread_mutex_lock(&c->lock);
	if (!c->has_freer)
		c->has_freer = !pthread_create(&c->freer, NULL, free_detached, c);
	taken = c->has_freer;
	if (taken) {
		d->next = c->detached;
		c->detached = d;
		count_held(c, -(int64_t)f->pages);
		pthread_cond_signal(&c->work);
	}
	pthread_mutex_unlock(&c->lock);
	if (!taken) {
		free(d);
		return false;
	}
	f->tree = (struct pagetree){ 0 };
	f->pages = f->dirty = 0;
	return true;
}

/* ---- evicting ---- */

/*
 * True if a thread that works on `mine` can evict this file's pages; then it holds the file's lock.
 */
static bool can_evict(struct pagefile *f, const struct pagefile *mine)
{
	return f == mine || (f->ops->trylock && f->ops->trylock(f->ctx));
}

/* Returns the oldest page that can be evicted. Called with the cache's lock. */
static struct page *victim(struct pagecache *c, const struct pagefile *mine)
{
	struct page *p = c->oldest;

	for (int i = 0; p && i < EVICT_LOOK; i++, p = p->prev)
		if (can_evict(p->file, mine))
			return p;
	return NULL;
}

/* Evicts a page. Pages that a sync failed to write count as clean, so they are only released. */
static int page_evict(struct pagecache *c, struct page *p)
{
	uint64_t start = p->index * c->opts.page_size, end = start + c->opts.page_size;
	struct pagefile *f = p->file;
	int rc = pagefile_write_back(f, start, end);

	if (rc)
		page_touch(c, p); /* try other pages first the next time */
	else
		pagefile_release(f, start, end);
	return rc;
}

static void make_room(struct pagecache *c, const struct pagefile *mine)
{
	for (int i = 0; i < EVICT_MAX; i++) {
		struct pagefile *owner = NULL;
		struct page *p = NULL;

		pthread_mutex_lock(&c->lock);
		if (c->held >= c->opts.pages_max)
			p = victim(c, mine);
		if (p)
			owner = p->file;
		pthread_mutex_unlock(&c->lock);
		if (!p)
			return;
		page_evict(c, p);
		if (owner != mine)
			owner->ops->unlock(owner->ctx);
	}
}

int page_take(struct pagefile *f, uint64_t index, struct page **out)
{
	struct pagecache *c = f->cache;
	struct page *p;
	int rc;

	if (has_order(c))
		make_room(c, f);
	pthread_mutex_lock(&c->lock);
	if (c->opts.pages_max && !c->opts.evict && c->held >= c->opts.pages_max)
		rc = -ENOSPC;
	else
		rc = slab_take(c, &p);
	if (!rc) {
		p->file = f;
		p->index = index;
		if (has_order(c))
			order_add(c, p);
		count_held(c, 1);
	}
	pthread_mutex_unlock(&c->lock);
	if (rc)
		return rc;
	pagetree_insert(&f->tree, index, p);
	f->pages++;
	*out = p;
	return 0;
}
