/* SPDX-License-Identifier: MIT */
/*
 * search.h - goes through the crash states of a record, for any kind of subject.
 *
 *	struct crash_search s = { .ops = &ops, .ctx = x, .trace = t, .states = which };
 *
 *	search_go(&s, &err);		one state after the other, by s.ops
 *	search_count(&s, &tally);
 *	search_close(&s);
 *
 * Each state has a turn, in the order of core/crash.h: it is tried, and if it is good, worse is
 * tried on it: the power fails again during its recovery, and then lines of the memory are bad.
 *
 * G1: which states are tried, and in which order, follows from the record and the options alone.
 *     The ops may end a search early, and cannot change what came before.
 * G2: nothing worse is tried on a state that is not good, as the ops say.
 * G3: exactly the bad lines, and the states of the enumerator, that the budget leaves out are
 *     counted.
 * G4: the rest of a budget never grows.
 */
#ifndef SEARCH_SEARCH_H
#define SEARCH_SEARCH_H

#include "search/bad_lines.h"
#include "search/recovery_reads.h"

enum search_turn {
	SEARCH_TRY,
	SEARCH_PASS, /* not tried here */
	SEARCH_STOP, /* this state and all later ones are not tried */
};

struct search_ops {
	/* Called before each state; true ends the search. May be NULL. */
	bool (*stopped)(void *ctx);
	/* Decides about the n-th state. NULL: each state is tried. */
	enum search_turn (*turn)(void *ctx, uint64_t n, const struct crash_state *s);
	/*
	 * Recovers a state and judges it. If `reads` is not NULL, adds what recovery and the look
	 * at its result have read. Returns 1 if the state is not good, so that worse would tell
	 * nothing new.
	 */
	int (*attempt)(void *ctx, const struct crash_state *s, struct reads_of *reads,
		       struct err *err);
	/* Tries `budget` crashes (0: no limit) in the recovery of `s`, the last state tried. */
	int (*again)(void *ctx, const struct crash_state *s, uint64_t budget, struct err *err);
	/* Returns the event from which on the lines are written that may be bad after a crash. */
	uint64_t (*since)(void *ctx, uint64_t point);
	/* Called after the bad lines of a state; `left_out` of them were not tried. May be NULL. */
	void (*lines_done)(void *ctx, uint64_t left_out);
};

struct crash_search {
	const struct search_ops *ops;
	void *ctx;
	const struct trace *trace;
	struct crash_opts states;   /* options of the enumerator; search_open() sets the points */
	struct crash_points points; /* owned by the search */
	/* Only pieces that recoveries read are varied. NULL: all are. */
	struct reads *reads;
	bool learn;		     /* the search adds to `reads` on the way */
	bool again;		     /* the power fails a second time; needs ops->again */
	struct bad_lines *bad;	     /* needs ops->since; NULL: no line is bad */
	struct crash_search *within; /* the search of first crashes, which shares its budget */

	/* ---- set during the search ---- */
	struct crash *crash;
	uint64_t n;	 /* states that had their turn */
	uint64_t left;	 /* the rest of the budget, for first crashes and second ones */
	uint64_t firsts; /* crash points whose first states are still to come */
	bool stopped;	 /* ended early */
	double lines_left_out;
};

int search_go(struct crash_search *s, struct err *err) must_check;
/* Finds out the pieces in flight at each crash point: before a fork, once for all processes. */
int search_open(struct crash_search *s, struct err *err) must_check;
void search_close(struct crash_search *s);

struct search_tally {
	struct crash_stats states;
	bool budget_hit;
	double left_out; /* states and bad lines that the budget left out */
};

void search_count(const struct crash_search *s, struct search_tally *out);

#endif
