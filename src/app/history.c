/* SPDX-License-Identifier: MIT */
/*
 * history.c - makes the history of a trace. history_calls.c turns calls into changes; this file
 * adds the facts that depend on all of them.
 */
#include "app/history.h"

#include "app/history_impl.h"
#include "base/util.h"

void objects_by_ino_set(struct objects_by_ino *t, uint64_t ino, uint64_t object)
{
	uint32_t i = u64map_get(&t->places, ino);

	if (i != U64MAP_NONE) {
		t->objects.v[i] = object;
	} else if (ino) {
		u64map_add(&t->places, ino, (uint32_t)t->objects.n);
		vec_push(&t->objects, object);
	}
}

void objects_by_ino_release(struct objects_by_ino *t)
{
	u64map_release(&t->places);
	vec_release(&t->objects);
}

uint64_t maker_new_object(struct history_maker *m, const struct object *o)
{
	vec_push(&m->h->objects, *o);
	return m->h->objects.n - 1 + REFFS_ROOT_INO;
}

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
 * Removes the need of content for the change that made its file, if the file got another name, too:
 * the content may be visible by that. A file with one name needs its making to be visible.
 */
static void free_linked(struct history *h)
{
	vec_each(c, &h->changes) {
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
	const struct change *c = h->changes.v + h->oldest.v[point];

	*from = h->oldest.v[point];
	*to = *from + (uint32_t)first_where(i, h->changes.n - *from, c[i].event >= point);
}

static void nothing(void *ctx, const struct pending_op *op)
{
	(void)ctx;
	(void)op;
}

static void maker_release(struct history_maker *m)
{
	if (m->pending) {
		pending_cut(m->pending, NULL, nothing, nothing, NULL);
		pending_free(m->pending);
	}
	objects_by_ino_release(&m->objects);
	vec_release(&m->sizes);
	vec_release(&m->flushing);
	vec_release(&m->needs);
}

int history_new(const struct trace *t, const struct history_opts *opts, struct history *out,
		struct err *err)
{
	struct history h = { .trace = t,
			     .profile = opts->profile,
			     .unit_size = opts->unit_size ? opts->unit_size : 4096,
			     .first_point = opts->first_point,
			     .base = reffs_new(NULL),
			     .live = reffs_new(NULL) };
	struct history_maker m = { .h = &h, .commit = 1 };

	if (h.profile->metadata)
		m.pending = pending_new(h.profile);
	maker_new_object(&m, &(struct object){ .type = TREE_DIR,
					       .made = UINT64_MAX,
					       .made_by = UINT32_MAX,
					       .cut_by = UINT32_MAX });
	h.blank = reffs_save(h.base);
	int rc = maker_load(&m, opts, err);
	h.before = reffs_save(h.base);
	if (!rc)
		rc = maker_follow(&m, err);
	free_linked(&h);
	sort_settled(&h);
	find_oldest(&h);
	maker_release(&m);
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
