/* SPDX-License-Identifier: MIT */
/* hashset.c - finds, adds and forgets hashes in the table of a set. */
#include "core/hashset.h"

static bool is_free(struct hash128 h)
{
	return h.lo == 0 && h.hi == 0;
}

void hashset_release(struct hashset *s)
{
	free(s->slots);
	*s = (struct hashset)HASHSET_INIT;
}

void hashset_clear(struct hashset *s)
{
	if (s->n)
		memset(s->slots, 0, s->cap * sizeof(*s->slots));
	s->n = 0;
	s->has_zero = false;
}

/* Returns the place of `h`, or the free place where it belongs. There is always a free place. */
static struct hash128 *find(struct hash128 *slots, size_t cap, struct hash128 h)
{
	size_t i = h.lo & (cap - 1);

	while (!is_free(slots[i]) && !hash_eq(slots[i], h))
		i = (i + 1) & (cap - 1);
	return &slots[i];
}

static void grow(struct hashset *s)
{
	size_t cap = s->cap ? s->cap * 2 : 64;
	struct hash128 *slots = xcalloc(cap, sizeof(*slots));

	for (size_t i = 0; i < s->cap; i++)
		if (!is_free(s->slots[i]))
			*find(slots, cap, s->slots[i]) = s->slots[i];
	free(s->slots);
	s->slots = slots;
	s->cap = cap;
}

bool hashset_insert(struct hashset *s, struct hash128 h)
{
	if (s->n + 1 > s->cap / 4 * 3)
		grow(s);
	if (is_free(h)) {
		bool is_new = !s->has_zero;

		s->has_zero = true;
		s->n += is_new;
		return is_new;
	}
	struct hash128 *slot = find(s->slots, s->cap, h);
	if (!is_free(*slot))
		return false;
	*slot = h;
	s->n++;
	return true;
}

bool hashset_has(const struct hashset *s, struct hash128 h)
{
	if (is_free(h))
		return s->has_zero;
	return s->cap && !is_free(*find(s->slots, s->cap, h));
}
