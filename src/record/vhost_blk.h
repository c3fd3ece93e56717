/* SPDX-License-Identifier: MIT */
/*
 * vhost_blk.h - decodes the requests to a virtio block device (virtio 1.1, chapter 5.2).
 */
#ifndef RECORD_VHOST_BLK_H
#define RECORD_VHOST_BLK_H

#include <linux/virtio_blk.h>

#include "record/vhost.h"

enum {
	VHOST_BLK_SECTOR = 512,
	VHOST_BLK_HEAD = 16,  /* bytes of a request's head */
	VHOST_BLK_RANGES = 16 /* ranges of one discard or write-zeroes */
};

struct vhost_blk_request {
	uint32_t type;	       /* VIRTIO_BLK_T_* */
	uint64_t addr;	       /* in bytes */
	uint64_t len;	       /* bytes of data, in the direction of the type */
	unsigned char *status; /* where the guest reads VIRTIO_BLK_S_* */
};

struct vhost_blk_range {
	uint64_t addr, len;
	uint32_t flags;
};

/* Describes a disk of `size` bytes with a volatile cache, that can discard and write zeros. */
void vhost_blk_describe(struct vhost *v, uint64_t size);
/* Returns -EINVAL if the request has no head, or no place for a status. */
int vhost_blk_decode(const struct vhost_chain *c, struct vhost_blk_request *out) must_check;
/* True if [addr, addr + len) has whole sectors, and lies on a disk of that size. */
bool vhost_blk_range_ok(uint64_t size, uint64_t addr, uint64_t len);
/* Gives the ranges of a discard or write-zeroes; returns their number, or -EINVAL. */
int vhost_blk_ranges(const struct vhost_chain *c, const struct vhost_blk_request *r, uint64_t size,
		     struct vhost_blk_range out[VHOST_BLK_RANGES]) must_check;

#endif
