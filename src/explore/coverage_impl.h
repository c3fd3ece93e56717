/* SPDX-License-Identifier: MIT */
/* coverage_impl.h - shared by the file that counts and the one that shows. */
#ifndef EXPLORE_COVERAGE_IMPL_H
#define EXPLORE_COVERAGE_IMPL_H

#include "explore/coverage.h"

/* How many partitions an argument has, up to the sizes asked for; 0: this kind has none. */
unsigned coverage_parts(const struct arg_def *arg, const struct inputs *in);
/* Whether its last partition is that no flag is set. */
bool coverage_has_none(const struct arg_def *arg);
bool coverage_is_number(const struct arg_def *arg);

#endif
