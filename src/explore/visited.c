/* SPDX-License-Identifier: MIT */
/*
 * visited.c - a lock-free table of hashes in memory that all tasks share, and the bits that follow
 * when it is full.
 *
 * V1: a place of the table is free while `lo` is 0; the task that sets it owns it and writes `hi`.
 *     A reader that sees `lo` and not yet `hi` takes the state for another: then a state may be
 *     counted twice by two processes, never lost.
 *     The same goes for the byte with its owner.
 * V2: the table takes states until 7 of 8 places are in use, and none after that.
 * V3: a mark only ever goes to a newer round, or nearer to the start in the same one. Rounds count
 *     up to ROUNDS and begin again: a mark as old as that is taken for one of now.
 */
#include "explore/visited.h"

#include <errno.h>
#include <sys/mman.h>

enum { BYTES_MIN = 64 << 10, PROBES = 3, MET = 0x80 };
/* A mark, from below: 12 bits of depth, 7 of the task, 13 of the round and one more. */
enum { DEPTH_BITS = 12, TASK_BITS = 7, ROUNDS = (1 << 13) - 1 };
static_assert(VISITED_DEPTH_MAX == (1 << DEPTH_BITS) - 1, "depths fit");
static_assert(VISITED_TASKS_MAX < 1 << TASK_BITS, "tasks fit");

/* Where in `n` places a number of 64 random bits belongs. */
static uint64_t scale(uint64_t random, uint64_t n)
{
	return (uint64_t)((unsigned __int128)random * n >> 64);
}

static _Atomic uint64_t *field(const struct visited *v)
{
	return (_Atomic uint64_t *)(uintptr_t)&v->slots[v->places];
}

static _Atomic uint32_t *marks(const struct visited *v)
{
	return (_Atomic uint32_t *)&field(v)[v->bits / 64];
}

/* The task that came first to each place, and one more; with MET, another one came as well. */
static _Atomic uint8_t *owners(const struct visited *v)
{
	return (_Atomic uint8_t *)&marks(v)[v->places];
}

