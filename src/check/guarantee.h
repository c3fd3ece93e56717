/* SPDX-License-Identifier: MIT */
/*
 * guarantee.h - the promises of a file system on what survives a power failure.
 *
 * doc/guarantees.md has the source of each promise, and which file system gets which profile. A
 * checker reports only what breaks one of these.
 */
#ifndef CHECK_GUARANTEE_H
#define CHECK_GUARANTEE_H

#include "base/err.h"
#include "base/util.h"

struct guarantee {
	const char *name;
	const char *help;
	bool sync_reaches;   /* sync and syncfs make everything durable */
	bool fsync_reaches;  /* fsync and its kin make durable what they are asked for */
	bool entries_lead;   /* fsync of a directory persists what its new entries lead to */
	bool every_op;	     /* each operation is durable when it returns; in persistent
				memory, where a crash can fall into one, it is atomic, too */
	bool atomic_data;    /* and so are writes of data */
	bool fsync_names;    /* fsync of a file persists its names and the directories above */
	bool fsync_dir_line; /* fsync of a directory persists its own name, and those above */
	bool atomic_rename;  /* a renamed file is at one place, old or new, whatever was synced */
	bool ordered;	     /* a name never leads to another file than it was given to */
	bool no_strays;	     /* only what the history had may appear */
};

extern const struct guarantee guarantees[]; /* ends with a NULL name */

const struct guarantee *guarantee_find(const char *name);
/* The same; without one of that name, a sentence in `err` says which there are. */
const struct guarantee *guarantee_known(const char *name, struct err *err);

#endif
