/* SPDX-License-Identifier: MIT */
/* crash_race.h - for crash.c only; other rooms find the number in crash_stats.racing. */
#ifndef CORE_CRASH_RACE_H
#define CORE_CRASH_RACE_H

#include "core/trace.h"

/* Pairs of writes, discards and zeroes among the first `until` events that overlap and were both
 * under way. */
uint64_t crash_count_racing(const struct trace *t, uint64_t until);

#endif
