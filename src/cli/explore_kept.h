/* SPDX-License-Identifier: MIT */
/* explore_kept.h - what outage explore does with what runs before have kept. */
#ifndef CLI_EXPLORE_KEPT_H
#define CLI_EXPLORE_KEPT_H

#include "explore/explore.h"

struct explore_again {
	struct explore_opts *opts; /* what does not come from the case */
	const char *dir;	   /* the finding */
	bool trust;
};

/* Does a finding again, `ctx` is a struct explore_again. The exit status. */
int explore_again(void *ctx);
/* How much runs overlapped. The exit status. */
int explore_overlap(char *const *runs, bool json);

#endif
