/* SPDX-License-Identifier: MIT */
/*
 * model_block.c - the persistence model of a block device with a volatile write cache.
 *
 * A write is durable if it completed with FUA, or if it completed before a flush was submitted that
 * has itself completed. The flush is an EV_FLUSH, or the pre-flush of an EV_PREFLUSH write, which
 * is submitted with that write and known to be done when that write completes (the kernel's
 * Documentation/block/writeback_cache_control.rst). Every other submitted write may survive or not,
 * in any subset and in any part. A failed completion promises nothing: a failed write may survive
 * or not, whatever flush follows, and a failed flush covers nothing. Discards and write-zeroes are
 * writes of zeros.
 *
 * A write with a pre-flush is the one exception to "any subset": the device has flushed before it
 * writes the data. So if any part of it survives, everything that had completed when it was
 * submitted does, whether or not its own completion was seen. (Without this rule a healthy journal
 * whose commit record is written with PREFLUSH and FUA would seem broken.)
 *
 * A limit: requests that overlap and are in flight together can land in either order, and the
 * device need not choose the same order each time. Here, and in an exported log, the request that
 * was submitted last always wins, so states with the other order are never made. File systems wait
 * for one request before they send the other; crash_stats.racing says how often that did not
 * happen.
 *
 * I1: pieces are in the order of submission, which is that of their event numbers.
 * I2: a piece is pinned iff it is durable and overlaps an older piece that is still there. (If it
 *     went into the durable image, the older one would be applied on top of it.) The older one
 *     may itself be pinned.
 * I3: no piece lies wholly inside a younger pinned one, as no state would show whether it survives.
 * I4: requests[i] belongs to pieces[i]; `flushes` are the flushes that have not completed.
 * I5: `index` holds the ranges of the pieces that are not gone, by their event numbers. A piece
 *     that is gone stays in its place until the holes are more than half, or the pieces are asked
 *     for; so the cost of a completion depends on the pieces that overlap it, not on all the
 *     others.
 */
#include "core/model_block.h"

#include <errno.h>

#include "base/vec.h"
#include "core/ranges.h"

struct request {
	const unsigned char *data; /* NULL: zeros */
	uint64_t done_at;	   /* event number of the successful completion, or UINT64_MAX */
	uint32_t flags;
	bool answered; /* completed, with success or without */
	bool gone;     /* hidden, or in the durable image */
};

/* Behind a pointer, so that functions with a const model can close holes. */
struct queue {
	struct vec_of(struct model_piece) pieces;
	struct vec_of(struct request) requests;
	struct vec_of(uint64_t) flushes; /* event numbers */
	size_t n_gone;
	struct ranges index;
	struct vec_of(uint64_t) unsettled; /* pinned pieces to look at, by event number */
	struct vec_of(uint64_t) hidden;	   /* for pin() */
	struct vec_of(uint32_t) needs;	   /* of all pieces, one after the other */
};

struct block_model {
	struct model m;
	struct queue *q;
};

static struct block_model *as_block(struct model *m)
{
	return container_of(m, struct block_model, m);
}

static const struct block_model *as_const_block(const struct model *m)
{
	return (const struct block_model *)((const char *)m - offsetof(struct block_model, m));
}

struct model *model_block_create(void)
{
	struct block_model *b = xcalloc(1, sizeof(*b));

	b->q = xcalloc(1, sizeof(*b->q));
	return &b->m;
}

struct model *model_block_clone(const struct model *m)
{
	const struct queue *from = as_const_block(m)->q;
	struct model *copy = model_block_create();
	struct queue *q = as_block(copy)->q;

	for (size_t i = 0; i < from->pieces.n; i++) {
		vec_push(&q->pieces, from->pieces.v[i]);
		vec_push(&q->requests, from->requests.v[i]);
	}
	for (size_t i = 0; i < from->flushes.n; i++)
		vec_push(&q->flushes, from->flushes.v[i]);
	q->n_gone = from->n_gone;
	ranges_copy(&from->index, &q->index);
	return copy;
}

