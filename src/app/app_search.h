/* SPDX-License-Identifier: MIT */
/*
 * app_search.h - all crash states of a run are built and checked, and what fails is explained;
 * states that fail for the same reason are one finding.
 *
 * To explain a state takes many checks. So it is told twice: by `failed` before that, and by
 * `found` or `dropped` after it.
 *
 * F1: a failure told by `failed` and not dropped is a finding, the next one after those of
 *     `found`, even if the process is killed.
 * F2: if the search is stopped, no further check is made, the check that runs is killed, and each
 *     failing state that is not known to belong to a finding becomes a finding that is not
 *     explained; states of one pattern (states.h) that fail in the same way are then one.
 * F3: a state of which checks differ becomes such a finding, too: a failure that was seen is not
 *     forgotten, unless the check fails without any crash as well.
 */
#ifndef APP_APP_SEARCH_H
#define APP_APP_SEARCH_H

#include <signal.h>

#include "app/checkers.h"
#include "app/explain.h"
#include "app/judge.h"

struct search_found {
	struct explained why;
	struct verdict verdict; /* of the state that is explained */
	uint64_t states;	/* that fail for this reason */
	unsigned shown, asked; /* so often it failed in this way, of so many checks of that state */
};

struct search_totals {
	struct states_stats states;
	uint64_t checked, failing;
	uint64_t covered; /* patterns of operations, of `states.operations`, that were checked */
	uint64_t unexplained; /* findings */
	uint64_t unsteady;    /* of these: as checks of the same state differed */
	uint64_t faulty;      /* states that failed once, by a check that fails without a crash */
	uint64_t left;	      /* checks that left processes behind */
	uint64_t unlike;      /* see place_unlike() */
	uint64_t errors;
	bool stopped; /* before the end: by the time, the limit, a signal, or an error */
	bool by_signal;
	char error[768]; /* the first one */
};

struct app_search_opts {
	struct history *h;
	const struct history_opts *made; /* how that was made; see explain.h */
	struct states_opts states;
	struct place_opts place;
	const struct judge *judge;
	struct launcher *launcher; /* see checkers.h; or NULL */
	struct answers *answers;   /* the same */
	uint64_t restart;	   /* the same */
	uint64_t timeout_ms;
	unsigned jobs;
	uint64_t time_ns; /* 0: no limit */
	uint64_t limit;	  /* findings; 0: no limit */
	/* All of these may be NULL. */
	void (*failed)(void *ctx, const struct search_found *f);
	bool (*found)(void *ctx, const struct search_found *f); /* whether `limit` counts it */
	void (*dropped)(void *ctx); /* the failure told last is no finding, or a known one */
	/* The command wrote to a good state; see checkers.h. */
	void (*changed)(void *ctx, const struct app_state *s, const struct app_change *change);
	void (*progress)(void *ctx, const struct search_totals *t, uint64_t findings);
	void *ctx;
	/* Set when the search is told to stop; NULL: never. */
	const volatile sig_atomic_t *stop;
};

struct search_result {
	struct search_totals totals;
	struct vec_of(struct search_found) found;
};

/* On failure `out` has what was found before. */
int search(const struct app_search_opts *o, struct search_result *out, struct err *err) must_check;
void search_result_release(struct search_result *r);

/* One state, by its id. -EINTR if it was stopped. */
int search_one(const struct app_search_opts *o, const char *id, struct verdict *out,
	       struct err *err) must_check;
/*
 * The directory as the run left it, without any crash: that the check fails there is an error. Of a
 * restart after a crash, `advice` says what to do; else it is NULL.
 */
int search_end(const struct app_search_opts *o, const char *advice, struct err *err) must_check;
int search_end_fails(const struct app_search_opts *o, const char *advice, const struct verdict *v,
		     struct err *err);
/*
 * Explains one state by its id, with `checks_max` checks (0: the usual number), and shows it. 1: it
 * does not fail with that harm. `out` is zeroed before, and to be released in any case.
 */
int search_again(const struct app_search_opts *o, const char *id, enum app_harm harm,
		 unsigned checks_max, struct search_found *out, struct err *err) must_check;
void search_found_release(struct search_found *f);

#endif
