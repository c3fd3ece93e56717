/* SPDX-License-Identifier: MIT */
/*
 * The disk of a guest, by a front end that plays the guest: it connects to the real socket, hands
 * over real memory, and fills real rings, rightly and wrongly.
 */
#include "tap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/virtio_config.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "record/vhost_blk.h"
#include "record/vhost_disk.h"
#include "record/vhost_mail.h"

enum {
	DISK_BYTES = 1 << 20,
	MEM_BYTES = 1 << 18,
	NUM = 16,
	DESC = 0,
	AVAIL = 4096,
	USED = 8192,
	HEADS = 12288,
	DATA = 65536,
};
#define GUEST 0x10000000ULL /* where the memory is in the guest */
#define USER  0x7f0000000000ULL

struct guest {
	struct disk *disk;
	struct vhost *v;
	int conn, kick, call, memfd;
	unsigned char *mem;
	uint16_t next_desc, avail, seen;
};

/* ---- messages ---- */

static int tell(struct guest *g, uint32_t request, uint32_t flags, const void *payload,
		uint32_t size, const int *fds, unsigned n_fds)
{
	unsigned char text[512];
	uint32_t head[3] = { request, 1 | flags, size };
	char room[CMSG_SPACE(sizeof(int) * 8)] = { 0 };
	struct iovec part = { text, 12 + size };
	struct msghdr h = { .msg_iov = &part, .msg_iovlen = 1 };

	memcpy(text, head, 12);
	memcpy(text + 12, payload, size);
	if (n_fds) {
		h.msg_control = room;
		h.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		struct cmsghdr *c = CMSG_FIRSTHDR(&h);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * n_fds);
	}
	int rc = sendmsg(g->conn, &h, MSG_NOSIGNAL) < 0 ? -errno : 0;

	vhost_serve(g->v);
	return rc;
}

/* The payload of an answer; its length, or -1 if there is none. */
static int answer(struct guest *g, uint32_t request, void *out, size_t size)
{
	unsigned char text[512];
	uint32_t head[3];
	ssize_t n = recv(g->conn, text, sizeof(text), MSG_DONTWAIT);

	if (n < 12)
		return -1;
	memcpy(head, text, 12);
	if (head[0] != request || head[1] != 5 || head[2] != n - 12 || head[2] > size)
		return -1;
	memcpy(out, text + 12, head[2]);
	return (int)head[2];
}

static uint64_t ask(struct guest *g, uint32_t request)
{
	uint64_t value = UINT64_MAX;

	tell(g, request, 0, "", 0, NULL, 0);
	answer(g, request, &value, sizeof(value));
	return value;
}

static void set_number(struct guest *g, uint32_t request, uint64_t value)
{
	tell(g, request, 0, &value, sizeof(value), NULL, 0);
}

static void set_pair(struct guest *g, uint32_t request, uint32_t index, uint32_t num)
{
	uint32_t pair[2] = { index, num };

	tell(g, request, 0, pair, sizeof(pair), NULL, 0);
}

static void set_fd(struct guest *g, uint32_t request, int fd)
{
	uint64_t index = 0;

	tell(g, request, 0, &index, sizeof(index), &fd, 1);
}

static void set_memory(struct guest *g, uint64_t size)
{
	struct {
		uint32_t n, pad;
		uint64_t guest, size, user, offset;
	} table = { 1, 0, GUEST, size, USER, 0 };

	tell(g, 5, 0, &table, sizeof(table), &g->memfd, 1);
}

static void set_addresses(struct guest *g, uint64_t desc, uint64_t avail, uint64_t used)
{
	struct {
		uint32_t index, flags;
		uint64_t desc, used, avail, log;
	} a = { 0, 0, desc, used, avail, 0 };

	tell(g, 9, 0, &a, sizeof(a), NULL, 0);
}

static void connect_only(struct guest *g)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	struct err err = ERR_INIT;

	ok(vhost_listen(g->v, &err) == 0, "a socket is there %s", err.msg);
	g->conn = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(at.sun_path, sizeof(at.sun_path), "/proc/self/fd/%d", g->v->place);
	ok(connect(g->conn, (struct sockaddr *)&at, sizeof(at)) == 0,
	   "it has no name, and is found through a descriptor");
	vhost_serve(g->v);
	ok(vhost_connected(g->v), "the front end is connected");
}

static void open_guest_with(struct guest *g, uint64_t disk_bytes)
{
	struct err err = ERR_INIT;

	*g = (struct guest){ .conn = -1 };
	g->memfd = memfd_create("guest", MFD_CLOEXEC);
	if (ftruncate(g->memfd, MEM_BYTES) < 0)
		abort();
	g->mem = mmap(NULL, MEM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, g->memfd, 0);
	g->kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	g->call = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ok(vhost_disk_open(disk_bytes, &g->disk, &err) == 0, "a disk is there %s", err.msg);
	g->v = vhost_disk_device(g->disk);
	connect_only(g);
}

static void open_guest(struct guest *g)
{
	open_guest_with(g, DISK_BYTES);
}

static void set_up(struct guest *g)
{
	set_number(g, 2, g->v->features | 1ULL << 30);
	set_number(g, 16, 1 << 3 | 1 << 5 | 1 << 9);
	set_memory(g, MEM_BYTES);
	set_pair(g, 8, 0, NUM);
	set_pair(g, 10, 0, 0);
	set_addresses(g, USER + DESC, USER + AVAIL, USER + USED);
	set_fd(g, 13, g->call);
	set_fd(g, 12, g->kick);
	set_pair(g, 18, 0, 1);
}

