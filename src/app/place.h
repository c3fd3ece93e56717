/* SPDX-License-Identifier: MIT */
/*
 * place.h - puts a crash state as a directory for programs at the path of the application's
 * directory.
 *
 * All mounts are in a mount namespace of the calling process, a worker that does nothing else. If
 * overlayfs can be mounted, a state is a layer with the differences from the directory before the
 * run, over that directory, and below an empty layer that takes all writes; so a state costs only
 * its differences. Otherwise it is a copy. Both are on a tmpfs that ends with the worker.
 *
 * Q1: the directory before the run never changes, nor do files that other states use.
 * Q2: a removed name is a whiteout, a device 0:0. No directory is opaque: entries that would be
 *     visible from below are whited out one by one, because a tmpfs may have no user attributes.
 * Q3: a large file that is the same in two states is one file below, found by its content and
 *     attributes; it moves from one state to the next. Files with several names are made anew in
 *     the layer that takes writes: only there do they stay one file when they are written.
 */
#ifndef APP_PLACE_H
#define APP_PLACE_H

#include "base/err.h"
#include "fs/reffs.h"

struct place_opts {
	const char *base;	    /* the directory before the run; NULL: it was empty */
	struct reffs_state *before; /* the same directory as a state; borrowed */
	const char *at;		    /* an absolute path; a directory, which gets hidden */
	uint64_t room;		    /* bytes for states and writes to them; 0: 1 GB */
	bool copy;		    /* always copy, without an overlay */
};

struct place;

/* Moves the process into a namespace of its own. `out` is written only on success. */
int place_new(const struct place_opts *opts, struct place **out, struct err *err) must_check;
void place_free(struct place *p); /* NULL is fine */

/* Puts `s` at the path; place_clear() must follow before the next place_put(). */
int place_put(struct place *p, const struct reffs_state *s, struct err *err) must_check;
int place_clear(struct place *p, struct err *err) must_check;

/*
 * Reads the layer over the state that takes all writes; at first it has some of the state's files.
 * Without an overlay, reads the whole state.
 */
int place_look(struct place *p, struct tree *out, struct err *err) must_check;

/* True if the room is used up, by states and by writes of programs. */
bool place_is_full(const struct place *p);
/* Returns a directory on the same tmpfs for files about a state; it is never cleared. */
const char *place_notes(const struct place *p);
/*
 * True if states are visible in mount namespaces copied from this one before, too. Mounts in these
 * must not propagate back: they should be slaves.
 */
bool place_is_shared(const struct place *p);
bool place_is_overlay(const struct place *p);
/* Returns how many owners, devices and attributes, of all states, could not be made. */
uint64_t place_unlike(const struct place *p);

#endif
