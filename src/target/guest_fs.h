/* SPDX-License-Identifier: MIT */
/*
 * guest_fs.h - the file systems that a guest is tested with: those of host.h, and more that this
 * machine's kernel is not tested with.
 */
#ifndef TARGET_GUEST_FS_H
#define TARGET_GUEST_FS_H

#include "target/host.h"

/*
 * Each entry has the guarantee, the names that mkfs leaves in the root, the package of the
 * programs, and the programs: X(NAME, GUARANTEE, IGNORE, PACKAGE, PROGRAMS...).
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

/* File systems for flash, with virtual machines only. */
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

/* Returns how a file system is made, recovered and checked; NULL if there is none of that name. */
const struct host_fs *guest_fs_find(const char *name);

/*
 * A file system in no list, on persistent memory: "vm:pm:NAME,OPTIONS", with the kernel's name. The
 * file system is made by a command that runs here, 'COMMAND {disk}', or by a first mount with other
 * options, "mount:OPTIONS".
 */
#define GUEST_ANY_PM  "vm:pm"
#define GUEST_MADE_BY "mount:"

struct guest_named_fs {
	struct host_fs fs;
	char *type, *line;
	const char *argv[5];
};

/* Fills `out`; neither `mkfs` nor `out` may move afterwards. */
int guest_fs_named(const char *spec, const char *mkfs, struct guest_named_fs *out, struct err *err)
	must_check;
void guest_named_fs_release(struct guest_named_fs *n);

/*
 * A file system of flash has no disk, but pages of the guest's memory that a driver, mtdram, shows
 * as flash: written data is durable at once, as on flash, without a cache of the kernel.
 */
struct guest_flash {
	const char *fs;
	const char *source;   /* the source to mount */
	const char *needs[3]; /* modules that it requests by another name */
	uint32_t erase_block; /* in bytes */
};

/* Returns NULL if the file system is on a disk. */
const struct guest_flash *guest_fs_flash(const char *name);

#endif
