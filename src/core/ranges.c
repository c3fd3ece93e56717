/* SPDX-License-Identifier: MIT */
/*
 * ranges.c - an interval tree: a treap, ordered by the begin of ranges and then by number; each
 * node knows the highest end of a range in its subtree.
 *
 * R1: a node stands after all nodes of its left subtree and before those of its right one.
 * R2: no node has a higher priority than its parent. Priorities come from the numbers, so that the
 *     shape depends on the content of the tree alone, not on its history.
 * R3: to_max is the largest `to` of a node and all below it.
 */
#include "core/ranges.h"

void ranges_release(struct ranges *r)
{
	vec_release(&r->nodes);
	*r = (struct ranges)RANGES_INIT;
}

void ranges_clear(struct ranges *r)
{
	r->nodes.n = min(r->nodes.n, (size_t)1);
	r->root = r->free = 0;
	r->n = 0;
}

void ranges_copy(const struct ranges *from, struct ranges *to)
{
	*to = *from;
	to->nodes.v = NULL;
	to->nodes.n = to->nodes.cap = 0;
	if (!from->nodes.n)
		return;
	vec_reserve(&to->nodes, from->nodes.n);
	memcpy(to->nodes.v, from->nodes.v, from->nodes.n * sizeof(*from->nodes.v));
	to->nodes.n = from->nodes.n;
}

/* A number that looks random (the finaliser of splitmix64). */
static uint64_t priority(uint64_t id)
{
	id = (id ^ (id >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	id = (id ^ (id >> 27)) * UINT64_C(0x94d049bb133111eb);
	return id ^ (id >> 31);
}

static struct ranges_node *node_at(struct ranges *r, uint32_t i)
{
	assert(i > 0 && i < r->nodes.n);
	r->steps++;
	return &r->nodes.v[i];
}

/* Restores R3 of one node. */
static void pull(struct ranges *r, uint32_t i)
{
	struct ranges_node *n = &r->nodes.v[i];

	n->to_max = n->to;
	if (n->left)
		n->to_max = max(n->to_max, r->nodes.v[n->left].to_max);
	if (n->right)
		n->to_max = max(n->to_max, r->nodes.v[n->right].to_max);
}

static bool before(const struct ranges_node *n, uint64_t from, uint64_t id)
{
	return n->from < from || (n->from == from && n->id < id);
}

/* Cuts a tree into the nodes before a place and the others. */
static void split(struct ranges *r, uint32_t tree, uint64_t from, uint64_t id, uint32_t *left,
		  uint32_t *right)
{
	if (!tree) {
		*left = *right = 0;
		return;
	}
	struct ranges_node *n = node_at(r, tree);
	if (before(n, from, id)) {
		split(r, n->right, from, id, &n->right, right);
		*left = tree;
	} else {
		split(r, n->left, from, id, left, &n->left);
		*right = tree;
	}
	pull(r, tree);
}

/* Joins two trees, of which the first stands before the second. */
static uint32_t join(struct ranges *r, uint32_t a, uint32_t b)
{
	if (!a || !b)
		return a ? a : b;
	struct ranges_node *x = node_at(r, a), *y = node_at(r, b);
	if (priority(x->id) > priority(y->id)) {
		x->right = join(r, x->right, b);
		pull(r, a);
		return a;
	}
	y->left = join(r, a, y->left);
	pull(r, b);
	return b;
}

static uint32_t new_node(struct ranges *r)
{
	if (!r->nodes.n)
		vec_push(&r->nodes, (struct ranges_node){ 0 });
	if (r->free) {
		uint32_t i = r->free;

		r->free = r->nodes.v[i].left;
		return i;
	}
	assert(r->nodes.n < UINT32_MAX);
	vec_push(&r->nodes, (struct ranges_node){ 0 });
	return (uint32_t)(r->nodes.n - 1);
}

void ranges_add(struct ranges *r, uint64_t from, uint64_t to, uint64_t id)
{
	uint32_t i = new_node(r), *at = &r->root;

	assert(from < to);
	/* Down to the first node that may stand below the new one (R2). */
	while (*at && priority(node_at(r, *at)->id) >= priority(id)) {
		struct ranges_node *n = &r->nodes.v[*at];

		assert(n->id != id);
		n->to_max = max(n->to_max, to);
		at = before(n, from, id) ? &n->right : &n->left;
	}
	uint32_t left = 0, right = 0;
	split(r, *at, from, id, &left, &right);
	r->nodes.v[i] = (struct ranges_node){
		.from = from, .to = to, .id = id, .left = left, .right = right
	};
	pull(r, i);
	*at = i;
	r->n++;
}

static uint32_t remove_from(struct ranges *r, uint32_t tree, uint64_t from, uint64_t id)
{
	struct ranges_node *n = node_at(r, tree);

	if (n->from == from && n->id == id) {
		uint32_t rest = join(r, n->left, n->right);

		n->left = r->free;
		r->free = tree;
		return rest;
	}
	if (before(n, from, id))
		n->right = remove_from(r, n->right, from, id);
	else
		n->left = remove_from(r, n->left, from, id);
	pull(r, tree);
	return tree;
}

void ranges_remove(struct ranges *r, uint64_t from, uint64_t id)
{
	assert(r->n > 0);
	r->root = remove_from(r, r->root, from, id);
	r->n--;
}

struct range_search {
	uint64_t from, to;
	ranges_fn fn;
	void *ctx;
};

/* False once the search is over. */
static bool search_in(struct ranges *r, uint32_t tree, const struct range_search *s)
{
	if (!tree)
		return true;
	struct ranges_node *n = node_at(r, tree);
	if (n->to_max <= s->from)
		return true;
	if (!search_in(r, n->left, s))
		return false;
	if (n->from >= s->to)
		return true;
	if (n->to > s->from && !s->fn(s->ctx, n->id))
		return false;
	return search_in(r, n->right, s);
}

void ranges_overlapping(struct ranges *r, uint64_t from, uint64_t to, ranges_fn fn, void *ctx)
{
	struct range_search s = { from, to, fn, ctx };

	if (from < to)
		search_in(r, r->root, &s);
}
