/* SPDX-License-Identifier: MIT */
/*
 * vhost_ring.h - a guest's memory, and the rings in it through which it hands over requests: the
 * split virtqueue of virtio 1.1, chapter 2.6.
 *
 * Everything here is read from memory that the guest writes at the same time, so
 *
 * R1: each field is read once, into memory of ours, and checked there.
 * R2: an address becomes a pointer only through vhost_memory_at() or vhost_memory_of(), which know
 *     that the whole range lies in one region that is mapped.
 * R3: a chain has at most as many parts as the ring has descriptors, so a circle ends.
 *
 * A ring that breaks a rule is broken for good: nothing more is taken from it, wherever it is put.
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
	unsigned char *map; /* where we have it */
	void *mapping;
	size_t mapping_len;
};

struct vhost_memory {
	struct vhost_region v[VHOST_REGIONS_MAX];
	unsigned n;
};

/*
 * Maps `size` bytes of `fd` from `offset` on, and adds them. The file must have them: touching what
 * it lacks would be our end.
 */
int vhost_memory_add(struct vhost_memory *m, int fd, uint64_t guest, uint64_t user, uint64_t size,
		     uint64_t offset) must_check;
void vhost_memory_release(struct vhost_memory *m);
/* Where the range of the guest's addresses is; NULL if it is not there. */
void *vhost_memory_at(const struct vhost_memory *m, uint64_t guest, uint64_t len);

struct vhost_ring {
	uint32_t num;  /* of descriptors; 0: there is no ring */
	uint16_t next; /* of the available ring, that is taken next */
	uint16_t used; /* how many were given back */
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

/* Whether `num` descriptors can be a ring: a power of two, and not too many. */
bool vhost_ring_num_ok(uint64_t num);
/* Finds the three parts at addresses of the front end; -EINVAL if they are not in memory. */
int vhost_ring_place(struct vhost_ring *r, const struct vhost_memory *m, uint64_t desc,
		     uint64_t avail, uint64_t used) must_check;
/* 1 and the next request, 0 if there is none, -EINVAL if the ring is broken. */
int vhost_ring_pop(struct vhost_ring *r, const struct vhost_memory *m, struct vhost_chain *out)
	must_check;
/* Gives a request back, of which `written` bytes were written to. */
void vhost_ring_push(struct vhost_ring *r, uint16_t head, uint32_t written);
/* Whether the guest wants to be woken after a push. */
bool vhost_ring_wants_call(const struct vhost_ring *r);

/* Copies from what the guest wrote, or to what it reads; false if there is not so much of it. */
bool vhost_chain_read(const struct vhost_chain *c, uint64_t at, void *to, uint64_t len);
bool vhost_chain_write(const struct vhost_chain *c, uint64_t at, const void *from, uint64_t len);
/* The parts of [at, at + len) of what the guest reads; how many, or -EINVAL. */
int vhost_chain_slice(const struct vhost_chain *c, uint64_t at, uint64_t len,
		      struct iovec out[VHOST_RING_MAX]);

#endif
