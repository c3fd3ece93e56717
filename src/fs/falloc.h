/* SPDX-License-Identifier: MIT */
/* falloc.h - the checks and results of fallocate(2) that need no file. */
#ifndef FS_FALLOC_H
#define FS_FALLOC_H

#include "base/util.h"

/* Checks mode and length. Returns 0 or -errno. */
int falloc_check(int mode, uint64_t len);

#endif
