/* SPDX-License-Identifier: MIT */
/*
 * visited.c
 *
 * V1: a place of the table is free while `lo` is 0; whoever changes that owns it and writes `hi`.
 *     A reader that sees `lo` and not yet `hi` takes the state for another: then a state may be
 *     counted twice by two processes, never lost.
 *     The same goes for the byte with its owner.
 * V2: the table takes states until 7 of 8 places are in use, and none after that.
 */
#include "explore/visited.h"

#include <errno.h>
#include <sys/mman.h>

enum { BYTES_MIN = 64 << 10, PROBES = 3, MET = 0x80 };

static uint64_t power_below(uint64_t n)
{
	return (uint64_t)1 << (63 - __builtin_clzll(n));
}

static _Atomic uint64_t *field(const struct visited *v)
{
	return (_Atomic uint64_t *)(uintptr_t)&v->slots[v->places];
}

/* Who came first, and one more, to each place; with MET, somebody else did as well. */
static _Atomic uint8_t *owners(const struct visited *v)
{
	return (_Atomic uint8_t *)&field(v)[v->bits / 64];
}

int visited_open(uint64_t bytes, struct visited **out, struct err *err)
{
	if (bytes < BYTES_MIN)
		return err_set(err, -EINVAL, "visited states need at least %d bytes of memory",
			       BYTES_MIN);
	/* A fifth of it is for the bits; a table of a power of two leaves at least that. */
	uint64_t places = power_below((bytes - sizeof(struct visited)) * 4 / 5 / VISITED_BYTES);
	uint64_t rest = bytes - sizeof(struct visited) - places * VISITED_BYTES;
	struct visited *v = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (v == MAP_FAILED)
		return err_set(err, -errno, "cannot get %llu bytes for visited states: %m",
			       (unsigned long long)bytes);
	v->bytes = bytes;
	v->places = places;
	v->bits = power_below(rest) * 8;
	*out = v;
	return 0;
}

void visited_close(struct visited *v)
{
	if (v)
		munmap(v, v->bytes);
}

static bool is_full(const struct visited *v)
{
	return atomic_load_explicit(&v->exact, memory_order_relaxed) >= v->places / 8 * 7;
}

/* Each bit of a state comes from another part of its hash. */
static uint64_t nth_bit(const struct visited *v, struct hash128 h, unsigned n)
{
	return (h.lo + n * (h.hi | 1)) * 0x9e3779b97f4a7c15ULL >> 8 & (v->bits - 1);
}

/* Whether all its bits are set; with `set`, they are afterwards. */
static bool in_field(struct visited *v, struct hash128 h, bool set)
{
	bool all = true;

	for (unsigned n = 0; n < PROBES; n++) {
		uint64_t bit = nth_bit(v, h, n), mask = (uint64_t)1 << (bit % 64);
		_Atomic uint64_t *word = &field(v)[bit / 64];
		uint64_t old = set ? atomic_fetch_or(word, mask) : atomic_load(word);

		all &= (old & mask) != 0;
	}
	return all;
}

/* The place of a state, or the free one where it would go; NULL: it is not there, and there is
 * none. `found` says which. */
static struct visited_slot *find(struct visited *v, struct hash128 h, bool *found)
{
	*found = false;
	for (uint64_t i = 0; i < v->places; i++) {
		struct visited_slot *s = &v->slots[(h.hi + i) & (v->places - 1)];
		uint64_t lo = atomic_load(&s->lo);

		if (!lo)
			return s;
		if (lo == h.lo && atomic_load(&s->hi) == h.hi) {
			*found = true;
			return s;
		}
	}
	return NULL;
}

bool visited_has(struct visited *v, struct hash128 h)
{
	bool found;

	h.lo |= !h.lo;
	find(v, h, &found);
	return found || (is_full(v) && in_field(v, h, false));
}

static enum visit meet(const struct visited *v, const struct visited_slot *s, unsigned task)
{
	_Atomic uint8_t *owner = &owners(v)[s - v->slots];
	uint8_t first = atomic_load(owner);

	if (!first || first & MET || first == task + 1)
		return VISIT_OLD;
	return atomic_fetch_or(owner, MET) & MET ? VISIT_OLD : VISIT_SECOND;
}

enum visit visited_add(struct visited *v, struct hash128 h, unsigned task)
{
	bool found;
	struct visited_slot *s;

	assert(task < VISITED_TASKS_MAX);
	h.lo |= !h.lo; /* 0 is a free place */
	while ((s = find(v, h, &found)) && !found && !is_full(v)) {
		uint64_t free_place = 0;

		if (!atomic_compare_exchange_strong(&s->lo, &free_place, h.lo))
			continue; /* somebody was faster; look again */
		atomic_store(&s->hi, h.hi);
		atomic_store(&owners(v)[s - v->slots], (uint8_t)(task + 1));
		atomic_fetch_add(&v->exact, 1);
		return VISIT_NEW;
	}
	if (found)
		return meet(v, s, task);
	if (in_field(v, h, true))
		return VISIT_OLD;
	atomic_fetch_add(&v->hashed, 1);
	return VISIT_NEW;
}

uint64_t visited_count(const struct visited *v)
{
	return atomic_load(&v->exact) + atomic_load(&v->hashed);
}

double visited_omission(const struct visited *v)
{
	double set, p = 1;

	if (!is_full(v))
		return 0;
	/* Each state sets PROBES bits at most; those that fell on set ones make it less. */
	set = (double)atomic_load(&v->hashed) * PROBES / (double)v->bits;
	set = set > 1 ? 1 : set;
	for (unsigned n = 0; n < PROBES; n++)
		p *= set;
	return p;
}

void *visited_field(const struct visited *v, uint64_t *bytes)
{
	*bytes = v->bits / 8;
	return (void *)field(v);
}
