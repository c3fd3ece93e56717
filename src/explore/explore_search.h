/* SPDX-License-Identifier: MIT */
/*
 * explore_search.h - goes through the states of a file system: at random, depth first or breadth
 * first.
 *
 * A state is what a user sees; its identity is a hash. A transition is a step of the alphabet. The
 * order is chosen so that the target has to be put back rarely, for that costs a mount:
 *
 *   - a step that changes nothing needs no going back; such steps come first (the reference tells
 *     which they are, for a microsecond each);
 *   - all steps of a state are done one after the other;
 *   - often another step undoes the last one: if the reference knows one that leads to the state
 *     wanted, it is taken instead of a mount, and is a transition that is checked like any other;
 *   - not every state is saved: from the nearest one that was, the steps are done again.
 */
#ifndef EXPLORE_EXPLORE_SEARCH_H
#define EXPLORE_EXPLORE_SEARCH_H

#include "explore/script.h"
#include "explore/stepper.h"
#include "explore/visited.h"

enum search_order { SEARCH_WALK, SEARCH_DEPTH, SEARCH_BREADTH };

struct search_opts {
	enum search_order order;
	uint64_t seed;
	uint64_t shuffle;    /* tasks with the same steps take them in another order */
	uint32_t depth;	     /* steps from the empty file system */
	uint32_t alphabet;   /* steps in it; 0: 4096 for a walk, else 48 */
	uint32_t save_every; /* levels of a depth-first search; 0: 8. Steps of a walk; 0: 64 */
	uint64_t round;	     /* operations with one alphabet, not for walks; 0: all there is */
	uint64_t room_every; /* walks; 0: never */
	bool apart;	     /* tasks share what was visited, and yet have different steps */
	uint64_t keep_ns;    /* how often to keep what is needed to go on; 0: a minute */
};

/* Progress that others may read while the search runs. */
struct search_progress {
	_Atomic uint64_t beat; /* changes with every step */
	_Atomic uint64_t operations, steps, states, revisits, restores, saves, mounts, undone,
		walks;
	_Atomic uint64_t adopted, abandoned, depth, depth_max, compared, crash_states;
	_Atomic uint64_t overlapped; /* states that another task had visited before */
	_Atomic bool stop;	     /* asked for by others */
	_Atomic bool done;	     /* all that its steps lead to was visited */
	/* The steps that led here, newest last, for a report of a hang. */
	uint64_t alphabet_seed;
	_Atomic uint32_t path_n;
	uint32_t path[SCRIPT_MAX];
};

struct search;
struct pickle;

/* Something was found. `script` leads there from the empty file system. 0 to go on. */
typedef int (*search_found)(void *ctx, struct search *s, const struct script *script,
			    struct step_result *result, struct err *err);
/* Called after a transition; what it does must leave the sides as they are. Or NULL. */
typedef int (*search_hook)(void *ctx, struct search *s, struct err *err);

/* A state on the way to where we are that was saved. */
struct anchor {
	struct point *point;
	size_t n; /* steps of the path that lead there */
};

struct search {
	const struct search_opts *opts;
	const struct inputs *in;
	struct stepper *stepper;
	struct visited *visited;
	unsigned task; /* of those that share what was visited */
	struct search_progress *progress;
	search_found found;
	search_hook after;
	void *ctx;
	const char *pickle_path;      /* where to put what is needed to go on; NULL: nowhere */
	const struct pickle *resumed; /* where to go on, or NULL; see search_resume() */

	/* the search's own */
	struct alphabet alphabet;
	struct rng rng;
	struct script_log log; /* the latest steps */
	struct step_result result;
	struct hash128 at;	/* the state all sides are in */
	struct visited *claims; /* states searched: `visited`, or its own if apart */
	uint64_t left_out;	/* frames with steps that could not be taken */
	uint64_t keep_at_ns;	/* when to keep again what is needed to go on */
	uint64_t walk;		/* number of the walk, or of the round, from 0 */
	uint64_t until;		/* operations after which to stop; 0: no limit */
	uint64_t round_ends;	/* operations */
	uint64_t undone;
	/* In the order of the path. A walk has its own; else they are those of frames. */
	struct vec_of(struct anchor) anchors;
	uint32_t saves;		       /* names of saved states, in the log */
	uint32_t last;		       /* the step taken last */
	bool eager;		       /* steps are chosen for what they change */
	struct vec_of(uint32_t) hints; /* for each step, the one that undid it last */
};

void search_init(struct search *s);
void search_release(struct search *s);
/* The alphabet that a search with these options draws for this seed. */
void search_draw(const struct search_opts *opts, const struct inputs *in, uint64_t seed,
		 struct alphabet *out);
/* Reads into `out` where the search was that wrote its pickle, and goes on from there. */
int search_resume(struct search *s, struct pickle *out, struct err *err) must_check;
/* Runs until it is told to stop, or there is no more. */
int search_run(struct search *s, struct err *err) must_check;
/* The steps from the empty file system to where it is now. */
void search_path(const struct search *s, struct script *out);

#endif
