/* SPDX-License-Identifier: MIT */
/*
 * history.c - from calls to changes, what they need, and when they became durable.
 *
 * Names and attributes are followed by fs/pending, which has the rules of the profiles; what waits
 * there is told apart by the number of its change. The content of files is followed here, by
 * object: a sync of a file makes all of its content durable, and some syncs reach further.
 *
 * Space. Which blocks a file has is what the live file says: each write that took one is durable or
 * waits. So a write that finds its block there is one in place, unless the one that took it still
 * waits, and then that is found in `fresh`.
 */
#include "app/history.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/history_impl.h"
#include "base/util.h"
#include "core/model.h"
#include "fs/vfs.h"

/* ---- objects and their content ---- */

uint64_t history_object(struct history_maker *m, const struct object *o)
{
	vec_push(&m->h->objects, *o);
	return m->h->objects.n - 1 + REFFS_ROOT_INO;
}

static struct object *object_of(struct history *h, uint64_t object)
{
	assert(object >= REFFS_ROOT_INO && object - REFFS_ROOT_INO < h->objects.n);
	return &h->objects.v[object - REFFS_ROOT_INO];
}

uint64_t history_live(struct history *h, uint64_t object)
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
	uint64_t live = history_live(h, object);
	struct reffs_state *s = reffs_save(h->live);

	vec_push(&h->kept, s);
	return reffs_inode(s, live);
}

static uint64_t live_size(struct history *h, uint64_t object)
{
	struct reffs_attr a;
	int rc = vfs_getattr(h->live, history_live(h, object), &a);

	assert(rc == 0);
	return a.size;
}

/* ---- changes ---- */

static void need(struct history_maker *m, uint32_t change)
{
	if (m->h->changes.v[change].durable_at == UINT64_MAX)
		vec_push(&m->needs, change);
}

