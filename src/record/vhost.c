/* SPDX-License-Identifier: MIT */
/*
 * vhost.c - answers the messages of a front end, QEMU or user-mode Linux; the requests to a disk
 * come through a ring of memory, not by messages (vhost_ring.h).
 *
 * A message is request, flags and length of the payload, 32 bits each and in the byte order of the
 * machine, then the payload; descriptors come beside it. The protocol is documented with QEMU, in
 * its "vhost-user" interface document; numbers below are from there.
 */
#include "record/vhost.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd_path.h"
#include "base/owner.h"
#include "base/vec.h"
#include "record/vhost_guard.h"

enum request {
	GET_FEATURES = 1,
	SET_FEATURES = 2,
	SET_OWNER = 3,
	RESET_OWNER = 4,
	SET_MEM_TABLE = 5,
	SET_VRING_NUM = 8,
	SET_VRING_ADDR = 9,
	SET_VRING_BASE = 10,
	GET_VRING_BASE = 11,
	SET_VRING_KICK = 12,
	SET_VRING_CALL = 13,
	SET_VRING_ERR = 14,
	GET_PROTOCOL_FEATURES = 15,
	SET_PROTOCOL_FEATURES = 16,
	GET_QUEUE_NUM = 17,
	SET_VRING_ENABLE = 18,
	SET_BACK_REQ_FD = 21,
	GET_CONFIG = 24,
	SET_CONFIG = 25,
};

enum { PLACE_MAX = sizeof(((struct sockaddr_un *)0)->sun_path) - 2 }; /* with "/s" behind it */
enum { HEAD_BYTES = 12, VERSION = 1, VERSION_MASK = 3, IS_REPLY = 4, WANTS_REPLY = 8 };
/* Features of the protocol: acknowledgements, requests of ours, the device's configuration. */
enum { P_LOG = 1, P_REPLY_ACK = 3, P_BACK_REQ = 5, P_CONFIG = 9 };
enum { PROTOCOL = 1 << P_REPLY_ACK | 1 << P_BACK_REQ | 1 << P_CONFIG };
#define F_PROTOCOL (1ULL << 30)
#define F_LOG	   (1ULL << 26)
#define NO_FD	   0x100

struct region_words {
	uint64_t guest, size, user, offset;
};

struct addr_words {
	uint32_t index, flags;
	uint64_t desc, used, avail, log;
};

struct state_words {
	uint32_t index, num;
};

struct config_words {
	uint32_t offset, size, flags;
};

/* A message that is complete. */
struct front_message {
	uint32_t request, flags, size;
	const unsigned char *payload;
	const int *fds;
	unsigned n_fds;
	unsigned taken; /* so many descriptors no longer belong to the message */
};

/* ---- life ---- */

void vhost_init(struct vhost *v, const struct vhost_ops *ops)
{
	*v = (struct vhost){ .ops = ops, .listener = -1, .place = -1, .conn = -1, .back = -1 };
	for (unsigned i = 0; i < VHOST_QUEUES; i++)
		v->queue[i].kick = v->queue[i].call = -1;
}

bool vhost_connected(const struct vhost *v)
{
	return v->conn >= 0;
}

static void drop_fds(struct vhost *v)
{
	for (unsigned i = 0; i < v->n_fds; i++)
		util_close(v->fds[i]);
	v->n_fds = 0;
}

void vhost_offer_log(struct vhost *v)
{
	v->features |= F_LOG;
}

void vhost_disconnect(struct vhost *v)
{
	v->ops->forget(v);
	for (unsigned i = 0; i < VHOST_QUEUES; i++) {
		util_close(v->queue[i].kick);
		util_close(v->queue[i].call);
		v->queue[i] = (struct vhost_queue){ .kick = -1, .call = -1 };
	}
	vhost_memory_release(&v->memory);
	drop_fds(v);
	v->got = 0;
	v->acked = v->protocol = 0;
	util_close(steal_fd(&v->back));
	util_close(steal_fd(&v->conn));
}

void vhost_release(struct vhost *v)
{
	vhost_disconnect(v);
	util_close(steal_fd(&v->listener));
	util_close(steal_fd(&v->place));
}

