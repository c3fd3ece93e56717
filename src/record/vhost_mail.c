/* SPDX-License-Identifier: MIT */
/*
 * vhost_mail.c - serves the mailbox: holds one read until a message is sent, and gathers the
 * guest's writes.
 *
 * M1: at most one read waits; the agent does one thing at a time, and a second read fails.
 * M2: a message of the guest is held up to its longest length, and bytes behind that are refused.
 */
#include "record/vhost_mail.h"

#include <errno.h>

#include "record/vhost_blk.h"
#include "record/vhost_guard.h"

static struct vhost_mail *of_device(struct vhost *v)
{
	return container_of(v, struct vhost_mail, device);
}

static void finish(struct vhost_mail *m, uint16_t head, unsigned char *status, unsigned char answer,
		   uint64_t written)
{
	*status = answer;
	vhost_done(&m->device, 0, head, (uint32_t)written + 1);
	vhost_wake(&m->device, 0);
}

/* Fills the guest's buffers with the message from `at` on, and with zeros behind it. */
static unsigned char give(const struct vhost_mail *m, const struct vhost_chain *c, uint64_t at,
			  uint64_t len)
{
	static const unsigned char zeros[4096];
	uint64_t have = at < m->to_guest.len ? min(m->to_guest.len - at, len) : 0;

	if (have && !vhost_chain_write(c, 0, m->to_guest.buf + at, have))
		return VIRTIO_BLK_S_IOERR;
	for (uint64_t n; have < len; have += n) {
		n = min(len - have, (uint64_t)sizeof(zeros));
		if (!vhost_chain_write(c, have, zeros, n))
			return VIRTIO_BLK_S_IOERR;
	}
	return VIRTIO_BLK_S_OK;
}

static void deliver(void *ctx)
{
	struct vhost_mail *m = ctx;

	if (!m->waiting || !m->has_mail)
		return;
	m->waiting = m->has_mail = false;
	finish(m, m->wait.head, m->wait_status, give(m, &m->wait, 0, m->wait_len), m->wait_len);
}

static void do_read(struct vhost_mail *m, const struct vhost_blk_request *r)
{
	const struct vhost_chain *c = &m->chain;

	if (!vhost_blk_range_ok(m->size, r->addr, r->len) || (r->addr == m->in && m->waiting)) {
		finish(m, c->head, r->status, VIRTIO_BLK_S_IOERR, 0);
	} else if (r->addr == m->in) {
		m->waiting = true;
		m->wait_next = m->device.queue[0].ring.next;
		m->wait = *c;
		m->wait_len = r->len;
		m->wait_status = r->status;
		deliver(m);
	} else {
		/* A read behind MAIL_COMMANDS gets the rest; other places are zeros. */
		uint64_t at = r->addr > m->in && r->addr < m->out ? r->addr - m->in : UINT64_MAX;

		finish(m, c->head, r->status, give(m, c, at, r->len), r->len);
	}
}

/* Notes a written part. Parts come in any order, perhaps twice: only bytes without a gap count. */
static void note_written(struct vhost_mail *m, uint64_t at, uint64_t len)
{
	size_t first = at / VHOST_BLK_SECTOR, end = (at + len) / VHOST_BLK_SECTOR;

	while (m->written.n < end)
		vec_push(&m->written, 0);
	memset(m->written.v + first, 1, end - first);
	for (size_t i = m->got / VHOST_BLK_SECTOR; i < m->written.n && m->written.v[i]; i++)
		m->got += VHOST_BLK_SECTOR;
}

static unsigned char do_write(struct vhost_mail *m, const struct vhost_blk_request *r)
{
	uint64_t at = r->addr - m->out;

	if (!vhost_blk_range_ok(m->size, r->addr, r->len) || r->addr < m->out || at > m->out_max ||
	    r->len > m->out_max - at)
		return VIRTIO_BLK_S_IOERR;
	if (at + r->len > m->from_guest.n) {
		vec_reserve(&m->from_guest, at + r->len - m->from_guest.n);
		memset(m->from_guest.v + m->from_guest.n, 0, at + r->len - m->from_guest.n);
		m->from_guest.n = at + r->len;
	}
	if (!vhost_chain_read(&m->chain, VHOST_BLK_HEAD, m->from_guest.v + at, r->len))
		return VIRTIO_BLK_S_IOERR;
	note_written(m, at, r->len);
	return VIRTIO_BLK_S_OK;
}

static void do_request(struct vhost_mail *m, const struct vhost_blk_request *r)
{
	char id[VIRTIO_BLK_ID_BYTES] = { 0 };

	switch (r->type) {
	case VIRTIO_BLK_T_IN:
		do_read(m, r);
		return;
	case VIRTIO_BLK_T_OUT:
		finish(m, m->chain.head, r->status, do_write(m, r), 0);
		return;
	case VIRTIO_BLK_T_FLUSH:
		finish(m, m->chain.head, r->status, VIRTIO_BLK_S_OK, 0);
		return;
	case VIRTIO_BLK_T_GET_ID:
		memcpy(id, m->id, min(strlen(m->id), sizeof(id)));
		finish(m, m->chain.head, r->status,
		       vhost_chain_write(&m->chain, 0, id, min(r->len, (uint64_t)sizeof(id)))
			       ? VIRTIO_BLK_S_OK
			       : VIRTIO_BLK_S_IOERR,
		       min(r->len, (uint64_t)sizeof(id)));
		return;
	}
	finish(m, m->chain.head, r->status, VIRTIO_BLK_S_UNSUPP, 0);
}

static void serve(struct vhost *v, unsigned queue)
{
	struct vhost_mail *m = of_device(v);
	struct vhost_blk_request r;
	uint32_t taken = 0;

	while (vhost_next(v, queue, &m->chain, &taken)) {
		if (vhost_blk_decode(&m->chain, &r)) {
			vhost_break(v, queue, "a request to the mailbox is none");
			break;
		}
		do_request(m, &r);
	}
}

static void forget(struct vhost *v)
{
	struct vhost_mail *m = of_device(v);

	/* If the waiting request was taken last, it is taken again when the ring is restarted. */
	if (m->waiting && v->queue[0].ring.next == m->wait_next)
		v->queue[0].ring.next--;
	m->waiting = false;
}

static const struct vhost_ops device_ops = { .serve = serve, .forget = forget };

void vhost_mail_init(struct vhost_mail *m, const char *id, uint64_t size, uint64_t in, uint64_t out,
		     uint64_t out_max)
{
	assert(in < out && out < size && out_max <= size - out);
	*m = (struct vhost_mail){
		.id = id, .size = size, .in = in, .out = out, .out_max = out_max
	};
	vhost_init(&m->device, &device_ops);
	vhost_blk_describe(&m->device, size);
}

void vhost_mail_release(struct vhost_mail *m)
{
	vhost_release(&m->device);
	strbuf_release(&m->to_guest);
	vec_release(&m->from_guest);
	vec_release(&m->written);
}

void vhost_mail_send(struct vhost_mail *m, const void *text, size_t len)
{
	assert(len && len <= m->out - m->in);
	strbuf_clear(&m->to_guest);
	strbuf_add(&m->to_guest, text, len);
	m->has_mail = true;
	vhost_take(&m->device);
	if (!vhost_guard(&m->device.memory, deliver, m))
		vhost_break(&m->device, 0, "the guest's memory is gone");
}

void vhost_mail_clear(struct vhost_mail *m)
{
	vec_clear(&m->from_guest);
	vec_clear(&m->written);
	m->got = 0;
}
