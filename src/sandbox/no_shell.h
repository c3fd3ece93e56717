/* SPDX-License-Identifier: MIT */
/*
 * no_shell.h - commands that need no shell.
 *
 * A command is what a shell makes of it. Where that is nothing but a path and some words, the
 * shell's own start, about as long as that of a small program, can be saved.
 */
#ifndef SANDBOX_NO_SHELL_H
#define SANDBOX_NO_SHELL_H

#include "base/util.h"

/*
 * The words of a command that begins with a path (a name alone may be the shell's own), and has no
 * character that could mean something to a shell; NULL if it is not such a one. For free(), in one.
 */
char **no_shell_words(const char *command);

#endif