/*
 * Chooses the directory in which a socket has a name for a moment: in $TMPDIR, unless that path is
 * too long. The directory's name contains the owner, for the search for leftovers of killed runs.
 */
static void choose_place(char dir[PLACE_MAX])
{
	const char *tmp = getenv("TMPDIR");
	char owner[OWNER_NAME_SIZE];

	owner_name("vhost", owner);
	if (!tmp || *tmp != '/' ||
	    snprintf(dir, PLACE_MAX, "%s/%s.XXXXXX", tmp, owner) >= PLACE_MAX)
		snprintf(dir, PLACE_MAX, "/tmp/%.80s.XXXXXX", owner);
}

/* Binds to a name in a directory that no other user can enter, and takes the name away again. */
static int bind_nameless(int fd, int *at_fd)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	char dir[PLACE_MAX];
	int rc = 0;

	choose_place(dir);
	if (!mkdtemp(dir))
		return -errno;
	snprintf(at.sun_path, sizeof(at.sun_path), "%s/s", dir);
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		rc = -errno;
	*at_fd = rc ? -1 : open(at.sun_path, O_PATH | O_CLOEXEC);
	if (!rc && *at_fd < 0)
		rc = -errno;
	unlink(at.sun_path);
	rmdir(dir);
	return rc;
}

int vhost_listen(struct vhost *v, struct err *err)
{
	util_close(steal_fd(&v->listener));
	util_close(steal_fd(&v->place));
	v->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int rc = v->listener < 0 ? -errno : bind_nameless(v->listener, &v->place);

	if (!rc && listen(v->listener, 1) < 0)
		rc = -errno;
	return rc ? err_set(err, rc, "cannot make a socket for a guest in $TMPDIR or /tmp: %s",
			    strerror(-rc))
		  : 0;
}

/* ---- rings ---- */

static bool is_running(const struct vhost_queue *q)
{
	return q->enabled && q->placed && q->kick >= 0;
}

void vhost_done(struct vhost *v, unsigned queue, uint16_t head, uint32_t written)
{
	vhost_ring_push(&v->queue[queue].ring, head, written);
}

void vhost_wake(struct vhost *v, unsigned queue)
{
	struct vhost_queue *q = &v->queue[queue];
	uint64_t one = 1;

	if (q->call >= 0 && vhost_ring_wants_call(&q->ring) &&
	    write(q->call, &one, sizeof(one)) < 0 && errno != EAGAIN)
		snprintf(v->why, sizeof(v->why), "the guest cannot be woken");
}

void vhost_break(struct vhost *v, unsigned queue, const char *why)
{
	v->queue[queue].ring.broken = true;
	snprintf(v->why, sizeof(v->why), "%s", why);
}

bool vhost_next(struct vhost *v, unsigned queue, struct vhost_chain *out, uint32_t *taken)
{
	struct vhost_queue *q = &v->queue[queue];

	q->more = *taken >= q->ring.num;
	if (q->more || vhost_ring_pop(&q->ring, &v->memory, out) != 1)
		return false;
	++*taken;
	return true;
}

bool vhost_has_more(const struct vhost *v)
{
	return any_of(i, VHOST_QUEUES, v->queue[i].more && !v->queue[i].ring.broken);
}

struct serving {
	struct vhost *v;
	unsigned queue;
};

static void serve_queue(void *ctx)
{
	const struct serving *s = ctx;

	s->v->ops->serve(s->v, s->queue);
}

void vhost_take(struct vhost *v)
{
	for (unsigned i = 0; i < VHOST_QUEUES; i++) {
		struct serving s = { v, i };

		if (!is_running(&v->queue[i]) || v->queue[i].ring.broken ||
		    vhost_guard(&v->memory, serve_queue, &s))
			continue;
		vhost_break(v, i, "the guest's memory is gone");
		v->ops->forget(v);
	}
}

/* ---- messages ---- */

static int reply(struct vhost *v, uint32_t request, const void *payload, uint32_t size)
{
	unsigned char text[VHOST_MESSAGE_MAX];
	uint32_t head[3] = { request, VERSION | IS_REPLY, size };

	assert(size <= sizeof(text) - HEAD_BYTES);
	memcpy(text, head, sizeof(head));
	memcpy(text + HEAD_BYTES, payload, size);
	if (v->conn < 0)
		return 0;
	size_t all = (size_t)HEAD_BYTES + size;
	ssize_t n = send(v->conn, text, all, MSG_NOSIGNAL | MSG_DONTWAIT);
	return n == (ssize_t)all ? 0 : -EPIPE;
}

