/* SPDX-License-Identifier: MIT */
/*
 * vhost_disk.c - a guest's disk, whose requests this process serves and records.
 *
 * Requests that are in the ring together count as submitted together, so all of them are added to
 * the trace before any is done: a flush that the guest sent before a write had ended does not cover
 * that write. A virtio disk knows no FUA; the guest's kernel sends a write and a flush instead, and
 * does not mark metadata.
 *
 * G1: the bytes of a write are copied out of the guest's memory once; the trace has the same bytes
 *     as the disk, whatever the guest does to that memory meanwhile.
 * G2: a request is performed when it is taken, and is given back in the same call, so no request is
 *     in flight between two calls.
 * G3: a forbidden request (a range that is not on the disk, half a sector) fails with the right
 *     status, and leaves no event. A malformed request breaks its ring.
 * G4: flash is no device but a part of the guest's memory. The guest's stores there are found when
 *     the memory is next compared, and become one write, which cannot be torn: their order is not
 *     known. A comparison uses the content of one moment.
 */
#include "record/vhost_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"
#include "base/log.h"
#include "record/disk_impl.h"
#include "record/vhost_blk.h"
#include "record/vhost_guard.h"

/* A request that was taken, and must be given back. */
struct pending_answer {
	uint16_t head;
	unsigned char *status, answer;
	uint32_t written;
	uint64_t first, events; /* its events in the trace */
};

static const struct disk_ops disk_vhost;

struct guest_disk {
	struct disk base;
	struct vhost device;
	struct vec_of(struct pending_answer) pending;
	uint64_t *flash;	  /* the places of its pages in the guest's memory, or NULL */
	struct vhost_chain chain; /* the current request */
	struct iovec parts[VHOST_RING_MAX];
};

static struct guest_disk *of_disk(struct disk *base)
{
	return container_of(base, struct guest_disk, base);
}

static struct guest_disk *of_device(struct vhost *v)
{
	return container_of(v, struct guest_disk, device);
}

/* ---- requests ---- */

static void record(struct guest_disk *d, struct pending_answer *p, const struct event *ev)
{
	uint64_t number = trace_append(d->base.trace, ev);

	if (!p->events++)
		p->first = number;
}

static unsigned char do_read(struct guest_disk *d, struct pending_answer *p,
			     const struct vhost_blk_request *r)
{
	int n = vhost_chain_slice(&d->chain, 0, r->len, d->parts);

	if (n < 0 || !vhost_blk_range_ok(d->base.size, r->addr, r->len))
		return VIRTIO_BLK_S_IOERR;
	/* Reads the file, not the mapping, which would fill holes. */
	uint64_t at = r->addr;
	for (int i = 0; i < n; at += d->parts[i++].iov_len)
		if (pread(d->base.memfd, d->parts[i].iov_base, d->parts[i].iov_len, (off_t)at) !=
		    (ssize_t)d->parts[i].iov_len)
			return VIRTIO_BLK_S_IOERR;
	p->written += (uint32_t)r->len;
	if (d->base.trace)
		record(d, p, &(struct event){ .kind = EV_READ, .addr = r->addr, .len = r->len });
	return VIRTIO_BLK_S_OK;
}

static unsigned char do_write(struct guest_disk *d, struct pending_answer *p,
			      const struct vhost_blk_request *r)
{
	struct trace *t = d->base.trace;

	if (!vhost_blk_range_ok(d->base.size, r->addr, r->len))
		return VIRTIO_BLK_S_IOERR;
	unsigned char *to = t ? arena_alloc(&t->data, r->len) : d->base.map + r->addr;
	if (!vhost_chain_read(&d->chain, VHOST_BLK_HEAD, to, r->len))
		return VIRTIO_BLK_S_IOERR;
	if (!t) {
		disk_changed(&d->base, r->addr, r->len);
		return VIRTIO_BLK_S_OK;
	}
	memcpy(d->base.map + r->addr, to, r->len);
	if (!p->events++)
		p->first = t->events.n;
	vec_push(&t->events,
		 (struct event){ .kind = EV_WRITE, .addr = r->addr, .len = r->len, .data = to });
	return VIRTIO_BLK_S_OK;
}

