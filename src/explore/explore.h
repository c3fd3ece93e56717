/* SPDX-License-Identifier: MIT */
/*
 * explore.h - the model checker: tasks in processes of their own that search, and a parent that
 * watches them.
 *
 * The parent never touches a file system under test. A task that stops answering is a finding: the
 * steps it had taken lie in memory that both share.
 */
#ifndef EXPLORE_EXPLORE_H
#define EXPLORE_EXPLORE_H

#include "explore/explore_search.h"
#include "run/run.h"

enum { TASKS_MAX = 64 };

struct explore_result;

struct explore_opts {
	struct side_opts sides;
	const char *specs[SIDES_MAX]; /* the target, then references */
	unsigned n_specs;
	struct search_opts search;
	const struct inputs *inputs;
	unsigned jobs;
	unsigned swarm_i, swarm_n;	 /* this machine's part, from 1; 0: all of it */
	bool vary;			 /* tasks differ in order and distribution, too */
	bool share;			 /* tasks share what was visited */
	uint64_t compare_every;		 /* 0: 1 */
	uint64_t memory;		 /* for visited states, bytes of each task */
	uint64_t time_ns;		 /* from when all tasks are up; 0: no limit */
	uint64_t operations;		 /* of all tasks together; 0: no limit */
	uint64_t hang_ms;		 /* 0: 60 s */
	uint64_t max_cases;		 /* of all tasks together; 0: 10 of each */
	uint64_t crash_every;		 /* transitions; 0: never */
	struct run_opts crash;		 /* how they are tried; the task adds the target */
	const struct suppress *suppress; /* findings that are none; or NULL */
	const char *dir;
	bool resume;
	bool strange; /* a stranger made the plan: what is found does not get this user's mark */
	void *ctx;
	void (*found)(void *ctx, const char *words, const char *dir, size_t ops);
	void (*failed)(void *ctx, const char *words);
	void (*noted)(void *ctx, const char *words);
	void (*warned)(void *ctx, const char *words);
	/* The time is up, or a signal came: what is done now is the last. */
	void (*stopping)(void *ctx, const struct explore_result *so_far);
	void (*progress)(void *ctx, const struct explore_result *so_far);
};

struct explore_result {
	uint64_t operations, steps, states, revisits, restores, saves, mounts, undone;
	uint64_t adopted, abandoned, depth_max, compared, crash_states;
	uint64_t findings, errors;
	uint64_t suppressed;   /* would be findings, and are known */
	uint64_t not_kept;     /* the same: are of a kind of which some are kept */
	uint64_t shrinking;    /* findings that are kept, and made smaller right now */
	uint64_t cut_short;    /* findings that were, when the run ended */
	uint64_t searching_ns; /* since all tasks were up; 0: they are not */
	uint64_t distinct;     /* states, counted once however many tasks were there */
	uint64_t overlapped;   /* states that more than one task visited */
	double overlap;	       /* their share of all */
	double omission; /* odds that a new state was taken for an old one, of the worst task */
	double bytes_per_state;
	bool stopped, signalled;
	bool exhausted; /* every task saw all there is */
	struct coverage coverage;
};

int explore_run(const struct explore_opts *opts, struct explore_result *out, struct err *err)
	must_check;

#endif
