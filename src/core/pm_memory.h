/* SPDX-License-Identifier: MIT */
/*
 * pm_memory.h - the stores in flight of persistent memory, cut at segments into atoms. For
 * model_pm.c, which has the rules.
 *
 * I1: atoms are in the order of the trace. Durable atoms are gone; their places are closed when
 *     they are more than half.
 * I2: the atoms of a segment are a chain from `head` to `tail`. The atoms that no fence will make
 *     durable are at its end, from `plain` on.
 */
#ifndef CORE_PM_MEMORY_H
#define CORE_PM_MEMORY_H

#include "base/vec.h"
#include "core/image.h"
#include "core/u64map.h"

enum { PM_NONE = U64MAP_NONE };

struct pm_atom {
	uint64_t seq; /* its number, which never changes, unlike its place */
	uint64_t event, addr;
	const unsigned char *data;
	uint64_t run;
	uint32_t len;
	uint32_t next;	/* the next atom in its segment */
	uint32_t cpu;	/* the index of its CPU */
	uint32_t due;	/* 1 + index of the CPU whose fence makes it durable; 0: none */
	uint32_t piece; /* for pm_flight.c: its group, then its piece */
	bool nt, gone;
};

struct pm_segment {
	uint64_t number; /* address / granularity */
	uint32_t head, tail, plain;
	uint64_t temporal; /* 1 + seq of the last temporal store; 0: none */
};

/* A capture: the atoms of a segment up to `seq` become durable at a fence. */
struct pm_capture {
	uint64_t segment, seq;
};

struct pm_captures vec_of(struct pm_capture);

struct pm_memory {
	uint64_t segment_size;
	struct vec_of(struct pm_atom) atoms;
	size_t n_gone;
	struct vec_of(struct pm_segment) segments;
	struct u64map segment_of; /* segment number to index */
};

void pm_memory_release(struct pm_memory *mem);
/* Copies to `to`, which is empty; the atoms get other places. */
void pm_memory_copy(const struct pm_memory *from, struct pm_memory *to);

/* Returns the segment of a number, or NULL; pm_segment_get() makes it if there is none. */
static inline struct pm_segment *pm_segment_find(struct pm_memory *mem, uint64_t number)
{
	uint32_t i = u64map_get(&mem->segment_of, number);

	return i == PM_NONE ? NULL : &mem->segments.v[i];
}

static inline struct pm_segment *pm_segment_get(struct pm_memory *mem, uint64_t number)
{
	struct pm_segment *s = pm_segment_find(mem, number);

	if (s)
		return s;
	u64map_add(&mem->segment_of, number, (uint32_t)mem->segments.n);
	vec_push(&mem->segments, (struct pm_segment){ number, PM_NONE, PM_NONE, PM_NONE, 0 });
	return &vec_last(&mem->segments);
}

/* Puts the atom at index `i`, the last so far, at the end of its segment's chain. */
static inline void pm_segment_link(struct pm_memory *mem, uint32_t i, struct pm_segment *s)
{
	struct pm_atom *a = &mem->atoms.v[i];

	a->next = PM_NONE;
	if (s->head == PM_NONE)
		s->head = i;
	else
		mem->atoms.v[s->tail].next = i;
	s->tail = i;
	if (!a->due && s->plain == PM_NONE)
		s->plain = i;
	if (!a->nt)
		s->temporal = a->seq + 1;
}

/* Captures a segment: the plain atoms become durable with the next fence of this CPU. */
static inline void pm_segment_capture(struct pm_memory *mem, struct pm_segment *s, uint64_t seq,
				      uint32_t cpu, struct pm_captures *c)
{
	for (uint32_t i = s->plain; i != PM_NONE; i = mem->atoms.v[i].next)
		mem->atoms.v[i].due = cpu + 1;
	s->plain = PM_NONE;
	if (c->n && vec_last(c).segment == s->number)
		vec_last(c).seq = max(vec_last(c).seq, seq);
	else
		vec_push(c, (struct pm_capture){ s->number, seq });
}

void pm_captures_copy(const struct pm_captures *from, struct pm_captures *to);

/*
 * Gathers the bytes that go into the durable image, a page at a time: each write to it costs a hash
 * of the page.
 */
struct pm_drain {
	struct pm_memory *mem;
	struct image *img;
	uint64_t addr; /* the page's address; UINT64_MAX: none */
	size_t size, from, to;
	unsigned char data[IMAGE_PAGE];
};

void pm_drain_begin(struct pm_drain *d, struct pm_memory *mem, struct image *durable);
/* Make the atoms of a segment up to `seq` durable; or those of captures, which are emptied. */
void pm_drain_segment(struct pm_drain *d, struct pm_segment *s, uint64_t seq);
void pm_drain_captures(struct pm_drain *d, struct pm_captures *c);
void pm_drain_end(struct pm_drain *d);

#endif
