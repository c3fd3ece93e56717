/* SPDX-License-Identifier: MIT */
/*
 * history_build.c - crash states from a history: the durable part, which is kept for each point
 * where it grew, and the survivors on top.
 */
#include <errno.h>

#include "app/history.h"
#include "base/util.h"
#include "fs/graft.h"

struct building {
	struct history *h;
	uint64_t point;
	const struct survivor *v;
	size_t n;
};

static void put_units(struct building *b, const struct change *c, const uint64_t *units)
{
	uint64_t first = c->from / c->unit_size;

	for (uint32_t i = 0; i < c->units;) {
		uint32_t j = i;

		while (j < c->units && (!units || units[j / 64] >> j % 64 & 1))
			j++;
		if (j > i)
			(void)graft_data(b->h->base, c->object, c->content,
					 (first + i) * c->unit_size, (first + j) * c->unit_size);
		i = j + 1;
	}
}

static void put_content(struct building *b, const struct change *c, const uint64_t *units)
{
	struct reffs *r = b->h->base;
	struct reffs_attr a;

	if (c->kind == CHANGE_DATA) {
		put_units(b, c, units);
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

static int make(struct building *b, const struct change *c)
{
	const struct object *o = &b->h->objects.v[c->object - REFFS_ROOT_INO];
	struct graft_inode g = { c->object, o->type, o->mode, o->uid, o->gid, o->rdev, o->target };

	return graft_make(b->h->base, c->dir, c->name, &g);
}

/* What O_TMPFILE made and was written before it got a name. */
static void put_earlier_content(struct building *b, const struct change *c)
{
	const struct object *o = &b->h->objects.v[c->object - REFFS_ROOT_INO];
	size_t k = 0;

	for (size_t i = 0; i < o->data.n; i++) {
		const struct change *d = &b->h->changes.v[o->data.v[i]];

		if (d->event >= c->event)
			break;
		while (k < b->n && b->v[k].change < o->data.v[i])
			k++;
		if (change_is_durable(d, b->point))
			put_content(b, d, NULL);
		else if (k < b->n && b->v[k].change == o->data.v[i])
			put_content(b, d, b->v[k].units);
	}
}

static void put(struct building *b, const struct change *c, const uint64_t *units)
{
	struct reffs *r = b->h->base;

	switch (c->kind) {
	case CHANGE_MAKE:
		(void)make(b, c);
		break;
	case CHANGE_LINK:
		if (graft_link(r, c->dir, c->name, c->object) == -ENOENT && make(b, c) == 0)
			put_earlier_content(b, c);
		break;
	case CHANGE_REMOVE:
		(void)graft_unlink(r, c->dir, c->name);
		break;
	case CHANGE_RENAME:
	case CHANGE_SWAP:
		(void)graft_rename(r, c->dir, c->name, c->dir2, c->name2, c->kind == CHANGE_SWAP);
		break;
	case CHANGE_ATTR:
		(void)graft_attr(r, c->object, c->mode, c->uid, c->gid);
		break;
	case CHANGE_XATTR:
		(void)graft_xattr(r, c->object, c->name, c->value, c->value_len);
		break;
	default:
		put_content(b, c, units);
	}
}

/* The durable state from the end of `event` on, which is the next one after those that are kept. */
static void extend_durable(struct history *h, uint64_t event)
{
	struct building b = { .h = h, .point = event + 1 };

	reffs_restore(h->base, h->durable.n ? h->durable.v[h->durable.n - 1].state : h->before);
	for (size_t i = 0; i < h->changes.n && h->changes.v[i].event <= event; i++)
		if (h->changes.v[i].durable_at == event)
			put(&b, &h->changes.v[i], NULL);
	vec_push(&h->durable, (struct durable){ event, reffs_save(h->base) });
}

static struct reffs_state *durable_at(struct history *h, uint64_t point)
{
	struct reffs_state *s = h->before;
	size_t low = 0, high = h->durable.n;

	while (h->next_sync < h->syncs.n && h->syncs.v[h->next_sync] < point)
		extend_durable(h, h->syncs.v[h->next_sync++]);
	high = h->durable.n;
	while (low < high) {
		size_t mid = (low + high) / 2;

		if (h->durable.v[mid].event < point)
			low = mid + 1;
		else
			high = mid;
	}
	if (low)
		s = h->durable.v[low - 1].state;
	return s;
}

struct reffs_state *history_build(struct history *h, uint64_t point, const struct survivor *v,
				  size_t n)
{
	struct building b = { h, point, v, n };

	reffs_restore(h->base, durable_at(h, point));
	for (size_t i = 0; i < n; i++)
		put(&b, &h->changes.v[v[i].change], v[i].units);
	return reffs_save(h->base);
}
