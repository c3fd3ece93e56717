/* SPDX-License-Identifier: MIT */
/* reffs_mount.h - the reference file system as a mount. */
#ifndef FSMOUNT_REFFS_MOUNT_H
#define FSMOUNT_REFFS_MOUNT_H

#include "base/err.h"
#include "fs/reffs.h"

struct reffs_mount_opts {
	struct reffs_opts fs;
	bool allow_other; /* other users may use it; else only the user who mounts it */
	bool direct;	  /* no pages in the kernel: nothing to forget, and no shared mappings */
	const char *load; /* a file of states to begin with, or NULL */
	uint64_t key;	  /* the one that is shown first */
};

struct reffs_mount;

/* Mounts on `dir`. On failure nothing is mounted. */
int reffs_mount_new(const char *dir, const struct reffs_mount_opts *opts, struct reffs_mount **out,
		    struct err *err) must_check;
/* Goes into the background; the caller's process ends with status 0. */
int reffs_mount_detach(struct reffs_mount *m, struct err *err) must_check;
/* Serves until it is unmounted, or SIGINT, SIGTERM or SIGHUP comes. */
int reffs_mount_serve(struct reffs_mount *m, struct err *err) must_check;
/* Unmounts if it is mounted. */
void reffs_mount_free(struct reffs_mount *m); /* NULL is fine */

#endif
