/* SPDX-License-Identifier: MIT */
/*
 * file.h - a file with given content at the path of the user's file.
 *
 * All mounts are in a mount namespace of the calling process, which does nothing else: a copy on a
 * tmpfs is mounted over the user's file, which never changes. A new content costs a comparison with
 * the old one, and the pages that differ.
 */
#ifndef PM_FILE_H
#define PM_FILE_H

#include "base/err.h"
#include "base/space.h"
#include "core/image.h"

struct pm_file;

/* Makes an empty file if there is none; then `made` is set, and the caller removes the file. */
int pm_file_place(const char *path, bool *made, struct err *err) must_check;
/* Moves the process into a namespace of its own; `path` must be a file, of any size. */
int pm_file_new(const char *path, uint64_t size, struct pm_file **out, struct err *err) must_check;
/* Gives the file this image, whatever the commands have done to it. */
int pm_file_put(struct pm_file *f, const struct image *img, struct err *err) must_check;
/* A directory for other files of a check, which pm_file_new() makes. */
#define PM_FILE_NOTES SPACE_DIR "/notes"

#endif
