/* SPDX-License-Identifier: MIT */
/* explore_kept.h - what outage explore does with what runs before have kept. */
#ifndef CLI_EXPLORE_KEPT_H
#define CLI_EXPLORE_KEPT_H

#include "cli/kind.h"
#include "explore/explore.h"

/* Does a finding again. The exit status. */
int explore_again(const struct replay_request *r);
/* How much runs overlapped. The exit status. */
int explore_overlap(char *const *runs, bool json);

#endif
