/* SPDX-License-Identifier: MIT */
/*
 * search.h - goes through the crash states of a record, whatever they are tried on.
 *
 *	struct crash_search s = { .ops = &ops, .ctx = x, .trace = t, .states = which };
 *
 *	search_go(&s, &err);		one state after the other, by s.ops
 *	search_count(&s, &tally);
 *	search_close(&s);
 *
 * Each state has a turn, in the order of core/crash.h: it is tried, and if it is good, worse is
 * tried of it: the power fails again while it is recovered, and then lines of the memory are bad.
 *
 * G1: which states are tried, and in which order, follows from the record and the options alone.
 *     The ops may end a search early, and cannot change what came before.
 * G2: if a state is not good, as the ops say, nothing worse is tried of it.
 * G3: bad lines, and states of the enumerator, that the budget leaves out are counted; nothing
 *     else is.
 * G4: no more is left of a budget than there was.
 */
#ifndef SEARCH_SEARCH_H
#define SEARCH_SEARCH_H

#include "search/bad_lines.h"
#include "search/recovery_reads.h"

enum search_turn {
	SEARCH_TRY,
	SEARCH_PASS, /* not tried here */
	SEARCH_STOP, /* neither it nor any other */
};

struct search_ops {
	/* Asked before each state; true ends the search. NULL: nothing does. */
	bool (*stopped)(void *ctx);
	/* Decides about the n-th state. NULL: each is tried. */
	enum search_turn (*turn)(void *ctx, uint64_t n, const struct crash_state *s);
	/*
	 * Recovers a state and judges it. With `reads`, adds what recovery and the look at what it
	 * made have read. 1: it is not good, and what is worse would say nothing new.
	 */
	int (*attempt)(void *ctx, const struct crash_state *s, struct reads_of *reads,
		       struct err *err);
	/* Tries crashes while the state tried last is recovered: so many states; 0: no limit. */
	int (*again)(void *ctx, const struct crash_state *s, uint64_t budget, struct err *err);
	/* From which event on the lines are written that may be bad after a crash. */
	uint64_t (*since)(void *ctx, uint64_t point);
	/* The bad lines of a state are tried, but for so many. May be NULL. */
	void (*lines_done)(void *ctx, uint64_t left_out);
};

struct crash_search {
	const struct search_ops *ops;
	void *ctx;
	const struct trace *trace;
	struct crash_opts states;   /* which there are; without the points */
	struct crash_points points; /* becomes the search's */
	/* Only pieces that recoveries read are varied. NULL: all are. */
	struct reads *reads;
	bool learn;		     /* the reads are found out on the way */
	bool again;		     /* the power fails a second time; ops->again is there */
	struct bad_lines *bad;	     /* ops->since is there; NULL: no line is bad */
	struct crash_search *within; /* tries second crashes of that, out of its budget */

	/* ---- set while it goes ---- */
	struct crash *crash;
	uint64_t n;	 /* states that had their turn */
	uint64_t left;	 /* of the budget, for first crashes and second ones */
	uint64_t firsts; /* crash points whose first states are still to come */
	bool stopped;	 /* before its end */
	double lines_left_out;
};

int search_go(struct crash_search *s, struct err *err) must_check;
/* Finds out what is in flight at each crash point: before a fork, once for all processes. */
int search_open(struct crash_search *s, struct err *err) must_check;
void search_close(struct crash_search *s);

struct search_tally {
	struct crash_stats states;
	bool budget_hit;
	double left_out; /* by the budget: states, and bad lines */
};

void search_count(const struct crash_search *s, struct search_tally *out);

#endif
