/* SPDX-License-Identifier: MIT */
/*
 * patience.h - decides whether a process hangs. A process hangs if it was silent for long although
 * a processor was free for it; the time in which it waited for a processor does not count.
 */
#ifndef BASE_PATIENCE_H
#define BASE_PATIENCE_H

#include "base/util.h"

/* Processor time of a process and those below it, all together. */
struct patience_share {
	uint64_t ran_ns;     /* including children that have ended */
	uint64_t waited_ns;  /* the wait until each run; a wait that lasts still is not included */
	unsigned waits;	     /* threads that run or could run, without the caller's */
	unsigned processors; /* the largest number that one of these may use */
};

void patience_share(pid_t pid, struct patience_share *out);

/*
 * The part of the time between two looks that was spent on waiting for a processor. Processes that
 * had as many processors as they could use waited for none. The result is an estimate, because the
 * waiting of processes that have ended meanwhile is not known. So some of the time always counts.
 */
uint64_t patience_lost(const struct patience_share *a, const struct patience_share *b, uint64_t ns);

/*
 * The factor by which the machine's other load has slowed down a process and those below it so far,
 * from 1 to 10: for a limit of time that is chosen before a command is run, and kept by a process
 * that cannot see this load, such as one in a guest.
 */
unsigned patience_factor(pid_t pid);

struct patience {
	uint64_t since_ns;	     /* when the process last moved */
	uint64_t looked_ns;	     /* when it was last looked at; 0: not since then */
	struct patience_share share; /* the share at that time */
	uint64_t lost_ns;	     /* the time that does not count */
};

/* The process has moved. */
void patience_renew(struct patience *p);

/*
 * True if the process was silent for longer than the limit, together with all processes below it.
 * The caller asks repeatedly. A process that gets little processor time is given at most ten times
 * the limit.
 */
bool patience_ends(struct patience *p, pid_t pid, uint64_t limit_ns);

/* The whole silence in seconds, with the time that does not count; rounded from one second on. */
double patience_silence(const struct patience *p);

#endif
