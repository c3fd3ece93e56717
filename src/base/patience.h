/* SPDX-License-Identifier: MIT */
/*
 * patience.h - whether a process hangs. A process hangs when it was silent for long although it
 * could have gone on; on a machine that is busy with something else it may only be waiting for a
 * processor, and that time does not count.
 */
#ifndef BASE_PATIENCE_H
#define BASE_PATIENCE_H

#include "base/util.h"

/* The processors' work for a process and those below it, all together. */
struct patience_share {
	uint64_t ran_ns;     /* with children of theirs that have ended */
	uint64_t waited_ns;  /* until it ran: of one that waits still, it is not told */
	unsigned waits;	     /* threads that could run, or do; the caller's apart */
	unsigned processors; /* that one of these may use, at most */
};

void patience_share(pid_t pid, struct patience_share *out);

/*
 * The part of the time between two looks that was spent on waiting for a processor. Processes that
 * had as many as they could use waited for none. The result is a guess: the waiting of processes
 * that have ended meanwhile is not known. So some of the time always counts.
 */
uint64_t patience_lost(const struct patience_share *a, const struct patience_share *b, uint64_t ns);

struct patience {
	uint64_t since_ns;	     /* when it moved */
	uint64_t looked_ns;	     /* 0: not since then */
	struct patience_share share; /* the share at that time */
	uint64_t lost_ns;	     /* the time that does not count */
};

/* The process has moved. */
void patience_renew(struct patience *p);

/*
 * Whether it was silent for longer than the limit, together with all processes below it. To be
 * asked again and again. A process that gets little, and does not come to an end, is given at most
 * ten times as long.
 */
bool patience_ends(struct patience *p, pid_t pid, uint64_t limit_ns);

/* For how long it was silent, with what does not count; in seconds, whole ones if there are any. */
double patience_silence(const struct patience *p);

#endif
