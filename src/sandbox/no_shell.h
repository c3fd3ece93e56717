/* SPDX-License-Identifier: MIT */
/*
 * no_shell.h - commands that need no shell.
 *
 * If a command is only a path and some words, the start of a shell, which takes about as long as a
 * small program, can be saved.
 */
#ifndef SANDBOX_NO_SHELL_H
#define SANDBOX_NO_SHELL_H

#include "base/util.h"

/*
 * Returns the words of a command that begins with a path (a bare name may be a shell builtin), and
 * has no character that is special to a shell; else NULL. One free() releases all.
 */
char **no_shell_words(const char *command);

#endif
