/* SPDX-License-Identifier: MIT */
/*
 * profile.h - the promises that an application may count on: which of its operations survive a
 * power cut, by what it synced. doc/profiles.md has each rule with its source, or marked as
 * assumed.
 */
#ifndef FS_PROFILE_H
#define FS_PROFILE_H

#include <stdbool.h>
#include <stddef.h>

/* The operations that become durable with a sync, besides the data of the synced file. */
enum profile_sync {
	PROFILE_OWN,   /* attributes of the synced file; for a directory also its entries */
	PROFILE_NAMES, /* also its names, with the directories that they need */
	PROFILE_ALL,   /* everything before it, if the synced file has anything pending */
};

struct profile {
	const char *name, *help;
	/* Names and attributes wait for a sync like data; if not, they are durable at once. */
	bool metadata;
	enum profile_sync file, dir;
	/* The data of a file that replaces another by rename is durable when the rename is. */
	bool replace_orders_data;
	/*
	 * The data of a file that was truncated to nothing and then closed is durable when the next
	 * metadata is.
	 */
	bool truncate_flushes;
	/*
	 * A size after writes is durable only with their data. If false, it is durable with any
	 * metadata, so that a file may end in zeros.
	 */
	bool size_with_data;
	/* If unsynced metadata survives a power cut, so does all metadata before it. */
	bool in_order;
};

/* Returns NULL if there is no profile of this name. */
const struct profile *profile_find(const char *name);
/* Returns the i-th profile, or NULL. The first is the default of `outage mount`. */
const struct profile *profile_at(size_t i);

#endif
