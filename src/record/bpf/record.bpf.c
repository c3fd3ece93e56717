/* SPDX-License-Identifier: MIT */
/*
 * record.bpf.c - copies every request to our devices, with its data, into a ring buffer.
 *
 * block_bio_queue sees each bio once, as the file system issued it: before it is split to the
 * limits of the device, merged with others, or taken apart into flush, write and flush. block_split
 * shows its parts. block_rq_complete names the bios that a request completes; block_bio_complete
 * those that never became a request. No program here waits, so the reader of the ring cannot delay
 * the tested file system.
 *
 * The programs read a bio's data through the kernel's linear map of all memory: the address of the
 * data is a linear function of the address of its struct page. The recorder calibrates that
 * function (block_dirty_buffer shows a page with its address) and checks it.
 *
 * Kernel structures are declared here with the members that are used; libbpf adapts the offsets to
 * the running kernel.
 */
typedef unsigned char __u8;
typedef unsigned short __u16;
typedef short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "record/bpf/record_bpf.h"

enum { MAP_HASH = 1, MAP_ARRAY = 2, MAP_RINGBUF = 27, MAP_MMAPABLE = 1 << 10, RB_NO_WAKEUP = 1 };
enum { BIOS_MAX = 4096, CHUNKS_MAX = 1 << 16 };

#define kernel_struct __attribute__((preserve_access_index))

struct page {
	unsigned long flags;
} kernel_struct;

struct block_device {
	__u32 bd_dev;
} kernel_struct;

struct bio_vec {
	struct page *bv_page;
	__u32 bv_len;
	__u32 bv_offset;
} kernel_struct;

struct bvec_iter {
	__u64 bi_sector;
	__u32 bi_size;
	__u32 bi_idx;
	__u32 bi_bvec_done;
} kernel_struct;

struct bio {
	struct bio *bi_next;
	struct block_device *bi_bdev;
	__u32 bi_opf;
	__u8 bi_status;
	struct bvec_iter bi_iter;
	void *bi_private;
	struct bio_vec *bi_io_vec;
} kernel_struct;

struct request {
	struct bio *bio;
} kernel_struct;

struct buffer_head {
	struct page *b_page;
	__u64 b_blocknr;
	char *b_data;
	struct block_device *b_bdev;
} kernel_struct;

enum req_flag_bits {
	__REQ_META = 12,
	__REQ_FUA = 17,
	__REQ_PREFLUSH = 18,
};

struct {
	__uint(type, MAP_RINGBUF);
	__uint(max_entries, 4096); /* set before the map is loaded */
} ring SEC(".maps");

/* Device number to slot. */
struct {
	__uint(type, MAP_HASH);
	__uint(max_entries, RECORD_SLOTS);
	__type(key, __u32);
	__type(value, __u32);
} devices SEC(".maps");

struct {
	__uint(type, MAP_ARRAY);
	__uint(map_flags, MAP_MMAPABLE);
	__uint(max_entries, RECORD_SLOTS);
	__type(key, __u32);
	__type(value, struct rec_slot);
} slots SEC(".maps");

static struct rec_slot *slot_of(struct block_device *bdev, __u32 *no)
{
	__u32 dev = bdev->bd_dev, *found = bpf_map_lookup_elem(&devices, &dev);

	if (!found)
		return 0;
	*no = *found;
	return bpf_map_lookup_elem(&slots, no);
}

/*
 * Counts a lost record. The counter of a slot only grows, also when disks are closed and opened, so
 * that no loss is missed between two looks.
 */
static void count_lost(struct rec_slot *s)
{
	__sync_fetch_and_add(&s->lost, 1);
}

static void put(struct rec_slot *s, const struct rec *r)
{
	struct rec *out = bpf_ringbuf_reserve(&ring, sizeof(*out), 0);

	if (!out) {
		__sync_fetch_and_add(&s->full, 1);
		count_lost(s);
		return;
	}
	*out = *r;
	bpf_ringbuf_submit(out, RB_NO_WAKEUP);
}