int visited_open(uint64_t bytes, struct visited **out, struct err *err)
{
	if (bytes < BYTES_MIN)
		return err_set(err, -EINVAL, "visited states need at least %d bytes of memory",
			       BYTES_MIN);
	/* A fifth of it is for the bits. */
	uint64_t places = (bytes - sizeof(struct visited)) / 5 * 4 / VISITED_BYTES;
	uint64_t rest = bytes - sizeof(struct visited) - places * VISITED_BYTES;
	struct visited *v = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (v == MAP_FAILED)
		return err_set(err, -errno, "cannot get %llu bytes for visited states: %m",
			       llu(bytes));
	v->bytes = bytes;
	v->places = places;
	v->bits = rest / 8 * 64;
	assert(v->places > 0 && v->bits > 0);
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
	return scale((h.lo + n * (h.hi | 1)) * 0x9e3779b97f4a7c15ULL, v->bits);
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
	uint64_t at = scale(h.hi * 0x9e3779b97f4a7c15ULL, v->places);

	*found = false;
	for (uint64_t i = 0; i < v->places; i++, at = at + 1 < v->places ? at + 1 : 0) {
		struct visited_slot *s = &v->slots[at];
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

/* 0 is a free place. */
static struct hash128 not_free(struct hash128 h)
{
	h.lo |= !h.lo;
	return h;
}

bool visited_has(struct visited *v, struct hash128 h)
{
	bool found;

	h = not_free(h);
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

/* Its place, or NULL if it is known by bits only, which then are set. */
static struct visited_slot *add(struct visited *v, struct hash128 h, uint8_t owner,
				enum visit *visit)
{
	bool found;
	struct visited_slot *s;

	while ((s = find(v, h, &found)) && !found && !is_full(v)) {
		uint64_t free_place = 0;

		if (!atomic_compare_exchange_strong(&s->lo, &free_place, h.lo))
			continue; /* another task was faster; look again */
		atomic_store(&s->hi, h.hi);
		atomic_store(&owners(v)[s - v->slots], owner);
		uint64_t before = atomic_fetch_add(&v->exact, 1);
		assert(before < v->places); /* V2 */
		*visit = VISIT_NEW;
		return s;
	}
	*visit = VISIT_OLD;
	if (found)
		return s;
	if (!in_field(v, h, true)) {
		atomic_fetch_add(&v->hashed, 1);
		*visit = VISIT_NEW;
	}
	return NULL;
}

static struct visited_slot *add_of(struct visited *v, struct hash128 h, unsigned task,
				   enum visit *visit)
{
	assert(task < VISITED_TASKS_MAX);
	struct visited_slot *s = add(v, h, (uint8_t)(task + 1), visit);

	if (s && *visit == VISIT_OLD)
		*visit = meet(v, s, task);
	return s;
}

enum visit visited_add(struct visited *v, struct hash128 h, unsigned task)
{
	enum visit visit;

	add_of(v, not_free(h), task, &visit);
	return visit;
}

/* ---- whose steps are taken ---- */

static uint32_t round_of(uint64_t round)
{
	return (uint32_t)(round % ROUNDS) + 1;
}

static uint32_t mark_round(uint32_t mark)
{
	return mark >> (DEPTH_BITS + TASK_BITS);
}

static unsigned mark_task(uint32_t mark)
{
	return mark >> DEPTH_BITS & ((1 << TASK_BITS) - 1);
}

static uint32_t mark_depth(uint32_t mark)
{
	return mark & VISITED_DEPTH_MAX;
}

static bool is_newer(uint32_t mark, uint32_t round)
{
	return mark && mark_round(mark) != round &&
	       (mark_round(mark) + ROUNDS - round) % ROUNDS < ROUNDS / 2;
}

static bool claim_place(_Atomic uint32_t *mark, const struct visited_claim *c, uint32_t bound,
			bool *again)
{
	uint32_t round = round_of(c->round), depth = min(c->depth, (uint32_t)VISITED_DEPTH_MAX);
	uint32_t mine = round << (DEPTH_BITS + TASK_BITS) | c->task << DEPTH_BITS | depth;
	uint32_t old = atomic_load(mark);

	assert(mark_round(mine) == round && mark_task(mine) == c->task); /* V3: all of it fits */
	do {
		bool same = mark_round(old) == round;

		if (is_newer(old, round) || (same && mark_depth(old) <= depth))
			return false;
		*again = same && mark_task(old) == c->task && mark_depth(old) < bound;
	} while (!atomic_compare_exchange_weak(mark, &old, mine));
	return true;
}

/* By bits only: the first round has those of the state itself, each other one its own. */
static bool claim_bits(struct visited *v, struct hash128 h, uint64_t round, bool fresh)
{
	if (!round)
		return fresh;
	h.lo += round * 0xd6e8feb86659fd93ULL;
	if (in_field(v, h, true))
		return false;
	atomic_fetch_add(&v->marked, 1);
	return true;
}

bool visited_claim(struct visited *v, struct hash128 h, struct visited_claim c, uint32_t bound,
		   enum visit *visit, bool *again)
{
	enum visit seen;

	*again = false;
	struct visited_slot *s = add_of(v, not_free(h), c.task, &seen);
	if (visit)
		*visit = seen;
	if (!s)
		return claim_bits(v, not_free(h), c.round, seen == VISIT_NEW);
	return claim_place(&marks(v)[s - v->slots], &c, bound, again);
}

uint32_t visited_claimed(struct visited *v, struct hash128 h, unsigned task, uint64_t round)
{
	bool found;
	struct visited_slot *s = find(v, not_free(h), &found);
	uint32_t mark = found ? atomic_load(&marks(v)[s - v->slots]) : 0;

	return mark_round(mark) == round_of(round) && mark_task(mark) == task ? mark_depth(mark)
									      : UINT32_MAX;
}

/* ---- counting and keeping ---- */

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
	set = (double)(atomic_load(&v->hashed) + atomic_load(&v->marked)) * PROBES /
	      (double)v->bits;
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

uint8_t visited_owner(const struct visited *v, uint64_t place)
{
	return atomic_load(&owners(v)[place]);
}

void visited_put(struct visited *v, struct hash128 h, uint8_t owner)
{
	enum visit visit;
	struct visited_slot *s = add(v, not_free(h), owner, &visit);

	if (s && visit == VISIT_OLD)
		atomic_fetch_or(&owners(v)[s - v->slots], owner & MET);
}
