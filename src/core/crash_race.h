/* SPDX-License-Identifier: MIT */
/* crash_race.h - for crash.c only; other rooms find the number in crash_stats.racing. */
#ifndef CORE_CRASH_RACE_H
#define CORE_CRASH_RACE_H

#include "core/trace.h"

/* Counts overlapping pairs of writes, discards and zeroes in flight together before `until`. */
uint64_t crash_count_racing(const struct trace *t, uint64_t until);

#endif
