/* SPDX-License-Identifier: MIT */
/*
 * vhost_mail.h - a disk of a guest that is no disk: a reader at one place waits until there is a
 * message, and a write at another place is one. agent/wire.h says what they hold.
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
	uint64_t size, in, out;	 /* of the disk; where the guest reads, and where it writes */
	uint64_t out_max;	 /* bytes of a message of the guest */
	struct strbuf to_guest;	 /* the message that is or will be read */
	bool has_mail;		 /* a message that is not being read yet */
	bool waiting;		 /* the guest reads, and there is none */
	struct vhost_chain wait; /* the request that waits */
	uint64_t wait_len;
	uint16_t wait_next; /* of the ring, when it had been taken */
	unsigned char *wait_status;
	struct vec_of(unsigned char) from_guest;
	struct vec_of(unsigned char) written; /* for each sector of it, whether it came */
	uint64_t got; /* bytes of it from its beginning on, of which none is missing */
	struct vhost_chain chain;
};

void vhost_mail_init(struct vhost_mail *m, const char *id, uint64_t size, uint64_t in, uint64_t out,
		     uint64_t out_max);
void vhost_mail_release(struct vhost_mail *m);
/* Puts a message there; an unread one is gone. */
void vhost_mail_send(struct vhost_mail *m, const void *text, size_t len);
/* Forgets what the guest has written: the next byte is that of another message. */
void vhost_mail_clear(struct vhost_mail *m);

#endif
