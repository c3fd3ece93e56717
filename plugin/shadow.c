/* SPDX-License-Identifier: MIT */
/* shadow.c - keeps a list of frames for each stack: a call adds one, a return drops some. */
#include "shadow.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { KERNEL_STACK_BITS = 14, PROBES = 32 };

static uint64_t mix(uint64_t h, uint64_t x)
{
	h = (h ^ x) * 0x9e3779b97f4a7c15u;
	h ^= h >> 32;
	return h ? h : 1;
}

/* Drops the frames below `slot`, or there. */
static void unwind(struct shadow *s, uint64_t slot)
{
	uint32_t n = s->n;

	while (n && s->f[n - 1].slot <= slot)
		n--;
	if (n != s->n)
		s->number = 0;
	s->n = n;
}

void shadow_call(struct shadow *s, uint64_t slot, uint64_t ret)
{
	unwind(s, slot);
	if (s->n == SHADOW_FRAMES) {
		enum { HALF = SHADOW_FRAMES / 2 };

		memmove(s->f, s->f + HALF, (SHADOW_FRAMES - HALF) * sizeof(s->f[0]));
		s->n -= HALF;
	}
	s->f[s->n] = (struct shadow_frame){ slot, ret, mix(shadow_hash(s), ret) };
	s->n++;
	s->number = 0;
}

void shadow_return(struct shadow *s, uint64_t slot)
{
	unwind(s, slot);
}

size_t shadow_frames(const struct shadow *s, uint64_t out[SHADOW_FRAMES])
{
	uint32_t n = s->n < SHADOW_FRAMES ? s->n : SHADOW_FRAMES;

	for (uint32_t i = 0; i < n; i++)
		out[i] = s->f[n - 1 - i].ret;
	return n;
}

/* ---- which stack ---- */

static int is_near(const struct shadow *s, uint64_t slot)
{
	uint64_t top = s->n ? s->f[s->n - 1].slot : s->key;

	return slot - top + SHADOW_NEAR < 2 * (uint64_t)SHADOW_NEAR;
}

struct shadow *shadow_user(struct shadows *own, uint64_t slot)
{
	struct shadow **give_up;

	for (unsigned i = 0; i < SHADOW_OWN; i++)
		if (own->v[i] && is_near(own->v[i], slot)) {
			own->v[i]->key = slot; /* where it is when all have returned */
			return own->v[i];
		}
	give_up = &own->v[own->next++ % SHADOW_OWN];
	if (!*give_up)
		*give_up = malloc(sizeof(**give_up));
	if (*give_up) {
		(*give_up)->n = (*give_up)->number = 0;
		(*give_up)->key = slot;
	}
	return *give_up;
}

void shadow_forget(struct shadows *own)
{
	for (unsigned i = 0; i < SHADOW_OWN; i++)
		free(own->v[i]);
	*own = (struct shadows){ 0 };
}

/* Only what is used of it takes memory. */
static struct shadow *table(void)
{
	static struct shadow *all;
	struct shadow *t = __atomic_load_n(&all, __ATOMIC_ACQUIRE), *first = NULL;

	if (t)
		return t;
	t = mmap(NULL, SHADOW_KERNEL * sizeof(*t), PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (t == MAP_FAILED)
		return NULL;
	if (__atomic_compare_exchange_n(&all, &first, t, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return t;
	munmap(t, SHADOW_KERNEL * sizeof(*t)); /* another CPU was faster */
	return first;
}

struct shadow *shadow_kernel(uint64_t slot)
{
	uint64_t key = slot >> KERNEL_STACK_BITS << KERNEL_STACK_BITS | 1;
	uint64_t at = mix(0, slot >> KERNEL_STACK_BITS) >> 20;
	struct shadow *t = slot >> 63 ? table() : NULL;

	for (unsigned i = 0; t && i < PROBES; i++, at++) {
		struct shadow *s = &t[at % SHADOW_KERNEL];
		uint64_t k = __atomic_load_n(&s->key, __ATOMIC_ACQUIRE);

		if (k == key)
			return s;
		if (!k && __atomic_compare_exchange_n(&s->key, &k, key, 0, __ATOMIC_ACQ_REL,
						      __ATOMIC_ACQUIRE))
			return s;
		if (k == key)
			return s;
	}
	return NULL;
}
