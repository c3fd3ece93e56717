/* SPDX-License-Identifier: MIT */
/*
 * model_block.c - the persistence model of a block device with a volatile write cache.
 *
 * Durable is a write that completed with FUA, or one that completed before a flush was submitted
 * that has itself completed. The flush is an EV_FLUSH, or the pre-flush of an EV_PREFLUSH write,
 * which is submitted with that write and known to be done when that write completes (the kernel's
 * Documentation/block/writeback_cache_control.rst). Every other submitted write may survive or
 * not, in any subset and in any part. A failed completion promises nothing: the write may or may
 * not have reached the media, for ever, and a failed flush covers nothing. Discards and
 * write-zeroes are writes of zeros.
 *
 * I1: pieces are in the order of submission, which is that of their event numbers.
 * I2: a piece is pinned iff it is durable and overlaps an older piece that is still there. (If it
 *     went into the durable image, the older one would be applied on top of it.) The older one
 *     may itself be pinned.
 * I3: no piece lies wholly inside a younger pinned one: whether it survives cannot be seen.
 * I4: requests[i] belongs to pieces[i]; flushes are the flushes not yet completed.
 */
#include "core/model.h"

#include <errno.h>

#include "base/vec.h"

struct request {
	const unsigned char *data; /* NULL: zeros */
	uint64_t done_at;	   /* event number of the successful completion; UINT64_MAX */
	uint32_t flags;
	bool answered; /* completed, with success or without */
};

struct block {
	struct model m;
	struct vec_of(struct model_piece) pieces;
	struct vec_of(struct request) requests;
	struct vec_of(uint64_t) flushes; /* event numbers */
};

static struct block *as_block(struct model *m)
{
	return container_of(m, struct block, m);
}

static const struct block *as_const_block(const struct model *m)
{
	return (const struct block *)((const char *)m - offsetof(struct block, m));
}

static struct model *block_create(void)
{
	struct block *b = xcalloc(1, sizeof(*b));

	return &b->m;
}

static struct model *block_clone(const struct model *m)
{
	const struct block *from = as_const_block(m);
	struct block *b = xcalloc(1, sizeof(*b));

	for (size_t i = 0; i < from->pieces.n; i++) {
		vec_push(&b->pieces, from->pieces.v[i]);
		vec_push(&b->requests, from->requests.v[i]);
	}
	for (size_t i = 0; i < from->flushes.n; i++)
		vec_push(&b->flushes, from->flushes.v[i]);
	return &b->m;
}

static void block_destroy(struct model *m)
{
	struct block *b = as_block(m);

	vec_release(&b->pieces);
	vec_release(&b->requests);
	vec_release(&b->flushes);
	free(b);
}

static bool overlap(const struct model_piece *a, const struct model_piece *b)
{
	return a->addr < b->addr + b->len && b->addr < a->addr + a->len;
}

static bool inside(const struct model_piece *small, const struct model_piece *large)
{
	return large->addr <= small->addr && small->addr + small->len <= large->addr + large->len;
}

static void apply_range(struct image *img, const struct model_piece *p, const struct request *r,
			uint64_t from, uint64_t to)
{
	if (r->data)
		image_write(img, from, r->data + (from - p->addr), to - from);
	else
		image_zero(img, from, to - from);
}

/* Whether a younger pinned piece hides this one (I3). */
static bool hidden(const struct block *b, size_t i)
{
	for (size_t j = i + 1; j < b->pieces.n; j++)
		if (b->pieces.v[j].pinned && inside(&b->pieces.v[i], &b->pieces.v[j]))
			return true;
	return false;
}

/* Whether an older piece among the first n lies below this one (I2). */
static bool blocked(const struct block *b, size_t n, const struct model_piece *p)
{
	for (size_t j = 0; j < n; j++)
		if (overlap(&b->pieces.v[j], p))
			return true;
	return false;
}

/* Restores I2 and I3 after pieces became pinned: those with nothing below them are folded. */
static void settle(struct block *b)
{
	size_t kept = 0;

	for (size_t i = 0; i < b->pieces.n; i++) {
		struct model_piece *p = &b->pieces.v[i];

		if (p->pinned && !blocked(b, kept, p)) {
			apply_range(&b->m.durable, p, &b->requests.v[i], p->addr, p->addr + p->len);
			continue;
		}
		if (hidden(b, i))
			continue;
		b->pieces.v[kept] = *p;
		b->requests.v[kept++] = b->requests.v[i];
	}
	b->pieces.n = b->requests.n = kept;
}

