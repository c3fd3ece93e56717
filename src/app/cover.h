/* SPDX-License-Identifier: MIT */
/*
 * cover.h - one crash state for each pattern of operations.
 *
 * A pattern is a kind of call on a kind of file (roles.h) with something that can become of it:
 * it alone is lost, it alone survives, it is torn, or the power fails right after it, and nothing
 * or all of what is in flight survives. The states are put together directly, whatever the
 * enumerator would get to: a run may have too many states to check, and few patterns.
 *
 * V1: each state is one that the history allows.
 * V2: a pattern that no crash of this run can have, such as a part of what is written in one unit,
 *     is none.
 */
#ifndef APP_COVER_H
#define APP_COVER_H

#include "app/app_model.h"
#include "app/roles.h"

struct cover_state {
	uint64_t point;
	char *id;
	struct survivors survivors;
	uint32_t patterns; /* covered; more than 1 if several come to the same state */
};

/* The states that find most come first. */
struct cover {
	struct vec_of(struct cover_state) v;
	uint64_t patterns; /* of all */
};

int cover_make(struct history *h, const struct roles *roles, bool torn, struct cover *out,
	       struct err *err) must_check;
void cover_release(struct cover *c);

#endif
