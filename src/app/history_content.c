/* SPDX-License-Identifier: MIT */
/*
 * history_content.c - the content of files: it is changed in a file system that has all of it as
 * it is now, and each change keeps what it was then.
 *
 * Space. Which blocks a file has is what the live file says: each write that took one is durable or
 * waits. So a write that finds its block there is one in place, unless the one that took it still
 * waits, and then that is found in `fresh`.
 */
#include <inttypes.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <unistd.h>

#include "app/history_impl.h"
#include "base/util.h"
#include "core/model.h"
#include "fs/vfs.h"

uint64_t maker_live(struct history *h, uint64_t object)
{
	struct object *o = object_of(h, object);
	char name[24];

	if (o->live)
		return o->live;
	snprintf(name, sizeof(name), "%" PRIu64, object);
	int rc = vfs_create(h->live, &reffs_root, REFFS_ROOT_INO, name, 0600, &o->live);
	assert(rc == 0);
	return o->live;
}

/* The content as it is now, for a change to point at. */
static const struct reffs_inode *keep_content(struct history *h, uint64_t object)
{
	uint64_t live = maker_live(h, object);
	struct reffs_state *s = reffs_save(h->live);

	vec_push(&h->kept, s);
	return reffs_inode(s, live);
}

static uint64_t live_size(struct history *h, uint64_t object)
{
	struct reffs_attr a;
	int rc = vfs_getattr(h->live, maker_live(h, object), &a);

	assert(rc == 0);
	return a.size;
}

/* ---- changes of content ---- */

/* A change of content needs the object, and the change that cut it last. */
static void need_object(struct history_maker *m, uint64_t object)
{
	struct object *o = object_of(m->h, object);

	if (o->made_by != UINT32_MAX)
		maker_need(m, o->made_by);
	if (o->cut_by != UINT32_MAX)
		maker_need(m, o->cut_by);
}

/* Large ranges are cut into larger units, so that a change has not too many. */
static uint64_t unit_for(uint64_t unit, uint64_t from, uint64_t to)
{
	while ((to - from / unit * unit + unit - 1) / unit > MODEL_UNITS_MAX)
		unit *= 2;
	return unit;
}

static void content_add(struct history_maker *m, uint32_t change)
{
	struct object *o = object_of(m->h, m->h->changes.v[change].object);

	vec_push(&o->parts, change);
	vec_push(&o->waiting, change);
	o->touched = m->commit;
}

struct finding_after {
	const struct history *h;
	uint32_t after;
};

static bool note_after(void *ctx, uint64_t change)
{
	struct finding_after *f = ctx;
	const struct change *c = &f->h->changes.v[change];

	if (c->durable_at == UINT64_MAX)
		f->after = max(f->after, c->after);
	return true;
}

/* The change that gave a write in place its space, or the size that it is in, if that waits.
 */
static uint32_t after_of(struct history *h, uint64_t object, uint64_t from, uint64_t to)
{
	struct finding_after f = { .h = h };

	ranges_overlapping(&object_of(h, object)->fresh, from, to, note_after, &f);
	return f.after;
}

/*
 * Blocks are allocated when they are written back, later than every change of metadata so far; a
 * journal that keeps its order has those as well when it has this.
 */
static uint32_t data_add(struct history_maker *m, uint64_t object, uint64_t from, uint64_t to,
			 bool in_place, bool commits)
{
	struct history *h = m->h;
	uint64_t unit = unit_for(h->unit_size, from, to), first = from / unit * unit;
	uint32_t units = (uint32_t)((to - first + unit - 1) / unit);
	uint32_t after = in_place ? after_of(h, object, first, first + units * unit)
				  : CHANGE_AFTER_ALL;

	need_object(m, object);
	uint32_t n = maker_add(m, (struct change){ .kind = CHANGE_DATA,
						   .object = object,
						   .from = from,
						   .to = to,
						   .content = keep_content(h, object),
						   .unit_size = unit,
						   .units = units,
						   .after = after,
						   .commits = commits });
	content_add(m, n);
	return n;
}

/* A size that writes gave, where it does not wait for their data. */
static void size_add(struct history_maker *m, uint64_t object, uint64_t size)
{
	need_object(m, object);
	uint32_t n = maker_add(m, (struct change){ .kind = CHANGE_SIZE,
						   .object = object,
						   .to = size,
						   .after = CHANGE_AFTER_ALL,
						   .commits = true });
	content_add(m, n);
	vec_push(&m->sizes, n);
}

