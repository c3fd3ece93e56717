/* SPDX-License-Identifier: MIT */
/*
 * place.h - a crash state as a directory that a program can look at, at the path that the
 * application's directory has.
 *
 * All happens in a mount namespace of the calling process, which is there for nothing else: a
 * worker. Where overlayfs can be mounted, a state is a layer of what differs from the directory
 * before the run, over that directory, under an empty layer that takes what is written; so a state
 * costs what it differs. Else it is a copy. Both live on a tmpfs that is gone with the worker.
 *
 * Q1: the directory before the run is never changed, nor anything that another state is made of.
 * Q2: a name that is gone is a whiteout, a device 0:0. No directory is opaque: what would shine
 *     through is whited out name by name, because a tmpfs may have no attributes for users.
 * Q3: large files that are the same in two states are one file below, found by what they hold and
 *     are; it goes from one state to the next. Files with several names are made anew, in the
 *     layer that is written to: only there are they one file when they are changed.
 */
#ifndef APP_PLACE_H
#define APP_PLACE_H

#include "base/err.h"
#include "fs/reffs.h"

struct place_opts {
	const char *base;	    /* the directory before the run; NULL: it was empty */
	struct reffs_state *before; /* the same as a state; borrowed */
	const char *at;		    /* absolute; a directory, which is hidden */
	uint64_t room;		    /* bytes for states and what is written to them; 0: 1 GB */
	bool copy;		    /* no overlay */
};

struct place;

/* Moves the process into its namespace. `out` is written only on success. */
int place_new(const struct place_opts *opts, struct place **out, struct err *err) must_check;
void place_free(struct place *p); /* NULL is fine */

/* Makes `s` what is found at the path; place_clear() must follow before the next. */
int place_put(struct place *p, const struct reffs_state *s, struct err *err) must_check;
int place_clear(struct place *p, struct err *err) must_check;

/*
 * Reads the layer over the state, which takes what is written; at first it has some of the state.
 * Without an overlay it is all that is there.
 */
int place_look(struct place *p, struct tree *out, struct err *err) must_check;

/* Whether the room is used up: what was written by a program, too. */
bool place_is_full(const struct place *p);
/* A directory of ours on the same tmpfs, for what goes with a state; it is never cleared. */
const char *place_notes(const struct place *p);
/*
 * Whether states are seen in mount namespaces that were made from this one before, too. Mounts
 * in these must not come back: they are to be slaves.
 */
bool place_is_shared(const struct place *p);
bool place_is_overlay(const struct place *p);
/* Things that could not be made as they were: owners, devices, attributes. Of all states. */
uint64_t place_unlike(const struct place *p);

#endif