static int submit(struct block *b, uint64_t number, const struct event *ev, struct err *err)
{
	struct model_piece p = { .event = number, .addr = ev->addr, .len = ev->len };
	struct request r = { ev->data, UINT64_MAX, ev->flags, false };

	if (!image_range_ok(&b->m.durable, ev->addr, ev->len))
		return err_set(err, -EINVAL,
			       "event %llu, %s of %llu bytes at %llu, is outside the device of "
			       "%llu bytes",
			       (unsigned long long)number, event_kind_name(ev->kind),
			       (unsigned long long)ev->len, (unsigned long long)ev->addr,
			       (unsigned long long)b->m.durable.size);
	if (ev->flags & EV_PREFLUSH)
		vec_push(&b->flushes, number);
	if (!ev->len)
		return 0;
	model_piece_cut(&p, b->m.opts.tear_unit);
	vec_push(&b->pieces, p);
	vec_push(&b->requests, r);
	return 0;
}

/* The index of the piece made by an event, or -1. By I1 they are sorted. */
static ssize_t find_piece(const struct block *b, uint64_t event)
{
	size_t low = 0, high = b->pieces.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (b->pieces.v[mid].event < event)
			low = mid + 1;
		else
			high = mid;
	}
	return low < b->pieces.n && b->pieces.v[low].event == event ? (ssize_t)low : -1;
}

/* Whether this was a flush under way, which it now no longer is. */
static bool take_flush(struct block *b, uint64_t event)
{
	for (size_t i = 0; i < b->flushes.n; i++)
		if (b->flushes.v[i] == event) {
			b->flushes.v[i] = vec_last(&b->flushes);
			b->flushes.n--;
			return true;
		}
	return false;
}

static void complete(struct block *b, uint64_t number, const struct event *ev)
{
	bool flush = take_flush(b, ev->ref);
	ssize_t i = find_piece(b, ev->ref);
	struct request *r = i < 0 ? NULL : &b->requests.v[i];
	bool pinned = false;

	assert(!r == (i < 0));
	if (r && r->answered)
		return; /* only the first answer counts */
	if (r)
		r->answered = true;
	if (ev->result < 0)
		return;
	for (size_t j = 0; flush && j < b->pieces.n; j++)
		if (b->requests.v[j].done_at < ev->ref)
			pinned = b->pieces.v[j].pinned = true;
	if (r) {
		r->done_at = number;
		b->pieces.v[i].completed = true;
		if (r->flags & EV_FUA)
			pinned = b->pieces.v[i].pinned = true;
	}
	if (pinned)
		settle(b);
}

static int block_apply(struct model *m, uint64_t number, const struct event *ev, struct err *err)
{
	struct block *b = as_block(m);

	switch (ev->kind) {
	case EV_WRITE:
	case EV_DISCARD:
	case EV_ZERO:
		return submit(b, number, ev, err);
	case EV_FLUSH:
		vec_push(&b->flushes, number);
		return 0;
	case EV_COMPLETE:
		complete(b, number, ev);
		return 0;
	default:
		return 0;
	}
}

static const struct model_piece *block_pieces(const struct model *m, size_t *n)
{
	const struct block *b = as_const_block(m);

	*n = b->pieces.n;
	return b->pieces.v;
}

static void block_piece_apply(const struct model *m, size_t index, const uint64_t *units,
			      struct image *img)
{
	const struct block *b = as_const_block(m);
	const struct model_piece *p = &b->pieces.v[index];
	uint64_t from, to;

	assert(index < b->pieces.n);
	for (uint32_t i = 0; model_piece_run(p, units, &i, &from, &to);)
		apply_range(img, p, &b->requests.v[index], from, to);
}

const struct model_ops model_block = {
	.name = "block",
	.help = "a disk with a volatile cache: durable after FUA, or after a flush of what "
		"completed",
	.create = block_create,
	.clone = block_clone,
	.destroy = block_destroy,
	.apply = block_apply,
	.pieces = block_pieces,
	.piece_apply = block_piece_apply,
};
