/* SPDX-License-Identifier: MIT */
/*
 * history_build.c - makes crash states of a history: the durable part, which is kept for each point
 * where it grew, and the survivors on top.
 */
#include <errno.h>

#include "app/history_impl.h"
#include "base/util.h"
#include "fs/graft.h"

enum { KEEP_EACH = 4 }; /* survivors between kept states; a kept state must be copied to change */

struct building {
	struct history *h;
	uint64_t now;  /* the state has all changes that were durable before this event */
	bool settling; /* changes that become durable at it are put; otherwise survivors */
	const struct survivor *v;
	size_t n;
};

/*
 * Returns the end of older content that is put after a later size became durable: bytes that were
 * cut off do not come back. A size can become durable before an older write, a later write cannot.
 */
static uint64_t cut_at(const struct building *b, uint32_t change)
{
	const struct object *o = &b->h->objects.v[b->h->changes.v[change].object - REFFS_ROOT_INO];
	uint64_t end = UINT64_MAX;

	if (o->cut_by == UINT32_MAX || o->cut_by < change)
		return end;
	for (size_t i = o->parts.n; i > 0 && o->parts.v[i - 1] > change; i--) {
		const struct change *d = &b->h->changes.v[o->parts.v[i - 1]];

		if (d->kind == CHANGE_RESIZE && d->durable_at < b->now)
			end = min(end, d->to);
	}
	return end;
}

static void put_units(struct building *b, uint32_t change, const uint64_t *units)
{
	const struct change *c = &b->h->changes.v[change];
	uint64_t first = c->from / c->unit_size, end = cut_at(b, change);

	for (uint32_t i = 0; i < c->units;) {
		uint32_t j = i;

		while (j < c->units && (!units || units[j / 64] >> j % 64 & 1))
			j++;
		if (j > i)
			(void)graft_data(b->h->base, c->object, c->content,
					 min(end, (first + i) * c->unit_size),
					 min(end, (first + j) * c->unit_size));
		i = j + 1;
	}
}

static void put_content(struct building *b, uint32_t change, const uint64_t *units)
{
	const struct change *c = &b->h->changes.v[change];
	struct reffs *r = b->h->base;
	struct reffs_attr a;

	if (c->kind == CHANGE_DATA) {
		put_units(b, change, units);
	} else if (c->kind == CHANGE_SIZE) {
		struct reffs_state *s = reffs_save(r);
		const struct reffs_inode *i = reffs_inode(s, c->object);
		bool shorter = i && (reffs_attr(i, &a), a.size < c->to);

		reffs_state_unref(s);
		if (shorter)
			(void)graft_resize(r, c->object, c->to);
	} else if (c->moves) {
		(void)graft_resize(r, c->object, 0);
		(void)graft_data(r, c->object, c->content, 0, c->to);
		(void)graft_resize(r, c->object, c->to);
	} else {
		(void)graft_resize(r, c->object, c->to);
	}
}

static int make(struct history *h, uint64_t object, uint64_t dir, const char *name)
{
	const struct object *o = &h->objects.v[object - REFFS_ROOT_INO];
	struct graft_inode g = { object, o->type, o->mode, o->uid, o->gid, o->rdev, o->target };

	return graft_make(h->base, dir, name, &g);
}

static void put_part(struct building *b, uint32_t change, const uint64_t *units);

struct old_xattrs {
	struct reffs *r;
	uint64_t object;
};

static int put_old_xattr(void *ctx, const char *name, const void *value, size_t len)
{
	struct old_xattrs *x = ctx;

	return graft_xattr(x->r, x->object, name, value, len);
}

/* Puts an object from before the first call: its last name is lost, an older change gives one. */
static void put_old(struct building *b, uint64_t object)
{
	const struct reffs_inode *i = reffs_inode(b->h->before, object);
	struct old_xattrs x = { b->h->base, object };
	struct reffs_attr a;

	if (!i)
		return;
	reffs_attr(i, &a);
	(void)reffs_xattrs(i, put_old_xattr, &x);
	if (a.type == TREE_FILE) {
		(void)graft_data(x.r, object, i, 0, a.size);
		(void)graft_resize(x.r, object, a.size);
	}
}

/*
 * Puts the content and attributes of an object that has just got its first name: these may have
 * been durable before (a file was synced, its directory not), or have come before the name
 * (O_TMPFILE). Changes after the name in this same building follow by themselves.
 */
static void put_earlier(struct building *b, uint32_t maker)
{
	const struct change *c = &b->h->changes.v[maker];
	const struct object *o = &b->h->objects.v[c->object - REFFS_ROOT_INO];
	size_t k = 0;

	put_old(b, c->object);
	for (size_t i = 0; i < o->parts.n; i++) {
		uint32_t n = o->parts.v[i];
		const struct change *d = &b->h->changes.v[n];

		while (k < b->n && b->v[k].change < n)
			k++;
		if (d->durable_at < b->now || (b->settling && n < maker && d->durable_at == b->now))
			put_part(b, n, NULL);
		else if (n < maker && k < b->n && b->v[k].change == n)
			put_part(b, n, b->v[k].units);
	}
}

