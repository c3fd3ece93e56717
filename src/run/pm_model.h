/* SPDX-License-Identifier: MIT */
/*
 * pm_model.h - by which persistence model a trace is judged: that of a block device, or one of
 * persistent memory, as its events say. doc/pm-model.md has the rules.
 */
#ifndef RUN_PM_MODEL_H
#define RUN_PM_MODEL_H

#include "base/vec.h"
#include "core/crash.h"
#include "core/model_pm.h"

/* What a user may say about it; all but the first means nothing for disks. */
struct pm_choice {
	const struct model_ops *model; /* NULL, or for another kind of trace: what is usual */
	bool eadr;		       /* caches are persistent */
	bool split;		       /* copies are not taken as one */
	uint64_t granularity;	       /* 8 or 64; 0: 64 */
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

/* What is in flight at a crash point, as the model cuts it: a copy is one piece. */
struct pm_piece {
	uint64_t event; /* its first store */
	uint64_t addr, len;
};

struct pm_pieces vec_of(struct pm_piece);
void pm_pieces_at(const struct pm_choice *choice, const struct trace *t, uint64_t point,
		  struct pm_pieces *out);
/* That of a store; the store itself if it is not among them. */
struct pm_piece pm_piece_of(const struct pm_pieces *pieces, const struct trace *t, uint64_t event);
/* The one of them that stands for the begin of an operation; 0 if it has none. */
uint64_t pm_begin_point(const struct trace *t, uint64_t op);

#endif
