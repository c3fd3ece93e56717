/* SPDX-License-Identifier: MIT */
/* server.h - a FUSE server as a child: started through a shell, waited for, and ended. */
#ifndef TARGET_SERVER_H
#define TARGET_SERVER_H

#include <sys/stat.h>

#include "base/err.h"

/* Returns the command with {disk} and {mnt} filled in; `disk` may be NULL. */
char *server_command(const char *command, const char *disk, const char *mnt);

/*
 * Starts the server in a process group of its own. The server dies with this process, unless the
 * command needs a shell in between.
 */
int server_start(const char *line, pid_t *out, struct err *err) must_check;
/* True if another file system than before is at `mnt`. */
bool server_has_mounted(const char *mnt, const struct stat *before);
/* Waits for the server's end; kills it after `grace_ms`. Sets `*server` to 0. */
void server_reap(pid_t *server, unsigned grace_ms);

#endif