static int reply_number(struct vhost *v, const struct front_message *m, uint64_t number)
{
	return reply(v, m->request, &number, sizeof(number));
}

/* Reads a payload of exactly that size. */
static int words(const struct front_message *m, void *out, size_t size)
{
	if (m->size != size)
		return -EINVAL;
	memcpy(out, m->payload, size);
	return 0;
}

struct placing {
	struct vhost *v;
	struct vhost_queue *q;
	int rc;
};

static void place(void *ctx)
{
	struct placing *p = ctx;

	p->rc = vhost_ring_place(&p->q->ring, &p->v->memory, p->q->desc, p->q->avail, p->q->used);
}

static int replace_ring(struct vhost *v, struct vhost_queue *q)
{
	struct placing p = { v, q, 0 };

	return vhost_guard(&v->memory, place, &p) ? p.rc : -EFAULT;
}

static int set_memory(struct vhost *v, const struct front_message *m)
{
	struct vhost_memory fresh = { 0 };
	uint32_t n;
	int rc = 0;

	if (m->size < 8)
		return -EINVAL;
	memcpy(&n, m->payload, sizeof(n));
	if (n > VHOST_REGIONS_MAX || n != m->n_fds || m->size < 8 + n * sizeof(struct region_words))
		return -EINVAL;
	for (uint32_t i = 0; i < n && !rc; i++) {
		struct region_words w;

		memcpy(&w, m->payload + 8 + i * sizeof(w), sizeof(w));
		rc = vhost_memory_add(&fresh, m->fds[i], w.guest, w.user, w.size, w.offset);
	}
	if (rc) {
		vhost_memory_release(&fresh);
		return rc;
	}
	v->ops->forget(v);
	vhost_memory_release(&v->memory);
	v->memory = fresh;
	for (unsigned i = 0; i < VHOST_QUEUES && !rc; i++)
		if (v->queue[i].placed)
			rc = replace_ring(v, &v->queue[i]);
	return rc;
}

static int set_state(struct vhost *v, const struct front_message *m)
{
	struct state_words s;

	if (words(m, &s, sizeof(s)) || s.index >= VHOST_QUEUES)
		return -EINVAL;
	struct vhost_queue *q = &v->queue[s.index];
	switch (m->request) {
	case SET_VRING_NUM:
		if (!vhost_ring_num_ok(s.num) || q->placed)
			return -EINVAL;
		q->ring.num = s.num;
		return 0;
	case SET_VRING_BASE:
		q->ring.next = (uint16_t)s.num;
		return 0;
	case SET_VRING_ENABLE:
		q->enabled = s.num != 0;
		return 0;
	}
	/* GET_VRING_BASE: stop the ring, and answer with its position. */
	v->ops->forget(v);
	s.num = q->ring.next;
	util_close(q->kick);
	util_close(q->call);
	*q = (struct vhost_queue){ .kick = -1, .call = -1, .ring.broken = q->ring.broken };
	return reply(v, m->request, &s, sizeof(s));
}

static int set_addr(struct vhost *v, const struct front_message *m)
{
	struct addr_words a;

	if (words(m, &a, sizeof(a)) || a.index >= VHOST_QUEUES)
		return -EINVAL;
	struct vhost_queue *q = &v->queue[a.index];
	q->desc = a.desc;
	q->avail = a.avail;
	q->used = a.used;
	int rc = replace_ring(v, q);
	q->placed = !rc;
	return rc;
}

/*
 * True if the descriptor can be polled, and is never at its end: any other would keep us busy for
 * ever.
 */
static bool is_waker(int fd)
{
	char what[64];
	ssize_t n = readlink(fd_path(fd).text, what, sizeof(what) - 1);

	what[max(n, (ssize_t)0)] = '\0';
	return streq(what, "anon_inode:[eventfd]") || strncmp(what, "pipe:", 5) == 0;
}

