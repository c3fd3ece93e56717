/* SPDX-License-Identifier: MIT */
/*
 * states.h - enumerates every crash of a run, one state after the other.
 *
 *	states_new(&history, &opts, &s, &err);
 *	while (states_next(s, &state))
 *		... state.tree, state.acked, state.id ...
 *	states_stats(s, &stats);
 *	states_free(s);
 *
 * The power can fail before the first event, after each that changes or persists something, and
 * after each acknowledgement, which is an EV_PERSIST event of the trace: a line that the
 * application told the world. The enumerator of core/ gives the sets of survivors, nearest first; a
 * state, as a user would find it, is built from each. Two states are the same if a user cannot
 * distinguish them and the same acknowledgements came before.
 *
 * Order. Subsets of up to two operations, and writes torn in the ways that are likely, are tried at
 * all points. Then come larger subsets, as long as fewer states are known than the budget has room
 * for; then all sets of units, or if these are too many, a random sample.
 *
 * Representatives first. If requested, a state for each pattern of operations (cover.h) comes
 * before all others. The pattern of a state tells which kinds of calls, on which kinds of files,
 * were lost, torn, or survived although an operation before them was lost. A state with a new
 * pattern comes at once; all others wait until the enumeration has ended, and then follow in order.
 * Files are of one kind if their names differ in digits only.
 *
 * S1: the order and the choice follow from the history and the options alone.
 */
#ifndef APP_STATES_H
#define APP_STATES_H

#include "app/history.h"
#include "app/app_model.h"
#include "core/crash.h"

struct states_opts {
	unsigned layers;     /* CRASH_WITH_...; 0: all */
	uint32_t max_subset; /* 0: limited only by the budget */
	uint64_t budget;     /* states given out; 0: no limit */
	uint64_t tries;	     /* sets of survivors looked at; 0: 8 times the budget, and 16384 */
	uint64_t sample;     /* sets drawn if there are too many to try all; 0: the budget */
	uint64_t seed;
	/* Called from time to time while sets are tried; true ends that. May be NULL. */
	bool (*stop)(void *ctx);
	void *stop_ctx;
	bool no_trees; /* the caller builds states itself: `tree` stays NULL */
	bool cover;    /* a state for each pattern of operations comes first: cover.h */
};

struct app_state {
	uint64_t number; /* from 0, in the order of appearance */
	uint64_t point;	 /* the number of events that have happened */
	uint64_t acked;	 /* the number of acknowledgements among them */
	char *id;	 /* for states_replay() */
	enum crash_layer layer;
	struct reffs_state *tree; /* NULL with `no_trees` */
	struct hash128 hash;	  /* the hash of the tree */
	struct hash128 pattern;
	bool representative; /* the first of its pattern */
	uint32_t covers;     /* patterns of operations that it was made for */
	/* The survivors of history_window(), in addition to the durable changes. */
	struct survivors survivors;
};

void app_state_release(struct app_state *s);

struct states_stats {
	uint64_t points;
	double possible;     /* sets of survivors, over all points */
	uint64_t tried;	     /* sets tried; each was built, unless its hash was known */
	uint64_t unique;     /* different trees, or different acknowledgements */
	uint64_t given;	     /* states given out */
	uint64_t patterns;   /* patterns of the states found */
	uint64_t waiting;    /* states found, and not given out */
	uint64_t operations; /* patterns of operations, if covered */
	double left_out;     /* sets that were not tried */
	bool budget_hit;     /* states wait, or sets are left out, because of the budget */
	bool maps; /* files were written through mappings, at times that are not known exactly */
};

struct states;

int states_new(struct history *h, const struct states_opts *opts, struct states **out,
	       struct err *err) must_check;
void states_free(struct states *s); /* NULL is fine */
/* Gives the next state; false at the end. `out` is zeros at first, later the old state. */
bool states_next(struct states *s, struct app_state *out);
void states_stats(struct states *s, struct states_stats *out);

/* Builds one state from its id, which depends on trace, profile and unit size alone. */
int states_replay(struct history *h, const char *id, struct app_state *out, struct err *err)
	must_check;

/* Lists the crash points, as numbers of events that have happened, ascending, from `first` on. */
void states_points(const struct trace *t, uint64_t first, struct crash_points *out);
/* Returns the number of events before the first that changes or persists something. */
uint64_t states_first(const struct trace *t);
/* Returns the number of acknowledgements among the first `point` events. */
uint64_t states_acked(const struct trace *t, uint64_t point);

#endif
