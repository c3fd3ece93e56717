/* SPDX-License-Identifier: MIT */
/*
 * vhost_ring.h - a guest's memory, and the rings in it through which the guest hands over requests:
 * the split virtqueue of virtio 1.1, chapter 2.6.
 *
 * The guest may write this memory while it is read here, so
 *
 * R1: each field is read once, into memory of ours, and checked there.
 * R2: an address becomes a pointer only through vhost_memory_at() or vhost_memory_of(), which check
 *     that the whole range lies in one mapped region.
 * R3: a chain has at most as many parts as the ring has descriptors, so a cycle ends.
 *
 * A ring that breaks a rule stays broken: no more requests are taken from it.
 */
#ifndef RECORD_VHOST_RING_H
#define RECORD_VHOST_RING_H

#include <linux/virtio_ring.h>
#include <sys/uio.h>

#include "base/util.h"

enum {
	VHOST_REGIONS_MAX = 8,
	VHOST_RING_MAX = 1024,	   /* descriptors of a ring */
	VHOST_PART_MAX = 32 << 20, /* bytes of one part of a chain */
	VHOST_CHAIN_MAX = 64 << 20 /* bytes of a chain in one direction */
};

struct vhost_region {
	uint64_t guest; /* physical address in the guest */
	uint64_t user;	/* address in the process of the front end */
	uint64_t size;
	unsigned char *map; /* its address here */
	void *mapping;
	size_t mapping_len;
};

struct vhost_memory {
	struct vhost_region v[VHOST_REGIONS_MAX];
	unsigned n;
};

/*
 * Maps `size` bytes of `fd` from `offset` on, and adds them. The file must have these bytes: access
 * to missing ones would raise SIGBUS.
 */
int vhost_memory_add(struct vhost_memory *m, int fd, uint64_t guest, uint64_t user, uint64_t size,
		     uint64_t offset) must_check;
void vhost_memory_release(struct vhost_memory *m);
/* Returns a pointer to a range of the guest's addresses; NULL if there is no such memory. */
void *vhost_memory_at(const struct vhost_memory *m, uint64_t guest, uint64_t len);

struct vhost_ring {
	uint32_t num;  /* the number of descriptors; 0: no ring */
	uint16_t next; /* the next index of the available ring */
	uint16_t used; /* requests that were given back */
	bool broken;
	const volatile struct vring_desc *desc;
	volatile struct vring_avail *avail;
	volatile struct vring_used *used_ring;
};

/* A request: parts that the guest wrote, then parts that it wants to read. */
struct vhost_chain {
	uint16_t head;
	unsigned n_out, n_in;
	uint64_t out_len, in_len;
	struct iovec v[VHOST_RING_MAX]; /* out first */
};

/* True if a ring may have `num` descriptors: a power of two, up to a limit. */
bool vhost_ring_num_ok(uint64_t num);
/* Finds the three parts at addresses of the front end; -EINVAL if they are not in memory. */
int vhost_ring_place(struct vhost_ring *r, const struct vhost_memory *m, uint64_t desc,
		     uint64_t avail, uint64_t used) must_check;
/* Returns 1 and the next request, 0 if there is none, -EINVAL if the ring is broken. */
int vhost_ring_pop(struct vhost_ring *r, const struct vhost_memory *m, struct vhost_chain *out)
	must_check;
/* Gives a request back, into which `written` bytes were written. */
void vhost_ring_push(struct vhost_ring *r, uint16_t head, uint32_t written);
/* Whether the guest wants to be woken after a push. */
bool vhost_ring_wants_call(const struct vhost_ring *r);

/* Copy from parts that the guest wrote, or to parts that it reads; false if these are too short. */
bool vhost_chain_read(const struct vhost_chain *c, uint64_t at, void *to, uint64_t len);
bool vhost_chain_write(const struct vhost_chain *c, uint64_t at, const void *from, uint64_t len);
/* Gives the pieces of [at, at + len) of parts that the guest reads; their number, or -EINVAL. */
int vhost_chain_slice(const struct vhost_chain *c, uint64_t at, uint64_t len,
		      struct iovec out[VHOST_RING_MAX]);

#endif