static void close_guest(struct guest *g)
{
	disk_close(g->disk);
	munmap(g->mem, MEM_BYTES);
	close(g->memfd);
	close(g->kick);
	close(g->call);
	util_close(g->conn);
}

/* ---- requests ---- */

static struct vring_desc *desc(struct guest *g, unsigned i)
{
	return (struct vring_desc *)(g->mem + DESC) + i;
}

static uint16_t add_desc(struct guest *g, uint64_t addr, uint32_t len, uint16_t flags)
{
	uint16_t i = g->next_desc++ % NUM;

	*desc(g, i) = (struct vring_desc){ addr, len, flags, (uint16_t)((i + 1) % NUM) };
	return i;
}

static void offer(struct guest *g, uint16_t head)
{
	struct vring_avail *a = (struct vring_avail *)(g->mem + AVAIL);

	a->ring[g->avail % NUM] = head;
	__atomic_store_n(&a->idx, ++g->avail, __ATOMIC_RELEASE);
}

/* Puts a request into the ring; nobody is woken. Gives the place of its status. */
static unsigned char *put(struct guest *g, uint32_t type, uint64_t sector, uint32_t at,
			  uint32_t len)
{
	unsigned slot = g->avail % NUM;
	unsigned char *head = g->mem + HEADS + slot * 32;
	bool in = type == VIRTIO_BLK_T_IN || type == VIRTIO_BLK_T_GET_ID;
	struct virtio_blk_outhdr h = { .type = type, .sector = sector };

	memcpy(head, &h, sizeof(h));
	head[16] = 0xee;
	uint16_t first = add_desc(g, GUEST + HEADS + slot * 32, sizeof(h), VRING_DESC_F_NEXT);
	if (len)
		add_desc(g, GUEST + at, len, VRING_DESC_F_NEXT | (in ? VRING_DESC_F_WRITE : 0));
	add_desc(g, GUEST + HEADS + slot * 32 + 16, 1, VRING_DESC_F_WRITE);
	offer(g, first);
	return head + 16;
}

static void kick(struct guest *g)
{
	uint64_t one = 1;

	if (write(g->kick, &one, 8) != 8)
		abort();
	vhost_serve(g->v);
}

static int request(struct guest *g, uint32_t type, uint64_t sector, uint32_t at, uint32_t len)
{
	unsigned char *status = put(g, type, sector, at, len);

	kick(g);
	return *status;
}

static unsigned given_back(struct guest *g)
{
	unsigned n = (uint16_t)(((struct vring_used *)(g->mem + USED))->idx - g->seen);

	g->seen = (uint16_t)(g->seen + n);
	return n;
}

static bool was_woken(struct guest *g)
{
	uint64_t n;

	return read(g->call, &n, 8) == 8;
}

static void mark(struct guest *g, enum event_kind kind, uint64_t op)
{
	struct event ev = { .kind = kind, .ref = op };
	struct err err = ERR_INIT;

	ok(disk_mark(g->disk, &ev, &err) == 0, "a mark is made %s", err.msg);
}

/* "W0.4096 C0 F C2": what is in the trace. */
static char *in_short(const struct trace *t)
{
	static const char letters[] = {
		[EV_WRITE] = 'W', [EV_FLUSH] = 'F',    [EV_DISCARD] = 'D',  [EV_ZERO] = 'Z',
		[EV_READ] = 'R',  [EV_COMPLETE] = 'C', [EV_OP_BEGIN] = 'b', [EV_OP_END] = 'e',
		[EV_TEXT] = 't',  [EV_KIND_END] = '?'
	};
	struct strbuf out = { 0 };

	for (size_t i = 0; i < t->events.n; i++) {
		const struct event *ev = &t->events.v[i];

		strbuf_addf(&out, "%s%c", i ? " " : "", letters[ev->kind]);
		if (ev->kind == EV_COMPLETE)
			strbuf_addf(&out, "%llu%s", (unsigned long long)ev->ref,
				    ev->result ? "!" : "");
		else if (ev->len)
			strbuf_addf(&out, "%llu.%llu", (unsigned long long)ev->addr,
				    (unsigned long long)ev->len);
	}
	return strbuf_detach(&out);
}

static void start(struct guest *g, struct trace *t)
{
	struct err err = ERR_INIT;

	ok(disk_start(g->disk, t, &err) == 0, "recording begins %s", err.msg);
}

static void stop(struct guest *g)
{
	struct err err = ERR_INIT;

	ok(disk_stop(g->disk, &err) == 0, "the record is whole, and replays %s", err.msg);
}

/* ---- what must work ---- */

static void test_handshake(void)
{
	struct guest g;
	struct virtio_blk_config config = { 0 };
	unsigned char text[12 + sizeof(config)] = { 0 };
	uint32_t words[3] = { 0, sizeof(config), 0 };

	open_guest(&g);
	uint64_t features = ask(&g, 1);
	ok(features & 1ULL << 30 && features & 1ULL << VIRTIO_F_VERSION_1 &&
		   features & 1ULL << VIRTIO_BLK_F_FLUSH,
	   "a disk with a volatile cache is offered");
	ok(!(features & 1ULL << VIRTIO_BLK_F_RO) &&
		   !(features & 1ULL << VIRTIO_RING_F_INDIRECT_DESC),
	   "and nothing that is not there");
	is_u(ask(&g, 15), 1 << 3 | 1 << 5 | 1 << 9, "of the protocol what both front ends need");
	is_u(ask(&g, 17), 1, "one queue");
	memcpy(text, words, sizeof(words));
	tell(&g, 24, 0, text, sizeof(text), NULL, 0);
	is_i(answer(&g, 24, text, sizeof(text)), sizeof(text), "the configuration is told");
	memcpy(&config, text + 12, sizeof(config));
	is_u(config.capacity, DISK_BYTES / 512, "with the size");
	is_u(config.wce, 1, "and the cache");
	set_up(&g);
	ok(vhost_connected(g.v), "and the rest is accepted");
	/* Acknowledged only if asked for. */
	uint64_t value = 9;
	set_number(&g, 2, g.v->features);
	is_i(answer(&g, 2, &value, 8), -1, "what asks for no answer gets none");
	value = g.v->features;
	tell(&g, 2, 8, &value, sizeof(value), NULL, 0);
	is_i(answer(&g, 2, &value, 8), 8, "what asks for one gets it");
	is_u(value, 0, "and it is: done");
	close_guest(&g);
}

