/* SPDX-License-Identifier: MIT */
/* arena.c - allocates by moving a pointer through large blocks. */
#include "base/arena.h"

enum { BLOCK_SIZE = 32 * 1024, ALIGN = 16 };

struct arena_block {
	struct arena_block *next;
	size_t size;
	size_t used;
	_Alignas(ALIGN) unsigned char data[];
};

static void free_list(struct arena_block *b)
{
	while (b) {
		struct arena_block *next = b->next;

		free(b);
		b = next;
	}
}

void arena_release(struct arena *a)
{
	free_list(a->blocks);
	free_list(a->spare);
	*a = (struct arena)ARENA_INIT;
}

void arena_clear(struct arena *a)
{
	while (a->blocks) {
		struct arena_block *b = a->blocks;

		a->blocks = b->next;
		if (b->size > BLOCK_SIZE) {
			free(b); /* an outlier; keeping it would pin its size for ever */
			continue;
		}
		b->used = 0;
		b->next = a->spare;
		a->spare = b;
	}
}

static struct arena_block *new_block(struct arena *a, size_t size)
{
	struct arena_block *b = a->spare;

	if (b && size <= b->size) {
		a->spare = b->next;
	} else {
		size = max(size, (size_t)BLOCK_SIZE);
		b = xmalloc(sizeof(*b) + size);
		b->size = size;
		b->used = 0;
	}
	b->next = a->blocks;
	a->blocks = b;
	return b;
}

void *arena_alloc(struct arena *a, size_t size)
{
	struct arena_block *b = a->blocks;

	assert(size <= SIZE_MAX - BLOCK_SIZE);
	size = (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	if (!b || b->size - b->used < size)
		b = new_block(a, size);
	void *p = b->data + b->used;
	b->used += size;
	return p;
}

void *arena_zalloc(struct arena *a, size_t size)
{
	return memset(arena_alloc(a, size), 0, size);
}

char *arena_memdupz(struct arena *a, const void *data, size_t len)
{
	char *p = arena_alloc(a, len + 1);

	if (len)
		memcpy(p, data, len);
	p[len] = '\0';
	return p;
}

char *arena_strdup(struct arena *a, const char *s)
{
	return arena_memdupz(a, s, strlen(s));
}
