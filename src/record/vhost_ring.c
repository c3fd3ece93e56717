/* SPDX-License-Identifier: MIT */
/* vhost_ring.c - maps a guest's memory, takes requests from its rings, and gives them back. */
#include "record/vhost_ring.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { PAGE_BYTES = 4096, REGION_MAX_BITS = 40 };

/* ---- memory ---- */

int vhost_memory_add(struct vhost_memory *m, int fd, uint64_t guest, uint64_t user, uint64_t size,
		     uint64_t offset)
{
	uint64_t shift = offset % PAGE_BYTES;
	struct stat st;

	if (m->n == VHOST_REGIONS_MAX || !size || size >> REGION_MAX_BITS || offset >> 62 ||
	    guest + size < guest || user + size < user)
		return -EINVAL;
	if (fstat(fd, &st) < 0 || st.st_size < 0 || (uint64_t)st.st_size < offset + size)
		return -EINVAL;
	void *p = mmap(NULL, size + shift, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd,
		       (off_t)(offset - shift));
	if (p == MAP_FAILED)
		return -errno;
	/* A core dump of this process excludes the guest's memory. */
	madvise(p, size + shift, MADV_DONTDUMP);
	m->v[m->n++] = (struct vhost_region){ .guest = guest,
					      .user = user,
					      .size = size,
					      .map = (unsigned char *)p + shift,
					      .mapping = p,
					      .mapping_len = size + shift };
	return 0;
}

void vhost_memory_release(struct vhost_memory *m)
{
	for (unsigned i = 0; i < m->n; i++)
		munmap(m->v[i].mapping, m->v[i].mapping_len);
	m->n = 0;
}

static void *within(const struct vhost_region *r, uint64_t start, uint64_t at, uint64_t len)
{
	if (at < start || at - start > r->size || len > r->size - (at - start))
		return NULL;
	return r->map + (at - start);
}

void *vhost_memory_at(const struct vhost_memory *m, uint64_t guest, uint64_t len)
{
	void *p = NULL;

	for (unsigned i = 0; i < m->n && !p; i++)
		p = within(&m->v[i], m->v[i].guest, guest, len);
	return p;
}

/* vhost_memory_at() for addresses in the front end. */
static void *vhost_memory_of(const struct vhost_memory *m, uint64_t user, uint64_t len)
{
	void *p = NULL;

	for (unsigned i = 0; i < m->n && !p; i++)
		p = within(&m->v[i], m->v[i].user, user, len);
	return p;
}

/* ---- the ring ---- */

bool vhost_ring_num_ok(uint64_t num)
{
	return num && num <= VHOST_RING_MAX && !(num & (num - 1));
}

int vhost_ring_place(struct vhost_ring *r, const struct vhost_memory *m, uint64_t desc,
		     uint64_t avail, uint64_t used)
{
	if (!r->num || desc % 16 || avail % 2 || used % 4)
		return -EINVAL;
	r->desc = vhost_memory_of(m, desc, r->num * sizeof(struct vring_desc));
	r->avail = vhost_memory_of(m, avail, sizeof(struct vring_avail) + 2 * (r->num + 1));
	r->used_ring = vhost_memory_of(
		m, used, sizeof(struct vring_used) + r->num * sizeof(struct vring_used_elem) + 2);
	if (!r->desc || !r->avail || !r->used_ring)
		return -EINVAL;
	/* Alignment is checked here, as the address was one in the front end. */
	if ((uintptr_t)r->desc % 16 || (uintptr_t)r->avail % 2 || (uintptr_t)r->used_ring % 4)
		return -EINVAL;
	r->used = r->used_ring->idx;
	return 0;
}

static int add_part(struct vhost_chain *c, const struct vhost_memory *m, const struct vring_desc *d)
{
	bool in = d->flags & VRING_DESC_F_WRITE;
	uint64_t *sum = in ? &c->in_len : &c->out_len;
	void *p = d->len <= VHOST_PART_MAX ? vhost_memory_at(m, d->addr, d->len) : NULL;

	/* Parts that the guest reads come last; indirect tables were never offered. */
	if (!p || (!in && c->n_in) || d->flags & VRING_DESC_F_INDIRECT)
		return -EINVAL;
	*sum += d->len;
	if (*sum > VHOST_CHAIN_MAX)
		return -EINVAL;
	c->v[c->n_out + c->n_in] = (struct iovec){ p, d->len };
	if (in)
		c->n_in++;
	else
		c->n_out++;
	return 0;
}

