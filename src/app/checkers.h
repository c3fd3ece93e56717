/* SPDX-License-Identifier: MIT */
/*
 * checkers.h - processes that put crash states in place and check them, several at a time.
 *
 * Each process is a copy of this one with the history in it; it gets the survivors and builds the
 * state itself, in a place of its own (place.h). A process that dies is replaced, and its state is
 * checked again; a state at which two processes died, or one hung, is reported as such. Nothing of
 * a process stays: its mounts are in its namespace, its files on its tmpfs, and its processes in
 * the namespace of the check.
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
	struct sandbox_opts check; /* without dir and notes, which are the place's */
	uint64_t slack_ms;	   /* a process hangs so long after a check's time limit; 0: 60 s */
	/* The acknowledgements, in order; one line each, without its newline. */
	const char *const *acks;
	size_t n_acks;
	/*
	 * Called for each state, in the order of the states, whichever check ends first: so the
	 * result of a run is always the same. The arguments are borrowed. A non-zero return ends
	 * the run, and is its result.
	 */
	int (*done)(void *ctx, const struct app_state *s, const struct check_result *r);
	/*
	 * Called after done() if the command succeeded and wrote something. NULL: writes are not
	 * looked at.
	 */
	void (*changed)(void *ctx, const struct app_state *s, const struct app_change *change);
	/* Where answers are kept, with those before the run was interrupted; or NULL. */
	struct answers *answers;
	uint64_t restart; /* 1 + the number of the checked restart; 0: the run is checked */
	/* Called from time to time; true ends the run. May be NULL. */
	bool (*stop)(void *ctx);
	void *ctx;
};

struct checkers_stats {
	uint64_t checked, passed, failed; /* failed: did not pass; without errors */
	uint64_t errors;		  /* states that could not be checked */
	uint64_t replaced;		  /* processes that died or hung */
	uint64_t unlike;		  /* see place_unlike() */
};

/*
 * Checks all states of `s`. Fails if no process can be made to work; results that arrived before
 * are reported.
 */
int checkers_run(struct history *h, struct states *s, const struct checkers_opts *opts,
		 struct checkers_stats *stats, struct err *err) must_check;
/*
 * Checks single states, given by their ids, with a process that stays. When `opts->stop` returns
 * true, the running check is killed, and this call and each later one return -EINTR, without an
 * error message.
 */
struct checker;
struct checker *checker_new(struct history *h, const struct checkers_opts *opts);
int checker_ask(struct checker *k, const char *id, struct check_result *r, struct err *err)
	must_check;
void checker_free(struct checker *k); /* NULL is fine */

#endif
