/* SPDX-License-Identifier: MIT */
/* forget_nested.h - no ROOT inside of another. */
#ifndef FORGET_FORGET_NESTED_H
#define FORGET_FORGET_NESTED_H

#include "base/err.h"

/*
 * Fails if a server that is there uses a ROOT above `root`, or below it: each would take away what
 * the other shows, and undo what it did. Servers that do not answer are not waited for.
 */
int forget_nested_check(const char *root, struct err *err) must_check;

/* Whether `path` is `dir` or inside of it; both absolute, and without symbolic links. */
bool forget_path_is_below(const char *path, const char *dir);

#endif
