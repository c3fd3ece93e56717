/* SPDX-License-Identifier: MIT */
/*
 * vhost_mail.h - the mailbox, a disk of a guest that carries messages: a read at one place waits
 * until there is a message for the guest, and a write at another place is a message of the guest.
 * agent/wire.h has their form.
 *
 * Other places read as zeros, so that a kernel that looks for a partition table finds none.
 */
#ifndef RECORD_VHOST_MAIL_H
#define RECORD_VHOST_MAIL_H

#include "base/strbuf.h"
#include "base/vec.h"
#include "record/vhost.h"

struct vhost_mail {
	struct vhost device;
	const char *id;		 /* the guest's name for it */
	uint64_t size, in, out;	 /* of the disk; the places for reading and writing */
	uint64_t out_max;	 /* the longest message of the guest */
	struct strbuf to_guest;	 /* the current message to the guest */
	bool has_mail;		 /* there is an unread message */
	bool waiting;		 /* a read of the guest waits */
	struct vhost_chain wait; /* the request that waits */
	uint64_t wait_len;
	uint16_t wait_next; /* the ring's position after it was taken */
	unsigned char *wait_status;
	struct vec_of(unsigned char) from_guest;
	struct vec_of(unsigned char) written; /* for each sector of the message: did it come? */
	uint64_t got;			      /* bytes from its begin on without a gap */
	struct vhost_chain chain;
};

void vhost_mail_init(struct vhost_mail *m, const char *id, uint64_t size, uint64_t in, uint64_t out,
		     uint64_t out_max);
void vhost_mail_release(struct vhost_mail *m);
/* Sends a message; replaces an unread one. */
void vhost_mail_send(struct vhost_mail *m, const void *text, size_t len);
/* Forgets the guest's message: the next byte belongs to another one. */
void vhost_mail_clear(struct vhost_mail *m);

#endif
