/* SPDX-License-Identifier: MIT */
/*
 * checkers.h - processes that put crash states in place and check them, several at a time.
 *
 * Each is a copy of this process with the history in it, which is told what survived and puts the
 * state together itself. Each has a place of its own (place.h). One that dies is replaced, and the
 * state is checked again; one at which two died, or one hung, is reported as such. Nothing of it
 * stays: its mounts are in its namespace, its files on its tmpfs, and its processes in the
 * namespace of the check.
 */
#ifndef APP_CHECKERS_H
#define APP_CHECKERS_H

#include "app/app_change.h"
#include "app/place.h"
#include "app/states.h"
#include "case/answers.h"
#include "sandbox/check_run.h"
#include "sandbox/launch.h"

struct checkers_opts {
	unsigned jobs; /* processes; 0: one for each CPU */
	struct place_opts place;
	struct launcher *launcher; /* starts the checks; NULL: the processes do */
	struct sandbox_opts check; /* dir and notes are those of the place */
	uint64_t slack_ms; /* so much longer than a check may take, a process is silent; 0: 60 s */
	/* The acknowledgements, in order; a line each, without its end. */
	const char *const *acks;
	size_t n_acks;
	/*
	 * Called for each state, in the order in which they come, whichever check ends first: so
	 * what is made of them is the same in every run. Its arguments are borrowed. A non-zero
	 * return ends the run, and is its result.
	 */
	int (*done)(void *ctx, const struct app_state *s, const struct check_result *r);
	/*
	 * Called after that if the command succeeded and wrote something. NULL: what it writes is
	 * not looked at.
	 */
	void (*changed)(void *ctx, const struct app_state *s, const struct app_change *change);
	/* Where answers are kept, and those of before the run was interrupted; or NULL. */
	struct answers *answers;
	uint64_t restart; /* 1 + the number of the one that is checked; 0: the run is */
	/* Asked now and then; true ends the run. NULL: never. */
	bool (*stop)(void *ctx);
	void *ctx;
};

struct checkers_stats {
	uint64_t checked, passed, failed; /* failed: all that did not pass, without errors */
	uint64_t hung, filled, left;	  /* among them; filled and left may have passed, too */
	uint64_t errors;		  /* could not be checked */
	uint64_t replaced;		  /* processes that died or hung */
	uint64_t unlike;		  /* see place_unlike() */
	bool overlay;
};

/*
 * Checks all states that `s` gives. Fails if a process cannot be made to work; checks that had
 * ended by then are told before that.
 */
int checkers_run(struct history *h, struct states *s, const struct checkers_opts *opts,
		 struct checkers_stats *stats, struct err *err) must_check;
/*
 * For states that are asked for one by one, by their id: a process that stays. When `opts->stop`
 * says so, the check that runs is killed, and that and each later one is -EINTR, without a
 * sentence.
 */
struct checker;
struct checker *checker_new(struct history *h, const struct checkers_opts *opts);
int checker_ask(struct checker *k, const char *id, struct check_result *r, struct err *err)
	must_check;
void checker_free(struct checker *k); /* NULL is fine */

/* Checks one state, without a pool. */
int checkers_one(struct history *h, const struct app_state *s, const struct checkers_opts *opts,
		 struct check_result *r, struct err *err) must_check;

#endif
