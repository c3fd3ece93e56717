/* SPDX-License-Identifier: MIT */
/* opening.h - opens the file argument of an operation, as open(2) would.
 */
#ifndef FS_OPENING_H
#define FS_OPENING_H

#include "fs/reffs_impl.h"

/*
 * Opens as exec_open_path(). Returns 0 or -errno. A file that O_TMPFILE makes is an orphan, and the
 * caller must give it a handle at once.
 */
int opened_from_path(struct reffs *r, const char *path, int flags, uint32_t mode,
		     struct opened *out);
/* Gives an ARG_FILE argument: its handle, or its path opened with `flags` for this operation. */
int opened_from_arg(struct reffs *r, const struct arg *arg, int flags, struct opened *out);

bool opened_readable(const struct opened *f);
bool opened_writable(const struct opened *f);

#endif