static void test_requests(void)
{
	struct guest g;
	auto_trace t;
	unsigned char id[21] = { 0 };

	trace_init(&t);
	open_guest(&g);
	set_up(&g);
	start(&g, &t);
	memset(g.mem + DATA, 'a', 4096);
	is_i(request(&g, VIRTIO_BLK_T_OUT, 8, DATA, 4096), VIRTIO_BLK_S_OK, "a write");
	is_u(given_back(&g), 1, "it is given back");
	ok(was_woken(&g), "and the guest woken");
	memset(g.mem + DATA, 'b', 4096);
	is_i(request(&g, VIRTIO_BLK_T_IN, 8, DATA, 4096), VIRTIO_BLK_S_OK, "a read");
	ok(g.mem[DATA] == 'a' && g.mem[DATA + 4095] == 'a', "gives what was written");
	is_i(request(&g, VIRTIO_BLK_T_FLUSH, 0, 0, 0), VIRTIO_BLK_S_OK, "a flush");
	struct virtio_blk_discard_write_zeroes range = { .sector = 9, .num_sectors = 2 };
	memcpy(g.mem + DATA, &range, sizeof(range));
	is_i(request(&g, VIRTIO_BLK_T_DISCARD, 0, DATA, sizeof(range)), VIRTIO_BLK_S_OK,
	     "a discard");
	range.sector = 11;
	range.flags = VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP;
	memcpy(g.mem + DATA, &range, sizeof(range));
	is_i(request(&g, VIRTIO_BLK_T_WRITE_ZEROES, 0, DATA, sizeof(range)), VIRTIO_BLK_S_OK,
	     "zeros");
	is_i(request(&g, VIRTIO_BLK_T_GET_ID, 0, DATA, 20), VIRTIO_BLK_S_OK, "an id");
	memcpy(id, g.mem + DATA, 20);
	is_s((char *)id, "outage", "which is ours");
	is_i(request(&g, VIRTIO_BLK_T_IN, 8, DATA, 4096), VIRTIO_BLK_S_OK, "read again");
	ok(g.mem[DATA] == 'a' && !g.mem[DATA + 512] && !g.mem[DATA + 2047] &&
		   g.mem[DATA + 2560] == 'a',
	   "what was discarded and zeroed is zero, and the rest is not");
	stop(&g);
	auto_free char *text = in_short(&t);
	is_s(text, "W4096.4096 C0 R4096.4096 C2 F C4 D4608.1024 C6 Z5632.1024 C8 R4096.4096 C10",
	     "all of it is in the record");
	ok(t.events.v[0].data[0] == 'a' && t.events.v[0].data[4095] == 'a',
	   "the write with its data");
	close_guest(&g);
}

/* What was submitted before something ended is before its end in the record. */
static void test_order(void)
{
	struct guest g;
	auto_trace t;

	trace_init(&t);
	open_guest(&g);
	set_up(&g);
	start(&g, &t);
	put(&g, VIRTIO_BLK_T_OUT, 0, DATA, 512);
	put(&g, VIRTIO_BLK_T_FLUSH, 0, 0, 0);
	kick(&g);
	put(&g, VIRTIO_BLK_T_OUT, 1, DATA, 512);
	kick(&g);
	put(&g, VIRTIO_BLK_T_FLUSH, 0, 0, 0);
	kick(&g);
	stop(&g);
	auto_free char *text = in_short(&t);
	is_s(text, "W0.512 F C0 C1 W512.512 C4 F C6",
	     "a flush covers what had ended, and not what was sent together with it");
	is_u(given_back(&g), 4, "four requests are given back");
	close_guest(&g);
}

static void test_marks(void)
{
	struct guest g;
	auto_trace t;

	trace_init(&t);
	open_guest(&g);
	set_up(&g);
	start(&g, &t);
	mark(&g, EV_OP_BEGIN, 0);
	/* In the ring, but nobody has looked at the descriptor to be woken by. */
	put(&g, VIRTIO_BLK_T_OUT, 0, DATA, 512);
	mark(&g, EV_OP_END, 0);
	mark(&g, EV_OP_BEGIN, 1);
	put(&g, VIRTIO_BLK_T_FLUSH, 0, 0, 0);
	mark(&g, EV_OP_END, 1);
	put(&g, VIRTIO_BLK_T_OUT, 1, DATA, 512);
	stop(&g);
	auto_free char *text = in_short(&t);
	is_s(text, "b W0.512 C1 e b F C5 e W512.512 C8",
	     "a mark stands behind all that was handed over before it");
	close_guest(&g);
}

