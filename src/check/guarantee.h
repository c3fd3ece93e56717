/* SPDX-License-Identifier: MIT */
/*
 * guarantee.h - the promises of a file system on what survives a power failure.
 *
 * doc/guarantees.md has the source of each promise, and the profile of each file system. A checker
 * reports only breaches of these promises.
 */
#ifndef CHECK_GUARANTEE_H
#define CHECK_GUARANTEE_H

#include "base/err.h"
#include "base/util.h"

struct guarantee {
	const char *name;
	const char *help;
	bool sync_reaches;   /* sync and syncfs make everything durable */
	bool fsync_reaches;  /* fsync and fdatasync make their file durable */
	bool entries_lead;   /* fsync of a directory persists the inodes of its new entries */
	bool every_op;	     /* each operation is durable when it returns; in persistent
				memory, where a crash can fall into one, it is atomic, too */
	bool atomic_data;    /* writes of data are atomic, too */
	bool fsync_names;    /* fsync of a file persists its names and the directories above */
	bool fsync_dir_line; /* fsync of a directory persists its own name, and those above */
	bool atomic_rename;  /* a renamed file has its old or its new name, not both */
	bool ordered;	     /* a name never leads to another file than its own */
	bool no_strays;	     /* only names of the history may appear */
};

extern const struct guarantee guarantees[]; /* ends with a NULL name */

const struct guarantee *guarantee_find(const char *name);
/* Finds a profile; if there is none of that name, a sentence in `err` lists them. */
const struct guarantee *guarantee_known(const char *name, struct err *err);

#endif
