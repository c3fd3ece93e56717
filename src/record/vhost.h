/* SPDX-License-Identifier: MIT */
/*
 * vhost.h - a device for a guest, served from this process: the back end of the vhost-user
 * protocol, as spoken by user-mode Linux (virtio_uml) and QEMU.
 *
 * The front end connects to a socket of ours, hands over the guest's memory as files to map, and
 * for each virtqueue one descriptor to be woken by and one to wake the guest with. From then on
 * requests need no message.
 *
 * The device has no thread. A caller that waits, for an answer of the guest, say, polls the
 * descriptors of the device as well, and calls vhost_serve(). So it is known when requests are
 * taken from the guest: a call takes all that the guest has handed over before it.
 *
 * V1: a message from the front end is checked before it has any effect; a wrong or unknown message
 *     ends the connection.
 * V2: without a connection the device has no memory, no ring and no request.
 */
#ifndef RECORD_VHOST_H
#define RECORD_VHOST_H

#include <poll.h>

#include "base/err.h"
#include "record/vhost_ring.h"

enum {
	VHOST_QUEUES = 1,
	VHOST_POLL_MAX = 1 + VHOST_QUEUES,
	VHOST_CONFIG_MAX = 256,
	VHOST_MESSAGE_MAX = 12 + 12 + VHOST_CONFIG_MAX + 64, /* the largest one that we accept */
	VHOST_FDS_MAX = VHOST_REGIONS_MAX,
};

struct vhost;

struct vhost_ops {
	/*
	 * Takes all requests, but at most as many as the ring has room for, and answers those that
	 * it can. The guest's memory may disappear meanwhile (vhost_guard.h).
	 */
	void (*serve)(struct vhost *v, unsigned queue);
	/*
	 * Called before the memory is unmapped: requests that were taken and not answered can no
	 * longer be answered.
	 */
	void (*forget)(struct vhost *v);
};

struct vhost_queue {
	struct vhost_ring ring;
	uint64_t desc, avail, used; /* addresses in the front end */
	bool placed;		    /* the addresses were given */
	bool enabled;
	int kick, call; /* -1: none */
	bool more;	/* further requests are there, for which no wake-up comes */
};

struct vhost {
	const struct vhost_ops *ops;
	uint64_t features; /* features of the device that we offer */
	uint64_t acked;	   /* and those that the guest accepted */
	unsigned char config[VHOST_CONFIG_MAX];
	size_t config_len;

	int listener; /* -1 after the first connection */
	int place;    /* O_PATH descriptor of the socket, which has no name */
	int conn;     /* -1: not connected */
	int back;     /* for requests of ours; unused */
	uint64_t protocol;
	struct vhost_memory memory;
	struct vhost_queue queue[VHOST_QUEUES];

	/* The message that is being received. */
	unsigned char message[VHOST_MESSAGE_MAX];
	size_t got;
	int fds[VHOST_FDS_MAX];
	unsigned n_fds;
	char why[128]; /* the reason why the last connection was ended, or "" */
};

void vhost_init(struct vhost *v, const struct vhost_ops *ops);
void vhost_release(struct vhost *v);
/*
 * Offers to log writes to the guest's memory: only then does QEMU save the state of a machine. The
 * log is not implemented, and QEMU asks for it only while devices run: stop the machine first.
 */
void vhost_offer_log(struct vhost *v);

/*
 * Waits for a front end, which connects to /proc/PID/fd/N of the process that has the descriptor
 * v->place as N. The socket itself has no name, so no file is left behind.
 */
int vhost_listen(struct vhost *v, struct err *err) must_check;
bool vhost_connected(const struct vhost *v);
void vhost_disconnect(struct vhost *v);

/* True if there is work already, so that the caller should not wait. */
bool vhost_has_more(const struct vhost *v);
/* Gives the descriptors to poll; returns their number. */
unsigned vhost_poll(const struct vhost *v, struct pollfd out[VHOST_POLL_MAX]);
/* Handles messages and requests, without waiting. */
void vhost_serve(struct vhost *v);
/* Takes requests, and does not read messages. */
void vhost_take(struct vhost *v);

/*
 * For the serve function: gives the next request, at most as many in one call as the ring holds, so
 * that a guest which always has one more does not keep us for ever. `taken` counts them, from 0.
 */
bool vhost_next(struct vhost *v, unsigned queue, struct vhost_chain *out, uint32_t *taken);
/* Gives a request back; after the last one, wakes the guest. */
void vhost_done(struct vhost *v, unsigned queue, uint16_t head, uint32_t written);
void vhost_wake(struct vhost *v, unsigned queue);
/* Marks a queue as broken by a wrong request: no more requests are taken from it. */
void vhost_break(struct vhost *v, unsigned queue, const char *why);

/* For tests and fuzzing: handles one whole message; takes ownership of its descriptors. */
int vhost_message(struct vhost *v, const unsigned char *message, size_t len, const int *fds,
		  unsigned n_fds);

#endif
