/* SPDX-License-Identifier: MIT */
/*
 * app_command.h - commands that need no shell.
 *
 * A command is what a shell makes of it. Where that is nothing but a path and some words, the
 * shell's own start, about as long as that of a small program, can be saved.
 */
#ifndef APP_APP_COMMAND_H
#define APP_APP_COMMAND_H

#include "base/util.h"

/*
 * The words of a command that begins with a path (a name alone may be the shell's own), and has no
 * character that could mean something to a shell; NULL if it is not such a one. For free(), in one.
 */
char **command_words(const char *command);

#endif
