/* SPDX-License-Identifier: MIT */
/* app_change.h - the changes that a command made to a crash state: how the application recovers. */
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

#endif
