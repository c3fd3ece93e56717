/* SPDX-License-Identifier: MIT */
/*
 * history_calls.c - the calls of a trace: the changes of each call, and recorded writes that are
 * parts of one call.
 */
#include <linux/fs.h>
#include <stdio.h>
#include <sys/stat.h>

#include "app/history_impl.h"
#include "base/util.h"

static uint64_t known(struct history_maker *m, uint64_t ino)
{
	uint64_t object = objects_by_ino_get(&m->objects, ino);

	if (!object)
		m->h->skipped++;
	return object;
}

static struct object new_object(struct history_maker *m, const struct posix_event *e)
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
	return o;
}

static void made(struct history_maker *m, const struct posix_event *e)
{
	struct object o = new_object(m, e);
	uint64_t dir = o.unnamed ? REFFS_ROOT_INO : known(m, e->dir);
	if (!dir || !e->ino)
		return;
	if (object_of(m->h, dir)->now_mode & S_ISGID) {
		o.gid = object_of(m->h, dir)->now_gid;
		o.mode |= o.type == TREE_DIR ? S_ISGID : 0;
	}
	o.now_mode = o.mode;
	o.now_gid = o.gid;
	uint64_t object = maker_new_object(m, &o);
	objects_by_ino_set(&m->objects, e->ino, object);
	if (o.unnamed)
		return;
	uint32_t n = maker_add_metadata(
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
	uint32_t n = maker_add_metadata(
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
		maker_add_metadata(m, (struct change){ .kind = CHANGE_REMOVE,
						       .object = object,
						       .dir = dir,
						       .name = e->name });
}

static void renamed(struct history_maker *m, const struct posix_event *e)
{
	uint64_t object = known(m, e->ino), dir = known(m, e->dir), dir2 = known(m, e->dir2);
	uint64_t other = e->ino2 ? known(m, e->ino2) : 0;

	if (object && dir && dir2 && object != other)
		maker_add_metadata(m, (struct change){ .kind = e->arg & RENAME_EXCHANGE
								       ? CHANGE_SWAP
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
	if (!maker_write(m, object, e->payload, e->offset, len)) {
		m->h->skipped++;
		return;
	}
	m->h->maps |= e->flags & POSIX_PAGE;
	if (!(e->flags & (POSIX_SYNC | POSIX_DSYNC)))
		return;
	/* While the call runs, its data is in flight; a crash after this event is still in it. */
	m->event++;
	maker_sync(m, object, !(e->flags & POSIX_SYNC));
	m->event--;
}

static void truncated(struct history_maker *m, const struct posix_event *e)
{
	uint64_t object = known(m, e->ino);

	if (object && !maker_truncate(m, object, e->offset))
		m->h->skipped++;
}

static void allocated(struct history_maker *m, const struct posix_event *e)
{
	uint64_t object = known(m, e->ino);

	if (object && !maker_allocate(m, object, (int)e->arg, e->offset, e->len))
		m->h->skipped++;
}

/* Handles the close of the last descriptor of an open. */
static void released(struct history_maker *m, const struct posix_event *e)
{
	uint64_t object = objects_by_ino_get(&m->objects, e->ino);

	if (object)
		maker_closed(m, object);
}

static void part_add(struct history_maker *m, struct change c)
{
	uint32_t n = maker_add_metadata(m, c);

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
	/* A change of owner has the mode after it, with the type, if that is known. */
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
		maker_sync(m, object, e->op == POSIX_FDATASYNC);
}

static void sync_everything(struct history_maker *m, const struct posix_event *e)
{
	(void)e;
	maker_sync_all(m);
}

/* Sets the trace's number of an object that existed before. */
static void looked_up(struct history_maker *m, const struct posix_event *e)
{
	uint64_t dir = objects_by_ino_get(&m->objects, e->dir);
	const struct reffs_inode *d = dir ? reffs_inode(m->h->before, dir) : NULL;
	uint64_t object = d && e->name && !m->h->changes.n ? reffs_lookup(d, e->name) : 0;

	if (object)
		objects_by_ino_set(&m->objects, e->ino, object);
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

/* True if an event has the names that it needs, which a trace from outside may lack. */
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

int maker_follow(struct history_maker *m, struct err *err)
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

/*
 * Parts of one call. The kernel gives a FUSE server one write(2) in several requests: a request
 * ends at the end of the first page if the call does not begin at the start of a page, and after 1
 * MiB. No other call can come between them. Two calls of an application can look the same, if the
 * first ends exactly there; they then count as one.
 */
enum { PAGE_BYTES = 4096, REQUEST_MAX = 1 << 20 };

static bool decode_write(const struct trace *t, uint64_t event, struct posix_event *out)
{
	return event < t->events.n && t->events.v[event].kind == EV_POSIX &&
	       !posix_decode(&t->events.v[event], out, NULL) && out->op == POSIX_WRITE &&
	       out->result > 0 && !(out->flags & POSIX_PAGE);
}

static bool may_go_on(const struct posix_event *e)
{
	uint64_t len = (uint64_t)e->result, end = e->offset + len;

	return end % PAGE_BYTES == 0 && (e->offset % PAGE_BYTES || len == REQUEST_MAX);
}

bool history_same_call(const struct history *h, uint64_t first, uint64_t second)
{
	const struct trace *t = h->trace;
	struct posix_event part, next;

	if (first >= second || !decode_write(t, first, &part))
		return first == second;
	for (uint64_t i = first + 1; i <= second && i < t->events.n; i++) {
		if (t->events.v[i].kind != EV_POSIX || posix_decode(&t->events.v[i], &next, NULL) ||
		    next.tid != part.tid)
			continue;
		if (!decode_write(t, i, &next) || next.ino != part.ino || !may_go_on(&part) ||
		    next.offset != part.offset + (uint64_t)part.result)
			return false;
		part = next;
		if (i == second)
			return true;
	}
	return false;
}
