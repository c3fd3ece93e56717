/* SPDX-License-Identifier: MIT */
/* disk_fuse.h - the recorder that serves the file behind a loop device; see record/disk.h. */
#ifndef RECORD_DISK_FUSE_H
#define RECORD_DISK_FUSE_H

#include "record/disk.h"

/* For disk_register(). */
extern const struct disk_ops disk_fuse;

#endif
