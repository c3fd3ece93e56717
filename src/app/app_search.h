/* SPDX-License-Identifier: MIT */
/*
 * app_search.h - builds and checks all crash states of a run, and explains failures; states that
 * fail for the same reason are one finding.
 *
 * The explanation of a state takes many checks. So a failure is reported twice: by `failed` before
 * them, and by `found` or `dropped` after them.
 *
 * F1: a failure reported by `failed` and not dropped is a finding, the next one after those of
 *     `found`, even if the process is killed.
 * F2: if the search is stopped, no further check is made, the check that runs is killed, and each
 *     failing state that is not known to belong to a finding becomes a finding that is not
 *     explained; states of one pattern (states.h) that fail in the same way are then one.
 * F3: a state whose checks differ becomes such a finding, too: an observed failure is not
 *     forgotten, unless the check fails without a crash as well.
 */
#ifndef APP_APP_SEARCH_H
#define APP_APP_SEARCH_H

#include <signal.h>

#include "app/checkers.h"
#include "app/explain.h"
#include "app/judge.h"

struct search_found {
	struct explained why;
	struct verdict verdict; /* of the explained state */
	uint64_t states;	/* states that fail for this reason */
	unsigned shown, asked;	/* failures, and checks, of that state */
};

struct search_totals {
	struct states_stats states;
	uint64_t checked, failing;
	uint64_t covered;     /* checked patterns of operations, out of `states.operations` */
	uint64_t unexplained; /* findings without an explanation */
	uint64_t unsteady;    /* unexplained because their checks differed */
	uint64_t faulty; /* states that failed once, while the check fails without a crash, too */
	uint64_t left;	 /* checks that left processes running */
	uint64_t unlike; /* see place_unlike() */
	uint64_t errors;
	bool stopped; /* ended early: by the time, the limit, a signal, or an error */
	bool by_signal;
	char error[768]; /* the first error */
};

struct app_search_opts {
	struct history *h;
	const struct history_opts *made; /* the options of `h`; see explain.h */
	struct states_opts states;
	const struct judge *judge;
	struct checkers_opts checkers; /* without its functions and `ctx`, which the search sets */
	uint64_t time_ns;	       /* 0: no limit */
	uint64_t limit;		       /* findings; 0: no limit */
	/* Each of these may be NULL. */
	void (*failed)(void *ctx, const struct search_found *f);
	bool (*found)(void *ctx, const struct search_found *f); /* true if `limit` counts it */
	void (*dropped)(void *ctx); /* the last failure reported is no finding, or a known one */
	/* Called if the command wrote to a good state; see checkers.h. */
	void (*changed)(void *ctx, const struct app_state *s, const struct app_change *change);
	void (*progress)(void *ctx, const struct search_totals *t, uint64_t findings);
	void *ctx;
	/* Not 0: the search is to stop. NULL: never. */
	const volatile sig_atomic_t *stop;
};

struct search_result {
	struct search_totals totals;
	struct vec_of(struct search_found) found;
};

/* On failure `out` has the findings so far. */
int search(const struct app_search_opts *o, struct search_result *out, struct err *err) must_check;
void search_result_release(struct search_result *r);

/* Checks one state, given by its id. Returns -EINTR if it was stopped. */
int search_one(const struct app_search_opts *o, const char *id, struct verdict *out,
	       struct err *err) must_check;
/*
 * Checks the final directory of the run, without a crash: a check that fails there is an error. For
 * a restart, `advice` says what to do; otherwise it is NULL.
 */
int search_end(const struct app_search_opts *o, const char *advice, struct err *err) must_check;
int search_end_fails(const struct app_search_opts *o, const char *advice, const struct verdict *v,
		     struct err *err);
/*
 * Explains one state, given by its id, with `checks_max` checks (0: the usual number), and shows
 * it. Returns 1 if the state does not fail with that harm. `out` is zeroed before, and to be
 * released in any case.
 */
int search_again(const struct app_search_opts *o, const char *id, enum app_harm harm,
		 unsigned checks_max, struct search_found *out, struct err *err) must_check;
void search_found_release(struct search_found *f);

#endif
