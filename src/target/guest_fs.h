/* SPDX-License-Identifier: MIT */
/*
 * guest_fs.h - the file systems that a guest is tested with: those of host.h, and more that this
 * machine's kernel is not tested with.
 */
#ifndef TARGET_GUEST_FS_H
#define TARGET_GUEST_FS_H

#include "target/host.h"

/*
 * Each with its guarantee, what mkfs leaves in its root, the package of its programs, and these:
 * X(NAME, GUARANTEE, IGNORE, PACKAGE, PROGRAMS...).
 */
#define GUEST_FILE_SYSTEMS(X)                                                                      \
	X(ext4, "linux", guest_lost_found, "e2fsprogs", "mke2fs", "e2fsck")                        \
	X(xfs, "linux", guest_nothing, "xfsprogs", "mkfs.xfs", "xfs_repair")                       \
	X(btrfs, "linux", guest_nothing, "btrfs-progs", "mkfs.btrfs", "btrfs")                     \
	X(ext3, "linux", guest_lost_found, "e2fsprogs", "mke2fs", "e2fsck")                        \
	X(ext2, "bare", guest_lost_found, "e2fsprogs", "mke2fs", "e2fsck")                         \
	X(jfs, "bare", guest_lost_found, "jfsutils", "mkfs.jfs", "fsck.jfs")                       \
	X(reiserfs, "bare", guest_nothing, "reiserfsprogs", "mkfs.reiserfs", "reiserfsck")         \
	X(f2fs, "posix", guest_nothing, "f2fs-tools", "mkfs.f2fs", "fsck.f2fs")                    \
	X(nilfs2, "posix", guest_nilfs_own, "nilfs-tools", "mkfs.nilfs2")

/* The same for flash, with virtual machines only. */
#define GUEST_FLASH_FILE_SYSTEMS(X)                                                                \
	X(jffs2, "posix", guest_nothing, "mtd-utils", "mkfs.jffs2")                                \
	X(ubifs, "posix", guest_nothing, "mtd-utils", "mkfs.ubifs", "ubinize")

#define GUEST_DECLARE(name_, ...)                                                                  \
	extern const struct target_ops target_uml_##name_, target_vm_##name_;
GUEST_FILE_SYSTEMS(GUEST_DECLARE)
#undef GUEST_DECLARE
extern const struct target_ops target_vm_jffs2, target_vm_ubifs, target_vm_bcachefs,
	target_vm_ext4_dax, target_vm_xfs_dax, target_vm_nova, target_vm_pm;

extern const char *const guest_lost_found[], *const guest_nothing[], *const guest_nilfs_own[];

/* How it is made, recovered and checked; NULL: there is none of that name. */
const struct host_fs *guest_fs_find(const char *name);

/*
 * One that is in no list, on persistent memory: "vm:pm:NAME,OPTIONS", as the kernel calls it. The
 * file system is made by a command that is run here, 'COMMAND {disk}', or by a first mount with
 * other options, "mount:OPTIONS".
 */
#define GUEST_ANY_PM  "vm:pm"
#define GUEST_MADE_BY "mount:"

struct guest_named_fs {
	struct host_fs fs;
	char *type, *line;
	const char *argv[5];
};

/* `mkfs` and `out` stay where they are. */
int guest_fs_named(const char *spec, const char *mkfs, struct guest_named_fs *out, struct err *err)
	must_check;
void guest_named_fs_release(struct guest_named_fs *n);

/*
 * A file system of flash has no disk, but pages of the guest's memory that a driver, mtdram, shows
 * as flash: written data is there at once, as on flash, and no cache of the kernel is between.
 */
struct guest_flash {
	const char *fs;
	const char *source;   /* to be mounted */
	const char *needs[3]; /* modules that it asks for by another name */
	uint32_t erase_block; /* in bytes */
};

/* NULL: it is on a disk. */
const struct guest_flash *guest_fs_flash(const char *name);

#endif
