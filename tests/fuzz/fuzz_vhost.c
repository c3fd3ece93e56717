/* SPDX-License-Identifier: MIT */
/*
 * fuzz_vhost.c - a guest and its front end may send what they like: the disk stays inside its
 * bounds, and a record that is given out replays.
 *
 * The first byte says how: 'r': a ring is set up as it should be, and the rest is the guest's
 * memory, with descriptors at 0, the available ring at 1024 and the used ring at 2048. 'm': the
 * rest is messages, each one byte of request, one of descriptors, one of length, and the payload;
 * whatever they set up is then served with zeroed memory. 'b': as 'r', for the mailbox, which is
 * given a message in between.
 */
#include <errno.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record/vhost_disk.h"
#include "record/vhost_mail.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEM = 16384, NUM = 16, DISK = 1 << 20 };

static int memfd = -1;
static unsigned char *memory;

static void message(struct vhost *v, uint32_t request, const void *payload, uint32_t size,
		    const int *fds, unsigned n)
{
	unsigned char text[12 + 256];
	uint32_t head[3] = { request, 1, size };
	int copies[VHOST_FDS_MAX];

	memcpy(text, head, sizeof(head));
	memcpy(text + 12, payload, size);
	for (unsigned i = 0; i < n; i++)
		copies[i] = dup(fds[i]);
	if (vhost_message(v, text, 12 + size, copies, n))
		vhost_disconnect(v);
}

static void set_up(struct vhost *v, int kick)
{
	uint64_t table[] = { 1, 0, MEM, 0, 0 }, zero = 0;
	uint64_t addr[] = { 0, 0, 2048, 1024, 0 };
	uint32_t num[] = { 0, NUM }, on[] = { 0, 1 };

	message(v, 5, table, sizeof(table), &memfd, 1);
	message(v, 8, num, sizeof(num), NULL, 0);
	message(v, 9, addr, sizeof(addr), NULL, 0);
	message(v, 12, &zero, sizeof(zero), &kick, 1);
	message(v, 18, on, sizeof(on), NULL, 0);
}

static void messages(struct vhost *v, int kick, const uint8_t *p, const uint8_t *end)
{
	while (end - p >= 3) {
		uint32_t size = (uint32_t)min((ptrdiff_t)p[2], end - p - 3);
		int fds[VHOST_FDS_MAX];

		for (unsigned i = 0; i < VHOST_FDS_MAX; i++)
			fds[i] = p[0] == 5 ? memfd : kick;
		message(v, p[0], p + 3, size, fds, p[1] % VHOST_FDS_MAX);
		p += 3 + size;
		vhost_take(v);
	}
}

/* A message of the guest has no more than it may have, and ours goes nowhere but to its memory. */
static void mailbox(const uint8_t *data, size_t size, int kick)
{
	enum { BYTES = 1 << 20, IN = 64 << 10, OUT = 512 << 10, OUT_MAX = 4096 };
	struct vhost_mail m;

	vhost_mail_init(&m, "mail", BYTES, IN, OUT, OUT_MAX);
	set_up(&m.device, kick);
	assert(m.device.queue[0].placed);
	memcpy(memory, data, min(size, (size_t)MEM));
	vhost_take(&m.device);
	vhost_mail_send(&m, "hello", 5);
	vhost_take(&m.device);
	assert(m.from_guest.n <= OUT_MAX);
	vhost_mail_clear(&m);
	vhost_mail_release(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct disk *d;
	struct trace t;
	struct err err = ERR_INIT;

	if (memfd < 0) {
		memfd = memfd_create("guest", MFD_CLOEXEC);
		if (ftruncate(memfd, MEM) < 0)
			abort();
		memory = mmap(NULL, MEM, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	}
	if (!size || !memchr("rmb", data[0], 3))
		return 0;
	int kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	memset(memory, 0, MEM);
	if (data[0] == 'b') {
		mailbox(data + 1, size - 1, kick);
		close(kick);
		return 0;
	}
	if (vhost_disk_open(DISK, &d, &err))
		abort();
	struct vhost *v = vhost_disk_device(d);
	trace_init(&t);
	if (disk_start(d, &t, &err))
		abort();
	if (data[0] == 'r') {
		set_up(v, kick);
		assert(v->queue[0].placed);
		memcpy(memory, data + 1, min(size - 1, (size_t)MEM));
		vhost_take(v);
	} else {
		messages(v, kick, data + 1, data + size);
	}
	if (disk_stop(d, &err))
		assert(err.code == -EPROTO);
	trace_release(&t);
	disk_close(d);
	close(kick);
	return 0;
}
