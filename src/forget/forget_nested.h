/* SPDX-License-Identifier: MIT */
/* forget_nested.h - refuses a ROOT inside of another one. */
#ifndef FORGET_FORGET_NESTED_H
#define FORGET_FORGET_NESTED_H

#include "base/err.h"

/*
 * Fails if a running server uses a ROOT above `root`, or below it: each would remove files that the
 * other shows, and undo its changes. Servers that do not answer are not waited for.
 */
int forget_nested_check(const char *root, struct err *err) must_check;

/* True if `path` is `dir` or below it; both are absolute, without symbolic links. */
bool forget_path_is_below(const char *path, const char *dir);

#endif
