/* SPDX-License-Identifier: MIT */
/* server.h - a FUSE server as a child: started through a shell, waited for, and ended. */
#ifndef TARGET_SERVER_H
#define TARGET_SERVER_H

#include <sys/stat.h>

#include "base/err.h"

/* The command with {disk} and {mnt} filled in; `disk` may be NULL. */
char *server_command(const char *command, const char *disk, const char *mnt);

/*
 * Starts it in a process group of its own. The server dies with us, unless the command is one for
 * which a shell has to stay in between.
 */
int server_start(const char *line, pid_t *out, struct err *err) must_check;
/* Whether something else is at `mnt` than before. */
bool server_has_mounted(const char *mnt, const struct stat *before);
/* Waits for its end; after `grace_ms` it is killed. Sets the process to 0. */
void server_reap(pid_t *server, unsigned grace_ms);

#endif
