/* SPDX-License-Identifier: MIT */
/*
 * crash.h - crash states: what the storage can hold if the power fails at given places of a trace.
 *
 *	crash_new(&trace, &opts, &e, &err);
 *	while (crash_next(e, &state))
 *		... state.image, state.id ...
 *	crash_stats(e, &stats);
 *	crash_free(e);
 *
 * States come nearest first over all crash points: layer L at every point before layer L + 1 at
 * any. The layers are, in this order:
 *
 *	none         nothing that was in flight survives
 *	all          everything survives
 *	completed    the pieces that the storage had reported done survive
 *	exactly 1    one piece survives            all but 1    one piece is lost
 *	exactly 2    ...                           up to max_subset
 *	tear, all    one piece survives as its first tear units, everything else whole
 *	tear, before the same, and of the others only those submitted before it
 *	parts, all   one piece survives as its last units, or one alone, or all but one
 *	parts, before the same, and of the others only those submitted before it
 *	exactly, all but   the larger subsets, if crash_opts.near_subset puts them here
 *	units        every subset of tear units that did not come before
 *
 * With crash_opts.few_tears, the layers of tears and parts cut each piece only after its first
 * unit, after its first half and before its last unit, and likewise from its end.
 *
 * A state that fits several layers comes with the first of them. From "exactly" on, only pieces
 * that vary (crash_opts.vary) have a choice, and if they are not all there is an "exactly 0", where
 * none of them survives. Past the budget, and beyond max_subset, `sample` more states are drawn
 * from those that were not tried; they come in rounds, each in the order of the points.
 *
 * Identity. The id of a state is the string of the choices that lead to it when nothing is left
 * out of the enumeration, so that it does not depend on the options a run was made with. Its
 * digits, joined by dots (n is the number of pieces in flight, which are counted from 0 in the
 * order of submission; a set is given as words of up to 32 bits, the first piece or unit in the
 * lowest bit of the first word):
 *
 *	0.point                     none
 *	1.point                     all
 *	2.point.words               any set of whole pieces
 *	3.point.unit.words.count.(piece.words)...
 *	                            tear unit in bytes; the pieces that survive whole; how many are
 *	                            torn; for each, ascending, the units of it that survive
 *	2+2k.point.piece...         exactly these k, ascending, 1 <= k <= 16 and k <= n - k
 *	3+2k.point.piece...         all but these k, ascending, 1 <= k <= 16 and k < n - k
 *
 * where point is the crash point: the number of events that have happened. Pieces that others
 * need are in the set that the id names.
 *
 * Duplicates. A state is dropped if the same image was already given out at a crash point with
 * the same marks (EV_OP_BEGIN, EV_OP_END, EV_PERSIST) before it. The same image after another
 * mark is not the same state: an image that is fine before an fsync returned may be a bug after.
 *
 * Not thread-safe; the trace, the points and the base image must outlive the enumerator.
 */
#ifndef CORE_CRASH_H
#define CORE_CRASH_H

#include <signal.h>

#include "base/strbuf.h"
#include "base/vec.h"
#include "core/model.h"
#include "core/trace.h"

enum crash_layer {
	CRASH_NONE,
	CRASH_ALL,
	CRASH_COMPLETED,
	CRASH_EXACTLY,
	CRASH_ALL_BUT,
	CRASH_TEAR_ALL,
	CRASH_TEAR_BEFORE,
	CRASH_PARTS_ALL,
	CRASH_PARTS_BEFORE,
	CRASH_UNITS,
	CRASH_SAMPLE, /* drawn from what the layers above left; not a layer to ask for */
	CRASH_REPLAY, /* rebuilt from its id */
};

/* Bits for crash_opts.layers. */
enum {
	CRASH_WITH_NONE = 1 << CRASH_NONE,
	CRASH_WITH_ALL = 1 << CRASH_ALL,
	CRASH_WITH_COMPLETED = 1 << CRASH_COMPLETED,
	CRASH_WITH_SUBSETS = 1 << CRASH_EXACTLY | 1 << CRASH_ALL_BUT,
	CRASH_WITH_TEARS = 1 << CRASH_TEAR_ALL | 1 << CRASH_TEAR_BEFORE,
	CRASH_WITH_PARTS = 1 << CRASH_PARTS_ALL | 1 << CRASH_PARTS_BEFORE,
	CRASH_WITH_UNITS = 1 << CRASH_UNITS,
	CRASH_WITH_WHOLE = CRASH_WITH_NONE | CRASH_WITH_ALL | CRASH_WITH_SUBSETS,
	CRASH_WITH_TORN = CRASH_WITH_TEARS | CRASH_WITH_PARTS | CRASH_WITH_UNITS,
	CRASH_LAYERS_DEFAULT = CRASH_WITH_WHOLE | CRASH_WITH_COMPLETED,
};

/* Bytes that a disk writes as a whole: today's disks, and the smallest unit of older ones. */
enum { CRASH_SECTOR = 4096, CRASH_SECTOR_MIN = 512 };

struct crash_opts {
	const struct model_ops *model; /* NULL: block */
	const void *model_ctx;	       /* model_opts.ctx */
	const struct image *base;      /* content before the first event; NULL: zeros */
	const uint64_t *points;	       /* ascending, each at most the number of events */
	size_t n_points;
	unsigned layers;      /* CRASH_WITH_... */
	uint32_t max_subset;  /* the largest k of the subset layers; UINT32_MAX: no limit */
	uint32_t near_subset; /* subsets up to this size come before the torn layers; 0: all */
	uint32_t tear_unit;   /* for the torn layers; 0: the sector of the trace */
	bool few_tears;	      /* a few tears of each piece stand for all; not for layer units */