static void test_load(void)
{
	struct guest g;
	struct err err = ERR_INIT;
	auto_image img = IMAGE_INIT;

	open_guest(&g);
	set_up(&g);
	image_init(&img, DISK_BYTES);
	image_write(&img, 512, "loaded", 6);
	disk_set_in_use(g.disk, true);
	is_i(disk_load(g.disk, &img, &err), -EBUSY, "what a guest has mounted is not changed");
	err_clear(&err);
	disk_set_in_use(g.disk, false);
	is_i(disk_load(g.disk, &img, &err), 0, "what it has not, is %s", err.msg);
	is_i(request(&g, VIRTIO_BLK_T_IN, 1, DATA, 512), VIRTIO_BLK_S_OK, "the guest reads");
	is_s((char *)g.mem + DATA, "loaded", "what was loaded");
	memcpy(g.mem + DATA, "ours", 5);
	is_i(request(&g, VIRTIO_BLK_T_OUT, 1, DATA, 512), VIRTIO_BLK_S_OK, "writes unrecorded");
	is_i(disk_load(g.disk, &img, &err), 0, "and it is loaded again %s", err.msg);
	is_i(disk_verify(g.disk, &img, &err), 0, "byte for byte %s", err.msg);
	is_i(request(&g, VIRTIO_BLK_T_OUT, 1, DATA, 512), VIRTIO_BLK_S_OK, "another write");
	start(&g, NULL);
	stop(&g);
	unsigned char back[5];
	image_read(disk_image(g.disk), 512, back, 5);
	is_s((char *)back, "ours", "is in the image, once that is asked for");
	close_guest(&g);
}

#define MARK 0x1234567812345678ULL

static void number_page(unsigned char *flash, uint64_t page, uint64_t number)
{
	uint64_t first[2] = { MARK, number }, second[2] = { ~MARK, number };

	memcpy(flash + page * 4096, first, sizeof(first));
	memcpy(flash + page * 4096 + 2048, second, sizeof(second));
}

/* Flash is a part of the memory: nothing is asked for, and what is stored there counts. */
static void test_flash(void)
{
	enum { FLASH_BYTES = 1 << 17 };
	struct guest g;
	struct trace t;
	struct err err = ERR_INIT;
	auto_image img = IMAGE_INIT;
	unsigned char back[6];

	open_guest_with(&g, FLASH_BYTES);
	is_i(vhost_disk_lay_out(g.disk, &err), -ENOMEM, "without memory there is no flash");
	err_clear(&err);
	set_up(&g);
	is_i(vhost_disk_find_flash(g.disk, MARK, &err), -EIO, "nor without numbers in it");
	err_clear(&err);
	for (uint64_t i = 0; i < FLASH_BYTES / 4096; i++)
		number_page(g.mem + DATA, i, i);
	number_page(g.mem + DATA, 3, 4);
	is_i(vhost_disk_find_flash(g.disk, MARK, &err), -EIO, "nor with one twice");
	ok(strstr(err.msg, "31 of 32 pages, 32 times"), "which is said: %s", err.msg);
	err_clear(&err);
	/* The pages need not lie in order. */
	number_page(g.mem + DATA, 3, 5);
	number_page(g.mem + DATA, 5, 3);
	is_i(vhost_disk_find_flash(g.disk, MARK, &err), 0, "it is found by its numbers %s",
	     err.msg);
	image_init(&img, FLASH_BYTES);
	image_write(&img, 512, "loaded", 7);
	image_write(&img, 3 * 4096, "third", 6);
	is_i(disk_load(g.disk, &img, &err), 0, "flash is loaded %s", err.msg);
	is_i(vhost_disk_lay_out(g.disk, &err), 0, "and laid out %s", err.msg);
	is_s((char *)g.mem + DATA + 512, "loaded", "where the guest sees it");
	is_s((char *)g.mem + DATA + 5 * 4096, "third", "page by page");
	g.mem[DATA + 5000] = 1;
	trace_init(&t);
	start(&g, &t);
	mark(&g, EV_OP_BEGIN, 0);
	auto_free char *unused = in_short(&t);
	is_s(unused, "b", "what is stored while it is not in use is nobody's");
	g.mem[DATA + 5000] = 0;
	disk_set_in_use(g.disk, true);
	mark(&g, EV_OP_BEGIN, 0);
	g.mem[DATA + 1024] = 1;
	g.mem[DATA + 8191] = 2;
	mark(&g, EV_OP_END, 0);
	mark(&g, EV_OP_BEGIN, 1);
	memcpy(g.mem + DATA + FLASH_BYTES - 6, "last", 5);
	disk_set_in_use(g.disk, false);
	g.mem[DATA] = 3;
	stop(&g);
	auto_free char *seen = in_short(&t);
	is_s(seen, "b b W1024.7168 C2 e b W130560.512 C6", "one write between two marks");
	is_u(t.events.v[2].flags, EV_FUA, "which is durable");
	image_read(disk_image(g.disk), FLASH_BYTES - 6, back, 5);
	is_s((char *)back, "last", "the image has what was stored last");
	trace_release(&t);
	disk_set_in_use(g.disk, true);
	memcpy(g.mem + DATA + FLASH_BYTES - 6, "gone", 5);
	vhost_disconnect(g.v);
	disk_set_in_use(g.disk, false);
	start(&g, NULL);
	stop(&g);
	image_read(disk_image(g.disk), FLASH_BYTES - 6, back, 5);
	is_s((char *)back, "gone", "also where the guest has died since");
	close_guest(&g);
}

static void test_log(void)
{
	struct guest g;
	uint64_t value = 0;

	open_guest(&g);
	tell(&g, 15, 0, NULL, 0, NULL, 0);
	is_i(answer(&g, 15, &value, sizeof(value)), 8, "the protocol is asked for");
	ok(!(value & 1 << 1) && !(g.v->features & 1 << 26), "there is no log");
	vhost_offer_log(g.v);
	tell(&g, 15, 0, NULL, 0, NULL, 0);
	is_i(answer(&g, 15, &value, sizeof(value)), 8, "it is asked for again");
	ok(value & 1 << 1 && g.v->features & 1 << 26, "there is, once it was offered");
	close_guest(&g);
}

