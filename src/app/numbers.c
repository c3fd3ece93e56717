/* SPDX-License-Identifier: MIT */
/* numbers.c - a hash table from inode numbers to objects, by linear probing. */
#include "app/numbers.h"

#include "base/util.h"

static struct number_slot *slot_of(const struct numbers *t, uint64_t key)
{
	size_t i = (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 17);

	for (;; i++) {
		struct number_slot *s = &t->v[i & (t->size - 1)];

		if (!s->key || s->key == key)
			return s;
	}
}

uint64_t numbers_get(const struct numbers *t, uint64_t key)
{
	return t->size && key ? slot_of(t, key)->value : 0;
}

static void grow(struct numbers *t)
{
	struct numbers old = *t;

	t->size = old.size ? 2 * old.size : 64;
	t->v = xcalloc(t->size, sizeof(*t->v));
	for (size_t i = 0; i < old.size; i++)
		if (old.v[i].key)
			*slot_of(t, old.v[i].key) = old.v[i];
	free(old.v);
}

void numbers_set(struct numbers *t, uint64_t key, uint64_t value)
{
	if (!key)
		return;
	if (2 * (t->n + 1) > t->size)
		grow(t);
	struct number_slot *s = slot_of(t, key);
	t->n += !s->key;
	*s = (struct number_slot){ key, value };
}

void numbers_release(struct numbers *t)
{
	free(t->v);
	*t = (struct numbers){ 0 };
}