static unsigned char do_ranges(struct guest_disk *d, struct pending_answer *p,
			       const struct vhost_blk_request *r)
{
	struct vhost_blk_range v[VHOST_BLK_RANGES];
	bool discard = r->type == VIRTIO_BLK_T_DISCARD;
	uint32_t known = discard ? 0 : VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP;
	int n = vhost_blk_ranges(&d->chain, r, d->base.size, v);

	for (int i = 0; i < n; i++)
		if (v[i].flags & ~known)
			return VIRTIO_BLK_S_UNSUPP;
	for (int i = 0; i < n; i++) {
		if (fallocate(d->base.memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			      (off_t)v[i].addr, (off_t)v[i].len) < 0)
			return VIRTIO_BLK_S_IOERR;
		if (d->base.trace)
			record(d, p,
			       &(struct event){ .kind = discard ? EV_DISCARD : EV_ZERO,
						.addr = v[i].addr,
						.len = v[i].len });
		else
			disk_changed(&d->base, v[i].addr, v[i].len);
	}
	return n < 0 ? VIRTIO_BLK_S_IOERR : VIRTIO_BLK_S_OK;
}

static unsigned char do_flush(struct guest_disk *d, struct pending_answer *p)
{
	if (d->base.trace)
		record(d, p, &(struct event){ .kind = EV_FLUSH });
	return VIRTIO_BLK_S_OK;
}

static unsigned char do_id(struct guest_disk *d, struct pending_answer *p,
			   const struct vhost_blk_request *r)
{
	static const char id[VIRTIO_BLK_ID_BYTES] = "outage";
	uint64_t len = min(r->len, (uint64_t)sizeof(id));

	if (!vhost_chain_write(&d->chain, 0, id, len))
		return VIRTIO_BLK_S_IOERR;
	p->written += (uint32_t)len;
	return VIRTIO_BLK_S_OK;
}

static unsigned char do_request(struct guest_disk *d, struct pending_answer *p,
				const struct vhost_blk_request *r)
{
	switch (r->type) {
	case VIRTIO_BLK_T_IN:
		return do_read(d, p, r);
	case VIRTIO_BLK_T_OUT:
		return do_write(d, p, r);
	case VIRTIO_BLK_T_FLUSH:
		return do_flush(d, p);
	case VIRTIO_BLK_T_GET_ID:
		return do_id(d, p, r);
	case VIRTIO_BLK_T_DISCARD:
	case VIRTIO_BLK_T_WRITE_ZEROES:
		return do_ranges(d, p, r);
	}
	return VIRTIO_BLK_S_UNSUPP;
}

static void give_back(struct guest_disk *d, unsigned queue)
{
	vec_each(p, &d->pending) {
		for (uint64_t k = 0; k < p->events; k++)
			trace_complete(d->base.trace, p->first + k,
				       p->answer == VIRTIO_BLK_S_OK ? 0 : -EIO);
		*p->status = p->answer;
		vhost_done(&d->device, queue, p->head, p->written);
	}
	if (d->pending.n)
		vhost_wake(&d->device, queue);
	vec_clear(&d->pending);
}

static void serve(struct vhost *v, unsigned queue)
{
	struct guest_disk *d = of_device(v);
	struct vhost_blk_request r;
	uint32_t taken = 0;

	while (vhost_next(v, queue, &d->chain, &taken)) {
		struct pending_answer p = { .head = d->chain.head, .written = 1 };

		if (vhost_blk_decode(&d->chain, &r)) {
			vhost_break(v, queue, "a request to the disk is none");
			break;
		}
		p.status = r.status;
		p.answer = do_request(d, &p, &r);
		vec_push(&d->pending, p);
	}
	give_back(d, queue);
}

/* ---- flash ---- */

enum { FLASH_PAGE = VHOST_FLASH_PAGE, LOOKS_MAX = 1000 };

static unsigned char *flash_page(const struct guest_disk *d, uint64_t at)
{
	return vhost_memory_at(&d->device.memory, d->flash[at / FLASH_PAGE], FLASH_PAGE);
}

