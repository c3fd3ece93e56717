/* SPDX-License-Identifier: MIT */
/* reffs_pool.c - keeps, finds and drops the saved states of a pool. */
#include "fs/reffs_pool.h"

#include "fs/reffs_impl.h"

struct entry {
	struct map_node node;
	struct map_num key;
	uint64_t number;
	struct reffs_state *state;
};

static struct map_node *entry_copy(const struct map_node *leaf)
{
	(void)leaf;
	assert(!"a pool has one owner");
	return NULL;
}

static void entry_free(struct map_node *leaf)
{
	reffs_state_unref(container_of(leaf, struct entry, node)->state);
	map_node_free(leaf);
}

static const struct map_kind entry_kind = { offsetof(struct entry, key), entry_copy, entry_free };

static struct entry *find(const struct reffs_pool *p, uint64_t key)
{
	struct map_num num = map_num(key);
	const struct map_node *leaf = map_find(p->map, num.b, sizeof(num));

	return leaf ? container_of(leaf, struct entry, node) : NULL;
}

void reffs_pool_release(struct reffs_pool *p)
{
	map_unref(p->map);
	*p = (struct reffs_pool){ 0 };
}

void reffs_pool_put(struct reffs_pool *p, uint64_t key, struct reffs_state *s)
{
	struct entry *e = find(p, key);

	s->refs++;
	if (e) {
		reffs_state_unref(e->state);
		e->state = s;
		return;
	}
	e = map_node_alloc(sizeof(*e), &entry_kind, sizeof(e->key));
	e->key = map_num(key);
	e->number = key;
	e->state = s;
	map_insert(&p->map, &e->node);
	p->n++;
}

struct reffs_state *reffs_pool_get(const struct reffs_pool *p, uint64_t key)
{
	const struct entry *e = find(p, key);

	return e ? e->state : NULL;
}

void reffs_pool_drop(struct reffs_pool *p, uint64_t key)
{
	struct map_num num = map_num(key);

	if (!find(p, key))
		return;
	map_remove(&p->map, num.b, sizeof(num));
	p->n--;
}

struct each_call {
	int (*state)(void *ctx, uint64_t key, struct reffs_state *s);
	void *ctx;
};

static int call_state(void *ctx, const struct map_node *leaf)
{
	const struct each_call *call = ctx;
	const struct entry *e = container_of(leaf, struct entry, node);

	return call->state(call->ctx, e->number, e->state);
}

int reffs_pool_each(const struct reffs_pool *p,
		    int (*state)(void *ctx, uint64_t key, struct reffs_state *s), void *ctx)
{
	struct each_call call = { state, ctx };

	return map_each(p->map, call_state, &call);
}

void reffs_skip_inos(struct reffs *r, uint64_t next)
{
	r->next_ino = max(r->next_ino, next);
}
