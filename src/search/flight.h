/* SPDX-License-Identifier: MIT */
/*
 * flight.h - the pieces in flight at a crash, to make the ids of states that lose fewer of them.
 */
#ifndef SEARCH_FLIGHT_H
#define SEARCH_FLIGHT_H

#include "core/crash.h"

struct flight_piece {
	uint64_t event;
	bool lost; /* lost or torn */
};

struct in_flight {
	uint64_t point;
	struct vec_of(struct flight_piece) pieces; /* ascending, as ids count them */
};

/* Fills `out`, which may have old content. */
void flight_of(const struct crash_state *s, struct in_flight *out);
/* Adds the id of the state that loses exactly the pieces marked as lost. */
void flight_id(const struct in_flight *f, struct strbuf *out);

#endif