static bool is_flash_there(const struct guest_disk *d)
{
	for (uint64_t at = 0; at < d->base.size; at += FLASH_PAGE)
		if (!d->flash || !flash_page(d, at))
			return false;
	return true;
}

static bool is_same(const struct guest_disk *d, const unsigned char *as)
{
	for (uint64_t at = 0; at < d->base.size; at += FLASH_PAGE)
		if (memcmp(flash_page(d, at), as + at, FLASH_PAGE) != 0)
			return false;
	return true;
}

/* Returns the content of one moment: two reads gave the same bytes. */
static unsigned char *snapshot(const struct guest_disk *d)
{
	auto_free unsigned char *copy = xmalloc(d->base.size);

	for (int i = 0; i < LOOKS_MAX; i++) {
		for (uint64_t at = 0; at < d->base.size; at += FLASH_PAGE)
			memcpy(copy + at, flash_page(d, at), FLASH_PAGE);
		if (is_same(d, copy))
			return steal(copy);
	}
	return NULL;
}

/* Gives the range from the first to the last differing sector; false if none differs. */
static bool find_change(const unsigned char *old, const unsigned char *new, uint64_t size,
			uint64_t *from, uint64_t *to)
{
	uint64_t a = 0, b = size;

	while (a < size && memcmp(old + a, new + a, VHOST_BLK_SECTOR) == 0)
		a += VHOST_BLK_SECTOR;
	while (b > a && memcmp(old + b - VHOST_BLK_SECTOR, new + b - VHOST_BLK_SECTOR,
			       VHOST_BLK_SECTOR) == 0)
		b -= VHOST_BLK_SECTOR;
	*from = a;
	*to = b;
	return a < b;
}

static int take_flash(struct guest_disk *d, struct err *err)
{
	uint64_t from, to;

	if (!d->base.in_use || !is_flash_there(d) || is_same(d, d->base.map))
		return 0;
	auto_free unsigned char *now = snapshot(d);
	if (!now)
		return err_set(err, -EBUSY, "the guest does not stop writing to its flash");
	if (!find_change(d->base.map, now, d->base.size, &from, &to))
		return 0;
	memcpy(d->base.map + from, now + from, to - from);
	if (!d->base.trace) {
		disk_changed(&d->base, from, to - from);
		return 0;
	}
	uint64_t number = trace_append(d->base.trace, &(struct event){ .kind = EV_WRITE,
								       .flags = EV_FUA,
								       .addr = from,
								       .len = to - from,
								       .data = now + from });
	trace_complete(d->base.trace, number, 0);
	return 0;
}

struct flash_look {
	struct guest_disk *d;
	struct err *err;
	int rc;
};

static void look(void *ctx)
{
	struct flash_look *l = ctx;

	l->rc = take_flash(l->d, l->err);
}

/* Takes the guest's stores since the last time into the content and the trace. */
static int look_at_flash(struct guest_disk *d, struct err *err)
{
	struct flash_look l = { d, err, 0 };

	if (!d->base.in_use || !d->flash)
		return 0;
	return vhost_guard(&d->device.memory, look, &l)
		       ? l.rc
		       : err_set(err, -EFAULT,
				 "the guest's memory, and its flash with it, is gone");
}

static uint64_t *new_flash(struct guest_disk *d)
{
	free(d->flash);
	d->flash = xcalloc(d->base.size / FLASH_PAGE, sizeof(*d->flash));
	return d->flash;
}

/* Gives the number of a page of flash; false if the page is none. */
static bool is_marked(const unsigned char *page, uint64_t mark, uint64_t *number)
{
	uint64_t first[2], second[2];

	memcpy(first, page, sizeof(first));
	memcpy(second, page + FLASH_PAGE / 2, sizeof(second));
	*number = first[1];
	return first[0] == mark && second[0] == ~mark && first[1] == second[1];
}

/*
 * Finds marked pages in one part of the guest's memory; returns their number. Holes are not read,
 * as that would fill them.
 */
