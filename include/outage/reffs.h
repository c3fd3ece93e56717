/* SPDX-License-Identifier: MIT */
/*
 * outage/reffs.h - the calls of a mounted reference file system (outage-reffs(1)) that others lack:
 * save its whole state under a key, go back to it, and keep states in files.
 *
 * Each call is an ioctl(2) on a descriptor of any file or directory of the mount. The ioctl returns
 * 0, or -1 with errno. Only the user who mounted it, and root, may make these calls: others get
 * EPERM.
 *
 *	struct outage_reffs_key key = { .key = 17 };
 *
 *	ioctl(fd, OUTAGE_REFFS_SAVE, &key);
 *	...
 *	ioctl(fd, OUTAGE_REFFS_RESTORE, &key);
 *
 * A state is all that has a name: files, directories and the rest with all their attributes. Saving
 * and restoring cost the same for one file and for a million.
 *
 * A store to memory that maps a file is part of a state only once it was written back: msync(2)
 * before saving and before restoring.
 */
#ifndef OUTAGE_REFFS_H
#define OUTAGE_REFFS_H

#include <linux/ioctl.h>
#include <linux/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Flags. Bits that are not defined must be 0, else the call is EINVAL. */
enum {
	/* OUTAGE_REFFS_RESTORE: the state stays under its key; else it is given up. */
	OUTAGE_REFFS_KEEP = 1,
	/* OUTAGE_REFFS_PICKLE: all states that are saved; `key` does not matter. */
	OUTAGE_REFFS_ALL = 2,
};

struct outage_reffs_key {
	__u64 key; /* any number */
	__u32 flags;
	__u32 reserved; /* 0 */
};

struct outage_reffs_file {
	__u64 key;
	__u32 flags;
	__u32 reserved; /* 0 */
	/* Absolute, with a NUL; opened by the process that serves the mount, as its user. */
	char path[4080];
};

struct outage_reffs_hash {
	__u64 lo, hi;
};

/* Saves the state under the key, in place of what was saved there. */
#define OUTAGE_REFFS_SAVE _IOW('R', 1, struct outage_reffs_key)

/*
 * Goes back to the state of a key; ENOENT if there is none. Descriptors stay open: of what is in
 * the state they show what it was, of what is not, and of files without a name, they give ESTALE.
 * When the call returns, the kernel shows nothing of what was there before.
 */
#define OUTAGE_REFFS_RESTORE _IOW('R', 2, struct outage_reffs_key)

/* Writes the saved state of a key, or all of them, to a file. ENOENT if there is none. */
#define OUTAGE_REFFS_PICKLE _IOW('R', 3, struct outage_reffs_file)

/*
 * Reads a file that OUTAGE_REFFS_PICKLE wrote: its states are then saved under their keys, in place
 * of what was there. `key` does not matter. EBADMSG if the file is damaged: then nothing changes.
 */
#define OUTAGE_REFFS_LOAD _IOW('R', 4, struct outage_reffs_file)

/* Gives up what is saved under a key; ENOENT if that is nothing. */
#define OUTAGE_REFFS_DROP _IOW('R', 5, struct outage_reffs_key)

/*
 * The hash of all that can be seen but times, inode numbers and the order of names: two states have
 * the same hash if and only if they look the same to a user.
 */
#define OUTAGE_REFFS_HASH _IOR('R', 6, struct outage_reffs_hash)

#ifdef __cplusplus
}
#endif

#endif
