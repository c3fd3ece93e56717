/* SPDX-License-Identifier: MIT */
/* guarantee.c - the table of guarantee profiles. */
#include "check/guarantee.h"

#include <errno.h>

#include "base/strbuf.h"

/* All guarantees that let fsync reach a name promise this. */
#define AS_ON_LINUX                                                                                \
	.fsync_names = true, .fsync_dir_line = true, .atomic_rename = true, .ordered = true,       \
	.sync_reaches = true, .fsync_reaches = true, .entries_lead = true, .no_strays = true

const struct guarantee guarantees[] = {
	{
		.name = "unmount",
		.help = "only what was there at a clean unmount survives; after a crash, nothing "
			"may be there that never was",
		.no_strays = true,
	},
	{
		.name = "bare",
		.help = "fsync persists what it is asked for, and nothing else: a file survives "
			"only if both it and its directory are synced",
		.fsync_reaches = true,
		.no_strays = true,
	},
	{
		.name = "posix",
		.help = "fsync persists a file's data and attributes; its name only if the "
			"directory is synced as well",
		.fsync_reaches = true,
		.entries_lead = true,
		.no_strays = true,
	},
	{
		.name = "linux",
		.help = "the promises of ext4, xfs and btrfs: fsync of a file persists its names "
			"too, "
			"and rename is atomic",
		AS_ON_LINUX,
	},
	{
		.name = "sync",
		.help = "every operation is durable when it returns",
		.every_op = true,
		AS_ON_LINUX,
	},
	{
		.name = "atomic",
		.help = "as sync, and writes of data are atomic as well",
		.every_op = true,
		.atomic_data = true,
		AS_ON_LINUX,
	},
	{ .name = NULL },
};

const struct guarantee *guarantee_find(const char *name)
{
	for (const struct guarantee *g = guarantees; g->name; g++)
		if (streq(g->name, name))
			return g;
	return NULL;
}

const struct guarantee *guarantee_known(const char *name, struct err *err)
{
	const struct guarantee *found = guarantee_find(name);
	auto_strbuf list = STRBUF_INIT;

	for (const struct guarantee *g = guarantees; !found && g->name; g++)
		strbuf_addf(&list, "%s%s", g == guarantees ? "" : ", ", g->name);
	if (!found)
		err_set(err, -EINVAL, "'%.40s' is none of %s", name, strbuf_str(&list));
	return found;
}
