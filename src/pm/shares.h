/* SPDX-License-Identifier: MIT */
/*
 * shares.h - divides many steps among workers, each of which goes through all steps and does its
 * share: the enumeration of crash states is a thousand times faster than their checks, so that only
 * results need to be sent.
 *
 * A worker that dies is replaced by one that goes on after the last step with a message. A step at
 * which SHARES_TRIES workers died, or one hung, is given up, and the next one is tried.
 */
#ifndef PM_SHARES_H
#define PM_SHARES_H

#include <signal.h>

#include "base/pool.h"

enum {
	SHARES_TRIES = 3,	 /* tries of one step */
	SHARES_LOST_MAX = 3,	 /* steps given up in a row, after which the share is given up */
	SHARES_SLACK_MS = 30000, /* the silence of a worker, beyond the time of its commands */
};

/* A share, in the worker. */
struct share {
	struct pool_worker *w;
	unsigned number, of;
	uint64_t from; /* earlier steps are done or given up */
};

struct shares {
	unsigned n; /* shares, and workers; at most POOL_JOBS_MAX */
	uint64_t patience_ms;
	const volatile sig_atomic_t *stop; /* not 0: stop; may be NULL */
	void *ctx;
	/*
	 * Called in a worker: does a share, reports each step with pool_at(), and its results with
	 * share_tell().
	 */
	void (*work)(void *ctx, struct share *s);
	/* Takes a message of a worker. A non-zero return ends all workers, and is the result. */
	int (*told)(void *ctx, unsigned share, const void *data, size_t len);
	/* Called when a step, or with `whole` the rest of a share, was given up; says why. */
	void (*lost)(void *ctx, unsigned share, bool whole, const char *words);
	void (*tick)(void *ctx); /* may be NULL */
};

int shares_run(const struct shares *o, struct err *err) must_check;

/* Called in the worker: the steps before `next` are done, with this result. */
void share_tell(struct share *s, uint64_t next, const void *data, size_t len);

#endif