static int set_fd(struct vhost *v, struct front_message *m)
{
	uint64_t value;

	if (words(m, &value, sizeof(value)) || (value & 0xff) >= VHOST_QUEUES)
		return -EINVAL;
	struct vhost_queue *q = &v->queue[value & 0xff];
	bool none = value & NO_FD;
	/* A ring without a descriptor, which must be polled, is not supported. */
	if (none ? m->n_fds || m->request == SET_VRING_KICK : m->n_fds != 1)
		return -EINVAL;
	if (m->request == SET_VRING_KICK && !is_waker(m->fds[0]))
		return -EINVAL;
	if (m->request == SET_VRING_ERR)
		return 0;
	int *slot = m->request == SET_VRING_KICK ? &q->kick : &q->call;
	util_close(*slot);
	*slot = none ? -1 : m->fds[m->taken++];
	if (*slot >= 0)
		fcntl(*slot, F_SETFL, fcntl(*slot, F_GETFL) | O_NONBLOCK);
	/* If the front end does not know this feature, the queue is enabled at once. */
	if (!(v->acked & F_PROTOCOL))
		q->enabled = true;
	return 0;
}

static int get_config(struct vhost *v, const struct front_message *m)
{
	unsigned char text[sizeof(struct config_words) + VHOST_CONFIG_MAX];
	struct config_words c;

	if (m->size < sizeof(c) || m->size > sizeof(text))
		return -EINVAL;
	memcpy(&c, m->payload, sizeof(c));
	if (c.size != m->size - sizeof(c) || c.offset > VHOST_CONFIG_MAX ||
	    c.size > VHOST_CONFIG_MAX - c.offset)
		return -EINVAL;
	/* Fields that the device does not have are zero. */
	memcpy(text, &c, sizeof(c));
	memcpy(text + sizeof(c), v->config + c.offset, c.size);
	return reply(v, m->request, text, m->size);
}

static uint64_t offered_protocol(const struct vhost *v)
{
	return PROTOCOL | (v->features & F_LOG ? 1 << P_LOG : 0);
}

static int handle(struct vhost *v, struct front_message *m)
{
	uint64_t value;

	switch (m->request) {
	case GET_FEATURES:
		return reply_number(v, m, v->features | F_PROTOCOL);
	case SET_FEATURES:
		if (words(m, &value, sizeof(value)) || value & ~(v->features | F_PROTOCOL))
			return -EINVAL;
		v->acked = value;
		return 0;
	case GET_PROTOCOL_FEATURES:
		return reply_number(v, m, offered_protocol(v));
	case SET_PROTOCOL_FEATURES:
		if (words(m, &value, sizeof(value)) || value & ~offered_protocol(v))
			return -EINVAL;
		v->protocol = value;
		return 0;
	case GET_QUEUE_NUM:
		return reply_number(v, m, VHOST_QUEUES);
	case SET_OWNER:
	case RESET_OWNER:
	case SET_CONFIG: /* no field can be set */
		return 0;
	case SET_MEM_TABLE:
		return set_memory(v, m);
	case SET_VRING_NUM:
	case SET_VRING_BASE:
	case SET_VRING_ENABLE:
	case GET_VRING_BASE:
		return set_state(v, m);
	case SET_VRING_ADDR:
		return set_addr(v, m);
	case SET_VRING_KICK:
	case SET_VRING_CALL:
	case SET_VRING_ERR:
		return set_fd(v, m);
	case SET_BACK_REQ_FD:
		if (m->n_fds != 1)
			return -EINVAL;
		util_close(v->back);
		v->back = m->fds[m->taken++];
		return 0;
	case GET_CONFIG:
		return get_config(v, m);
	}
	return -EOPNOTSUPP;
}

static bool has_own_reply(uint32_t request)
{
	return request == GET_FEATURES || request == GET_PROTOCOL_FEATURES ||
	       request == GET_VRING_BASE || request == GET_QUEUE_NUM || request == GET_CONFIG;
}

