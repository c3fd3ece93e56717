/* SPDX-License-Identifier: MIT */
/*
 * cover.h - one crash state for each pattern of operations.
 *
 * A pattern is a kind of call on a kind of file (roles.h) with a fate: it alone is lost, it alone
 * survives, it is torn, or the power fails right after it, and nothing or all in flight survives.
 * The states are built directly, even if the enumerator would not get to them: a run may have too
 * many states to check, but few patterns.
 *
 * V1: each state is allowed by the history.
 * V2: a pattern that no crash of this run can have, such as a part of a write of one unit, does not
 *     count.
 */
#ifndef APP_COVER_H
#define APP_COVER_H

#include "app/app_model.h"
#include "app/roles.h"

struct cover_state {
	uint64_t point;
	char *id;
	struct survivors survivors;
	uint32_t patterns; /* patterns of this state */
};

/* The states that stand for most patterns come first. */
struct cover {
	struct vec_of(struct cover_state) v;
	uint64_t patterns; /* of all states */
};

int cover_make(struct history *h, const struct roles *roles, bool torn, struct cover *out,
	       struct err *err) must_check;
void cover_release(struct cover *c);

#endif
