/* SPDX-License-Identifier: MIT */
/* clock-jumps.c - a wall clock that is set an hour forward each time it is read; for LD_PRELOAD. */
#include <stdatomic.h>
#include <time.h>

time_t time(time_t *out)
{
	static _Atomic int reads;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	now.tv_sec += 3600 * (time_t)atomic_fetch_add(&reads, 1);
	if (out)
		*out = now.tv_sec;
	return now.tv_sec;
}
