/* SPDX-License-Identifier: MIT */
/* u64map.c - finds and adds keys in the table of a map. */
#include "core/u64map.h"

enum { CAP_MIN = 64 };

void u64map_release(struct u64map *m)
{
	free(m->slots);
	*m = (struct u64map)U64MAP_INIT;
}

static struct u64map_slot *new_slots(size_t cap)
{
	struct u64map_slot *slots = xmalloc(cap * sizeof(*slots));

	for (size_t i = 0; i < cap; i++)
		slots[i] = (struct u64map_slot){ .value = U64MAP_NONE };
	return slots;
}

void u64map_clear(struct u64map *m)
{
	/* Repeatedly clearing a large table for few keys would cost more than the keys do. */
	if (m->cap > CAP_MIN && m->n < m->cap / 8)
		u64map_release(m);
	for (size_t i = 0; m->n && i < m->cap; i++)
		m->slots[i].value = U64MAP_NONE;
	m->n = 0;
}

/* Returns the place of a key, or the free place where it belongs. There is always a free place. */
static struct u64map_slot *find(struct u64map_slot *slots, size_t cap, uint64_t key)
{
	uint64_t h = key * 0x9e3779b97f4a7c15u;
	size_t i = (size_t)(h ^ h >> 32) & (cap - 1);

	while (slots[i].value != U64MAP_NONE && slots[i].key != key)
		i = (i + 1) & (cap - 1);
	return &slots[i];
}

uint32_t u64map_get(const struct u64map *m, uint64_t key)
{
	return m->cap ? find(m->slots, m->cap, key)->value : U64MAP_NONE;
}

static void grow(struct u64map *m)
{
	size_t cap = m->cap ? m->cap * 2 : CAP_MIN;
	struct u64map_slot *slots = new_slots(cap);

	for (size_t i = 0; i < m->cap; i++)
		if (m->slots[i].value != U64MAP_NONE)
			*find(slots, cap, m->slots[i].key) = m->slots[i];
	free(m->slots);
	m->slots = slots;
	m->cap = cap;
}

void u64map_add(struct u64map *m, uint64_t key, uint32_t value)
{
	assert(value != U64MAP_NONE);
	if (m->n + 1 > m->cap / 4 * 3)
		grow(m);
	struct u64map_slot *slot = find(m->slots, m->cap, key);
	assert(slot->value == U64MAP_NONE);
	*slot = (struct u64map_slot){ key, value };
	m->n++;
}
