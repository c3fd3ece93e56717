/* SPDX-License-Identifier: MIT */
/*
 * pm_model.h - by which persistence model a trace is judged: that of a block device, or one of
 * persistent memory, as its events say. doc/pm-model.md has the rules.
 */
#ifndef RUN_PM_MODEL_H
#define RUN_PM_MODEL_H

#include "core/crash.h"
#include "core/model_pm.h"

/* What a user may say about persistent memory; for other disks it means nothing. */
struct pm_choice {
	bool eadr;	      /* caches are persistent */
	bool split;	      /* copies are not taken as one */
	uint64_t granularity; /* 8 or 64; 0: 64 */
};

/* Whether a trace is of persistent memory. */
bool pm_traced(const struct trace *t);
/* Sets the model in `opts`, if the trace needs another than the usual; `ctx` outlives it. */
void pm_choose_model(const struct pm_choice *choice, const struct trace *t,
		     struct model_pm_opts *ctx, struct crash_opts *opts);
/*
 * Crash points of persistent memory, each once: of marks with nothing between them only the last
 * that says that something is done, as the others have the same states.
 */
void pm_points(const struct trace *t, struct crash_points *out);
/*
 * How many bytes the copy has that begins with a store, where copies are taken as one; else those
 * of the store.
 */
uint64_t pm_copy_len(const struct pm_choice *choice, const struct trace *t, uint64_t store);
/* The one of them that stands for the begin of an operation; 0 if it has none. */
uint64_t pm_begin_point(const struct trace *t, uint64_t op);

#endif
