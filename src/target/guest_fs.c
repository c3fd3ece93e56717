/* SPDX-License-Identifier: MIT */
/* guest_fs.c - the table of the file systems of guests. */
#include "target/guest_fs.h"

#include <errno.h>

#include "target/server.h"

enum { MIB = 1 << 20 };

const char *const guest_lost_found[] = { "lost+found", NULL };
const char *const guest_nothing[] = { NULL };
const char *const guest_nilfs_own[] = { ".nilfs", NULL };

/*
 * mkfs programs of flash file systems need an empty folder to copy, and do not write to the file: a
 * shell runs them, which gets further arguments, if any, and the file.
 */
#define SCRIPT(text_, name_)                                                                       \
	(const char *const[])                                                                      \
	{                                                                                          \
		"sh", "-c", text_, name_, NULL                                                     \
	}
#define ARGUMENTS                                                                                  \
	"while [ $# -gt 1 ]; do more=\"$more $1\"; shift; done; size=$(stat -Lc %s \"$1\") && "    \
	"d=$(mktemp -d) || exit 1; trap 'rm -rf \"$d\"' EXIT; mkdir \"$d/empty\" && "

static const char make_jffs2[] = ARGUMENTS
	"mkfs.jffs2 -n -e 65536 -p$size -r \"$d/empty\" $more -o \"$d/img\" && "
	"cat \"$d/img\" >\"$1\"";
/* A block has two headers of 64 bytes, and UBI needs four blocks. */
static const char make_ubifs[] = ARGUMENTS
	"mkfs.ubifs -m 8 -e 65408 -c $((size / 65536 - 4)) -r \"$d/empty\" $more "
	"-o \"$d/img\" && printf '[v]\\nmode=ubi\\nimage=%s\\nvol_id=0\\nvol_type=dynamic\\n"
	"vol_name=v\\nvol_size=%s\\n' \"$d/img\" $(((size / 65536 - 4) * 65408)) >\"$d/cfg\" "
	"&& ubinize -m 1 -p 65536 -Q 1 -o \"$d/ubi\" \"$d/cfg\" && "
	"{ cat \"$d/ubi\"; head -c $size /dev/zero | tr '\\0' '\\377'; } | "
	"head -c $size >\"$1\"";

/* File systems that are not tested with this machine's kernel. */
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
	{ .name = "jffs2", .mkfs = SCRIPT(make_jffs2, "mkfs.jffs2"), .size = 8 * MIB },
	{ .name = "ubifs", .mkfs = SCRIPT(make_ubifs, "mkfs.ubifs"), .size = 8 * MIB },
	{ .name = "bcachefs",
	  .mkfs = (const char *const[]){ "bcachefs", "format", "-q", "-f", NULL },
	  .size = 64 * MIB,
	  .foreign = true },
};

/* File systems on persistent memory: the outer names are ours, the inner ones the kernel's. */
static const struct guest_pm_fs {
	const char *name;
	struct host_fs fs;
} pm_file_systems[] = {
	{ "ext4-dax",
	  { .name = "ext4",
	    .mkfs = (const char *const[]){ "mke2fs", "-q", "-F", "-t", "ext4", "-b", "4096", "-E",
					   "lazy_itable_init=0,lazy_journal_init=0,nodiscard",
					   NULL },
	    .size = 16 * MIB,
	    .mount_opts = "dax",
	    .fsck = (const char *const[]){ "e2fsck", "-f", "-n", NULL },
	    .shutdown = true } },
	/* Kernels before 6.0 refuse DAX if blocks can be shared. */
	{ "xfs-dax",
	  { .name = "xfs",
	    .mkfs = (const char *const[]){ "mkfs.xfs", "-q", "-f", "-K", "--unsupported", "-m",
					   "reflink=0", NULL },
	    .size = 64 * MIB,
	    .mount_opts = "nouuid,dax",
	    .fsck = (const char *const[]){ "xfs_repair", "-n", NULL },
	    .shutdown = true } },
	{ "nova",
	  { .name = "NOVA",
	    .module = "nova",
	    .made_by = "init",
	    .size = 16 * MIB,
	    .foreign = true } },
};

int guest_fs_named(const char *spec, const char *mkfs, struct guest_named_fs *out, struct err *err)
{
	const char *type = spec + strlen(GUEST_ANY_PM);
	size_t n = strcspn(type, ",");

	if (*type != ':' || n < 2)
		return err_set(err, -EINVAL,
			       "which file system? Name it as the kernel does, with --fstype NAME "
			       "or -t " GUEST_ANY_PM ":NAME");
	if (!mkfs ||
	    !(strncmp(mkfs, GUEST_MADE_BY, strlen(GUEST_MADE_BY)) == 0 || strstr(mkfs, "{disk}")))
		return err_set(err, -EINVAL,
			       "how is %.*s made? Say it with --mkfs 'COMMAND {disk}', or with "
			       "--mkfs " GUEST_MADE_BY "OPTIONS if mounting with these makes it",
			       (int)n - 1, type + 1);
	out->type = xmemdupz(type + 1, n - 1);
	out->fs = (struct host_fs){ .name = out->type, .size = 16 * MIB };
	if (strncmp(mkfs, GUEST_MADE_BY, strlen(GUEST_MADE_BY)) == 0) {
		out->fs.made_by = mkfs + strlen(GUEST_MADE_BY);
		return 0;
	}
	out->line = server_command(mkfs, "$1", "");
	out->argv[0] = "sh";
	out->argv[1] = "-c";
	out->argv[2] = out->line;
	out->argv[3] = "mkfs";
	out->fs.mkfs = out->argv;
	return 0;
}

void guest_named_fs_release(struct guest_named_fs *n)
{
	free(n->type);
	free(n->line);
	*n = (struct guest_named_fs){ 0 };
}

const struct host_fs *guest_fs_find(const char *name)
{
	const struct guest_pm_fs *pm =
		array_find(i, pm_file_systems, streq(pm_file_systems[i].name, name));
	const struct host_fs *more =
		array_find(i, more_file_systems, streq(more_file_systems[i].name, name));

	return pm ? &pm->fs : more ? more : host_fs_find(name);
}

static const struct guest_flash flash[] = {
	{ .fs = "jffs2", .source = "mtd0", .erase_block = 65536 },
	{ .fs = "ubifs",
	  .source = "ubi0_0",
	  .needs = { "lzo", "deflate", "zstd" },
	  .erase_block = 65536 },
};

const struct guest_flash *guest_fs_flash(const char *name)
{
	return array_find(i, flash, streq(flash[i].fs, name));
}
