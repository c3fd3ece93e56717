/* SPDX-License-Identifier: MIT */
/*
 * record_bpf.h - the messages between the BPF program and the recorder. Both sides include it, so
 * it uses only types that either of them has declared before (__u32, __s32, __u64).
 *
 * The ring buffer holds records in the order in which they were reserved. A bio is identified by
 * its address: no other bio has the address from its REC_QUEUE to its REC_DONE.
 *
 *	REC_QUEUE	a bio was submitted: op, flags, addr, len
 *	REC_DATA	`len` bytes of it, from `addr` within it; follow its REC_QUEUE, perhaps with
 *			records of other CPUs between them
 *	REC_SPLIT	the bio `addr` gave a part of itself to the new bio `bio`
 *	REC_DONE	the bio ended; op, result 0 or not, len: the bytes that the
 *			completion counted
 */
#ifndef RECORD_BPF_H
#define RECORD_BPF_H

enum {
	REC_QUEUE = 1,
	REC_DATA,
	REC_SPLIT,
	REC_DONE,
};

/* The events that a slot's device is watched for. */
enum {
	WATCH_OFF,
	WATCH_CHANGES,	/* REC_QUEUE of changes, and REC_DONE */
	WATCH_REQUESTS, /* everything */
};

enum {
	REC_FLAG_PREFLUSH = 1 << 0,
	REC_FLAG_FUA = 1 << 1,
	REC_FLAG_META = 1 << 2,
};

enum {
	BIO_OP_READ = 0,
	BIO_OP_WRITE = 1,
	BIO_OP_FLUSH = 2,
	BIO_OP_DISCARD = 3,
	BIO_OP_SECURE_ERASE = 5,
	BIO_OP_WRITE_ZEROES = 9,
};

/* Room for data in a REC_DATA: the ring reserves only constant sizes, one of these. */
enum {
	REC_DATA_SMALL = 512,
	REC_DATA_MEDIUM = 1024,
	REC_DATA_LARGE = 4096,
};

enum { RECORD_SLOTS = 64 }; /* disks of one process */

struct rec {
	__u32 kind;
	__u32 slot;
	__u64 bio;
	__u64 addr; /* bytes */
	__u64 len;  /* bytes */
	__u32 op;
	__u32 flags;
	__s32 result;
	__u32 pad;
};

/* The state of one disk, in memory that both sides have mapped. */
struct rec_slot {
	__u32 watch;
	__u32 calibrate; /* 1: a sample is wanted; 2: it is there */
	__u64 lost;	 /* records that did not fit into the ring, or could not be read */
	__u64 full;	 /* records that did not fit */
	__u64 page;	 /* the sample: a struct page ... */
	__u64 page_addr; /* ... and the address of its memory */
	__u64 page_size; /* the size of a struct page */
	__u64 shift;	 /* memory of a page = page * scale + shift, modulo 2^64 */
	__u64 scale;
};

#endif
