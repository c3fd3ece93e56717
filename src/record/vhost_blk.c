/* SPDX-License-Identifier: MIT */
/* vhost_blk.c - decodes and checks requests to a virtio block device. */
#include "record/vhost_blk.h"

#include <errno.h>
#include <linux/virtio_config.h>

enum {
	/*
	 * Head and status take two more descriptors, and every ring has that many. So the guest
	 * needs no indirect table.
	 */
	SEG_MAX = 62,
	RANGE_SECTORS = 1 << 20,
};

void vhost_blk_describe(struct vhost *v, uint64_t size)
{
	struct virtio_blk_config config = {
		.capacity = size / VHOST_BLK_SECTOR,
		.seg_max = SEG_MAX,
		.blk_size = VHOST_BLK_SECTOR,
		.wce = 1,
		.num_queues = VHOST_QUEUES,
		.max_discard_sectors = RANGE_SECTORS,
		.max_discard_seg = 1,
		.discard_sector_alignment = 1,
		.max_write_zeroes_sectors = RANGE_SECTORS,
		.max_write_zeroes_seg = 1,
		.write_zeroes_may_unmap = 1,
	};

	static_assert(sizeof(config) <= VHOST_CONFIG_MAX, "it has room");
	memcpy(v->config, &config, sizeof(config));
	v->config_len = sizeof(config);
	v->features = 1ULL << VIRTIO_F_VERSION_1 | 1ULL << VIRTIO_BLK_F_SEG_MAX |
		      1ULL << VIRTIO_BLK_F_BLK_SIZE | 1ULL << VIRTIO_BLK_F_FLUSH |
		      1ULL << VIRTIO_BLK_F_DISCARD | 1ULL << VIRTIO_BLK_F_WRITE_ZEROES;
}

/* The last byte that the guest reads. */
static unsigned char *last_byte(const struct vhost_chain *c)
{
	for (unsigned i = c->n_out + c->n_in; i-- > c->n_out;)
		if (c->v[i].iov_len)
			return (unsigned char *)c->v[i].iov_base + c->v[i].iov_len - 1;
	return NULL;
}

int vhost_blk_decode(const struct vhost_chain *c, struct vhost_blk_request *out)
{
	struct virtio_blk_outhdr head;

	static_assert(sizeof(head) == VHOST_BLK_HEAD, "as the standard has it");
	*out = (struct vhost_blk_request){ .status = last_byte(c) };
	if (!out->status || !vhost_chain_read(c, 0, &head, sizeof(head)))
		return -EINVAL;
	out->type = head.type;
	/* A sector number too large for an address in bytes lies on no disk. */
	out->addr = head.sector >> 48 ? UINT64_MAX : head.sector * VHOST_BLK_SECTOR;
	out->len = head.type == VIRTIO_BLK_T_IN || head.type == VIRTIO_BLK_T_GET_ID
			   ? c->in_len - 1
			   : c->out_len - VHOST_BLK_HEAD;
	return 0;
}

bool vhost_blk_range_ok(uint64_t size, uint64_t addr, uint64_t len)
{
	return addr <= size && len <= size - addr && len && len % VHOST_BLK_SECTOR == 0;
}

int vhost_blk_ranges(const struct vhost_chain *c, const struct vhost_blk_request *r, uint64_t size,
		     struct vhost_blk_range out[VHOST_BLK_RANGES])
{
	struct virtio_blk_discard_write_zeroes w[VHOST_BLK_RANGES];
	uint64_t n = r->len / sizeof(w[0]);

	if (!n || n > VHOST_BLK_RANGES || r->len % sizeof(w[0]) ||
	    !vhost_chain_read(c, VHOST_BLK_HEAD, w, r->len))
		return -EINVAL;
	for (uint64_t i = 0; i < n; i++) {
		if (w[i].sector >> 48)
			return -EINVAL;
		out[i] = (struct vhost_blk_range){ w[i].sector * VHOST_BLK_SECTOR,
						   (uint64_t)w[i].num_sectors * VHOST_BLK_SECTOR,
						   w[i].flags };
		if (!vhost_blk_range_ok(size, out[i].addr, out[i].len))
			return -EINVAL;
	}
	return (int)n;
}