int vhost_message(struct vhost *v, const unsigned char *message, size_t len, const int *fds,
		  unsigned n_fds)
{
	struct front_message m = { .payload = message + HEAD_BYTES, .fds = fds, .n_fds = n_fds };
	int rc = 0;

	assert(len >= HEAD_BYTES);
	memcpy(&m.request, message, 4);
	memcpy(&m.flags, message + 4, 4);
	memcpy(&m.size, message + 8, 4);
	if ((m.flags & VERSION_MASK) != VERSION || m.flags & IS_REPLY || m.size != len - HEAD_BYTES)
		rc = -EPROTO;
	else
		rc = handle(v, &m);
	/* A message uses at most the first descriptor. */
	for (unsigned i = m.taken; i < n_fds; i++)
		util_close(fds[i]);
	if (rc != -EPROTO && m.flags & WANTS_REPLY && v->protocol & 1 << P_REPLY_ACK &&
	    !has_own_reply(m.request)) {
		int told = reply_number(v, &m, rc != 0);

		rc = rc ? rc : told;
	}
	if (rc)
		snprintf(v->why, sizeof(v->why),
			 "message %u of the front end cannot be followed: %s", m.request,
			 strerror(-rc));
	return rc;
}

/* ---- the socket ---- */

static void take_fds(struct vhost *v, struct msghdr *h)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (v->n_fds < VHOST_FDS_MAX)
				v->fds[v->n_fds++] = fd;
			else
				util_close(fd);
		}
	}
}

/* Receives a message up to byte `want`. Returns 1 when all are there, 0 if not yet. */
static int receive(struct vhost *v, size_t want)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int) * VHOST_FDS_MAX)];
		struct cmsghdr aligned;
	} room;

	while (v->got < want) {
		struct iovec part = { v->message + v->got, want - v->got };
		struct msghdr h = { .msg_iov = &part,
				    .msg_iovlen = 1,
				    .msg_control = room.bytes,
				    .msg_controllen = sizeof(room) };
		ssize_t n = recvmsg(v->conn, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		take_fds(v, &h);
		if (n == 0)
			return -ECONNRESET;
		v->got += (size_t)n;
	}
	return 1;
}

/* Handles one message. Returns 1, or 0 if there is none. */
static int one_message(struct vhost *v)
{
	uint32_t size;
	int rc = receive(v, HEAD_BYTES);

	if (rc != 1)
		return rc;
	memcpy(&size, v->message + 8, sizeof(size));
	if (size > VHOST_MESSAGE_MAX - HEAD_BYTES) {
		snprintf(v->why, sizeof(v->why), "a message of %u bytes is too long", size);
		return -EMSGSIZE;
	}
	rc = receive(v, HEAD_BYTES + size);
	if (rc != 1)
		return rc;
	unsigned n = v->n_fds;
	v->got = 0;
	v->n_fds = 0;
	rc = vhost_message(v, v->message, HEAD_BYTES + size, v->fds, n);
	return rc ? rc : 1;
}

unsigned vhost_poll(const struct vhost *v, struct pollfd out[VHOST_POLL_MAX])
{
	unsigned n = 0;
	int socket = v->conn >= 0 ? v->conn : v->listener;

	if (socket >= 0)
		out[n++] = (struct pollfd){ socket, POLLIN, 0 };
	for (unsigned i = 0; i < VHOST_QUEUES; i++)
		if (is_running(&v->queue[i]) && !v->queue[i].ring.broken)
			out[n++] = (struct pollfd){ v->queue[i].kick, POLLIN, 0 };
	return n;
}

static void greet(struct vhost *v)
{
	v->conn = accept4(v->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (v->conn < 0)
		return;
	v->why[0] = '\0';
	util_close(steal_fd(&v->listener));
	util_close(steal_fd(&v->place));
}

void vhost_serve(struct vhost *v)
{
	int rc = 1;

	if (v->conn < 0 && v->listener >= 0)
		greet(v);
	while (v->conn >= 0 && rc == 1)
		rc = one_message(v);
	if (rc < 0)
		vhost_disconnect(v);
	for (unsigned i = 0; i < VHOST_QUEUES; i++) {
		uint64_t count;

		/* The wake-up is read before the ring is looked at, so that none is missed. */
		ssize_t n = is_running(&v->queue[i]) ? read(v->queue[i].kick, &count, sizeof(count))
						     : 1;
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			vhost_break(v, i, "the other end of the descriptor to be woken by is gone");
	}
	vhost_take(v);
}