static uint64_t find_marks(struct guest_disk *d, const struct vhost_region *r, uint64_t mark)
{
	size_t pages = r->mapping_len / FLASH_PAGE;
	auto_free unsigned char *there = xcalloc(1, pages + 1);
	uint64_t found = 0, number;

	if (r->map != r->mapping || mincore(r->mapping, pages * FLASH_PAGE, there) < 0)
		return 0;
	for (size_t i = 0; i < pages; i++) {
		if (!(there[i] & 1) || !is_marked(r->map + i * FLASH_PAGE, mark, &number) ||
		    number >= d->base.size / FLASH_PAGE)
			continue;
		d->flash[number] = r->guest + i * FLASH_PAGE;
		found++;
	}
	return found;
}

int vhost_disk_find_flash(struct disk *base, uint64_t mark, struct err *err)
{
	struct guest_disk *d = of_disk(base);
	uint64_t *flash = new_flash(d), pages = base->size / FLASH_PAGE, found = 0, known = 0;

	for (unsigned i = 0; i < d->device.memory.n; i++)
		found += find_marks(d, &d->device.memory.v[i], mark);
	for (uint64_t i = 0; i < pages; i++)
		known += flash[i] != 0;
	return found == pages && known == pages
		       ? 0
		       : err_set(err, -EIO,
				 "the flash of the guest was not found in its memory: %llu of %llu "
				 "pages, %llu times",
				 llu(known), llu(pages), llu(found));
}

int vhost_disk_lay_out(struct disk *base, struct err *err)
{
	struct guest_disk *d = of_disk(base);

	if (!is_flash_there(d))
		return err_set(err, -ENOMEM, "the guest has no memory where its flash should be");
	for (uint64_t at = 0; at < base->size; at += FLASH_PAGE)
		if (io_pread_full(base->memfd, flash_page(d, at), FLASH_PAGE, (off_t)at) !=
		    FLASH_PAGE)
			return err_set(err, -EIO, "cannot read the content of the flash: %m");
	return 0;
}

/* Takes the last stores of a guest that has unmounted its flash, or is gone. */
static void take_last(struct guest_disk *d)
{
	struct err ignored = ERR_INIT;

	if (look_at_flash(d, &ignored))
		log_debug("%s", ignored.msg);
}

static void forget(struct vhost *v)
{
	take_last(of_device(v));
	vec_clear(&of_device(v)->pending);
}

static const struct vhost_ops device_ops = { .serve = serve, .forget = forget };

/* ---- the recorder ---- */

static void guest_close(struct disk *base)
{
	struct guest_disk *d = of_disk(base);

	vhost_release(&d->device);
	vec_release(&d->pending);
	free(d->flash);
	/* There is no loop device behind the name. */
	base->loop = (struct loop){ 0 };
	disk_release(base);
	free(d);
}

int vhost_disk_open(uint64_t size, struct disk **out, struct err *err)
{
	struct guest_disk *d = xcalloc(1, sizeof(*d));
	int rc = disk_init(&d->base, &disk_vhost, size, err);

	vhost_init(&d->device, &device_ops);
	vhost_blk_describe(&d->device, size);
	d->base.loop = (struct loop){ .path = "the guest's disk", .sector_size = VHOST_BLK_SECTOR };
	if (rc) {
		guest_close(&d->base);
		return rc;
	}
	*out = &d->base;
	return 0;
}

/* Takes all requests that the guest has handed over by now. */
static int guest_take(struct disk *base, struct err *err)
{
	struct vhost *v = vhost_disk_device(base);

	vhost_take(v);
	for (unsigned i = 0; i < VHOST_QUEUES; i++)
		if (v->queue[i].ring.broken)
			return err_set(err, -EPROTO, "the guest's disk cannot go on: %s",
				       *v->why ? v->why : "its ring makes no sense");
	return look_at_flash(of_disk(base), err);
}

static void guest_unmounted(struct disk *base)
{
	take_last(of_disk(base));
}

static const struct disk_ops disk_vhost = {
	.name = VHOST_RECORDER,
	.info = "disk of a guest: FUA is seen as write and flush",
	.in_guest = "disk",
	.close = guest_close,
	.unmounted = guest_unmounted,
	.settle = guest_take,
	.start = guest_take,
	.drain = guest_take,
	.stop = guest_take,
};

struct vhost *vhost_disk_device(struct disk *d)
{
	assert(d->ops == &disk_vhost);
	return &of_disk(d)->device;
}
