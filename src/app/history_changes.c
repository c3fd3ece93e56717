/* SPDX-License-Identifier: MIT */
/*
 * history_changes.c - adds changes, with the needs of each, and tells when each becomes durable.
 *
 * fs/pending follows names and attributes by the rules of the profiles; an entry there has the
 * number of its change. This file follows the content of files, by object: a sync of a file makes
 * all of its content durable, and some syncs reach further.
 */
#include "app/history_impl.h"
#include "base/util.h"

/* ---- needs ---- */

void maker_need(struct history_maker *m, uint32_t change)
{
	if (m->h->changes.v[change].durable_at == UINT64_MAX)
		vec_push(&m->needs, change);
}

DEFINE_ORDER(by_number, uint32_t, order(*a, *b))

/* Moves m->needs into a change, sorted, each once. */
static void take_needs(struct history_maker *m, struct change *c)
{
	vec_sort_unique(&m->needs, by_number);
	c->n_needs = (uint32_t)m->needs.n;
	c->needs = NULL;
	if (c->n_needs) {
		c->needs = xmalloc(c->n_needs * sizeof(*c->needs));
		memcpy(c->needs, m->needs.v, c->n_needs * sizeof(*c->needs));
	}
	vec_clear(&m->needs);
}

void maker_need_content(struct history_maker *m, uint64_t object, uint32_t before)
{
	const struct object *o = object_of(m->h, object);

	for (size_t i = 0; i < o->waiting.n && o->waiting.v[i] < before; i++)
		maker_need(m, o->waiting.v[i]);
}

void maker_need_flushed(struct history_maker *m)
{
	for (size_t i = 0; i < m->flushing.n; i++)
		maker_need_content(m, m->flushing.v[i].object, m->flushing.v[i].before);
}

static void note_need(void *ctx, const struct pending_op *op)
{
	maker_need(ctx, (uint32_t)op->number);
}

/* ---- adding ---- */

uint32_t maker_add(struct history_maker *m, struct change c)
{
	struct history *h = m->h;

	c.event = m->event;
	c.durable_at = UINT64_MAX;
	if (!c.units)
		c.units = 1;
	c.first_unit = h->units;
	h->units += c.units;
	if (c.after == CHANGE_AFTER_ALL)
		c.after = (uint32_t)h->changes.n;
	take_needs(m, &c);
	vec_push(&h->changes, c);
	return (uint32_t)(h->changes.n - 1);
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

uint32_t maker_add_metadata(struct history_maker *m, struct change c)
{
	struct history *h = m->h;
	const struct object *o = object_of(h, c.object);
	/* For a sync, the first name of an O_TMPFILE file counts as its creation. */
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
		uint32_t n = maker_add(m, c);

		h->changes.v[n].durable_at = m->event;
		return n;
	}
	pending_add(m->pending, &op);
	pending_needs(m->pending, note_need, m);
	if (c.kind == CHANGE_RENAME && c.other && h->profile->replace_orders_data)
		maker_need_content(m, c.object, UINT32_MAX);
	maker_need_flushed(m);
	c.ordered = true;
	return maker_add(m, c);
}

/* ---- what becomes durable ---- */

static void settle(struct history_maker *m, uint32_t n)
{
	struct change *c = &m->h->changes.v[n];

	if (c->durable_at == UINT64_MAX)
		c->durable_at = m->event;
}

/* Makes all content of an object before change `before` durable. */
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

/* A commit of all metadata makes sizes, and files that were replaced by truncation, durable. */
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

	return any_of(i, o->waiting.n, m->h->changes.v[o->waiting.v[i]].durable_at == UINT64_MAX);
}

/*
 * True if content changed metadata that is not committed: for a sync of data alone a size, or new
 * space; otherwise a time is enough, which every write changes.
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

void maker_sync(struct history_maker *m, uint64_t object, bool data_only)
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
	/* A commit of all metadata includes the sizes and times of other files. */
	if (commits) {
		settle_sizes(m);
		m->commit++;
	}
}

void maker_sync_all(struct history_maker *m)
{
	for (size_t i = 0; i < m->h->objects.n; i++)
		settle_content(m, i + REFFS_ROOT_INO, UINT32_MAX);
	if (m->pending)
		pending_sync_all(m->pending, settle_metadata, m);
	settle_sizes(m);
	m->commit++;
}

void maker_closed(struct history_maker *m, uint64_t object)
{
	if (m->h->profile->truncate_flushes && object_of(m->h, object)->emptied &&
	    has_content(m, object))
		vec_push(&m->flushing, (struct flushing){ object, (uint32_t)m->h->changes.n });
}
