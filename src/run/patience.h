/* SPDX-License-Identifier: MIT */
/*
 * patience.h - whether a process hangs. It does when it was silent for long although it could have
 * gone on; on a machine that is busy with something else it may only be waiting for a processor,
 * and that time does not count.
 */
#ifndef RUN_PATIENCE_H
#define RUN_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "run/reap.h"

struct patience {
	uint64_t since_ns;	 /* when it moved */
	uint64_t looked_ns;	 /* 0: not since then */
	struct reap_share share; /* what it had then */
	uint64_t lost_ns;	 /* what does not count */
};

/* It has moved. */
void patience_renew(struct patience *p);

/*
 * Whether it was silent for longer than the limit, together with all processes below it. To be
 * asked again and again. A process that takes all it gets, and does not come to an end, is given at
 * most ten times as long.
 */
bool patience_ends(struct patience *p, pid_t pid, uint64_t limit_ns);

/* For how long it was silent, with what does not count; in seconds, whole ones if there are any. */
double patience_silence(const struct patience *p);

#endif