static void test_return(void)
{
	struct guest g;
	uint32_t pair[2] = { 0, 0 };

	open_guest(&g);
	set_up(&g);
	request(&g, VIRTIO_BLK_T_FLUSH, 0, 0, 0);
	tell(&g, 11, 0, pair, sizeof(pair), NULL, 0);
	is_i(answer(&g, 11, pair, sizeof(pair)), 8, "a ring that is stopped");
	is_u(pair[1], 1, "says how far it came");
	unsigned char *status = put(&g, VIRTIO_BLK_T_FLUSH, 0, 0, 0);
	kick(&g);
	is_u(*status, 0xee, "and does no more");
	close(steal_fd(&g.conn));
	vhost_serve(g.v);
	ok(!vhost_connected(g.v) && !g.v->memory.n, "a front end that goes takes its memory along");
	connect_only(&g);
	memset(g.mem, 0, MEM_BYTES);
	g.next_desc = g.avail = g.seen = 0;
	set_up(&g);
	is_i(request(&g, VIRTIO_BLK_T_FLUSH, 0, 0, 0), VIRTIO_BLK_S_OK, "the next one is served");
	close_guest(&g);
}

/* ---- what must be refused ---- */

static void test_bad_requests(void)
{
	static const struct {
		uint32_t type;
		uint64_t sector;
		uint32_t len;
		int status;
		const char *what;
	} bad[] = {
		{ VIRTIO_BLK_T_OUT, 0, 100, VIRTIO_BLK_S_IOERR, "half a sector" },
		{ VIRTIO_BLK_T_OUT, 0, 0, VIRTIO_BLK_S_IOERR, "a write of nothing" },
		{ VIRTIO_BLK_T_IN, 2047, 1024, VIRTIO_BLK_S_IOERR, "a read over the end" },
		{ VIRTIO_BLK_T_OUT, 2048, 512, VIRTIO_BLK_S_IOERR, "a write behind the end" },
		{ VIRTIO_BLK_T_OUT, UINT64_MAX, 512, VIRTIO_BLK_S_IOERR, "a sector that is none" },
		{ VIRTIO_BLK_T_OUT, 1ULL << 55, 512, VIRTIO_BLK_S_IOERR, "one that wraps around" },
		{ VIRTIO_BLK_T_DISCARD, 0, 15, VIRTIO_BLK_S_IOERR, "a range of 15 bytes" },
		{ VIRTIO_BLK_T_DISCARD, 0, 17 * 16, VIRTIO_BLK_S_IOERR, "too many ranges" },
		{ 77, 0, 512, VIRTIO_BLK_S_UNSUPP, "a type that is not known" },
	};
	struct guest g;
	auto_trace t;

	trace_init(&t);
	open_guest(&g);
	set_up(&g);
	start(&g, &t);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		memset(g.mem + DATA, 0xff, 1024);
		is_i(request(&g, bad[i].type, bad[i].sector, DATA, bad[i].len), bad[i].status,
		     "%s is refused", bad[i].what);
	}
	struct virtio_blk_discard_write_zeroes range = { .sector = 1,
							 .num_sectors = 1,
							 .flags = 8 };
	memcpy(g.mem + DATA, &range, sizeof(range));
	is_i(request(&g, VIRTIO_BLK_T_WRITE_ZEROES, 0, DATA, sizeof(range)), VIRTIO_BLK_S_UNSUPP,
	     "zeros with a flag that is not known");
	is_i(request(&g, VIRTIO_BLK_T_OUT, 0, DATA, 512), VIRTIO_BLK_S_OK,
	     "and the disk still works");
	stop(&g);
	is_u(t.events.n, 2, "what was refused is not in the record");
	close_guest(&g);
}

/* Each of them would be a way out of the guest. */
static void test_bad_rings(void)
{
	static const char *const what[] = {
		"a descriptor that is not in the ring",
		"a chain without an end",
		"an address outside of memory",
		"a length over the end of memory",
		"an address that wraps around",
		"an indirect table",
		"more requests than the ring holds",
		"parts in the wrong order",
		"a request without a place for its status",
		"a head of 8 bytes",
		"a next that is not in the ring",
	};

	for (size_t i = 0; i < ARRAY_SIZE(what); i++) {
		struct guest g;
		struct err err = ERR_INIT;
		auto_trace t;
		uint16_t head = 0;

		trace_init(&t);
		open_guest(&g);
		set_up(&g);
		start(&g, &t);
		put(&g, VIRTIO_BLK_T_OUT, 0, DATA, 512);
		switch (i) {
		case 0:
			((struct vring_avail *)(g.mem + AVAIL))->ring[0] = NUM;
			break;
		case 1:
			desc(&g, 1)->next = 1;
			break;
		case 2:
			desc(&g, 1)->addr = GUEST + MEM_BYTES;
			break;
		case 3:
			desc(&g, 1)->len = MEM_BYTES;
			break;
		case 4:
			desc(&g, 1)->addr = UINT64_MAX - 100;
			break;
		case 5:
			desc(&g, 1)->flags |= VRING_DESC_F_INDIRECT;
			break;
		case 6:
			((struct vring_avail *)(g.mem + AVAIL))->idx = NUM + 1;
			break;
		case 7:
			desc(&g, 0)->flags |= VRING_DESC_F_WRITE;
			break;
		case 8:
			desc(&g, 1)->flags = 0;
			break;
		case 9:
			desc(&g, 0)->len = 8;
			desc(&g, 1)->len = 0;
			break;
		case 10:
			desc(&g, 1)->next = 0xffff;
			break;
		}
		kick(&g);
		ok(disk_stop(g.disk, &err) < 0 && strstr(err.msg, "the guest's disk"), "%s: %s",
		   what[i], err.msg);
		is_u(((struct vring_used *)(g.mem + USED))->idx, 0, "nothing is done");
		/* What comes later is not looked at, either. */
		head = add_desc(&g, GUEST, 16, 0);
		offer(&g, head);
		kick(&g);
		is_u(((struct vring_used *)(g.mem + USED))->idx, 0, "and nothing more");
		close_guest(&g);
	}
}