struct copy {
	struct rec_slot *s;
	__u64 vec; /* address of the current struct bio_vec */
	__u64 bio;
	__u32 slot;
	__u32 done;  /* bytes of it that are copied */
	__u32 off;   /* bytes of the bio that are copied */
	__u32 left;  /* bytes of the bio that are left */
	__u32 error; /* a read failed */
};

/* Always inlined, because the reserved size must be a constant for the verifier. */
static __always_inline long put_data(struct copy *c, const void *from, __u32 len, const __u32 room)
{
	struct {
		struct rec r;
		__u8 data[REC_DATA_LARGE];
	} *out = bpf_ringbuf_reserve(&ring, sizeof(struct rec) + room, 0);
	__u64 bounded = len;
	long error;

	if (!out) {
		__sync_fetch_and_add(&c->s->full, 1);
		return -1;
	}
	/* The compiler knows the bound and would drop the comparison that the verifier needs. */
	barrier_var(bounded);
	if (bounded > room)
		bounded = room;
	out->r = (struct rec){
		.kind = REC_DATA, .slot = c->slot, .bio = c->bio, .addr = c->off, .len = len
	};
	error = bpf_probe_read_kernel(out->data, (__u32)bounded, from);
	if (error)
		bpf_ringbuf_discard(out, RB_NO_WAKEUP);
	else
		bpf_ringbuf_submit(out, RB_NO_WAKEUP);
	return error;
}

static long copy_chunk(__u32 i, struct copy *c)
{
	struct bio_vec *vec = (void *)c->vec;
	struct page *page = BPF_CORE_READ(vec, bv_page);
	__u32 vec_len = BPF_CORE_READ(vec, bv_len);
	__u32 vec_off = BPF_CORE_READ(vec, bv_offset);
	__u32 len = vec_len - c->done;
	const void *from;
	long error;

	(void)i;
	if (len > c->left)
		len = c->left;
	if (len > REC_DATA_LARGE)
		len = REC_DATA_LARGE;
	from = (const void *)((__u64)page * c->s->scale + c->s->shift + vec_off + c->done);
	if (len <= REC_DATA_SMALL)
		error = put_data(c, from, len, REC_DATA_SMALL);
	else if (len <= REC_DATA_MEDIUM)
		error = put_data(c, from, len, REC_DATA_MEDIUM);
	else
		error = put_data(c, from, len, REC_DATA_LARGE);
	if (error) {
		c->error = 1;
		return 1;
	}
	c->off += len;
	c->left -= len;
	c->done += len;
	if (c->done >= vec_len) {
		c->vec += bpf_core_type_size(struct bio_vec);
		c->done = 0;
	}
	return c->left == 0;
}

static __u32 flags_of(__u32 opf)
{
	__u32 flags = 0;

	if (opf & (1U << bpf_core_enum_value(enum req_flag_bits, __REQ_PREFLUSH)))
		flags |= REC_FLAG_PREFLUSH;
	if (opf & (1U << bpf_core_enum_value(enum req_flag_bits, __REQ_FUA)))
		flags |= REC_FLAG_FUA;
	if (opf & (1U << bpf_core_enum_value(enum req_flag_bits, __REQ_META)))
		flags |= REC_FLAG_META;
	return flags;
}

