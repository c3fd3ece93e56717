/* SPDX-License-Identifier: MIT */
/*
 * flight.h - the pieces in flight at a crash, so that states can be named in which fewer of them
 * are lost.
 */
#ifndef SEARCH_FLIGHT_H
#define SEARCH_FLIGHT_H

#include "core/crash.h"

struct flight_piece {
	uint64_t event;
	bool lost; /* or torn */
};

struct in_flight {
	uint64_t point;
	struct vec_of(struct flight_piece) pieces; /* ascending: as ids count them */
};

/* `out` may be filled from before. */
void flight_of(const struct crash_state *s, struct in_flight *out);
/* Adds the id of the state in which what is marked as lost is lost, and nothing else. */
void flight_id(const struct in_flight *f, struct strbuf *out);

#endif
