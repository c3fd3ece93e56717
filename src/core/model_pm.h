/* SPDX-License-Identifier: MIT */
/*
 * model_pm.h - the options of the models of persistent memory, "pm" and "pm-eadr". doc/pm-model.md
 * has the rules and where they come from.
 */
#ifndef CORE_MODEL_PM_H
#define CORE_MODEL_PM_H

#include "core/model.h"

enum {
	PM_COPY_SPAN = 1024, /* bytes of code that one copy is made by, unless a loop tells */
	PM_ATOMIC = 8,	     /* aligned bytes that no store, however torn, is cut within */
};

#define PM_JOIN_NEVER UINT64_MAX

/* model_opts.ctx, crash_opts.model_ctx; NULL: all zeros. The same for a replay as for the run. */
struct model_pm_opts {
	/*
	 * Stores that are nearer than this persist in their order: PM_LINE, as the manual says,
	 * or PM_ATOMIC, where stores to one line may be reordered as well. 0: PM_LINE.
	 */
	uint32_t granularity;
	/*
	 * Contiguous stores of one copy survive together, as one piece, if there are more bytes of
	 * them than this. 0: all of them do; PM_JOIN_NEVER: none.
	 */
	uint64_t join_min;
};

/* Fails if there is no such granularity. */
int model_pm_opts_check(const struct model_pm_opts *opts, struct err *err) must_check;

#endif
