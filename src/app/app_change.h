/* SPDX-License-Identifier: MIT */
/*
 * app_change.h - finds the changes that a command made to a crash state: how the application
 * recovers; and chooses the states to go on with.
 *
 * Which states are chosen follows from the states and what was done to them alone: first, for each
 * kind of change, the state with the most acknowledgements, those that are another
 * state afterwards before those that are not; then of all others as many as there is room for, from
 * the first to the last.
 */
#ifndef APP_APP_CHANGE_H
#define APP_APP_CHANGE_H

#include "app/states.h"

struct app_change {
	bool any;	     /* the command wrote something */
	bool net;	     /* and the state is another one now; else it wrote what was there */
	struct hash128 kind; /* the same for equal changes to the same files */
	struct hash128 what; /* and that leave them the same */
};

/*
 * `before` and `after` are the layer that takes what is written (place_look()) over the state `s`.
 */
void app_change_find(const struct reffs_state *s, const struct tree *before,
		     const struct tree *after, struct app_change *out);

/* A good state that the restart writes to. */
struct app_changed_state {
	struct app_change change;
	uint64_t number; /* in the order in which they were checked */
	uint64_t acked;
	char *state;
};

struct app_changed vec_of(struct app_changed_state);

void app_changed_add(struct app_changed *all, const struct app_state *s,
		     const struct app_change *change);
void app_changed_release(struct app_changed *all);
/* At most `most` of them, as indexes, and how many differ. `all` is put into another order. */
struct app_chosen vec_of(size_t);
uint64_t app_changed_choose(struct app_changed *all, uint64_t most, struct app_chosen *out);

#endif