static void expect_end(struct guest *g, const char *what)
{
	ok(!vhost_connected(g->v), "%s ends the connection", what);
	close_guest(g);
}

static void test_bad_messages(void)
{
	struct guest g;
	uint32_t head[3] = { 1, 1, 1 << 20 };
	struct {
		uint32_t n, pad;
		uint64_t region[4 * 2];
	} table = { 2, 0, { GUEST, 4096, USER, 0, GUEST + 4096, 4096, USER + 4096, 0 } };

	open_guest(&g);
	if (send(g.conn, head, sizeof(head), 0) < 0)
		abort();
	vhost_serve(g.v);
	expect_end(&g, "a message of a megabyte");

	open_guest(&g);
	head[1] = 2;
	head[2] = 0;
	if (send(g.conn, head, sizeof(head), 0) < 0)
		abort();
	vhost_serve(g.v);
	expect_end(&g, "another version");

	open_guest(&g);
	set_number(&g, 99, 0);
	expect_end(&g, "a request that is not known");

	open_guest(&g);
	set_number(&g, 2, 1ULL << 40);
	expect_end(&g, "a feature that was not offered");

	open_guest(&g);
	set_memory(&g, MEM_BYTES + 1);
	expect_end(&g, "more memory than the file has");

	open_guest(&g);
	tell(&g, 5, 0, &table, sizeof(table), &g.memfd, 1);
	expect_end(&g, "a region without a file");

	open_guest(&g);
	table.n = 200;
	tell(&g, 5, 0, &table, sizeof(table), &g.memfd, 1);
	expect_end(&g, "more regions than the message has");

	open_guest(&g);
	set_pair(&g, 8, 0, 3);
	expect_end(&g, "a ring of three");

	open_guest(&g);
	set_pair(&g, 8, 1, 16);
	expect_end(&g, "a ring that is not there");

	open_guest(&g);
	set_memory(&g, MEM_BYTES);
	set_pair(&g, 8, 0, NUM);
	set_addresses(&g, USER + DESC + 8, USER + AVAIL, USER + USED);
	expect_end(&g, "a ring that is not aligned");

	open_guest(&g);
	set_memory(&g, MEM_BYTES);
	set_pair(&g, 8, 0, NUM);
	set_addresses(&g, USER + DESC, USER + MEM_BYTES - 2, USER + USED);
	expect_end(&g, "a ring that is half in memory");

	open_guest(&g);
	set_number(&g, 12, 0);
	expect_end(&g, "a kick without a descriptor");

	open_guest(&g);
	set_up(&g);
	set_pair(&g, 8, 0, 512);
	expect_end(&g, "a ring that grows while it is used");

	auto_fd zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	open_guest(&g);
	set_fd(&g, 12, zero);
	expect_end(&g, "a kick that never ends");

	open_guest(&g);
	set_fd(&g, 12, g.memfd);
	expect_end(&g, "a kick that is a file");
}

/* Pipes may wake us, too; when nobody is left at the other end, nobody will. */
static void test_kick_ends(void)
{
	struct guest g;
	int fds[2];

	open_guest(&g);
	set_up(&g);
	if (pipe2(fds, O_CLOEXEC) < 0)
		abort();
	set_fd(&g, 12, fds[0]);
	unsigned char *status = put(&g, VIRTIO_BLK_T_FLUSH, 0, 0, 0);
	if (write(fds[1], "1", 1) != 1)
		abort();
	vhost_serve(g.v);
	is_u(*status, VIRTIO_BLK_S_OK, "a pipe wakes us");
	close(fds[1]);
	vhost_serve(g.v);
	ok(g.v->queue[0].ring.broken, "until it is at its end: %s", g.v->why);
	struct pollfd wait[VHOST_POLL_MAX];
	is_u(vhost_poll(g.v, wait), 1, "and then it is not waited for");
	close(fds[0]);
	close_guest(&g);
}

static void test_stays_broken(void)
{
	struct guest g;
	struct err err = ERR_INIT;
	uint32_t pair[2] = { 0, 0 };

	open_guest(&g);
	set_up(&g);
	start(&g, NULL);
	put(&g, VIRTIO_BLK_T_OUT, 0, DATA, 512);
	desc(&g, 1)->addr = GUEST + MEM_BYTES;
	kick(&g);
	ok(g.v->queue[0].ring.broken, "a ring breaks");
	set_memory(&g, MEM_BYTES);
	ok(g.v->queue[0].ring.broken, "memory that is laid out anew does not mend it");
	set_addresses(&g, USER + DESC, USER + AVAIL, USER + USED);
	ok(g.v->queue[0].ring.broken, "nor does another place");
	tell(&g, 11, 0, pair, sizeof(pair), NULL, 0);
	ok(g.v->queue[0].ring.broken, "nor that it is stopped");
	ok(disk_stop(g.disk, &err) < 0, "and the record is not whole: %s", err.msg);
	close_guest(&g);
}

