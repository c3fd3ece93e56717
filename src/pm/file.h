/* SPDX-License-Identifier: MIT */
/*
 * file.h - a file with given contents, at the path that the user's file has.
 *
 * All happens in a mount namespace of the calling process, which is there for nothing else: a copy
 * on a tmpfs is mounted over the file, which is never changed. Going from one content to the next
 * costs what differs, and a look at what is there.
 */
#ifndef PM_FILE_H
#define PM_FILE_H

#include "base/err.h"
#include "core/image.h"

struct pm_file;

/* Makes an empty file if there is none: `made`, for the caller to remove. */
int pm_file_place(const char *path, bool *made, struct err *err) must_check;
/* Moves the process into its namespace; at `path` there must be a file, of any size. */
int pm_file_new(const char *path, uint64_t size, struct pm_file **out, struct err *err) must_check;
/* Makes the file hold this image, whatever was done to it before. */
int pm_file_put(struct pm_file *f, const struct image *img, struct err *err) must_check;
/* A directory of ours, for what goes with it. */
const char *pm_file_notes(const struct pm_file *f);

#endif
