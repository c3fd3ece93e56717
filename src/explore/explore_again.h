/* SPDX-License-Identifier: MIT */
/* explore_again.h - a finding that was kept: shown again, and made smaller, with all its sides. */
#ifndef EXPLORE_EXPLORE_AGAIN_H
#define EXPLORE_EXPLORE_AGAIN_H

#include "explore/explore_keep.h"
#include "run/shrink.h"

/*
 * Does the script of a finding `tries` times: `shown` times, it shows. `result` gets what was seen
 * last, `log` the operations.
 */
int explore_replay(const struct kept_case *c, unsigned tries, unsigned *shown,
		   struct step_result *result, struct strbuf *log, struct err *err) must_check;
/* As shrink_case(), but the operations of the script become fewer and plainer. */
int explore_shrink(const struct kept_case *c, const struct shrink_opts *opts, const char *dir,
		   struct shrink_result *out, struct err *err) must_check;

#endif
