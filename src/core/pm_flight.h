/* SPDX-License-Identifier: MIT */
/*
 * pm_flight.h - the stores in flight of persistent memory, as pieces that survive or not. For
 * model_pm.c.
 *
 * Adjacent stores in flight of a run (stores that are one copy) that will become durable by the
 * same fence are one piece, if it is large enough; else each atom is a piece.
 */
#ifndef CORE_PM_FLIGHT_H
#define CORE_PM_FLIGHT_H

#include "base/arena.h"
#include "core/model.h"
#include "core/pm_memory.h"

/* Atoms that will be one piece or, if they are too small, a piece each. */
struct pm_group {
	uint64_t addr, len;
	uint32_t piece;
};

/* The atoms of a piece. */
struct pm_members {
	uint32_t first, n;	   /* a part of `order` */
	const unsigned char *data; /* the bytes of all; NULL: not put together yet */
};

/* A piece that needs another. */
struct pm_need {
	uint32_t piece, other;
};

struct pm_flight {
	struct vec_of(struct model_piece) pieces;
	struct vec_of(struct pm_members) members; /* by piece */
	struct vec_of(uint32_t) order;		  /* atoms by piece */
	struct vec_of(struct pm_group) groups;
	struct vec_of(uint32_t) group_of_cpu; /* the group that its next atom may join */
	struct vec_of(struct pm_need) need;
	struct vec_of(uint32_t) needs;
	struct arena data;
};

struct pm_flight_opts {
	bool eadr;	   /* temporal stores are durable in one order */
	uint64_t join_min; /* see model_pm_opts */
	uint32_t tear_unit;
	size_t n_cpus;
};

/* Makes all pieces of a memory, in the order in which they take effect; valid until it changes. */
void pm_flight_make(struct pm_flight *f, struct pm_memory *mem, const struct pm_flight_opts *o);
/* Returns the bytes of a piece, which are put together when they are first asked for. */
const unsigned char *pm_flight_data(struct pm_flight *f, const struct pm_memory *mem, size_t index);
void pm_flight_release(struct pm_flight *f);

#endif