static void put_part(struct building *b, uint32_t change, const uint64_t *units)
{
	const struct change *c = &b->h->changes.v[change];
	struct reffs *r = b->h->base;

	if (c->kind == CHANGE_ATTR)
		(void)graft_attr(r, c->object, c->mode, c->uid, c->gid);
	else if (c->kind == CHANGE_XATTR)
		(void)graft_xattr(r, c->object, c->name, c->value, c->value_len);
	else
		put_content(b, change, units);
}

/* Puts a change. One that cannot be put (a write to a file that is missing) is not visible. */
static void put(struct building *b, uint32_t change, const uint64_t *units)
{
	const struct change *c = &b->h->changes.v[change];
	struct reffs *r = b->h->base;

	switch (c->kind) {
	case CHANGE_LINK:
	case CHANGE_MAKE: /* the syncs decide which name comes first */
		if (graft_link(r, c->dir, c->name, c->object) == -ENOENT &&
		    make(b->h, c->object, c->dir, c->name) == 0)
			put_earlier(b, change);
		break;
	case CHANGE_REMOVE:
		(void)graft_unlink(r, c->dir, c->name);
		break;
	case CHANGE_RENAME:
	case CHANGE_SWAP:
		(void)graft_rename(r, c->dir, c->name, c->dir2, c->name2, c->kind == CHANGE_SWAP);
		break;
	default:
		put_part(b, change, units);
	}
}

/* Puts the changes that become durable at the next event that makes any durable. */
static void extend_durable(struct history *h)
{
	uint64_t event = h->changes.v[h->settled.v[h->n_applied]].durable_at;
	struct building b = { .h = h, .now = event, .settling = true };

	reffs_restore(h->base, h->durable.n ? h->durable.v[h->durable.n - 1].state : h->before);
	for (; h->n_applied < h->settled.n; h->n_applied++) {
		uint32_t n = h->settled.v[h->n_applied];

		if (h->changes.v[n].durable_at != event)
			break;
		put(&b, n, NULL);
	}
	vec_push(&h->durable, (struct durable){ event, reffs_save(h->base) });
}

struct reffs_state *history_durable(struct history *h, uint64_t point, size_t *times)
{
	while (h->n_applied < h->settled.n &&
	       h->changes.v[h->settled.v[h->n_applied]].durable_at < point)
		extend_durable(h);
	*times = first_where(i, h->durable.n, h->durable.v[i].event >= point);
	return *times ? h->durable.v[*times - 1].state : h->before;
}

void history_forget_built(struct history *h, size_t beyond)
{
	while (h->built.n && vec_last(&h->built).n > beyond)
		reffs_state_unref(h->built.v[--h->built.n].state);
	if (h->last.n > beyond)
		h->last.n = beyond;
}

/* Restores the last state up to the first difference; returns how many survivors are in it. */
static size_t begin_like_last(struct history *h, uint64_t point, const struct survivor *v, size_t n)
{
	size_t same = 0, times;

	if (h->last_point == point)
		while (same < n && same < h->last.n && !v[same].units &&
		       v[same].change == h->last.v[same])
			same++;
	history_forget_built(h, same);
	h->last_point = point;
	if (!h->built.n) {
		reffs_restore(h->base, history_durable(h, point, &times));
		return 0;
	}
	reffs_restore(h->base, vec_last(&h->built).state);
	return vec_last(&h->built).n;
}

struct reffs_state *history_build(struct history *h, uint64_t point, const struct survivor *v,
				  size_t n)
{
	struct building b = { .h = h, .now = point, .v = v, .n = n };
	size_t done = begin_like_last(h, point, v, n);
	bool whole = true;

	h->last.n = done;
	for (size_t i = done; i < n; i++) {
		put(&b, v[i].change, v[i].units);
		whole = whole && !v[i].units;
		if (!whole)
			continue;
		vec_push(&h->last, v[i].change);
		if (h->last.n % KEEP_EACH == 0)
			vec_push(&h->built, (struct built){ h->last.n, reffs_save(h->base) });
	}
	return reffs_save(h->base);
}

struct reffs_state *history_object_state(struct history *h, uint64_t point,
					 struct reffs_state *from, uint64_t object,
					 const struct survivor *parts, size_t n)
{
	struct building b = { .h = h, .now = point };

	reffs_restore(h->base, from ? from : h->blank);
	if (!from) {
		int rc = make(h, object, REFFS_ROOT_INO, "x");

		assert(!rc);
		put_old(&b, object);
	}
	for (size_t i = 0; i < n; i++)
		put_part(&b, parts[i].change, parts[i].units);
	return reffs_save(h->base);
}
