/* SPDX-License-Identifier: MIT */
/*
 * pm_model.h - chooses the persistence model of a trace by its events: that of a block device, or
 * one of persistent memory. doc/pm-model.md has the rules.
 */
#ifndef SEARCH_PM_MODEL_H
#define SEARCH_PM_MODEL_H

#include "base/vec.h"
#include "core/crash.h"
#include "core/model_pm.h"

/* A user's options of the model; only `model` has a meaning for disks. */
struct pm_choice {
	const struct model_ops *model; /* NULL, or for another kind of trace: the usual model */
	bool eadr;		       /* caches are persistent */
	bool split;		       /* the stores of a copy are pieces of their own */
	uint64_t granularity;	       /* 8 or 64; 0: 64 */
};

/*
 * The stores of a copy of at least so many bytes are one piece. Smaller copies are worth trying
 * line by line: a log entry, a name longer than a line, or a record with the flag behind it that
 * makes it valid.
 */
enum { PM_JOIN_USUAL = 256 };

/* Returns how the models of persistent memory cut stores. */
struct model_pm_opts pm_model_opts(uint64_t granularity, bool split);
/* True if a trace is of persistent memory. */
bool pm_traced(const struct trace *t);
/* Sets the model in `opts` if the trace needs another than the usual one; `ctx` outlives `opts`. */
void pm_choose_model(const struct pm_choice *choice, const struct trace *t,
		     struct model_pm_opts *ctx, struct crash_opts *opts);
/* Rebuilds a state of the trace from its id, as crash_replay() does. */
int pm_choice_replay(const struct pm_choice *choice, const struct trace *t,
		     const struct image *base, const char *id, struct crash_state *out,
		     struct err *err) must_check;
/*
 * Lists the crash points of persistent memory, each once. If there is nothing between marks, only
 * the point behind the last one that ends an operation is listed: the others have the same states.
 */
void pm_points(const struct trace *t, struct crash_points *out);

/* A piece in flight at a crash point, as the model cuts stores: a copy is one piece. */
struct pm_piece {
	uint64_t event; /* its first store */
	uint64_t addr, len;
};

struct pm_pieces vec_of(struct pm_piece);
void pm_pieces_at(const struct pm_choice *choice, const struct trace *t, uint64_t point,
		  struct pm_pieces *out);
/* Returns the piece of a store; the store itself if it is in no piece. */
struct pm_piece pm_piece_of(const struct pm_pieces *pieces, const struct trace *t, uint64_t event);
/* Returns the point of pm_points() for the begin of an operation; 0 if it has none. */
uint64_t pm_begin_point(const struct trace *t, uint64_t op);

#endif
