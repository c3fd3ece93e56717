/* SPDX-License-Identifier: MIT */
/*
 * region.h - the persistent memory: the file behind it, which we map ourselves as well, and where
 * the guest has it mapped.
 *
 * R1: the mappings are a list that is never changed, only replaced; a reader needs no lock.
 * R2: everything else is changed with the lock held. A region only grows.
 */
#ifndef PLUGIN_REGION_H
#define PLUGIN_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "outage/pm_stream.h"
#include "tracer.h"

enum { MAPS_MAX = 64 };

/* Where the region is in an address space: that of the guest, or (system emulation) of QEMU. */
struct map {
	uint64_t start, end, offset; /* offset: of `start` in the region */
};

struct maps {
	size_t n;
	uint64_t low, high; /* around all of them: most accesses are elsewhere */
	struct map v[MAPS_MAX];
};

struct region {
	char *path;		   /* the file */
	int fd;			   /* -1: not opened yet */
	const unsigned char *view; /* the file, mapped by us; of the region the first byte */
	uint64_t view_size;
	uint64_t phys, size, offset; /* system emulation */
	uint64_t guest_base;	     /* user emulation: where the guest's address 0 is */
	struct maps *maps;	     /* never NULL */
	unsigned char
		*dirty; /* a bit a line: stored to since it was flushed; shared with children */
};

extern struct region region HERE;

/* "user:POOL" or "phys:START,SIZE,FILE[,OFFSET]"; false if it is neither. */
bool region_parse(const char *text);
/* Opens the file, if it is there, and looks how large it is now. */
bool region_open(void);
/* Something was mapped, or is no more. Takes the lock. */
void region_mapped(void);
/* Whether a descriptor of the guest is that file. User emulation only. */
bool region_is_file(uint64_t fd);

static inline const struct maps *region_maps(void)
{
	return __atomic_load_n(&region.maps, __ATOMIC_ACQUIRE);
}

/* A map that has some of [addr, addr + len), or NULL. */
static inline const struct map *map_find(const struct maps *m, uint64_t addr, uint64_t len)
{
	for (size_t i = 0; i < m->n; i++)
		if (addr < m->v[i].end && addr + len > m->v[i].start)
			return &m->v[i];
	return NULL;
}

static inline uint64_t map_offset(const struct map *m, uint64_t addr)
{
	return m->offset + (addr - m->start);
}

/* Returns the offset of a physical address in the region; UINT64_MAX if it is elsewhere. */
static inline uint64_t region_phys_offset(uint64_t phys)
{
	return phys >= region.phys && phys < region.phys + region.size ? phys - region.phys
								       : UINT64_MAX;
}

static inline void region_set_dirty(uint64_t off, uint64_t len)
{
	for (uint64_t line = off / PM_STREAM_LINE; line <= (off + len - 1) / PM_STREAM_LINE; line++)
		region.dirty[line / 8] |= (unsigned char)(1 << line % 8);
}

static inline bool region_is_dirty(uint64_t off)
{
	uint64_t line = off / PM_STREAM_LINE;

	return region.dirty[line / 8] & 1 << line % 8;
}

/* The line at an offset is flushed. With the lock held. */
static INLINE void region_flush_line(unsigned vcpu, unsigned kind, uint64_t off, uint64_t pc)
{
	uint64_t line = off / PM_STREAM_LINE;

	region.dirty[line / 8] &= (unsigned char)~(1 << line % 8);
	record_small(vcpu, kind, line * PM_STREAM_LINE, 0, pc, NULL);
}

#endif
