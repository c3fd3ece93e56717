/* SPDX-License-Identifier: MIT */
/* explore_kept.h - how outage explore uses what runs before have kept. */
#ifndef CLI_EXPLORE_KEPT_H
#define CLI_EXPLORE_KEPT_H

#include "cli/kind.h"
#include "explore/explore.h"

/* How much runs overlapped. The exit status. */
int explore_overlap(char *const *runs, bool json);

#endif