static void test_memory_shrinks(void)
{
	struct guest g;
	struct err err = ERR_INIT;
	auto_trace t;

	trace_init(&t);
	open_guest(&g);
	set_up(&g);
	start(&g, &t);
	put(&g, VIRTIO_BLK_T_OUT, 0, DATA, 512);
	if (ftruncate(g.memfd, DATA) < 0)
		abort();
	kick(&g);
	ok(g.v->queue[0].ring.broken, "memory that a request lies in goes away: %s", g.v->why);
	if (ftruncate(g.memfd, 0) < 0)
		abort();
	vhost_serve(g.v);
	ok(disk_stop(g.disk, &err) < 0 && strstr(err.msg, "memory is gone"), "all of it: %s",
	   err.msg);
	close_guest(&g);

	open_guest(&g);
	set_memory(&g, MEM_BYTES);
	set_pair(&g, 8, 0, NUM);
	if (ftruncate(g.memfd, 0) < 0)
		abort();
	set_addresses(&g, USER + DESC, USER + AVAIL, USER + USED);
	expect_end(&g, "a ring in memory that is gone");
}

/* Byte by byte, as a slow front end may send it. */
static void test_slowly(void)
{
	struct guest g;
	uint32_t head[3] = { 1, 1, 0 };
	uint64_t features = 0;

	open_guest(&g);
	for (size_t i = 0; i < sizeof(head); i++) {
		if (send(g.conn, (char *)head + i, 1, 0) < 0)
			abort();
		vhost_serve(g.v);
	}
	is_i(answer(&g, 1, &features, 8), 8, "a message may come byte by byte");
	close_guest(&g);
}

/* ---- the mailbox ---- */

enum { MAIL_SIZE = 1 << 20, MAIL_IN = 64 << 10, MAIL_OUT = 512 << 10, MAIL_MAX = 64 << 10 };

static void open_mail(struct guest *g, struct vhost_mail *m)
{
	*g = (struct guest){ .conn = -1 };
	g->memfd = memfd_create("guest", MFD_CLOEXEC);
	if (ftruncate(g->memfd, MEM_BYTES) < 0)
		abort();
	g->mem = mmap(NULL, MEM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, g->memfd, 0);
	g->kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	g->call = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	vhost_mail_init(m, "a-mailbox", MAIL_SIZE, MAIL_IN, MAIL_OUT, MAIL_MAX);
	g->v = &m->device;
	connect_only(g);
	set_up(g);
}

/* A machine is stopped and goes on, or its memory is laid out anew, while its program waits. */
static void test_moved_mail(struct guest *g, struct vhost_mail *m)
{
	uint32_t pair[2] = { 0, 0 };
	unsigned taken = m->device.queue[0].ring.next;

	given_back(g);
	set_memory(g, MEM_BYTES);
	vhost_serve(g->v);
	ok(m->waiting && !given_back(g), "who waits does so in memory that has moved");
	tell(g, 11, 0, pair, sizeof(pair), NULL, 0);
	is_i(answer(g, 11, pair, sizeof(pair)), 8, "the ring is stopped");
	is_u(pair[1], taken - 1, "before what was not answered");
	ok(!m->waiting, "nobody waits");
	set_pair(g, 8, 0, NUM);
	set_pair(g, 10, 0, pair[1]);
	set_addresses(g, USER + DESC, USER + AVAIL, USER + USED);
	set_fd(g, 13, g->call);
	set_fd(g, 12, g->kick);
	set_pair(g, 18, 0, 1);
	vhost_mail_send(m, "moved", 6);
	ok(given_back(g) == 1 && !m->waiting, "who went on elsewhere is answered, once");
	is_s((char *)g->mem + DATA, "moved", "with what was sent");
}

