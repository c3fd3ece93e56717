/* SPDX-License-Identifier: MIT */
/* ops.h - the file system as a FUSE server. */
#ifndef SEEDFS_OPS_H
#define SEEDFS_OPS_H

#include "seedfs.h"

#define SYNC_XATTR "user.seedfs.sync"

/* Serves until unmounted; on return `fs` is closed. `options` go to the kernel. 0 or -errno. */
int ops_serve(struct fs *fs, const char *mountpoint, const char *options, bool foreground);

/* fsync never returns; fdatasync does. For testing who waits. */
extern bool ops_hang;

#endif
