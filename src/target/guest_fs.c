/* SPDX-License-Identifier: MIT */
#include "target/guest_fs.h"

enum { MIB = 1 << 20 };

const char *const guest_lost_found[] = { "lost+found", NULL };
const char *const guest_nothing[] = { NULL };
const char *const guest_nilfs_own[] = { ".nilfs", NULL };

/* Those that this machine's kernel is not tested with. */
static const struct host_fs more_file_systems[] = {
	{ .name = "jfs",
	  .mkfs = (const char *const[]){ "mkfs.jfs", "-q", NULL },
	  .size = 16 * MIB,
	  .recover = (const char *const[]){ "fsck.jfs", "-a", NULL },
	  .fsck = (const char *const[]){ "fsck.jfs", "-n", "-f", NULL } },
	{ .name = "reiserfs",
	  .mkfs = (const char *const[]){ "mkfs.reiserfs", "-q", "-ff", NULL },
	  .size = 64 * MIB,
	  .mount_opts = "user_xattr",
	  .fsck = (const char *const[]){ "reiserfsck", "--check", "-y", "-q", NULL } },
	{ .name = "f2fs",
	  .mkfs = (const char *const[]){ "mkfs.f2fs", "-q", "-f", NULL },
	  .size = 64 * MIB,
	  .fsck = (const char *const[]){ "fsck.f2fs", "--dry-run", NULL },
	  .shutdown = true },
	{ .name = "nilfs2",
	  .mkfs = (const char *const[]){ "mkfs.nilfs2", "-q", "-f", "-B", "16", NULL },
	  .size = 64 * MIB },
};

const struct host_fs *guest_fs_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(more_file_systems); i++)
		if (streq(more_file_systems[i].name, name))
			return &more_file_systems[i];
	return host_fs_find(name);
}
