/* SPDX-License-Identifier: MIT */
/*
 * states.h - every crash of a run, one state after the other.
 *
 *	states_new(&history, &opts, &s, &err);
 *	while (states_next(s, &state))
 *		... state.tree, state.acked, state.id ...
 *	states_stats(s, &stats);
 *	states_free(s);
 *
 * The power can fail before the first event, after each that changes or persists something, and
 * after each acknowledgement, which is an EV_PERSIST event of the trace: what the application told
 * the world. The enumerator of core/ gives the sets of survivors, nearest first; what a user would
 * find is put together of each. Two states are the same if a user cannot tell them apart and as
 * much had been acknowledged before.
 *
 * How far it goes. Subsets of up to two operations, and writes torn in the ways that are likely,
 * are tried at all points. Then come larger subsets, as long as fewer states are known than the
 * budget has room for; then all sets of units, or if these are too many, a random sample.
 *
 * Representative first. If it is asked for, a state for each pattern of operations (cover.h) comes
 * before all others. The pattern of a state says which kinds of calls, on which kinds of files,
 * were lost, torn, or survived although something before them was lost. A state whose pattern was
 * not there yet comes at once; all others wait until the enumeration has come to its end, and then
 * follow in order. Files are of one kind if their names differ in digits only.
 *
 * S1: the order and the choice follow from the history and the options alone.
 */
#ifndef APP_STATES_H
#define APP_STATES_H

#include "app/history.h"
#include "app/app_model.h"
#include "core/crash.h"

struct states_opts {
	unsigned layers;     /* CRASH_WITH_...; 0: all there are */
	uint32_t max_subset; /* 0: no bound but the budget */
	uint64_t budget;     /* states given out; 0: no limit */
	uint64_t tries;	     /* sets of survivors looked at; 0: 8 times the budget, and 16384 */
	uint64_t sample;     /* sets drawn from what is too much to go through; 0: the budget */
	uint64_t seed;
	/* Asked now and then while sets are looked at; true ends it. NULL: never. */
	bool (*stop)(void *ctx);
	void *stop_ctx;
	bool no_trees; /* the caller puts states together itself: `tree` stays NULL */
	bool cover;    /* before all others, a state for each pattern of operations: cover.h */
};

struct app_state {
	uint64_t number; /* from 0, in the order of appearance */
	uint64_t point;	 /* events that have happened */
	uint64_t acked;	 /* acknowledgements among them */
	char *id;	 /* for states_replay() */
	enum crash_layer layer;
	struct reffs_state *tree; /* NULL if they are not asked for */
	struct hash128 hash;	  /* of the tree */
	struct hash128 pattern;
	bool representative; /* the first of its pattern */
	uint32_t
		covers; /* patterns of operations that it stands for; 0: it is not there for that */
	/* The survivors of history_window(), besides what is durable. */
	struct survivors survivors;
};

void app_state_release(struct app_state *s);

struct states_stats {
	uint64_t points;
	double possible;     /* sets of survivors, over all points */
	uint64_t tried;	     /* of them; each became a tree, unless it was known to be no new one */
	uint64_t unique;     /* different trees, by acknowledgements */
	uint64_t given;	     /* states given out */
	uint64_t patterns;   /* of those that were found */
	uint64_t waiting;    /* found, and not given out */
	uint64_t operations; /* patterns of operations, if they are to be covered */
	double left_out;     /* sets that were not tried */
	bool budget_hit;     /* something waiting or left out because of the budget */
	bool maps;	     /* files were written through mappings: when is not known exactly */
};

struct states;

int states_new(struct history *h, const struct states_opts *opts, struct states **out,
	       struct err *err) must_check;
void states_free(struct states *s); /* NULL is fine */
/* The next one, or false at the end. `out` may be filled from before, and is zeros at first. */
bool states_next(struct states *s, struct app_state *out);
void states_stats(struct states *s, struct states_stats *out);

/* One state by its id, which depends on trace, profile and unit alone. */
int states_replay(struct history *h, const char *id, struct app_state *out, struct err *err)
	must_check;

/* Crash points: the number of events that have happened at each, ascending, from `first` on. */
void states_points(const struct trace *t, uint64_t first, struct crash_points *out);
/* Events before the first that changes or persists something; all, if none does. */
uint64_t states_first(const struct trace *t);
/* Acknowledgements among the first `point` events. */
uint64_t states_acked(const struct trace *t, uint64_t point);

#endif