SEC("tp_btf/block_bio_queue")
int BPF_PROG(on_queue, struct bio *bio)
{
	__u32 no, op = bio->bi_opf & 0xff;
	struct rec_slot *s = slot_of(bio->bi_bdev, &no);

	if (!s || s->watch == WATCH_OFF || (s->watch == WATCH_CHANGES && op == BIO_OP_READ))
		return 0;

	struct rec r = {
		.kind = REC_QUEUE,
		.slot = no,
		.bio = (__u64)bio,
		.addr = bio->bi_iter.bi_sector << 9,
		.len = bio->bi_iter.bi_size,
		.op = op,
		.flags = flags_of(bio->bi_opf),
	};

	put(s, &r);
	if (s->watch != WATCH_REQUESTS || op != BIO_OP_WRITE || !r.len)
		return 0;

	struct copy c = {
		.s = s,
		.vec = (__u64)BPF_CORE_READ(bio, bi_io_vec) +
		       (__u64)bio->bi_iter.bi_idx * bpf_core_type_size(struct bio_vec),
		.bio = (__u64)bio,
		.slot = no,
		.done = bio->bi_iter.bi_bvec_done,
		.left = bio->bi_iter.bi_size,
	};

	bpf_loop(CHUNKS_MAX, copy_chunk, &c, 0);
	if (c.error || c.left)
		count_lost(s);
	return 0;
}

SEC("tp_btf/block_split")
int BPF_PROG(on_split, struct bio *part)
{
	__u32 no;
	struct rec_slot *s = slot_of(part->bi_bdev, &no);

	if (!s || s->watch == WATCH_OFF)
		return 0;

	struct rec r = {
		.kind = REC_SPLIT, .slot = no, .bio = (__u64)part, .addr = (__u64)part->bi_private
	};

	put(s, &r);
	return 0;
}

struct ending {
	struct rec_slot *s;
	__u64 bio;
	__u32 slot;
	__u32 left; /* bytes of the completion */
	__s32 result;
};

static long end_bio(__u32 i, struct ending *e)
{
	struct bio *bio = (void *)e->bio;
	__u32 size = BPF_CORE_READ(bio, bi_iter.bi_size);
	struct rec r = { .kind = REC_DONE,
			 .slot = e->slot,
			 .bio = e->bio,
			 .op = BPF_CORE_READ(bio, bi_opf) & 0xff,
			 .result = e->result };

	/* A bio that ends only in part is not done, and those after it have not begun. */
	if (i > 0 && !e->left)
		return 1;
	if (e->left < size)
		return 1;
	r.len = size;
	put(e->s, &r);
	e->left -= size;
	e->bio = (__u64)BPF_CORE_READ(bio, bi_next);
	return !e->bio;
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_request_end, struct request *rq, int status, unsigned int bytes)
{
	struct bio *bio = rq->bio;
	__u32 no;
	struct rec_slot *s;

	if (!bio)
		return 0;
	s = slot_of(bio->bi_bdev, &no);
	if (!s || s->watch == WATCH_OFF)
		return 0;

	struct ending e = { .s = s,
			    .bio = (__u64)BPF_CORE_READ(rq, bio),
			    .slot = no,
			    .left = bytes,
			    .result = (status & 0xff) ? -1 : 0 };

	bpf_loop(BIOS_MAX, end_bio, &e, 0);
	return 0;
}

SEC("tp_btf/block_bio_complete")
int BPF_PROG(on_bio_end, void *queue, struct bio *bio)
{
	__u32 no;
	struct rec_slot *s = slot_of(bio->bi_bdev, &no);

	(void)queue;
	if (!s || s->watch == WATCH_OFF)
		return 0;

	struct rec r = {
		.kind = REC_DONE,
		.slot = no,
		.bio = (__u64)bio,
		.op = bio->bi_opf & 0xff,
		.result = bio->bi_status ? -1 : 0,
	};

	put(s, &r);
	return 0;
}

SEC("tp_btf/block_dirty_buffer")
int BPF_PROG(on_dirty_buffer, struct buffer_head *bh)
{
	__u32 no;
	struct rec_slot *s = slot_of(bh->b_bdev, &no);

	/* The first buffer of the device begins at the start of its page. */
	if (!s || s->calibrate != 1 || bh->b_blocknr)
		return 0;
	s->page = (__u64)bh->b_page;
	s->page_addr = (__u64)bh->b_data;
	s->page_size = bpf_core_type_size(struct page);
	s->calibrate = 2;
	return 0;
}

char licence_of_program[] SEC("license") = "GPL";
