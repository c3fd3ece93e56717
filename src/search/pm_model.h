/* SPDX-License-Identifier: MIT */
/*
 * pm_model.h - by which persistence model a trace is judged: that of a block device, or one of
 * persistent memory, as its events say. doc/pm-model.md has the rules.
 */
#ifndef SEARCH_PM_MODEL_H
#define SEARCH_PM_MODEL_H

#include "base/vec.h"
#include "core/crash.h"
#include "core/model_pm.h"

/* A user's options of the model; all but the first mean nothing for disks. */
struct pm_choice {
	const struct model_ops *model; /* NULL, or for another kind of trace: what is usual */
	bool eadr;		       /* caches are persistent */
	bool split;		       /* copies are not taken as one */
	uint64_t granularity;	       /* 8 or 64; 0: 64 */
};

/*
 * Stores of a copy are taken together from so many bytes on: a log entry, a name longer than a
 * line, or a record and the flag behind it that says that it is there, is worth trying line by
 * line.
 */
enum { PM_JOIN_USUAL = 256 };

/* How the models of persistent memory cut stores. */
struct model_pm_opts pm_model_opts(uint64_t granularity, bool split);
/* Whether a trace is of persistent memory. */
bool pm_traced(const struct trace *t);
/* Sets the model in `opts`, if the trace needs another than the usual; `ctx` outlives it. */
void pm_choose_model(const struct pm_choice *choice, const struct trace *t,
		     struct model_pm_opts *ctx, struct crash_opts *opts);
/* Rebuilds a state of the trace from its id, as crash_replay() does. */
int pm_choice_replay(const struct pm_choice *choice, const struct trace *t,
		     const struct image *base, const char *id, struct crash_state *out,
		     struct err *err) must_check;
/*
 * Crash points of persistent memory, each once: of marks with nothing between them only the last
 * that says that something is done, as the others have the same states.
 */
void pm_points(const struct trace *t, struct crash_points *out);

/* A part of the data in flight at a crash point, as the model cuts them: a copy is one. */
struct pm_piece {
	uint64_t event; /* its first store */
	uint64_t addr, len;
};

struct pm_pieces vec_of(struct pm_piece);
void pm_pieces_at(const struct pm_choice *choice, const struct trace *t, uint64_t point,
		  struct pm_pieces *out);
/* The piece of a store; the store itself if it is in none. */
struct pm_piece pm_piece_of(const struct pm_pieces *pieces, const struct trace *t, uint64_t event);
/* The one of them that stands for the begin of an operation; 0 if it has none. */
uint64_t pm_begin_point(const struct trace *t, uint64_t op);

#endif
