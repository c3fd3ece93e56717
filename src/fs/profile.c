/* SPDX-License-Identifier: MIT */
/* profile.c - the table of profiles. doc/profiles.md has the source of every entry. */
#include "fs/profile.h"

#include "base/util.h"
#include "base/vec.h"

static const struct profile profiles[] = {
	{
		.name = "ext4-ordered",
		.help = "ext4 as it is mounted by default: any sync commits all metadata",
		.metadata = true,
		.file = PROFILE_ALL,
		.dir = PROFILE_ALL,
		.replace_orders_data = true,
		.truncate_flushes = true,
		.size_with_data = true,
		.in_order = true,
	},
	{
		.name = "ext4-writeback",
		.help = "ext4 with data=writeback: sizes and renames do not wait for data",
		.metadata = true,
		.file = PROFILE_ALL,
		.dir = PROFILE_ALL,
		.in_order = true,
	},
	{
		.name = "xfs",
		.help = "xfs: any sync commits all metadata; renames do not wait for data",
		.metadata = true,
		.file = PROFILE_ALL,
		.dir = PROFILE_ALL,
		.size_with_data = true,
		.in_order = true,
	},
	{
		.name = "btrfs",
		.help = "btrfs: a sync makes the file and its names durable, and what these need",
		.metadata = true,
		.file = PROFILE_NAMES,
		.dir = PROFILE_NAMES,
		.size_with_data = true,
		.in_order = true,
	},
	{
		.name = "minimal",
		.help = "only what was synced: names need a sync of their directory",
		.metadata = true,
		.file = PROFILE_OWN,
		.dir = PROFILE_OWN,
	},
	{
		.name = "lazyfs",
		.help = "only data waits for a sync; names and attributes are durable at once",
		.file = PROFILE_OWN,
		.dir = PROFILE_OWN,
		.size_with_data = true,
	},
};

const struct profile *profile_at(size_t i)
{
	return i < ARRAY_SIZE(profiles) ? &profiles[i] : NULL;
}

const struct profile *profile_find(const char *name)
{
	return array_find(i, profiles, streq(profiles[i].name, name));
}