static int compare_numbers(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Takes what was gathered in m->needs. */
static void take_needs(struct history_maker *m, struct change *c)
{
	size_t n = 0;

	if (m->needs.n > 1)
		qsort(m->needs.v, m->needs.n, sizeof(*m->needs.v), compare_numbers);
	for (size_t i = 0; i < m->needs.n; i++)
		if (n == 0 || m->needs.v[n - 1] != m->needs.v[i])
			m->needs.v[n++] = m->needs.v[i];
	c->n_needs = (uint32_t)n;
	c->needs = NULL;
	if (n) {
		c->needs = xmalloc(n * sizeof(*c->needs));
		memcpy(c->needs, m->needs.v, n * sizeof(*c->needs));
	}
	vec_clear(&m->needs);
}

/* For change_add(): all metadata before the change itself. */
#define AFTER_ALL UINT32_MAX

static uint32_t change_add(struct history_maker *m, struct change c)
{
	struct history *h = m->h;

	c.event = m->event;
	c.durable_at = UINT64_MAX;
	if (!c.units)
		c.units = 1;
	c.first_unit = h->units;
	h->units += c.units;
	if (c.after == AFTER_ALL)
		c.after = (uint32_t)h->changes.n;
	take_needs(m, &c);
	vec_push(&h->changes, c);
	return (uint32_t)(h->changes.n - 1);
}

/* All content of an object that was there before change `before`. */
static void need_content(struct history_maker *m, uint64_t object, uint32_t before)
{
	const struct object *o = object_of(m->h, object);

	for (size_t i = 0; i < o->waiting.n && o->waiting.v[i] < before; i++)
		need(m, o->waiting.v[i]);
}

static void need_flushed(struct history_maker *m)
{
	for (size_t i = 0; i < m->flushing.n; i++)
		need_content(m, m->flushing.v[i].object, m->flushing.v[i].before);
}

static void note_need(void *ctx, const struct pending_op *op)
{
	need(ctx, (uint32_t)op->number);
}

static enum pending_kind pending_kind_of(enum change_kind kind)
{
	switch (kind) {
	case CHANGE_MAKE:
		return PENDING_MAKE;
	case CHANGE_LINK:
		return PENDING_LINK;
	case CHANGE_REMOVE:
		return PENDING_REMOVE;
	case CHANGE_RENAME:
		return PENDING_RENAME;
	case CHANGE_SWAP:
		return PENDING_SWAP;
	case CHANGE_XATTR:
		return PENDING_XATTR;
	default:
		return PENDING_ATTR;
	}
}

/* A change of names or attributes. */
static uint32_t metadata_add(struct history_maker *m, struct change c)
{
	struct history *h = m->h;
	const struct object *o = object_of(h, c.object);
	/* The first name of a file made by O_TMPFILE is what makes it, for who syncs it. */
	bool makes = c.kind == CHANGE_LINK && o->unnamed && o->made_by == UINT32_MAX;
	struct pending_op op = {
		.kind = makes ? PENDING_MAKE : pending_kind_of(c.kind),
		.is_dir = o->type == TREE_DIR,
		.ino = c.object,
		.other = c.other,
		.slot = { { c.dir, c.name }, { c.dir2, c.name2 } },
		.xattr = c.kind == CHANGE_XATTR ? c.name : NULL,
		.number = h->changes.n,
		.time_ns = m->event,
	};

	if (!h->profile->metadata) {
		uint32_t n = change_add(m, c);

		h->changes.v[n].durable_at = m->event;
		return n;
	}
	pending_add(m->pending, &op);
	pending_needs(m->pending, note_need, m);
	if (c.kind == CHANGE_RENAME && c.other && h->profile->replace_orders_data)
		need_content(m, c.object, UINT32_MAX);
	need_flushed(m);
	c.ordered = true;
	return change_add(m, c);
}

/* ---- content ---- */

/* What a change of content needs: the object, and what cut it last. */
static void need_object(struct history_maker *m, uint64_t object)
{
	struct object *o = object_of(m->h, object);

	if (o->made_by != UINT32_MAX)
		need(m, o->made_by);
	if (o->cut_by != UINT32_MAX)
		need(m, o->cut_by);
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

/* Of a write in place: where its space, or the size that it is in, came from, if that still waits.
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
	uint32_t after = in_place ? after_of(h, object, first, first + units * unit) : AFTER_ALL;

	need_object(m, object);
	uint32_t n = change_add(m, (struct change){ .kind = CHANGE_DATA,
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
	uint32_t n = change_add(m, (struct change){ .kind = CHANGE_SIZE,
						    .object = object,
						    .to = size,
						    .after = AFTER_ALL,
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
		need_content(m, object, UINT32_MAX);
	need_flushed(m);
	uint32_t n = change_add(m, (struct change){ .kind = CHANGE_RESIZE,
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
	uint64_t live = history_live(h, object);

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

/* Blocks go, which is metadata like new ones; who writes there later finds none. */
static void punched(struct history_maker *m, uint64_t object, uint64_t from, uint64_t to,
		    uint64_t size_before)
{
	if (to > size_before)
		written(m, object, from, to, size_before, UINT64_MAX);
	else
		data_add(m, object, from, to, false, true);
}

/* ---- what becomes durable ---- */

static void settle(struct history_maker *m, uint32_t n)
{
	struct change *c = &m->h->changes.v[n];

	if (c->durable_at == UINT64_MAX)
		c->durable_at = m->event;
}

/* All content of an object that was there before change `before`. */
static void settle_content(struct history_maker *m, uint64_t object, uint32_t before)
{
	struct object *o = object_of(m->h, object);
	size_t kept = 0;

	for (size_t i = 0; i < o->waiting.n; i++)
		if (o->waiting.v[i] < before)
			settle(m, o->waiting.v[i]);
		else
			o->waiting.v[kept++] = o->waiting.v[i];
	o->waiting.n = kept;
	if (!kept)
		ranges_clear(&o->fresh);
}

/* What a commit of all metadata takes along: sizes, and files that were replaced by truncation. */
static void settle_sizes(struct history_maker *m)
{
	for (size_t i = 0; i < m->sizes.n; i++) {
		struct change *c = &m->h->changes.v[m->sizes.v[i]];

		if (c->moves)
			settle_content(m, c->object, m->sizes.v[i]);
		settle(m, m->sizes.v[i]);
	}
	vec_clear(&m->sizes);
	for (size_t i = 0; i < m->flushing.n; i++) {
		settle_content(m, m->flushing.v[i].object, m->flushing.v[i].before);
		object_of(m->h, m->flushing.v[i].object)->emptied = false;
	}
	vec_clear(&m->flushing);
}

static void settle_metadata(void *ctx, const struct pending_op *op)
{
	struct history_maker *m = ctx;
	struct change *c = &m->h->changes.v[op->number];

	settle(m, (uint32_t)op->number);
	if (c->kind == CHANGE_RENAME && c->other && m->h->profile->replace_orders_data)
		settle_content(m, c->object, (uint32_t)op->number);
}

static bool has_content(struct history_maker *m, uint64_t object)
{
	const struct object *o = object_of(m->h, object);

	for (size_t i = 0; i < o->waiting.n; i++)
		if (m->h->changes.v[o->waiting.v[i]].durable_at == UINT64_MAX)
			return true;
	return false;
}

/*
 * Whether content changed metadata that no commit has: for a sync of data alone a size, or new
 * space; else its time is enough, which every write changes.
 */
static bool has_metadata(struct history_maker *m, uint64_t object, bool data_only)
{
	const struct object *o = object_of(m->h, object);

	if (!data_only)
		return o->touched == m->commit || has_content(m, object);
	for (size_t i = 0; i < o->waiting.n; i++) {
		const struct change *c = &m->h->changes.v[o->waiting.v[i]];

		if (c->commits && c->durable_at == UINT64_MAX)
			return true;
	}
	return false;
}

static void synced(struct history_maker *m, uint64_t object, bool data_only)
{
	const struct profile *p = m->h->profile;
	bool is_dir = object_of(m->h, object)->type == TREE_DIR;
	bool content = has_metadata(m, object, data_only);
	bool commits = m->pending && (is_dir ? p->dir : p->file) == PROFILE_ALL &&
		       pending_commits(m->pending, object, is_dir, data_only, content);

	settle_content(m, object, UINT32_MAX);
	object_of(m->h, object)->emptied = false;
	if (!m->pending)
		return;
	pending_sync(m->pending, object, is_dir, data_only, content, settle_metadata, m);
	/* A commit of everything takes the sizes and times of other files along. */
	if (commits) {
		settle_sizes(m);
		m->commit++;
	}
}

static void synced_all(struct history_maker *m)
{
	for (size_t i = 0; i < m->h->objects.n; i++)
		settle_content(m, i + REFFS_ROOT_INO, UINT32_MAX);
	if (m->pending)
		pending_sync_all(m->pending, settle_metadata, m);
	settle_sizes(m);
	m->commit++;
}

/* ---- calls ---- */

static uint64_t known(struct history_maker *m, uint64_t ino)
{
	uint64_t object = numbers_get(&m->objects, ino);

	if (!object)
		m->h->skipped++;
	return object;
}

static void made(struct history_maker *m, const struct posix_event *e)
{
	static const enum tree_type types[] = { [S_IFIFO >> 12] = TREE_FIFO,
						[S_IFCHR >> 12] = TREE_CHAR,
						[S_IFBLK >> 12] = TREE_BLOCK,
						[S_IFSOCK >> 12] = TREE_SOCKET };
	struct object o = { .type = TREE_FILE,
			    .mode = e->arg & 07777,
			    .uid = e->uid,
			    .gid = e->gid,
			    .made = m->event,
			    .unnamed = e->op == POSIX_TMPFILE,
			    .made_by = UINT32_MAX,
			    .cut_by = UINT32_MAX };

	if (e->op == POSIX_MKDIR) {
		o.type = TREE_DIR;
	} else if (e->op == POSIX_SYMLINK) {
		o.type = TREE_SYMLINK;
		o.mode = 0777;
		vec_push(&m->h->strings, xmemdupz(e->payload ? e->payload : "", e->payload_len));
		o.target = vec_last(&m->h->strings);
	} else if (e->op == POSIX_MKNOD) {
		unsigned type = (e->arg & S_IFMT) >> 12;

		if (type < ARRAY_SIZE(types) && types[type])
			o.type = types[type];
		o.rdev = e->offset;
	}
	uint64_t dir = o.unnamed ? REFFS_ROOT_INO : known(m, e->dir);
	if (!dir || !e->ino)
		return;
	if (object_of(m->h, dir)->now_mode & S_ISGID) {
		o.gid = object_of(m->h, dir)->now_gid;
		o.mode |= o.type == TREE_DIR ? S_ISGID : 0;
	}
	o.now_mode = o.mode;
	o.now_gid = o.gid;
	uint64_t object = history_object(m, &o);
	numbers_set(&m->objects, e->ino, object);
	if (o.unnamed)
		return;
	uint32_t n = metadata_add(
		m, (struct change){
			   .kind = CHANGE_MAKE, .object = object, .dir = dir, .name = e->name });
	object_of(m->h, object)->made_by = n;
	object_of(m->h, object)->names++;
}

static void linked(struct history_maker *m, const struct posix_event *e)
{
	uint64_t object = known(m, e->ino), dir = known(m, e->dir);

	if (!object || !dir)
		return;
	uint32_t n = metadata_add(
		m, (struct change){
			   .kind = CHANGE_LINK, .object = object, .dir = dir, .name = e->name });
	struct object *o = object_of(m->h, object);
	if (o->unnamed && o->made_by == UINT32_MAX)
		o->made_by = n;
	o->names++;
}

static void removed(struct history_maker *m, const struct posix_event *e)
{
	uint64_t object = known(m, e->ino), dir = known(m, e->dir);

	if (object && dir)
		metadata_add(m, (struct change){ .kind = CHANGE_REMOVE,
						 .object = object,
						 .dir = dir,
						 .name = e->name });
}

static void renamed(struct history_maker *m, const struct posix_event *e)
{
	uint64_t object = known(m, e->ino), dir = known(m, e->dir), dir2 = known(m, e->dir2);
	uint64_t other = e->ino2 ? known(m, e->ino2) : 0;

	if (object && dir && dir2 && object != other)
		metadata_add(m, (struct change){ .kind = e->arg & RENAME_EXCHANGE ? CHANGE_SWAP
										  : CHANGE_RENAME,
						 .object = object,
						 .other = other,
						 .dir = dir,
						 .name = e->name,
						 .dir2 = dir2,
						 .name2 = e->name2 });
}

static void wrote(struct history_maker *m, const struct posix_event *e)
{
	uint64_t object = known(m, e->ino);
	uint64_t len = min((uint64_t)e->result, (uint64_t)e->payload_len);

	if (!object || !len)
		return;
	uint64_t before = live_size(m->h, object), live = history_live(m->h, object);
	uint64_t missing = missing_block(m->h, object, e->offset, e->offset + len);
	if (vfs_write(m->h->live, &reffs_root, live, e->payload, e->offset, len, 0) !=
	    (int64_t)len) {
		m->h->skipped++;
		return;
	}
	m->h->maps |= e->flags & POSIX_PAGE;
	written(m, object, e->offset, e->offset + len, before, missing);
	if (!(e->flags & (POSIX_SYNC | POSIX_DSYNC)))
		return;
	/* While the call runs, what it wrote is in flight; a crash after this event is one then. */
	m->event++;
	synced(m, object, !(e->flags & POSIX_SYNC));
	m->event--;
}

static void truncated(struct history_maker *m, const struct posix_event *e)
{
	uint64_t object = known(m, e->ino);
	struct vfs_setattr a = { .set = VFS_SET_SIZE, .size = e->offset };

	if (!object || e->offset == live_size(m->h, object))
		return;
	if (!e->offset)
		object_of(m->h, object)->emptied = true;
	if (vfs_setattr(m->h->live, &reffs_root, history_live(m->h, object), &a)) {
		m->h->skipped++;
		return;
	}
	resize_add(m, object, e->offset, false);
}

/* The last descriptor of an open is closed. */
static void released(struct history_maker *m, const struct posix_event *e)
{
	uint64_t object = numbers_get(&m->objects, e->ino);

	if (!m->h->profile->truncate_flushes || !object || !object_of(m->h, object)->emptied ||
	    !has_content(m, object))
		return;
	vec_push(&m->flushing, (struct flushing){ object, (uint32_t)m->h->changes.n });
}

static void allocated(struct history_maker *m, const struct posix_event *e)
{
	uint64_t object = known(m, e->ino);
	int mode = (int)e->arg;

	if (!object)
		return;
	uint64_t before = live_size(m->h, object);
	if (vfs_fallocate(m->h->live, &reffs_root, history_live(m->h, object), mode, e->offset,
			  e->len)) {
		m->h->skipped++;
		return;
	}
	uint64_t after = live_size(m->h, object);
	if (mode & (FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE))
		resize_add(m, object, after, true);
	else if (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) {
		uint64_t to = min(e->offset + e->len, after);

		if (e->offset < to)
			punched(m, object, e->offset, to, before);
	} else if (after > before) {
		resize_add(m, object, after, false);
	}
}

static void part_add(struct history_maker *m, struct change c)
{
	uint32_t n = metadata_add(m, c);

	vec_push(&object_of(m->h, c.object)->parts, n);
}

static void attributed(struct history_maker *m, const struct posix_event *e)
{
	uint64_t object = known(m, e->ino);
	struct change c = { .kind = CHANGE_ATTR,
			    .object = object,
			    .mode = UINT32_MAX,
			    .uid = UINT32_MAX,
			    .gid = UINT32_MAX };

	if (!object)
		return;
	/* A change of owner has the mode after it, with its type, if that is known. */
	if (e->op == POSIX_CHMOD || e->arg)
		c.mode = e->arg & 07777;
	if (e->op == POSIX_CHOWN) {
		c.uid = (uint32_t)e->offset;
		c.gid = (uint32_t)e->len;
	}
	struct object *o = object_of(m->h, object);
	if (c.mode != UINT32_MAX)
		o->now_mode = c.mode;
	if (c.gid != UINT32_MAX)
		o->now_gid = c.gid;
	part_add(m, c);
}

static void xattributed(struct history_maker *m, const struct posix_event *e)
{
	uint64_t object = known(m, e->ino);
	const void *value = e->payload ? e->payload : "";

	if (object && e->name2)
		part_add(m, (struct change){ .kind = CHANGE_XATTR,
					     .object = object,
					     .name = e->name2,
					     .value = e->op == POSIX_SETXATTR ? value : NULL,
					     .value_len = e->payload_len });
}

static void sync_object(struct history_maker *m, const struct posix_event *e)
{
	uint64_t object = known(m, e->ino);

	if (object)
		synced(m, object, e->op == POSIX_FDATASYNC);
}

static void sync_everything(struct history_maker *m, const struct posix_event *e)
{
	(void)e;
	synced_all(m);
}

/* Says which number in the trace a thing has that was there before. */
static void looked_up(struct history_maker *m, const struct posix_event *e)
{
	uint64_t dir = numbers_get(&m->objects, e->dir);
	const struct reffs_inode *d = dir ? reffs_inode(m->h->before, dir) : NULL;
	uint64_t object = d && e->name && !m->h->changes.n ? reffs_lookup(d, e->name) : 0;

	if (object)
		numbers_set(&m->objects, e->ino, object);
}

static void (*const calls[POSIX_OP_END])(struct history_maker *, const struct posix_event *) = {
	[POSIX_LOOKUP] = looked_up,
	[POSIX_RELEASE] = released,
	[POSIX_CREATE] = made,
	[POSIX_MKNOD] = made,
	[POSIX_MKDIR] = made,
	[POSIX_SYMLINK] = made,
	[POSIX_TMPFILE] = made,
	[POSIX_LINK] = linked,
	[POSIX_UNLINK] = removed,
	[POSIX_RMDIR] = removed,
	[POSIX_RENAME] = renamed,
	[POSIX_WRITE] = wrote,
	[POSIX_TRUNCATE] = truncated,
	[POSIX_FALLOCATE] = allocated,
	[POSIX_CHMOD] = attributed,
	[POSIX_CHOWN] = attributed,
	[POSIX_SETXATTR] = xattributed,
	[POSIX_REMOVEXATTR] = xattributed,
	[POSIX_FSYNC] = sync_object,
	[POSIX_FDATASYNC] = sync_object,
	[POSIX_FSYNCDIR] = sync_object,
	[POSIX_MSYNC] = sync_object,
	[POSIX_SYNCFS] = sync_everything,
};

/* What a trace from outside may lack. */
static bool has_names(const struct posix_event *e)
{
	switch (e->op) {
	case POSIX_CREATE:
	case POSIX_MKNOD:
	case POSIX_MKDIR:
	case POSIX_SYMLINK:
	case POSIX_LINK:
	case POSIX_UNLINK:
	case POSIX_RMDIR:
		return e->name;
	case POSIX_RENAME:
		return e->name && e->name2;
	default:
		return true;
	}
}

static int follow(struct history_maker *m, struct err *err)
{
	const struct trace *t = m->h->trace;

	for (m->event = 0; m->event < t->events.n; m->event++) {
		const struct event *ev = &t->events.v[m->event];
		struct posix_event e;

		if (ev->kind != EV_POSIX)
			continue;
		int rc = posix_decode(ev, &e, err);
		if (rc)
			return rc;
		if (e.result < 0 || !calls[e.op])
			continue;
		if (has_names(&e))
			calls[e.op](m, &e);
		else
			m->h->skipped++;
	}
	return 0;
}

/* ---- life ---- */

static int by_time(const void *a, const void *b, void *ctx)
{
	const struct history *h = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	uint64_t at_x = h->changes.v[x].durable_at, at_y = h->changes.v[y].durable_at;

	return at_x != at_y ? (at_x > at_y) - (at_x < at_y) : (x > y) - (x < y);
}

static void sort_settled(struct history *h)
{
	for (uint32_t i = 0; i < h->changes.n; i++)
		if (h->changes.v[i].durable_at != UINT64_MAX)
			vec_push(&h->settled, i);
	if (h->settled.n)
		qsort_r(h->settled.v, h->settled.n, sizeof(*h->settled.v), by_time, h);
}

/*
 * Content needs the change that made its file, or it is not seen. If the file was given another
 * name as well, it may be seen by that.
 */
static void free_linked(struct history *h)
{
	for (size_t i = 0; i < h->changes.n; i++) {
		struct change *c = &h->changes.v[i];
		const struct object *o = object_of(h, c->object);
		uint32_t kept = 0;

		if (o->names < 2 || c->kind < CHANGE_DATA)
			continue;
		for (uint32_t j = 0; j < c->n_needs; j++)
			if (c->needs[j] != o->made_by)
				c->needs[kept++] = c->needs[j];
		c->n_needs = kept;
	}
}

static void find_oldest(struct history *h)
{
	uint32_t at = 0;

	for (uint64_t point = 0; point <= h->trace->events.n; point++) {
		while (at < h->changes.n && h->changes.v[at].event < point &&
		       change_is_durable(&h->changes.v[at], point))
			at++;
		vec_push(&h->oldest, at);
	}
}

void history_window(const struct history *h, uint64_t point, uint32_t *from, uint32_t *to)
{
	uint32_t low = h->oldest.v[point], high = (uint32_t)h->changes.n;

	*from = low;
	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (h->changes.v[mid].event < point)
			low = mid + 1;
		else
			high = mid;
	}
	*to = low;
}

static void nothing(void *ctx, const struct pending_op *op)
{
	(void)ctx;
	(void)op;
}

int history_new(const struct trace *t, const struct history_opts *opts, struct history *out,
		struct err *err)
{
	struct history h = { .trace = t,
			     .profile = opts->profile,
			     .unit_size = opts->unit_size ? opts->unit_size : 4096,
			     .base = reffs_new(NULL),
			     .live = reffs_new(NULL) };
	struct history_maker m = { .h = &h, .commit = 1 };

	if (h.profile->metadata)
		m.pending = pending_new(h.profile);
	history_object(&m, &(struct object){ .type = TREE_DIR,
					     .made = UINT64_MAX,
					     .made_by = UINT32_MAX,
					     .cut_by = UINT32_MAX });
	h.blank = reffs_save(h.base);
	int rc = history_load(&m, opts, err);
	h.before = reffs_save(h.base);
	if (!rc)
		rc = follow(&m, err);
	free_linked(&h);
	sort_settled(&h);
	find_oldest(&h);
	if (m.pending) {
		pending_cut(m.pending, NULL, nothing, nothing, NULL);
		pending_free(m.pending);
	}
	numbers_release(&m.objects);
	vec_release(&m.sizes);
	vec_release(&m.flushing);
	vec_release(&m.needs);
	if (rc)
		history_release(&h);
	else
		*out = h;
	return rc;
}

void history_release(struct history *h)
{
	for (size_t i = 0; i < h->changes.n; i++)
		free(h->changes.v[i].needs);
	vec_release(&h->changes);
	for (size_t i = 0; i < h->objects.n; i++) {
		vec_release(&h->objects.v[i].parts);
		vec_release(&h->objects.v[i].waiting);
		ranges_release(&h->objects.v[i].fresh);
	}
	vec_release(&h->objects);
	vec_release(&h->settled);
	vec_release(&h->oldest);
	history_forget_built(h, 0);
	vec_release(&h->built);
	vec_release(&h->last);
	for (size_t i = 0; i < h->strings.n; i++)
		free(h->strings.v[i]);
	vec_release(&h->strings);
	for (size_t i = 0; i < h->kept.n; i++)
		reffs_state_unref(h->kept.v[i]);
	vec_release(&h->kept);
	for (size_t i = 0; i < h->durable.n; i++)
		reffs_state_unref(h->durable.v[i].state);
	vec_release(&h->durable);
	reffs_state_unref(h->before);
	reffs_state_unref(h->blank);
	reffs_free(h->base);
	reffs_free(h->live);
	*h = (struct history){ 0 };
}