/* A size that was set is metadata; where that is durable at once it waits like data. */
static void resize_add(struct history_maker *m, uint64_t object, uint64_t size, bool moves)
{
	struct history *h = m->h;

	need_object(m, object);
	if (moves) /* everything is written before blocks are moved */
		maker_need_content(m, object, UINT32_MAX);
	maker_need_flushed(m);
	uint32_t n = maker_add(m, (struct change){ .kind = CHANGE_RESIZE,
						   .object = object,
						   .to = size,
						   .moves = moves,
						   .content = keep_content(h, object),
						   .ordered = h->profile->metadata,
						   .commits = true });
	content_add(m, n);
	object_of(h, object)->cut_by = n;
	if (h->profile->metadata)
		vec_push(&m->sizes, n);
}

static uint64_t block_up(uint64_t at)
{
	return (at + REFFS_PAGE - 1) / REFFS_PAGE * REFFS_PAGE;
}

/* The first block of [from, to) that the file does not have; UINT64_MAX: it has all. */
static uint64_t missing_block(struct history *h, uint64_t object, uint64_t from, uint64_t to)
{
	uint64_t start = from / REFFS_PAGE * REFFS_PAGE, size = live_size(h, object);
	uint64_t live = maker_live(h, object);

	if (start >= size)
		return start;
	/* Not SEEK_HOLE, which would go through all blocks up to the next hole. */
	for (uint64_t at = start; at < min(to, size); at += REFFS_PAGE)
		if (vfs_seek(h->live, live, at, SEEK_DATA) != (int64_t)at)
			return at;
	return to > block_up(size) ? block_up(size) : UINT64_MAX;
}

/* `missing`: the first of its blocks that the file did not have. */
static void written(struct history_maker *m, uint64_t object, uint64_t from, uint64_t to,
		    uint64_t size_before, uint64_t missing)
{
	bool grows = to > size_before, takes = missing < to;
	bool with_data = m->h->profile->size_with_data;

	if (grows && !with_data)
		size_add(m, object, to);
	uint32_t n = data_add(m, object, from, to, !grows && !takes, takes || (grows && with_data));
	if (grows || takes)
		ranges_add(&object_of(m->h, object)->fresh,
			   grows ? min(missing, size_before) : missing, takes ? block_up(to) : to,
			   n);
}

/* Blocks go, which is metadata like new ones; a later write there finds none. */
static void punched(struct history_maker *m, uint64_t object, uint64_t from, uint64_t to,
		    uint64_t size_before)
{
	if (to > size_before)
		written(m, object, from, to, size_before, UINT64_MAX);
	else
		data_add(m, object, from, to, false, true);
}

/* ---- calls ---- */

bool maker_write(struct history_maker *m, uint64_t object, const void *data, uint64_t from,
		 uint64_t len)
{
	uint64_t before = live_size(m->h, object), live = maker_live(m->h, object);
	uint64_t missing = missing_block(m->h, object, from, from + len);

	if (vfs_write(m->h->live, &reffs_root, live, data, from, len, 0) != (int64_t)len)
		return false;
	written(m, object, from, from + len, before, missing);
	return true;
}

bool maker_truncate(struct history_maker *m, uint64_t object, uint64_t size)
{
	struct vfs_setattr a = { .set = VFS_SET_SIZE, .size = size };

	if (size == live_size(m->h, object))
		return true;
	if (!size)
		object_of(m->h, object)->emptied = true;
	if (vfs_setattr(m->h->live, &reffs_root, maker_live(m->h, object), &a))
		return false;
	resize_add(m, object, size, false);
	return true;
}

bool maker_allocate(struct history_maker *m, uint64_t object, int mode, uint64_t from, uint64_t len)
{
	uint64_t before = live_size(m->h, object), live = maker_live(m->h, object);

	if (vfs_fallocate(m->h->live, &reffs_root, live, mode, from, len))
		return false;
	uint64_t after = live_size(m->h, object);
	if (mode & (FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE)) {
		resize_add(m, object, after, true);
	} else if (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) {
		uint64_t to = min(from + len, after);

		if (from < to)
			punched(m, object, from, to, before);
	} else if (after > before) {
		resize_add(m, object, after, false);
	}
	return true;
}
