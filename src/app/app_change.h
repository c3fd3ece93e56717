/* SPDX-License-Identifier: MIT */
/* app_change.h - the changes that a command made to a crash state: how the application recovers. */
#ifndef APP_APP_CHANGE_H
#define APP_APP_CHANGE_H

#include "app/states.h"

struct app_change {
	bool any; /* the command wrote something */
	bool net; /* the state differs after it; otherwise the command wrote what was there */
	struct hash128 kind; /* equal for equal changes to the same files */
	struct hash128 what; /* equal if the files also have the same content after them */
};

/* `before` and `after` are the layer over the state `s` that takes all writes (place_look()). */
void app_change_find(const struct reffs_state *s, const struct tree *before,
		     const struct tree *after, struct app_change *out);

#endif