	/*
	 * True if the fate of a piece matters at a point; NULL: all fates matter everywhere. Pieces
	 * that do not matter survive in all states but those of the layers none and completed.
	 *
	 * Called once for each piece that is in flight at a point, right before the first state of
	 * any other layer (or the first sample) is made there; the answer is final. As none, all
	 * and completed come before, at every point, the caller has by then seen the state where
	 * everything survived, and can know what recovery and the walk read of it. The caller may
	 * keep its answer by point, or by the hash of the image, `all`: the reads follow from the
	 * image, and a state that is a duplicate of another point's is not given out a second time.
	 *
	 * Any answer is allowed, also at points where the caller knows nothing because a budget
	 * ended the run early; the answer true leaves nothing out.
	 */
	bool (*vary)(void *ctx, uint64_t point, struct hash128 all,
		     const struct model_piece *piece);
	void *vary_ctx;

	uint64_t budget; /* states given out before sampling begins; 0: no limit */
	uint64_t tries;	 /* states made before that, with duplicates; 0: 64 * budget + 65536 */
	uint64_t sample; /* states drawn from the others */
	uint64_t seed;
	/* If *stop is not 0, crash_new() fails with -EINTR. May be NULL. */
	const volatile sig_atomic_t *stop;
	bool ignore_marks; /* drop every image that was seen before, at any point */
};

#define CRASH_OPTS_INIT                                                                            \
	{                                                                                          \
		.layers = CRASH_LAYERS_DEFAULT, .max_subset = 2                                    \
	}

/* Crash points of a trace; each call adds its own, and the list stays ascending. */
struct crash_points vec_of(uint64_t);

void crash_points_persist(const struct trace *t, struct crash_points *out); /* after EV_PERSIST */
void crash_points_ops(const struct trace *t, struct crash_points *out);	    /* after EV_OP_END */
void crash_points_writes(const struct trace *t, struct crash_points *out);  /* every prefix */
/*
 * Adds points for persistent memory: before each fence, clflush and mark (and at the end) that has
 * stores since the last such point, and after each mark. Between two of these points nothing
 * becomes durable, so each state of any other point is a state of the next of them, or of the last;
 * except halves of a copy that counts as one piece.
 */
void crash_points_pm(const struct trace *t, struct crash_points *out);
void crash_points_all(const struct trace *t, struct crash_points *out);
/* Keeps only the points from `from` to `to`. */
void crash_points_keep(struct crash_points *p, uint64_t from, uint64_t to);
void crash_points_release(struct crash_points *p);

/* A piece that survived in part. */
struct crash_tear {
	uint64_t event;
	uint32_t kept, units; /* tear units that survived, and all its units */
	uint64_t unit;	      /* bytes of a unit */
	uint64_t addr, bytes, kept_bytes;
};

/* A range that a lost piece, or the lost part of a torn one, would have changed. */
struct crash_part {
	uint64_t event, addr, len;
};

/* A crash state, which owns its members and does not depend on the enumerator. */
struct crash_state {
	uint64_t point;
	enum crash_layer layer;
	uint32_t k; /* for the layers exactly and all but */
	struct strbuf id;
	struct image image;		  /* a caller that keeps it makes a snapshot */
	struct hash128 hash;		  /* of the image */
	struct vec_of(uint64_t) survived; /* event numbers; durable events are not listed */
	struct vec_of(uint64_t) lost;
	struct vec_of(struct crash_tear) torn;
	struct vec_of(struct crash_part) gone; /* ranges that did not survive, by piece */
};

#define CRASH_STATE_INIT                                                                           \
	{                                                                                          \
		0                                                                                  \
	}

void crash_state_release(struct crash_state *s);
#define auto_crash_state __attribute__((cleanup(crash_state_release))) struct crash_state

/*
 * Numbers add up at any time: tried = unique + duplicates, and left_out = possible + possible_torn
 * - tried (up to rounding, for numbers beyond 2^53). Where pieces need others, sets that are closed
 * to the same state count one by one, as possible and as tried. Sets that crash_opts.vary rules out
 * at a point move from possible to pruned when it is called there.
 */
struct crash_stats {
	uint64_t points;
	double possible;      /* sets of whole pieces, over all points */
	double possible_torn; /* further sets of tear units; 0 unless a torn layer is asked for */
	double pruned;	      /* sets of whole pieces that differ only in pieces that do not vary */
	uint64_t tried;
	uint64_t unique; /* states given out, with the sampled ones */
	uint64_t duplicates;
	uint64_t skipped; /* duplicates that were recognised without being made */
	uint64_t sampled;
	double left_out;
	bool budget_hit; /* budget or tries ended the enumeration before its end */

	/*
	 * Pairs of overlapping requests that were in flight together, before the last point: the
	 * device may let either win, and only the order of submission is tried.
	 */
	uint64_t racing;
};

/* The enumerator. */
struct crash;

/* Fails if the trace is impossible for the model. `out` is written only on success. */
int crash_new(const struct trace *t, const struct crash_opts *opts, struct crash **out,
	      struct err *err) must_check;
void crash_free(struct crash *e); /* NULL is fine */
static inline void cleanup_crash(struct crash **e)
{
	crash_free(*e);
}
#define auto_crash __attribute__((cleanup(cleanup_crash))) struct crash *

/* Gives the next state, or false at the end. `s` may hold an earlier state. */
bool crash_next(struct crash *e, struct crash_state *s);
void crash_stats(struct crash *e, struct crash_stats *out);

/*
 * Rebuilds one state from its id. Of the options, only model, model_ctx and base matter. `s` is
 * written only on success.
 */
int crash_replay(const struct trace *t, const struct crash_opts *opts, const char *id,
		 struct crash_state *s, struct err *err) must_check;

/* "none", "all but", ... */
const char *crash_layer_name(enum crash_layer layer);

#endif