void model_block_destroy(struct model *m)
{
	struct block_model *b = as_block(m);

	vec_release(&b->q->pieces);
	vec_release(&b->q->requests);
	vec_release(&b->q->flushes);
	vec_release(&b->q->unsettled);
	vec_release(&b->q->hidden);
	vec_release(&b->q->needs);
	ranges_release(&b->q->index);
	free(b->q);
	free(b);
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

/* The index of the piece made by an event, or -1. By I1 they are sorted. */
static ssize_t find_piece(const struct queue *q, uint64_t event)
{
	size_t i = first_where(k, q->pieces.n, q->pieces.v[k].event >= event);

	if (i == q->pieces.n || q->pieces.v[i].event != event || q->requests.v[i].gone)
		return -1;
	return (ssize_t)i;
}

static struct model_piece *piece_of(struct queue *q, uint64_t event)
{
	ssize_t i = find_piece(q, event);

	assert(i >= 0);
	return &q->pieces.v[i];
}

/* Closes the holes. */
static void compact(struct queue *q)
{
	size_t kept = 0;

	for (size_t i = 0; q->n_gone && i < q->pieces.n; i++)
		if (!q->requests.v[i].gone) {
			q->pieces.v[kept] = q->pieces.v[i];
			q->requests.v[kept++] = q->requests.v[i];
		}
	if (q->n_gone)
		q->pieces.n = q->requests.n = kept;
	q->n_gone = 0;
}

struct look {
	struct queue *q;
	const struct model_piece *piece;
	bool found;
};

static bool note_younger_pinned(void *ctx, uint64_t event)
{
	struct look *l = ctx;

	if (event > l->piece->event && piece_of(l->q, event)->pinned)
		vec_push(&l->q->unsettled, event);
	return true;
}

/* Takes a piece away. Pinned pieces above it are looked at again: nothing may be below now. */
static void drop(struct queue *q, size_t i)
{
	struct model_piece *p = &q->pieces.v[i];
	struct look l = { .q = q, .piece = p };

	ranges_remove(&q->index, p->addr, p->event);
	q->requests.v[i].gone = true;
	q->n_gone++;
	ranges_overlapping(&q->index, p->addr, p->addr + p->len, note_younger_pinned, &l);
}

static bool note_hidden(void *ctx, uint64_t event)
{
	struct look *l = ctx;

	if (event < l->piece->event && inside(piece_of(l->q, event), l->piece))
		vec_push(&l->q->hidden, event);
	return true;
}

static bool is_below(void *ctx, uint64_t event)
{
	struct look *l = ctx;

	l->found = event < l->piece->event;
	return !l->found;
}

/*
 * Pins a piece, and drops the pieces that it hides (I3). settle() finds out whether it stays
 * pinned.
 */
static void pin(struct queue *q, size_t i)
{
	struct model_piece *p = &q->pieces.v[i];
	struct look l = { .q = q, .piece = p };

	p->pinned = true;
	vec_push(&q->unsettled, p->event);
	vec_clear(&q->hidden);
	ranges_overlapping(&q->index, p->addr, p->addr + p->len, note_hidden, &l);
	for (size_t j = 0; j < q->hidden.n; j++)
		drop(q, (size_t)find_piece(q, q->hidden.v[j]));
}

/* Restores I2: pinned pieces with nothing below them go into the durable image. */
static void settle(struct block_model *b)
{
	struct queue *q = b->q;

	while (q->unsettled.n) {
		ssize_t i = find_piece(q, q->unsettled.v[--q->unsettled.n]);
		if (i < 0)
			continue;
		struct model_piece *p = &q->pieces.v[i];
		struct look l = { .q = q, .piece = p };

		ranges_overlapping(&q->index, p->addr, p->addr + p->len, is_below, &l);
		if (l.found)
			continue;
		apply_range(&b->m.durable, p, &q->requests.v[i], p->addr, p->addr + p->len);
		drop(q, (size_t)i);
	}
	if (q->n_gone > q->pieces.n / 2)
		compact(q);
}

static int submit(struct block_model *b, uint64_t number, const struct event *ev, struct err *err)
{
	struct model_piece p = { .event = number, .addr = ev->addr, .len = ev->len };
	struct request r = { .data = ev->data, .done_at = UINT64_MAX, .flags = ev->flags };

	if (!image_range_ok(&b->m.durable, ev->addr, ev->len))
		return err_set(err, -EINVAL,
			       "event %llu, %s of %llu bytes at %llu, is outside the device of "
			       "%llu bytes",
			       llu(number), event_kind_name(ev->kind), llu(ev->len), llu(ev->addr),
			       llu(b->m.durable.size));
	if (ev->flags & EV_PREFLUSH)
		vec_push(&b->q->flushes, number);
	if (!ev->len)
		return 0;
	model_piece_cut(&p, b->m.opts.tear_unit);
	vec_push(&b->q->pieces, p);
	vec_push(&b->q->requests, r);
	ranges_add(&b->q->index, p.addr, p.addr + p.len, number);
	return 0;
}

/* Takes a flush off the list. True if it was there. */
static bool take_flush(struct queue *q, uint64_t event)
{
	for (size_t i = 0; i < q->flushes.n; i++)
		if (q->flushes.v[i] == event) {
			q->flushes.v[i] = vec_last(&q->flushes);
			q->flushes.n--;
			return true;
		}
	return false;
}

/* Pins the pieces that a completed flush covers, youngest first, as these hide the most. */
static void cover(struct queue *q, uint64_t flush)
{
	for (size_t i = q->pieces.n; i-- > 0;) {
		const struct request *r = &q->requests.v[i];

		if (!r->gone && r->done_at < flush && !q->pieces.v[i].pinned)
			pin(q, i);
	}
}

static void complete(struct block_model *b, uint64_t number, const struct event *ev)
{
	struct queue *q = b->q;
	bool flush = take_flush(q, ev->ref);
	ssize_t i = find_piece(q, ev->ref);
	struct request *r = i < 0 ? NULL : &q->requests.v[i];

	assert(!r == (i < 0));
	if (r && r->answered)
		return; /* only the first completion counts */
	if (r)
		r->answered = true;
	if (ev->result < 0)
		return;
	if (flush)
		cover(q, ev->ref);
	if (r) {
		r->done_at = number;
		q->pieces.v[i].completed = true;
		if (r->flags & EV_FUA)
			pin(q, (size_t)i);
	}
	settle(b);
}

int model_block_apply(struct model *m, uint64_t number, const struct event *ev, struct err *err)
{
	struct block_model *b = as_block(m);

	switch (ev->kind) {
	case EV_WRITE:
	case EV_DISCARD:
	case EV_ZERO:
		return submit(b, number, ev, err);
	case EV_FLUSH:
		vec_push(&b->q->flushes, number);
		return 0;
	case EV_COMPLETE:
		complete(b, number, ev);
		return 0;
	default:
		return 0;
	}
}

/* Finds what a write with a pre-flush needs: see the head of this file. */
static void find_needs(struct queue *q)
{
	vec_clear(&q->needs);
	for (size_t i = 0; i < q->pieces.n; i++) {
		struct model_piece *p = &q->pieces.v[i];

		p->n_needs = 0;
		p->needs = NULL;
		if (!(q->requests.v[i].flags & EV_PREFLUSH) || p->pinned)
			continue;
		for (size_t j = 0; j < i; j++)
			if (q->requests.v[j].done_at < p->event && !q->pieces.v[j].pinned) {
				vec_push(&q->needs, (uint32_t)j);
				p->n_needs++;
			}
	}
	/* The array no longer moves, so pointers into it can be taken. */
	size_t at = 0;
	for (size_t i = 0; i < q->pieces.n; i++) {
		q->pieces.v[i].needs = q->pieces.v[i].n_needs ? q->needs.v + at : NULL;
		at += q->pieces.v[i].n_needs;
	}
}

const struct model_piece *model_block_pieces(const struct model *m, size_t *n)
{
	struct queue *q = as_const_block(m)->q;

	compact(q);
	find_needs(q);
	*n = q->pieces.n;
	return q->pieces.v;
}

void model_block_piece_apply(const struct model *m, size_t index, const uint64_t *units,
			     uint64_t from, uint64_t to, struct image *img)
{
	const struct queue *q = as_const_block(m)->q;
	const struct model_piece *p = &q->pieces.v[index];
	uint64_t first, end;

	assert(index < q->pieces.n && !q->n_gone);
	for (uint32_t i = 0; model_piece_run(p, units, &i, &first, &end);) {
		first = max(first, from);
		end = min(end, to);
		if (first < end)
			apply_range(img, p, &q->requests.v[index], first, end);
	}
}

const struct model_ops model_block = {
	.name = "block",
	.help = "a disk with a volatile cache: durable after FUA, or after a flush of what "
		"completed",
	.apply = model_block_apply,
	MODEL_BLOCK_REST,
};
