/* SPDX-License-Identifier: MIT */
/* reffs_mount.h - the reference file system as a mount. */
#ifndef FSMOUNT_REFFS_MOUNT_H
#define FSMOUNT_REFFS_MOUNT_H

#include "base/err.h"
#include "fs/reffs.h"

struct reffs_mount_opts {
	struct reffs_opts fs;
	bool allow_other; /* other users may use the mount, not only its owner */
	bool direct;	  /* the kernel keeps no pages, and allows no shared mappings */
	const char *load; /* a file of states to begin with, or NULL */
	uint64_t key;	  /* the key of the state that is shown first */
};

struct reffs_mount;

/* Mounts on `dir`. On failure nothing is mounted. */
int reffs_mount_new(const char *dir, const struct reffs_mount_opts *opts, struct reffs_mount **out,
		    struct err *err) must_check;
/* Continues in the background; the caller's process ends with status 0. */
int reffs_mount_detach(struct reffs_mount *m, struct err *err) must_check;
/* Serves until the file system is unmounted, or SIGINT, SIGTERM or SIGHUP comes. */
int reffs_mount_serve(struct reffs_mount *m, struct err *err) must_check;
/* Unmounts if mounted, and frees. */
void reffs_mount_free(struct reffs_mount *m); /* NULL is fine */

#endif