static int take_chain(const struct vhost_ring *r, const struct vhost_memory *m, uint16_t head,
		      struct vhost_chain *out)
{
	uint16_t at = head;

	out->head = head;
	out->n_out = out->n_in = 0;
	out->out_len = out->in_len = 0;
	for (unsigned n = 0; n < r->num; n++) {
		if (at >= r->num)
			return -EINVAL;
		struct vring_desc d = { r->desc[at].addr, r->desc[at].len, r->desc[at].flags,
					r->desc[at].next };
		int rc = add_part(out, m, &d);

		if (rc || !(d.flags & VRING_DESC_F_NEXT))
			return rc;
		at = d.next;
	}
	return -EINVAL;
}

int vhost_ring_pop(struct vhost_ring *r, const struct vhost_memory *m, struct vhost_chain *out)
{
	if (r->broken)
		return -EINVAL;
	if (!r->avail)
		return 0;
	uint16_t there = __atomic_load_n((const uint16_t *)&r->avail->idx, __ATOMIC_ACQUIRE);
	uint16_t waiting = (uint16_t)(there - r->next);

	if (!waiting)
		return 0;
	int rc = waiting > r->num ? -EINVAL
				  : take_chain(r, m, r->avail->ring[r->next & (r->num - 1)], out);
	if (rc) {
		r->broken = true;
		return rc;
	}
	r->next++;
	return 1;
}

void vhost_ring_push(struct vhost_ring *r, uint16_t head, uint32_t written)
{
	volatile struct vring_used_elem *e = &r->used_ring->ring[r->used & (r->num - 1)];

	e->id = head;
	e->len = written;
	r->used++;
	__atomic_store_n((uint16_t *)&r->used_ring->idx, r->used, __ATOMIC_SEQ_CST);
}

bool vhost_ring_wants_call(const struct vhost_ring *r)
{
	return !(r->avail->flags & VRING_AVAIL_F_NO_INTERRUPT);
}

/* ---- the bytes of a chain ---- */

/* Calls `fn` for the pieces of [at, at + len) in `n` parts. */
static bool each_slice(const struct iovec *v, unsigned n, uint64_t at, uint64_t len,
		       void (*fn)(void *ctx, unsigned char *p, size_t len), void *ctx)
{
	for (unsigned i = 0; i < n && len; i++) {
		if (at >= v[i].iov_len) {
			at -= v[i].iov_len;
			continue;
		}
		size_t here = min((size_t)len, v[i].iov_len - (size_t)at);

		fn(ctx, (unsigned char *)v[i].iov_base + at, here);
		len -= here;
		at = 0;
	}
	return !len;
}

static bool has(uint64_t have, uint64_t at, uint64_t len)
{
	return at <= have && len <= have - at;
}

static void copy_from(void *ctx, unsigned char *p, size_t len)
{
	unsigned char **to = ctx;

	memcpy(*to, p, len);
	*to += len;
}

bool vhost_chain_read(const struct vhost_chain *c, uint64_t at, void *to, uint64_t len)
{
	return has(c->out_len, at, len) && each_slice(c->v, c->n_out, at, len, copy_from, &to);
}

static void copy_to(void *ctx, unsigned char *p, size_t len)
{
	const unsigned char **from = ctx;

	memcpy(p, *from, len);
	*from += len;
}

bool vhost_chain_write(const struct vhost_chain *c, uint64_t at, const void *from, uint64_t len)
{
	return has(c->in_len, at, len) &&
	       each_slice(c->v + c->n_out, c->n_in, at, len, copy_to, &from);
}

struct slices {
	struct iovec *v;
	int n;
};

static void add_slice(void *ctx, unsigned char *p, size_t len)
{
	struct slices *s = ctx;

	s->v[s->n++] = (struct iovec){ p, len };
}

int vhost_chain_slice(const struct vhost_chain *c, uint64_t at, uint64_t len,
		      struct iovec out[VHOST_RING_MAX])
{
	struct slices s = { out, 0 };

	if (!has(c->in_len, at, len) ||
	    !each_slice(c->v + c->n_out, c->n_in, at, len, add_slice, &s))
		return -EINVAL;
	return s.n;
}
