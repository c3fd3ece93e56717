/* SPDX-License-Identifier: MIT */
/* mounting.h - serves a mount, here or in the background, for `outage mount` and `lazyfs`. */
#ifndef CLI_MOUNTING_H
#define CLI_MOUNTING_H

#include "cli/cli.h"
#include "forget/forget_run.h"

enum { EXIT_CRASHED = 3 }; /* the mount ended in a crash, as a fault or a command said */

/*
 * Serves until the mount ends, and gives an exit status. In the background: returns when it is
 * mounted and answers, or could not be mounted. `log` says where lines for people go, or NULL.
 */
int mounting_run(struct forget_run_opts *o, bool background, FILE *log);

/* The program under the name lazyfs. */
extern const struct command cmd_lazyfs;

#endif
