/* SPDX-License-Identifier: MIT */
/* disk_log.c - puts records into the shared ring, and takes them out. */
#include "record/disk_log.h"

#include <sys/mman.h>

enum { MASK = DISK_LOG_BYTES - 1 };

struct disk_log *disk_log_new(void)
{
	void *p = mmap(NULL, sizeof(struct disk_log), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

void disk_log_free(struct disk_log *l)
{
	if (l)
		munmap(l, sizeof(*l));
}

static uint64_t whole_size(const struct disk_log_record *r)
{
	return sizeof(*r) + ((r->data_len + 7) & ~(uint64_t)7);
}

/* Puts a record in one piece: the space before the end of the ring is skipped if too short. */
void disk_log_put(struct disk_log *l, const struct disk_log_record *r, const void *data)
{
	uint64_t head = atomic_load_explicit(&l->head, memory_order_relaxed);
	uint64_t tail = atomic_load_explicit(&l->tail, memory_order_acquire);
	uint64_t need = whole_size(r), to_end = DISK_LOG_BYTES - (head & MASK);
	uint64_t skip = need > to_end ? to_end : 0;

	assert(r->kind && head % 8 == 0 && head - tail <= DISK_LOG_BYTES); /* L3 */
	if (head + skip + need - tail > DISK_LOG_BYTES) {
		atomic_fetch_add(&l->lost, 1);
		return;
	}
	/* Positions are multiples of 8, so there is always room for a kind 0. */
	if (skip)
		memset(l->ring + (head & MASK), 0, sizeof(uint64_t));
	head += skip;
	assert((head & MASK) + need <= DISK_LOG_BYTES &&
	       head + need - tail <= DISK_LOG_BYTES); /* L3 */
	memcpy(l->ring + (head & MASK), r, sizeof(*r));
	if (r->data_len)
		memcpy(l->ring + (head & MASK) + sizeof(*r), data, r->data_len);
	atomic_store_explicit(&l->head, head + need, memory_order_release);
}

const struct disk_log_record *disk_log_peek(struct disk_log *l)
{
	uint64_t head = atomic_load_explicit(&l->head, memory_order_acquire);
	uint64_t tail = atomic_load_explicit(&l->tail, memory_order_relaxed);
	const struct disk_log_record *r = (const void *)(l->ring + (tail & MASK));

	if (tail == head)
		return NULL;
	if (*(const uint32_t *)r == 0) {
		tail += DISK_LOG_BYTES - (tail & MASK);
		atomic_store_explicit(&l->tail, tail, memory_order_release);
		r = (const void *)l->ring;
	}
	if (tail == head)
		return NULL;
	assert(tail % 8 == 0 && whole_size(r) <= head - tail);	 /* L3 */
	assert((tail & MASK) + whole_size(r) <= DISK_LOG_BYTES); /* L3 */
	return r;
}

void disk_log_next(struct disk_log *l)
{
	uint64_t tail = atomic_load_explicit(&l->tail, memory_order_relaxed);
	const struct disk_log_record *r = (const void *)(l->ring + (tail & MASK));

	atomic_store_explicit(&l->tail, tail + whole_size(r), memory_order_release);
}
