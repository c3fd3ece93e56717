/* SPDX-License-Identifier: MIT */
/*
 * model_pm.h - the options of the models of persistent memory, "pm" and "pm-eadr". doc/pm-model.md
 * has the rules and their sources.
 */
#ifndef CORE_MODEL_PM_H
#define CORE_MODEL_PM_H

#include "core/model.h"

enum {
	PM_COPY_SPAN = 1024, /* bytes of code that make one copy, if there is no loop */
	PM_ATOMIC = 8,	     /* aligned bytes within which no store is torn */
};

#define PM_JOIN_NEVER UINT64_MAX

/* model_opts.ctx, crash_opts.model_ctx; NULL: all zeros. A replay needs those of the run. */
struct model_pm_opts {
	/*
	 * Stores within one aligned range of so many bytes persist in their order: PM_LINE, as the
	 * manual says, or PM_ATOMIC, if stores to one line may be reordered as well. 0: PM_LINE.
	 */
	uint32_t granularity;
	/*
	 * Contiguous stores of one copy survive together, as one piece, if they have more bytes
	 * than this. 0: all of them do; PM_JOIN_NEVER: none.
	 */
	uint64_t join_min;
};

/* Fails if the granularity is another number. */
int model_pm_opts_check(const struct model_pm_opts *opts, struct err *err) must_check;

#endif