static void test_mail(void)
{
	struct guest g;
	struct vhost_mail m;
	unsigned char *status;

	open_mail(&g, &m);
	memset(g.mem + DATA, 'x', 512);
	is_i(request(&g, VIRTIO_BLK_T_IN, 0, DATA, 512), VIRTIO_BLK_S_OK, "its beginning is read");
	ok(!g.mem[DATA] && !g.mem[DATA + 511], "and is zero: there is no partition table");
	is_i(request(&g, VIRTIO_BLK_T_GET_ID, 0, DATA, 20), VIRTIO_BLK_S_OK, "it has a name");
	is_s((char *)g.mem + DATA, "a-mailbox", "which is the one it was given");
	given_back(&g);
	was_woken(&g);

	status = put(&g, VIRTIO_BLK_T_IN, MAIL_IN / 512, DATA, 512);
	kick(&g);
	ok(*status == 0xee && !given_back(&g) && !was_woken(&g), "who reads the mail waits");
	is_i(request(&g, VIRTIO_BLK_T_IN, MAIL_IN / 512, DATA + 1024, 512), VIRTIO_BLK_S_IOERR,
	     "but not twice");
	vhost_mail_send(&m, "hello", 6);
	ok(*status == VIRTIO_BLK_S_OK && was_woken(&g), "until there is some");
	is_s((char *)g.mem + DATA, "hello", "which is then there");
	ok(!g.mem[DATA + 6] && !g.mem[DATA + 511], "and nothing behind it");

	vhost_mail_send(&m, "before", 7);
	is_i(request(&g, VIRTIO_BLK_T_IN, MAIL_IN / 512, DATA, 512), VIRTIO_BLK_S_OK,
	     "what is there already is read at once");
	is_s((char *)g.mem + DATA, "before", "as it was sent");
	status = put(&g, VIRTIO_BLK_T_IN, MAIL_IN / 512, DATA, 512);
	kick(&g);
	is_u(*status, 0xee, "and is read once");

	/* A message longer than what was asked for. */
	unsigned char text[1024];
	memset(text, 'l', sizeof(text));
	vhost_mail_send(&m, text, sizeof(text));
	is_u(*status, VIRTIO_BLK_S_OK, "a long message begins");
	is_i(request(&g, VIRTIO_BLK_T_IN, MAIL_IN / 512 + 1, DATA + 512, 1024), VIRTIO_BLK_S_OK,
	     "and goes on behind");
	ok(g.mem[DATA] == 'l' && g.mem[DATA + 1023] == 'l' && !g.mem[DATA + 1024], "to its end");

	memcpy(g.mem + DATA, "answer", 7);
	is_i(request(&g, VIRTIO_BLK_T_OUT, MAIL_OUT / 512 + 1, DATA, 512), VIRTIO_BLK_S_OK,
	     "an answer may come in parts");
	is_u(m.got, 0, "of which none counts before the first is there");
	is_i(request(&g, VIRTIO_BLK_T_OUT, MAIL_OUT / 512 + 1, DATA, 512), VIRTIO_BLK_S_OK,
	     "and twice");
	is_u(m.got, 0, "which does not make it more");
	is_i(request(&g, VIRTIO_BLK_T_OUT, MAIL_OUT / 512, DATA, 512), VIRTIO_BLK_S_OK,
	     "in any order");
	is_u(m.got, 1024, "which are counted");
	ok(m.from_guest.n == 1024 && streq((char *)m.from_guest.v + 512, "answer"), "and kept");
	vhost_mail_clear(&m);
	is_u(m.got, 0, "until they are not wanted any more");
	is_i(request(&g, VIRTIO_BLK_T_OUT, 0, DATA, 512), VIRTIO_BLK_S_IOERR,
	     "elsewhere nothing can be written");
	is_i(request(&g, VIRTIO_BLK_T_OUT, (MAIL_OUT + MAIL_MAX) / 512, DATA, 512),
	     VIRTIO_BLK_S_IOERR, "nor more than a message may have");
	is_i(request(&g, VIRTIO_BLK_T_DISCARD, 0, DATA, 16), VIRTIO_BLK_S_UNSUPP,
	     "and it is no disk");
	put(&g, VIRTIO_BLK_T_IN, MAIL_IN / 512, DATA, 512);
	kick(&g);
	ok(m.waiting, "somebody waits");
	test_moved_mail(&g, &m);
	put(&g, VIRTIO_BLK_T_IN, MAIL_IN / 512, DATA, 512);
	kick(&g);
	ok(m.waiting, "somebody waits again");
	vhost_disconnect(g.v);
	vhost_mail_send(&m, "late", 5);
	ok(!m.waiting, "who is gone waits no more, and is not written to");
	vhost_mail_release(&m);
	munmap(g.mem, MEM_BYTES);
	close(g.memfd);
	close(g.kick);
	close(g.call);
	close(g.conn);
}

static void test_mail_shrinks(void)
{
	struct guest g;
	struct vhost_mail m;

	open_mail(&g, &m);
	put(&g, VIRTIO_BLK_T_IN, MAIL_IN / 512, DATA, 512);
	kick(&g);
	ok(m.waiting, "somebody waits for mail");
	if (ftruncate(g.memfd, DATA) < 0)
		abort();
	vhost_mail_send(&m, "hello", 6);
	ok(g.v->queue[0].ring.broken, "who has no memory gets none: %s", g.v->why);
	vhost_mail_release(&m);
	munmap(g.mem, MEM_BYTES);
	close(g.memfd);
	close(g.kick);
	close(g.call);
	close(g.conn);
}

/* Who looks after what was left finds the socket's folder by its owner. */
static void test_place(void)
{
	struct vhost_mail m;
	struct err err = ERR_INIT;
	char dir[] = "/tmp/test-XXXXXX", lower[200];

	if (!mkdtemp(dir))
		abort();
	vhost_mail_init(&m, "x", MAIL_SIZE, MAIL_IN, MAIL_OUT, MAIL_MAX);
	setenv("TMPDIR", dir, 1);
	is_i(vhost_listen(&m.device, &err), 0, "a socket in $TMPDIR %s", err.msg);
	snprintf(lower, sizeof(lower), "/proc/self/fd/%d", m.device.place);
	char link[200] = "";
	ok(readlink(lower, link, sizeof(link) - 1) > 0 && strncmp(link, dir, strlen(dir)) == 0 &&
		   strstr(link, "/outage-vhost-"),
	   "is there: %s", link);
	is_i(rmdir(dir), 0, "and leaves nothing");
	memset(lower, 'x', sizeof(lower) - 1);
	lower[0] = '/';
	lower[sizeof(lower) - 1] = '\0';
	setenv("TMPDIR", lower, 1);
	is_i(vhost_listen(&m.device, &err), 0, "a name that is too long is not taken %s", err.msg);
	unsetenv("TMPDIR");
	vhost_mail_release(&m);
}

static unsigned descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

int main(void)
{
	unsigned before = descriptors();

	test_handshake();
	test_requests();
	test_order();
	test_marks();
	test_load();
	test_return();
	test_flash();
	test_log();
	test_slowly();
	test_bad_requests();
	test_bad_rings();
	test_bad_messages();
	test_kick_ends();
	test_stays_broken();
	test_memory_shrinks();
	test_mail();
	test_mail_shrinks();
	test_place();
	is_u(descriptors(), before, "no descriptor is left open");
	return done_testing();
}
